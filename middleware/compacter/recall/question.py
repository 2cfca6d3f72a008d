"""Find the sentences that ask in a user's message, and the task in an agent's step.

People write a greeting, a story, an order about style or a pasted log around the one sentence that
asks. As a whole, a message matches no passage well; so each sentence is weighed by itself, and
pasted text is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from compacter.messages.parts import Part
from compacter.recall.terms import is_about, telling
from compacter.text.pieces import separate, split

# Longest text of results, in characters, that only acknowledges a step, such as "written to a.txt".
_ACKNOWLEDGEMENT = 60
# Least share of the words of prose that are letters alone, before a mark at their end: of a line of
# code, a listing or a log fewer are; of "Job: ship order A-680 now." four in five.
_PLAIN_OF_PROSE = 0.7
# Fewest words of a sentence that states a task.
_FEWEST_WORDS = 4
# Characters to read at the end of a step's text, and at both ends of a message.
_LONGEST = 2_000
# A question mark, or in English a word of an indirect question: without these words .72 in place of
# .80 of such questions bring their answer.
_ASKING = re.compile(r"(?i)[?？؟՞]|\b(?:who|whom|whose|what|when|where|which|why|how|remind)\b")
_DIGIT = re.compile(r"\d")
_AROUND = ".,:;!?()\"'"


def question(turn: Iterable[Part]) -> list[str]:
    """Return the sentences of a user message, whose entries are ``turn``, that may be about
    anything: "Go on, please." brings no quotes.
    """
    text = "\n".join(entry.text for entry in turn if entry.role == "user" and entry.kind == "text")
    # Pasted text, such as a tool's output, asks nothing.
    own = "".join(piece.text for piece in separate(text) if piece.is_own)
    if len(own) > 2 * _LONGEST:
        own = f"{own[:_LONGEST]}\n{own[-_LONGEST:]}"
    return [each for each in _sentences(own) if is_asking(each) or telling(each)]


def is_asking(sentence: str) -> bool:
    """Return whether a sentence has the form of a question."""
    return bool(_ASKING.search(sentence))


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
    calls = "\n".join(entry.text for entry in step if entry.kind == "call")
    sentences = [sentence for text in stated for sentence in _sentences(text)]
    return [sentence for sentence in sentences if not is_about(sentence, calls)]


def _is_prose(line: str) -> bool:
    said = line.split()
    plain = sum(map(str.isalpha, (word.strip(_AROUND) for word in said)))
    return len(said) >= _FEWEST_WORDS and plain >= _PLAIN_OF_PROSE * len(said)


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a message."""
    for sentence in split(text):
        # "So tell me: what we paid" asks after the colon; "invoice 7: what is missing" as a whole.
        head, colon, rest = sentence.partition(": ")
        yield from filter(None, (head, rest) if colon and not _DIGIT.search(head) else (sentence,))
