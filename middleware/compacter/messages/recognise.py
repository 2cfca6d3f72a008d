"""Recognition of a message format from its messages, by features that only one format has."""

from __future__ import annotations

from collections.abc import Sequence

from compacter.errors import ConfigurationError
from compacter.messages.fields import Json, field, listed, word
from compacter.messages.format import FORMATS, FormatName, Message, foreign, get_format
from compacter.messages.parts import Kind


class UnknownFormatError(ConfigurationError):
    """A message has no known format; the error names the message and a remedy."""


# Number of messages that are read one by one before plain messages are skipped.
_LOOK_AT = 40
_EACH = tuple(map(get_format, FORMATS))
_ROLES = frozenset(role for form in _EACH for role in form.roles)
TELLING: dict[str, FormatName] = {kind: form.name for form in _EACH for kind in form.telling}
"""Types of blocks that only one format has, or members of blocks without a type."""
# Members of parts that are not Gemini's: messages of the AI SDK and of pydantic-ai have parts too.
_NOT_GEMINI = frozenset({"type", "kind", "part_kind"})
_WANTED = 'pass messages as that API takes them, such as {"role": "user", "content": "..."}'
_CONVERTERS = {
    "langchain_core": " (LangChain: langchain_core.messages.convert_to_openai_messages(messages))",
    "llama_index": " (LlamaIndex: llama_index.llms.openai.utils.to_openai_message_dicts(messages))",
}


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
    heads = messages[:_LOOK_AT]
    if param == "contents" and not any(type(one) is dict and "content" in one for one in heads):
        return "gemini"
    # Plain messages are skipped quickly, as this runs on each call.
    others = [
        item
        for item in messages[since:]
        if type(item) is not dict or type(item.get("content")) is not str
    ]
    found: FormatName | None = next(
        (name for name in map(_telling, (*heads, *others)) if name), None
    )
    if found == "gemini":
        return found
    # Classes, not messages: a history has thousands of messages of one or two classes.
    for kind in set(map(type, others)) - {dict}:
        index = [*map(type, messages)].index(kind)
        if foreign(messages[index]):
            converter = _CONVERTERS.get(kind.__module__.partition(".")[0], "")
            raise UnknownFormatError(
                f"messages[{index}] is a {kind.__module__}.{kind.__qualname__}, which is not a "
                f"message of any provider's API; {_WANTED}{converter}"
            )
    spoken = any(word(message, "role") in ("user", "assistant") for message in heads)
    for index, message in enumerate(heads):
        role = word(message, "role")
        if field(message, "parts") is not None and field(message, "content") is None:
            what = "parts that are not Gemini's"
        elif spoken or role in _ROLES or (not role and _is_item(message)):
            continue
        else:
            what = (
                f"the role {role!r}" if role else f"the type {word(message, 'type')!r} and no role"
            )
        raise UnknownFormatError(
            f"messages[{index}] has {what}, which no provider's API knows; {_WANTED}"
        )
    return found or ("responses" if param == "input" else "openai")


def _is_item(message: Message) -> bool:
    """Return whether a message without a role is an item of the Responses API."""
    kind = word(message, "type")
    return kind == "message" or get_format("responses").kind({"type": kind}) is not Kind.UNKNOWN


def _telling(message: Message) -> FormatName | None:
    """Return the only format that this message can have, or ``None`` if it fits several."""
    if foreign(message):
        return None
    role = word(message, "role")
    parts = field(message, "parts")
    if isinstance(parts, (list, tuple)) and role != "assistant":
        of_others = any(isinstance(part, dict) and _NOT_GEMINI & part.keys() for part in parts)
        return None if of_others else "gemini"
    if not role:
        return "responses" if _is_item(message) else None
    if field(message, "tool_calls") or role in ("tool", "function"):
        return "openai"
    content = listed(field(message, "content"))
    found: FormatName | None = next((name for name in map(_telling_block, content) if name), None)
    is_item = word(message, "type") == "message" and isinstance(message, dict)
    return found or ("responses" if is_item else None)


def _telling_block(block: Json) -> FormatName | None:
    kind = word(block, "type")
    if kind in ("image", "document"):
        return "anthropic" if field(block, "source") is not None else None
    if kind == "thinking" and not isinstance(field(block, "thinking"), str):
        return None  # Mistral has a list here, in OpenAI's messages.
    names = block if isinstance(block, dict) and not kind else (kind,)
    if [*names] == ["text"]:
        return None if kind else "bedrock"
    return next((TELLING[name] for name in names if name in TELLING), None)
