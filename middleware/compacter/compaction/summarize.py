"""Summarize: the head becomes a summary, with a model or without one.

What reads and writes summaries is loaded at the first one: a program in which nothing is folded does not wait for it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

from compacter.compaction.task import CompactionTask
from compacter.effects import AskSummarizer, Effect, Emit, Reply
from compacter.errors import CompactionError
from compacter.events import CompactionFailed
from compacter.messages.format import Message
from compacter.messages.parts import Part
from compacter.summary import prompt
from compacter.summary.message import FRAME, Summary, rule_lines

if TYPE_CHECKING:
    from compacter.options import Options

_SMALLEST_CHUNK = 400
"""Characters below which a chunk that is still too long for the summarizer is not halved again."""
_WINDOW_SHARE = 4
"""A summary may take a quarter of the window at most (a 2,048-token model: 512 tokens)."""
_QUOTED_WINDOW_SHARE = 2
"""One without a model half of it: lines chosen from all of the head hold more of what is needed later than its last
messages do (of names that agents needed: .71 in place of .65 in a fifth of the size, .87 for .80 in three tenths)."""
_PROMPT_MARGIN = 0.92
"""Share of the summarizer's window that a prompt may fill: the size in tokens is an estimate."""
_LEAST_ANSWER = 12
"""A prompt that leaves less than this part of the window for the answer is split."""
_RULE_SHARE, _RULE_SIZE = 3, 400
"""Rules take at most this part of a summary; these characters, or two thirds, of one that a long last message leaves
little room: a rule that is dropped once does not come back."""
_FEWEST_TOKENS = 48
_SMALL_WINDOWS = range(1, 4_097)
"""Tokens of the window of a small model, whose own words are poor."""
_FILLED_SHARE, _FILLED_TOKENS = 32, 256
"""Quoted lines fill a summary up to this part of the window, or these tokens: larger requests overflow again sooner.

Measured on 200 turns in a window of 8,000 tokens: 17 summaries with a thirty-second, 19 when filled to a quarter. In
windows of 1,000 to 4,000 tokens a quarter held no more answers (``benchmarks/questions.py --scripted``).
"""
_HEAD_SHARE, _UNKNOWN_SHARE = 3, 8
"""Quoted lines fill a summary to at most this part of what it replaces, where the window is known or not known."""
_WORTH_FILLING = 200
"""Characters that are worth filling with quoted lines."""

_LONGER = 1.5
"""Times the characters asked for of which a longer answer is left its most telling sentences: not every function heeds
``max_tokens``, and a summary that fills the window leaves later prompts no room for anything else."""

_COPIED = "summary: the earlier one again"

Asking = Generator[Effect[Any], Any, Summary]


class NoSummaryError(Exception):
    """No summary could be made; the message says why. Internal."""

    def __init__(self, reason: str, cause: Exception | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


class RulesTooLongError(NoSummaryError):
    """The declared rules leave no summary that would be smaller than what it replaces. Internal."""


def summary_tokens(options: Options, window: int | None, head_size: int, chars_per_token: float) -> int:
    """Tokens a summary may have: the option, capped to a fair share of a known window and to what it replaces."""
    share = _QUOTED_WINDOW_SHARE if options.summarizer == "extractive" else _WINDOW_SHARE
    most = min(options.max_summary_tokens, window // share) if window else options.max_summary_tokens
    return max(_FEWEST_TOKENS, min(most, int(head_size / chars_per_token)))


def reserve(options: Options, window: int | None, head_size: int, chars_per_token: float) -> int:
    """Characters to leave for a summary message when a cut is chosen."""
    return int(summary_tokens(options, window, head_size, chars_per_token) * chars_per_token) + FRAME


def room(task: CompactionTask) -> int:
    """Characters the text of a summary may have: less than it replaces, and within the target where there is one.

    A budget that is smaller than what must stay cannot be kept; a summary made by hand then gets three quarters of it,
    because losing everything would be worse (measured on agents' histories at a tenth of their size: .82 of what was
    needed later survived with a tenth of the head, .88 with this).
    """
    smaller = task.plan.head_size - FRAME - 1
    if task.target is None:
        return smaller
    left = task.target - task.plan.tail_size - FRAME
    left -= min(task.job.reserved, max(left, 0) // 2)
    if left < 0 and task.plan.trigger == "manual":
        left = task.target * 3 // 4
    return min(smaller, left)


def summarized(task: CompactionTask) -> Asking:
    """The summary that the settings ask for. Raises ``NoSummaryError``.

    Nothing is folded where the declared rules do not fit: leaving one out would be worse. ``CompactionError`` where
    they alone exceed the window, else ``RulesTooLongError``.
    """
    size, most = sum(len(line) + 1 for line in rule_lines(task.conversation.rules)), room(task)
    tokens = int(size / task.chars_per_token)
    if task.window is not None and tokens >= task.window:
        raise CompactionError(f"the option rules takes about {tokens} tokens, and the window has {task.window}")
    if size > max(0, most):
        raise RulesTooLongError(f"rules: the declared rules take {size} characters, a summary may have {most}")
    given = task.summary
    if given is not None:
        from compacter.summary import checks

        fault = checks.fault(given, limit=most, entries=())
        if fault:
            raise NoSummaryError(f"the summary that was passed is refused: {fault}")
        redact = task.options.redact
        return Summary(redact(given.strip()) if redact else given.strip())
    if task.options.summarizer == "extractive":
        return extracted(task)
    entries = task.entries()
    if not entries and task.plan.prior is not None:
        return extracted(task)  # Nothing new to tell a model: the prior summary is only to be shorter.
    if not entries:
        raise NoSummaryError("nothing can be read in the head")
    return (yield from _by_model(task, entries))


def _by_model(task: CompactionTask, entries: Sequence[Part]) -> Asking:
    # What is known before the model is asked: the prior summary, and the rules that code finds in the head.
    prior, options = task.prior() or Summary(), task.options
    so_far = replace(prior, rules=_rules(task, entries, prior), notes=())
    record = prompt.render(entries)
    budget, tokens = _sizes(task, _known(so_far), len(record) - prompt.FENCE_SIZE)
    # By hand there is no call to take the prefix of: then litellm is asked, which takes chat messages only.
    has_prefix = task.plan.trigger != "manual" or task.plan.wire_format == "openai"
    if options.summary_request == "native" and options.summarizer is None and options.redact is None:
        whole = (yield from _natively(task, entries, so_far, tokens)) if has_prefix and budget is None else None
        if whole is not None:
            return _filled(task, entries, whole, tokens)
    pending = [entries] if budget is None else list(prompt.chunks(entries, budget))
    while pending:
        try:
            if pending[0] is not entries:
                record = prompt.render(pending[0])
            so_far = yield from _updated(task, pending[0], record, so_far, tokens)
        except NoSummaryError:
            raise
        except Exception as error:
            half = (len(record) - prompt.FENCE_SIZE) // 2
            if options.detect(error) is None or half < _SMALLEST_CHUNK:
                raise NoSummaryError(f"the summarizer raised {type(error).__name__}", error) from error
            pending = list(prompt.chunks([entry for chunk in pending for entry in chunk], half))
        else:
            pending.pop(0)
    return _filled(task, entries, so_far, tokens)


def _known(summary: Summary) -> str:
    """What a model gets to read of the summary so far: quoted lines only where there is no story."""
    return "\n".join([*summary.rules, summary.story or summary.quoted]).strip()


def _updated(task: CompactionTask, chunk: Sequence[Part], record: str, so_far: Summary, tokens: int) -> Asking:
    """The summary so far, updated by the model with one chunk, whose transcript is ``record``.

    Raises ``NoSummaryError`` after two bad answers. The second time it is asked in few words and for fewer: the first
    answer may have been cut off or confused.
    """
    fault = ""
    # The words of a small model get half of the room: quoted lines say more in the other half.
    asked = tokens // 2 if task.window in _SMALL_WINDOWS else tokens
    for short, words in ((None, asked), (True, asked // 2)):
        messages = prompt.build(
            record, prior=_known(so_far), template=task.options.summary_prompt, max_tokens=words, short=short
        )
        updated = yield from _asked(task, AskSummarizer(messages, tokens), chunk, so_far)
        if isinstance(updated, Summary):
            return updated
        fault = updated
    raise NoSummaryError(f"the summary was refused: {fault}")


def _asked(
    task: CompactionTask, request: AskSummarizer, chunk: Sequence[Part], so_far: Summary
) -> Generator[Effect[Any], Any, Summary | str]:
    """Ask the model once: the summary that its answer makes, or what is wrong with it."""
    from compacter.summary import checks, sections

    tally = task.tally
    tally.calls += 1
    answer: Reply = yield from request
    tally.input_tokens += answer.input_tokens
    tally.output_tokens += answer.output_tokens
    if tally.cost is not None:
        tally.cost = None if answer.cost is None else tally.cost + answer.cost
    text = checks.clean(answer.text)
    fault = checks.fault(
        text,
        entries=chunk,
        limit=task.plan.head_size - FRAME - sum(map(len, so_far.rules)),
        finish=answer.finish,
        refused=answer.refused,
        called_tool=answer.called_tool,
        told=_known(so_far) if task.window in _SMALL_WINDOWS else None,
    )
    if fault:
        return fault
    if task.options.redact is not None:
        text = task.options.redact(text)
    if checks.copies(text, so_far.story, chunk):
        # A model that says the same again would do so a third time. Quoted lines tell what came since.
        tally.unverified.append(_COPIED)
        return so_far
    items, before = sections.parse(text), sections.parse(so_far.story)
    if items is None and before is None:
        rules, story = so_far.rules, sections.mark(text, chunk)
    else:
        checked = sections.check(
            items or {"facts": tuple(text.splitlines())},
            chunk,
            prior=before or {"task": (so_far.story,)},
            rules=so_far.rules,
            rule_room=max(0, room(task) // _RULE_SHARE),
        )
        tally.unverified += checked.dropped
        rules, story = checked.rules, sections.render(checked.sections)
    most = _LONGER * reserve(task.options, task.window, task.plan.head_size, task.chars_per_token)
    return replace(so_far, story=story if len(story) <= most else sections.shortened(story, int(most)), rules=rules)


def _natively(
    task: CompactionTask, entries: Sequence[Part], so_far: Summary, tokens: int
) -> Generator[Effect[Any], Any, Summary | None]:
    """A summary asked for at the end of the conversation itself, so that the provider's prompt cache pays for the head.

    ``None`` when that gives no summary: then it is asked for by a transcript.
    """
    asked = prompt.instruction(prior=bool(so_far.story), template=task.options.summary_prompt, max_tokens=tokens)
    form, prefix = task.conversation.format, list(task.messages[: task.plan.cut])
    if task.alternate and prefix and form.speaker(prefix[-1]) == "user":
        prefix.append(form.filler("assistant"))  # The instruction is a message of the user.
    request = AskSummarizer([{"role": "user", "content": asked}], tokens, prefix)
    try:
        updated = yield from _asked(task, request, entries, so_far)
    except Exception:  # noqa: BLE001 - whatever it was, the transcript is another request
        return None
    return updated if isinstance(updated, Summary) else None


def _sizes(task: CompactionTask, known: str, whole: int) -> tuple[int | None, int]:
    """Characters of transcript that one prompt may hold (``None``: all of it), and tokens that a summary may have.

    One prompt for all of it where that leaves the answer a twelfth of the window; all of it where no window is known.
    """
    tokens = summary_tokens(task.options, task.window, task.plan.head_size, task.chars_per_token)
    window = task.summarizer_window or task.window
    if window is None:
        return None, tokens
    empty = prompt.build("", prior=known, template=task.options.summary_prompt, max_tokens=tokens)
    frame = len(empty[0]["content"])
    usable = int(window * _PROMPT_MARGIN)
    left = usable - int((whole + frame) / task.chars_per_token)
    if left >= min(tokens, window // _LEAST_ANSWER):
        return None, min(tokens, left)
    most = max(_SMALLEST_CHUNK, int((usable - tokens) * task.chars_per_token) - frame)
    parts = -(-whole // most)
    # Chunks of one size: a tiny last one would cost a request of its own for next to nothing.
    return min(most, whole // parts + most // 8), tokens


def _filled(task: CompactionTask, entries: Sequence[Part], summary: Summary, tokens: int) -> Summary:
    """The model's summary, and in what it leaves of its room lines that a summary without a model would quote.

    So the room buys as much as without a model, however little that one says.
    """
    allowed, head = room(task), task.plan.head_size
    if task.target is None or task.plan.trigger != "manual":
        if task.window is None:
            most = head // _UNKNOWN_SHARE
        else:
            filled = min(tokens, max(task.window // _FILLED_SHARE, _FILLED_TOKENS))
            most = min(int(filled * task.chars_per_token), head // _HEAD_SHARE)
        allowed = min(allowed, most)
    left = allowed - len(replace(summary, quoted="").text)
    if left < _WORTH_FILLING:
        return replace(summary, quoted="")
    return replace(summary, quoted=_quoted(task, entries, left, summary.quoted, summary.rules))


def extracted(task: CompactionTask) -> Summary:
    """A summary without any model. Raises ``NoSummaryError`` when there is no room for one."""
    budget = room(task)
    if task.target is None or task.plan.trigger != "manual":
        # A summary that fills the window would make the very next message too long again.
        head = task.plan.head_size
        most = reserve(task.options, task.window, head, task.chars_per_token) - FRAME
        budget = min(budget, most, max(head // _HEAD_SHARE, 200))
    if budget <= 0:
        raise NoSummaryError("there is no room for a summary")
    prior = task.prior() or Summary()
    # A model's earlier words stay as they are where they leave room for what came since.
    story = prior.story if 2 * len(prior.story) <= budget else ""
    before = prior.quoted if story else f"{prior.story}\n{prior.quoted}".strip()
    entries = task.entries()
    lines = _rules(task, entries, prior, budget)
    left = budget - sum(len(line) + 1 for line in lines) - len(story)
    quoted = _quoted(task, entries, left, before, lines)
    if not (quoted or story or lines):
        raise NoSummaryError("nothing can be read in the head")
    return Summary(story, lines, (), quoted)


def _quoted(task: CompactionTask, entries: Sequence[Part], size: int, before: str, rules: Sequence[str]) -> str:
    """Lines quoted from ``before`` and ``entries``: nothing that stands in the rules or in messages that stay."""
    from compacter.summary.sentences import split
    from compacter.summary.timeline import timeline

    parts = task.conversation.format.parts
    stays = (part.text for at, message in enumerate(task.plan.kept) for part in parts(message, at))
    lines = chain((line.partition(": ")[2] for line in rules), chain.from_iterable(map(str.splitlines, stays)))
    return timeline(entries, size, before, set(chain.from_iterable(split(line.strip()) for line in lines)))


def _rules(task: CompactionTask, entries: Sequence[Part], prior: Summary, most: int | None = None) -> tuple[str, ...]:
    """The lines of the user's rules: declared, of the prior summary, and those that code finds."""
    from compacter.summary import rules

    size = room(task) if most is None else most
    share = max(0, size // _RULE_SHARE, min(size * 2 // 3, _RULE_SIZE))
    return tuple(rules.lines(entries, prior.rules, task.conversation.rules, share))


def fall_back(task: CompactionTask) -> list[Message] | None:
    """The result of the first fallback that works, in their order; ``None`` where there is none."""
    from compacter.compaction.strategies import Truncate

    for fallback in task.options.fallback:
        if fallback == "truncate":
            prior = task.prior() or Summary()
            # A model that failed is no reason to lose the user's rules; what cannot be redacted is not kept.
            with suppress(Exception):
                prior = replace(prior, rules=_rules(task, task.entries(), prior))
            result = Truncate.noted(task, prior)
        else:
            try:
                summary = extracted(task)
            except Exception:  # noqa: BLE001, S112 - no room, or a redaction that raised: the next one then
                continue
            result = task.fold(summary)
        task.tally.fallback = True
        task.tally.names.append(fallback)
        return result
    return None


@dataclass(frozen=True, slots=True)
class Summarize:
    """Replaces the head by a summary of it; a prior summary is folded in, never stacked.

    When no summary can be had, the fallbacks of ``Compacter`` take over, in their order.
    """

    name: str = "summarize"
    """Name that events carry."""

    def compact(self, task: CompactionTask) -> Generator[Effect[Any], Any, list[Message]]:
        """The list of ``task`` with a summary message. Raises ``CompactionError`` where none can be had."""
        if not task.plan.folded:
            return list(task.messages)
        try:
            summary = yield from summarized(task)
        except NoSummaryError as failure:
            tally = task.tally
            yield from Emit(
                CompactionFailed(
                    trigger=task.job.trigger,
                    reason=str(failure),
                    error=type(failure.cause).__name__ if failure.cause else "",
                    cause=failure.cause,
                    input_tokens=tally.input_tokens,
                    output_tokens=tally.output_tokens,
                    cost=tally.cost,
                    **task.job.named,
                )
            )
            if isinstance(failure, RulesTooLongError) and task.options.fallback:
                return list(task.messages)
            if task.summary is not None or not task.options.fallback:
                cause = f": {failure.cause}" if failure.cause else ""
                raise CompactionError(f"no summary could be had: {failure}{cause}") from failure.cause
            return fall_back(task) or list(task.messages)
        return task.fold(summary)
