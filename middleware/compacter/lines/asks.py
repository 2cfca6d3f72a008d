"""Find the sentences that ask in a user's message, and those by which a step states its task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from compacter.lines.own import separate
from compacter.lines.read import split
from compacter.lines.words import keys, stems, words
from compacter.messages.parts import Part

# Shares of weight of words by their letters: in any language that is written in letters, the
# shortest words are mostly no names.
_SHARES = {1: 0.25, 2: 0.25, 3: 0.25}
# Share of a word of letters and digits, such as KC18K6.
_OF_ID = 3.0
# Longest text of results, in characters, that only acknowledges a step, such as "written to a.txt".
_ACKNOWLEDGEMENT = 60
# Least share of the words of prose that are letters alone, before a mark at their end: of a line of
# code, a listing or a log fewer are; of "Job: ship order A-680 now." four in five.
_PLAIN_OF_PROSE = 0.7
# Largest share of a sentence's words that stand in the calls of its step, if it states a task.
_OF_CALL = 0.25
# Fewest words of a sentence that states a task.
_FEWEST_WORDS = 4
# Characters to read at the end of a step's text, and at both ends of a message.
_LONGEST = 2_000
_ASKING = re.compile(r"(?i)[?？؟՞]|\b(?:who|whom|whose|what|when|where|which|why|how|remind)\b")
_MARK = re.compile("[?？؟՞]")
_DIGIT = re.compile(r"\d")
_DENSE_RUN = re.compile(r"[^\x00-\x7f]{4,}")
_AROUND = ".,:;!?()\"'。、！？：「」『』"
# A word that is written like a name: with a capital inside a sentence, or in another script.
CAPITAL = re.compile(r"(?<=[\w,] )[^\W\d_a-z]\w{2,}|[^\x00-\x7f]{2,}")


def question(turn: Iterable[Part]) -> list[str]:
    """Return the sentences of a user message, whose entries are ``turn``."""
    text = "\n".join(entry.text for entry in turn if entry.role == "user" and entry.kind == "text")
    # Pasted text, such as a tool's output, asks nothing.
    own = "".join(piece.text for piece in separate(text) if piece.is_own)
    if len(own) > 2 * _LONGEST:
        own = f"{own[:_LONGEST]}\n{own[-_LONGEST:]}"
    return list(_sentences(own))


def is_asking(sentence: str) -> bool:
    """Return whether a sentence has the form of a question."""
    return bool(_ASKING.search(sentence))


def is_question(sentence: str) -> bool:
    """Return whether a sentence has a question mark."""
    return bool(_MARK.search(sentence))


def task(step: Sequence[Part]) -> list[str]:
    """Return the sentences in which an agent's step states its next task.

    These are in the last line of each result if it is prose, and in the assistant's own words if
    the results only acknowledge its calls. A sentence that repeats the arguments of a call is a
    receipt, or an intention that the call has carried out.

    Args:
        step: The entries of the assistant's message and of the results behind it.
    """
    results = [entry.text for entry in step if entry.role == "tool"]
    said = [entry.text for entry in step if entry.role == "assistant" and entry.kind == "text"]
    if sum(map(len, results)) > _ACKNOWLEDGEMENT:
        said = []
    lines = [text[-_LONGEST:].rstrip().rpartition("\n")[2] for text in results]
    stated = [*(text[-_LONGEST:] for text in said), *filter(_is_prose, lines)]
    called = set(stems("\n".join(entry.text for entry in step if entry.kind == "call")))
    sentences = [sentence for text in stated for sentence in _sentences(text)]
    return [
        sentence
        for sentence in sentences
        if len(called.intersection(words := set(keys(sentence)))) <= _OF_CALL * len(words)
    ]


def _is_prose(line: str) -> bool:
    said = line.split()
    plain = sum(map(str.isalpha, (word.strip(_AROUND) for word in said)))
    is_long = len(said) >= _FEWEST_WORDS or _DENSE_RUN.search(line)
    return bool(is_long and plain >= _PLAIN_OF_PROSE * len(said))


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a message."""
    for sentence in split(text):
        # "So tell me: what we paid" asks after the colon; "invoice 7: what is missing" as a whole.
        head, colon, rest = sentence.partition(": ")
        yield from filter(None, (head, rest) if colon and not _DIGIT.search(head) else (sentence,))


def terms(text: str) -> dict[str, float]:
    """Return the keys by which lines are found for a question (see ``keys``), each with a factor by
    which its weight in the search is multiplied.

    The factor is 3 for an id of ASCII letters and digits, which names one thing. It is 0.25 for
    words of up to three ASCII letters and for numbers of up to two digits, as short words are
    seldom names; a word that is written like a name has at least 1. It is 1 for all others.
    """
    named = {word for name in CAPITAL.findall(text) for word in words(name)}
    said = words(text)
    shares = [max(_share(word), float(word in named)) for word in said]
    found = keys(text)
    return dict(zip(found, shares, strict=False)) | dict.fromkeys(found[len(said) :], 1.0)


def _share(word: str) -> float:
    """Return the share of a word by its letters; a number tells more than a word of its length."""
    if not word.isascii():
        return 1.0
    if not (word.isalpha() or word.isdigit()):
        return _OF_ID
    return _SHARES.get(len(word) + word.isdigit(), 1.0)
