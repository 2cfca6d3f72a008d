"""Summarize: the head becomes a summary, with a model or without one."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compacter.compaction.task import CompactionTask
from compacter.compaction.truncate import Truncate
from compacter.effects import AskSummarizer, Effect, Reply, Tell
from compacter.errors import CompactionError
from compacter.events import CompactionFailed
from compacter.messages.format import Message
from compacter.messages.parts import Entry
from compacter.summaries import chunks, extractive, gate, ledger, prompts, tag, transcript

if TYPE_CHECKING:
    from compacter.options import Options

_SMALLEST_CHUNK = 400
"""Characters below which a summarizer that still refuses is no summarizer."""
_WINDOW_SHARE = 4
"""A summary may take a quarter of the window at most (a 2,048-token model: 512 tokens)."""
_PROMPT_MARGIN = 0.92
"""Share of the summarizer's window that a prompt may fill: the size in tokens is an estimate."""
_LEAST_ANSWER = 12
"""A prompt that leaves less than this part of the window for the answer is split."""
_A_FEW_RULES = 240
"""Characters that two or three standing instructions take."""
_FEWEST_TOKENS = 48
_BREAK = "\n\n"
_WORTH_FILLING = 200
"""Characters of a budget that are worth filling with passages."""


class NoSummaryError(Exception):
    """No summary could be had; the reason is the message. Stays inside the house."""

    def __init__(self, reason: str, cause: Exception | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for a head."""

    prose: str
    ledger: str = ""


def summary_tokens(maximum: int, window: int | None, head_size: int, chars_per_token: float) -> int:
    """Tokens a summary may have: the option, capped to a fair share of a known window and to what it replaces."""
    tokens = min(maximum, window // _WINDOW_SHARE) if window else maximum
    return max(_FEWEST_TOKENS, min(tokens, int(head_size / chars_per_token)))


def reserve(options: Options, window: int | None, head_size: int, chars_per_token: float) -> int:
    """Characters to leave for a summary message when a cut is chosen."""
    tokens = summary_tokens(options.max_summary_tokens, window, head_size, chars_per_token)
    return int(tokens * chars_per_token) + tag.FRAME


def room(task: CompactionTask) -> int:
    """Characters the text of a summary may have: less than it replaces, and within the target where there is one.

    A budget that what must stay exceeds already cannot be kept; a summary asked for by hand then gets three quarters of
    it, because losing everything helps nobody (at a tenth of real agents' histories: .82 of what was needed later
    survived with a tenth of the head, .88 with this).
    """
    smaller = task.plan.head_size - tag.FRAME - 1
    if task.target is None:
        return smaller
    left = task.target - task.plan.tail_size - tag.FRAME
    if left < 0 and task.plan.trigger == "manual":
        left = task.target * 3 // 4
    return min(smaller, left)


def extracted(task: CompactionTask) -> Summary:
    """A summary without any model. Raises ``NoSummaryError`` when there is no room for one."""
    budget = room(task)
    if task.target is None or task.plan.trigger != "manual":
        # A summary that fills the window would make the very next message too long again.
        tokens = summary_tokens(
            task.options.max_summary_tokens,
            task.window,
            task.plan.head_size,
            task.chars_per_token,
        )
        budget = min(budget, int(tokens * task.chars_per_token), max(task.plan.head_size // 3, 200))
    if budget <= 0:
        raise NoSummaryError("there is no room for a summary")
    prior = task.prior()
    draft = extractive.draft(task.entries(), budget=budget, prior=_whole(prior), extractors=task.options.extractors)
    if not (draft.prose.strip() or draft.ledger):
        raise NoSummaryError("nothing can be read in the head")
    return Summary(draft.prose, draft.ledger)


def _whole(prior: tag.Parsed | None) -> str | None:
    """A prior summary as one text."""
    return tag.join(prior.prose, prior.ledger) if prior else None


def summarized(task: CompactionTask) -> Generator[Effect[Any], Any, Summary]:  # noqa: C901 - one case after another
    """A summary by the summarizer. Raises ``NoSummaryError``."""
    options = task.options
    if task.summary is not None:
        verdict = gate.judge(task.summary, limit_chars=room(task), entries=(), prior=None)
        if not verdict.accepted:
            raise NoSummaryError(f"the summary that was passed is refused: {verdict.reason}")
        return Summary(_redacted(options, task.summary.strip()))
    if options.extractive:
        return extracted(task)
    prior = task.prior()
    entries = task.entries()
    if not entries:
        raise NoSummaryError("nothing can be read in the head")
    available = room(task)
    prose = prior.prose if prior else ""
    budget, tokens = _sizes(task, prose, entries)
    kept = _ledger(task, entries, min(int(tokens * task.chars_per_token), available))
    pending = [tuple(entries)] if budget is None else list(chunks.split(entries, budget))
    if options.native and not _by_hand_elsewhere(task) and budget is None:
        whole = yield from _natively(task, entries, prose, tokens, kept)
        if whole is not None:
            return _filled(task, entries, whole, kept)
    while pending:
        try:
            answer = yield from _ask(task, pending[0], prose, tokens)
            accepted = _judged(task, answer, pending[0], prose, kept)
            if accepted is None:
                answer = yield from _ask(task, pending[0], prose, tokens, words=tokens // 2)
                accepted = _judged(task, answer, pending[0], prose, kept, last=True)
        except Exception as error:
            if isinstance(error, NoSummaryError):
                raise
            smaller = _halved(task, error, pending[0])
            if smaller is None:
                raise NoSummaryError(f"the summarizer raised {type(error).__name__}", error) from error
            rest = [entry for chunk in pending for entry in chunk]
            pending = list(chunks.split(rest, smaller))
            continue
        prose = _redacted(options, accepted or "")
        pending.pop(0)
    return _filled(task, entries, prose, kept)


def _filled(task: CompactionTask, entries: Sequence[Entry], prose: str, kept: str) -> Summary:
    """By hand and with a budget: what the model left of it holds the passages that a model-free summary would choose.

    So the budget buys as much as without a model, however little that one says.
    """
    left = room(task) - len(prose) - len(_BREAK)
    by_hand = task.target is not None and task.plan.trigger == "manual"
    if not (by_hand and task.options.ledger_share and task.summary is None) or left < len(kept) + _WORTH_FILLING:
        return Summary(prose, kept)
    draft = extractive.draft(entries, budget=left, prior=_ledger_only(task), extractors=task.options.extractors)
    return Summary(f"{prose}{_BREAK}{draft.prose}" if draft.prose else prose, draft.ledger)


def _ledger_only(task: CompactionTask) -> str | None:
    """The ledger of a prior summary as a text: its prose is in the new one's already."""
    prior = task.prior()
    return tag.join("", prior.ledger) if prior and prior.ledger else None


def _redacted(options: Options, text: str) -> str:
    return options.redact(text) if options.redact else text


def kept_ledger(task: CompactionTask) -> str:
    """The ledger of the head, for a compaction that has no prose."""
    tokens = summary_tokens(task.options.max_summary_tokens, task.window, task.plan.head_size, task.chars_per_token)
    return _ledger(task, task.entries(), min(int(tokens * task.chars_per_token), room(task)))


def _ledger(task: CompactionTask, entries: Sequence[Entry], allowance: int) -> str:
    prior = task.prior()
    share = task.options.ledger_share
    if not share:
        return ""
    # Room for a rule or two also beside the smallest of summaries.
    budget = min(max(int(allowance * share), min(_A_FEW_RULES, allowance // 2)), task.plan.head_size // 10)
    if budget < _A_FEW_RULES // 4:
        return ""
    # The last request stays verbatim in the list, so the ledger beside it need not hold the one before.
    return ledger.build(
        entries,
        prior=prior.ledger if prior else "",
        budget=budget,
        extractors=task.options.extractors,
        latest=False,
    )


def _sizes(task: CompactionTask, prose: str, entries: Sequence[Entry]) -> tuple[int | None, int]:
    """Characters of transcript that one prompt may hold (``None``: all of it), and tokens that a summary may have.

    One prompt for all of it where that leaves the answer a twelfth of the window; all of it where no window is known.
    """
    whole = sum(len(transcript.line(entry)) + 1 for entry in entries) + 1
    tokens = summary_tokens(task.options.max_summary_tokens, task.window, task.plan.head_size, task.chars_per_token)
    window = task.summarizer_window or task.window
    if window is None:
        return None, tokens
    frame = prompts.overhead(prior=prose or None, template=task.options.summary_prompt, max_tokens=tokens)
    usable = int(window * _PROMPT_MARGIN)
    left = usable - int((whole + frame) / task.chars_per_token)
    if left >= min(tokens, window // _LEAST_ANSWER):
        return None, min(tokens, left)
    most = max(_SMALLEST_CHUNK, int((usable - tokens) * task.chars_per_token) - frame)
    parts = -(-whole // most)
    # Chunks of one size: a tiny last one would cost a request of its own for next to nothing.
    return min(most, whole // parts + most // 8), tokens


def _by_hand_elsewhere(task: CompactionTask) -> bool:
    """Whether there is no call to take the prefix of: by hand litellm is asked, which takes chat messages only."""
    return task.plan.trigger == "manual" and task.plan.wire_format != "openai"


def _natively(
    task: CompactionTask,
    entries: Sequence[Entry],
    prose: str,
    tokens: int,
    kept: str,
) -> Generator[Effect[Any], Any, str | None]:
    """A summary asked for at the end of the conversation itself, so that the provider's prompt cache pays for the head.

    ``None`` when that gives no summary: then it is asked for by a transcript.
    """
    instruction = prompts.instruction(prior=bool(prose), template=task.options.summary_prompt, max_tokens=tokens)
    try:
        answer = yield from _sent(
            task,
            AskSummarizer([{"role": "user", "content": instruction}], tokens, task.messages[: task.plan.cut]),
        )
    except Exception:  # noqa: BLE001 - whatever it was, the transcript is another request
        return None
    return _judged(task, answer, entries, prose, kept)


def _ask(
    task: CompactionTask,
    chunk: Sequence[Entry],
    prose: str,
    tokens: int,
    *,
    words: int | None = None,
) -> Generator[Effect[Any], Any, Reply]:
    """Ask by a transcript. A second try asks for fewer ``words`` (in tokens), as the first may have been cut off."""
    messages = prompts.build(
        chunk,
        prior=prose or None,
        template=task.options.summary_prompt,
        max_tokens=words or tokens,
    )
    return (yield from _sent(task, AskSummarizer(messages, tokens)))


def _sent(task: CompactionTask, request: AskSummarizer) -> Generator[Effect[Any], Any, Reply]:
    task.tally.calls += 1
    answer: Reply = yield from request
    task.tally.input_tokens += answer.input_tokens
    task.tally.output_tokens += answer.output_tokens
    if task.tally.cost is not None:
        task.tally.cost = None if answer.cost is None else task.tally.cost + answer.cost
    return answer


def _judged(
    task: CompactionTask,
    answer: Reply,
    chunk: Sequence[Entry],
    prose: str,
    kept: str,
    *,
    last: bool = False,
) -> str | None:
    """The accepted text, or ``None`` when it is refused and may be asked for once more."""
    before = task.prior()
    verdict = gate.judge(
        answer.text,
        finish=answer.finish,
        refused=answer.refused,
        called_tool=answer.called_tool,
        limit_chars=task.plan.head_size - tag.FRAME - len(kept),
        entries=chunk,
        prior=_whole(tag.Parsed(prose, before.ledger if before else "")) or None,
        ledger=kept,
    )
    if verdict.accepted:
        task.tally.retention = verdict.retention
        task.tally.repaired = verdict.repaired
        return answer.text.strip()
    if last:
        raise NoSummaryError(f"the summary was refused: {verdict.reason}")
    return None


def _halved(task: CompactionTask, error: Exception, chunk: Sequence[Entry]) -> int | None:
    """Half the characters of a chunk that was too long for the summarizer, or ``None`` for any other error."""
    if task.options.detector(error) is None:
        return None
    half = sum(len(transcript.line(entry)) + 1 for entry in chunk) // 2
    return half if half >= _SMALLEST_CHUNK else None


def fall_back(task: CompactionTask) -> list[Message] | None:
    """The result of the first fallback that works, in their order; ``None`` where there is none."""
    for fallback in task.options.fallback:
        if fallback == "truncate":
            # A model that failed is no reason to lose the user's rules: the ledger needs none.
            result = Truncate.noted(task, _fallback_ledger(task))
        else:
            try:
                summary = extracted(task)
            except Exception:  # noqa: BLE001, S112 - no room, or a redaction that raised: the next one then
                continue
            result = task.fold(summary.prose, summary.ledger)
        task.tally.fallback = True
        task.tally.names.append(fallback)
        return result
    return None


def _fallback_ledger(task: CompactionTask) -> str:
    """The ledger; only the prior one where a redaction or an extractor of the user's raises."""
    try:
        return kept_ledger(task)
    except Exception:  # noqa: BLE001 - what cannot be redacted is not kept, and the call goes on
        prior = task.prior()
        return prior.ledger if prior else ""


@dataclass(frozen=True, slots=True)
class Summarize:
    """Replaces the head by a summary of it; a prior summary is folded in, never stacked.

    When no summary can be had, the fallbacks of ``Compacter`` take over, in their order.
    """

    name: str = "summarize"

    def compact(self, task: CompactionTask) -> Generator[Effect[Any], Any, list[Message]]:
        """The list with a summary message. Raises ``CompactionError`` when there is none and no fallback."""
        if not task.plan.folded:
            return list(task.messages)
        try:
            summary = yield from summarized(task)
        except NoSummaryError as failure:
            tally = task.tally
            yield from Tell(
                CompactionFailed(
                    model=task.plan.model,
                    trigger=task.plan.trigger,  # type: ignore[arg-type]
                    reason=str(failure),
                    error=type(failure.cause).__name__ if failure.cause else "",
                    input_tokens=tally.input_tokens,
                    output_tokens=tally.output_tokens,
                    cost=tally.cost,
                )
            )
            return self._without(task, failure)
        return task.fold(summary.prose, summary.ledger)

    @staticmethod
    def _without(task: CompactionTask, failure: NoSummaryError) -> list[Message]:
        if task.summary is not None or not task.options.fallback:
            told = f": {failure.cause}" if failure.cause else ""
            raise CompactionError(f"no summary could be had: {failure}{told}") from failure.cause
        return fall_back(task) or list(task.messages)
