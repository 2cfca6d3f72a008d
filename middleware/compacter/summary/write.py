"""Write a summary: with a model, whose answers are checked and traced, or with kept lines alone.

``write`` is a generator: it yields what to ask the model, and is sent the answers. So it is tested
as a conversation, and asks nobody itself.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from compacter.summary import checks, kept, prompt, sections, trace
from compacter.summary import rules as standing
from compacter.summary.head import Head
from compacter.summary.message import FRAME, NoSummaryError, Summary
from compacter.summary.sources import SOURCES, Source, story
from compacter.text.sentences import sentences
from compacter.text.words import clip

# Share of the summarizer's window that a prompt may fill: the size in tokens is an estimate.
_PROMPT_MARGIN = 0.92
# A prompt that leaves less than this part of the window for the answer is split: of 4,096 tokens
# 170, enough for 100 of the 150 words that are asked for otherwise. With a second request people
# wait twice as long.
_LEAST_ANSWER = 24
# Part of a summary that the model's words get; kept lines have the rest, and each what the other
# leaves.
_STORY_PART = 2
# Characters that the heading of a section takes.
_HEADING = 16
# Part of a chunk that is tried after one was too long, where the refusal has no numbers.
_CUT = 4
# Characters from which on an earlier story is too long to be replaced by a sentence or two.
_LOSABLE = 400
# An answer shorter than this part of the earlier story has lost it: people do not take back three
# quarters of what they settled.
_SHRINKS = 4
# Answers in a row that are no summary, after which a model is asked no more in this compaction.
_MOST_FAULTS = 2
_TOO_LONG = "the request for a summary is too long for the summarizer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How large a summary may be, and its requests."""

    head: int
    """Characters of the messages that it replaces."""
    room: int
    """Characters that its text may have, all in all."""
    lines: int
    """Characters of it that kept lines may have."""
    tokens: int
    """Tokens that the model's answer may have."""
    window: int | None
    """Context window of the model that summarizes, in tokens."""
    chars_per_token: float
    fills: bool = False
    """Whether lines fill all of the room: a budget that was given by hand is to be used."""


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

    text: str = ""
    finish: str | None = None
    """The provider's reason for the end."""
    refused: bool = False
    """Whether the provider reported a refusal."""
    called_tool: bool = False
    """Whether it is a call of a tool."""
    raised: str = ""
    """What the summarizer raised in place of an answer."""
    is_too_long: bool = False
    """Whether the question was too long for the model."""
    limit: int | None = None
    """Tokens that the model takes, where its refusal says so."""


@dataclass(slots=True)
class Written:
    """A summary, and what an event tells of how it was made."""

    summary: Summary = field(default_factory=Summary)
    unsupported: list[str] = field(default_factory=list)
    """Lines of the model's that nobody said."""
    chunks: int = 0
    """Pieces in which the head was given to the model."""
    chunks_without_model: int = 0
    """Those that quoted lines stand for."""


Writing = Generator[Question, Answer, Written]


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


def quote(head: Head, room: int) -> Summary:
    """Return a summary without a model, in at most ``room`` characters. Raises ``NoSummaryError``
    where there is no room for one.
    """
    summary = _compose(
        head, head.prior.story, standing.rules(head, room), room, room, (*SOURCES, story)
    )
    if not summary.prose:
        raise NoSummaryError(
            "there is no room for a summary" if room < FRAME else "nothing can be read in the head"
        )
    return summary


def _compose(
    head: Head, text: str, rules: tuple[str, ...], room: int, most: int, sources: Sequence[Source]
) -> Summary:
    """Return a model's story with kept lines beside it, in one budget of ``room`` characters, of
    which the lines have at most ``most``.
    """
    left = room - sum(len(line) + 1 for line in rules)
    # A model's words stay as they are where they leave room for what came since.
    most = min(most, left - min(len(text), left // _STORY_PART))
    quoted = kept.keep(head, most, rules, sources=sources)
    return Summary(shortened(text, left - len(quoted)), rules, (), quoted)


def shortened(text: str, size: int) -> str:
    """Return a story in at most ``size`` characters: of each section the newest items, of prose its
    beginning and its end. What is not empty stays so while there is any room.
    """
    if len(text) <= max(0, size):
        return text
    parsed = sections.parse(text) or {"": sentences(text)}
    items = {key: list(each) for key, each in parsed.items()}
    left = size - sum(len(item) + 3 for each in items.values() for item in each)
    left -= _HEADING * len(items)
    while left < 0 and items:
        longest = max(items, key=lambda key: len(items[key]))
        each = items[longest]
        left += len(each.pop(0 if longest else len(each) // 2)) + 3
        if not each:
            del items[longest]
            left += _HEADING
    return "\n".join(items.get("", ())) or sections.render(items) or clip(text, size)


class _Writer:
    """One summary in the making."""

    def __init__(
        self,
        head: Head,
        sizes: Sizes,
        template: str | None,
        redact: Callable[[str], str] | None,
    ) -> None:
        self._head = head
        self._sizes = sizes
        self._template = template
        self._redact = redact
        self._story = head.prior.story
        self._rules = standing.rules(head, sizes.room)
        self._quoted_rules = set[str]()
        self._written = Written()
        # Whether somebody has said something of the last answer.
        self._is_traced = False

    def write(self, *, native: bool) -> Writing:
        """Update the summary so far with all of the head.

        A chunk of which the model makes nothing is left to quoted lines, unless it is the only one.
        """
        written = self._written
        transcript = prompt.lines(self._head.parts)
        most, tokens = self._measure(sum(len(line) + 1 for line in transcript))
        pending = [transcript] if most is None else prompt.chunks(transcript, most)
        native = native and most is None
        has_story = False
        faults = 0
        fault = ""
        while pending:
            chunk = pending.pop(0)
            if faults < _MOST_FAULTS:
                # The second time few words are asked for: the first answer may have been cut off.
                short = bool(faults) and not has_story
                answer = yield self._question(chunk, tokens, short=short, native=native)
                fault = self._judge(answer)
                if fault and native:
                    native = False
                    pending = [chunk]
                    continue
                faults = faults + 1 if fault else 0
                if answer.raised and not has_story:
                    raise NoSummaryError(f"the summarizer raised {answer.raised}")
                if fault and faults < _MOST_FAULTS and not answer.raised:
                    size = sum(map(len, chunk))
                    limit = answer.limit
                    size = min(self._room(limit), size // 2) if limit else size // _CUT
                    if fault == _TOO_LONG and size >= prompt.SMALLEST_CHUNK:
                        pending = prompt.chunks(chain(chunk, *pending), size)
                        continue
                    if not has_story:
                        pending.insert(0, chunk)
                        continue
                has_story = has_story or not fault
            written.chunks += 1
            written.chunks_without_model += bool(fault) or not self._is_traced
        if not has_story:
            raise NoSummaryError(f"the summary was refused: {fault}")
        return self._finish()

    def _finish(self) -> Written:
        """Return the model's summary with kept lines beside it."""
        written = self._written
        sizes = self._sizes
        rules = self._rules
        if self._quoted_rules:
            rules = standing.rules(self._head, sizes.room, self._quoted_rules)
        is_lacking = sizes.fills or written.chunks_without_model or not self._story
        sources = (*SOURCES, story) if is_lacking else SOURCES
        summary = _compose(self._head, self._story, rules, sizes.room, sizes.lines, sources)
        if not summary.prose:
            raise NoSummaryError("the summary says nothing that somebody has said")
        written.summary = summary
        return written

    def _measure(self, whole: int) -> tuple[int | None, int]:
        """Return the characters of transcript that one prompt may hold (``None``: all of it), and
        the tokens that a summary may have. ``whole`` is the size of all of it, in characters.

        One prompt for all of it where that leaves the answer enough of the window; all of it
        where no window is known.
        """
        tokens = self._sizes.tokens
        window = self._sizes.window
        if window is None:
            return None, tokens
        most = self._room(window)
        left = tokens + int((most - whole) / self._sizes.chars_per_token)
        if left >= min(tokens // _STORY_PART, window // _LEAST_ANSWER):
            return None, min(tokens, left)
        # Chunks of one size: a tiny last one would cost a request of its own for next to nothing.
        return min(most, whole // -(-whole // most) + most // 8), tokens

    def _room(self, window: int) -> int:
        """Return the characters of transcript in a request that leaves the answer its tokens."""
        tokens = self._sizes.tokens
        frame = len(self._question((), tokens).messages[0]["content"]) - prompt.FENCE_SIZE
        left = (int(window * _PROMPT_MARGIN) - tokens) * self._sizes.chars_per_token
        return max(prompt.SMALLEST_CHUNK, int(left) - frame)

    def _question(
        self, chunk: Iterable[str], tokens: int, *, short: bool = False, native: bool = False
    ) -> Question:
        # Kept lines have the other part of the room.
        most = min(tokens, self._sizes.tokens // (2 * _STORY_PART if short else _STORY_PART))
        if native:
            text = prompt.instruction(
                prior=bool(self._story), template=self._template, max_tokens=most
            )
        else:
            # What a model reads of the summary so far: quoted lines only without a story.
            known = "\n".join([*self._rules, self._story or self._head.prior.quoted])
            text = prompt.build(
                prompt.render(chunk),
                prior=known,
                template=self._template,
                max_tokens=most,
                short=short or None,
            )
        return Question([{"role": "user", "content": text}], tokens, is_native=native)

    def _judge(self, answer: Answer) -> str:
        """Make an answer the story so far, as far as the conversation bears it out. Return what is
        wrong with it; an empty text if nothing is.
        """
        if answer.is_too_long:
            return _TOO_LONG
        if answer.raised:
            return f"the summarizer raised {answer.raised}"
        text = checks.clean(answer.text)
        fault = checks.fault(
            text,
            limit=self._sizes.head - FRAME - sum(map(len, self._rules)),
            finish=answer.finish,
            refused=answer.refused,
            called_tool=answer.called_tool,
        )
        if fault:
            return fault
        if self._redact is not None:
            text = self._redact(text)
        story = self._story
        if len(story) >= _LOSABLE and len(text) * _SHRINKS < len(story):
            return "the summary lost the earlier one"
        checked = trace.check(self._head, text, story, self._rules)
        self._written.unsupported += checked.unsupported
        self._quoted_rules |= checked.quoted
        self._is_traced = bool(checked.story)
        self._story = checked.story or story
        return ""
