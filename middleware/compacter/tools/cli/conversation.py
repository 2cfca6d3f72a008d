"""Commands on one conversation of a file: ``compacter plan``, ``compact`` and ``search``.

``plan`` shows what a compaction would replace, as a table by role, and as bars before and after;
``compact`` compacts it and writes it in the format it was read in; ``search`` prints the passages
that match a question.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from compacter import models
from compacter.call.log import remedy
from compacter.compacter import Compacter, CompactionResult
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import Calibration, Job, plan, target_characters
from compacter.compaction.task import CompactionPlan
from compacter.errors import CompactionError, ConfigurationError
from compacter.events import CompactionFailed, Event
from compacter.messages.format import get_format
from compacter.messages.parts import Kind
from compacter.overflow import TokenLimit
from compacter.tools.cli.files import Transcript, check_written, read_transcript, tell_skipped
from compacter.tools.cli.terminal import (
    MistakeError,
    bar,
    check_writable,
    print_json,
    print_table,
    remarks,
    results,
    write_text,
)
from compacter.tools.report import plural
from compacter.tools.visible import one_line


def _read(path: str, number: int | None) -> Transcript:
    """Return the conversation, and name on standard error what was skipped."""
    file = read_transcript(path, number)
    tell_skipped(file)
    return file


# -- plan ------------------------------------------------------------------------------------------

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
    """Return the plan of a call refused by this window, in tokens; if all fits, that of a
    ``compact`` by hand.
    """
    options: dict[str, Any] = {} if ratio is None else {"compact_ratio": ratio}
    compacter = Compacter(memory=None, **options)
    by_hand = compacter.plan(file.messages, wire_format=file.wire_format)
    if window is None or tokens(by_hand.original_data_size) <= window:
        return by_hand
    calibration = Calibration(chars_per_token=CHARS_PER_TOKEN, window=window)
    target = target_characters(
        TokenLimit(limit=window), calibration, overhead=0, output_tokens=None
    )
    conversation = Conversation.of(file.messages, get_format(file.format))
    return plan(
        compacter.options,
        Job(
            conversation=conversation, trigger="token_limit", calibration=calibration, target=target
        ),
    )


def rows(made: CompactionPlan) -> dict[str, Row]:
    """Return the messages by role, in the order in which roles first appear."""
    conversation = made.conversation
    found = defaultdict[str, Row](Row)
    folded = set(made.folded)
    for index, (kind, size) in enumerate(zip(conversation.kinds, conversation.sizes, strict=True)):
        name = "summary" if index == made.prior else _NAMES.get(kind, "other")
        row = found[name]
        row.messages += 1
        row.size += size
        if index in folded:
            row.folded += 1
            row.folded_size += size
    return dict(found)


def show_plan(
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
    file = _read(path, number)
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
        "fits": None if window is None else tokens(made.original_data_size) <= window,
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
        f"{plural(len(made.messages), 'message')}, {whole:,} characters, about "
        f"{tokens(whole):,} tokens "
        f"([dim]{file.kind if file.kind != 'messages' else made.wire_format}[/])"
    )
    if window is not None:
        fits = tokens(whole) <= window
        words = (
            "fits: nothing would be compacted yet. The first compaction would be:"
            if fits
            else "does not fit."
        )
        console.print(f"A window of {window:,} tokens: the conversation {words}")
    if not made.folded:
        console.print(
            "Nothing can be compacted: the system prompt, pins and the last user message always "
            "stay."
        )
        return
    cells = [
        [
            name,
            *(
                f"{number:,}"
                for number in (row.messages, row.size, row.folded_size, row.size - row.folded_size)
            ),
        ]
        for name, row in rows(made).items()
    ]
    print_table(console, ("role", "messages", "characters", "compacted", "kept"), cells)
    console.print(_bars(made, window, max(10, min(60, console.width - 19))))
    last = max(made.folded)
    console.print(
        f"Compacted: {plural(len(made.folded), 'message')} up to number {last + 1} (index "
        f"{last}), {made.head_size:,} "
        f"characters ({made.ratio:.0%} of what may be compacted). Kept verbatim: "
        f"{made.tail_size:,}, and a summary."
    )


def _bars(made: CompactionPlan, window: int | None, width: int) -> str:
    limit = 0 if window is None else int(window * CHARS_PER_TOKEN)
    scale = max(made.original_data_size, limit)
    before: Sequence[tuple[int, str, str]] = [
        (made.head_size, "▒", "magenta"),
        (made.tail_size, "█", "green"),
    ]
    after: Sequence[tuple[int, str, str]] = [(made.tail_size, "█", "green")]
    lines = [
        f"before  {bar(list(before), scale, width)}",
        (f"after   {bar(list(after), scale, width)}  + summary"),
    ]
    if limit:
        edge = round(width * limit / scale)
        lines.append(f"window  {' ' * max(0, edge - 1)}▲")
    return "\n".join([*lines, "        [magenta]▒[/] compacted  [green]█[/] kept"])


# -- compact ---------------------------------------------------------------------------------------


def write_compacted(
    path: str,
    output: str,
    number: int | None,
    *,
    model: str | None,
    budget: int | None,
    force: bool,
    options: dict[str, Any],
    as_json: bool = False,
) -> int:
    """Compact one conversation, write it, and return the exit code: 1 if it exceeds the budget."""
    check_writable(output, force=force)
    file = _read(path, number)
    console = remarks()
    result = _compact_file(console, file, model, budget, options)
    check = partial(check_written, file, result.messages, output)
    write_text(output, file.write(result.messages), force=force, check=check)
    if as_json:
        event = None if result.event is None else result.event.model_dump(mode="json")
        print_json({"changed": result.changed, "fits": result.fits, "event": event})
    else:
        _print_outcome(console, file, result, budget)
    return 0 if result.fits else 1


def _compact_file(
    console: Console,
    file: Transcript,
    model: str | None,
    budget: int | None,
    options: dict[str, Any],
) -> CompactionResult:
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    status = Status("reading the conversation", console=console)
    asked = 0

    def summarizer(messages: list[dict[str, str]], **wanted: Any) -> object:
        nonlocal asked
        asked += 1
        size = sum(len(message["content"]) for message in messages)
        status.update(f"request {asked} for a summary: {model} reads {size:,} characters")
        return models.completion(**{**wanted, "model": model, "messages": messages})

    failed: list[CompactionFailed] = []

    def note(event: Event) -> None:
        if isinstance(event, CompactionFailed):
            failed.append(event)

    # A model's summary is not silently replaced by a fallback. Failures are printed below, so they
    # are not logged.
    given |= {"summarizer": summarizer, "fallback": None} if model else {"summarizer": "extractive"}
    silent = logging.getLogger(__name__)
    silent.disabled = True
    compacter = Compacter(memory=None, on_event=note, logger=silent, **given)
    try:
        with status:
            result = compacter.compact(
                file.messages, model=model, wire_format=file.wire_format, budget=budget
            )
    except CompactionError as error:
        helps = remedy(failed[-1].error, failed[-1].cause, model) if failed else ""
        raise CompactionError(f"{error}\nWhat helps: {helps}" if helps else str(error)) from error
    for event in failed:
        console.print(event.sentence, style="yellow", markup=False)
    return result


def _print_outcome(
    console: Console, file: Transcript, result: CompactionResult, budget: int | None
) -> None:
    event = result.event
    if event is None:
        console.print(
            f"{file.name}: nothing was compacted; the conversation was written unchanged",
            markup=False,
        )
        return
    words = (
        f"{plural(event.messages_before, 'message')} to {event.messages_after:,}, "
        f"{event.original_data_size:,} to "
        f"{event.compacted_data_size:,} characters, "
        f"{event.strategy}{' (fallback)' if event.fallback else ''}, "
        f"{event.duration:.1f} s"
    )
    if event.summarizer_calls:
        cost = "" if event.cost is None else f", {event.cost:.4f} USD"
        words += (
            f"; the model read {event.input_tokens:,} and wrote {event.output_tokens:,} "
            f"tokens{cost}"
        )
    console.print(words, markup=False)
    if not result.fits and budget is not None:
        words = (
            f"{event.compacted_data_size:,} characters exceed the budget of {budget:,}: the "
            f"rest cannot be compacted"
        )
        console.print(words, style="yellow")


# -- search ----------------------------------------------------------------------------------------


def show_passages(path: str, query: str, number: int | None, *, limit: int, as_json: bool) -> int:
    """Print the passages, best first, and return the exit code: 1 if there are none.

    Args:
        path: Name of the file, or ``-`` for standard input.
        query: A question, or words to look for.
        number: Number of the conversation in the file, from 1; ``None`` if it has only one.
        limit: Largest number of passages.
        as_json: Whether to print JSON.
    """
    if not query.strip():
        raise MistakeError("QUERY is empty; say what to look for")
    file = _read(path, number)
    found = Compacter(memory=None).search(file.messages, query, limit, wire_format=file.wire_format)
    if as_json:
        print_json([{"message": passage.index + 1, **asdict(passage)} for passage in found])
        return 0 if found else 1
    console = results()
    for passage in found:
        speaker = one_line(f"{passage.role} {passage.name}".rstrip())
        console.print(
            Text(
                (
                    f"message {passage.index + 1} (index {passage.index}), {speaker}  "
                    f"({passage.score:.2f})"
                ),
                "dim",
            )
        )
        console.print(Text(passage.text))
        console.print()
    if not found:
        console.print("No passage matches.")
    return 0 if found else 1
