"""What the rows of the table amount to: a token limit, another kind of error, or nothing.

A text is read sentence by sentence. A sentence with a veto is no evidence; of the others the last clear statement
decides, because an error that lists its tries ends with the one that counts. Between a rate limit and a token limit
doubt speaks for the rate limit: folding the history would not help.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Literal

from compacter.overflow.detect import TokenLimit
from compacter.overflow.number_words import NUMBER_WORDS
from compacter.overflow.numbers import measure
from compacter.overflow.patterns import PATTERNS
from compacter.overflow.signals import MAX_EXCEPTIONS, Signals, handled, reasons, siblings, signals_of
from compacter.overflow.table import Meaning, Table
from compacter.overflow.text import normalise
from compacter.overflow.vetoes import VETOES

M = Meaning

CLEAR: Final[Mapping[str, tuple[frozenset[Meaning], ...]]] = {
    name: tuple(frozenset(meanings) for meanings in alternatives)
    for name, alternatives in {
        "code in the text": [{M.CODE}],
        "context exceeded": [{M.CONTEXT, M.EXCEED}, {M.CONTEXT, M.TOO_LONG}],
        "context full": [{M.CONTEXT, M.FULL}, {M.SUBJECT, M.MODEL, M.FULL}, {M.SUBJECT, M.TOKEN, M.FULL}],
        "tokens exceed a limit": [
            {M.TOKEN, M.EXCEED, M.LIMIT},
            {M.TOKEN, M.EXCEED, M.SUBJECT},
            {M.TOKEN, M.EXCEED, M.REQUEST},
            {M.SUBJECT, M.EXCEED, M.LIMIT, M.MODEL},
        ],
        "too many tokens": [{M.TOO_MANY, M.SUBJECT}, {M.TOO_MANY, M.REQUEST}, {M.TOO_MANY, M.LIMIT}],
        "too long in tokens": [
            {M.TOO_LONG, M.SUBJECT, M.TOKEN},
            {M.TOO_LONG, M.SUBJECT, M.MODEL},
            {M.TOO_LONG, M.REQUEST, M.TOKEN},
        ],
        "bound on the input": [
            {M.BOUND, M.SUBJECT, M.TOKEN},
            {M.BOUND, M.SUBJECT, M.LENGTH},
            {M.BOUND, M.SUM, M.LENGTH},
            {M.BOUND, M.SUM, M.SUBJECT},
            {M.BOUND, M.CONTEXT, M.MODEL},
        ],
    }.items()
}
"""Rules: meanings that, in one sentence, state a token limit."""

LIKELY: Final[Mapping[str, tuple[frozenset[Meaning], ...]]] = {
    name: tuple(frozenset(meanings) for meanings in alternatives)
    for name, alternatives in {
        "input and output exceed": [{M.SUBJECT, M.OUTPUT, M.EXCEED}],
        "subject too long": [{M.TOO_LONG, M.SUBJECT}],
        "request too long": [{M.TOO_LONG, M.REQUEST, M.MODEL}],
        "too many tokens": [{M.TOO_MANY}],
        "subject exceeds a limit": [{M.SUBJECT, M.EXCEED, M.MODEL}, {M.SUBJECT, M.EXCEED, M.LIMIT, M.LENGTH}],
        "bound on the context": [{M.BOUND, M.CONTEXT}],
        "advice": [{M.REDUCE, M.SUBJECT}],
    }.items()
}
"""Rules that count only where no sentence of the text has a veto."""

_RULES: Final = ((CLEAR, True), (LIKELY, False))
_USED: Final = frozenset(meaning for rules, _ in _RULES for sets in rules.values() for each in sets for meaning in each)

MAX_SENTENCE: Final = 1_500
"""Characters of a sentence; what is longer is read in pieces of this size."""

MAX_SENTENCES: Final = 200
"""Sentences that are read: of more than these, the first and the last half."""

_END: Final = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bmax)(?<!\bmin)(?<!\bapprox)(?<!\bno)[.!?](?=[\s\"'`)\]}]|$)"
    r"|[。！？\x1e;；]|[\"'`](?=\s?[,}])|\s-\s(?=\{)"
)

_OTHER_STATUS: Final = frozenset((401, 402, 403, 404, 405, 407))
"""Statuses that mean something else, whatever the text says."""

_DOUBTFUL_STATUS: Final = frozenset((408, 409, 429, 502, 503, 504, 529))
"""Statuses of a busy server. A gateway may pass a token limit on with one: both numbers must then be stated."""

_OTHER_CODE: Final = re.compile(
    r"rate_?limit|quota|throttl|too_?many_?requests|authenti|authoriz|api_?key|permission|forbidden|expired|overloaded"
    r"|content_?(?:filter|policy)|billing|insufficient|not_?found|(?:string|array)_(?:above|too)|resource_?exhausted"
)
_OTHER_TYPE: Final = re.compile(
    r"throttl|quota|authentication|permissiondenied|unauthorized|forbidden|expiredtoken|contentpolicy|contentfilter"
    r"|lengthfinishreason"
)
_BUSY_TYPE: Final = re.compile(r"ratelimit|toomanyrequests|overloaded|unavailable")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an error amounts to, and why.

    ``rule`` names the rule or the veto that decided, ``statement`` is the sentence that it decided on, in its plain
    form, and ``rows`` are the rows of the table that match there (filled in by ``explained``).
    """

    kind: Literal["token limit", "other error", "nothing"]
    rule: str = ""
    statement: str = ""
    limit: TokenLimit | None = None
    rows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sentence:
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a sentence weighs: a clear statement, of a token limit or of another error; a likely one; a doubt."""

    weight: Literal["decides", "likely", "doubt", "silent"]
    rule: str = ""
    veto: Meaning | None = None


NOTHING: Final = Verdict("nothing")

TABLE: Final = Table((*PATTERNS, *VETOES, *NUMBER_WORDS))


def judge_error(error: BaseException, table: Table = TABLE, seen: set[int] | None = None) -> Verdict:
    """The verdict on an exception together with those behind it; ``seen`` holds the ids of those judged already."""
    seen = set() if seen is None else seen
    if id(error) in seen or len(seen) >= MAX_EXCEPTIONS or not isinstance(error, Exception):
        return NOTHING
    seen.add(id(error))
    own = judge(signals_of(error), table)
    if own.kind == "other error":
        return own
    if own.limit is not None and own.limit.limit is not None and own.limit.requested is not None:
        return own
    behind = _behind(error, table, seen)
    if own.limit is not None:
        return _completed(own, behind)
    old = handled(error)
    return behind if behind.kind != "nothing" or old is None else judge_error(old, table, seen)


def _behind(error: Exception, table: Table, seen: set[int]) -> Verdict:
    """The verdict on what the exception names as its reason."""
    for reason in reasons(error):
        verdict = judge_error(reason, table, seen)
        if verdict.kind != "nothing":
            return verdict
    verdicts = [judge_error(member, table, seen) for member in siblings(error)]
    for kind in ("token limit", "other error"):
        of_kind = [verdict for verdict in verdicts if verdict.kind == kind]
        if of_kind:
            return of_kind[-1]
    return NOTHING


def _completed(own: Verdict, behind: Verdict) -> Verdict:
    """The numbers that a wrapper lost, taken from its reason where that does not disagree."""
    stated, known = own.limit, behind.limit
    if stated is None or known is None:
        return own
    if stated.limit not in {None, known.limit} or stated.requested not in {None, known.requested}:
        return own
    return replace(own, limit=replace(known, source=stated.source))


def judge(signals: Signals, table: Table = TABLE) -> Verdict:
    """The verdict on what one exception, reply or text says."""
    text = normalise(signals.text)
    coded = any(table[M.CODE].fullmatch(code.replace("-", "_")) for code in signals.codes)
    names = [name.rpartition(".")[2].lower() for name in signals.types]
    if not coded:
        other = _other_kind(signals, names)
        if other:
            return Verdict("other error", other)
    codes = signals.codes | ({str(signals.status)} if signals.status is not None else frozenset())
    verdict = _read(text, table, codes, coded=coded)
    if verdict.kind == "nothing" and not verdict.rule and any(table[M.TYPE].search(name) for name in names):
        verdict = _found("class", text, table, codes)
    busy = signals.status in _DOUBTFUL_STATUS or any(_BUSY_TYPE.search(name) for name in names)
    if busy and not coded and not _states_both(verdict):
        return Verdict("other error", "status or class of a busy server")
    if verdict.kind == "nothing" and signals.network:
        return Verdict("other error", "network")
    return verdict


def _other_kind(signals: Signals, names: list[str]) -> str:
    """The status, code or class by which an error is of another kind whatever its text says, or nothing."""
    if signals.status in _OTHER_STATUS:
        return "status"
    if any(_OTHER_CODE.search(code) for code in signals.codes):
        return "code"
    return "class" if any(_OTHER_TYPE.search(name) for name in names) else ""


def _states_both(verdict: Verdict) -> bool:
    limit = verdict.limit
    if limit is None or limit.limit is None or limit.requested is None:
        return False
    return (verdict.rule in CLEAR or verdict.rule == "subject too long") and limit.requested > limit.limit


def _read(text: str, table: Table, codes: frozenset[str], *, coded: bool) -> Verdict:
    """The verdict on a text in its plain form; ``coded`` says that a code of the error names a token limit."""
    sentences = _sentences(text)
    judged = [_judge_sentence(sentence.text, table) for sentence in sentences]
    decisive = [index for index, each in enumerate(judged) if each.weight == "decides"]
    likely = [index for index, each in enumerate(judged) if each.weight == "likely"]
    doubts = [index for index, each in enumerate(judged) if each.weight == "doubt"]
    if coded:
        decisive = [index for index in decisive if judged[index].veto is None]
        if not decisive:
            return _found("code", text, table, codes)
    if decisive:
        index = decisive[-1]
        veto = judged[index].veto
        if veto is not None:
            return Verdict("other error", veto, sentences[index].text)
    elif doubts:
        return Verdict("nothing", str(judged[doubts[-1]].veto), sentences[doubts[-1]].text)
    else:
        telling = [index for index in likely if judged[index].rule != "advice"]
        stated = None if telling else _stated(text, sentences, judged, table, codes)
        if stated is not None or not likely:
            return stated or NOTHING
        index = likely[0]
    around = tuple((each.start, each.end) for each in sentences[max(0, index - 1) : index + 3])
    return _found(judged[index].rule, text, table, codes, around, sentences[index].text)


def explained(verdict: Verdict, table: Table = TABLE) -> Verdict:
    """The verdict with the names of the rows that match the statement it rests on."""
    vetoes = [meaning for meaning in Meaning if meaning == verdict.rule]
    return replace(verdict, rows=table.names(verdict.statement, vetoes or _USED))


def _judge_sentence(sentence: str, table: Table) -> _Judged:
    """What one sentence says. A veto is a doubt only where the sentence could be the reason of the whole error."""
    plain = table[M.IDIOM].sub(" ", sentence)
    veto = _veto(sentence, plain, table)
    if veto is M.OTHER_ERROR:
        return _Judged("decides", veto=veto)
    if veto is M.OTHER_THING:
        return _Judged("doubt", veto=veto)
    rule, clear = _rule(plain, table)
    if veto is None:
        return _Judged(("decides" if clear else "likely") if rule else "silent", rule)
    limits = veto is M.OTHER_UNIT and table[M.LIMIT].search(plain) is not None
    return _Judged("doubt" if rule or limits else "silent", veto=veto)


def _found(
    rule: str,
    text: str,
    table: Table,
    codes: frozenset[str],
    near: tuple[tuple[int, int], ...] = (),
    statement: str = "",
) -> Verdict:
    limit = measure(text, table, near=near, codes=codes, counted=_counts_output(text, table), source=rule)
    return Verdict("token limit", rule, statement, limit)


def _stated(
    text: str, sentences: list[_Sentence], judged: list[_Judged], table: Table, codes: frozenset[str]
) -> Verdict | None:
    """No rule knows the phrase, but its numbers speak: one or two sentences state a limit, and that more was sent."""
    for index, each in enumerate(judged):
        if each.veto is not None:
            continue
        alone = index + 1 == len(judged) or judged[index + 1].veto is not None
        near = sentences[index : index + (1 if alone else 2)]
        piece = text[near[0].start : near[-1].end]
        if not (table[M.CONTEXT].search(piece) or table[M.TOKEN].search(piece)):
            continue
        sizes = measure(piece, table, codes=codes, guess=False)
        if sizes.limit is not None and sizes.requested is not None and 64 <= sizes.limit < sizes.requested:
            around = ((near[0].start, sentences[min(index + 3, len(sentences) - 1)].end),)
            return _found("sizes", text, table, codes, around, piece)
    return None


def _rule(plain: str, table: Table) -> tuple[str, bool]:
    """The first rule that a sentence meets, and whether it is a clear one."""
    present = frozenset(meaning for meaning in _USED if table[meaning].search(plain))
    for rules, clear in _RULES:
        for name, alternatives in rules.items():
            if any(needed <= present for needed in alternatives):
                return name, clear
    return "", False


def _veto(sentence: str, plain: str, table: Table) -> Meaning | None:
    """Why a sentence that may sound like a token limit is none, or None."""
    if table[M.OTHER_ERROR].search(sentence):
        return M.OTHER_ERROR
    if table[M.OUTPUT].search(plain):
        rest = table[M.OUTPUT].sub(" ", plain)
        if not table[M.SUBJECT].search(rest) and not table[M.SUM].search(rest):
            return M.OUTPUT  # max_tokens is too large by itself
    if table[M.OTHER_THING].search(sentence):
        return M.OTHER_THING
    if table[M.OTHER_UNIT].search(sentence) and not any(
        table[meaning].search(plain) for meaning in (M.CONTEXT, M.TOKEN, M.TOO_MANY)
    ):
        return M.OTHER_UNIT
    return None


def _counts_output(text: str, table: Table) -> bool:
    """Whether a sentence sets the messages and the room for the completion against the limit.

    "Shorten the messages or the completion" is advice, no count.
    """
    for sentence in _sentences(text):
        plain = table[M.IDIOM].sub(" ", sentence.text)
        states = [table[meaning].search(plain) is not None for meaning in (M.EXCEED, M.BOUND)]
        if table[M.REDUCE].search(plain) and not any(states):
            continue
        sets_against = any(states) or table[M.CONTEXT].search(plain) or table[M.SUM].search(plain)
        if sets_against and table[M.OUTPUT].search(plain) and _veto(sentence.text, plain, table) is None:
            return True
    return False


def _sentences(text: str) -> list[_Sentence]:
    """The sentences of a text in its plain form; long ones in pieces."""
    found: list[_Sentence] = []
    start = 0
    for end in [*(match.end() for match in _END.finditer(text)), len(text)]:
        while start < end:
            stop = min(end, start + MAX_SENTENCE)
            if text[start:stop].strip():
                found.append(_Sentence(start, stop, text[start:stop]))
            start = stop
    half = MAX_SENTENCES // 2
    return found if len(found) <= MAX_SENTENCES else [*found[:half], *found[-half:]]
