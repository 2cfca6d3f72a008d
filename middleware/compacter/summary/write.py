"""Write a summary: with a model, whose answers are checked, or with lines quoted from the
conversation.

``write`` is a generator: it yields what to ask the model, and is sent the answers. So it is tested
as a conversation, and asks nobody itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace

from compacter.messages.parts import Part
from compacter.summary import checks, prompt, sections
from compacter.summary.head import Head
from compacter.summary.message import FRAME, NoSummaryError, Summary

SMALLEST_CHUNK = 400
"""Characters below which a chunk that is still too long for the summarizer is not halved again."""
# Share of the summarizer's window that a prompt may fill: the size in tokens is an estimate.
_PROMPT_MARGIN = 0.92
# A prompt that leaves less than this part of the window for the answer is split.
_LEAST_ANSWER = 12
# Tokens of the window of a small model, whose own words are poor.
_SMALL_WINDOWS = range(1, 4_097)
# Part of a summary that rules which only the model has noticed may take, as in `Head.rules`.
_RULE_SHARE = 3
# Characters that are worth filling with quoted lines: about two of them.
_WORTH_FILLING = 200
# Times the characters asked for of which a longer answer is left its most telling sentences: not
# every function heeds `max_tokens`, and a summary that fills the window leaves later prompts no
# room for anything else.
_LONGER = 1.5
# Characters from which on an earlier story is too long to be replaced by a sentence or two.
_LOSABLE = 400
# An answer shorter than this part of the earlier story has lost it: people do not take back three
# quarters of what they settled.
_SHRINKS = 4
_COPIED = "summary: the earlier one again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large a summary may be, and its requests."""

    head: int
    """Characters of the messages that it replaces."""
    room: int
    """Characters that its text may have."""
    filled: int
    """Characters up to which quoted lines fill it."""
    planned: int
    """Characters that were reserved for its message when the cut was chosen."""
    tokens: int
    """Tokens that the model's answer may have."""
    window: int | None
    """Context window of the model of the conversation, in tokens."""
    summarizer_window: int | None
    """Context window of the model that summarizes, in tokens."""
    chars_per_token: float


@dataclass(frozen=True, slots=True)
class Question:
    """What to ask the model."""

    messages: list[dict[str, str]]
    """A ready prompt as OpenAI-style messages."""
    max_tokens: int
    """Tokens that the answer may have."""
    is_native: bool = False
    """Whether the prompt goes to the end of the conversation itself, and has no transcript."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model said."""

    text: str
    finish: str | None = None
    """The provider's reason for the end."""
    refused: bool = False
    """Whether the provider reported a refusal."""
    called_tool: bool = False
    """Whether it is a call of a tool."""


Writing = Generator[Question, Answer | None, tuple[Summary, list[str]]]
"""Is sent ``None`` where the question was too long for the model; returns the summary, and what the
checks removed from it."""


def write(
    head: Head,
    sizes: Sizes,
    *,
    template: str | None = None,
    redact: Callable[[str], str] | None = None,
    native: bool = False,
) -> Writing:
    """Write a summary with a model. Raises ``NoSummaryError`` where none of its answers is one.

    Args:
        head: What is summarised.
        sizes: How large the summary may be.
        template: The caller's own prompt, instead of the built-in one.
        redact: Applied to the answers.
        native: Whether to ask first at the end of the conversation itself, so that the provider's
            prompt cache pays for the head.
    """
    if not head.parts:
        raise NoSummaryError("nothing can be read in the head")
    return _Writer(head, sizes, template, redact).write(native=native)


def quote(head: Head, room: int, most: int) -> Summary:
    """Return a summary without a model, in at most ``most`` characters. Raises ``NoSummaryError``
    where there is no room for one.

    ``room`` is what a summary may have, of which rules get their share.
    """
    budget = min(room, most)
    if budget <= 0:
        raise NoSummaryError("there is no room for a summary")
    prior = head.prior
    # A model's earlier words stay as they are where they leave room for what came since.
    story = prior.story if 2 * len(prior.story) <= budget else ""
    before = prior.quoted if story else f"{prior.story}\n{prior.quoted}".strip()
    lines = head.rules(budget)
    left = budget - sum(len(line) + 1 for line in lines) - len(story)
    quoted = head.quote(left, before, lines)
    if not (quoted or story or lines):
        raise NoSummaryError("nothing can be read in the head")
    return Summary(story, lines, (), quoted)


class _Writer:
    """One summary in the making."""

    def __init__(
        self,
        head: Head,
        sizes: Sizes,
        template: str | None,
        redact: Callable[[str], str] | None,
    ) -> None:
        self.dropped: list[str] = []
        """What the checks removed."""
        self._head = head
        self._sizes = sizes
        self._template = template
        self._redact = redact
        # What is known before the model is asked: the prior summary, and the rules that code finds.
        self._so_far = replace(head.prior, rules=head.rules(sizes.room), notes=())
        self._is_small = sizes.window in _SMALL_WINDOWS
        self._is_whole = True
        self._transcript = prompt.render(head.parts)

    def write(self, *, native: bool) -> Writing:
        """Update the summary so far with all of the head, and return it with what was dropped.

        A chunk of which the model makes nothing is left to the quoted lines, unless it is the only
        one.
        """
        parts = self._head.parts
        budget, tokens = self._measure(len(self._transcript) - prompt.FENCE_SIZE)
        if native and budget is None and (yield from self._ask_natively(tokens)):
            return self.fill(), self.dropped
        pending = [parts] if budget is None else list(prompt.chunks(parts, budget))
        is_written = False
        fault = ""
        while pending:
            chunk = pending[0]
            transcript = self._transcript if chunk is parts else prompt.render(chunk)
            failure = yield from self._update(chunk, transcript, tokens)
            if failure is None:
                half = (len(transcript) - prompt.FENCE_SIZE) // 2
                if half < SMALLEST_CHUNK:
                    raise NoSummaryError("the request for a summary is too long for the summarizer")
                rest = [part for chunk in pending for part in chunk]
                pending = list(prompt.chunks(rest, half))
                continue
            pending.pop(0)
            # A copy of the earlier summary is one, though it tells nothing of this chunk.
            is_written = is_written or failure in ("", _COPIED)
            if failure:
                fault = failure
                self._is_whole = False
                self.dropped.append(failure)
        if not is_written:
            raise NoSummaryError(f"the summary was refused: {fault}")
        return self.fill(), self.dropped

    def fill(self) -> Summary:
        """Return the model's summary, and in what it leaves of its room lines that a summary
        without a model would quote.

        So the room buys as much as without a model, however little that one says. Where a small one
        said nothing about a chunk, the lines may take all the room that the summary was planned
        with. In a larger window they would bring the next compaction closer: 22 summaries in place
        of 16 for 200 turns in a window of 8,000 tokens.
        """
        sizes = self._sizes
        summary = replace(self._so_far, quoted="")
        most = sizes.filled
        if self._is_small and not self._is_whole:
            most = max(most, sizes.planned - FRAME)
        left = min(sizes.room, most) - len(summary.text)
        if left < _WORTH_FILLING:
            return summary
        return replace(
            summary, quoted=self._head.quote(left, self._so_far.quoted, self._so_far.rules)
        )

    def _measure(self, whole: int) -> tuple[int | None, int]:
        """Return the characters of transcript that one prompt may hold (``None``: all of it), and
        the tokens that a summary may have. ``whole`` is the size of all of it, in characters.

        One prompt for all of it where that leaves the answer a twelfth of the window; all of it
        where no window is known.
        """
        sizes = self._sizes
        tokens = sizes.tokens
        window = sizes.summarizer_window or sizes.window
        if window is None:
            return None, tokens
        empty = prompt.build("", prior=self._known, template=self._template, max_tokens=tokens)
        frame = len(empty[0]["content"])
        usable = int(window * _PROMPT_MARGIN)
        left = usable - int((whole + frame) / sizes.chars_per_token)
        if left >= min(tokens, window // _LEAST_ANSWER):
            return None, min(tokens, left)
        most = max(SMALLEST_CHUNK, int((usable - tokens) * sizes.chars_per_token) - frame)
        parts = -(-whole // most)
        # Chunks of one size: a tiny last one would cost a request of its own for next to nothing.
        return min(most, whole // parts + most // 8), tokens

    @property
    def _known(self) -> str:
        """What a model gets to read of the summary so far: quoted lines only where there is no
        story.
        """
        summary = self._so_far
        return "\n".join([*summary.rules, summary.story or summary.quoted]).strip()

    def _ask_natively(self, tokens: int) -> Generator[Question, Answer | None, bool]:
        """Ask at the end of the conversation, and return whether that gave a summary."""
        asked = prompt.instruction(
            prior=bool(self._so_far.story), template=self._template, max_tokens=tokens
        )
        question = Question([{"role": "user", "content": asked}], tokens, is_native=True)
        answer = yield question
        if answer is None:
            return False
        text, fault = self._judge(answer, self._head.parts)
        if fault:
            return False
        self._take_over(text, self._head.parts)
        return True

    def _update(
        self, chunk: Sequence[Part], transcript: str, tokens: int
    ) -> Generator[Question, Answer | None, str | None]:
        """Ask for the summary so far, updated with one chunk. Return what is wrong with both
        answers, an empty text where one is used, ``None`` where the question is too long.

        The second time it is asked in few words and for fewer: the first answer may have been cut
        off or confused.
        """
        # The words of a small model get half of the room: quoted lines say more in the other half.
        words = tokens // 2 if self._is_small else tokens
        fault = ""
        for short, most in ((None, words), (True, words // 2)):
            messages = prompt.build(
                transcript,
                prior=self._known,
                template=self._template,
                max_tokens=most,
                short=short,
            )
            answer = yield Question(messages, tokens)
            if answer is None:
                return None
            text, fault = self._judge(answer, chunk)
            if not fault:
                self._take_over(text, chunk)
                return ""
            # A model that says the same again would do so a third time.
            if fault == _COPIED:
                self._renew(chunk)
                break
        return fault

    def _judge(self, answer: Answer, chunk: Sequence[Part]) -> tuple[str, str]:
        """Return the text of an answer, and what is wrong with it: an empty text if nothing is."""
        so_far = self._so_far
        text = checks.clean(answer.text)
        fault = checks.fault(
            text,
            entries=chunk,
            limit=self._sizes.head - FRAME - sum(map(len, so_far.rules)),
            finish=answer.finish,
            refused=answer.refused,
            called_tool=answer.called_tool,
            told=self._known if self._is_small else None,
        )
        if fault:
            return text, fault
        if self._redact is not None:
            text = self._redact(text)
        if checks.copies(text, so_far.story, chunk):
            return text, _COPIED
        if len(so_far.story) >= _LOSABLE and len(text) * _SHRINKS < len(so_far.story):
            return text, "the summary lost the earlier one"
        return text, ""

    def _take_over(self, text: str, chunk: Sequence[Part]) -> None:
        """Make the text of an answer the summary so far: what a chunk bears out of it."""
        so_far = self._so_far
        own = self._head.own_of(chunk)
        items = sections.parse(text)
        before = sections.parse(so_far.story)
        if items is None and before is None:
            self._keep(sections.mark(text, own), so_far.rules)
            return
        checked = sections.check(
            items or {"facts": tuple(text.splitlines())},
            own,
            prior=before or {"task": (so_far.story,)},
            rules=so_far.rules,
            rule_room=max(0, self._sizes.room // _RULE_SHARE),
            work=self._head.work,
        )
        self.dropped += checked.dropped
        self._keep(sections.render(checked.sections), checked.rules)

    def _renew(self, chunk: Sequence[Part]) -> None:
        """Check the earlier sections against a chunk: it may have settled what they call open."""
        story = self._so_far.story
        if sections.parse(story) is not None:
            self._take_over(story, chunk)

    def _keep(self, story: str, rules: tuple[str, ...]) -> None:
        """Keep a story and rules as the summary so far."""
        most = int(_LONGER * self._sizes.planned)
        # It was asked for half of the room, which small models do not heed. Sections are checked
        # line by line, and keep what was said last of each.
        half = max(self._sizes.filled // 2, _WORTH_FILLING)
        if self._is_small and len(story) > half and sections.parse(story) is None:
            most = min(most, half)
        if len(story) > most:
            story = sections.shortened(story, most)
        self._so_far = replace(self._so_far, story=story, rules=rules)
