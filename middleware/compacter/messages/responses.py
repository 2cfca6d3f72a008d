"""The Responses message format of OpenAI: a list of items instead of messages.

Source of the rules: OpenAI's API reference for responses, "input", and its guide on reasoning. Each
call is an item with a ``call_id``, and so is its output, which may come after other items. A
reasoning item must be followed by the items it was made with, and those must keep it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compacter.messages.blocks import COMPACTION, MEDIUM, Row
from compacter.messages.fields import field, without, word
from compacter.messages.format import Message, MessageFormat, foreign
from compacter.messages.parts import STORED, Kind, Outline, Steps, pair_calls

# Kinds of the items in the rows of the table.
_KINDS = {
    "call": Kind.ASSISTANT,
    "media": Kind.ASSISTANT,
    "result": Kind.RESULT,
    "reasoning": Kind.OTHER,
}
_TEXT = Row("text", ("text",), edits=("text",))
_TOOLS = Row("reasoning", ("tools", "id"))
_CALL = Row(
    "call",
    ("arguments", "input", "action", "actions", "operation", "code", "queries"),
    ("name",),
    ("call_id",),
    edits=("output", "outputs.logs", "results.text"),
    outputs=("output", "outputs", "results", "tools", "error"),
    tool="_call",
)
# Types of items in a model's response; an unknown type counts as one.
_MADE = (Kind.ASSISTANT, Kind.OTHER, Kind.UNKNOWN)


class ResponsesFormat(MessageFormat):
    """Items instead of messages: a call and its output are items of their own, and so is reasoning.

    A caller's plain string is one user message: wrap it (``say``) first.
    """

    name = "responses"
    output_option = "max_output_tokens"
    system_option = "instructions"
    text_type = "input_text"
    own = frozenset({"arguments"})
    outdated = "annotations"  # They refer to positions in the old text.
    table = {  # noqa: RUF012 - ClassVar in the base class
        **dict.fromkeys(
            ("input_text", "output_text", "text", "summary_text", "reasoning_text"), _TEXT
        ),
        "refusal": Row("text", ("refusal",)),
        **dict.fromkeys(
            ("input_image", "input_file", "input_audio", "computer_screenshot", "image"), MEDIUM
        ),
        "reasoning": Row("reasoning", ("content", "summary"), sealed=("encrypted_content", "id")),
        # Messages that the provider's own compaction has kept.
        "message": Row("nested", ("content",)),
        "compaction": COMPACTION,
        "compaction_summary": COMPACTION,
        "context_compaction": COMPACTION,
        "item_reference": _TOOLS,
        "mcp_list_tools": _TOOLS,
        "additional_tools": _TOOLS,
        "mcp_approval_request": Row("call", ("arguments",), ("name",), ("id",)),
        "mcp_approval_response": Row("result", ("approve",), call_id=("approval_request_id",)),
        "program": _CALL,
        "image_generation_call": MEDIUM,
    }
    endings = {  # noqa: RUF012
        # The output of a local shell has the id of its call in ``id``, that of a search for tools
        # has the found ones in ``tools``.
        "_output": Row(
            "result", ("output", "tools"), ("name",), ("call_id", "id"), edits=("output",)
        ),
        # Calls run by OpenAI itself have their result with them, or a list of results.
        "_call": _CALL,
    }
    telling = ("input_text", "output_text", "input_image", "input_file")

    def kind(self, message: Message) -> Kind:
        """Return the kind of an item by its type, of a message by its role."""
        what = _type(message)
        if what == "message":
            return super().kind(message)
        if foreign(message):
            return Kind.UNKNOWN
        if what == "additional_tools":  # A late list of tools must stay.
            return Kind.SYSTEM
        return _KINDS.get(self.find(message)[0].kind, Kind.UNKNOWN)

    def whole(self, message: Message) -> Row | None:
        """Return the row of ``table`` that describes this item, if the item is not a message: a
        call, an output or reasoning is one block. Return ``None`` for a message, whose content is
        read block by block.
        """
        return None if _type(message) == "message" else self.find(message)[0]

    def read(self, message: Message) -> Outline:
        """Return the outline of an item; a reference may be to a stored call."""
        kind, size, calls, results = super().read(message)
        is_reference = word(message, "type") == "item_reference"
        return kind, size, (STORED,) if is_reference else calls, results

    def outline(self, messages: Sequence[Message]) -> Steps:
        """Return kinds, sizes and steps; a step spans from a call to its output, and from reasoning
        to its items.
        """
        outlines = [self.read(item) for item in messages]
        kinds = bytes(kind for kind, *_ in outlines)
        newest = kinds.rfind(Kind.COMPACTED)
        before = {*kinds[: max(newest, 0)]}
        if Kind.USER in before and before <= {Kind.USER, Kind.SYSTEM}:
            # ``/responses/compact`` returns the user's messages and then its item, which stays in
            # place: the server reads such lists whole
            # (https://platform.openai.com/docs/api-reference/responses/compact). Before a
            # compaction that a response has made itself (``context_management``) stand the model's
            # items too, and the server drops all of them.
            outlines[newest] = (Kind.SYSTEM, *outlines[newest][1:])
        # Reasoning, and a reference to some, reaches to the end of its response, whose items
        # follow each other.
        reach = list(range(len(kinds)))
        end = len(kinds)
        for index in reversed(reach):
            if kinds[index] not in _MADE:
                end = index
            elif kinds[index] == Kind.OTHER:
                reach[index] = end - 1
        # The last response, if only outputs follow it: some calls may have no output yet.
        final = len(kinds)
        for run in ((Kind.RESULT, Kind.SYSTEM), _MADE):
            while final and kinds[final - 1] in run:
                final -= 1
        return pair_calls(outlines, reach, final)

    def say(self, role: str, text: str) -> Message:
        """Return a new plain text message."""
        return {"type": "message", **super().say(role, text)}

    def stand_alone(self, blocks: Sequence[Message]) -> list[Message]:
        """Return the items as they came."""
        return list(blocks)

    def without_sealed(self, messages: Sequence[Message]) -> tuple[list[Message], Counter[str]]:
        """Items that were made with reasoning lose their ids, because OpenAI demands the reasoning
        of an item with an id.
        """
        kinds: Counter[str] = Counter()
        sent = [left for item in messages for left in self._unseal(item, kinds)]
        return (_without_ids(sent) if kinds else sent), kinds

    def is_signed(self, message: Message) -> bool:
        """Return whether an item is encrypted reasoning; what OpenAI has stored has only an id."""
        return _type(message) == "reasoning" and bool(field(message, "encrypted_content"))

    def without_thinking(self, messages: Sequence[Message]) -> list[Message]:
        """Return items without reasoning, if any of it is encrypted, and without the ids that refer
        to it.
        """
        if not any(self.signed(messages)):
            return list(messages)
        return _without_ids([item for item in messages if _type(item) != "reasoning"])


def _without_ids(items: Sequence[Message]) -> list[Message]:
    return [
        without(item, "id") if field(item, "call_id") or word(item, "role") else item
        for item in items
    ]


def _type(item: Message) -> str:
    return word(item, "type") or ("message" if word(item, "role") else "")


RESPONSES = ResponsesFormat()
