"""Passages: pieces of messages that can be quoted, cut so that each can be understood by itself.

A text is cut into runs of whole sentences, the output of a tool into runs of whole lines. JSON is
read as one line for each value, ``path: value``, so that a value is never quoted without its key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from compacter.errors import check_embedder, check_tokens
from compacter.messages.format import Message, MessageFormat
from compacter.messages.parts import MessageParts, Part, Speaker
from compacter.recall.vectors import Embed
from compacter.text.sentences import SENTENCE_END
from compacter.text.values import parse, values
from compacter.text.words import UNSPACED

LONGEST = 400
"""Longest run in characters. A passage is a run, with the next one if the first ends with a
question."""
_ENOUGH = 90  # Characters after which a run ends with the sentence or line;
_ENOUGH_DENSE = 30  # the same in scripts that write a word in one or two characters.
_LAST_SHORT = 45  # A last run shorter than this is joined to the one before it.
# A longer first line is not taken for the header of a table, which is quoted with its rows.
_LONGEST_HEADER = 200
# Upper limit of a share of the window, in tokens: twice as many did not answer one more of 360
# questions.
_MOST_TOKENS = 4_000

_LINE_END = re.compile(r"\n")
_COLOUR = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]{0,8}[@-~]")
_LETTER = re.compile(r"[^\W_]")
_QUESTION = re.compile(r"[?？؟՞][\"'”’)\]]{0,3}\s{0,3}$")


@dataclass(frozen=True, slots=True)
class Passage:
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


Rank = Callable[[str, Sequence[Passage]], Sequence[float]]
"""``(question, passages) -> one number for each passage``; those with the highest numbers are
quoted first."""


class Quotes(BaseModel):
    """Settings of the option ``recall``: ``Compacter(recall=Quotes(share=0.2, rank=my_ranker))``.

    Raises ``ValueError`` (pydantic's) for invalid values.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    share: (
        Annotated[float, Field(gt=0, lt=1)]
        | Annotated[int, Field(gt=0), AfterValidator(check_tokens)]
    ) = 0.15
    """Room for quotes: a share of the window between 0 and 1, of up to 4,000 tokens, or a number of
    tokens."""
    rank: Rank | None = None
    """Ranking function for the passages found by their words and by ``embed``; replaces their own
    scores. It adds none."""
    embed: Annotated[Embed | str | None, BeforeValidator(check_embedder)] = None
    """Embedding function for questions in other words than the passage's, ``(texts) -> one vector
    for each text``, sync or async; or the name of an embedding model for litellm."""

    def room(self, window: int | None, chars_per_token: float) -> int:
        """Return the room for quotes in characters; 0 for a share of an unknown window.

        Args:
            window: The model's context window in tokens, if known.
            chars_per_token: Average number of characters of a token.
        """
        return int(self.room_in_tokens(window) * chars_per_token)

    def room_in_tokens(self, window: int | None) -> float:
        """Return the room for quotes in tokens; 0 for a share of an unknown window.

        Args:
            window: The model's context window in tokens, if known.
        """
        if isinstance(self.share, int):
            return self.share
        return min(self.share * (window or 0), _MOST_TOKENS)


def read(
    messages: Sequence[Message],
    wire: MessageFormat,
    indexes: Iterable[int] | None = None,
    parts_of_each: Callable[[Sequence[Message]], Sequence[MessageParts]] | None = None,
) -> list[Part]:
    """Return the entries of ``messages`` (or of those at ``indexes``), results with the name of
    their tool. ``parts_of_each`` returns the parts of messages, where some were read before.
    """
    parts_of_each = parts_of_each or wire.parts_of_each
    wanted = range(len(messages)) if indexes is None else list(indexes)
    asked = set(wanted)
    called: dict[str, str] = {}
    entries: list[Part] = []
    # The call of a compacted result is not before the first wanted message.
    first = min(asked, default=0)
    read_each = parts_of_each(messages[first : max(asked, default=-1) + 1])
    for index, (_, parts, readable_parts) in enumerate(read_each, first):
        called.update(
            {part.call_id: part.name for part in parts if part.kind == "call" and part.call_id}
        )
        if index not in asked:
            continue
        tools = {
            part.name or called.get(part.call_id, "")
            for part in parts
            if part.call_id is not None and part.kind != "call"
        }
        name = tools.pop() if len(tools) == 1 else ""
        for part in readable_parts:
            given = name if part.role == "tool" and not part.name else part.name
            same = given == part.name and index == part.index
            entries.append(part if same else replace(part, name=given, index=index))
    return entries


def readable(entry: Part) -> str:
    """Return the text of an entry without terminal colours; JSON of a call or a result as lines of
    ``path: value``.
    """
    text = _COLOUR.sub("", entry.text) if "\x1b" in entry.text else entry.text
    if entry.kind != "text" and text[:1] in ("{", "["):
        data = parse(text)
        if data is not None:
            return "\n".join(f"{'.'.join(value.path)}: {value.text}" for value in values(data))
    return text


def cut(text: str, *, lines: bool = False) -> Iterator[tuple[int, int]]:
    """Yield start and end of each run of ``text``: whole sentences, or ``lines``, of about 90 to
    400 characters.
    """
    enough = _ENOUGH_DENSE if UNSPACED.search(text, 0, 2_000) else _ENOUGH
    start = 0
    last = None
    for end in _ends(text, _LINE_END if lines else SENTENCE_END):
        if end - start < enough and end < len(text):
            continue
        for run in _wrap_run(text, start, end):
            if last is None:
                last = run
            elif run[1] - run[0] < min(enough, _LAST_SHORT) and run[1] - last[0] <= LONGEST:
                last = (last[0], run[1])
            else:
                yield last
                last = run
        start = end
    if last is not None:
        yield last


def _ends(text: str, pattern: re.Pattern[str]) -> list[int]:
    """Return the position after each match of ``pattern``, and that of the end of ``text``."""
    return [*(match.end() for match in pattern.finditer(text)), len(text)]


def _wrap_run(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield a run without surrounding white space, in pieces if it is too long, except pieces
    without a letter.
    """
    while start < end:
        stop = end
        if end - start > LONGEST:
            stop = text.rfind(" ", start + LONGEST // 2, start + LONGEST) + 1 or start + LONGEST
        piece = text[start:stop]
        begin = stop - len(piece.lstrip())
        if _LETTER.search(piece):
            yield begin, start + len(piece.rstrip())
        start = stop


def asks(text: str) -> bool:
    """Return whether ``text`` ends with a question, so that the next text is its answer."""
    return _QUESTION.search(text[-8:]) is not None


def header(text: str, start: int) -> str:
    """Return the first line of the table with the line at ``start``; empty if that is not a line of
    a table.
    """
    first = text[: _LONGEST_HEADER + 1].partition("\n")[0]
    if not 0 < len(first) <= _LONGEST_HEADER or start < len(first):
        return ""
    line = text[start : start + LONGEST].partition("\n")[0]
    return first if any(first.count(cell) == line.count(cell) >= 2 for cell in "\t|,;") else ""
