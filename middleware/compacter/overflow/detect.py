"""Detect whether an error, or a reply, means that the request is too long for the model.

``signals`` collects the evidence of an exception, and ``statements`` decides what its text states.
This file decides by text, status, codes and classes together, of an exception and its related ones.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

from compacter.overflow.numbers import TokenLimit, measure
from compacter.overflow.signals import (
    MAX_MEMBERS,
    NETWORK,
    Signals,
    find_handled,
    reasons,
    signals_of,
)
from compacter.overflow.statements import ABOVE_BUDGET, MEANINGS, Verdict, decide, names_window
from compacter.overflow.table import Patterns, default_table
from compacter.overflow.text import normalise

_NOT_A_LETTER: Final = re.compile(r"[^a-z]")

# Statuses of a refused caller or a busy server. A gateway may forward a token limit with one: both
# numbers must then be stated.
_OTHER_STATUS: Final = frozenset((401, 402, 403, 404, 405, 407, 408, 409, 429, 502, 503, 504, 529))
# Some providers answer it with prices per length: ignore the numbers unless a window is named.
_PAYMENT_STATUS: Final = 402
NOTHING: Final = Verdict("nothing")


def detect_token_limit(error: BaseException) -> TokenLimit | None:
    """Return the token limit that the exception ``error`` states; ``None`` if it is an error of
    another kind. Raises ``TypeError`` if ``error`` is not an exception, and no other exception.

    The detector reads the type, status, code, body and text of the exception. It reads related
    exceptions in the same way: its cause, exceptions in its attributes and arguments, the last of
    several attempts, the members of a group, and ``__context__`` if the newer exception merely
    wraps that one. Some errors mention tokens or limits, but are not token limits, whatever class
    they have: rate limits, quotas, a ``max_tokens`` that is too large, expired tokens, a field that
    is too long, and too many images or tools.
    """
    given: Any = error
    if not isinstance(given, BaseException):
        raise TypeError(
            f"detect_token_limit takes an exception, not {given!r}; a text of one is read as "
            "detect_token_limit(Exception(text))"
        )
    # An exception of an unknown object must not hide the provider's error.
    with suppress(Exception):
        return judge_error(error, default_table()).limit
    return None


def is_sealed(error: object) -> bool:
    """Return whether an error, or the body of one, states that the conversation has something that
    only another model can read. Never raises.

    Examples are encrypted reasoning and signed thinking, after a switch of model. Errors of a
    refused caller or a busy server do not count. Check for a token limit first.
    """
    with suppress(Exception):
        behind = reasons(error) if isinstance(error, BaseException) else ()
        return any(
            default_table()["sealed"].search(normalise(" ".join((signals.text, *signals.codes))))
            for signals in map(signals_of, (error, *behind))
            if signals.status not in _OTHER_STATUS
        )
    return False


def explain(error: object, *, status: int | None = None, code: str | None = None) -> Verdict:
    """Return the kind of an error, such as a token limit, together with the rule that decided it.
    Never raises an exception.

    Args:
        error: an exception; the error inside a reply (a dict or an object of an SDK); or the text
            of an error.
        status: the HTTP status of the error, if ``error`` is a text and you know it.
        code: the provider's code of the error, if ``error`` is a text and you know it.
    """
    with suppress(Exception):
        table = default_table()
        if isinstance(error, BaseException):
            verdict = judge_error(error, table)
        else:
            verdict = judge(signals_of(error, status=status, code=code), table)
        # A veto has the name of its meaning; a rule has several meanings, and all are reported.
        wanted = {verdict.rule} & {row.meaning for row in table.rows} or MEANINGS
        labels = (
            row.label
            for row in table.rows
            if row.meaning in wanted and re.search(row.compilable, verdict.statement)
        )
        return replace(verdict, rows=tuple(labels))
    return NOTHING


def judge_error(error: BaseException, table: Patterns, seen: set[int] | None = None) -> Verdict:
    """Return the verdict on an exception and its related ones; ``seen`` has the ids of those
    already judged.
    """
    seen = set() if seen is None else seen
    if id(error) in seen or len(seen) >= MAX_MEMBERS or not isinstance(error, Exception):
        return NOTHING
    # Exceptions refer to one another in circles: a cause that holds its wrapper.
    seen.add(id(error))
    own = judge(signals_of(error), table)
    stated = own.limit
    if own.kind == "other error" or own.states_both:
        return own
    # Related exceptions decide if its own text does not, and fill in numbers that it lacks.
    verdicts = (judge_error(reason, table, seen) for reason in reasons(error))
    said = [verdict for verdict in verdicts if verdict.kind != "nothing"]
    behind = said[0] if said else NOTHING
    if stated is None:
        old = find_handled(error)
        if behind.kind == "nothing" and old is not None:
            behind = judge_error(old, table, seen)
        # If nothing decides, the veto in the error's own text is the reason.
        return own if behind.kind == "nothing" else behind
    # Use the cause's numbers if a wrapper lost them, unless the cause contradicts it.
    known = behind.limit
    if (
        known
        and stated.limit in {None, known.limit}
        and stated.requested in {None, known.requested}
    ):
        return replace(own, limit=replace(known, source=stated.source))
    return own


def judge(signals: Signals, table: Patterns) -> Verdict:
    """Return the verdict on the signals of one exception, reply or text."""
    # Patterns of class names are in lower case, as all of them.
    names = " ".join(signals.types).lower()
    # Codes are written with hyphens too.
    coded = any(table["code"].fullmatch(code.replace("-", "_")) for code in signals.codes)
    codes = signals.codes | {str(signals.status)}
    verdict = decide(signals.text, table, codes, coded=coded)
    if verdict.kind == "nothing" and not verdict.rule and table.has(names, "type"):
        limit = measure(verdict.statement, table, codes=codes)
        verdict = Verdict("token limit", "class", limit=replace(limit, source="class"))
    return verdict if coded else _beside_the_text(verdict, signals, names, table)


def _without_codes(signals: Signals) -> str:
    """Return the text in words alone, as a body repeats its codes in it."""
    text = normalise(signals.text)
    for code in signals.codes:
        text = text.replace(code, " ")
    return text


def _beside_the_text(verdict: Verdict, signals: Signals, names: str, table: Patterns) -> Verdict:
    """Return the verdict on the text, unless status, code or class speak for another error."""
    has_other_code = any(
        table.has(_NOT_A_LETTER.sub("", code), "other code") for code in signals.codes
    )
    if verdict.rule == ABOVE_BUDGET:
        return verdict
    # Both numbers win over a status alone, which a gateway may have chosen; with a window they win
    # over a code alone too. A status and a code that agree are believed, unless the text also has
    # the error that they are about: a router tells why the first model failed, then the fallback.
    agree = has_other_code and signals.status in _OTHER_STATUS
    agree = agree and not table.has(_without_codes(signals), "other error")
    if (verdict.is_clear or verdict.rule == "subject too long") and verdict.states_both:
        is_loose = has_other_code or signals.status == _PAYMENT_STATUS
        if not agree and (not is_loose or names_window(verdict.rule, verdict.statement, table)):
            return verdict
    speaks_against = {
        "status": signals.status in _OTHER_STATUS,
        "other code": has_other_code,
        "busy type": table.has(names, "busy type"),
        "other type": not verdict.is_clear and table.has(names, "other type"),
        "network": verdict.kind == "nothing" and NETWORK.search("".join(signals.types[:1])),
    }
    for rule, is_against in speaks_against.items():
        if is_against:
            return Verdict("other error", rule)
    return verdict
