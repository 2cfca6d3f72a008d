"""The generateContent wire format of Gemini, as google-genai and the REST API take it.

Source of the rules: the Gemini API reference, "Content", and its guide on function calling. A turn with
function calls comes right after a user's turn or after function responses, and the responses come right after
it, as many as there are calls. Ids are optional: calls and responses are paired by id where both have one,
else by name, in order. Field names may be snake_case (SDK) or camelCase (REST); a bare string, part or list
of parts is a user's content.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from compacter.messages import media
from compacter.messages.fields import Json, characters, field, json_text, listed, plain, replaced, unmarked
from compacter.messages.parts import (
    Piece,
    call,
    entries,
    only_text,
    reading,
    reasoning,
    result,
    spoken,
    tool_names,
    words,
)
from compacter.messages.steps import Kind, Outline, Reading, outline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from compacter.messages.format import Edit, Message, WireName
    from compacter.messages.parts import Entry, Speaker


_KINDS = {
    "user": Kind.USER,
    "function": Kind.USER,
    "tool": Kind.USER,
    "model": Kind.ASSISTANT,
    "system": Kind.SYSTEM,
}
_SPEAKERS: dict[Kind, Speaker] = {Kind.USER: "user", Kind.SYSTEM: "system"}
_CAMEL = {
    "function_call": "functionCall",
    "function_response": "functionResponse",
    "tool_call": "toolCall",
    "tool_response": "toolResponse",
    "inline_data": "inlineData",
    "file_data": "fileData",
    "file_uri": "fileUri",
    "mime_type": "mimeType",
    "executable_code": "executableCode",
    "code_execution_result": "codeExecutionResult",
    "thought_signature": "thoughtSignature",
}
_FREE = frozenset({"args", "response"})
"""Fields whose keys are the tool's own and stay as they are written."""
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


class GeminiWire:
    """See :class:`compacter.history.wire.Wire`."""

    name: WireName = "gemini"
    alternates = True

    def outline(self, messages: Sequence[Message]) -> Outline:
        """Kinds, sizes and steps."""
        return outline(_paired([_read(message) for message in messages]))

    def size(self, message: Message) -> int:
        """Data size of one content in characters."""
        return _read(message).size

    def speaker(self, message: Message) -> str:
        """Whose turn the content takes; function responses take the user's."""
        return _SPEAKERS.get(_kind(message), "assistant")

    def entries(self, message: Message, index: int) -> Iterator[Entry]:
        """What a summarizer reads of it."""
        return entries(_SPEAKERS.get(_kind(message), "assistant"), _pieces(message), index)

    def plain_text(self, message: Message) -> str | None:
        """The words of a user content that holds nothing but text, else ``None``."""
        return only_text(_pieces(message)) if _kind(message) is Kind.USER else None

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        """A new plain text content; never a blank one, which the API refuses."""
        return {"role": "user" if role == "user" else "model", "parts": [{"text": spoken(text)}]}

    def tool_names(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Which tools' results a message carries."""
        return tool_names(map(_pieces, messages))

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """A copy with edited texts and responses; the content itself if nothing changed."""
        if isinstance(message, (list, tuple)) or _is_content(message):
            parts = _parts(message)
            edited = [_rewrite(part, edit) for part in parts]
            if all(new is old for new, old in zip(edited, parts, strict=True)):
                return message
            return edited if isinstance(message, (list, tuple)) else replaced(message, parts=edited)
        return _rewrite(message, edit)

    def content(self, message: Message) -> Json:
        """The content as JSON-like data in snake_case, a bare string or part as the content it stands for."""
        if _is_content(message):
            data = _snake(unmarked(plain(message)))
            data["parts"] = [{"text": part} if isinstance(part, str) else part for part in data.get("parts") or ()]
            return data
        parts = [{"text": part} if isinstance(part, str) else _snake(unmarked(plain(part))) for part in _parts(message)]
        return {"role": "model" if _kind(message) is Kind.ASSISTANT else "user", "parts": parts}

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[Message], dict[str, Json]]:
        """A ready prompt and ``{"system_instruction": text}``.

        That is a field of ``generate_content``'s ``config``, no argument of its own: merge it into the call's
        config.
        """
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        said = [
            {
                "role": "user" if message["role"] == "user" else "model",
                "parts": [{"text": message["content"]}],
            }
            for message in messages
            if message["role"] != "system"
        ]
        return said, {"system_instruction": system} if system else {}


def _either(item: Message, name: str) -> Json:
    """A field by its snake_case name or by its camelCase one."""
    if type(item) is dict:
        value = item.get(name)
        return item.get(_CAMEL[name]) if value is None else value
    value = field(item, name)
    return field(item, _CAMEL[name]) if value is None else value


def _is_content(message: Message) -> bool:
    if isinstance(message, dict):
        return "parts" in message or "role" in message
    return hasattr(message, "parts")


def _parts(message: Message) -> Sequence[Message]:
    return listed(field(message, "parts") if _is_content(message) else message)


def _kind(message: Message) -> Kind:
    role = field(message, "role") if _is_content(message) else None
    if isinstance(role, str):
        return _KINDS.get(role, Kind.OTHER)
    # As google-genai reads what has no role: calls can only be the model's.
    return Kind.ASSISTANT if any(_either(part, "function_call") for part in _parts(message)) else Kind.USER


def _read(message: Message) -> Reading:
    return reading(_kind(message), _pieces(message))


def _pieces(message: Message) -> Iterator[Piece]:
    for part in _parts(message):
        if type(part) is dict and len(part) == 1 and type(part.get("text")) is str:
            yield words(part["text"])  # The common case, kept short.
            continue
        signature = _either(part, "thought_signature")
        if signature:
            yield reasoning(media.sealed(signature))
        text = part if isinstance(part, str) else field(part, "text")
        if isinstance(text, str):
            yield reasoning(len(text)) if field(part, "thought") else words(text)
        elif made := _either(part, "function_call"):
            yield call(_name(made), field(made, "args") or {}, _key(made))
        elif answer := _either(part, "function_response"):
            yield from _response(answer)
        else:
            yield from _other(part)


def _name(part: Message) -> str:
    return str(field(part, "name") or "")


def _key(part: Message) -> str:
    """What a call or response is paired by: name and, behind a line break that no name holds, its id."""
    return f"{_name(part)}\n{field(part, 'id') or ''}"


def _response(answer: Message) -> Iterator[Piece]:
    name = _name(answer)
    yield result("", _key(answer), name)._replace(size=len(name))
    output = field(answer, "response")
    if output:
        yield result(_lone_text(output)[1], None, name)._replace(size=characters(output))
    for part in listed(field(answer, "parts")):
        for piece in _other(part):
            yield piece._replace(nested=True)


def _other(part: Message) -> Iterator[Piece]:
    inline, file = _either(part, "inline_data"), _either(part, "file_data")
    if inline or file:
        yield _medium(inline or file)
    elif code := _either(part, "executable_code"):
        yield call("code_execution", field(code, "code"), None)
    elif ran := _either(part, "code_execution_result"):
        yield result(str(field(ran, "output") or ""), None, "code_execution")
    elif made := _either(part, "tool_call"):
        yield call(str(_tool(made)), field(made, "args"), None)
    elif answer := _either(part, "tool_response"):
        yield result(field(answer, "response"), None, str(_tool(answer)))
    elif _either(part, "mime_type") or field(part, "uri"):
        yield _medium(part)  # An uploaded file, or a bare blob.
    else:
        data = plain(part)
        if not isinstance(data, dict) or set(data) - {"thought", "thought_signature", "thoughtSignature"}:
            yield words(json_text(data))


def _tool(part: Message) -> Json:
    kind = field(part, "tool_type") or field(part, "toolType")
    return getattr(kind, "value", kind) or ""


def _medium(blob: Message) -> Piece:
    mime, data = str(_either(blob, "mime_type") or "application/octet-stream"), field(blob, "data")
    raw = data if isinstance(data, (str, bytes)) else None
    weight = media.weight(mime, media.decoded_size(raw) if raw else None)
    return Piece("media", media.placeholder(mime, raw), weight)


def _paired(readings: Iterable[Reading]) -> list[Reading]:
    """Readings whose keys agree: a response takes its call's key, which is shown as its id, or its name."""
    paired: list[Reading] = []
    waiting: list[tuple[str, str]] = []
    for kind, size, calls, results in readings:
        answered = tuple(_answer(key, waiting) for key in results)
        if calls:
            waiting = [(name, call_id) for name, _, call_id in (key.partition("\n") for key in calls)]
        paired.append(Reading(kind, size, tuple(_shown(*key.split("\n", 1)) for key in calls), answered))
    return paired


def _answer(key: str, waiting: list[tuple[str, str]]) -> str:
    name, _, call_id = key.partition("\n")
    for place, (called, known) in enumerate(waiting):
        if (call_id == known) if call_id and known else (called == name):
            del waiting[place]
            return _shown(called, known)
    return _shown(name, call_id)


def _shown(name: str, call_id: str) -> str:
    return call_id or name


@lru_cache(maxsize=512)
def _snake_key(key: str) -> str:
    return _HUMP.sub(r"_\1", key).lower()


def _snake(value: Json) -> Json:
    if isinstance(value, dict):
        return {_snake_key(key): inner if key in _FREE else _snake(inner) for key, inner in value.items()}
    return [_snake(inner) for inner in value] if isinstance(value, list) else value


def _rewrite(part: Message, edit: Edit) -> Message:
    text = part if isinstance(part, str) else field(part, "text")
    if isinstance(text, str):
        if field(part, "thought"):
            return part
        new = edit("text", text, "")
        if new == text:
            return part
        return spoken(new) if isinstance(part, str) else replaced(part, text=spoken(new))
    answer = _either(part, "function_response")
    if not answer:
        return part
    # The API wants an object: a lone text keeps its key (it may be "error"), the rest goes under "output".
    key, old = _lone_text(field(answer, "response"))
    new = edit("result", old, _name(answer))
    if new == old:
        return part
    edited = replaced(answer, response={key: new})
    if field(answer, "parts"):
        edited = replaced(edited, parts=[])
    name = "function_response" if field(part, "function_response") is not None else "functionResponse"
    return replaced(part, **{name: edited})


def _lone_text(response: Json) -> tuple[str, str]:
    """A response as key and text: the one text it holds, or all of it as JSON."""
    if isinstance(response, dict) and len(response) == 1:
        ((key, text),) = response.items()
        if isinstance(text, str):
            return str(key), text
    return "output", json_text(response or None)


GEMINI = GeminiWire()
