"""Commands on one conversation of a file: ``compacter plan``, ``compact`` and ``search``.

``plan`` shows what a compaction would replace, as a table by role, and as bars before and after;
``compact`` compacts it and writes it in the format it was read in (a session as its
messages); ``search`` prints the passages that match a question.
"""

from __future__ import annotations

import logging
import os
from collections import defaultdict
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.status import Status
from rich.text import Text

from compacter import models
from compacter.call.log import remedy
from compacter.compacter import Compacter, CompactionResult
from compacter.compaction.conversation import Conversation
from compacter.compaction.cut import plan
from compacter.compaction.plan import MARGIN, Calibration, CompactionPlan
from compacter.errors import CompactionError, ConfigurationError
from compacter.events import CompactionFailed, Event
from compacter.messages.format import get_format
from compacter.messages.parts import Kind
from compacter.tools.cli.files import READABLE, Transcript, read_transcript, tell_skipped
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
    """Return the conversation, and name on standard error what was skipped.

    Raises:
        MistakeError: Nothing of its messages would be read, as that of a form that is not known.
    """
    file = read_transcript(path, number)
    tell_skipped(file)
    if not Conversation.of(file.messages, get_format(file.format)).size:
        raise MistakeError(
            f"{file.name}: all of {plural(len(file.messages), 'message')} are read as empty; "
            f"supported are {READABLE}"
        )
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
    characters: int = 0
    compacted_messages: int = 0
    compacted_characters: int = 0


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
    target = int(window * MARGIN * CHARS_PER_TOKEN)
    conversation = Conversation.of(file.messages, get_format(file.format))
    return plan(
        compacter.options,
        CompactionPlan(
            conversation=conversation, trigger="token_limit", calibration=calibration, target=target
        ),
    )


def rows(made: CompactionPlan) -> dict[str, Row]:
    """Return the messages by role, in the order in which roles first appear."""
    conversation = made.conversation
    found = defaultdict[str, Row](Row)
    head = set(made.compacted)
    for index, (kind, size) in enumerate(zip(conversation.kinds, conversation.sizes, strict=True)):
        name = "summary" if index == made.prior else _NAMES.get(kind, "other")
        row = found[name]
        row.messages += 1
        row.characters += size
        if index in head:
            row.compacted_messages += 1
            row.compacted_characters += size
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
        "compacted": list(made.compacted),
        "compacted_characters": made.head_size,
        "kept_characters": made.tail_size,
        "roles": {name: asdict(row) for name, row in rows(made).items()},
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
    if not made.compacted:
        console.print(
            "Nothing can be compacted: the system prompt, pins and the last user message always "
            "stay."
        )
        return
    cells = []
    for name, row in rows(made).items():
        kept = row.characters - row.compacted_characters
        numbers = (row.messages, row.characters, row.compacted_characters, kept)
        cells.append([name, *(f"{number:,}" for number in numbers)])
    print_table(console, cells, ("role", "messages", "characters", "compacted", "kept"))
    console.print(_bars(made, window, max(10, min(60, console.width - 19))))
    last = max(made.compacted)
    console.print(
        f"Compacted: {plural(len(made.compacted), 'message')} up to number {last + 1} (index "
        f"{last}), {made.head_size:,} "
        f"characters ({made.ratio:.0%} of what may be compacted). Kept verbatim: "
        f"{made.tail_size:,}, and a summary."
    )


def _bars(made: CompactionPlan, window: int | None, width: int) -> str:
    limit = 0 if window is None else int(window * CHARS_PER_TOKEN)
    scale = max(made.original_data_size, limit)
    kept = (made.tail_size, "█", "green")
    lines = [
        f"before  {bar([(made.head_size, '▒', 'magenta'), kept], scale, width)}",
        f"after   {bar([kept], scale, width)}  + summary",
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
    window: int | None,
    force: bool,
    options: dict[str, Any],
    as_json: bool = False,
) -> int:
    """Compact one conversation, write it, and return the exit code: 1 if it does not fit.

    Args:
        path: Name of the file, or ``-`` for standard input.
        output: Name of the file to write, or ``-`` for standard output.
        number: Number of the conversation in the file, from 1; ``None`` if it has only one.
        model: A litellm model that writes the summary; ``None`` to quote sentences.
        budget: Largest size of the result, in characters.
        window: Context window that the result should fit into, in tokens.
        force: Whether to overwrite an existing file.
        options: Options of ``Compacter``; those that are ``None`` are left out.
        as_json: Whether to print what was done as JSON.
    """
    check_writable(output, force=force)
    file = _read(path, number)
    if file.kind != "messages" and os.path.realpath(path) == os.path.realpath(output):
        raise MistakeError(
            f"{path} is a session of {file.kind}, whose messages would take its place; "
            "name another file with -o"
        )
    if budget is None and window is not None:
        budget = int(window * CHARS_PER_TOKEN)
    console = remarks()
    result = _compact_file(console, file, model, budget, options)
    write_text(output, file.write(result.messages), force=force)
    outcome = _outcome(file, result, model, window)
    if as_json:
        print_json(outcome)
    else:
        _print_outcome(console, file, result, outcome, budget)
    return 0 if outcome["fits"] else 1


def _outcome(
    file: Transcript, result: CompactionResult, model: str | None, window: int | None
) -> dict[str, Any]:
    """Return what was done, with the size of the result as an estimate in tokens, and whether it
    fits into the window, or that of the model.
    """
    size = sum(get_format(file.format).outline(result.messages).sizes)
    if window is None and model is not None:
        window = models.window(model)
    return {
        "changed": result.changed,
        "characters": size,
        "tokens": tokens(size),
        "window": window,
        "fits": result.fits and (window is None or tokens(size) <= window),
        "event": None if result.event is None else result.event.model_dump(mode="json"),
    }


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
    console: Console,
    file: Transcript,
    result: CompactionResult,
    outcome: dict[str, Any],
    budget: int | None,
) -> None:
    event = result.event
    if event is None:
        words = f"{file.name}: nothing was compacted; the conversation was written unchanged"
    else:
        words = (
            f"{plural(event.messages_before, 'message')} to {event.messages_after:,}, "
            f"about {tokens(event.original_data_size):,} to {outcome['tokens']:,} tokens "
            f"({event.original_data_size:,} to {outcome['characters']:,} characters), "
            f"{event.strategy}{' (fallback)' if event.fallback else ''}, {event.duration:.1f} s"
        )
        if event.summarizer_calls:
            cost = "" if event.cost is None else f", {event.cost:.4f} USD"
            words += (
                f"; the model read {event.input_tokens:,} and wrote {event.output_tokens:,} "
                f"tokens{cost}"
            )
    console.print(words, markup=False)
    room = [f"the window of {outcome['window']:,} tokens"] if outcome["window"] else []
    if not room and budget is not None:
        room = [f"the budget of {budget:,} characters"]
    if room and outcome["fits"]:
        console.print(f"fits into {room[0]}", style="green")
    elif room:
        console.print(
            f"about {outcome['tokens']:,} tokens ({outcome['characters']:,} characters) exceed "
            f"{room[0]}: the rest cannot be compacted",
            style="yellow",
        )


# -- search ----------------------------------------------------------------------------------------


def show_passages(path: str, query: str, number: int | None, *, limit: int, as_json: bool) -> int:
    """Print the passages, best first, and return the exit code: 1 if there are none.

    Args:
        path: As for ``write_compacted``, like ``number``.
        query: A question, or words to look for.
        number: See ``path``.
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
