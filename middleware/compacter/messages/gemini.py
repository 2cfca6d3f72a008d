"""The generateContent message format of Gemini, as google-genai and the REST API take it.

Source of the rules: the Gemini API reference, "Content", and its guide on function calling. A turn
with function calls comes right after a user's turn or after function responses, and the responses
come right after it, as many as there are calls. Ids are optional: calls and responses are paired by
id where both have one, else by name, in order. Field names may be snake_case (SDK) or camelCase
(REST); a bare string, part or list of parts is a user's content.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial

from compacter.messages.fields import (
    Json,
    camel,
    characters,
    either,
    faithful,
    field,
    json_text,
    listed,
    plain,
    replaced,
    text_field,
    word,
)
from compacter.messages.foreign import foreign
from compacter.messages.format import Edit, Message, MessageFormat
from compacter.messages.parts import Kind, Outline, Part, Speaker, Voice, spoken, weigh_sealed

# Fields whose keys belong to the tool and are not converted.
_FREE = frozenset({"args", "response"})
_HUMP = re.compile(r"(?<=[a-z0-9])([A-Z])")


class GeminiFormat(MessageFormat):
    """Contents of parts: calls and responses are parts; a bare string or part is a user's
    content.
    """

    name = "gemini"
    output_option = ""
    system_option = "system_instruction"
    """A field of the argument ``config`` of ``generate_content``, to be merged into it."""
    body = "parts"
    text_type = ""
    alternates = True
    roles = {  # noqa: RUF012 - ClassVar in the base class
        "user": Kind.USER,
        "function": Kind.USER,
        "tool": Kind.USER,
        "model": Kind.ASSISTANT,
        "system": Kind.SYSTEM,
    }

    def kind(self, message: Message) -> Kind:
        """Return the kind of a content by its role; without a role it is the user's, or the model's
        if it has calls.
        """
        if type(message) not in _OWN_TYPES and foreign(message):
            return Kind.UNKNOWN
        role = word(message, "role") if _is_content(message) else None
        if isinstance(role, str):
            return self.roles.get(role, Kind.OTHER)
        # google-genai does the same without a role: only the model makes calls.
        return (
            Kind.ASSISTANT
            if any(either(part, "function_call") for part in _parts(message))
            else Kind.USER
        )

    def speaker(self, message: Message) -> str:
        """Return the role for alternation; function responses count as the user's."""
        return {Kind.USER: "user", Kind.SYSTEM: "system"}.get(self.kind(message), "assistant")

    def _reader(self) -> Callable[[Message], Outline]:
        """Return a reader that also pairs calls and responses without ids, by name."""
        waiting = _Waiting(())

        def read(message: Message) -> Outline:
            nonlocal waiting
            kind, size, calls, results = self.read(message)
            if not (calls or results):
                return kind, size, calls, results
            answered = tuple(
                _show_call(*(waiting.take(*key) or key)) for key in map(_split, results)
            )
            made = list(map(_split, calls))
            # New calls end the wait for older ones: a response belongs to the batch before it.
            if made:
                waiting = _Waiting(made)
            return kind, size, tuple(_show_call(*key) for key in made), answered

        return read

    def _parts(self, message: Message, role: Speaker, index: int) -> Iterator[Part]:
        for part in _parts(message):
            if type(part) is dict and len(part) == 1 and type(part.get("text")) is str:
                yield Part.of_text(role, part["text"], index)  # Fast path of the common form.
                continue
            signature = either(part, "thought_signature")
            if signature:
                yield Part.of_reasoning(role, weigh_sealed(signature), index)
            text = part if isinstance(part, str) else field(part, "text")
            if isinstance(text, str):
                thought = bool(field(part, "thought"))
                yield (
                    Part.of_reasoning(role, len(text), index)
                    if thought
                    else Part.of_text(role, text, index)
                )
            elif made := either(part, "function_call"):
                yield Part.of_call(
                    text_field(made, "name"), field(made, "args") or {}, _key(made), index
                )
            elif answer := either(part, "function_response"):
                yield from _response(answer, index)
            else:
                yield from _other(part, role, index)

    def say(self, role: Voice, text: str) -> Message:
        """Return a new plain text content, which is never blank, as the API refuses that."""
        return {"role": "user" if role == "user" else "model", "parts": [{"text": spoken(text)}]}

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """Return a copy with edited texts and responses; the content itself if nothing changed."""
        if not isinstance(message, (list, tuple)) and not _is_content(message):
            return self._rewrite(message, edit)
        edited = self._edit_each(_parts(message), partial(self._rewrite, edit=edit))
        if edited is None:
            return message
        return edited if isinstance(message, (list, tuple)) else replaced(message, parts=edited)

    def blocks(self, message: Message) -> list[Message]:
        """Return the parts of a content; a bare string, part or list of parts is a user's content
        too.
        """
        return list(_parts(message))

    def _rewrite(self, block: Message, edit: Edit) -> Message:
        text = block if isinstance(block, str) else field(block, "text")
        if isinstance(text, str):
            return block if field(block, "thought") else self._reword(block, text, edit)
        if ran := either(block, "code_execution_result"):
            edited = self._with_result(ran, "output", edit, "code_execution")
            return block if edited is ran else _with(block, "code_execution_result", edited)
        answer = either(block, "function_response")
        if not answer:
            return block
        # The API requires an object: a single text keeps its key (such as "error"), all else
        # becomes "output".
        key, old = _lone_text(field(answer, "response"))
        new = edit("result", old, text_field(answer, "name"))
        if new == old:
            return block
        edited = replaced(answer, response={key: new})
        # Media of a result go when its text is replaced, as in the other formats.
        if field(answer, "parts"):
            edited = replaced(edited, parts=[])
        return _with(block, "function_response", edited)

    def _content(self, message: Message) -> Json:
        """Return the content as data in snake_case; a bare string or part becomes a whole
        content.
        """
        if _is_content(message):
            data = snake(faithful(message, _FREE))
            parts = [
                {"text": part} if isinstance(part, str) else part
                for part in listed(data.get("parts"))
            ]
            return dict(sorted({**data, "parts": parts}.items()))
        parts = [
            {"text": data} if isinstance(data := snake(faithful(part, _FREE)), str) else data
            for part in _parts(message)
        ]
        return {"parts": parts, "role": "model" if self.kind(message) is Kind.ASSISTANT else "user"}


_OWN_TYPES = frozenset({dict, str, list, tuple})


def _is_content(message: Message) -> bool:
    if isinstance(message, dict):
        return "parts" in message or "role" in message
    return hasattr(message, "parts")


def _parts(message: Message) -> Sequence[Message]:
    return listed(field(message, "parts") if _is_content(message) else message)


def _key(part: Message) -> str:
    """Return the pairing key of a call or response: its name and id, separated by a line break."""
    # No name or id has a line break, so the two can be told apart again.
    return f"{text_field(part, 'name')}\n{text_field(part, 'id')}"


def _response(answer: Message, index: int) -> Iterator[Part]:
    name = text_field(answer, "name")
    yield Part("tool", "result", "", name, index, len(name), _key(answer))
    output = field(answer, "response")
    if output:
        yield Part("tool", "result", _lone_text(output)[1], name, index, characters(output))
    for part in listed(field(answer, "parts")):
        yield from _other(part, "tool", index)


def _other(part: Message, role: Speaker, index: int) -> Iterator[Part]:
    inline = either(part, "inline_data")
    file = either(part, "file_data")
    if inline or file:
        yield Part.of_medium(role, "", inline or file, index)
    elif code := either(part, "executable_code"):
        yield Part.of_call("code_execution", field(code, "code"), None, index)
    elif ran := either(part, "code_execution_result"):
        yield Part.of_result(text_field(ran, "output"), None, index, "code_execution")
    elif made := either(part, "tool_call"):
        yield Part.of_call(str(_tool(made)), field(made, "args"), None, index)
    elif answer := either(part, "tool_response"):
        yield Part.of_result(field(answer, "response"), None, index, str(_tool(answer)))
    elif either(part, "mime_type") or field(part, "uri"):
        yield Part.of_medium(role, "", part, index)  # An uploaded file or a bare blob.
    else:
        data = plain(part)
        if not isinstance(data, dict) or set(data) - {
            "thought",
            "thought_signature",
            "thoughtSignature",
        }:
            yield Part.of_text(role, json_text(data), index)


def _with(part: Message, name: str, value: Message) -> Message:
    """Return a copy of a part with another member, under the name that it has there."""
    return replaced(part, **{name if field(part, name) is not None else camel(name): value})


def _tool(part: Message) -> Json:
    kind = either(part, "tool_type")
    return getattr(kind, "value", kind) or ""


class _Waiting:
    """Calls without a response yet, found in constant time."""

    def __init__(self, calls: Sequence[tuple[str, str]]) -> None:
        self._calls = calls
        self._taken: set[int] = set()
        self._places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        # Reversed, so that the first of each kind is popped from the end.
        for place in range(len(calls) - 1, -1, -1):
            name, call_id = calls[place]
            self._places["name", name].append(place)
            self._places["id" if call_id else "without id", call_id or name].append(place)

    def take(self, name: str, call_id: str) -> tuple[str, str] | None:
        """Remove and return the first call for this response, or ``None``."""
        kinds = (("id", call_id), ("without id", name)) if call_id else (("name", name),)
        found: list[int] = []
        for places in (self._places[kind] for kind in kinds):
            while places and places[-1] in self._taken:
                places.pop()
            found.extend(places[-1:])
        if not found:
            return None
        # One by id and one without: the earlier call was made first.
        self._taken.add(min(found))
        return self._calls[min(found)]


def _split(key: str) -> tuple[str, str]:
    name, _, call_id = key.partition("\n")
    return name, call_id


def _show_call(name: str, call_id: str) -> str:
    return call_id or name


@lru_cache(maxsize=512)
def snake_key(key: str) -> str:
    """Return a name in camel case in snake case."""
    return _HUMP.sub(r"_\1", key).lower()


def snake(value: Json) -> Json:
    """Return data with the names in it in snake case; what is a tool's own stays as it is."""
    if isinstance(value, dict):
        return dict(
            sorted(
                (snake_key(key), inner if key in _FREE else snake(inner))
                for key, inner in value.items()
            )
        )
    return [snake(inner) for inner in value] if isinstance(value, list) else value


def _lone_text(response: Json) -> tuple[str, str]:
    """Return a response as key and text: its only text, or all of it as JSON."""
    if isinstance(response, dict) and len(response) == 1:
        ((key, text),) = response.items()
        if isinstance(text, str):
            return str(key), text
    return "output", json_text(response or None)


GEMINI = GeminiFormat()
