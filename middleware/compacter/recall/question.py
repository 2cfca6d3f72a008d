"""Read what a user's message asks: its sentences, each with its search terms.

People write a greeting, a story, an order about style or a pasted log around the one sentence that
asks. Weighed as a whole, a message says little about any passage; so each sentence is weighed by
itself, and text that the message only carries is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from compacter.messages.parts import Part
from compacter.recall.terms import Term, terms
from compacter.text.own import separate
from compacter.text.words import words

# Most sentences that are searched for: the first and the last ones. Each costs a search.
_MOST_SENTENCES = 24
# Words of a question that may lean on what was just said: one with more speaks for itself.
_FEW = 2.5
# Number of the user's messages before the question whose words count less in it, and the weight of
# a word that occurs in all of them.
_USUAL = 4
_LEAST = 0.05
_MARK = re.compile(r"[?？؟՞]")
# Ends of sentences; "no. 7" and "e.g. this" go on.
_ENDS = re.compile(r"(?<=[.!?…;؟।])[\"'”’)\]]{0,3}\s+(?![a-z\d])|(?<=[?!])\s+|(?<=[。！？；])|\n+")
_DIGIT = re.compile(r"\d")
# Without those that are other words in English: "was", "dove".
_ASKING = re.compile(
    r"(?i)\b(?:who|whom|whose|what|when|where|which|why|how|remind|wer|wem|wen|wann|wo|wohin|woher|"
    r"welche[rs]?|warum|wieso|wie|qui|quoi|quand|où|quel(?:le)?s?|comment|pourquoi|combien|"
    r"quién(?:es)?|qué|cuándo|dónde|cuál(?:es)?|cómo|cuánt[oa]s?|chi|cosa|quando|quale|perché|"
    r"quanto|quem|onde|qual|como)\b"
)
# Beginnings of a further question, and words for what was just spoken of, where nothing is asked of
# the model: "can you make it shorter?" is about its answer.
_LEANS = re.compile(
    r"(?i)^\W*(?:and|or|what about|how about|und|oder|et|y|e|что|а|那|那么)\b|"
    r"^(?!.*\b(?:you|your|du|dein|vous|tu|usted|puedes)\b).*\b(?:it|its|he|him|his|she|her|they|"
    r"them|their|er|ihn|sie|es|il|elle|ils|elles|ella|ellos|lo|la)\b"
)


SentenceKind = Literal["asks", "leans", "orders"]
"""What a sentence does: it asks by itself, or leans on the exchange before it ("and the second
one?"), or has not the form of a question."""


class Sentence(NamedTuple):
    """A sentence of the user's message."""

    terms: tuple[Term, ...]
    kind: SentenceKind
    text: str
    """The sentence itself."""


def question(turn: Iterable[Part], before: Sequence[Part], other: str = "") -> tuple[Sentence, ...]:
    """Return the sentences of a user message, with what each asks.

    ``turn`` are the entries of that message, ``before`` those of the request up to it. Later
    messages are not read, so that the result is the same in all steps of the turn. ``other`` are
    words that may say the same: with the sentences that ask they are one more.
    """
    text = "\n".join(entry.text for entry in turn if entry.role == "user" and entry.kind == "text")
    users = [at for at, entry in enumerate(before) if entry.role == "user"]
    exchange = (
        [entry.text for entry in before[users[-1] :] if entry.kind == "text"] if users else []
    )
    recent = [set(words(before[at].text)) for at in users[-_USUAL:]]
    answered = {term.text for entry in before[-1:] for term in terms(entry.text)}
    sentences: list[Sentence] = []

    def weigh(term: Term) -> Term:
        # Words that are new in this message count more than those of the user's earlier messages.
        usual = sum(said.issuperset(term.text.split()) for said in recent) if recent[1:] else 0
        return term._replace(weight=term.weight * max(_LEAST, 1 - usual / _USUAL))

    # What a message only carries, such as a tool's output, asks nothing.
    for said in _sentences("".join(piece.text for piece in separate(text) if piece.is_own)):
        asks = bool(_MARK.search(said) or _ASKING.search(said))
        named = terms(said)
        wanted = tuple(map(weigh, named))
        if not asks and any(term.text in answered for term in named if term.weight == 1):
            wanted = ()  # It answers the message before it: words in both refer to that.
        sentences.append(Sentence(wanted, "asks" if asks else "orders", said))
        is_short = sum(term.weight for term in named) <= _FEW
        if asks and exchange and is_short and _LEANS.search(said):
            sentences.append(Sentence(terms("\n".join((said, *exchange))), "leans", said))
    if other:
        asking = [sentence.text for sentence in sentences if sentence.kind == "asks"]
        sentences.append(Sentence(terms("\n".join((*asking, other))), "asks", other))
    half = _MOST_SENTENCES // 2
    if len(sentences) > _MOST_SENTENCES:
        sentences[half:-half] = []
    return tuple(sentences)


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a message."""
    for sentence in map(str.strip, _ENDS.split(text)):
        # "So tell me: what we paid" asks after the colon; "invoice 7: what is missing" as a whole.
        head, colon, rest = sentence.partition(": ")
        yield from filter(None, (head, rest) if colon and not _DIGIT.search(head) else (sentence,))
