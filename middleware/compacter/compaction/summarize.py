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


class RulesTooLongError(NoSummaryError):
    """With the declared rules, a summary would not be smaller than what it replaces. Internal."""


def is_native(plan: CompactionPlan) -> bool:
    """Return whether to send the summarizer the messages themselves, in place of a transcript.

    True if the wrapped call itself makes the summary, and nothing is redacted: the provider's cache
    has the messages, because the program has just sent them.
    """
    options = plan.options
    is_cached = plan.is_cached or plan.trigger == "prepared"
    return is_cached and options.writer is None and options.redact is None


def read_head(plan: CompactionPlan) -> Head:
    """Return the head, read for a summary."""
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


def _ask_provider(plan: CompactionPlan, head: Head) -> Generator[Ask, Any, list[Message] | str]:
    """Return the list with the provider's own compaction of the head, and lines of it behind that.
    If the provider makes no compaction, return the reason. Rules and earlier text go along, as they
    are part of the request.
    """
    from compacter.lines.keep import keep
    from compacter.summary import prompt

    options = plan.options
    form = plan.conversation.format
    asked: list[dict[str, str]] = []
    limit = max(plan.sizes.summary_tokens(plan.head_size), _LEAST_ANSWER)
    if options.focus or options.summary_prompt:
        text = prompt.build(
            None,
            template=options.summary_prompt,
            max_tokens=options.max_summary_tokens,
            focus=options.focus or "",
        )
        asked = [{"role": "user", "content": text}]
    messages = unfold(plan.conversation, plan.messages[: plan.cut])
    try:
        reply: Reply = yield Ask(asked, limit, messages, by_provider=True)
    except Exception as error:  # noqa: BLE001 - any error leads to the usual way
        return _NOT_MADE.format(f"{type(error).__name__}: {str(error)[:200]}")
    if reply.raw is None:
        plan.tally.add(summarizer_calls=-1)
        return reply.text and _NOT_MADE.format(reply.text)
    stays = {form.plain_text(plan.messages[index]) for index in plan.kept}
    blocks = [
        block
        for block in compaction_in(reply.raw)
        if field_of(block, "role") is None
        # OpenAI's has all messages of users.
        or not (is_inserted(block, form) or form.plain_text(block) in stays)
    ]
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
        options = plan.options
        sizes = plan.sizes
        calibration = sizes.calibration
        if not plan.compacted:
            return list(plan.messages)
        rules = plan.rules_size
        longest = plan.longest_summary
        if rules and longest < 0:
            most = max(0, longest + rules)
            raise RulesTooLongError(
                f"rules: the declared rules take {rules} characters, a summary may have {most}"
            )
        if plan.summary is not None:
            from compacter.summary import gate

            summary = plan.summary.strip()
            fault = gate.fault(Reply(summary), longest)
            if fault:
                raise NoSummaryError(f"the summary that was passed is refused: {fault}")
            return plan.replace_head(options.redact(summary) if options.redact else summary)
        head = read_head(plan)
        # Without anything new for the model, only shorten the prior summary.
        if options.summarizer == "extractive" or not head.parts:
            return plan.replace_head(extract(plan, head))
        if options.summarizer == "provider":
            made = yield from _ask_provider(plan, head)
            if isinstance(made, list):
                return made
            plan.tally["not_by_provider"] = made
        from compacter.summary.write import Writer

        prefix: list[Message] | None = None
        if is_native(plan):
            older = min(plan.older, plan.cut)
            form = plan.conversation.format
            newer = plan.messages[older : plan.cut]
            said = [*form.without_thinking(plan.messages[:older]), *newer]
            prefix = unfold(plan.conversation, said)
        size = plan.head_size - rules
        text = _text_size(plan, by_model=True)
        writer = Writer(
            head=head,
            prefix=prefix,
            detect=options.detect,
            size=size,
            room=text,
            insisted=sizes.insisted(text, longest),
            lines=sizes.lines(text, size),
            space=longest,
            tokens=sizes.summary_tokens(size),
            window=calibration.window_of_summarizer,
            chars_per_token=calibration.text_per_token,
            fills=bool(plan.budget),
            template=options.summary_prompt,
            focus=(options.redact or str)(options.focus or ""),
            redact=options.redact,
        )
        written = yield from writer.write()
        plan.tally.add(
            unverified=writer.unverified(),
            chunks=writer.chunks,
            chunks_without_model=writer.chunks_without_model,
        )
        return plan.replace_head(written)
