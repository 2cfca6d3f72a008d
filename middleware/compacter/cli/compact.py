"""``compacter compact``: fold a conversation, and write it in the format it was read in."""

from __future__ import annotations

import logging
from typing import Any

from rich.console import Console
from rich.status import Status

from compacter.call.log import remedy
from compacter.cli.files import Transcript, read_transcript
from compacter.cli.terminal import check_writable, remarks, write_text
from compacter.compacter import Compacter, CompactionResult
from compacter.errors import CompactionError
from compacter.events import CompactionFailed, Event
from compacter.report import plural


def run(
    path: str,
    output: str,
    number: int | None,
    *,
    model: str | None,
    budget: int | None,
    force: bool,
    options: dict[str, Any],
) -> int:
    """Compact one conversation, write it, and return the exit code: 1 if it exceeds the budget."""
    check_writable(output, force=force)
    file = read_transcript(path, number)
    console = remarks()
    result = _compacted(console, file, model, budget, options)
    write_text(output, file.write(result.messages), force=force)
    _print_outcome(console, file, result, budget)
    return 0 if result.fits else 1


def _compacted(
    console: Console, file: Transcript, model: str | None, budget: int | None, options: dict[str, Any]
) -> CompactionResult:
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    status = Status("reading the conversation", console=console)
    asked = 0

    def summarizer(messages: list[dict[str, str]], **wanted: Any) -> object:
        nonlocal asked
        from compacter import models

        asked += 1
        size = sum(len(message["content"]) for message in messages)
        status.update(f"request {asked} for a summary: {model} reads {size:,} characters")
        return models.completion(**{**wanted, "model": model, "messages": messages})

    failed: list[CompactionFailed] = []

    def note(event: Event) -> None:
        if isinstance(event, CompactionFailed):
            failed.append(event)

    # A model's summary is not silently replaced by a fallback. Failures are printed below, so they are not logged.
    given |= {"summarizer": summarizer, "fallback": None} if model else {"summarizer": "extractive"}
    silent = logging.getLogger(__name__)
    silent.disabled = True
    compacter = Compacter(memory=None, on_event=note, logger=silent, **given)
    try:
        with status:
            result = compacter.compact(file.messages, model=model, wire_format=file.wire_format, budget=budget)
    except CompactionError as error:
        helps = remedy(failed[-1].error, failed[-1].cause, model) if failed else ""
        raise CompactionError(f"{error}\nWhat helps: {helps}" if helps else str(error)) from error
    for event in failed:
        console.print(event.sentence, style="yellow", markup=False)
    return result


def _print_outcome(console: Console, file: Transcript, result: CompactionResult, budget: int | None) -> None:
    event = result.event
    if event is None:
        console.print(f"{file.name}: nothing was folded; the conversation was written unchanged", markup=False)
        return
    words = (
        f"{plural(event.messages_before, 'message')} to {event.messages_after:,}, {event.original_data_size:,} to "
        f"{event.compacted_data_size:,} characters, {event.strategy}{' (fallback)' if event.fallback else ''}, "
        f"{event.duration:.1f} s"
    )
    if event.summarizer_calls:
        cost = "" if event.cost is None else f", {event.cost:.4f} USD"
        words += f"; the model read {event.input_tokens:,} and wrote {event.output_tokens:,} tokens{cost}"
    console.print(words, markup=False)
    if not result.fits and budget is not None:
        words = f"{event.compacted_data_size:,} characters exceed the budget of {budget:,}: the rest cannot be folded"
        console.print(words, style="yellow")
