"""Read what a user's message asks: its sentences, each with its search terms.

People write a greeting, a story, an order about style or a pasted log around the one sentence that
asks. Weighed as a whole, a message says little about any passage; so each sentence is weighed by
itself, and text that is marked as quoted or as code is not read.
"""

from __future__ import annotations

import re
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
# Most sentences that are searched for: the first and the last ones. Each costs a search.
_MOST_SENTENCES = 24
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
# Weight of a word of talk about anything. Few of a chat's passages have it, yet it tells nothing:
# without this two thirds of the messages that ask nothing were quoted to for such a word.
_TALK_WEIGHT = 0.35
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
    recent = [{term.text for term in terms(said)} for said in earlier[-_USUAL:]]
    answered = {term.text for entry in before[-1:] for term in terms(entry.text)}
    sentences: list[Sentence] = []

    def weigh(word: str) -> float:
        # Words that are new in this message count more than those of the user's earlier messages.
        new = [word not in said for said in recent] if len(recent) > 1 else [True]
        talk = _TALK_WEIGHT if word in TALK_WORDS else 1.0
        return talk * max(_LEAST, sum(new) / len(new))

    # What a message only carries, such as a tool's output, asks nothing.
    typed = "".join(piece.text for piece in separate(text) if piece.is_own)
    for sentence in _sentences(typed):
        # The mark of a question, or a word of one.
        asked = _ASKING.intersection(_WORD.findall(sentence.lower()))
        asks = bool(asked or _ASKS.search(sentence))
        wanted = tuple(
            replace(
                term,
                # In what asks nothing it may answer the message before it: words in both refer to
                # that message.
                known=not asks and term.text in answered,
                weight=term.weight * weigh(term.text),
            )
            for term in terms(sentence)
            if term.text not in _ASKING
        )
        said = sentence.strip()
        sentences.append(Sentence(wanted, asks, text=said))
        if asks and earlier and _LEANS.match(sentence):
            lent = (*wanted, *terms(earlier[-1]))
            sentences.append(Sentence(lent, asks, leans=True))
    half = _MOST_SENTENCES // 2
    if len(sentences) > _MOST_SENTENCES:
        sentences[half:-half] = []
    return Question(text, tuple(sentences))


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a message, without code in fences and quoted lines."""
    typed = _QUOTED.sub("", _FENCE.sub("\n", text))
    for sentence in _ENDS.split(typed):
        # "So tell me: what we paid" asks after the colon; "invoice 7: what is missing" as a whole.
        head, colon, rest = sentence.partition(": ")
        if colon and not _DIGIT.search(head):
            yield from filter(str.strip, (head, rest))
        elif sentence.strip():
            yield sentence
