"""Decide what the text of an error states.

A text is read sentence by sentence. A sentence that by itself says what is too long, and for which
window, *states* a token limit. It outranks every other kind of error that another sentence, line,
bracket or key mentions: quotas, retries, plans, keys, usage. Among other sentences the last one
decides: an error that lists its attempts ends with the one that counts, and a log ends with what
was done about the limit. A text without a statement that may mean a rate limit or a token limit
counts as a rate limit, as compacting the history would not help.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Final, Literal, NamedTuple

from compacter.overflow.numbers import SMALLEST_SIZE, TokenLimit, measure
from compacter.overflow.table import Patterns
from compacter.overflow.text import BREAK, SOFT, Span, clauses, mark, sentences

# Rules: meanings that together state a token limit, in one sentence. Commas separate alternatives.
_CLEAR: Final = {
    "code in the text": "code",
    "context exceeded": "context + exceed, context + too long",
    "context full": "context + full, subject + model + full, subject + token + full",
    "too long in tokens": (
        "too long + subject + token, too long + subject + model, too long + request + token"
    ),
    "bound on the input": (
        "bound + subject + token, bound + subject + length, bound + sum + length, "
        "bound + sum + subject, bound + context + model"
    ),
    # Last, as they name no window.
    "tokens exceed a limit": (
        "token + exceed + limit, token + exceed + subject, token + exceed + request, "
        "subject + exceed + limit + model"
    ),
    "too many tokens": "too many + subject, too many + request, too many + limit",
}
# These count only if no sentence of the text has a veto.
_LIKELY: Final = {
    "input and output exceed": "subject + output + exceed",
    "subject too long": "too long + subject",
    "request too long": "too long + request + model",
    "too many": "too many",
    "subject exceeds a limit": (
        "subject + exceed + model, subject + exceed + length, subject + full + limit + length, "
        "exceed + model + limit + length"
    ),
    "bound on the context": "bound + context",
    "advice": "reduce + subject",
}
_RULES: Final = {
    rule: tuple(frozenset(way.split(" + ")) for way in ways.split(", "))
    for rule, ways in (_CLEAR | _LIKELY).items()
}
MEANINGS: Final = frozenset(("input limit",)).union(*chain.from_iterable(_RULES.values()))
"""Meanings by which a token limit is recognised."""

# Rules that a rate limit or a quota could satisfy too, unless a window is named.
_WITHOUT_WINDOW: Final = ("tokens exceed a limit", "too many tokens", "too many")
# Likely rules that state a token limit if they come with a number of tokens.
_TELLING: Final = frozenset(
    ("subject too long", "request too long", "subject exceeds a limit", "bound on the context")
)
# Most letters before advice that is the whole message: "Error: please shorten the prompt".
_OPENING: Final = 30
# Meanings that both numbers of a statement may have.
_WINDOWS: Final = ("context", "input limit", "subject", "model")
# With the output: the limit is for both.
_COUNTED: Final = ("exceed", "bound", "context", "sum")
_BRACKETS: Final = re.compile(r"[(\[][^()\[\]]{0,300}(?:[)\]]|$)")
# Meanings that a statement outranks.
_OUTRANKED: Final = ("other error", "other thing")
# Meanings that name a fault.
_FAULTS: Final = ("too long", "too many", "exceed", "full", "bound", "limit")
ABOVE_BUDGET: Final = "request above a budget"
"""Rule of a request that is larger than a whole rate limit: no waiting helps."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Classification of an error, and its reason.

    ``rule`` is the name of the rule or the veto that decided, ``statement`` the sentence that it
    matched, normalised (the whole text if nothing decided), and ``rows`` are the rows of the table
    that match there (filled in by ``explain``).
    """

    kind: Literal["token limit", "other error", "nothing"]
    rule: str = ""
    statement: str = ""
    limit: TokenLimit | None = None
    rows: tuple[str, ...] = ()

    @property
    def is_clear(self) -> bool:
        """Whether the rule that decided needs no second sentence."""
        return self.rule in _CLEAR

    @property
    def states_both(self) -> bool:
        """Whether a limit and a larger request are stated."""
        return self.limit is not None and is_excess(self.limit)


Weight = Literal["states", "clear", "other error", "handled", "likely", "doubt", "silent"]


class _Reading(NamedTuple):
    """Classification of one sentence."""

    # A sentence that "states" names a window; one that is "clear" could mean a quota.
    weight: Weight
    rule: str = ""
    veto: str = ""  # The meaning that excludes a token limit.
    # Whether the limit is for the messages together with the completion.
    counts_output: bool = False


def decide(text: str, table: Patterns, codes: frozenset[str], *, coded: bool) -> Verdict:
    """Return the verdict on a text.

    Args:
        text: as the exception has it.
        table: the patterns.
        codes: status and codes of the error, which do not count tokens.
        coded: whether one of the codes names a token limit, so that a text that is about something
            else says nothing.
    """
    marked = mark(text)
    text = marked.replace(SOFT, " ")
    if not coded and table["other call"].search(text):
        return Verdict("other error", "other call", text)
    source = _read(text, marked, table, codes)
    index = source.find_deciding(coded=coded)
    reading = _Reading("clear", "code" if coded else "")
    near: Span | None = None
    statement = ""
    if index is not None:
        reading = source.read[index]
        near = source.near(index)
        statement = source.sentence(index)
    if reading.veto:
        is_doubt = reading.weight == "doubt"
        return Verdict("nothing" if is_doubt else "other error", reading.veto, statement)
    if not reading.rule:
        return Verdict("nothing", statement=source.text)
    counted = any(each.counts_output for each in source.read)
    limit = measure(source.text, table, near=near, codes=codes, counted=counted)
    return Verdict("token limit", reading.rule, statement, replace(limit, source=reading.rule))


@dataclass(frozen=True, slots=True)
class _Source:
    """A text with the readings of its sentences."""

    text: str
    spans: list[Span]
    read: list[_Reading]
    table: Patterns
    codes: frozenset[str]

    def sentence(self, index: int) -> str:
        """Return the sentence with this number."""
        return self.text[slice(*self.spans[index])]

    def near(self, index: int) -> Span:
        """Return the part of the text that belongs to the statement at ``index``: from the sentence
        before it to the second sentence after it.
        """
        return self.spans[max(0, index - 1)][0], self.spans[min(index + 2, len(self.spans) - 1)][1]

    def piece(self, index: int) -> str:
        """Return a sentence with the next one, if that has no veto.

        "The limit is 8192. You sent 9000." is one statement in two sentences.
        """
        follows = index + 1 < len(self.spans) and not self.read[index + 1].veto
        return self.text[self.spans[index][0] : self.spans[index + follows][1]]

    def weigh(self, index: int, *, is_doubted: bool) -> Weight:
        """Return how much a sentence says by itself: it "states" a token limit if it tells what is
        too long, and for which window, or both numbers.
        """
        reading = self.read[index]
        sentence = self.sentence(index)
        if reading.veto or sentence.rstrip().endswith("?"):
            return "silent"
        is_clear = reading.weight == "clear"
        if is_clear and names_window(reading.rule, sentence, self.table):
            return "states"
        # No quota is a matter of how long a prompt is; of characters or a field it may be.
        if reading.rule in {"request too long", "subject too long"} and not is_doubted:
            return "states"
        piece = self.piece(index)
        sizes = measure(piece, self.table, codes=self.codes, guess=False)
        if is_excess(sizes) and (sizes.limit or 0) >= SMALLEST_SIZE:
            has = partial(self.table.has, piece)
            is_named = has(*_WINDOWS) or (has("too long") and has("request"))
            if is_clear or (is_named and not is_doubted):
                return "states"
            return "likely" if is_named or has("token") else "silent"
        size = sizes.limit or sizes.requested or 0
        return "states" if reading.rule in _TELLING and size >= SMALLEST_SIZE else "silent"

    def find_deciding(self, *, coded: bool) -> int | None:
        """Return the index of the sentence that decides: the last one that is clear or has a veto
        (a log of attempts ends with the one that counts), else the last doubt, else the first one
        that states a token limit if nothing contradicts it.

        If a code names a token limit, no veto counts.
        """
        decisive = ("states", "clear") if coded else ("states", "clear", "other error", "handled")
        weights = [each.weight for each in self.read]
        last = [index for index, weight in enumerate(weights) if weight in decisive]
        if not last and not coded:
            last = [index for index, weight in enumerate(weights) if weight == "doubt"]
        if last or coded:
            return last[-1] if last else None
        for index in (index for index, weight in enumerate(weights) if weight == "likely"):
            # Advice is the whole message; elsewhere it follows another fault.
            advice = self.table["reduce"].search(self.text, *self.spans[index])
            letters = sum(map(str.isalpha, self.text[: advice.start()])) if advice else 0
            if self.read[index].rule != "advice" or letters <= _OPENING:
                return index
        return None


def _read(text: str, marked: str, table: Patterns, codes: frozenset[str]) -> _Source:
    """Classify the sentences of a text. If one of them states a token limit, spaces replace what it
    outranks, as that has other numbers.
    """
    spans = sentences(text)
    read = [_read_sentence(text[start:end], table, codes) for start, end in spans]
    plain = text
    alone = list(read)
    for index, (start, end) in enumerate(spans):
        if read[index].veto in {*_OUTRANKED, "other unit"}:
            # "... 9000 tokens (API key sk-1)" speaks for itself without its asides.
            rest = _without_asides(marked[start:end], table)
            plain = plain[:start] + rest + plain[end:]
            alone[index] = _read_sentence(rest, table, codes)
    source = _Source(plain, spans, alone, table, codes)
    # A doubt is about its own block of text: another line of a log is about another error.
    blocks = [text.count(BREAK, 0, start) for start, _ in spans]
    doubted = {block for block, each in zip(blocks, alone, strict=True) if each.weight == "doubt"}
    weights = [source.weigh(i, is_doubted=block in doubted) for i, block in enumerate(blocks)]
    is_stated = "states" in {*weights, *(each.weight for each in read)}
    for index, weight in enumerate(weights):
        if weight == "states":
            read[index] = alone[index]._replace(weight=weight, rule=alone[index].rule or "sizes")
        elif is_stated and read[index].veto in _OUTRANKED:
            read[index] = read[index]._replace(weight="silent")
        elif weight == "likely" and read[index] == _Reading("silent"):
            read[index] = _Reading(weight, "sizes")
    return replace(source, text=plain if is_stated else text, read=read)


def _without_asides(marked: str, table: Patterns) -> str:
    """Return a sentence with spaces for its brackets, lines and clauses that are about another
    error.
    """
    sentence = marked.replace(SOFT, " ")
    pieces = []
    vetoes = ["other error", "other unit"]
    for start, end in clauses(marked):
        piece = _BRACKETS.sub(lambda match: table.blank(match[0], *_OUTRANKED), sentence[start:end])
        # Before the fault is named, other units are of something else: "[22 of 24 GB] ...".
        if table.has(piece, *_FAULTS):
            vetoes = ["other error"]
        # Another thing is the subject of its sentence, unless it stands in brackets.
        pieces.append(table.blank(piece, *vetoes))
    return "".join(pieces)


def is_excess(stated: TokenLimit) -> bool:
    """Return whether the text states both a limit and the size of a request that is larger than the
    limit.
    """
    return 0 < (stated.limit or 0) < (stated.requested or 0)


def names_window(rule: str, statement: str, table: Patterns) -> bool:
    """Return whether a statement is about the window of a model, not about a quota of tokens."""
    is_named = rule not in {"", *_WITHOUT_WINDOW}
    return is_named or table.has(statement, "context", "input limit", "model")


def _read_sentence(sentence: str, table: Patterns, codes: frozenset[str]) -> _Reading:
    """Classify one sentence. A veto is a doubt only if the sentence could be the reason of the
    whole error.
    """
    sentence = table["aside"].sub(" ", sentence)
    if table["other error"].search(sentence):
        # No waiting helps a single request that is larger than all that a rate limit allows.
        is_one = table["one request"].search(sentence)
        if is_one and is_excess(measure(sentence, table, codes=codes, guess=False)):
            return _Reading("states", ABOVE_BUDGET)
        return _Reading("other error", veto="other error")
    if table["handled"].search(sentence) and not table["not handled"].search(sentence):
        return _Reading("handled", veto="handled")
    # An idiom ("ssl context") has words of a limit but does not state one: remove it, and read the
    # rest.
    plain = table["idiom"].sub(" ", sentence)
    present = {meaning for meaning in MEANINGS if table.has(plain, meaning)}
    veto = _doubt(sentence, plain, present, table)
    if "input limit" in present:
        present.add("context")
    rules = (rule for rule, ways in _RULES.items() if any(way <= present for way in ways))
    rule = next(rules, "")
    if veto:
        is_doubt = rule or veto == "other thing" or (veto == "other unit" and "limit" in present)
        return _Reading("doubt" if is_doubt else "silent", veto=veto)
    counts_output = "output" in present and not present.isdisjoint(_COUNTED)
    weight: Weight = "clear" if rule in _CLEAR else "likely" if rule else "silent"
    return _Reading(weight, rule, counts_output=counts_output)


def _doubt(sentence: str, plain: str, present: set[str], table: Patterns) -> str:
    """Return the meaning that makes it doubtful that a sentence states a token limit, if any.

    ``plain`` is the sentence without idioms, ``present`` has its meanings.
    """
    if "output" in present and not _has_input(table["output"].sub(" ", plain), table):
        return "output"  # max_tokens is too large by itself
    if table["other thing"].search(sentence):
        return "other thing"
    counts_tokens = present & {"context", "token", "too many"}
    return "other unit" if not counts_tokens and table["other unit"].search(sentence) else ""


def _has_input(sentence: str, table: Patterns) -> bool:
    """Return whether a sentence mentions the input too; in "exceeds the context length" the context
    is the limit.
    """
    sign = table["exceed"].search(sentence)
    # The words before the verb name what is too long; those after it, the limit.
    middle = sign.end() if sign else len(sentence)
    sentence = sentence[:middle] + table["context"].sub(" ", sentence[middle:])
    return table.has(sentence, "subject", "sum")
