"""Commands on one conversation of a file: ``compacter plan``, ``compact`` and ``search``.

``plan`` shows what ``compact`` with the same options would replace, as a table by role; ``compact``
compacts it and writes it in the format it was read in; ``search`` prints the passages that match a
question.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from compacter.call.log import REMEDIES
from compacter.compacter import Compacter, CompactionResult
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import CompactionPlan
from compacter.errors import CompactionError, ConfigurationError
from compacter.events import CompactionEvent, CompactionFailed, Event, SummaryProgress
from compacter.lines.weight import tokens as script_tokens
from compacter.messages.format import Message
from compacter.messages.parts import Kind
from compacter.runtime import models
from compacter.tools.cli.files import Transcript, read_transcript
from compacter.tools.cli.terminal import (
    STDIN,
    MistakeError,
    check_writable,
    print_json,
    print_table,
    remarks,
    results,
    write_text,
)
from compacter.tools.report import plural

# -- sizes -----------------------------------------------------------------------------------------

# Characters per token of parts without text, such as pictures, whose sizes are estimates.
_OTHER_PER_TOKEN = 4.0


def _tokens(file: Transcript, messages: Sequence[Message]) -> int:
    """Return the size of messages in tokens: an estimate by the scripts of their texts."""
    read = Conversation(tuple(messages), file.format)
    texts = read.texts()
    other = max(0, read.size - sum(map(len, texts)))
    return round(sum(map(script_tokens, texts)) + other / _OTHER_PER_TOKEN)


def _budget(
    file: Transcript, count: int, window: int | None, model: str | None
) -> tuple[int | None, int | None]:
    """Return the window, which may be that of a model, and the largest size of the result in
    characters; ``None`` if the window and the ratio decide.

    A conversation of ``count`` tokens that fits into a given window stays unchanged.
    """
    limit = window or models.window(model)
    is_unchanged = window is not None and count <= window
    return limit, _size(file) if is_unchanged else None


def _size(file: Transcript) -> int:
    return Conversation(tuple(file.messages), file.format).size


def _compacter(
    file: Transcript,
    count: int,
    window: int | None,
    model: str | None,
    options: Mapping[str, Any],
    **more: Any,
) -> Compacter:
    """Return the ``Compacter`` of the commands, without options that are ``None``. It knows the
    window and the size in tokens, as if a call had been refused.
    """
    given = {"summarizer": model or "extractive", **more}
    given |= {name: value for name, value in options.items() if value is not None}
    compacter = Compacter(memory=None, **given)
    calibration = compacter._state.calibration(model)  # noqa: SLF001 - what a call would learn
    calibration.learn(_size(file), count)
    if window is not None:
        calibration.state_window(window)
    return compacter


# -- plan ------------------------------------------------------------------------------------------

_NAMES = {
    Kind.SYSTEM: "system",
    Kind.USER: "user",
    Kind.ASSISTANT: "assistant",
    Kind.RESULT: "tool results",
    Kind.COMPACTED: "provider's compaction",
}


def _roles(made: CompactionPlan) -> dict[str, dict[str, int]]:
    """Return the numbers of the messages of each role, in the order in which roles first appear;
    sizes in characters.
    """
    read = made.conversation
    roles: dict[str, Counter[str]] = defaultdict(Counter)
    head = set(made.compacted)
    for index, (kind, size) in enumerate(zip(read.kinds, read.sizes, strict=True)):
        name = "summary" if index == made.prior else _NAMES.get(kind, "other")
        what = "compacted" if index in head else "kept"
        roles[name].update({"messages": 1, "characters": size, what: size})
    names = ("messages", "characters", "compacted", "kept")
    return {role: {name: numbers[name] for name in names} for role, numbers in roles.items()}


def show_plan(
    *,
    file: str,
    conversation: int | None,
    window: int | None,
    ratio: float | None,
    model: str | None,
    as_json: bool,
) -> int:
    """Print the plan of ``compact`` with these options, and return the exit code 0."""
    read = read_transcript(file, conversation)
    count = _tokens(read, read.messages)
    limit, budget = _budget(read, count, window, model)
    if limit is None and model is not None:
        raise ConfigurationError(f"the window of {model} is unknown; pass --window")
    compacter = _compacter(read, count, limit, model, {"compact_ratio": ratio})
    form = read.format.name
    made = compacter.plan(read.messages, model=model, wire_format=form, budget=budget)
    data: dict[str, Any] = {
        "file": read.name,
        "wire_format": read.format.name,
        "window": limit,
        "fits": None if limit is None else count <= limit,
        "messages": len(read.messages),
        "characters": made.original_data_size,
        "tokens": count,
        "cut": made.cut,
        "ratio": round(made.ratio, 4),
        "compacted": list(made.compacted),
        "compacted_characters": made.head_size,
        "kept_characters": made.tail_size,
        "roles": _roles(made),
    }
    if as_json:
        print_json(data)
    else:
        _show(results(), made, data)
    return 0


def _show(console: Console, made: CompactionPlan, data: Mapping[str, Any]) -> None:
    console.print(
        f"{plural(data['messages'], 'message')}, {data['characters']:,} characters, about "
        f"{data['tokens']:,} tokens ([dim]{data['wire_format']}[/])"
    )
    if data["window"] is not None:
        words = "fits" if data["fits"] else "does not fit"
        console.print(f"A window of {data['window']:,} tokens: the conversation {words}.")
    if not made.compacted:
        stays = ": the system prompt, pins and the last user message always stay"
        console.print(f"Nothing is compacted{'' if data['fits'] else stays}.")
        return
    roles = data["roles"]
    rows = [[name, *(f"{size:,}" for size in sizes.values())] for name, sizes in roles.items()]
    print_table(console, rows, ("role", *next(iter(roles.values()))))
    last = max(made.compacted)
    console.print(
        f"Compacted: {plural(len(made.compacted), 'message')} up to number {last + 1} (index "
        f"{last}), {made.head_size:,} characters ({made.ratio:.0%} of what may be compacted)."
    )


# -- compact ---------------------------------------------------------------------------------------


def write_compacted(
    *,
    file: str,
    output: str,
    conversation: int | None,
    model: str | None,
    extractive: bool,
    budget: int | None,
    window: int | None,
    ratio: float | None,
    rule: list[str] | None,
    force: bool,
    as_json: bool,
) -> int:
    """Compact one conversation, write it, and return the exit code: 1 if it does not fit.

    Args:
        file: Name of the file, or ``-`` for standard input.
        output: Name of the file to write, or ``-`` for standard output.
        conversation: Number of the conversation in the file, from 1; ``None`` if it has only one.
        model: A litellm model that writes the summary; ``None`` to quote sentences.
        extractive: Whether to quote sentences, which excludes ``model``.
        budget: Largest size of the result, in characters.
        window: Context window that the result should fit into, in tokens.
        ratio: Share of the size to compact; ``None`` for that of ``Compacter``.
        rule: Rules that the summary must have.
        force: Whether to overwrite an existing file.
        as_json: Whether to print the result as JSON.

    Raises:
        MistakeError: The options exclude each other, or a file cannot be read or written.
        CompactionError: The model writes no summary.
    """
    if model and extractive:
        raise MistakeError("pass either --model or --extractive, not both")
    if as_json and output == STDIN:
        raise MistakeError("--json prints to standard output, so pass -o FILE for the conversation")
    check_writable(output, force=force)
    read = read_transcript(file, conversation)
    before = _tokens(read, read.messages)
    limit, planned = _budget(read, before, None if budget else window, model)
    console = remarks()
    options = {"compact_ratio": ratio, "rules": rule}
    compacter = partial(_compacter, read, before, limit, model, options)
    given = planned if budget is None else budget
    result = _compact_file(console, read, model, given, compacter)
    write_text(output, read.write(result.messages), force=force)
    size = sum(read.format.outline(result.messages).sizes)
    count = _tokens(read, result.messages)
    outcome: dict[str, Any] = {
        "changed": result.changed,
        "characters": size,
        "tokens_before": before,
        "tokens": count,
        "window": limit,
        "fits": count <= limit if limit and budget is None else result.fits,
        "event": None if result.event is None else result.event.model_dump(mode="json"),
    }
    if as_json:
        print_json(outcome)
    else:
        _print_outcome(console, result.event, outcome, budget)
    return 0 if outcome["fits"] else 1


def _compact_file(
    console: Console,
    file: Transcript,
    model: str | None,
    budget: int | None,
    make: Callable[..., Compacter],
) -> CompactionResult:
    failed: list[CompactionFailed] = []
    words = TextColumn("{task.description}", markup=False)
    bar = Progress(
        words,
        BarColumn(),
        MofNCompleteColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    task = bar.add_task(f"compacting by {model or 'quoted sentences'}", total=None)

    def note(event: Event) -> None:
        if isinstance(event, CompactionFailed):
            failed.append(event)
        if isinstance(event, SummaryProgress):
            bar.update(task, completed=event.piece, total=event.pieces, refresh=True)

    # A model's summary is not silently replaced by a fallback. Failures are printed below, so they
    # are not logged.
    own: dict[str, Any] = {"fallback": None} if model else {}
    silent = logging.getLogger(__name__)
    silent.disabled = True
    compacter = make(on_event=note, logger=silent, **own)
    try:
        with bar:
            result = compacter.compact(
                file.messages, model=model, wire_format=file.format.name, budget=budget
            )
    except CompactionError as error:
        helps = f"\nWhat helps: {REMEDIES}" if failed else ""
        raise CompactionError(f"{error}{helps}") from error
    for event in failed:
        console.print(event.sentence, style="yellow", markup=False)
    return result


def _print_outcome(
    console: Console,
    event: CompactionEvent | None,
    outcome: dict[str, Any],
    budget: int | None,
) -> None:
    if event is None:
        words = "nothing was compacted; the conversation was written unchanged"
    else:
        words = (
            f"about {outcome['tokens_before']:,} to {outcome['tokens']:,} tokens; {event.sentence}"
        )
        if event.summarizer_calls:
            cost = "" if event.cost is None else f", {event.cost:.4f} USD"
            words += (
                f"; the model read {event.input_tokens:,} and wrote {event.output_tokens:,} "
                f"tokens{cost}"
            )
    console.print(words, markup=False)
    if budget is not None:
        room = f"the budget of {budget:,} characters"
    elif outcome["window"]:
        room = f"the window of {outcome['window']:,} tokens"
    else:
        return
    size = f"{outcome['tokens']:,} tokens, {outcome['characters']:,} characters"
    console.print(
        f"fits into {room}" if outcome["fits"] else f"{size} exceed {room}",
        style="green" if outcome["fits"] else "yellow",
    )


# -- search ----------------------------------------------------------------------------------------


def show_passages(
    *, file: str, query: str, conversation: int | None, limit: int, as_json: bool
) -> int:
    """Print the passages, best first, and return the exit code: 1 without any.

    Args:
        file: As for ``write_compacted``, like ``conversation``.
        query: A question, or words to look for.
        conversation: See ``file``.
        limit: Largest number of passages.
        as_json: Whether to print JSON.

    Raises:
        MistakeError: The query is empty, or the file cannot be read.
    """
    if not query.strip():
        raise MistakeError("QUERY is empty; say what to look for")
    read = read_transcript(file, conversation)
    found = Compacter(memory=None).search(read.messages, query, limit, wire_format=read.format.name)
    if as_json:
        print_json([{"message": passage.index + 1, **asdict(passage)} for passage in found])
    elif not found:
        results().print("No passage matches.")
    else:
        for passage in found:
            speaker = " ".join(f"{passage.role} {passage.name}".split())
            place = f"message {passage.index + 1} (index {passage.index}), {speaker}"
            results().print(
                Text(f"{place}  ({passage.score:.2f})", "dim"), Text(f"{passage.text}\n"), sep="\n"
            )
    return 0 if found else 1
