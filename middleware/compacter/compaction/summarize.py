"""Summarize: the head becomes a summary, with a model or without one.

What reads and writes summaries is loaded at the first one: a program in which nothing is compacted
does not wait for it.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import with_fillers
from compacter.compaction.plan import DEFAULT
from compacter.compaction.task import CompactionTask, check_name
from compacter.effects import AskSummarizer, Effect
from compacter.errors import CompactionError
from compacter.messages.format import Message
from compacter.messages.replies import Reply
from compacter.summary.message import FRAME, STORY_FRAME, NoSummaryError, Summary, rule_lines

if TYPE_CHECKING:
    from compacter.compaction.conversation import Conversation
    from compacter.compaction.plan import CompactionPlan
    from compacter.options import Options
    from compacter.summary.head import Head

# A model's text may take an eighth of the window (a 2,048-token model: 256 tokens), and the lines
# beside it half of that: what can be fetched when it is needed is not carried everywhere.
_WINDOW_SHARE = 8
_WITH_LINES = 1.5
# Fewest tokens that a summary is given, however small the window or what it replaces.
_FEWEST_TOKENS = 96
# A summary without a model takes at most this part of what it replaces, or these characters.
_HEAD_SHARE = 3
_LEAST_ROOM = 200
# Where no window is known, the lines beside a model's text take at most this part of what it
# replaces, or these characters.
_LINES_SHARE = 8
_LEAST_LINES = 800


class RulesTooLongError(NoSummaryError):
    """The declared rules leave no summary that would be smaller than what it replaces. Internal."""


# -- sizes -----------------------------------------------------------------------------------------


def summary_tokens(most: int, asked: CompactionPlan, size: int) -> int:
    """Return the tokens that a summary of so many characters may have: ``most``, capped to a fair
    share of a known window and to what it replaces.
    """
    share = int(size / asked.calibration.text_per_token)
    if asked.calibration.window:
        share = min(share, asked.calibration.window // _WINDOW_SHARE)
    return min(most, max(_FEWEST_TOKENS, share))


def planned_reserve(options: Options, asked: CompactionPlan, size: int) -> int:
    """Return the characters to leave for a summary message, in place of so many characters: those
    of the largest summary that ``options`` allow.
    """
    tokens = summary_tokens(options.max_summary_tokens, asked, size)
    return int(tokens * _WITH_LINES * asked.calibration.text_per_token) + FRAME


def least_reserve(conversation: Conversation) -> int:
    """Return the fewest characters in which a summary message says anything: the declared rules,
    and the fewest tokens that a summary is given.
    """
    return FRAME + rules_size(conversation) + int(_FEWEST_TOKENS * DEFAULT)


def summarizes(options: Options) -> bool:
    """Return whether one of the strategies writes a summary."""
    return any(isinstance(link, Summarize) for link in options.strategy)


def rules_size(conversation: Conversation) -> int:
    """Return the size of the declared rules in a summary, in characters."""
    return sum(len(line) + 1 for line in rule_lines(conversation.rules))


def room(task: CompactionTask, most: int | None = None) -> int:
    """Return the characters that the text of a summary may have: less than it replaces, and within
    the target where there is one. Of a summary of ``most`` tokens no more than these, unless a
    budget is to be used.

    A budget that is smaller than what must stay cannot be kept; a summary made by hand then gets
    three quarters of it, because losing everything would be worse (measured on agents' histories at
    a tenth of their size: .82 of what was needed later survived with a tenth of the head, .88 with
    this).
    """
    plan = task.plan
    size = plan.head_size - FRAME - 1
    if task.target is not None:
        left = task.target - plan.tail_size - FRAME
        if task.alternate and plan.held:
            # Many fillers, if messages of one role are pinned.
            filled = with_fillers(plan.conversation, plan.kept, plan.staying)
            left -= task.size(filled) - task.size(plan.kept)
        left -= min(plan.reserved, max(left, 0) // 2)
        if left < 0 and plan.has_budget:
            left = task.target * 3 // 4
        size = min(size, left)
    if most is None or plan.has_budget:
        return size
    tokens = summary_tokens(most, plan, plan.head_size)
    return min(size, int(tokens * _WITH_LINES * task.chars_per_token))


def is_native(task: CompactionTask) -> bool:
    """Return whether the summarizer is sent the messages themselves, in place of a transcript.

    The provider's cache has what the program has just sent: so where a compaction is made ahead by
    the wrapped call itself. The messages are not redacted.
    """
    options = task.options
    is_ahead = task.plan.trigger == "prepared"
    return is_ahead and options.summarizer is None and options.redact is None


# -- one summary -----------------------------------------------------------------------------------


def read_head(task: CompactionTask) -> Head:
    """Return what a summary of this head is made of."""
    from compacter.summary.head import Head

    retrieved = task.options.retrieved
    return Head(
        task.entries(),
        task.prior(),
        stays=task.staying(),
        marks=retrieved if isinstance(retrieved, tuple) else None,
    )


def extract(task: CompactionTask, head: Head, most: int) -> Summary:
    """Return a summary without any model, of at most so many tokens. Raises ``NoSummaryError`` when
    there is no room for one.
    """
    from compacter.summary.write import quote

    characters = room(task, most)
    if not task.plan.has_budget:
        characters = min(characters, max(task.plan.head_size // _HEAD_SHARE, _LEAST_ROOM))
    elif not head.prior.story:
        characters += STORY_FRAME
    return quote(head, characters - rules_size(task.conversation))


@dataclass(frozen=True, slots=True)
class Summarize:
    """Replaces the head by a summary of it; a prior summary is compacted too, never stacked.

    When no summary can be had, the fallbacks of ``Compacter`` take over, in their order.
    """

    name: str = "summarize"
    """Name that events carry."""

    def __post_init__(self) -> None:
        check_name(self)

    def compact(self, task: CompactionTask) -> Generator[Effect[Any], Any, list[Message]]:
        """The list of ``task`` with a summary message. Raises ``NoSummaryError`` where none can be
        had.

        Nothing is compacted where the declared rules do not fit: leaving one out would be worse.
        """
        plan = task.plan
        options = task.options
        if not plan.compacted:
            return list(task.messages)
        size = rules_size(task.conversation)
        tokens = int(size / task.chars_per_token)
        if task.window is not None and tokens >= task.window:
            raise CompactionError(
                f"the option rules takes about {tokens} tokens, and the window has {task.window}"
            )
        left = room(task)
        if size > max(0, left):
            raise RulesTooLongError(
                f"rules: the declared rules take {size} characters, a summary may have {left}"
            )
        if plan.summary is not None:
            from compacter.summary import checks

            summary = plan.summary.strip()
            fault = checks.fault(Reply(summary), left)
            if fault:
                raise NoSummaryError(f"the summary that was passed is refused: {fault}")
            return task.replace_head(options.redact(summary) if options.redact else summary)
        most = options.max_summary_tokens
        head = read_head(task)
        # With nothing new to tell a model, the prior summary is only to be shorter.
        if options.summarizer == "extractive" or not head.parts:
            return task.replace_head(extract(task, head, most))
        from compacter.summary.write import Writer

        size = plan.head_size - rules_size(task.conversation)
        prefix: list[Message] | None = None
        if is_native(task):
            form = task.conversation.format
            prefix = list(task.messages[: plan.cut])
            if task.alternate and form.speaker(prefix[-1]) == "user":
                # The instruction that is appended is a message of the user.
                prefix.append(form.filler("assistant"))
        # What stays may be too large by itself: then it is shortened, not the model's text.
        whole = max(room(task, most) - rules_size(task.conversation), _LEAST_ROOM)
        lines = whole // 3
        if not task.window:
            lines = min(lines, max(size // _LINES_SHARE, min(_LEAST_LINES, size // 2)))
        writer = Writer(
            head=head,
            ask=AskSummarizer,
            prefix=prefix,
            detect=options.detect,
            size=size,
            room=whole,
            lines=lines,
            space=left - rules_size(task.conversation),
            tokens=summary_tokens(most, plan, size),
            window=plan.calibration.summarizer_window or task.window,
            chars_per_token=task.chars_per_token,
            fills=plan.has_budget,
            template=options.summary_prompt,
            redact=options.redact,
        )
        written = yield from writer.write()
        task.tally.add(
            unverified=writer.unverified(),
            chunks=writer.chunks,
            chunks_without_model=writer.chunks_without_model,
        )
        return task.replace_head(written)
