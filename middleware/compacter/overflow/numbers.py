"""Which number of a text is the limit, and which is what was sent: told by the words beside it, never by its place.

A number that no word claims takes the role that is left, if its size allows: what was sent is more than the limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from compacter.overflow.detect import TokenLimit
from compacter.overflow.table import Meaning, Table

Role = Literal["limit", "sent", "input", "output"]


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number that may count tokens, and where it stands in the text."""

    value: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Claim:
    """A role that words give a number. It is ``close`` when nothing but filler stands between them."""

    number: Number
    role: Role
    close: bool
    near: bool  # The number stands in the sentences that decided.


_MAX_NUMBERS: Final = 200
"""Numbers of one text that are weighed; an error that states more of them is a dump."""

_REACH: Final = 80
"""Characters beside a number in which a word can speak for it."""

_SMALLEST: Final = 16
"""A smaller number that no word claims counts something else: tries, roles, tools."""

_SCALE: Final = {
    **dict.fromkeys(("k", "thousand", "mil", "тыс"), 1_000),
    **dict.fromkeys(("m", "million", "mio", "млн"), 1_000_000),
    **dict.fromkeys(("万", "萬", "만"), 10_000),
}
# 8192, 8,192, 8.192, 8_192, 8'192, 8 192, 128k, 1.2M; not what belongs to a date, a version, a name or a broken number.
_NUMBER: Final = re.compile(
    r"(?<![a-z0-9_\x1f])(?<!\d[.,:])(?<!\d ['’])(?<![a-z]-)(?<![a-z]\.)(?<!\d-)"
    r"(?P<body>\d{1,3}(?P<sep>[,._' ])\d{3}(?:(?P=sep)\d{3}){0,3}(?!\d)(?![,._]\d)"
    r"|\d{1,2}(?:,\d{2}){1,3},\d{3}(?!\d)"
    r"|\d{1,12}(?P<fraction>\.\d{1,3})?)"
    r"(?: ?(?P<scale>k|m|万|萬|만|thousand|million|mio|mil|тыс|млн)(?![a-z]))?"
    r"(?![a-z0-9_%\x1f]|\.\d|:\d|-\d|-[a-su-z]|/\d{1,2}/)|(?<![a-z0-9_.:/-])(?P<glued>\d{2,9})(?=tok)"
)
_UNIT_WORD: Final = r"-? ?(?:toks?\b|tokens?\b|個?のトークン|トークン|个?tokens?|토큰|токен\w{0,3}|jetons?|词元|令牌)"
_CLOSE: Final = r"[)\]\"'`}]{0,3} ?"
_UNIT: Final = re.compile(rf"{_CLOSE}(?:of )?(?:{_UNIT_WORD})?{_CLOSE}")
_IS_TOKENS: Final = re.compile(rf"[)\]]? ?-?(?:`?\w{{1,12}}`? )?(?:{_UNIT_WORD})")
_FILLER: Final = re.compile(
    r"(?:[\s:=(\[~\"'`*<|-]|\b(?:is|of|to|was|are|were|be|a|an|the|about|approximately|around|roughly|only|just"
    r"|at least|currently|set|for this model|which|equals?|tokens?|ist|von|est|de|es|di|e|sao|bei|nur)\b"
    r"|[为是は을를은는이がで約约])+$"
)
_OVERSHOT: Final = re.compile(
    r"\b(?:by|um|por|на)(?: (?:about|approximately|around|roughly|at least|more than|over|nearly))? ?~?[(\[]?$"
)
_CLAUSE: Final = re.compile(r"[.!?;] |[。；\x1e]")
_STATUS_IN_BRACKETS: Final = re.compile(r"[>\])](?! ?-?tok)")
_LOWER_BOUND: Final = re.compile(r", ?\d{2,12}[\])]")
_ADDED: Final = re.compile(r"[)\]]? ?(?:tokens? ?)?[)\]]?,? ?(?:\+|and\b|plus\b|&)")

_IS_MORE: Final = re.compile(
    rf"{_CLOSE}(?:{_UNIT_WORD})?{_CLOSE}(?:>|/ ?\d|(?:which |that )?(?:exce+eds?\b|exceeding|surpass(?:es|ing))"
    r"|(?:(?:were|was) )?(?:given|supplied|provided|received|submitted|sent|used|in use|requested)\b)"
)

_N: Final = r"\d[\d,._']{0,15}"
_T: Final = r" ?(?:tokens? ?)?"
_SUM: Final = re.compile(
    rf"(?P<a>{_N}){_T}\+ ?(?P<b>{_N}){_T}(?:= ?{_N}{_T})?(?:>=?|exceeds?|is (?:greater|more) than) ?(?P<c>\d)"
)
_COMPARED: Final = re.compile(rf"(?P<a>{_N}){_T}[)\]]? ?(?P<sign>[<>]=?|/|of|out of) ?[(\[]?(?P<b>\d)")
_REST: Final = re.compile(rf"(?P<out>{_N}) ?>=? ?(?P<lim>{_N}) ?- ?(?P<inp>\d)")

_BEFORE: Final[tuple[tuple[Role, Meaning], ...]] = (
    ("limit", Meaning.LIMIT_BEFORE),
    ("sent", Meaning.SENT_BEFORE),
    ("input", Meaning.INPUT_BEFORE),
    ("output", Meaning.OUTPUT_BEFORE),
)
_AFTER: Final[tuple[tuple[Role, Meaning], ...]] = (
    ("limit", Meaning.LIMIT_AFTER),
    ("sent", Meaning.SENT_AFTER),
    ("output", Meaning.OUTPUT_AFTER),
    ("input", Meaning.INPUT_AFTER),
)


def measure(
    text: str,
    table: Table,
    *,
    near: Iterable[tuple[int, int]] = (),
    codes: frozenset[str] = frozenset(),
    counted: bool = False,
    source: str = "",
    guess: bool = True,
) -> TokenLimit:
    """The numbers of a text that states a token limit, by role.

    Args:
        text: the message in its plain form.
        table: the patterns.
        near: where the deciding sentences stand, as (start, end) in characters; their numbers come first. Empty: all.
        codes: status and codes of the error, which are no counts of tokens.
        counted: the text counts the room for the completion in.
        source: the rule that decided.
        guess: give a number that no word claims the role that is left.
    """
    zones = tuple(near)
    numbers = token_counts(text, table, codes)
    claims: list[_Claim] = []
    loose: list[Number] = []
    for index, number in enumerate(numbers):
        start = max(numbers[index - 1].end if index else 0, number.start - _REACH)
        end = min(numbers[index + 1].start + 1 if index + 1 < len(numbers) else len(text), number.end + _REACH)
        is_near = not zones or any(first <= number.start <= last for first, last in zones)
        role = _role(text[start : number.start], text[number.end : end], table)
        if role is not None:
            claims.append(_Claim(number, role[0], role[1], is_near))
        elif is_near:
            loose.append(number)
    chosen = _chosen(claims)
    _add_up(text, numbers, chosen, table)
    if guess:
        distant = [claim.number for claim in claims if claim.near and claim.role == "limit" and not claim.close]
        unsure = chosen.get("limit") in {number.value for number in distant} and not {"sent", "input"} & chosen.keys()
        _guess([*loose, *distant], chosen, chosen.pop("limit") if unsure else None)
    return _token_limit(chosen, counted=counted, source=source)


def token_counts(text: str, table: Table, codes: frozenset[str] = frozenset()) -> list[Number]:
    """The numbers of a text that may count tokens, in order: no codes, overshoots, seconds, bytes, dates, versions."""
    found: list[Number] = []
    for match in _NUMBER.finditer(text):
        value = _value(match)
        if value is not None and not _is_decoy(text, match, value, codes, table):
            found.append(Number(value, match.start(), match.end()))
            if len(found) == _MAX_NUMBERS:
                break
    return found


def _value(match: re.Match[str]) -> int | None:
    body, scale = match["body"] or match["glued"], _SCALE.get(match["scale"] or "", 1)
    if not match["fraction"]:
        return int(re.sub(r"\D", "", body)) * scale
    value = float(body) * scale
    return round(value) if value.is_integer() or scale > 1 else None


def _is_decoy(text: str, match: re.Match[str], value: int, codes: frozenset[str], table: Table) -> bool:
    before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 40]
    if table[Meaning.NO_COUNT_AFTER].match(after) or _OVERSHOT.search(before):
        return True
    if before.endswith(("[", "(", "<")) and _LOWER_BOUND.match(after):
        return True
    if _IS_TOKENS.match(after):
        return False
    if table[Meaning.NO_COUNT_BEFORE].search(before) or str(value) in codes:
        return True
    in_brackets = before.endswith(("[", "(", "<")) and _STATUS_IN_BRACKETS.match(after) is not None
    if in_brackets and 400 <= value < 600 and not (_left(before[:-1], table) or ("", False))[1]:
        return True
    # A lone number in brackets at the end is the provider's code: "exceeds limit (2013)".
    return in_brackets and value < 10_000 and not re.search(r"\d", text[: match.start()] + text[match.end() :])


def _role(before: str, after: str, table: Table) -> tuple[Role, bool] | None:
    """The role of a number between two stretches of text, and whether its words are close."""
    left = _left(_CLAUSE.split(before)[-1], table)
    right = _right(after, table)
    if right is None:
        return left
    if left == ("output", True) and right == "sent" and _ADDED.match(before):
        return left  # "prompt 10 + max_tokens 5 exceeds 12": what exceeds is the sum
    if left == ("limit", True) and right != "limit" and not _IS_MORE.match(after):
        return left  # "a maximum of 8192 input tokens"
    return right, True


def _left(before: str, table: Table) -> tuple[Role, bool] | None:
    """The nearest words that give a role; of two that end together the longer."""
    filler = _FILLER.search(before)
    edge = filler.start() if filler else len(before)
    best: tuple[int, int, Role] | None = None
    for role, meaning in _BEFORE:
        for match in table[meaning].finditer(before):
            key = (min(match.end(), edge), -match.start(), role)
            if match.group() and (best is None or key[:2] > best[:2]):
                best = key
    return None if best is None else (best[2], best[0] >= edge)


def _right(after: str, table: Table) -> Role | None:
    unit = _UNIT.match(after)
    rest = after[unit.end() :] if unit else after
    return next((role for role, meaning in _AFTER if table[meaning].match(rest)), None)


def _chosen(claims: Iterable[_Claim]) -> dict[Role, int]:
    """One number a role: one in the deciding sentences first, then one with its words close by, then the last."""
    best: dict[Role, tuple[tuple[bool, bool, int], int]] = {}
    for claim in claims:
        key = (claim.near, claim.close, claim.number.start)
        if claim.role not in best or key > best[claim.role][0]:
            best[claim.role] = (key, claim.number.value)
    return {role: value for role, (_, value) in best.items()}


def _add_up(text: str, numbers: Iterable[Number], chosen: dict[Role, int], table: Table) -> None:
    """Read "12 > 10", "10 < 12", "10 + 5 > 12" and "5 > 12 - 10"; names stand before a sum in the same order."""
    values = {number.start: number.value for number in numbers}
    for match in _COMPARED.finditer(text):
        first, second = values.get(match.start("a")), values.get(match.start("b"))
        if first is None or second is None or first == second or min(first, second) < _SMALLEST:
            continue
        if first > second or "<" in match["sign"]:  # 7000 / 8192 is no excess
            chosen["limit"], chosen["sent"] = min(first, second), max(first, second)
    for match in _SUM.finditer(text):
        first, second, bound = (values.get(match.start(name)) for name in ("a", "b", "c"))
        if first is None or second is None or bound is None:
            continue
        named = text[max(0, match.start() - 120) : match.start()]
        output, subject = table[Meaning.OUTPUT].search(named), table[Meaning.SUBJECT].search(named)
        swapped = output is not None and subject is not None and output.start() < subject.start()
        chosen["input"], chosen["output"] = (second, first) if swapped else (first, second)
        chosen["limit"], chosen["sent"] = bound, first + second
    for match in _REST.finditer(text):
        output_tokens, bound, input_tokens = (values.get(match.start(name)) for name in ("out", "lim", "inp"))
        if output_tokens is not None and bound is not None and input_tokens is not None:
            chosen["output"], chosen["input"], chosen["limit"] = output_tokens, input_tokens, bound
            chosen["sent"] = output_tokens + input_tokens


def _guess(loose: Iterable[Number], chosen: dict[Role, int], distant_limit: int | None) -> None:
    """Give what is left the role that is left, where one number alone makes sense in it.

    ``distant_limit`` is a limit whose word stands too far off to be sure while other numbers are about.
    """
    rest = {number.value for number in loose} - set(chosen.values())
    rest = {value for value in rest if value >= _SMALLEST}
    sent = chosen.get("sent", chosen.get("input"))
    if "limit" in chosen and sent is None:
        over = [value for value in rest if value > chosen["limit"]]
        if len(over) == 1:
            chosen["sent"] = over[0]
    elif "limit" not in chosen and sent is not None:
        under = [value for value in rest if value < sent]
        if len(under) == 1:
            chosen["limit"] = under[0]
    elif "limit" not in chosen and rest == {distant_limit}:
        chosen["limit"] = rest.pop()
    elif "limit" not in chosen and len(rest) == 2:
        chosen["limit"], chosen["sent"] = min(rest), max(rest)


def _token_limit(chosen: dict[Role, int], *, counted: bool, source: str) -> TokenLimit:
    limit, total, sent, output = (chosen.get(role) for role in ("limit", "sent", "input", "output"))
    if output and total is not None and sent is None and output < total and counted:
        sent = total - output
    if total is None or (sent is not None and output is not None and total == sent and total < (limit or 0)):
        total = sent + (output or 0) if sent is not None else None
    if total is not None and output is None and total < _SMALLEST <= (limit or 0):
        total = sent = None  # "attempt 3 of 5"
    both = bool(output) or (counted and output is None)
    found = TokenLimit(limit, total, "input_plus_output" if both else "input", sent, output, source)
    if output is None and (not both or sent == total):
        found = replace(found, input_tokens=None)
    return found
