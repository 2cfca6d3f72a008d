"""Write a summary: with a model, whose text is not changed, or with kept lines alone.

``Writer.write`` is a generator: it yields what asks the model, and is sent the reply.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from compacter.effects import Ask
from compacter.lines.head import Head
from compacter.lines.keep import keep
from compacter.lines.read import clip
from compacter.lines.words import identifiers
from compacter.messages.replies import Reply
from compacter.overflow import TokenLimit
from compacter.summary import gate, prompt
from compacter.summary.message import FRAME, NoSummaryError, Summary

# Share of the summarizer's window that a prompt may fill: the size in tokens is an estimate.
_PROMPT_MARGIN = 0.92
# A prompt that leaves less than this part of the window for the answer is split: of 4,096 tokens
# 170, enough for 100 of the 150 words that are asked for otherwise. With a second request people
# wait twice as long.
_LEAST_ANSWER = 24
# Where the head goes to the model in pieces, the summary so far takes at most this part of the
# model's window, and leaves room for a piece.
_OF_WINDOW = 5
# Times the tokens that a try may spend after one that spent them: a model that reasons has used
# them up (measured: 1,100 tokens of reasoning before a summary of 90).
_MORE_ROOM = 4
# An answer shorter than this part of the earlier text does not replace that text: both are kept.
_SHRINKS = 4
# After the model has failed at this many pieces in a row, it is not asked again in this compaction.
_MOST_LOST = 2
# Part of the room that lines have beside the longest text of a model.
_LEAST_LINES = 6
_NUMBER = re.compile(r"\d[\d.,]+\d")
_RAISED = "the summarizer raised "
_TOO_LONG = "the request for a summary is too long for the summarizer"


def quote(head: Head, room: int) -> Summary:
    """Return a summary without a model, in at most ``room`` characters. Raises ``NoSummaryError``
    if there is no room.
    """
    text = clip(head.prior.story, room - room // _LEAST_LINES)
    summary = Summary(text, quoted=keep(head, room - len(text), with_story=True))
    if not summary.prose:
        raise NoSummaryError(
            "there is no room for a summary" if room < FRAME else "nothing can be read in the head"
        )
    return summary


@dataclass(slots=True, kw_only=True)
class Writer:
    """Writes a summary with a model, and collects the facts about it that an event reports."""

    head: Head
    """The texts to summarize."""
    prefix: Sequence[Any] | None
    """The conversation's own messages, at whose end to ask first, so that the provider's prompt
    cache pays for the head."""
    detect: Callable[[Exception], TokenLimit | None]
    """Returns the token limit in an exception of ``Ask``, if the prompt was too long."""
    size: int
    """Characters of the messages that it replaces."""
    room: int
    """Characters that the model's text and the lines beside it may have."""
    insisted: int
    """Characters of a text that is not cut if the model, asked once more, does not shorten it."""
    lines: int
    """Characters of it that lines may have."""
    space: int
    """Largest size of all, in characters, for the longest text."""
    tokens: int
    """Tokens that the model's text may have."""
    window: int | None
    """Context window of the model, in tokens."""
    chars_per_token: float
    fills: bool = False
    """Whether lines fill all of the room: a budget that was given by hand is to be used."""
    template: str | None = None
    """The caller's own prompt, instead of the built-in one."""
    focus: str = ""
    """Topics that the summary must not lose, in the caller's words."""
    redact: Callable[[str], str] | None = None
    """Applied to the answers."""
    chunks: int = 0
    """Pieces in which the head was given to the model."""
    chunks_without_model: int = 0
    """Number of those pieces that quoted lines replace."""
    _story: str = ""
    _cause: Exception | None = None
    _most_piece: float = inf
    """Characters of a piece, after one was too long."""
    _bytes_of_one: float = 1.0
    _times: int = 1
    """Times the tokens of the text that an answer may spend."""

    def write(self) -> Generator[Ask, Any, Summary]:
        """Let the model summarize all messages of the head, in pieces if they are too long for one
        request. Raises ``NoSummaryError`` if no answer of the model is a summary. If the model
        fails twice at a piece, quoted lines replace this piece, unless it is the first. If this
        happens with two pieces in a row, quoted lines replace all later pieces too.
        """
        self._story = self.head.prior.story
        rest = prompt.lines(self.head.parts)
        text = "".join(part.text for part in self.head.parts)
        self._bytes_of_one = _bytes(text) / max(1, len(text)) or 1.0
        lost = 0
        while rest and lost < _MOST_LOST:
            pieces = self._split(rest)
            fault = yield from self._update(pieces)
            if fault == _TOO_LONG and self._most_piece >= prompt.SMALLEST_CHUNK:
                continue
            if fault and self.chunks == self.chunks_without_model:
                reason = fault if fault.startswith(_RAISED) else f"the summary was refused: {fault}"
                raise NoSummaryError(reason, self._cause)
            lost = lost + 1 if fault else 0
            self.chunks += 1
            self.chunks_without_model += bool(fault)
            rest = [line for piece in pieces[1:] for line in piece]
        if rest:
            left = len(self._split(rest))
            self.chunks += left
            self.chunks_without_model += left
        if self._weigh(self._story) > self.room:
            yield from self._try((), short=True)
            self._cut(self.insisted)
        return self._with_lines()

    def _with_lines(self) -> Summary:
        """Return the summary with lines beside the model's text."""
        is_lacking = bool(self.fills or self.chunks_without_model)
        size = self._weigh(self._story)
        left = self.room - size
        # The longest text leaves some room for lines, if there is any.
        lines = max(self.room // _LEAST_LINES, left if is_lacking else min(self.lines, left))
        lines = min(lines, self.space - size)
        return Summary(self._story, quoted=keep(self.head, lines, with_story=is_lacking))

    def unverified(self) -> tuple[str, ...]:
        """Return the identifiers, and the numbers of three digits and more, in the model's text
        that the conversation does not have.
        """
        said = [part.text for part in self.head.parts]
        known = "\n".join((*said, self.head.view_text, self.head.prior.text))
        numbers = (number.strip(".,") for number in _NUMBER.findall(self._story))
        stated = dict.fromkeys((*identifiers(self._story), *numbers))
        return tuple(each for each in stated if each not in known)

    # -- sizes -------------------------------------------------------------------------------------

    def _split(self, transcript: Sequence[str]) -> list[list[str]]:
        """Return the transcript in pieces that fit into the window with the summary so far and the
        answer. It is one piece if that leaves the answer enough of the window, or if the window is
        unknown.
        """
        whole = _size(transcript)
        most = min(whole, self._most_piece)
        self._cut(self._most_piece)
        if self.window and self._left(whole) < self._least():
            part = self.window // _OF_WINDOW
            self.tokens = min(self.tokens, part)
            self._cut(part * self.chars_per_token)
            spent = min(self.tokens * self._times, max(self.tokens, self.window // 2))
            left = (self._left(0) - spent) * self.chars_per_token
            most = max(prompt.SMALLEST_CHUNK, min(most, left))
            # Make pieces of equal size: a tiny last piece would cost a whole request.
            most = min(most, whole // -(-whole // most) + most // 8)
        return prompt.chunks(transcript, int(most))

    def _least(self) -> int:
        """Return the fewest tokens that an answer needs."""
        if self._times > 1:
            return 2 * self.tokens
        return min(self.tokens // 2, (self.window or 0) // _LEAST_ANSWER)

    def _left(self, size: int) -> int:
        """Return the tokens of the window that a transcript of ``size`` characters leaves."""
        frame = len(self._prompt((), self._prior())) - prompt.FENCE_SIZE
        room = int((self.window or 0) * _PROMPT_MARGIN)
        return room - int((size + frame) / self.chars_per_token)

    def _weigh(self, text: str) -> int:
        """Return the size of a text in characters of the head's script: an English summary of a
        Chinese talk has more characters, each of which costs a third.
        """
        return int(_bytes(text) / self._bytes_of_one)

    def _cut(self, size: float) -> None:
        """Cut a longer text, and keep its beginning."""
        if (weight := self._weigh(self._story)) > size:
            self._story = clip(self._story, int(size * len(self._story) / weight))

    # -- requests ----------------------------------------------------------------------------------

    def _prior(self) -> str:
        """Return the summary so far for the model: its text, else the quoted lines. If the request
        follows the conversation itself, the model has read the lines.
        """
        return self._story or ("" if self.prefix else self.head.prior.quoted)

    def _prompt(self, piece: Sequence[str] | None, prior: str, *, short: bool = False) -> str:
        return prompt.build(
            piece,
            prior=prior,
            template=self.template,
            # Models write more than they are asked for; the second time the first answer may have
            # been cut off.
            max_tokens=self.tokens // (4 if short else 2),
            short=short,
            focus=self.focus,
        )

    def _update(self, pieces: Sequence[Sequence[str]]) -> Generator[Ask, Any, str]:
        """Ask for a summary of the first piece. If the answer is not a summary, ask once more for
        fewer words. Return the fault of the answer, or an empty text.
        """
        if len(pieces) > 1:
            self.prefix = None
        if self.prefix:
            fault = yield from self._try(pieces[0])
            self.prefix = None  # If that fails, try with the transcript.
            if not fault:
                return fault
        fault = yield from self._try(pieces[0], len(pieces))
        if fault in gate.NEED_ROOM and self._times == 1:
            self._times = _MORE_ROOM
            if self.window and self._left(_size(pieces[0])) < self._least():
                return _TOO_LONG  # Smaller pieces leave the room.
        if fault and fault != _TOO_LONG and not fault.startswith(_RAISED):
            fault = yield from self._try(pieces[0], len(pieces), short=True)
        return fault

    def _try(
        self, piece: Sequence[str], left: int = 1, *, short: bool = False
    ) -> Generator[Ask, Any, str]:
        """Ask once for a summary of ``piece``, the first of ``left`` pieces; without a piece, for a
        shorter text. Return the fault of the answer, or an empty text.
        """
        tokens = self.tokens * self._times
        if self.window:
            tokens = min(tokens, max(self._left(_size(piece)), self._least()))
        asked = self._prompt(None if self.prefix else piece, self._prior(), short=short)
        number, count = (self.chunks + 1, self.chunks + left) if piece else (1, 1)
        try:
            reply: Reply = yield Ask(
                [{"role": "user", "content": asked}], tokens, self.prefix, number, count
            )
        except Exception as error:  # noqa: BLE001 - ``write`` decides what becomes of the rest
            self._cause = error
            refused = self.detect(error)
            if not refused:
                return _RAISED + type(error).__name__
            self.window = refused.limit or self.window
            self._most_piece = _size(piece) // 2
            return _TOO_LONG
        reply = replace(reply, text=gate.clean(reply.text))
        fault = self._judge(reply, piece, self._prompt((), "", short=short))
        if not fault:
            text = (self.redact or str)(reply.text)
            # A text that is so much shorter does not replace the earlier text.
            if piece and len(text) * _SHRINKS < len(self._story):
                text = f"{self._story}\n\n{text}"
            self._story = text
        return fault

    def _judge(self, reply: Reply, piece: Sequence[str], instruction: str) -> str:
        """Return the fault of an answer for ``piece`` and the earlier text, or an empty text."""
        most = self.size - FRAME if piece else self._weigh(self._story)
        limit = int(most * len(reply.text) / max(1, self._weigh(reply.text)))
        quoted = self.head.prior.quoted.splitlines()
        said = (line.partition(": ")[2] for line in (*quoted, *piece))
        transcript = gate.Transcript((self._story, *said))
        return gate.fault(reply, limit, instruction, transcript)


def _size(transcript: Iterable[str]) -> int:
    """Return the characters of a transcript with its fence."""
    return sum(len(line) + 1 for line in transcript) + prompt.FENCE_SIZE


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
