"""Plan one compaction: estimate sizes in tokens, compute the target size, and choose the cut."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from string import ascii_letters
from typing import TYPE_CHECKING, Any

from compacter.compaction.conversation import Conversation
from compacter.compaction.room import Division, prior_size
from compacter.compaction.summarize import Summarize, planned_reserve
from compacter.compaction.task import CompactionPlan, links_of
from compacter.events import Trigger
from compacter.messages.parts import Kind
from compacter.overflow import TokenLimit
from compacter.summary.message import FRAME, rule_lines

if TYPE_CHECKING:
    from compacter.options import Options

DEFAULT = 4.0
"""Default characters per token: OpenAI's rule of thumb for English."""
# Characters per token outside of which a sample is taken for an error in one of its two sizes.
_LEAST = 0.25
_MOST = 20.0
# Most characters per token that text may have; English has 4 to 5. Above it are pictures lighter
# than estimated.
_MOST_TEXT = 6.0
# Smallest sample to learn from, in tokens; a smaller one is dominated by the chat template.
_FEWEST_TOKENS = 50
_LETTERS = ascii_letters.encode()
# Tokens that a chat template may put around a message.
_TEMPLATE = 8
# Smallest head worth compacting, in characters: the summary message would be as large as a smaller
# one.
_WORTH_FOLDING = FRAME + 40
# Share of a given size that the summary gets: passages chosen from the head are needed later more
# often than a tail.
#
# On real conversations at a fifth of their size, without a model: facts .55 with half of it, .62
# with .85, .68 with all.
_SUMMARY_SHARE = 0.92
# Share of the compactable size by which a head may exceed its goal so that the tail begins with a
# turn: an answer without its question is hard to understand.
_TURN_REST = 0.05
MARGIN = 0.97
"""Share of the limit to aim at, as sizes in tokens are estimates."""


@dataclass(slots=True)
class Calibration:
    """Facts learnt about a model from the provider's numbers: those of a token-limit error, or the
    usage of a reply.
    """

    chars_per_token: float = DEFAULT
    window: int | None = None
    learnt: bool = False
    summarizer_window: int | None = None
    """Window in tokens of the model that summarizes; ``None``: it is the same model."""
    text_per_token: float | None = None
    """Characters per token of text alone, as summaries and quotes are; ``None``: those of the
    whole."""
    scale: float | None = None
    """Tokens by the provider's count for each one by the estimate for the script
    (``recall/weight.py``); ``None``: unknown."""
    accepted: int = 0
    """Estimated tokens of the largest request that was accepted; 0 if unknown."""
    refused: int | None = None
    """Estimated tokens of the smallest request that was refused without a number."""
    warned: bool = False
    """Whether the unknown window was already reported in an event; the trigger cannot work without
    it."""

    def learn(self, characters: int, tokens: int, of_one: float | None = None) -> None:
        """Learn from a request whose size is known in both units. Empty, tiny and implausible
        samples are ignored.

        ``of_one`` is the estimated size of one of the characters in tokens, by their script.
        """
        if tokens >= _FEWEST_TOKENS and _LEAST <= characters / tokens <= _MOST:
            self.chars_per_token = characters / tokens
            self.learnt = True
            self.text_per_token = DEFAULT if self.chars_per_token > _MOST_TEXT else None
            if of_one:
                self.scale = tokens / (characters * of_one)

    def accept(self, tokens: int) -> None:
        """Note the estimated size of a request that was accepted."""
        self.accepted = max(self.accepted, tokens)

    def tokens(self, characters: int) -> int:
        """Return an estimate in tokens."""
        return round(characters / self.chars_per_token)


def most_tokens(texts: Iterable[str]) -> int:
    """Return an upper bound on the number of tokens of these messages' texts, for any tokenizer.

    The worst case is one token per byte, for emoji and scripts unknown to the tokenizer. Blanks are
    part of the next word, and four letters count as three tokens (random base64 text has 1.4
    letters per token, words four and more).
    """
    most = 0
    for text in texts:
        solid = text.encode("utf-8", "surrogatepass").translate(None, b" ")
        letters = len(solid) - len(solid.translate(None, _LETTERS))
        most += len(solid) - letters // 4 + _TEMPLATE
    return most


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One compaction to make. Sizes are in characters."""

    conversation: Conversation
    trigger: Trigger
    calibration: Calibration
    model: str | None = None
    attempt: int = 1
    digest: str = ""
    """Digest that identifies the conversation in events."""
    target: int | None = None
    """Largest size of the messages afterwards; ``None``: unknown."""
    reserved: int = 0
    """Part of the target to leave free for quotes; at most half of the room is."""
    found: TokenLimit | None = None
    summary: str | None = None
    """Summary given by the caller, used instead of the model's."""
    must: bool = False
    """Whether something must be compacted, whatever ``preserve_recent_turns`` is."""

    @property
    def named(self) -> dict[str, Any]:
        """Fields that identify the call and its conversation in events."""
        return {"model": self.model, "attempt": self.attempt, "conversation": self.digest}

    @property
    def facts(self) -> dict[str, Any]:
        """``named``, and the numbers of the token limit that requires the compaction."""
        if self.found is None:
            return self.named
        return self.named | {"limit": self.found.limit, "requested": self.found.requested}

    def is_met_by(self, size: int) -> bool:
        """Return whether messages of this size are within the target."""
        return self.target is None or size <= self.target

    def is_satisfied(self, size: int) -> bool:
        """Return whether a compaction by hand has nothing to do, as the messages are within its
        budget.
        """
        return (
            self.trigger == "manual"
            and self.summary is None
            and self.target is not None
            and size <= self.target
        )


def target_characters(
    found: TokenLimit | None,
    calibration: Calibration,
    *,
    overhead: int,
    output_tokens: int | None,
) -> int | None:
    """Return the largest size of the messages, in characters, with which the request fits; ``None``
    if unknown.

    ``overhead`` is the size of all else in the request (tools, a system prompt outside the list).
    ``output_tokens`` is the request's output limit, which counts only for providers that count it.
    """
    limit = found.limit if found and found.limit else calibration.window
    if not limit:
        return None
    counted = output_tokens or 0 if found and found.kind == "input_plus_output" else 0
    return max(0, int((limit - counted) * MARGIN * calibration.chars_per_token) - overhead)


def plan(
    options: Options,
    job: Job,
    conversation: Conversation | None = None,
    *,
    chosen: int | None = None,
) -> CompactionPlan:
    """Return the plan of what to compact; with a cut of 0 nothing can be compacted.

    ``conversation`` is the result of an earlier strategy, in place of the job's. ``chosen`` is a
    cut set by a hook; it is moved to the beginning of its step, and never past an open step.
    """
    read = conversation or job.conversation
    if chosen is not None:
        cut = max(0, min(chosen, len(read.messages) if read.open is None else read.open))
        cut = read.step(cut)[0] if cut < len(read.messages) else cut
    elif job.is_satisfied(read.size):
        cut = 0
    else:
        cut = _cut(options, job, read)
        staying = read.size - read.free + FRAME
        if job.must and (not cut or not job.is_met_by(staying)):
            # The messages that stay exceed the target alone: compact the provider's own compaction
            # too, if it is readable.
            whole = read.without_native()
            if whole is not None:
                read = whole
                cut = _cut(options, job, whole)
        prior = read.prior
        wanted = job.must or (job.trigger == "manual" and job.target is not None)
        if not cut and wanted and prior is not None and prior_size(read):
            # Nothing else may go: the prior summary itself can be made shorter, if some room is
            # left for it.
            staying = read.size - read.free + FRAME
            cut = read.step(prior)[1] if job.target is None or staying < job.target else 0
    return CompactionPlan(
        job=job,
        conversation=read,
        cut=cut,
        strategy="+".join(strategy.name for strategy in options.strategy),
    )


def _cut(options: Options, job: Job, conversation: Conversation) -> int:
    """Choose the cut by the options and the target, with enough room for the summary too."""
    free = conversation.free
    need = 0
    ratio = options.compact_ratio
    by_hand = job.trigger == "manual"
    if job.target is not None:
        room = job.target - (conversation.size - free)
        room -= min(job.reserved, room // 2)
        calibration = job.calibration
        wanted = planned_reserve(options, calibration.window, free, calibration.chars_per_token)
        most = int(room * _SUMMARY_SHARE)
        if by_hand and options.summarizer == "extractive":
            wanted = most
        elif (
            by_hand
            and job.summary is None
            and any(isinstance(link, Summarize) for link in links_of(options.strategy))
        ):
            wanted = min(wanted, most)
        else:
            declared = sum(len(line) + 1 for line in rule_lines(job.conversation.rules))
            wanted = min(wanted + declared, max(room // 2, FRAME + declared))
        if not by_hand and job.summary is None:
            division = Division.of(options, conversation)
            ratio = division.ratio
            window = calibration.summarizer_window or calibration.window or 0
            wanted = room - division.tail_size(
                room, conversation, wanted, window * calibration.chars_per_token
            )
        need = max(0, free - room + wanted)
    worth = min(max(need, _WORTH_FOLDING), free)
    cut = choose_cut(
        conversation,
        ratio=ratio,
        need=worth,
        keep_turns=options.preserve_recent_turns,
        keep_need=worth if job.must else need,
        must=job.must,
    )
    if (
        job.reserved
        and cut
        and conversation.kinds[-1] is Kind.RESULT
        and cut > conversation.steps[-1]
    ):
        # Results that the model has not read yet are worth more than room for quotes.
        return _cut(options, replace(job, reserved=0), conversation)
    return cut


def choose_cut(
    conversation: Conversation,
    *,
    ratio: float,
    need: int = 0,
    keep_turns: int = 0,
    keep_need: int = 0,
    must: bool = False,
) -> int:
    """Return the cut behind the oldest steps with ``ratio`` of the compactable size, or ``need``
    characters if more.

    The newest ``keep_turns`` turns stay as long as the head still has ``keep_need`` characters. The
    cut is never inside a step or past an open step, and at least one message stays. Returns 0 if
    nothing can be compacted, and if only a prior summary could be that need not (``must``) become
    smaller.
    """
    steps = conversation.steps
    heads = conversation.heads
    kinds = conversation.kinds
    protected = conversation.protected
    prior = conversation.prior
    total = conversation.free
    count = len(kinds)
    end = count if conversation.open is None else conversation.open
    # A prior summary is always compacted, so its size does not count towards the ratio.
    aged = prior_size(conversation)
    goal = max((total - aged) * ratio + aged, need)

    # The first step boundary at which the head is large enough, otherwise the last boundary.
    boundaries = (0, *steps[1:], count)
    at = min(bisect_left(boundaries, bisect_left(heads, goal)), bisect_right(boundaries, end) - 1)
    cut = boundaries[at]
    newest = boundaries[-2]
    if cut > newest and ratio < 1 and heads[newest] >= max(need, 1) and kinds[-1] is Kind.RESULT:
        # The model has not seen the newest results yet: cut before them if that is enough.
        cut = newest
    else:
        # Move the cut to the end of the turn if that is near. A turn may begin inside a step: with
        # tool results.
        turn = cut
        most = heads[cut] + total * _TURN_REST
        while turn < newest and kinds[turn] is not Kind.USER and heads[turn] <= most:
            turn += 1
        if turn < newest and heads[turn] <= most and conversation.step(turn)[0] == turn:
            cut = turn

    def only_prior(cut: int) -> bool:
        return prior is not None and all(protected[index] or index == prior for index in range(cut))

    if keep_turns:
        turns = [index for index, kind in enumerate(kinds) if kind is Kind.USER and index != prior]
        limits = (conversation.step(turn)[0] for turn in turns[-keep_turns:])
        kept = next((limit for limit in limits if heads[limit] >= keep_need), cut)
        if kept < cut:
            if not must and not keep_need and only_prior(kept):
                # No size is required, and compacting only a prior summary again would gain nothing.
                return 0
            cut = kept
    if cut == count and not any(protected):
        cut = newest  # At least one message stays.
    while prior is not None and only_prior(cut):
        # A head with nothing but the prior summary is extended by the next step that can be
        # compacted.
        if cut >= end:
            return 0
        cut = boundaries[bisect_right(boundaries, cut)]
    return 0 if all(protected[:cut]) else cut
