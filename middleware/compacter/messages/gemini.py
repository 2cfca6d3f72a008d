"""The generateContent message format of Gemini, as google-genai and the REST API take it.

Source of the rules: the Gemini API reference, "Content", and its guide on function calling. A turn
with function calls comes right after a user's turn or after function responses, and the responses
come right after it, as many as there are calls. Ids are optional, and most programs leave them out:
calls and responses are paired by name, in order. Field names may be snake_case (SDK) or camelCase
(REST); a bare string, part or list of parts is a user's content.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence

from compacter.messages.blocks import (
    ANY_SIGNATURE,
    MEDIUM,
    TEXT,
    Edit,
    EditKind,
    Found,
    Paths,
    Row,
)
from compacter.messages.fields import (
    Json,
    camel,
    dig,
    field,
    first,
    json_text,
    listed,
    members,
    replaced,
    without,
    word,
)
from compacter.messages.format import Message, MessageFormat, foreign
from compacter.messages.parts import Kind

_THOUGHT = Row("reasoning")
_SIGNATURE = Row("reasoning", (), sealed=("",))
_RESPONSE = Row("result", ("parts",), ("name",), ("name",), edits=("response",))
_TABLE = {
    "text": TEXT,
    "function_call": Row("call", ("args",), ("name",), ("name",)),
    "function_response": _RESPONSE,
    "inline_data": MEDIUM,
    "file_data": MEDIUM,
    "executable_code": Row("call", ("code",), tool="code_execution"),
    "code_execution_result": Row("result", ("output",), edits=("output",), tool="code_execution"),
    "tool_call": Row("call", ("args",), ("tool_type",)),
    "tool_response": Row("result", ("response",), ("tool_type",)),
}


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
    assistant = "model"
    # Their keys belong to the tool and are not converted.
    own = frozenset({"args", "response"})
    outdated = "parts"  # Media of a result go with its text, as in the other formats.
    roles = {  # noqa: RUF012 - ClassVar in the base class
        "user": Kind.USER,
        "function": Kind.USER,
        "tool": Kind.USER,
        "model": Kind.ASSISTANT,
        "system": Kind.SYSTEM,
    }
    table = {**_TABLE, **{camel(name): row for name, row in _TABLE.items()}}  # noqa: RUF012

    def _whole(self, message: Message) -> Message:
        """Return a content with a role: a bare string, part or list of parts is the user's, or the
        model's if it has calls, as google-genai reads it.
        """
        if word(message, "role"):
            return message
        parts = field(message, "parts")
        parts = list(listed(message if parts is None else parts))
        has_calls = any(dig(part, "function_call") for part in parts)
        return {"role": "model" if has_calls else "user", "parts": parts}

    def kind(self, message: Message) -> Kind:
        """Return the kind of a content by its role."""
        if not isinstance(message, (str, list, tuple)) and foreign(message):
            return Kind.UNKNOWN
        return self.roles.get(word(self._whole(message), "role"), Kind.OTHER)

    def blocks(self, message: Message) -> list[Message]:
        """Return the parts of a content."""
        return list(listed(field(self._whole(message), "parts")))

    def find(self, block: Message) -> Found:
        """Return the row of a part; a thought is a text with a mark, a file may have no member."""
        if type(block) is dict and block.keys() == _ONLY_TEXT:
            return TEXT, block["text"], "text"  # Fast path of the common form.
        row, value, key = super().find(block)
        if row is TEXT and field(block, "thought"):
            return _THOUGHT, value, key
        if row is MEDIUM or (row is self.other and first(block, ("mime_type", "uri"))):
            return MEDIUM, value, ""
        if row is self.other and _MARKS.issuperset(members(block)):
            return _NOTHING, block, ""
        return row, value, key

    def _pieces(self, message: Message) -> list[Found]:
        sealed = [
            (_SIGNATURE, signature, "")
            for block in self.blocks(message)
            if (signature := dig(block, "thought_signature"))
        ]
        return [*super()._pieces(message), *sealed]

    def _inner(self, row: Row, block: Message, paths: Paths) -> Sequence[Message]:
        inner = super()._inner(row, block, paths)
        return [_lone_text(field(block, "response"))[1], *inner] if row is _RESPONSE else inner

    def _unseal(self, block: Message, kinds: Counter[str]) -> list[Message]:
        """Leave out signatures. A call needs one: Google documents a text that may replace it."""
        row, value, key = self.find(block)
        mark = _SIGNATURES_OF_CALLS.get(key)
        if (dig(block, "thought_signature") or None) == mark:
            return [block]
        kinds["thought_signature"] += 1
        if row is _NOTHING or value == "":
            return []
        if not isinstance(block, Mapping):
            return [replaced(block, thought_signature=mark)]
        rest = without(block, *_SIGNATURES)
        return [{**rest, _SIGNATURES[key == "functionCall"]: mark} if mark else rest]

    def is_signed(self, message: Message) -> bool:
        """Return whether a content has a signature; a call may lack one."""
        signatures = (dig(block, "thought_signature") for block in self.blocks(message))
        return any(signatures) and super().is_signed(message)

    def with_blocks(self, message: Message, blocks: list[Message]) -> Message:
        """Return a copy with these parts. A bare part, or list of parts, stays one if it can:
        google-genai moves contents that are dicts before the bare parts ahead of them.
        """
        if blocks == self.blocks(message):
            return message
        if word(message, "role") or field(message, "parts") is not None:
            return super().with_blocks(message, blocks)
        if isinstance(message, (list, tuple)):
            return blocks
        return blocks[0] if len(blocks) == 1 else {**self._whole(message), "parts": blocks}

    def _edit_text(self, edit: Edit, kind: EditKind, tool: str, output: Message) -> Message:
        if not isinstance(output, Mapping):
            return super()._edit_text(edit, kind, tool, output)
        # The API requires an object: a single text keeps its key (such as "error"), all else
        # becomes "output".
        key, old = _lone_text(output)
        new = edit(kind, old, tool)
        return output if new == old else {key: new}


_ONLY_TEXT = frozenset({"text"})
_SIGNATURES = ("thought_signature", "thoughtSignature")
_SIGNATURES_OF_CALLS = {
    # The SDK encodes bytes as base64, and the text must arrive unchanged.
    "function_call": base64.urlsafe_b64decode(ANY_SIGNATURE),
    "functionCall": ANY_SIGNATURE,
}
# Members that a part may have beside the one that is its type.
_MARKS = frozenset({"thought", *_SIGNATURES})
_NOTHING = Row("nested", ())


def _lone_text(response: Json) -> tuple[str, str]:
    """Return a response as key and text: its only text, or all of it as JSON."""
    if isinstance(response, dict) and len(response) == 1:
        ((key, text),) = response.items()
        if isinstance(text, str):
            return str(key), text
    return "output", json_text(response or None)


GEMINI = GeminiFormat()
