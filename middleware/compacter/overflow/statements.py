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
from typing import Final, Literal, NamedTuple

from compacter.overflow.numbers import SMALLEST_SIZE, TokenLimit, measure
from compacter.overflow.table import Table
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
    "too many tokens": "too many",
    "subject exceeds a limit": (
        "subject + exceed + model, subject + exceed + length, subject + full + limit + length, "
        "exceed + model + limit + length"
    ),
    "bound on the context": "bound + context",
    "advice": "reduce + subject",
}
_RULES: Final = tuple(
    (name, name_of is _CLEAR, tuple(frozenset(each.split(" + ")) for each in ways.split(", ")))
    for name_of in (_CLEAR, _LIKELY)
    for name, ways in name_of.items()
)
MEANINGS: Final = frozenset(
    ("input limit", *(meaning for _, _, ways in _RULES for way in ways for meaning in way))
)
"""Meanings by which a token limit is recognised."""

# Rules that a rate limit or a quota could satisfy too, unless a window is named.
_WITHOUT_WINDOW: Final = frozenset(("tokens exceed a limit", "too many tokens"))
# Likely rules that state a token limit if they come with a number of tokens.
_TELLING: Final = frozenset(
    ("subject too long", "request too long", "subject exceeds a limit", "bound on the context")
)
# Advice is the whole message, or it follows another fault: letters before it.
_OPENING: Final = 30
# Meanings that both numbers of a statement may have.
_WINDOWS: Final = ("context", "input limit", "subject", "model")
_SIZED: Final = ("context", "input limit", "token")
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
        """Whether a single sentence sufficed."""
        return self.rule in _CLEAR

    @property
    def states_both(self) -> bool:
        """Whether a limit and a larger request are stated."""
        return self.limit is not None and is_excess(self.limit)


class _Reading(NamedTuple):
    """Classification of one sentence."""

    # A sentence that "states" names a window; one that is "clear" could mean a quota.
    weight: Literal["states", "clear", "vetoes", "likely", "doubt", "silent"]
    rule: str = ""
    veto: str = ""  # The meaning that excludes a token limit.
    # Whether the limit is for the messages together with the completion.
    counts_output: bool = False


def decide(text: str, table: Table, codes: frozenset[str], *, coded: bool) -> Verdict:
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
    text = source.text
    spans = source.spans
    read = source.read
    last = _last_claim(read, coded=coded)
    if last is not None:
        index = last
        rule = read[last].rule
        if veto := read[last].veto:
            is_other = read[last].weight == "vetoes"
            where = text[slice(*spans[last])]
            return Verdict("other error" if is_other else "nothing", veto, where)
    elif coded:
        index = -1
        rule = "code"
    else:
        index, rule = source.find_likely()
    if not rule:
        return Verdict("nothing", statement=text)
    near = None
    if index >= 0:
        # The statement includes the sentence before and two after.
        first = index if rule == "sizes" else max(0, index - 1)
        near = (spans[first][0], spans[min(index + 2, len(spans) - 1)][1])
    counted = any(each.counts_output for each in read)
    limit = measure(text, table, near=near, codes=codes, counted=counted, source=rule)
    return Verdict("token limit", rule, text[slice(*spans[index])] if index >= 0 else "", limit)


def _last_claim(read: list[_Reading], *, coded: bool) -> int | None:
    """Return the index of the last sentence that decides, else of the last doubt: a log of attempts
    ends with the one that counts.

    If a code names a token limit, no veto counts.
    """
    is_stated = any(each.weight == "states" for each in read)
    doubt = None
    for index, reading in enumerate(read):
        if reading.weight == "doubt" and not coded:
            doubt = index
    for index in reversed(range(len(read))):
        is_outranked = coded or (is_stated and read[index].veto in _OUTRANKED)
        if read[index].weight in {"states", "clear"}:
            return index
        if read[index].weight == "vetoes" and not is_outranked:
            return index
    return doubt


@dataclass(frozen=True, slots=True)
class _Source:
    """A text with the readings of its sentences."""

    text: str
    spans: list[Span]
    read: list[_Reading]
    table: Table
    codes: frozenset[str]

    def piece(self, index: int) -> str:
        """Return a sentence with the next one, if that has no veto.

        "The limit is 8192. You sent 9000." is one statement in two sentences.
        """
        follows = index + 1 < len(self.spans) and not self.read[index + 1].veto
        return self.text[self.spans[index][0] : self.spans[index + follows][1]]

    def sizes(self, index: int) -> TokenLimit:
        """Return the numbers that words in a piece give a role."""
        return measure(self.piece(index), self.table, codes=self.codes, guess=False)

    def states(self, index: int, *, is_doubted: bool) -> bool:
        """Return whether a sentence alone states what is too long, and for which window."""
        reading = self.read[index]
        sentence = self.text[slice(*self.spans[index])]
        if reading.veto or not reading.rule or sentence.rstrip().endswith("?"):
            return False
        is_clear = reading.rule in _CLEAR
        if is_clear and names_window(reading.rule, sentence, self.table):
            return True
        # No quota is a matter of how long a prompt is; of characters or a field it may be.
        if reading.rule in {"request too long", "subject too long"} and not is_doubted:
            return True
        sizes = self.sizes(index)
        if is_clear:
            return is_excess(sizes)
        size = sizes.limit or sizes.requested or 0
        return reading.rule in _TELLING and size >= SMALLEST_SIZE

    def find_pair(self, names: tuple[str, ...]) -> int | None:
        """Return the index of a sentence that, with the next one, states a limit and a larger size
        of what one of ``names`` means; no rule is needed.
        """
        has = self.table.has
        for index, reading in enumerate(self.read):
            if reading.veto or (reading.rule in _WITHOUT_WINDOW and names is _WINDOWS):
                continue
            piece = self.piece(index)
            if has(piece, *names) or (has(piece, "too long") and has(piece, "request")):
                sizes = self.sizes(index)
                if is_excess(sizes) and (sizes.limit or 0) >= SMALLEST_SIZE:
                    return index
        return None

    def find_likely(self) -> tuple[int, str]:
        """Return index and rule of a sentence that states a token limit if nothing contradicts it;
        the rule is empty if there is no such sentence.
        """
        likely = [index for index, each in enumerate(self.read) if each.weight == "likely"]
        for index in likely:
            if self.read[index].rule != "advice":
                return index, self.read[index].rule
        if (pair := self.find_pair(_SIZED)) is not None:
            return pair, "sizes"
        # Advice is the whole message; elsewhere it follows another fault.
        for index in likely:
            advice = self.table["reduce"].search(self.text, *self.spans[index])
            if advice and sum(map(str.isalpha, self.text[: advice.start()])) <= _OPENING:
                return index, "advice"
        return -1, ""


def _read(text: str, marked: str, table: Table, codes: frozenset[str]) -> _Source:
    """Classify the sentences of a text. Text that a statement outranks has other numbers, so spaces
    replace it.
    """
    spans = sentences(text)
    read = [_read_sentence(text[start:end], table) for start, end in spans]
    whole = _Source(text, spans, read, table, codes)
    for index, (start, end) in enumerate(spans):
        # No waiting helps a single request that is larger than all that a rate limit allows.
        is_one = table["one request"].search(text, start, end) is not None
        if is_one and read[index].veto == "other error" and is_excess(whole.sizes(index)):
            read[index] = _Reading("states", ABOVE_BUDGET)
    plain = text
    alone = list(read)
    for index, (start, end) in enumerate(spans):
        if read[index].veto in {*_OUTRANKED, "other unit"}:
            # "... 9000 tokens (API key sk-1)" speaks for itself without its asides.
            rest = _without_asides(marked[start:end], table)
            plain = plain[:start] + rest + plain[end:]
            alone[index] = _read_sentence(rest, table)
    source = replace(whole, text=plain, read=alone)
    # A doubt is about its own block of text: another line of a log is about another error.
    blocks = [text.count(BREAK, 0, start) for start, _ in spans]
    doubted = {block for block, each in zip(blocks, alone, strict=True) if each.weight == "doubt"}
    for index, block in enumerate(blocks):
        if source.states(index, is_doubted=block in doubted):
            read[index] = alone[index]._replace(weight="states")
    if all(each.weight != "states" for each in read):
        pair = source.find_pair(_WINDOWS)
        if pair is None or blocks[pair] in doubted:
            return whole
        read[pair] = alone[pair]._replace(weight="states", rule="sizes")
    for (start, end), each in zip(spans, alone, strict=True):
        if each.veto in _OUTRANKED:
            plain = plain[:start] + " " * (end - start) + plain[end:]
    return replace(whole, text=plain)


def _without_asides(marked: str, table: Table) -> str:
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
    """Return whether a limit and a larger request are stated."""
    return 0 < (stated.limit or 0) < (stated.requested or 0)


def names_window(rule: str, statement: str, table: Table) -> bool:
    """Return whether a statement is about the window of a model, not about a quota of tokens."""
    is_named = rule not in {"", *_WITHOUT_WINDOW}
    return is_named or table.has(statement, "context", "input limit", "model")


def _read_sentence(sentence: str, table: Table) -> _Reading:
    """Classify one sentence. A veto is a doubt only if the sentence could be the reason of the
    whole error.
    """
    sentence = table["aside"].sub(" ", sentence)
    if table["other error"].search(sentence):
        return _Reading("vetoes", veto="other error")
    if table["handled"].search(sentence) and not table["not handled"].search(sentence):
        return _Reading("vetoes", veto="handled")
    # An idiom ("ssl context") has words of a limit but does not state one: remove it, and read the
    # rest.
    plain = table["idiom"].sub(" ", sentence)
    present = {meaning for meaning in MEANINGS if table.has(plain, meaning)}
    veto = _doubt(sentence, plain, present, table)
    if veto == "other thing":
        return _Reading("doubt", veto=veto)
    if "input limit" in present:
        present.add("context")
    rule, clear = next(
        ((name, clear) for name, clear, ways in _RULES if any(way <= present for way in ways)),
        ("", False),
    )
    if veto:
        is_doubt = rule or (veto == "other unit" and "limit" in present)
        return _Reading("doubt" if is_doubt else "silent", veto=veto)
    if not rule:
        return _Reading("silent", counts_output=_counts_output(present))
    return _Reading("clear" if clear else "likely", rule, counts_output=_counts_output(present))


def _doubt(sentence: str, plain: str, present: set[str], table: Table) -> str:
    """Return the meaning that makes it doubtful that a sentence states a token limit, if any.

    ``plain`` is the sentence without idioms, ``present`` has its meanings.
    """
    if "output" in present and not _has_input(table["output"].sub(" ", plain), table):
        return "output"  # max_tokens is too large by itself
    if table["other thing"].search(sentence):
        return "other thing"
    counts_tokens = present & {"context", "token", "too many"}
    return "other unit" if not counts_tokens and table["other unit"].search(sentence) else ""


def _counts_output(present: set[str]) -> bool:
    """Return whether a sentence with these meanings counts the output with the input; "shorten the
    messages or the completion" is advice, not a count.
    """
    if "output" not in present:
        return False
    is_advice = "reduce" in present
    return bool(present & {"exceed", "bound"} or (not is_advice and present & {"context", "sum"}))


def _has_input(sentence: str, table: Table) -> bool:
    """Return whether a sentence mentions the input too; in "exceeds the context length" the context
    is the limit.
    """
    sign = table["exceed"].search(sentence)
    # The words before the verb name what is too long; those after it, the limit.
    middle = sign.end() if sign else len(sentence)
    sentence = sentence[:middle] + table["context"].sub(" ", sentence[middle:])
    return table.has(sentence, "subject", "sum")
