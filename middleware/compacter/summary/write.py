"""Write a summary: with a model, whose answers are checked and traced, or with kept lines alone.

``Writer.write`` is a generator: it yields what asks the model, and is sent the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from compacter.messages.replies import Reply
from compacter.overflow import TokenLimit
from compacter.summary import checks, kept, prompt, sections, trace
from compacter.summary import rules as standing
from compacter.summary.head import Head
from compacter.summary.message import FRAME, NoSummaryError, Summary
from compacter.summary.sources import SOURCES, Source, story
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
_RAISED = "the summarizer raised "
_TOO_LONG = "the request for a summary is too long for the summarizer"


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
    items = {key: list(each) for key, each in sections.parse(text).items()}
    left = size - sum(len(item) + 3 for each in items.values() for item in each)
    left -= _HEADING * len(items)
    while left < 0 and items:
        longest = max(items, key=lambda key: len(items[key]))
        each = items[longest]
        left += len(each.pop(0 if longest else len(each) // 2)) + 3
        if not each:
            del items[longest]
            left += _HEADING
    return sections.render(items) or clip(text, size)


@dataclass(slots=True, kw_only=True)
class Writer:
    """A summary that a model writes, and what an event tells of how it was made."""

    head: Head
    """What is summarised."""
    ask: Callable[..., Any]
    """Makes what is yielded to ask the model: of a prompt as OpenAI-style messages, the tokens that
    the answer may have, and the messages to whose end the prompt goes in place of a transcript."""
    prefix: Sequence[Any] | None
    """The conversation's own messages, at whose end to ask first, so that the provider's prompt
    cache pays for the head."""
    detect: Callable[[Exception], TokenLimit | None]
    """Says whether an exception of ``ask`` is that the prompt was too long."""
    size: int
    """Characters of the messages that it replaces."""
    room: int
    """Characters that its text may have, all in all."""
    lines: int
    """Characters of it that kept lines may have."""
    tokens: int
    """Tokens that the model's answer may have."""
    window: int | None
    """Context window of the model, in tokens."""
    chars_per_token: float
    fills: bool = False
    """Whether lines fill all of the room: a budget that was given by hand is to be used."""
    template: str | None = None
    """The caller's own prompt, instead of the built-in one."""
    redact: Callable[[str], str] | None = None
    """Applied to the answers."""
    unsupported: list[str] = field(default_factory=list)
    """Lines of the model's that nobody said."""
    chunks: int = 0
    """Pieces in which the head was given to the model."""
    chunks_without_model: int = 0
    """Those that quoted lines stand for."""
    _story: str = ""
    _rules: tuple[str, ...] = ()
    _quoted_rules: set[str] = field(default_factory=set)
    _cause: Exception | None = None
    _limit: TokenLimit | None = None
    _is_traced: bool = False

    def write(self) -> Generator[Any, Any, Summary]:
        """Update the summary so far with all of the head. Raises ``NoSummaryError`` where none of
        the model's answers is a summary.

        A chunk of which the model makes nothing is left to quoted lines, unless it is the only one.
        """
        self._story = self.head.prior.story
        self._rules = standing.rules(self.head, self.room)
        transcript = prompt.lines(self.head.parts)
        most, tokens = self._measure(sum(len(line) + 1 for line in transcript))
        pending = prompt.chunks(transcript, most)
        native = self.prefix is not None and len(pending) == 1
        has_story = False
        faults = 0
        fault = ""
        while pending:
            chunk = pending.pop(0)
            self._is_traced = False
            if faults < _MOST_FAULTS:
                # The second time few words are asked for: the first answer may have been cut off.
                short = bool(faults) and not has_story
                fault = yield from self._try(chunk, tokens, short=short, native=native)
                if fault and native:  # Whatever it fails at, the transcript is another request.
                    native = False
                    pending = [chunk]
                    continue
                faults = faults + 1 if fault else 0
                if fault.startswith(_RAISED) and not has_story:
                    raise NoSummaryError(fault, self._cause)
                if fault and faults < _MOST_FAULTS:
                    size = self._smaller(chunk)
                    if size >= prompt.SMALLEST_CHUNK:
                        pending = prompt.chunks(chain(chunk, *pending), size)
                        continue
                    if not has_story:
                        pending.insert(0, chunk)
                        continue
                has_story |= not fault
            self.chunks += 1
            self.chunks_without_model += not self._is_traced
        if not has_story:
            raise NoSummaryError(f"the summary was refused: {fault}", self._cause)
        return self._finish()

    def _finish(self) -> Summary:
        """Return the model's summary with kept lines beside it."""
        rules = self._rules
        if self._quoted_rules:
            rules = standing.rules(self.head, self.room, self._quoted_rules)
        is_lacking = self.fills or self.chunks_without_model or not self._story
        sources = (*SOURCES, story) if is_lacking else SOURCES
        summary = _compose(self.head, self._story, rules, self.room, self.lines, sources)
        if not summary.prose:
            raise NoSummaryError("the summary says nothing that somebody has said", self._cause)
        return summary

    def _measure(self, whole: int) -> tuple[int, int]:
        """Return the characters of transcript that one prompt may hold, and the tokens that a
        summary may have. ``whole`` is the size of all of it, in characters.

        One prompt for all of it where that leaves the answer enough of the window; all of it
        where no window is known.
        """
        tokens = self.tokens
        all_of_it = whole + prompt.FENCE_SIZE
        if self.window is None:
            return all_of_it, tokens
        most = self._room(self.window)
        left = tokens + int((most - whole) / self.chars_per_token)
        if left >= min(tokens // _STORY_PART, self.window // _LEAST_ANSWER):
            return all_of_it, min(tokens, left)
        # Chunks of one size: a tiny last one would cost a request of its own for next to nothing.
        return min(most, whole // -(-whole // most) + most // 8), tokens

    def _room(self, window: int) -> int:
        """Return the characters of transcript in a request that leaves the answer its tokens."""
        frame = len(self._prompt((), self.tokens)) - prompt.FENCE_SIZE
        left = (int(window * _PROMPT_MARGIN) - self.tokens) * self.chars_per_token
        return max(prompt.SMALLEST_CHUNK, int(left) - frame)

    def _smaller(self, chunk: Iterable[str]) -> int:
        """Return the characters that are tried after a chunk was too long; 0 if it was not."""
        size = sum(map(len, chunk))
        if self._limit is None:
            return 0
        limit = self._limit.limit
        return min(self._room(limit), size // 2) if limit else size // _CUT

    def _prompt(
        self, chunk: Iterable[str], tokens: int, *, short: bool = False, native: bool = False
    ) -> str:
        # Kept lines have the other part of the room.
        most = min(tokens, self.tokens // (2 * _STORY_PART if short else _STORY_PART))
        # What a model reads of the summary so far: quoted lines only without a story. At the end of
        # the conversation itself it has read it.
        known = self._story or self.head.prior.quoted
        return prompt.build(
            None if native else chunk,
            prior=self._story if native else "\n".join([*self._rules, known]),
            template=self.template,
            max_tokens=most,
            short=short,
        )

    def _try(
        self, chunk: Iterable[str], tokens: int, *, short: bool, native: bool
    ) -> Generator[Any, Any, str]:
        """Ask once. Return what is wrong with the answer; an empty text if nothing is."""
        self._limit = None
        asked = self._prompt(chunk, tokens, short=short, native=native)
        try:
            reply = yield self.ask(
                [{"role": "user", "content": asked}], tokens, self.prefix if native else None
            )
        except Exception as error:  # noqa: BLE001 - ``write`` decides what becomes of the rest
            self._cause = error
            self._limit = self.detect(error)
            return _TOO_LONG if self._limit else _RAISED + type(error).__name__
        return self._judge(reply)

    def _judge(self, reply: Reply) -> str:
        """Make an answer the story so far, as far as the conversation bears it out. Return what is
        wrong with it.
        """
        text = checks.clean(reply.text)
        fault = checks.fault(
            replace(reply, text=text), self.size - FRAME - sum(map(len, self._rules))
        )
        if fault:
            return fault
        if self.redact is not None:
            text = self.redact(text)
        story = self._story
        if len(story) >= _LOSABLE and len(text) * _SHRINKS < len(story):
            return "the summary lost the earlier one"
        checked = trace.check(self.head, text, story, self._rules)
        self._quoted_rules |= checked.quoted
        self.unsupported += checked.unsupported
        self._is_traced = bool(checked.story)
        self._story = checked.story or story
        return ""
