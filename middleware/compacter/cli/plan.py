"""``compacter plan``: show what a compaction would fold, as a table by role, and as bars before and after."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from compacter import models
from compacter.cli.files import Transcript, read_transcript
from compacter.cli.terminal import bar, print_json, print_table, results
from compacter.compacter import Compacter
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import Calibration, Job, plan, target_characters
from compacter.compaction.task import CompactionPlan
from compacter.errors import ConfigurationError
from compacter.messages.format import get_format
from compacter.messages.parts import Kind
from compacter.overflow import TokenLimit
from compacter.report import plural

CHARS_PER_TOKEN = 4.0
"""Assumed ratio: a file has no usage to calibrate with, so sizes in tokens are estimates."""

_NAMES = {
    Kind.SYSTEM: "system",
    Kind.USER: "user",
    Kind.ASSISTANT: "assistant",
    Kind.RESULT: "tool results",
    Kind.COMPACTED: "provider's compaction",
}


@dataclass(slots=True)
class Row:
    """Messages of one role. Sizes are in characters."""

    messages: int = 0
    size: int = 0
    folded: int = 0
    folded_size: int = 0


def tokens(characters: int) -> int:
    """Return an estimate of the tokens in ``characters``."""
    return round(characters / CHARS_PER_TOKEN)


def planned(file: Transcript, *, window: int | None, ratio: float | None) -> CompactionPlan:
    """Return the plan of a call refused by this window, in tokens; if all fits, that of a ``compact`` by hand."""
    options: dict[str, Any] = {} if ratio is None else {"compact_ratio": ratio}
    compacter = Compacter(memory=None, **options)
    by_hand = compacter.plan(file.messages, wire_format=file.wire_format)
    if window is None or tokens(by_hand.original_data_size) <= window:
        return by_hand
    calibration = Calibration(chars_per_token=CHARS_PER_TOKEN, window=window)
    target = target_characters(TokenLimit(limit=window), calibration, overhead=0, output_tokens=None)
    conversation = Conversation.of(file.messages, get_format(file.format))
    return plan(
        compacter.options,
        Job(conversation=conversation, trigger="token_limit", calibration=calibration, target=target),
    )


def rows(made: CompactionPlan) -> dict[str, Row]:
    """Return the messages by role, in the order in which roles first appear."""
    conversation, found, folded = made.conversation, defaultdict[str, Row](Row), set(made.folded)
    if conversation is None:
        return {}
    for index, (kind, size) in enumerate(zip(conversation.kinds, conversation.sizes, strict=True)):
        name = "summary" if index == made.prior else _NAMES.get(kind, "other")
        row = found[name]
        row.messages += 1
        row.size += size
        if index in folded:
            row.folded += 1
            row.folded_size += size
    return dict(found)


def run(
    path: str,
    number: int | None,
    *,
    window: int | None,
    ratio: float | None,
    model: str | None,
    as_json: bool,
) -> int:
    """Print the plan, and return the exit code 0."""
    if model is not None and window is None:
        window = models.window(model)
        if window is None:
            raise ConfigurationError(f"the window of {model} is unknown; pass --window")
    file = read_transcript(path, number)
    made = planned(file, window=window, ratio=ratio)
    if as_json:
        print_json(_as_data(file, made, window))
    else:
        _show(results(), file, made, window)
    return 0


def _as_data(file: Transcript, made: CompactionPlan, window: int | None) -> dict[str, object]:
    return {
        "file": file.name,
        "kind": file.kind,
        "wire_format": made.wire_format,
        "window": window,
        "fits": window is None or tokens(made.original_data_size) <= window,
        "messages": len(made.messages),
        "characters": made.original_data_size,
        "tokens": tokens(made.original_data_size),
        "cut": made.cut,
        "ratio": round(made.ratio, 4),
        "folded": list(made.folded),
        "folded_characters": made.head_size,
        "kept_characters": made.tail_size,
        "roles": {
            name: {
                "messages": row.messages,
                "characters": row.size,
                "folded_messages": row.folded,
                "folded_characters": row.folded_size,
            }
            for name, row in rows(made).items()
        },
    }


def _show(console: Console, file: Transcript, made: CompactionPlan, window: int | None) -> None:
    whole = made.original_data_size
    console.print(
        f"{plural(len(made.messages), 'message')}, {whole:,} characters, about {tokens(whole):,} tokens "
        f"([dim]{file.kind if file.kind != 'messages' else made.wire_format}[/])"
    )
    if window is not None:
        fits = tokens(whole) <= window
        words = "fits: nothing would be folded yet. The first fold would be:" if fits else "does not fit."
        console.print(f"A window of {window:,} tokens: the conversation {words}")
    if not made.folded:
        console.print("Nothing can be folded: the system prompt, pins and the last user message always stay.")
        return
    cells = [
        [name, *(f"{number:,}" for number in (row.messages, row.size, row.folded_size, row.size - row.folded_size))]
        for name, row in rows(made).items()
    ]
    print_table(console, ("role", "messages", "characters", "folded", "kept"), cells)
    console.print(_bars(made, window, max(10, min(60, console.width - 19))))
    last = max(made.folded)
    console.print(
        f"Folded: {plural(len(made.folded), 'message')} up to number {last + 1} (index {last}), {made.head_size:,} "
        f"characters ({made.ratio:.0%} of what may be folded). Kept verbatim: {made.tail_size:,}, and a summary."
    )


def _bars(made: CompactionPlan, window: int | None, width: int) -> str:
    limit = 0 if window is None else int(window * CHARS_PER_TOKEN)
    scale = max(made.original_data_size, limit)
    before: Sequence[tuple[int, str, str]] = [(made.head_size, "▒", "magenta"), (made.tail_size, "█", "green")]
    after: Sequence[tuple[int, str, str]] = [(made.tail_size, "█", "green")]
    lines = [f"before  {bar(list(before), scale, width)}", f"after   {bar(list(after), scale, width)}  + summary"]
    if limit:
        edge = round(width * limit / scale)
        lines.append(f"window  {' ' * max(0, edge - 1)}▲")
    return "\n".join([*lines, "        [magenta]▒[/] folded  [green]█[/] kept"])
