"""Errors of providers: exceptions that look like a vendor's own, without any vendor's SDK.

    ProviderError
    ├── TokenLimitError       the request is longer than the context window
    ├── InvalidRequestError   the list of messages is broken
    └── RateLimitError        too many tokens per minute; looks similar, but is not a token limit

The exception that is raised is a subclass with the vendor's class name (``BadRequestError``,
``ClientError``, ...).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Mapping


Envelope = Literal["openai", "anthropic", "google", "aws", "llama.cpp"]
"""The JSON structure around the message of an error."""

E = TypeVar("E", bound="ProviderError")


class ProviderError(Exception):
    """An exception like those of a provider's SDK; on purpose not one of compacter's own errors."""

    def __init__(
        self,
        shown: str,
        *,
        message: str,
        status_code: int,
        code: str | int | None,
        kind: str | None,
        body: Mapping[str, Any],
    ) -> None:
        """Store the provider's answer; `shown` is the exception's text, `message` the bare
        sentence.
        """
        super().__init__(shown)
        self.message = message
        self.status_code = status_code
        self.code = code
        self.type = kind
        self.status = kind
        self.body = body
        self.response: Mapping[str, Any] | None = None
        """The whole answer as a dict, as in botocore's exceptions. Only in the ``bedrock`` style.
        """


class TokenLimitError(ProviderError):
    """The request does not fit into the context window."""


class InvalidRequestError(ProviderError):
    """The request is malformed, for example by an orphaned tool result; its length does
    not matter.
    """


class RateLimitError(ProviderError):
    """Too many tokens in too short a time; the request may succeed later."""


# Subclasses with vendors' names, so that each is created only once.
_classes: dict[tuple[type[ProviderError], str], type[ProviderError]] = {}


@dataclass(frozen=True, slots=True)
class Style:
    """Form of one provider's errors.

    The texts are templates with the fields ``{limit}``, ``{requested}``, ``{input}`` and
    ``{output}``, all in tokens; ``requested`` is input and output together.
    """

    name: str
    error: str
    """Name of the class that the vendor's SDK raises."""
    text: str
    with_output: str = ""
    """Text if ``max_tokens`` is counted too; empty if the text does not differ."""
    status: int = 400
    code: str | int | None = None
    kind: str | None = "invalid_request_error"
    """Member ``type`` (or ``status``) of the answer."""
    envelope: Envelope = "openai"
    shown: str = "Error code: {status} - {body}"
    """Template of the exception's text, with the fields ``{status}``, ``{kind}``, ``{body}`` and
    ``{message}``."""


_OPENAI = Style(
    "openai",
    "BadRequestError",
    "The context window of this model takes at most {limit} tokens, but your messages amount to"
    " {input} tokens. Send shorter messages.",
    "The context window of this model takes at most {limit} tokens, but you asked "
    "for {requested} tokens"
    " ({input} in the messages, {output} in the completion). Send less, or ask for less.",
    code="context_length_exceeded",
)

_ROWS = (
    _OPENAI,
    Style(
        "anthropic",
        "BadRequestError",
        "the prompt is too long: {input} tokens, and the maximum is {limit}",
        (
            "the input of {input} tokens and `max_tokens` of {output} together exceed the "
            "context limit of {limit} tokens"
        ),
        envelope="anthropic",
    ),
    Style(
        "gemini",
        "ClientError",
        (
            "The request has an input token count of {input}, which is above the maximum "
            "of {limit} tokens."
        ),
        code=400,
        kind="INVALID_ARGUMENT",
        envelope="google",
        shown="{status} {kind}. {body}",
    ),
    Style(
        # Without numbers, like this provider's errors for most models.
        "bedrock",
        "ValidationException",
        "The input is too long for the model that was requested.",
        code="ValidationException",
        kind="ValidationException",
        envelope="aws",
        shown="An error occurred ({kind}) when calling the Converse operation: {message}",
    ),
    Style(
        "llama.cpp",
        "BadRequestError",
        "this request of {input} tokens does not fit the context size of {limit} tokens",
        code=400,
        kind="exceed_context_size_error",
        envelope="llama.cpp",
    ),
    Style(
        "vllm",
        "BadRequestError",
        "The context length of this model is at most {limit} tokens, and the prompt holds {input}"
        " input tokens. Reduce the length of the prompt.",
        "The context length of this model is at most {limit} tokens, but {requested} "
        "tokens were requested:"
        " {output} output tokens and a prompt of {input} input tokens. Reduce one of the two.",
        code=400,
        kind="BadRequestError",
    ),
    replace(
        _OPENAI,
        name="litellm",
        error="ContextWindowExceededError",
        code=None,
        shown=(
            "litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException "
            "- {message}"
        ),
    ),
)

_OTHER = replace(_OPENAI, code=None)
"""Form of an error other than a token limit."""
STYLES: Mapping[str, Style] = MappingProxyType({row.name: row for row in _ROWS})
"""The styles by name. The sentences are compacter's own; class, status, code and envelope are the
provider's."""


def style_of(style: str | Style) -> Style:
    """Return the named style. Raises `ValueError`, listing the names, for an unknown one."""
    if isinstance(style, Style):
        return style
    if style not in STYLES:
        raise ValueError(f"unknown style {style!r}; known: {', '.join(STYLES)}")
    return STYLES[style]


def token_limit_error(
    style: str | Style = "openai",
    *,
    limit: int,
    input_tokens: int,
    output_tokens: int | None = None,
) -> TokenLimitError:
    """Return the exception for a request that exceeds the window of `limit` tokens.

    With `output_tokens`, it is the error for input and ``max_tokens`` together. Raises `ValueError`
    for an unknown style.
    """
    row = style_of(style)
    requested = input_tokens + (output_tokens or 0)
    # A provider without a text for the two parts states their sum.
    has_parts = output_tokens is not None and row.with_output
    message = (row.with_output if has_parts else row.text).format(
        limit=limit,
        requested=requested,
        input=input_tokens if has_parts else requested,
        output=output_tokens,
    )
    counts = (
        {"n_prompt_tokens": input_tokens, "n_ctx": limit} if row.envelope == "llama.cpp" else {}
    )
    return _make_error(TokenLimitError, row, message, counts)


def invalid_request_error(*, message: str) -> InvalidRequestError:
    """Return the exception for a malformed request, in OpenAI's form; `message` states its
    fault.
    """
    return _make_error(InvalidRequestError, replace(_OTHER, error="BadRequestError"), message, {})


def rate_limit_error(*, tokens_per_minute: int = 30_000) -> RateLimitError:
    """Return the exception for a rate limit in tokens per minute, in OpenAI's form; it must never
    lead to a compaction.
    """
    message = (
        f"Rate limit reached: {tokens_per_minute} tokens per minute. Wait a little and try again."
    )
    row = replace(
        _OTHER,
        error="RateLimitError",
        status=429,
        kind="rate_limit_error",
        code="rate_limit_exceeded",
    )
    return _make_error(RateLimitError, row, message, {})


def server_error() -> ProviderError:
    """Return the exception for a failure on the provider's side, in OpenAI's form."""
    row = replace(_OTHER, error="InternalServerError", status=500, kind="server_error")
    return _make_error(ProviderError, row, "Something went wrong on the side of the server.", {})


def error_body(error: ProviderError) -> dict[str, Any]:
    """Return the ``error`` member of a reply or a stream chunk with HTTP 200 that has no answer."""
    return {"message": error.message, "type": error.type, "code": error.code or error.status_code}


def _make_error(base: type[E], row: Style, message: str, counts: Mapping[str, int]) -> E:
    if row.envelope == "aws":
        whole: dict[str, Any] = {
            "Error": {"Code": row.code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": row.status},
        }
    elif row.envelope == "google":
        whole = {"error": {"code": row.status, "message": message, "status": row.kind}}
    elif row.envelope == "anthropic":
        whole = {"type": "error", "error": {"type": row.kind, "message": message}}
    else:
        whole = {
            "error": {
                "message": message,
                "type": row.kind,
                "param": None,
                "code": row.code,
                **counts,
            }
        }
    # OpenAI's SDK keeps only the inner part of the answer as the body.
    body = whole["error"] if row.envelope in {"openai", "llama.cpp"} else whole
    shown = row.shown.format(status=row.status, kind=row.kind, body=whole, message=message)
    named = _classes.setdefault(
        (base, row.error),
        type(row.error, (base,), {"__module__": __name__, "__doc__": base.__doc__}),
    )
    error = cast("type[E]", named)(
        shown, message=message, status_code=row.status, code=row.code, kind=row.kind, body=body
    )
    if row.envelope == "aws":
        error.response = whole
    return error
