"""The Responses message format of OpenAI: a list of items instead of messages.

Source of the rules: OpenAI's API reference for responses, "input", and its guide on reasoning. Each
call is an item with a ``call_id``, and so is its output, which may come after other items. A
reasoning item must be followed by the items it was made with, and those must keep it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from compacter.messages.blocks import Edit, Found
from compacter.messages.fields import Json, field, listed, replaced, text_field, word
from compacter.messages.foreign import foreign
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import Broken, Kind, Outline, Part, Place, Steps, Voice
from compacter.messages.table import COMPACTION, MEDIUM, Row

_TYPES = {
    "reasoning": Kind.OTHER,
    "item_reference": Kind.OTHER,
    "mcp_list_tools": Kind.OTHER,
    # A compaction by OpenAI replaces all earlier items. A late list of tools is never compacted.
    "compaction": Kind.COMPACTED,
    "compaction_summary": Kind.COMPACTED,
    "context_compaction": Kind.COMPACTED,
    "additional_tools": Kind.SYSTEM,
    "mcp_approval_request": Kind.ASSISTANT,
    "mcp_approval_response": Kind.RESULT,
    "program": Kind.ASSISTANT,
}
_TEXT = Row("text", ("text",), edits=("text",))
_TOOLS = Row("reasoning", ("tools", "id"))
_CALL = Row(
    "call",
    ("arguments", "input", "action", "actions", "operation", "code", "queries"),
    ("name",),
    ("call_id",),
    outputs=("output", "outputs", "results", "tools", "error"),
    tool="_call",
)
# Types of items in a model's response; an unknown type counts as one.
_MADE = (Kind.ASSISTANT, Kind.OTHER, Kind.UNKNOWN)


class ResponsesFormat(MessageFormat):
    """Items instead of messages: a call and its output are items of their own, and so is reasoning.

    A caller's plain string is one user message: wrap it (``say``) before asking here.
    """

    name = "responses"
    output_option = "max_output_tokens"
    system_option = "instructions"
    text_type = "input_text"
    own = frozenset({"arguments"})
    table = {  # noqa: RUF012 - ClassVar in the base class
        **dict.fromkeys(
            ("input_text", "output_text", "text", "summary_text", "reasoning_text"), _TEXT
        ),
        "refusal": Row("text", ("refusal",)),
        **dict.fromkeys(
            ("input_image", "input_file", "input_audio", "computer_screenshot", "image"), MEDIUM
        ),
        "reasoning": Row("reasoning", ("~encrypted_content", "content", "summary")),
        "compaction": COMPACTION,
        "compaction_summary": COMPACTION,
        "context_compaction": COMPACTION,
        "item_reference": _TOOLS,
        "mcp_list_tools": _TOOLS,
        "additional_tools": _TOOLS,
        "mcp_approval_request": Row("call", ("arguments",), ("name",), ("id",)),
        "mcp_approval_response": Row("result", (), call_id=("approval_request_id",)),
        "program": _CALL,
        # Calls run by OpenAI itself with a list of results.
        "code_interpreter_call": replace(_CALL, edits=("outputs.logs",)),
        "file_search_call": replace(_CALL, edits=("results.text",)),
    }
    endings = {  # noqa: RUF012
        # The output of a local shell has the id of its call in ``id``.
        "_output": Row("result", ("output",), ("name",), ("call_id", "id"), edits=("output",)),
        "_call": _CALL,
    }
    telling = ("input_text", "output_text", "input_image", "input_file")

    def kind(self, message: Message) -> Kind:
        """Return the kind of an item by its type, of a message by its role."""
        what = _type(message)
        if what == "message":
            return super().kind(message)
        if type(message) is not dict and foreign(message):
            return Kind.UNKNOWN
        if what in _TYPES:
            return _TYPES[what]
        if what.endswith("_output"):
            return Kind.RESULT
        return Kind.ASSISTANT if what.endswith("_call") else Kind.UNKNOWN

    def whole(self, message: Message) -> Row | None:
        """Return the row of an item that is no message."""
        return None if _type(message) == "message" else self.find(message)[0]

    def outline(self, messages: Sequence[Message]) -> Steps:
        """Return kinds, sizes and steps; a step spans from a call to its output, and from reasoning
        to its items.
        """
        return _group(messages, [self.read(item) for item in messages])

    def speaker(self, message: Message) -> str:
        """Return the speaker of an item; the provider's own compaction has none."""
        return "compaction" if self.kind(message) is Kind.COMPACTED else super().speaker(message)

    def _show(self, found: Found, place: Place) -> Iterator[Part]:
        yield from super()._show(found, place)
        _, item, _ = found
        what = word(item, "type")
        if what == "image_generation_call" and isinstance(field(item, "result"), str):
            yield place.medium(what, item)
        elif what == "mcp_approval_response":
            approved = "approved" if field(item, "approve") else "refused"
            yield Place("tool", place.index).text(approved)

    def say(self, role: Voice, text: str) -> Message:
        """Return a new plain text message."""
        return {"type": "message", **super().say(role, text)}

    def _edit_block(self, block: Message, edit: Edit) -> Message:
        edited = super()._edit_block(block, edit)
        # Annotations refer to positions in the old text.
        has_some = edited is not block and field(block, "annotations")
        return replaced(edited, annotations=[]) if has_some else edited

    def _content(self, data: Json) -> Json:
        """An item without a type is a message."""
        if field(data, "type") == "message":
            del data["type"]
        return data

    def compacted(self, message: Message) -> str | None:
        """Return the summary in a ``compaction`` item. Only litellm's is readable: JSON instead of
        encrypted text.
        """
        if self.kind(message) is not Kind.COMPACTED:
            return None
        try:
            found = json.loads(text_field(message, "encrypted_content"))
        except (ValueError, RecursionError):
            found = None
        for block in listed(found):
            for name in ("content", "summary", "text"):
                if isinstance(field(block, name), str):
                    return text_field(block, name)
        return ""


def _type(item: Message) -> str:
    return text_field(item, "type") or ("message" if word(item, "role") else "")


def _group(items: Sequence[Message], outlines: Sequence[Outline]) -> Steps:
    """Return the steps as the union of spans, in linear time."""
    # Index of the last item that must stay together with this one.
    reach = list(range(len(outlines)))
    waiting, broken = _join_calls(items, outlines, reach)
    _join_reasoning(items, outlines, reach)
    final = _final_run(outlines)
    opened = min((index for index, _ in waiting if index in final), default=None)
    if opened is not None:
        reach[opened] = len(outlines) - 1
    broken.extend(
        Broken(index, called, "unanswered call") for index, called in waiting if index not in final
    )
    broken.sort(key=lambda half: half.index)
    steps = _steps(reach)
    kinds = [read[0] for read in outlines]
    sizes = [read[1] for read in outlines]
    return Steps(kinds, sizes, steps, tuple(broken), None if opened is None else steps[-1])


def _join_calls(
    items: Sequence[Message], outlines: Sequence[Outline], reach: list[int]
) -> tuple[list[tuple[int, str]], list[Broken]]:
    """Pair each output with the latest open call of its id. Returns the unpaired calls and
    outputs.
    """
    orphans: list[Broken] = []
    waiting: dict[str, list[int]] = {}
    referred: int | None = None
    for index, (kind, _, calls, results) in enumerate(outlines):
        if kind is Kind.USER:
            referred = None
        elif _type(items[index]) == "item_reference":
            referred = index
        for answered in results:
            if waiting.get(answered):
                # The latest: ids may be reused, and an earlier call has its output by then.
                reach[waiting[answered].pop()] = index
            elif referred is not None:
                # The call may be the stored item that a reference names.
                reach[referred] = index
            else:
                orphans.append(Broken(index, answered, "orphan result"))
        for called in calls:
            waiting.setdefault(called, []).append(index)
    return [(index, called) for called, places in waiting.items() for index in places], orphans


def _join_reasoning(
    items: Sequence[Message], outlines: Sequence[Outline], reach: list[int]
) -> None:
    """Pair reasoning with the items that the model made right after it.

    A response's items follow each other; only a user, an output or an instruction stands between
    two responses. A reference may stand for reasoning.
    """
    end = len(items)
    # Backwards, so that the end of each response is known when its reasoning is met.
    for index in range(len(items) - 1, -1, -1):
        if outlines[index][0] not in _MADE:
            end = index
        elif _type(items[index]) in ("reasoning", "item_reference"):
            reach[index] = max(reach[index], end - 1)


def _final_run(outlines: Sequence[Outline]) -> range:
    """Return the items of the last response if only outputs follow it, as some calls may have no
    output yet.
    """
    stop = len(outlines)
    while stop and outlines[stop - 1][0] in (Kind.RESULT, Kind.SYSTEM):
        stop -= 1
    start = stop
    while start and outlines[start - 1][0] in _MADE:
        start -= 1
    return range(start, stop)


def _steps(reach: Sequence[int]) -> list[int]:
    """Return the indexes at which steps begin: those that no earlier span reaches."""
    steps: list[int] = []
    furthest = -1
    for index, far in enumerate(reach):
        if index > furthest:
            steps.append(index)
        furthest = max(furthest, far)
    return steps


RESPONSES = ResponsesFormat()
