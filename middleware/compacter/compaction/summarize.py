"""Summarize: the head becomes a summary, with a model or without one.

The first summary loads the modules that read and write summaries, so that a program that compacts
nothing does not wait for them.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import is_inserted
from compacter.compaction.plan import CompactionPlan, unfold
from compacter.compaction.sizes import LEAST_TEXT
from compacter.effects import Ask
from compacter.errors import with_hints
from compacter.messages.fields import field as field_of
from compacter.messages.format import Message
from compacter.messages.replies import Reply, compaction_in
from compacter.summary.message import FRAME, STORY_FRAME, NoSummaryError, Summary

if TYPE_CHECKING:
    from compacter.lines.head import Head
    from compacter.summary.write import Writer


class RulesTooLongError(NoSummaryError):
    """The declared rules are so long that a summary which contains them would be as large as the
    messages that it replaces. Internal.
    """


def is_native(plan: CompactionPlan) -> bool:
    """Return whether to send the summarizer the messages themselves, in place of a transcript.

    True if the wrapped call itself makes the summary, and nothing is redacted: the provider's cache
    has the messages, because the program has just sent them.
    """
    options = plan.options
    is_cached = plan.is_cached or plan.trigger == "prepared"
    return is_cached and options.writer is None and options.redact is None


def read_head(plan: CompactionPlan) -> Head:
    """Read the messages to compact, and return them in the form that writers of summaries take:
    their texts, the earlier summary, and the texts that stay in the request.
    """
    from compacter.lines.head import Head

    retrieved = plan.options.retrieved
    return Head(
        plan.parts(),
        plan.prior_summary() or Summary(),
        stays=plan.parts(plan.kept),
        marks=retrieved if isinstance(retrieved, tuple) else None,
    )


def extract(plan: CompactionPlan, head: Head) -> Summary:
    """Return a summary without any model. Raises ``NoSummaryError`` if there is no room."""
    from compacter.summary.write import quote

    room = _text_size(plan, by_model=False)
    if plan.budget and not head.prior.story:
        room += STORY_FRAME
    return quote(head, room)


def _text_size(plan: CompactionPlan, *, by_model: bool) -> int:
    """Return the size of a summary's text, with lines beside a model's. With a budget it is all of
    the room.
    """
    size = plan.longest_summary
    if not plan.budget:
        size = min(size, plan.sizes.text(plan.head_size, by_model=by_model))
    # If the messages that stay are too large by themselves, they are shortened, not the model's
    # text.
    return max(size, LEAST_TEXT) if by_model else size


# Fewest tokens of the answer of a provider that compacts: they include the model's thoughts.
_LEAST_ANSWER = 4_096
_NOT_MADE = 'summarizer="provider": {}, so the wrapped call summarizes'


def _instructions(plan: CompactionPlan) -> list[dict[str, str]]:
    """Return what the program asks of the provider's compaction, as messages; empty if nothing."""
    from compacter.summary import prompt

    options = plan.options
    if not (options.focus or options.summary_prompt):
        return []
    text = prompt.build(
        None,
        template=options.summary_prompt,
        max_tokens=options.max_summary_tokens,
        focus=options.focus or "",
    )
    return [{"role": "user", "content": text}]


def _blocks_in(raw: object, plan: CompactionPlan) -> list[Message]:
    """Return the blocks of the provider's compaction in a reply. OpenAI's has all messages of
    users: those that stay anyway are left out.
    """
    form = plan.conversation.format
    stays = {form.plain_text(plan.messages[index]) for index in plan.kept}
    return [
        block
        for block in compaction_in(raw)
        if field_of(block, "role") is None
        or not (is_inserted(block, form) or form.plain_text(block) in stays)
    ]


def _ask_provider(plan: CompactionPlan, head: Head) -> Generator[Ask, Any, list[Message] | str]:
    """Return the list with the provider's own compaction of the head, and lines of it behind that.
    If the provider makes no compaction, return the reason. Rules and earlier text go along, as they
    are part of the request.
    """
    from compacter.lines.keep import keep

    form = plan.conversation.format
    limit = max(plan.sizes.summary_tokens(plan.head_size), _LEAST_ANSWER)
    messages = unfold(plan.conversation, plan.messages[: plan.cut])
    try:
        reply: Reply = yield Ask(_instructions(plan), limit, messages, by_provider=True)
    except Exception as error:  # noqa: BLE001 - any error leads to the usual way
        return _NOT_MADE.format(f"{type(error).__name__}: {str(error)[:200]}")
    if reply.raw is None:
        plan.tally.add(summarizer_calls=-1)
        return reply.text and _NOT_MADE.format(reply.text)
    blocks = _blocks_in(reply.raw, plan)
    if not blocks:
        return _NOT_MADE.format(f"the answer has no compaction ({reply.finish})")
    size = plan.size([form.with_blocks_before("", blocks)])
    room = min(plan.left, plan.head_size - plan.rules_size - 1) - FRAME - size
    if room < 0:
        return _NOT_MADE.format(f"its compaction is too large ({size:,} characters)")
    lines = plan.sizes.lines(_text_size(plan, by_model=True), plan.head_size)
    quoted = keep(head, min(lines, room))
    return plan.replace_head(Summary(quoted=quoted), blocks=blocks)


@with_hints
@dataclass(frozen=True, slots=True)
class Summarize:
    """Replaces the head by a summary of it; a prior summary is compacted too, never stacked.

    If no summary can be made, the fallbacks of ``Compacter`` are tried, in their order.
    """

    name: str = field(default="summarize", init=False)
    """Name that events carry."""

    def compact(self, plan: CompactionPlan) -> Generator[Ask, Any, list[Message]]:
        """The list of ``plan`` with a summary message. Raises ``NoSummaryError`` if none can be
        made.

        If the declared rules do not fit, it compacts nothing: leaving a rule out would be worse.
        """
        if not plan.compacted:
            return list(plan.messages)
        longest = plan.longest_summary
        if plan.rules_size and longest < 0:
            raise RulesTooLongError(
                f"rules: the declared rules take {plan.rules_size} characters, a summary may have "
                f"{max(0, longest + plan.rules_size)}"
            )
        if plan.summary is not None:
            return plan.replace_head(_given(plan, plan.summary.strip()))
        head = read_head(plan)
        # Without anything new for the model, only shorten the prior summary.
        if plan.options.summarizer == "extractive" or not head.parts:
            return plan.replace_head(extract(plan, head))
        if plan.options.summarizer == "provider":
            made = yield from _ask_provider(plan, head)
            if isinstance(made, list):
                return made
            plan.tally["not_by_provider"] = made
        writer = _writer(plan, head)
        written = yield from writer.write()
        plan.tally.add(
            unverified=writer.unverified(),
            chunks=writer.chunks,
            chunks_without_model=writer.chunks_without_model,
        )
        return plan.replace_head(written)


def _given(plan: CompactionPlan, summary: str) -> str:
    """Return the caller's own summary. Raises ``NoSummaryError`` if it is not one."""
    from compacter.summary import gate

    fault = gate.fault(Reply(summary), plan.longest_summary)
    if fault:
        raise NoSummaryError(f"the summary that was passed is refused: {fault}")
    return plan.options.redact(summary) if plan.options.redact else summary


def _writer(plan: CompactionPlan, head: Head) -> Writer:
    """Return the writer of a model's summary of the head."""
    from compacter.summary.write import Writer

    options = plan.options
    calibration = plan.sizes.calibration
    size = plan.head_size - plan.rules_size
    text = _text_size(plan, by_model=True)
    return Writer(
        head=head,
        prefix=_own_messages(plan) if is_native(plan) else None,
        detect=options.detect,
        size=size,
        room=text,
        insisted=plan.sizes.insisted(text, plan.longest_summary),
        lines=plan.sizes.lines(text, size),
        space=plan.longest_summary,
        tokens=plan.sizes.summary_tokens(size),
        window=calibration.window_of_summarizer,
        chars_per_token=calibration.text_per_token,
        fills=bool(plan.budget),
        template=options.summary_prompt,
        focus=(options.redact or str)(options.focus or ""),
        redact=options.redact,
    )


def _own_messages(plan: CompactionPlan) -> list[Message]:
    """Return the messages before the cut as they were sent: without their older thinking."""
    older = min(plan.older, plan.cut)
    form = plan.conversation.format
    newer = plan.messages[older : plan.cut]
    return unfold(plan.conversation, [*form.without_thinking(plan.messages[:older]), *newer])
