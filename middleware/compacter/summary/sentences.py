"""The reader of texts: words, sentences and who said them, in any language. Every function is linear in the text."""

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

_WORD = re.compile(r"(?:[^\W_]|[\u0900-\u0dff])+")  # Vowel signs of Indic scripts are no word characters to ``re``.
_ASCII_WORD = re.compile("[a-z0-9]+")
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_STEM, _SHORTEST_WORD = 5, 2
"""Letters that inflected forms of one word have in common; letters up to which a word tells little apart."""

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
"""The commonest words of English, German, French and Spanish, but those that name a thing in another of these
languages (war, son): they tell no statement apart."""

Run = tuple[str, ...]
Record = dict[str, Any] | list[Any]

ELLIPSIS = "…"
"""Marks what was left out between two pieces of a line."""

TYPED = 600
"""Characters up to which a message was typed; a longer one may be a document or a log."""
_RECORD, _SHORTEST_VALUE, _LONG_NUMBER = 60, 3, 6
"""Characters of a record's values that are taken as one piece."""
_ANSI = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]{0,4}[@-~]|[\x00-\x08\x0e-\x1f\x7f]")
_END = re.compile(
    r"[.!?…](?<!\b[eE]\.g\.)(?<!\b[iI]\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMrs\.)"
    r"(?<!^\d\.)(?<!^\d\d\.)[\"'”’)\]*]?\s+(?=[\w\"'“‘(\[*`$€£¿¡-])"
    r"(?!(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)[a-z]*\b)|[。！？]\s*"
)
"""Where a sentence ends; not behind an abbreviation, a list's number, or the day of a German date."""
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
"""Ends of sentences that no space follows."""
_FENCE = "```"
BARE = re.compile(r"[\W\d_]+(?:[TZ][\W\d_]*)*|[^\W\d]+(?:-[^\W\d]+)*")
"""A value that does not say what it is: a number, a date or time, a single word; not a sentence, an id or a path."""
_KEY, _LONGEST_LABEL = re.compile(r"[^\W\d][\w. -]{0,30}"), 76
"""A key that a reader understands, and characters of a speaker with the keys behind it."""
_NAME, _LONGEST_NAME = re.compile(r"[^\w. /-]+"), 60


def words(text: str) -> list[str]:
    """Return the words of ``text`` in lower case; scripts written without spaces give pairs of characters."""
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
    """Return all runs of three words, or the whole where it is shorter."""
    return list(zip(said, said[1:], said[2:], strict=False)) if len(said) > 2 else [tuple(said)] if said else []


def stems(said: Iterable[str]) -> set[str]:
    """Return the beginnings of those words that tell statements apart, so that endings do not count."""
    return {
        word[:_STEM]
        for word in said
        if word not in FUNCTION_WORDS
        and (len(word) > _SHORTEST_WORD or not word.isascii() or any(map(str.isdigit, word)))
    }


def reader() -> Callable[[str], set[str]]:
    """Return a function from a text to its ``stems`` that looks at each word once, however often it is said."""

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
    """Word for word, on one line."""
    speaker: str
    """``User``, ``Assistant``, ``Tool NAME``, or ``Summary`` for prose of an earlier summary."""
    part: int
    """Which part of a message it belongs to; all sentences of one part stand on one line."""
    follows: bool = False
    """Whether it stands right behind the sentence before it, on the same line."""
    prose: bool = True
    """Whether it was written for a reader: a text, and neither code nor output."""
    output: bool = False
    """Whether a tool gave it."""
    size: int = 0
    """Characters of the whole text it belongs to."""
    keys: tuple[str, ...] = ()
    """The keys of those values of a record that do not say what they are."""


def named(parts: Iterable[Part]) -> Iterator[tuple[str, Part]]:
    """Yield each part with its tool's name: not every format names it in a result. Results follow the calls' order."""
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
                    continue  # The number of an empty line, a bracket: only typed ones tell something.
                prose = not code and (_plain(text, _CODE_SHARE // 2) if size <= TYPED else reads(text))
                yield Sentence(text, part.role.capitalize(), number, follows, prose, size=size)
                follows = True


def sentences(text: str) -> list[str]:
    """Return the whole sentences of ``text``, however long, white space folded."""
    return [flat(sentence) for line in text.splitlines() if line for sentence in _whole(line)]


def _whole(line: str) -> Iterator[str]:
    start = 0
    for end in _END.finditer(line):
        yield line[start : end.end()].strip()
        start = end.end()
    if rest := line[start:].strip():
        yield rest


def split(text: str) -> Iterator[str]:
    """Yield the sentences of ``text``; a very long one in pieces that begin with a clause."""
    for sentence in _whole(text):
        if len(sentence) > _LONGEST:
            yield from _clauses(sentence)
        elif _ALNUM.search(sentence):
            yield sentence


def reads(text: str) -> bool:
    """Whether ``text`` looks like prose: several words or a whole sentence, and neither code nor output."""
    return _plain(text, _CODE_SHARE) and (text.endswith(_ENDS) or text.count(" ") >= _WORDS or not text.isascii())


def _plain(text: str, share: int) -> bool:
    """Whether ``text`` is mostly letters, with less than one mark of code in ``share`` characters."""
    return len(_CODE.findall(text)) * share < len(text) < 2 * sum(map(str.isalpha, text))


def _clauses(text: str) -> Iterator[str]:
    """Yield pieces that begin with a clause; where none ends in time, the rest of it is left out."""
    for whole, begun in _CLAUSES.findall(text):
        piece = (whole or begun).strip()
        if _ALNUM.search(piece):
            yield piece


def _values(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the lines of a tool's text; of JSON the values, those of one record together, and the keys they need."""
    record = _json(text)
    if record is None:
        yield from ((line, ()) for line in _lines(text))
        return
    for values in _records(record):
        run, keys = "", list[str]()
        for key, value in values:
            if len(value) <= _SHORTEST_VALUE or (value.isalpha() and value.islower()):
                continue  # Most of these say nothing without a key: they would take the room of those that do.
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
    """Yield the plain values of each object or list within ``record``, each with its key, or its list's."""
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
    """Yield one line for each part with chosen sentences: its speaker and these, an ellipsis where one was left out.

    Keys of a record stand behind the speaker, each once: ``Tool search (date): AB12 … 2024-05-27 … CD34 … 2024-05-28``.
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
