"""How providers say no: exceptions that look like a vendor's own, without any vendor's SDK.

    ProviderError
    ├── TokenLimitError       the request is longer than the context window
    ├── InvalidRequestError   the list of messages is broken
    └── RateLimitError        too many tokens per minute; looks alike, and is no token limit

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
"""The JSON that surrounds the message of an error."""

E = TypeVar("E", bound="ProviderError")


class ProviderError(Exception):
    """What a provider's SDK would raise; on purpose not one of compacter's own errors."""

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
        """Carry the provider's answer; `shown` is the exception's text, `message` the bare sentence."""
        super().__init__(shown)
        self.message = message
        self.status_code = status_code
        self.code = code
        self.type = kind
        self.status = kind
        self.body = body
        self.response: Mapping[str, Any] | None = None
        """What botocore keeps in this place: the whole answer as a dict. Only in the ``bedrock`` style."""


class TokenLimitError(ProviderError):
    """The request does not fit into the context window."""


class InvalidRequestError(ProviderError):
    """The request is malformed: an orphaned tool result, an empty list, ...; never a matter of length."""


class RateLimitError(ProviderError):
    """Too much in too short a time; the same request is welcome later."""


_classes: dict[tuple[type[ProviderError], str], type[ProviderError]] = {}


def _named(base: type[E], name: str) -> type[E]:
    """The subclass of `base` with the vendor's name, the same one each time."""
    made = _classes.setdefault((base, name), type(name, (base,), {"__module__": __name__, "__doc__": base.__doc__}))
    return cast("type[E]", made)


@dataclass(frozen=True, slots=True)
class Style:
    """How one provider refuses.

    The texts are templates over ``{limit}``, ``{requested}``, ``{input}`` and ``{output}``, all in tokens;
    ``requested`` is input and output together.
    """

    name: str
    error: str
    """Name of the class that the vendor's SDK raises."""
    text: str
    with_output: str = ""
    """The text where ``max_tokens`` is counted in; empty: the same."""
    status: int = 400
    code: str | int | None = None
    kind: str | None = "invalid_request_error"
    """The ``type`` (or ``status``) member of the answer."""
    envelope: Envelope = "openai"
    shown: str = "Error code: {status} - {body}"
    """The text of the exception, over ``{status}``, ``{kind}``, ``{body}`` and ``{message}``."""


_OPENAI = Style(
    "openai",
    "BadRequestError",
    "The context window of this model takes at most {limit} tokens, but your messages amount to"
    " {input} tokens. Send shorter messages.",
    "The context window of this model takes at most {limit} tokens, but you asked for {requested} tokens"
    " ({input} in the messages, {output} in the completion). Send less, or ask for less.",
    code="context_length_exceeded",
)

_ROWS = (
    _OPENAI,
    Style(
        "anthropic",
        "BadRequestError",
        "the prompt is too long: {input} tokens, and the maximum is {limit}",
        "the input of {input} tokens and `max_tokens` of {output} together exceed the context limit of {limit} tokens",
        envelope="anthropic",
    ),
    Style(
        "gemini",
        "ClientError",
        "The request has an input token count of {input}, which is above the maximum of {limit} tokens.",
        code=400,
        kind="INVALID_ARGUMENT",
        envelope="google",
        shown="{status} {kind}. {body}",
    ),
    Style(
        # Names no number at all, as this provider does for most models.
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
        "The context length of this model is at most {limit} tokens, but {requested} tokens were requested:"
        " {output} output tokens and a prompt of {input} input tokens. Reduce one of the two.",
        code=400,
        kind="BadRequestError",
    ),
    replace(
        _OPENAI,
        name="litellm",
        error="ContextWindowExceededError",
        code=None,
        shown="litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - {message}",
    ),
)

STYLES: Mapping[str, Style] = MappingProxyType({row.name: row for row in _ROWS})
"""The styles by name. The sentences are compacter's own; the class, status, code and envelope are the
provider's."""


def style_of(style: str | Style) -> Style:
    """Return the named style. Raises `ValueError`, listing the names, for an unknown one."""
    if isinstance(style, Style):
        return style
    try:
        return STYLES[style]
    except KeyError:
        raise ValueError(f"unknown style {style!r}; known: {', '.join(STYLES)}") from None


def token_limit_error(
    style: str | Style = "openai", *, limit: int, input_tokens: int, output_tokens: int | None = None
) -> TokenLimitError:
    """Make the exception for a request over the window of `limit` tokens.

    With `output_tokens` the refusal is the one for input and ``max_tokens`` together. Raises `ValueError`
    for an unknown style.
    """
    row = style_of(style)
    requested = input_tokens + (output_tokens or 0)
    numbers = {"limit": limit, "requested": requested, "input": input_tokens, "output": output_tokens}
    if output_tokens is None:
        message = row.text.format(**numbers)
    else:
        # A provider without words for the two parts names their sum.
        message = row.with_output.format(**numbers) or row.text.format(**{**numbers, "input": requested})
    counts = {"n_prompt_tokens": input_tokens, "n_ctx": limit} if row.envelope == "llama.cpp" else {}
    return _raised(TokenLimitError, row, message, counts)


def invalid_request_error(style: str | Style = "openai", *, message: str) -> InvalidRequestError:
    """Make the exception for a malformed request; `message` says what is wrong with it."""
    row = style_of(style)
    if row.envelope not in {"google", "aws"}:
        code = 400 if isinstance(row.code, int) else None
        row = replace(row, status=400, error="BadRequestError", kind="invalid_request_error", code=code)
    return _raised(InvalidRequestError, _unmapped(row), message, {})


def rate_limit_error(style: str | Style = "openai", *, tokens_per_minute: int = 30_000) -> RateLimitError:
    """Make the exception for a rate limit in tokens per minute, which must never lead to a compaction."""
    row = style_of(style)
    message = f"Rate limit reached: {tokens_per_minute} tokens per minute. Wait a little and try again."
    if row.envelope == "google":
        row = replace(row, status=429, error="ClientError", kind="RESOURCE_EXHAUSTED", code=429)
    elif row.envelope == "aws":
        row = replace(row, status=429, error="ThrottlingException", kind="ThrottlingException", code="Throttling")
    else:
        row = replace(row, status=429, error="RateLimitError", kind="rate_limit_error", code="rate_limit_exceeded")
    return _raised(RateLimitError, _unmapped(row), message, {})


def server_error(style: str | Style = "openai") -> ProviderError:
    """Make the exception for a failure on the provider's side."""
    row = style_of(style)
    if row.envelope == "google":
        row = replace(row, status=500, error="ServerError", kind="INTERNAL", code=500)
    elif row.envelope == "aws":
        name = "InternalServerException"
        row = replace(row, status=500, error=name, kind=name, code=name)
    else:
        row = replace(row, status=500, error="InternalServerError", kind="server_error", code=None)
    return _raised(ProviderError, _unmapped(row), "Something went wrong on the side of the server.", {})


def error_body(error: ProviderError) -> dict[str, Any]:
    """The ``error`` member that a reply or a stream chunk with HTTP 200 carries instead of an answer."""
    return {
        "message": error.message,
        "type": error.type,
        "code": error.code or error.status_code,
    }


def _unmapped(row: Style) -> Style:
    """The litellm style puts the class into the text; what is no overflow must not say that it is one."""
    mapped = "ContextWindowExceededError: litellm.BadRequestError"
    return replace(row, shown=row.shown.replace(mapped, row.error))


def _raised(base: type[E], row: Style, message: str, counts: Mapping[str, int]) -> E:
    body, wrapped = _wrap(row, message, counts)
    shown = row.shown.format(status=row.status, kind=row.kind, body=wrapped, message=message)
    error = _named(base, row.error)(
        shown, message=message, status_code=row.status, code=row.code, kind=row.kind, body=body
    )
    if row.envelope == "aws":
        error.response = wrapped
    return error


def _wrap(row: Style, message: str, counts: Mapping[str, int]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the SDK keeps as the body, and the whole answer as it came."""
    match row.envelope:
        case "anthropic":
            whole: dict[str, Any] = {"type": "error", "error": {"type": row.kind, "message": message}}
            return whole, whole
        case "google":
            whole = {"error": {"code": row.status, "message": message, "status": row.kind}}
            return whole, whole
        case "aws":
            whole = {
                "Error": {"Code": row.code, "Message": message},
                "ResponseMetadata": {"HTTPStatusCode": row.status},
            }
            return whole, whole
        case "openai" | "llama.cpp":
            inner = {"message": message, "type": row.kind, "param": None, "code": row.code, **counts}
            return inner, {"error": inner}
