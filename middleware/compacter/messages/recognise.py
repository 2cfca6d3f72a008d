"""Recognition of a message format from its messages, by features that only one format has."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from compacter.errors import ConfigurationError
from compacter.messages.bedrock import BEDROCK
from compacter.messages.fields import Json, field, word
from compacter.messages.format import FORMATS, FormatName, Message, foreign, get_format, roles
from compacter.messages.parts import Kind
from compacter.messages.responses import RESPONSES


class UnknownFormatError(ConfigurationError):
    """A message has no known format; the error names the message and a remedy."""


# Number of messages that are read one by one before plain messages are skipped.
_LOOK_AT = 40
_NOT_GEMINI = frozenset({"type", "kind", "part_kind"})


def recognise(messages: Sequence[Message], *, param: str = "", since: int = 0) -> FormatName:
    """Return the message format, recognised by features that only one format has.

    Messages with only role and content, which several formats share, are ``openai``; its summary
    messages are valid in all of them. ``param`` is the name of the argument with the messages:
    ``contents`` is Gemini's unless they have a ``content``, which Gemini refuses; ``input`` is the
    Responses API's. Messages before ``since`` are known not to change the result; only the first
    forty are read.

    Raises :class:`UnknownFormatError` for messages of frameworks, such as LangChain's or
    LlamaIndex's, and for lists without a user or assistant of any of the formats.
    """
    if param == "contents" and not any(
        type(one) is dict and "content" in one for one in messages[:_LOOK_AT]
    ):
        return "gemini"
    heads = messages[:_LOOK_AT]
    # Plain messages are skipped quickly, as this runs on each call.
    others = [
        item
        for item in messages[since:]
        if type(item) is not dict or type(item.get("content")) is not str
    ]
    found = next((name for name in map(_telling, (*heads, *others)) if name), None)
    if found != "gemini":
        # Classes, not messages: a history has thousands of messages of one or two classes.
        for kind in set(map(type, others)) - {dict}:
            index = [*map(type, messages)].index(kind)
            if foreign(messages[index]):
                converter = _CONVERTERS.get(kind.__module__.partition(".")[0], "")
                raise UnknownFormatError(
                    f"messages[{index}] is a {kind.__module__}.{kind.__qualname__}, which is not a "
                    f"message of any provider's API; {_WANTED}{converter}"
                )
        _refuse_unknown(heads)
    return found or ("responses" if param == "input" else "openai")  # pyright: ignore[reportReturnType]


def _refuse_unknown(heads: Sequence[Message]) -> None:
    """Raise ``UnknownFormatError`` if one of the first messages has what no format knows."""
    spoken = any(word(message, "role") in ("user", "assistant") for message in heads)
    for index, message in enumerate(heads):
        role = word(message, "role")
        kind = word(message, "type")
        what = f"the role {role!r}" if role else f"the type {kind!r} and no role"
        if field(message, "parts") is not None and field(message, "content") is None:
            what = "parts that are not Gemini's"
        elif spoken or role in roles() or (not role and _is_item(kind)):
            continue
        raise UnknownFormatError(
            f"messages[{index}] has {what}, which no provider's API knows; {_WANTED}"
        )


_WANTED = 'pass messages as that API takes them, such as {"role": "user", "content": "..."}'
_CONVERTERS = {
    "langchain_core": " (LangChain: langchain_core.messages.convert_to_openai_messages(messages))",
    "llama_index": " (LlamaIndex: llama_index.llms.openai.utils.to_openai_message_dicts(messages))",
}


def _is_item(kind: str) -> bool:
    """Return whether a ``type`` is that of an item of the Responses API."""
    return kind == "message" or RESPONSES.kind({"type": kind}) is not Kind.UNKNOWN


def _telling(message: Message) -> FormatName | None:
    """Return the only format that this message can have, or ``None`` if it fits several."""
    if foreign(message):
        return None
    parts = field(message, "parts")
    if isinstance(parts, (list, tuple)) and word(message, "role") != "assistant":
        return (
            None
            # Messages of the AI SDK and of pydantic-ai have parts too, with a type.
            if any(isinstance(part, dict) and not _NOT_GEMINI.isdisjoint(part) for part in parts)
            else "gemini"
        )
    kind = word(message, "type")
    role = word(message, "role")
    if not role:
        # Only the Responses API has items without a role.
        return "responses" if _is_item(kind) else None
    if field(message, "tool_calls") or role in ("tool", "function"):
        return "openai"
    content = field(message, "content")
    if isinstance(content, (list, tuple)):
        for part in content:
            found = _telling_part(part)
            if found is not None:
                return found
    return "responses" if kind == "message" and isinstance(message, dict) else None


def _telling_part(part: Json) -> FormatName | None:
    kind = word(part, "type")
    if kind in ("image", "document"):
        return "anthropic" if field(part, "source") is not None else None
    if kind == "thinking" and not isinstance(field(part, "thinking"), str):
        return None  # Mistral's is a list, in OpenAI's messages.
    if kind:
        return _telling_types().get(kind)
    members = set(part if isinstance(part, dict) else ())
    return "bedrock" if members == {"text"} or members.intersection(BEDROCK.telling) else None


@cache
def _telling_types() -> dict[str, FormatName]:
    """Return the types of parts that only one format has."""
    return {kind: name for name in FORMATS for kind in get_format(name).telling}
