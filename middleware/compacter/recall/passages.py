"""Passages: pieces of messages that can be quoted, cut so that each can be understood by itself.

A text is cut into runs of whole sentences, the output of a tool into runs of whole lines. JSON is
read as one line for each value, ``path: value``, so that a value is never quoted without its key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from compacter.errors import ConfigurationError, check_size, faults_of, with_hints
from compacter.messages.parts import Speaker
from compacter.text.pieces import SENTENCE_END, parse
from compacter.text.table import Table
from compacter.text.words import UNSPACED

LONGEST = 400
"""Longest run in characters. A passage is a run, with the next one if the first ends with a
question."""
_ENOUGH = 90  # Characters after which a run ends with the sentence or line;
_ENOUGH_DENSE = 30  # the same in scripts that write a word in one or two characters.
# Upper limit of a share of the window, in tokens: twice as many did not answer one more of 360
# questions.
_MOST_TOKENS = 4_000
# In a small window a share may be raised to this many tokens, up to this part of the window: with
# 600 tokens .02 less of these questions have their answer.
_FEWEST_TOKENS = 800
_MOST_SHARE = 0.3

# Longest record of JSON that is one line, in characters.
_LONGEST_RECORD = 250
# Most keys of a path to keep: enough to identify a value, and deep JSON takes linear time.
_MOST_KEYS = 3

# A run without the white space around it, or a piece of one that is too long.
_PIECE = re.compile(rf"(?s)\S(?:.{{0,{LONGEST - 2}}}\S)?(?!\S)|\S{{1,{LONGEST}}}")
_LINE_END = re.compile(r"\n")
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]{0,8}[@-~]")
_LETTER = re.compile(r"[^\W_]")


@dataclass(frozen=True, slots=True)
class Passage(Table):
    """Some sentences or lines of one message, word for word."""

    text: str
    """Verbatim text, with an ellipsis between two pieces that are not adjacent."""
    role: Speaker
    """Speaker: ``"user"``, ``"assistant"`` or ``"tool"``."""
    name: str = ""
    """Name of the tool, for a call and, if known, for a result."""
    index: int = 0
    """Position of the message in the caller's list."""
    score: float = 0.0
    """Relevance to the question; comparable within one search only."""

    def _rows(self) -> Iterator[tuple[str, str]]:
        yield f"message {self.index}", self.text
        yield "said by", f"{self.role} {self.name}".strip()
        yield "score", f"{self.score:.2f}"


Search = Callable[[str, Sequence[Passage]], Sequence[float] | Awaitable[Sequence[float]]]
"""``(question, passages) -> one number for each passage``, sync or async."""


_TAKES = {
    "share": "a share of the window between 0 and 1 such as 0.15, or a whole number of tokens",
    "steps": "True or False",
    "search": "a function of a question and a list of passages, or None",
    "tool": "True or False",
}


def _unknown(name: str) -> str:
    return f"Quotes has no {name!r}; it takes {', '.join(_TAKES)}"


@with_hints
class Quotes(BaseModel):
    """Settings of the option ``recall``: ``Compacter(recall=Quotes(share=0.2, steps=False))``.

    Raises ``ConfigurationError`` for invalid values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    share: Annotated[Annotated[float, Field(lt=1)] | int, BeforeValidator(check_size)] = 0.15
    """Room for quotes: a share of the window between 0 and 1, of up to 4,000 tokens, or a number of
    tokens."""
    steps: bool = True
    """Whether tasks of an agent get quotes too: lines with what the newest step or order names."""
    search: Search | None = None
    """Function for other words than the passages': called with a message that asks, and all
    compacted passages, it returns one number for each, 0 for those that do not answer it. Passages
    found by the question's own words are quoted beside the best of these."""
    tool: bool = False
    """Whether requests get a tool ``recall(query)`` once messages were compacted, whose calls are
    answered from these, at most three times in a row, before the reply is returned. In chat
    completions and Anthropic's format, and not in streams."""

    if not TYPE_CHECKING:  # Type checkers know the arguments.

        def __init__(self, **settings: Any) -> None:
            """Check the settings. Raises ``ConfigurationError``."""
            try:
                super().__init__(**settings)
            except ValidationError as error:
                fault = faults_of(error, settings, _TAKES, _unknown)
                raise ConfigurationError(fault) from None

    def room_in_tokens(self, window: int | None) -> float:
        """Return the room for quotes in tokens; 0 for a share of an unknown window.

        Args:
            window: The model's context window in tokens, if known.
        """
        if isinstance(self.share, int):
            return self.share
        window = window or 0
        return min(
            max(self.share * window, min(_FEWEST_TOKENS, _MOST_SHARE * window)), _MOST_TOKENS
        )


def readable(text: str, *, is_data: bool) -> str:
    """Return a text without terminal colours; the ``data`` of a call or a result, if it is JSON, as
    one line for each record, after the keys that lead to it.
    """
    text = _COLOUR.sub("", text) if "\x1b" in text else text
    if is_data and text[:1] in ("{", "["):
        data = parse(text)
        if data is not None:
            return "\n".join(_records(data))
    return text


def _records(data: object) -> Iterator[str]:
    """Yield JSON's flat records that are short enough for a line, and the values of others: a value
    means little without the values beside it.
    """
    waiting: list[tuple[tuple[str, ...], object]] = [((), data)]
    while waiting:
        path, item = waiting.pop()
        item = (parse(item) or item) if isinstance(item, str) else item
        members = dict(enumerate(item)) if isinstance(item, list) else item
        line = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
        if isinstance(members, dict):
            is_nested = any(isinstance(member, (dict, list)) for member in members.values())
            is_record = members is item and len(members) > 1 and not is_nested
            if not is_record or len(line) > _LONGEST_RECORD:
                inside = [((*path, str(key))[-_MOST_KEYS:], each) for key, each in members.items()]
                waiting.extend(reversed(inside))
                continue
        if line and item is not None:
            yield ": ".join(filter(None, (".".join(path), line)))


def cut(text: str, *, lines: bool = False) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of ``text``: whole sentences, or ``lines``, of about 90 to
    400 characters.
    """
    enough = _ENOUGH_DENSE if lines or UNSPACED.search(text, 0, 2_000) else _ENOUGH
    ends = [match.end() for match in (_LINE_END if lines else SENTENCE_END).finditer(text)]
    start = 0
    for end in (*ends, len(text)):
        if end - start >= enough or end == len(text):
            for piece in _PIECE.finditer(text, start, end):
                if _LETTER.search(piece[0]):
                    yield piece.span()
            start = end
