"""Read what a user's message asks: its sentences, each with its search terms.

People write a greeting, a story, an order about style or a pasted log around the one sentence that
asks. Weighed as a whole, a message says little about any passage; so each sentence is weighed by
itself, and text that is marked as quoted or as code is not read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from compacter.messages.parts import Part
from compacter.recall.terms import Term, terms
from compacter.text.own import separate
from compacter.text.words import TALK_WORDS

# Number of the user's messages before the question whose words count less in it.
_USUAL = 4
# Weight of a word that occurs in all of them.
_LEAST = 0.05
# Most characters read of a message; of a longer one the beginning and the end, where the request
# mostly is.
_LONGEST_QUESTION = 4_000
# Most sentences that are searched for: the first and the last ones. Each costs a search.
_MOST_SENTENCES = 24
# Most terms of a sentence that is weighed as a whole, and of the overlapping pieces that a longer
# one is cut into: dictated text has no full stops.
_LONGEST = 14
_PIECE = 8
# Weight, in an order, of a word after "the" or "my": what it tells of was spoken of before, unlike
# "a snail".
_DEFINITE_WEIGHT = 2.0
_ASKS = re.compile(r"[?？؟՞]")
_FENCE = re.compile(r"(?ms)^[ \t]{0,3}(```|~~~).*?(?:^[ \t]{0,3}\1[^\n]*$|\Z)")
_QUOTED = re.compile(r"(?m)^[ \t]{0,3}>[^\n]*$")
# Ends of sentences; "no. 7" and "e.g. this" go on.
_ENDS = re.compile(r"(?<=[.!?…;؟।])[\"'”’)\]]{0,3}\s+(?![a-z\d])|(?<=[?!])\s+|(?<=[。！？；])|\n+")
_DIGIT = re.compile(r"\d")
_ASKING_WORDS = """
    who whom whose what when where which why how remind wer wem wen was wann wo wohin woher welche
    welcher welches warum wieso wie qui quoi quand où quel quelle quels comment pourquoi combien
    quién quiénes qué cuándo dónde cuál cuáles cómo cuánto cuánta cuántos chi cosa quando dove
    quale perché quanto quem onde qual como
"""
_ASKING = frozenset(_ASKING_WORDS.split())
_DEFINITE_WORDS = """
    the my our his her their der die das den dem des mein meine meinen unser unsere el la los las
    mi mis nuestro nuestra su sus le les mon ma notre nos
"""
_DEFINITE = frozenset(_DEFINITE_WORDS.split())
# Weight of a word of talk about anything. Few of a chat's passages have it, yet it tells nothing:
# without this two thirds of the messages that ask nothing were quoted to for such a word.
_TALK_WEIGHT = 0.35
# Words after a definite article that it may belong to.
_DEFINITE_REACH = 2
_LEANS = re.compile(r"(?i)^\W*(?:and|or|what about|how about|und|oder|et|y|e|что|а|那|那么)\b")
_WORD = re.compile(r"[^\W\d_]+")


class Sentence(NamedTuple):
    """A sentence of the user's message."""

    terms: tuple[Term, ...]
    asks: bool
    """Whether it has the form of a question; an order has not."""
    leans: bool = False
    """Whether its words are those of the last message, which it leans on: "and the second one?"."""
    text: str = ""
    """The sentence itself."""


class Question(NamedTuple):
    """What a user's message asks."""

    text: str
    """The whole message."""
    sentences: tuple[Sentence, ...]


def question(turn: Iterable[Part], before: Sequence[Part]) -> Question:
    """Return the question of a user message: its sentences, with the weights of their words.

    ``turn`` are the entries of that message, ``before`` those of the request up to it. Later
    messages are not read, so that the result is the same in all steps of the turn.
    """
    text = "\n".join(entry.text for entry in turn if entry.role == "user" and entry.kind == "text")
    earlier = [entry.text for entry in before if entry.role == "user" and entry.kind == "text"]
    usual = Counter(
        word for said in earlier[-_USUAL:] for word in {term.text for term in terms(said)}
    )
    last = min(len(earlier), _USUAL)

    def weigh(term: Term) -> Term:
        # Words that are new in this message count more than those of the user's earlier messages.
        apart = max(_LEAST, 1 - usual[term.text] / last) if last > 1 else 1.0
        if term.text in TALK_WORDS:
            apart *= _TALK_WEIGHT
        return replace(term, weight=term.weight * apart)

    answered = {term.text for entry in before[-1:] for term in terms(entry.text)}
    sentences: list[Sentence] = []
    # What a message only carries, such as a tool's output, asks nothing.
    typed = "".join(piece.text for piece in separate(text) if piece.is_own)
    for sentence in _sentences(typed):
        asks = is_asking(sentence)
        wanted = [weigh(term) for term in terms(sentence) if term.text not in _ASKING]
        if not asks:
            definite = _definite(sentence)
            wanted = [
                replace(
                    term,
                    # It may answer the message before it: words in both refer to that message.
                    known=term.text in answered,
                    weight=term.weight * (_DEFINITE_WEIGHT if term.text in definite else 1),
                )
                for term in wanted
            ]
        said = sentence.strip()
        sentences.extend(Sentence(piece, asks, text=said) for piece in _pieces(tuple(wanted)))
        if asks and earlier and _LEANS.match(sentence):
            lent = (*wanted, *terms(earlier[-1]))
            sentences.extend(Sentence(piece, asks, leans=True) for piece in _pieces(lent))
    half = _MOST_SENTENCES // 2
    if len(sentences) > _MOST_SENTENCES:
        sentences[half:-half] = []
    return Question(text, tuple(sentences))


def is_asking(sentence: str) -> bool:
    """Return whether a sentence has the form of a question: its mark, or an asking word."""
    return _ASKS.search(sentence) is not None or not _ASKING.isdisjoint(
        _WORD.findall(sentence.lower())
    )


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a message, without code in fences and quoted lines."""
    half = _LONGEST_QUESTION // 2
    if len(text) > _LONGEST_QUESTION:
        text = f"{text[:half]}\n{text[-half:]}"
    typed = _QUOTED.sub("", _FENCE.sub("\n", text))
    for sentence in _ENDS.split(typed):
        # "So tell me: what we paid" asks after the colon; "invoice 7: what is missing" as a whole.
        head, colon, rest = sentence.partition(": ")
        if colon and not _DIGIT.search(head):
            yield from filter(str.strip, (head, rest))
        elif sentence.strip():
            yield sentence


def _pieces(wanted: tuple[Term, ...]) -> Iterator[tuple[Term, ...]]:
    """Yield the terms of a sentence; of a long one in overlapping pieces."""
    if len(wanted) <= _LONGEST:
        if wanted:
            yield wanted
        return
    for start in range(0, len(wanted) - _PIECE // 2, _PIECE // 2):
        yield wanted[start : start + _PIECE]


def _definite(sentence: str) -> set[str]:
    """Return the words of a sentence that follow a definite article or a possessive."""
    words = _WORD.findall(sentence.lower())
    return {
        word
        for at, before in enumerate(words)
        if before in _DEFINITE
        for word in words[at + 1 : at + 1 + _DEFINITE_REACH]
    }
