"""Split texts of any language into words, and into sentences with their speakers. All of it is linear in the text."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby, repeat
from operator import add
from typing import Any, NamedTuple

from compacter.messages.fields import flat
from compacter.messages.parts import Part

_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0dff])+")  # For ``re`` vowel signs of Indic scripts are not word characters.
_ASCII_WORD = re.compile("[a-z0-9]+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_STEM, _SHORTEST_WORD = 5, 2
"""Number of letters that inflected forms of a word share; and longest word that is too short to be significant."""

_COMMONEST = """
    a about after all also am an and any are as at be been before but by can could did do does doing done for from had
    has have having he her hers him his how i if in into is it its just like may me might mine more most much must my
    of on one or our ours out please she should so some tell than that the their theirs them then there these they
    this those to us was we were what when where which while who whom whose why will with would you your yours
    der das und oder ist sind waren ein eine einen einem einer mit von zu im den dem auf für als auch ich du er sie es
    wir ihr nicht was wer wie wo wann warum welche welcher welches haben hatte le la les un une des et ou est dans que
    qui quoi où quand comment pourquoi quel quelle avec el los las una y es en con qué quién cómo cuándo dónde cuál del
"""
FUNCTION_WORDS = frozenset(_COMMONEST.split())
"""The most common words of English, German, French and Spanish, which do not distinguish statements; without those
that are nouns in another of these languages (war, son)."""

Run = tuple[str, ...]
Record = dict[str, Any] | list[Any]

ELLIPSIS = "…"
"""Mark of omitted text between two pieces of a line."""

TYPED = 600
"""Longest typed message in characters; a longer one may be a document or a log."""
_RECORD, _SHORTEST_VALUE, _LONG_NUMBER = 60, 3, 6
"""Longest piece of joined values of a record, longest value and longest number that are ignored, in characters."""
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[\x00-\x08\x0e-\x1f\x7f]")
_END = re.compile(
    r"[.!?…](?<!\b[eE]\.g\.)(?<!\b[iI]\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMrs\.)"
    r"(?<!^\d\.)(?<!^\d\d\.)[\"'”’)\]*]?\s+(?=[\w\"'“‘(\[*`$€£¿¡-])"
    r"(?!(?<=\d\.\s)[a-zà-ÿ])(?!(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*\b)|[。！？]\s*"
)
"""End of a sentence; not after an abbreviation, a list's number, or an ordinal of German ("16. bis 18. Mai")."""
_LONGEST = 320
_CLAUSE = r"(?:[,;:)}\]]\s|[，；：、]|$)"
_CLAUSES = re.compile(
    rf"(.{{120,{_LONGEST}}}{_CLAUSE}|.{{1,{_LONGEST}}}$)|(.{{120,{_LONGEST}}}\s|.{{{_LONGEST}}}).*?{_CLAUSE}"
)
_ALNUM, _LETTERS = re.compile(r"[^\W_]"), re.compile(r"[^\W\d_]+")
_CODE = re.compile(r"[{}()\[\];=<>|\\$/_`]")
_CODE_SHARE = 10
_WORDS = 5
_ENDS = (".", "!", "?", ":", "。", "！", "？", "：")
_FULL_STOPS = ("。", "！", "？")
"""Ends of sentences without a space after them."""
_FENCE = "```"
BARE = re.compile(r"[\W\d_]+(?:[TZ][\W\d_]*)*|[^\W\d]+(?:-[^\W\d]+)*")
"""Value that needs its key to be understood: a number, a date or time, a word; not a sentence, an id or a path."""
_KEY, _LONGEST_LABEL = re.compile(r"[^\W\d][\w. -]{0,30}"), 76
"""Readable key, and most characters of a speaker with the keys after it."""
_NAME, _LONGEST_NAME = re.compile(r"[^\w. /-]+"), 60


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case; pairs of characters for scripts without spaces."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    found: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word.isascii() or not UNSPACED.search(word):
            found.append(word)
        else:
            found += map(add, word, word[1:]) if len(word) > 1 else word
    return found


def runs(said: list[str]) -> list[Run]:
    """Return all runs of three words; fewer words are one run."""
    return list(zip(said, said[1:], said[2:], strict=False)) if len(said) > 2 else [tuple(said)] if said else []


def stems(said: Iterable[str]) -> set[str]:
    """Return the beginnings of the significant words, so that endings do not count."""
    return {
        word[:_STEM]
        for word in said
        if word not in FUNCTION_WORDS
        and (len(word) > _SHORTEST_WORD or not word.isascii() or any(map(str.isdigit, word)))
    }


def reader() -> Callable[[str], set[str]]:
    """Return a function that returns the ``stems`` of a text, with a cache of words."""

    @cache
    def of_one(token: str) -> set[str]:
        return stems(words(token))

    return lambda text: set().union(*map(of_one, text.split()))


def clip(text: str, size: int) -> str:
    """Return ``text``, or its beginning and an ellipsis, in at most ``size`` characters."""
    if len(text) <= size:
        return text
    at = text.rfind(" ", size // 2, size - 1)
    return text[: at if at > 0 else max(0, size - 1)] + "…"


class Sentence(NamedTuple):
    """One sentence of prose, one line of code or output, or some values of a record."""

    text: str
    """Verbatim text, on one line."""
    speaker: str
    """``User``, ``Assistant``, ``Tool NAME``, or ``Summary`` for prose of an earlier summary."""
    part: int
    """Number of its part of a message; all sentences of one part are quoted on one line."""
    follows: bool = False
    """Whether it follows the sentence before it on the same line."""
    prose: bool = True
    """Whether it is text for a reader, not code or output."""
    output: bool = False
    """Whether it is the result of a tool."""
    size: int = 0
    """Length of the whole text of its part, in characters."""
    keys: tuple[str, ...] = ()
    """Keys of the values of a record that need them to be understood."""


def named(parts: Iterable[Part]) -> Iterator[tuple[str, Part]]:
    """Yield each part with its tool's name, which some formats omit in results. Results are in the order of calls."""
    called: deque[str] = deque()
    for part in parts:
        name = part.name
        if part.kind == "call":
            called.append(name)
        elif part.kind == "result" and called:
            first = called.popleft()
            name = name or first
        yield _NAME.sub(" ", name).strip()[:_LONGEST_NAME], part


def read(parts: Sequence[Part], first: int = 0) -> Iterator[Sentence]:
    """Yield the sentences of ``parts`` in order; numbers of parts begin with ``first``. Linear in the text."""
    for number, (name, part) in enumerate(named(parts), first):
        if part.kind in ("summary", "media") or part.role == "system":
            continue
        size = len(part.text)
        if part.kind != "text" or part.role not in ("user", "assistant"):
            speaker, output = f"Tool {name or part.kind}", part.kind == "result"
            for text, keys in _values(part.text):
                yield Sentence(text, speaker, number, prose=False, output=output, size=size, keys=keys)
            continue
        code = False
        for line in filter(None, map(str.strip, _ANSI.sub("\n", part.text).splitlines())):
            if line.startswith(_FENCE):
                code = not code
                continue
            follows = False
            for text in split(line):
                if size > TYPED and not _LETTERS.search(text) and sum(map(str.isalnum, text)) <= _LONG_NUMBER:
                    continue  # The number of an empty line, or a bracket, which matter only in typed text.
                prose = not code and (_plain(text, _CODE_SHARE // 2) if size <= TYPED else reads(text))
                yield Sentence(text, part.role.capitalize(), number, follows, prose, size=size)
                follows = True


def sentences(text: str) -> list[str]:
    """Return the whole sentences of ``text``, of any length, with white space collapsed."""
    return [flat(sentence) for line in text.splitlines() if line for sentence in _whole(line)]


def _whole(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        yield line[start : end.end()].strip()
        start = end.end()
    if rest := line[start:].strip():
        yield rest


def split(text: str) -> Iterator[str]:
    """Yield the sentences of ``text``; a very long one in pieces that start with a clause."""
    for sentence in _whole(text):
        if len(sentence) > _LONGEST:
            yield from _clauses(sentence)
        elif _ALNUM.search(sentence):
            yield sentence


def reads(text: str) -> bool:
    """Return whether ``text`` looks like prose: several words or a whole sentence, and not code or output."""
    return _plain(text, _CODE_SHARE) and (text.endswith(_ENDS) or text.count(" ") >= _WORDS or not text.isascii())


def _plain(text: str, share: int) -> bool:
    """Return whether ``text`` is mostly letters, or words and a number, with less than one code symbol in ``share``."""
    if len(_CODE.findall(text)) * share >= len(text):
        return False
    return len(text) < 2 * sum(map(str.isalpha, text)) or (text.endswith(_ENDS) and len(_LETTERS.findall(text)) > 1)


def _clauses(text: str) -> Iterator[str]:
    """Yield pieces that start with a clause; the rest of a clause that is too long is omitted."""
    for whole, begun in _CLAUSES.findall(text):
        piece = (whole or begun).strip()
        if _ALNUM.search(piece):
            yield piece


def _values(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the lines of a tool's text; for JSON the values, joined within a record, and the keys they need."""
    record = _json(text)
    if record is None:
        yield from ((line, ()) for line in _lines(text))
        return
    for values in _records(record):
        run, keys = "", list[str]()
        for key, value in values:
            if len(value) <= _SHORTEST_VALUE or (value.isalpha() and value.islower()):
                continue  # Most of these mean nothing without a key, and would take the room of better ones.
            if run and len(run) + len(value) > _RECORD:
                yield run, tuple(keys)
                run, keys = "", []
            run = f"{run} {ELLIPSIS} {value}" if run else value
            if key not in keys and _KEY.fullmatch(key) and BARE.fullmatch(value):
                keys.append(key)
        if run:
            yield run, tuple(keys)


def _lines(text: str) -> Iterator[str]:
    for line in filter(None, map(str.strip, _ANSI.sub("\n", text).splitlines())):
        if len(line) > _LONGEST:
            yield from _clauses(line)
        elif sum(map(str.isalnum, line)) > (_SHORTEST_VALUE if _LETTERS.search(line) else _LONG_NUMBER):
            yield line


def _json(text: str) -> Record | None:
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        record: Record = json.loads(text)
        return record
    except (ValueError, RecursionError):
        return None


def _records(record: Record) -> Iterator[list[tuple[str, str]]]:
    """Yield the scalar values of each object or list within ``record``, each with its key, or its list's."""
    pending: list[tuple[str, Record]] = [("", record)]
    while pending:
        name, item = pending.pop()
        plain: list[tuple[str, str]] = []
        nested: list[tuple[str, Record]] = []
        for key, one in item.items() if isinstance(item, dict) else zip(repeat(name), item):
            if isinstance(one, (dict, list)):
                nested.append((key, one))
            elif isinstance(one, str):
                decoded = _json(one)
                if decoded is None:
                    plain.extend((key, line) for line in _lines(one))
                else:
                    nested.append((key, decoded))
            elif one is not None and not isinstance(one, bool):
                plain.append((key, str(one)))
        if plain:
            yield plain
        pending.extend(reversed(nested))


def quote(sentences: Sequence[Sentence], chosen: Iterable[int]) -> Iterator[str]:
    """Yield one line for each part with chosen sentences: its speaker and these, with an ellipsis for omitted ones.

    Keys of a record follow the speaker, each once: ``Tool search (date): AB12 … 2024-05-27 … CD34 … 2024-05-28``.
    """
    for _, places in groupby(chosen, lambda place: sentences[place].part):
        line = speaker = label = ""
        before = -1
        for place in places:
            sentence = sentences[place]
            if line and not (sentence.follows and place == before + 1):
                line += f" {ELLIPSIS} "
            elif line and not line.endswith(_FULL_STOPS):
                line += " "
            line += sentence.text
            before, speaker = place, sentence.speaker
            for key in sentence.keys:
                if key not in label.split(", ") and len(speaker) + len(label) + len(key) < _LONGEST_LABEL:
                    label += f", {key}" if label else key
        yield f"{speaker}{label and f' ({label})'}: {line}"
