"""Detect whether an error, or a reply, means that the request is too long for the model.

A text is read sentence by sentence. A sentence with a veto is ignored; of the others the last clear
statement decides, because an error that lists its attempts ends with the one that counts. A text
that may state a rate limit or a token limit counts as a rate limit, as compacting the history
would not help against one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

from compacter.overflow.numbers import TokenLimit, measure
from compacter.overflow.signals import (
    MAX_EXCEPTIONS,
    NETWORK,
    Signals,
    find_handled,
    reasons,
    siblings,
    signals_of,
)
from compacter.overflow.table import Table, default_table
from compacter.overflow.text import Span, normalise, sentences

# Rules: meanings that together state a token limit, in one sentence. Commas separate alternatives.
_CLEAR: Final = {
    "code in the text": "code",
    "context exceeded": "context + exceed, context + too long",
    "context full": "context + full, subject + model + full, subject + token + full",
    "tokens exceed a limit": (
        "token + exceed + limit, token + exceed + subject, token + exceed + request, "
        "subject + exceed + limit + model"
    ),
    "too many tokens": "too many + subject, too many + request, too many + limit",
    "too long in tokens": (
        "too long + subject + token, too long + subject + model, too long + request + token"
    ),
    "bound on the input": (
        "bound + subject + token, bound + subject + length, bound + sum + length, "
        "bound + sum + subject"
        ", bound + context + model"
    ),
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
_MEANINGS: Final = frozenset(
    ("input limit", *(meaning for _, _, ways in _RULES for way in ways for meaning in way))
)

_NOT_A_LETTER: Final = re.compile(r"[^a-z]")

# Statuses of a refused caller or a busy server. A gateway may forward a token limit with one: both
# numbers must then be stated.
_OTHER_STATUS: Final = frozenset((401, 402, 403, 404, 405, 407, 408, 409, 429, 502, 503, 504, 529))
# Some sell prompts by their length: its numbers are a purse's, unless a window is named.
_PAYMENT_STATUS: Final = 402
# Rules that a rate limit or a quota could satisfy too.
_WITHOUT_WINDOW: Final = frozenset(("tokens exceed a limit", "too many tokens"))


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


NOTHING: Final = Verdict("nothing")


def detect_token_limit(error: BaseException) -> TokenLimit | None:
    """Return the token limit that ``error`` states, or None if it is another error. Never raises.

    Reads type, status, code, body and text of the exception and of related ones: its cause,
    exceptions in its attributes and arguments, the last of several attempts, members of a group,
    and ``__context__`` if the newer exception merely wraps it. Rate limits, quotas, a too large
    ``max_tokens``, expired tokens, overlong fields and counts of images or tools are not token
    limits, whatever their class is.
    """
    # An exception of an unknown object must not hide the provider's error.
    with suppress(Exception):
        return judge_error(error, default_table()).limit
    return None


def detect_text(
    text: str, *, status: int | None = None, code: str | None = None
) -> TokenLimit | None:
    """Return the token limit that the text of an error states, or None if it is another error.
    Never raises.

    Args:
        text: the text of an error.
        status: the HTTP status of the response, if known.
        code: the error code of the response, if known.
    """
    return explain(text, status=status, code=code).limit


def detect_in_body(body: object) -> TokenLimit | None:
    """Return the token limit that an error in a reply states, or None if it is another error.

    Args:
        body: the error as a dict, an object of an SDK or a text.
    """
    return judge(signals_of(body), default_table()).limit


def explain(
    error: BaseException | str, *, status: int | None = None, code: str | None = None
) -> Verdict:
    """Return the classification of an exception, or of the text of one, with its reason. Never
    raises.

    Args:
        error: an exception, or the text of an error.
        status: the HTTP status that belongs to a text, if known.
        code: the error code that belongs to a text, if known.
    """
    with suppress(Exception):
        table = default_table()
        if isinstance(error, BaseException):
            verdict = judge_error(error, table)
        else:
            verdict = judge(signals_of(error, status=status, code=code), table)
        # A veto has the name of its meaning; a rule has several meanings, all of which are told.
        wanted = {verdict.rule} & {row.meaning for row in table.rows} or _MEANINGS
        labels = (
            row.label
            for row in table.rows
            if row.meaning in wanted and re.search(row.compilable, verdict.statement)
        )
        return replace(verdict, rows=tuple(labels))
    return NOTHING


def judge_error(error: BaseException, table: Table, seen: set[int] | None = None) -> Verdict:
    """Return the verdict on an exception and its related ones; ``seen`` has the ids of those
    already judged.
    """
    seen = set() if seen is None else seen
    if id(error) in seen or len(seen) >= MAX_EXCEPTIONS or not isinstance(error, Exception):
        return NOTHING
    # Exceptions refer to one another in circles: a cause that holds its wrapper.
    seen.add(id(error))
    own = judge(signals_of(error), table)
    stated = own.limit
    if own.kind == "other error" or (
        stated and stated.limit is not None and stated.requested is not None
    ):
        return own
    # What stands behind it decides where its own text says nothing, and fills in numbers that it
    # lacks.
    behind = NOTHING
    for reason in reasons(error):
        behind = judge_error(reason, table, seen)
        if behind.kind != "nothing":
            break
    else:
        for verdict in [judge_error(member, table, seen) for member in siblings(error)]:
            if verdict.kind == "token limit" or (
                verdict.kind == "other error" and behind.kind != "token limit"
            ):
                behind = verdict
    if stated is None:
        old = find_handled(error)
        return behind if behind.kind != "nothing" or old is None else judge_error(old, table, seen)
    # Numbers that a wrapper lost are taken from its cause, unless that contradicts it.
    known = behind.limit
    if (
        known
        and stated.limit in {None, known.limit}
        and stated.requested in {None, known.requested}
    ):
        return replace(own, limit=replace(known, source=stated.source))
    return own


def judge(signals: Signals, table: Table) -> Verdict:
    """Return the verdict on the signals of one exception, reply or text."""
    # Patterns of class names are in lower case, as all of them.
    names = [name.lower() for name in signals.types]
    # Codes are written with hyphens too.
    coded = any(table["code"].fullmatch(code.replace("-", "_")) for code in signals.codes)
    text = normalise(signals.text)
    if not coded and table["other call"].search(text):
        return Verdict("other error", "other call", text)
    spans = sentences(text)
    read = [_read_sentence(text[start:end], table) for start, end in spans]
    codes = signals.codes | {str(signals.status)}
    decisive = [
        index
        for index, each in enumerate(read)
        if each.weight == "decides" and not (coded and each.veto)
    ]
    doubts = [index for index, each in enumerate(read) if each.weight == "doubt"]
    likely = [index for index, each in enumerate(read) if each.weight == "likely"]
    telling = [index for index in likely if read[index].rule != "advice"]

    rule = ""
    index = -1
    verdict = Verdict("nothing", statement=text)
    if decisive or (doubts and not coded):
        # The last one: a log of attempts ends with the one that counts.
        index = (decisive or doubts)[-1]
        rule = "" if read[index].veto else read[index].rule
        if not rule:
            kind: Literal["other error", "nothing"] = "other error" if decisive else "nothing"
            verdict = Verdict(kind, read[index].veto, text[slice(*spans[index])])
    elif coded:
        rule = "code"
    elif telling:
        rule = read[telling[0]].rule
        index = telling[0]
    elif (stated := _find_statement(text, spans, read, table, codes)) is not None:
        rule = "sizes"
        index = stated
    elif likely:
        rule = "advice"
        index = likely[0]
    elif any(table["type"].search(name) for name in names):
        rule = "class"
    if rule:
        # The statement includes the sentence before and two after.
        first = index if rule == "sizes" else max(0, index - 1)
        near = None if index < 0 else (spans[first][0], spans[min(index + 2, len(spans) - 1)][1])
        counted = any(each.counts_output for each in read)
        limit = measure(text, table, near=near, codes=codes, counted=counted, source=rule)
        verdict = Verdict(
            "token limit", rule, "" if index < 0 else text[slice(*spans[index])], limit
        )

    return verdict if coded else _beside_the_text(verdict, signals, names, table)


def _beside_the_text(verdict: Verdict, signals: Signals, names: list[str], table: Table) -> Verdict:
    """Return the verdict on the text, unless status, code or class speak for another error."""
    is_clear = verdict.rule in _CLEAR
    has_other_code = any(
        table["other code"].search(_NOT_A_LETTER.sub("", code)) for code in signals.codes
    )
    # Both numbers win over a status alone, which a gateway may have chosen; with a window they win
    # over a code alone too. A status and a code that agree are believed.
    agree = has_other_code and signals.status in _OTHER_STATUS
    if (is_clear or verdict.rule == "subject too long") and _states_both(verdict.limit):
        is_loose = has_other_code or signals.status == _PAYMENT_STATUS
        if not agree and (not is_loose or _names_window(verdict, table)):
            return verdict
    if signals.status in _OTHER_STATUS:
        return Verdict("other error", "status")
    if has_other_code:
        return Verdict("other error", "other code")
    if any(table["busy type"].search(name) for name in names):
        return Verdict("other error", "busy type")
    if not is_clear and any(table["other type"].search(name) for name in names):
        return Verdict("other error", "other type")
    if verdict.kind == "nothing" and signals.types and NETWORK.search(signals.types[0]):
        return Verdict("other error", "network")
    return verdict


def _states_both(stated: TokenLimit | None) -> bool:
    """Return whether a limit and a larger request are stated."""
    return (
        stated is not None
        and stated.limit is not None
        and stated.requested is not None
        and stated.limit < stated.requested
    )


def _names_window(verdict: Verdict, table: Table) -> bool:
    """Return whether a verdict is about what a model takes, not about tokens of some sum."""
    return verdict.rule not in _WITHOUT_WINDOW or any(
        table[meaning].search(verdict.statement) for meaning in ("context", "input limit", "model")
    )


class _Reading(NamedTuple):
    """Classification of one sentence."""

    weight: Literal["decides", "likely", "doubt", "silent"]
    rule: str = ""
    veto: str = ""  # The meaning that excludes a token limit.
    # Whether the limit is for the messages together with the completion.
    counts_output: bool = False


def _read_sentence(sentence: str, table: Table) -> _Reading:
    """Classify one sentence. A veto is a doubt only if the sentence could be the reason of the
    whole error.
    """
    if table["other error"].search(sentence):
        return _Reading("decides", veto="other error")
    if table["handled"].search(sentence) and not table["not handled"].search(sentence):
        return _Reading("decides", veto="handled")
    # An idiom ("ssl context") has words of a limit and is none: it is taken out, the rest is
    # read.
    plain = table["idiom"].sub(" ", sentence)
    present = {meaning for meaning in _MEANINGS if table[meaning].search(plain)}
    veto = ""
    if "output" in present and not _has_input(table["output"].sub(" ", plain), table):
        veto = "output"  # max_tokens is too large by itself
    elif table["other thing"].search(sentence):
        return _Reading("doubt", veto="other thing")
    elif not present & {"context", "token", "too many"} and table["other unit"].search(sentence):
        veto = "other unit"
    if "input limit" in present:
        present.add("context")
    rule, clear = next(
        ((name, clear) for name, clear, ways in _RULES if any(way <= present for way in ways)),
        ("", False),
    )
    if veto:
        return _Reading(
            "doubt" if rule or (veto == "other unit" and "limit" in present) else "silent",
            veto=veto,
        )
    states = present & {"exceed", "bound"}
    # "Shorten the messages or the completion" is advice, not a count.
    counts = "output" in present and (
        states or ("reduce" not in present and present & {"context", "sum"})
    )
    return _Reading(
        ("decides" if clear else "likely") if rule else "silent", rule, counts_output=bool(counts)
    )


def _has_input(sentence: str, table: Table) -> bool:
    """Return whether a sentence mentions the input too; in "exceeds the context length" the context
    is the limit.
    """
    sign = table["exceed"].search(sentence)
    # Before the verb stands what is too long, behind it what it is too long for.
    middle = sign.end() if sign else len(sentence)
    sentence = sentence[:middle] + table["context"].sub(" ", sentence[middle:])
    return bool(table["subject"].search(sentence) or table["sum"].search(sentence))


def _find_statement(
    text: str, spans: list[Span], read: list[_Reading], table: Table, codes: frozenset[str]
) -> int | None:
    """Return the index of a sentence that states, with the next one, a limit and a larger size; no
    rule is needed.
    """
    for index, (start, end) in enumerate(spans):
        if read[index].veto:
            continue
        # "The limit is 8192. You sent 9000." is one statement in two sentences.
        if index + 1 < len(spans) and not read[index + 1].veto:
            end = spans[index + 1][1]  # noqa: PLW2901 - the next sentence is read with it
        piece = text[start:end]
        if any(table[meaning].search(piece) for meaning in ("context", "input limit", "token")) or (
            table["too long"].search(piece) and table["request"].search(piece)
        ):
            sizes = measure(piece, table, codes=codes, guess=False)
            if (
                sizes.limit is not None
                and sizes.requested is not None
                and 64 <= sizes.limit < sizes.requested
            ):
                return index
    return None
