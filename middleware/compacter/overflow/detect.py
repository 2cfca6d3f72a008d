"""Detect whether an error, or a reply, means that the request is too long for the model.

A text is read sentence by sentence. A sentence with a veto is ignored; of the others the last clear statement decides,
because an error that lists its attempts ends with the one that counts. A text that may state a rate limit or a token
limit counts as a rate limit, as folding the history would not help against one.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from compacter.overflow.numbers import NUMBER_WORDS, TokenLimit, measure
from compacter.overflow.signals import (
    MAX_EXCEPTIONS,
    NETWORK,
    Signals,
    Span,
    fold,
    handled,
    normalise,
    reasons,
    sentences,
    siblings,
    signals_of,
)
from compacter.overflow.table import LIMITS, VETOES, Row, Table, compiled

ROWS: Final[tuple[Row, ...]] = (*LIMITS, *VETOES, *NUMBER_WORDS)
"""The whole table."""

# Rules: meanings that together state a token limit, in one sentence. Commas separate alternatives.
_CLEAR: Final = {
    "code in the text": "code",
    "context exceeded": "context + exceed, context + too long",
    "context full": "context + full, subject + model + full, subject + token + full",
    "tokens exceed a limit": (
        "token + exceed + limit, token + exceed + subject, token + exceed + request, subject + exceed + limit + model"
    ),
    "too many tokens": "too many + subject, too many + request, too many + limit",
    "too long in tokens": "too long + subject + token, too long + subject + model, too long + request + token",
    "bound on the input": (
        "bound + subject + token, bound + subject + length, bound + sum + length, bound + sum + subject"
        ", bound + context + model"
    ),
}
# These count only if no sentence of the text has a veto.
_LIKELY: Final = {
    "input and output exceed": "subject + output + exceed",
    "subject too long": "too long + subject",
    "request too long": "too long + request + model",
    "too many tokens": "too many",
    "subject exceeds a limit": "subject + exceed + model, subject + exceed + length, subject + full + limit + length",
    "bound on the context": "bound + context",
    "advice": "reduce + subject",
}
_RULES: Final = tuple(
    (name, name_of is _CLEAR, tuple(frozenset(each.split(" + ")) for each in ways.split(", ")))
    for name_of in (_CLEAR, _LIKELY)
    for name, ways in name_of.items()
)
_MEANINGS: Final = frozenset(("input limit", *(meaning for _, _, ways in _RULES for way in ways for meaning in way)))

_OTHER_STATUS: Final = frozenset((401, 402, 403, 404, 405, 407))
"""Statuses that mean another error, whatever the text says."""
_BUSY_STATUS: Final = frozenset((408, 409, 429, 502, 503, 504, 529))
"""Statuses of a busy server. A gateway may forward a token limit with one: both numbers must then be stated."""
_BUSY_TYPE: Final = re.compile(r"ratelimit|toomanyrequests|overloaded|unavailable")
_OTHER_CODE: Final = re.compile(
    r"rate_?limit|quota|throttl|too_?many_?requests|authenti|authoriz|api_?key|permission|forbidden|expired|overloaded"
    r"|content_?(?:filter|policy)|billing|insufficient|not_?found|(?:string|array)_(?:above|too)|resource_?exhausted"
)
_OTHER_TYPE: Final = re.compile(
    r"throttl|quota|authentication|permissiondenied|unauthorized|forbidden|expiredtoken|contentpolicy|contentfilter"
    r"|lengthfinishreason"
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Classification of an error, and its reason.

    ``rule`` is the name of the rule or the veto that decided, ``statement`` the sentence that it matched, normalised
    (the whole text if nothing decided), and ``rows`` are the rows of the table that match there (filled in by
    ``explain``).
    """

    kind: Literal["token limit", "other error", "nothing"]
    rule: str = ""
    statement: str = ""
    limit: TokenLimit | None = None
    rows: tuple[str, ...] = ()


NOTHING: Final = Verdict("nothing")


@cache
def default_table() -> Table:
    """Return the patterns of ``ROWS``, compiled at the first error, as that takes a tenth of a second."""
    return compiled(ROWS)


def detect_token_limit(error: BaseException) -> TokenLimit | None:
    """Return the token limit that ``error`` states, or None if it is another error. Never raises.

    Reads type, status, code, body and text of the exception and of related ones: its cause, exceptions in its
    attributes and arguments, the last of several attempts, members of a group, and ``__context__`` if the newer
    exception merely wraps it. Rate limits, quotas, a too large ``max_tokens``, expired tokens, overlong fields and
    counts of images or tools are not token limits, whatever their class is.
    """
    with suppress(Exception):  # An exception of an unknown object must not hide the provider's error.
        return judge_error(error, default_table()).limit
    return None


def detect_text(text: str, *, status: int | None = None, code: str | None = None) -> TokenLimit | None:
    """Return the token limit that the text of an error states, or None if it is another error. Never raises.

    Args:
        text: the text of an error.
        status: the HTTP status of the response, if known.
        code: the error code of the response, if known.
    """
    return explain(text, status=status, code=code).limit


def explain(error: BaseException | str, *, status: int | None = None, code: str | None = None) -> Verdict:
    """Return the classification of an exception, or of the text of one, with its reason. Never raises.

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
        wanted = {verdict.rule} if verdict.rule in table else _MEANINGS
        rows = (row for row in ROWS if row.meaning in wanted and re.search(fold(row.pattern), verdict.statement))
        return replace(verdict, rows=tuple(row.name for row in rows))
    return NOTHING


def judge_error(error: BaseException, table: Table, seen: set[int] | None = None) -> Verdict:
    """Return the verdict on an exception and its related ones; ``seen`` has the ids of those already judged."""
    seen = set() if seen is None else seen
    if id(error) in seen or len(seen) >= MAX_EXCEPTIONS or not isinstance(error, Exception):
        return NOTHING
    seen.add(id(error))
    own = judge(signals_of(error), table)
    stated = own.limit
    if own.kind == "other error" or (stated and stated.limit is not None and stated.requested is not None):
        return own
    behind = NOTHING
    for reason in reasons(error):
        behind = judge_error(reason, table, seen)
        if behind.kind != "nothing":
            break
    else:
        for verdict in [judge_error(member, table, seen) for member in siblings(error)]:
            if verdict.kind == "token limit" or (verdict.kind == "other error" and behind.kind != "token limit"):
                behind = verdict
    if stated is None:
        old = handled(error)
        return behind if behind.kind != "nothing" or old is None else judge_error(old, table, seen)
    # Numbers that a wrapper lost are taken from its cause, unless that contradicts it.
    known = behind.limit
    if known and stated.limit in {None, known.limit} and stated.requested in {None, known.requested}:
        return replace(own, limit=replace(known, source=stated.source))
    return own


def judge(signals: Signals, table: Table) -> Verdict:
    """Return the verdict on the signals of one exception, reply or text."""
    names = [name.lower() for name in signals.types]
    coded = any(table["code"].fullmatch(code.replace("-", "_")) for code in signals.codes)
    if not coded:
        if signals.status in _OTHER_STATUS:
            return Verdict("other error", "status")
        if any(_OTHER_CODE.search(code) for code in signals.codes):
            return Verdict("other error", "code")
        if any(_OTHER_TYPE.search(name) for name in names):
            return Verdict("other error", "class")
    text = normalise(signals.text)
    if not coded and table["other call"].search(text):
        return Verdict("other error", "other call", text)
    spans = sentences(text)
    read = [_read_sentence(text[start:end], table) for start, end in spans]
    codes = signals.codes | {str(signals.status)}
    decisive = [index for index, each in enumerate(read) if each.weight == "decides" and not (coded and each.veto)]
    doubts = [index for index, each in enumerate(read) if each.weight == "doubt"]
    likely = [index for index, each in enumerate(read) if each.weight == "likely"]
    telling = [index for index in likely if read[index].rule != "advice"]

    rule, index = "", -1
    verdict = Verdict("nothing", statement=text)
    if decisive or (doubts and not coded):
        index = (decisive or doubts)[-1]
        rule = "" if read[index].veto else read[index].rule
        if not rule:
            kind: Literal["other error", "nothing"] = "other error" if decisive else "nothing"
            verdict = Verdict(kind, read[index].veto, text[slice(*spans[index])])
    elif coded:
        rule = "code"
    elif telling:
        rule, index = read[telling[0]].rule, telling[0]
    elif (stated := _stated(text, spans, read, table, codes)) is not None:
        rule, index = "sizes", stated
    elif likely:
        rule, index = "advice", likely[0]
    elif any(table["type"].search(name) for name in names):
        rule = "class"
    if rule:
        # The statement includes the sentence before and two after.
        first = index if rule == "sizes" else max(0, index - 1)
        near = None if index < 0 else (spans[first][0], spans[min(index + 2, len(spans) - 1)][1])
        counted = any(each.counts_output for each in read)
        limit = measure(text, table, near=near, codes=codes, counted=counted, source=rule)
        verdict = Verdict("token limit", rule, "" if index < 0 else text[slice(*spans[index])], limit)

    found = verdict.limit or TokenLimit()
    over = found.limit is not None and found.requested is not None and found.requested > found.limit
    if not coded and not (over and (rule in _CLEAR or rule == "subject too long")):
        if signals.status in _BUSY_STATUS or any(_BUSY_TYPE.search(name) for name in names):
            return Verdict("other error", "status or class of a busy server")
        if verdict.kind == "nothing" and signals.types and NETWORK.search(signals.types[0]):
            return Verdict("other error", "network")
    return verdict


class _Reading(NamedTuple):
    """Classification of one sentence."""

    weight: Literal["decides", "likely", "doubt", "silent"]
    rule: str = ""
    veto: str = ""  # The meaning that excludes a token limit.
    counts_output: bool = False  # Whether the limit is for the messages together with the completion.


def _read_sentence(sentence: str, table: Table) -> _Reading:
    """Classify one sentence. A veto is a doubt only if the sentence could be the reason of the whole error."""
    if table["other error"].search(sentence):
        return _Reading("decides", veto="other error")
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
        ((name, clear) for name, clear, ways in _RULES if any(way <= present for way in ways)), ("", False)
    )
    if veto:
        return _Reading("doubt" if rule or (veto == "other unit" and "limit" in present) else "silent", veto=veto)
    states = present & {"exceed", "bound"}
    # "Shorten the messages or the completion" is advice, not a count.
    counts = "output" in present and (states or ("reduce" not in present and present & {"context", "sum"}))
    return _Reading(("decides" if clear else "likely") if rule else "silent", rule, counts_output=bool(counts))


def _has_input(sentence: str, table: Table) -> bool:
    """Return whether a sentence mentions the input too; in "exceeds the context length" the context is the limit."""
    left, sign, right = re.split(r"(\bexceeds?\b|\bthan\b|$)", sentence, maxsplit=1)
    sentence = f"{left}{sign}{table['context'].sub(' ', right)}"
    return bool(table["subject"].search(sentence) or table["sum"].search(sentence))


def _stated(text: str, spans: list[Span], read: list[_Reading], table: Table, codes: frozenset[str]) -> int | None:
    """Return the index of a sentence that states, with the next one, a limit and a larger size; no rule is needed."""
    for index, (start, end) in enumerate(spans):
        if read[index].veto:
            continue
        if index + 1 < len(spans) and not read[index + 1].veto:
            end = spans[index + 1][1]  # noqa: PLW2901 - the next sentence is read with it
        piece = text[start:end]
        if any(table[meaning].search(piece) for meaning in ("context", "input limit", "token")) or (
            table["too long"].search(piece) and table["request"].search(piece)
        ):
            sizes = measure(piece, table, codes=codes, guess=False)
            if sizes.limit is not None and sizes.requested is not None and 64 <= sizes.limit < sizes.requested:
                return index
    return None


# -- token limits in replies: an ``error`` member under HTTP 200, or a stop reason -------------------------------------

_WINDOW_FULL: Final = re.compile(r"model_length|(?:model_)?context_(?:window|length|limit)_exceeded")
"""Stop reasons of a full window (Anthropic, Bedrock; Mistral's is ``model_length``)."""

NO_ROOM: Final = "no room for output"
"""Source of a limit that is only likely: a reply cut off after a few tokens. The request has to confirm it."""
_CUT_OFF: Final = frozenset(("length", "max_tokens", "MAX_TOKENS"))
_FEW_TOKENS: Final = 16
_FINISHED: Final = frozenset(("end_turn", "tool_use", "stop_sequence"))
"""Anthropic's stop reasons of complete replies."""


def detect_in_reply(reply: object) -> TokenLimit | None:
    """Return the token limit in a reply or a stream chunk that was received without an exception, or None.

    Reads a few members of a dict or an object; takes about a microsecond for one without an error. Never raises.
    """
    if reply is None or type(reply) is str:
        return None
    try:
        if type(reply) is dict:
            members, extra = reply, None
        else:
            members, extra = vars(reply), getattr(reply, "__pydantic_extra__", None)
        choices = members.get("choices")
        if choices:
            first = choices[0]
            reason = (first if type(first) is dict else vars(first)).get("finish_reason")
            finished = reason == "stop" or reason is None
        else:
            finished = members.get("stop_reason") in _FINISHED
        if finished and not members.get("error") and not (extra and extra.get("error")):
            return None
        return _in_reply(reply)
    except Exception:  # noqa: BLE001 - a reply of an unknown type does not state a limit
        return None


def _in_reply(reply: object) -> TokenLimit | None:
    choice = (_member(reply, "choices") or (None,))[0]
    reason = _member(choice, "finish_reason") or _member(reply, "stop_reason", "stopReason")
    reason = reason or _member(_member(reply, "delta"), "stop_reason")
    if isinstance(reason, str) and _WINDOW_FULL.fullmatch(reason):
        return TokenLimit(source="stop reason")
    error = _member(reply, "error") or _member(choice, "error")
    if not error and _member(reply, "type") in {"error", "response.failed"}:
        error = _member(_member(reply, "response"), "error") or reply
    if error:
        message = _member(choice, "message", "delta")
        said = _member(message, "content", "tool_calls") or _member(reply, "content", "output", "candidates")
        return None if said else judge(signals_of(error), default_table()).limit
    if reason in _CUT_OFF:  # A reply that ends after a few tokens, as it fills the window together with the prompt.
        usage = _member(reply, "usage")
        read = _member(usage, "prompt_tokens", "input_tokens", "inputTokens")
        written = _member(usage, "completion_tokens", "output_tokens", "outputTokens")
        if isinstance(read, int) and isinstance(written, int) and written <= _FEW_TOKENS:
            return TokenLimit(None, None, "input_plus_output", read, written, NO_ROOM)
    return None


def _member(thing: object, *names: str) -> Any:  # noqa: ANN401 - any JSON type
    """Return the first of these members that is not None or empty; 0 is a value."""
    members = thing if isinstance(thing, dict) else getattr(thing, "__dict__", None) or {}
    extra = getattr(thing, "__pydantic_extra__", None) or members
    for name in names:
        value = extra.get(name, members.get(name))
        if value not in (None, "", []):
            return value
    return None
