"""The Responses message format of OpenAI: a list of items instead of messages.

Source of the rules: OpenAI's API reference for responses, "input", and its guide on reasoning. Each
call is an item with a ``call_id``, and so is its output, which may come after other items. A
reasoning item must be followed by the items it was made with, and those must keep it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from compacter.messages.fields import (
    Json,
    characters,
    faithful,
    field,
    listed,
    replaced,
    text_field,
    word,
)
from compacter.messages.foreign import foreign
from compacter.messages.format import Edit, Message, MessageFormat
from compacter.messages.parts import (
    Broken,
    Kind,
    Outline,
    Part,
    Speaker,
    Steps,
    Voice,
    as_results,
    weigh_sealed,
)

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
_COMPACTED = ("compaction", "compaction_summary", "context_compaction")
_TEXTS = frozenset({"input_text", "output_text", "text", "summary_text", "reasoning_text"})
_MEDIA = frozenset({"input_image", "input_file", "input_audio", "computer_screenshot", "image"})
_ARGUMENTS = ("arguments", "input", "action", "actions", "operation", "code", "queries")
# Calls run by OpenAI itself with a list of results, and the field of a result with its text.
_RESULTS = {"code_interpreter_call": ("outputs", "logs"), "file_search_call": ("results", "text")}
_OUTPUTS = ("output", "outputs", "results", "tools", "error")
# Types of items in a model's response; an unknown type counts as one.
_MADE = (Kind.ASSISTANT, Kind.OTHER, Kind.UNKNOWN)
# Keys of data made by a tool's caller, of which nothing is left out in a digest.
_OWN = frozenset({"arguments"})


class ResponsesFormat(MessageFormat):
    """Items instead of messages: a call and its output are items of their own, and so is reasoning.

    A caller's plain string is one user message: wrap it (``say``) before asking here.
    """

    name = "responses"
    output_option = "max_output_tokens"
    system_option = "instructions"
    text_type = "input_text"
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

    def outline(self, messages: Sequence[Message]) -> Steps:
        """Return kinds, sizes and steps; a step spans from a call to its output, and from reasoning
        to its items.
        """
        return _group(messages, [self.read(item) for item in messages])

    def speaker(self, message: Message) -> str:
        """Return the speaker of an item; the provider's own compaction has none."""
        return "compaction" if self.kind(message) is Kind.COMPACTED else super().speaker(message)

    def _parts(self, message: Message, role: Speaker, index: int) -> Iterator[Part]:
        what = _type(message)
        if what == "message":
            for part in listed(field(message, "content")):
                yield _part(part, role, index)
        elif what in ("reasoning", *_COMPACTED):
            texts = (*listed(field(message, "summary")), *listed(field(message, "content")))
            size = sum(map(len, map(_part_text, texts))) + weigh_sealed(
                field(message, "encrypted_content")
            )
            yield Part.of_reasoning(role, size, index)
        elif what == "mcp_approval_request":
            name = text_field(message, "name")
            arguments = field(message, "arguments")
            yield Part.of_call(name, arguments, text_field(message, "id"), index)
        elif what == "mcp_approval_response":
            approved = "approved" if field(message, "approve") else "refused"
            yield Part.of_result(approved, text_field(message, "approval_request_id"), index)
        elif what.endswith("_output"):
            # The id has a part of its own, as the output may be empty or only an image.
            # The output of a local shell has the id of its call in ``id``.
            yield Part.of_result(
                "", text_field(message, "call_id") or text_field(message, "id"), index
            )
            yield from _output(field(message, "output"), index)
        elif what.endswith("_call") or what == "program":
            yield from _call(message, what, index)
        elif what not in ("item_reference", "mcp_list_tools", "additional_tools"):
            yield Part.of_data(role, message, index)
        else:
            size = characters(field(message, "tools")) + len(text_field(message, "id"))
            yield Part.of_reasoning(role, size, index)

    def say(self, role: Voice, text: str) -> Message:
        """Return a new plain text message."""
        return {"type": "message", "role": role, "content": text}

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """Return a copy with edited texts and outputs; the item itself if nothing changed."""
        if _type(message) == "message":
            return super().rewrite(message, edit)
        what = _type(message)
        if what in _RESULTS:
            name, text = _RESULTS[what]
            tool = what.removesuffix("_call")
            edited = self._edit_each(
                listed(field(message, name)),
                lambda result: self._with_result(result, text, edit, tool),
            )
            return message if edited is None else replaced(message, **{name: edited})
        output = field(message, "output")
        if not isinstance(output, (str, list, tuple)) or what == "shell_call_output":
            return message
        return self._with_result(message, "output", edit, text_field(message, "name"))

    def _text_of(self, part: Message) -> str:
        return _part_text(part)

    def _rewrite(self, block: Message, edit: Edit) -> Message:
        if not isinstance(block, str) and word(block, "type") not in _TEXTS:
            return block
        edited = self._reword(block, _part_text(block), edit)
        # Annotations refer to positions in the old text.
        has_some = edited is not block and field(block, "annotations")
        return replaced(edited, annotations=[]) if has_some else edited

    def _content(self, message: Message) -> Json:
        """Return the item as data without cache marks; an item without a type is a message."""
        data = faithful(message, _OWN)
        if field(data, "type") == "message":
            del data["type"]
        return data

    def compacted(self, message: Message) -> str | None:
        """Return the summary in a ``compaction`` item. Only litellm's is readable: JSON instead of
        encrypted text.
        """
        if _type(message) not in _COMPACTED:
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


def _call(item: Message, what: str, index: int) -> Iterator[Part]:
    """Yield the parts of a call; one run by OpenAI itself has no ``call_id`` and contains its
    result.
    """
    found = (field(item, name) for name in _ARGUMENTS)
    arguments = next((value for value in found if value is not None), None)
    call_id = text_field(item, "call_id") or None
    yield Part.of_call(
        text_field(item, "name") or what.removesuffix("_call"), arguments, call_id, index
    )
    if call_id:
        return
    picture = field(item, "result")
    if isinstance(picture, str) and what == "image_generation_call":
        made = {"format": field(item, "output_format") or "png", "data": picture}
        yield Part.of_medium("assistant", "image", made, index)
    for output in _OUTPUTS:
        yield from _output(field(item, output), index)


def _output(output: Json, index: int) -> Iterator[Part]:
    return as_results(_part(inner, "tool", index) for inner in listed(output))


def _part(part: Message, role: Speaker, index: int) -> Part:
    if isinstance(part, str) or word(part, "type") in _TEXTS or word(part, "type") == "refusal":
        return Part.of_text(role, _part_text(part), index)
    if word(part, "type") in _MEDIA:
        return Part.of_medium(role, text_field(part, "type"), part, index)
    return Part.of_data(role, part, index)


def _part_text(part: Message) -> str:
    if isinstance(part, str):
        return part
    return text_field(part, "refusal" if word(part, "type") == "refusal" else "text")


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
