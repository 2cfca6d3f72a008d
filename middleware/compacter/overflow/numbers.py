"""Find the limit and the size of the request among the numbers of a text, by the words beside them,
not by position.

A number without such words gets the remaining role if its size allows: the request is larger than
the limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from operator import itemgetter
from typing import Final, Literal, NamedTuple

from compacter.overflow.table import Patterns

Kind = Literal["input", "input_plus_output"]
Role = Literal["limit", "sent", "input", "output"]


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """A token limit as the provider stated it; numbers are in tokens, None if they are not
    stated.
    """

    limit: int | None = None
    """Largest request that the provider accepts."""
    requested: int | None = None
    """Size of the request: the stated total, else the sum of the stated parts."""
    kind: Kind = "input"
    """``input_plus_output`` if the limit includes the tokens requested for the completion
    (``max_tokens``)."""
    input_tokens: int | None = None
    """Tokens of the messages, if stated apart."""
    output_tokens: int | None = None
    """Tokens reserved for the completion, if stated apart."""
    source: str = ""
    """Name of the rule that matched; never a part of the message."""
    is_bound: bool = False
    """Whether ``requested`` and ``input_tokens`` only bound the size of the request: "at least
    8,193 tokens". Servers that stop counting state as much as fits, or one token more, whatever
    the size is (https://github.com/strands-agents/harness-sdk/issues/3969)."""


class Number(NamedTuple):
    """An integer that may count tokens, with its position in the text."""

    value: int
    start: int
    end: int


class _Claim(NamedTuple):
    """A number with the role that words give it. The largest claim to a role wins: in the deciding
    sentences, then with its words next to it, then the last.
    """

    is_near: bool
    is_close: bool
    start: int
    value: int
    role: Role | None
    is_bound: bool

    @property
    def counts(self) -> bool:
        """Whether the number is large enough to count tokens, unlike that of "attempt 3 of 5"."""
        return self.role == "output" or self.value >= _SMALLEST


# Most numbers read of one text; an error with more of them is a dump.
_MAX_NUMBERS: Final = 200

# Distance in characters within which a word can determine the role of a number.
_REACH: Final = 80

SMALLEST_SIZE: Final = 64
"""Smallest window or request, in tokens, that is accepted without a word for it."""

# Smallest number that counts tokens; smaller ones count attempts, roles or tools.
_SMALLEST: Final = 16

_SCALE: Final = {
    word: scale
    for scale, words in (
        (1_000, "k thousand mil тыс"),
        (1_000_000, "m million mio млн"),
        (10_000, "万 萬 만"),
    )
    for word in words.split()
}
# 8192, 8,192, 8.192, 8_192, 8'192, 8 192, 128k, 1.2M; not a part of a date, a version, a name.
_NUMBER: Final = re.compile(
    r"(?:(?<![a-z0-9_])|(?<= is))(?<!\d[.,:])(?<!\d ['’])(?<![a-z]-)(?<![a-z]\.)(?<!\d-)"
    r"(?P<body>\d{1,3}(?P<sep>[,._' ])\d{3}(?:(?P=sep)\d{3}){0,3}(?!\d)(?![,._]\d)"
    r"|\d{1,2}(?:,\d{2}){1,3},\d{3}(?!\d)"
    r"|\d{1,12}(?P<fraction>\.\d{1,3})?)"
    r"(?: ?(?P<scale>k|m|万|萬|만|thousand|million|mio|mil|тыс|млн)(?![a-z]))?"
    r"(?![a-z0-9_%]|\.\d|:\d|-\d|-[a-su-z]|/\d{1,2}/)|(?:(?<![a-z0-9_.:/-])|"
    r"(?<= is))(?P<glued>\d{2,9})(?=tok)"
)
_UNIT_WORD: Final = (
    r"-? ?(?:toks?\b|tokens?\b|個?のトークン|トークン|个?tokens?|토큰|"
    r"токен\w{0,3}|jetons?|词元|令牌)"
)
_CLOSE: Final = r"[)\]\"'`}]{0,3} ?"
_UNIT: Final = re.compile(rf"{_CLOSE}(?:of )?(?:{_UNIT_WORD})?{_CLOSE}")
_IS_TOKENS: Final = re.compile(rf"[)\]]? ?-?(?:`?\w{{1,12}}`? )?(?:{_UNIT_WORD})")
_FILLER: Final = re.compile(
    r"(?:[\s:=(\[~\"'`*<|-]|\b(?:is|of|to|was|are|were|be|a|an|the|about|"
    r"approximately|around|roughly|only|just"
    r"|at least|currently|set|for this model|which|equals?|tokens?|ist|von|est|de|"
    r"es|di|e|sao|bei|nur)\b"
    r"|[为是は을를은는이がで約约])+$"
)
_OVERSHOT: Final = re.compile(
    r"\b(?:by|um|por|em|на)(?: (?:about|approximately|around|roughly|at least|"
    r"more than|over|nearly))? ?~?[(\[]?$"
)
# A size that is only a bound: "at least 8193".
_BOUND: Final = re.compile(r"(?:\b(?:at least|more than|over|up to|at most)|>=?) ?[~(\[]?$")
# "400 the prompt is too long", at the beginning of a statement; not "(500 in the messages, 512 in
# the completion)".
_STATEMENT: Final = re.compile(r"(?:^|[-:>|\"'`{\x1e]) ?$")
_STATUS_OF_WORDS: Final = re.compile(
    r" ?[-:]? ?[`'\"{(]{0,2}(?!\w{0,20}tokens?\b|(?:in|for|from|"
    r"of)\b)[a-z]"
)
_STATUS_IN_BRACKETS: Final = re.compile(r"[>\])](?! ?-?tok)")
_LOWER_BOUND: Final = re.compile(r", ?\d{2,12}[\])]")
_ADDED: Final = re.compile(
    r"[)\]]? ?(?:tokens? ?)?[)\]]?,? ?(?:\+|and\b|plus\b|&|"
    r"(?:which )?together\b)"
)
_IS_MORE: Final = re.compile(
    rf"{_CLOSE}(?:{_UNIT_WORD})?{_CLOSE}(?:>|/ ?\d|(?:which |that )?(?:exce+eds?\b|"
    rf"exceeding|surpass(?:es|ing)|(?:is |are )?(?:longer|larger|greater|higher|bigger|"
    r"more) than\b)"
    r"|(?:(?:were|was) )?(?:given|supplied|provided|received|submitted|sent|used|"
    r"in use|requested)\b)"
)

_N: Final = r"\d[\d,._']{0,15}"
_T: Final = r" ?(?:tokens? ?)?"
_IS_OVER: Final = r"(?:>=?|exceeds?|(?:is )?(?:greater|larger|longer|more) than)"
# The name of a limit: "> max_model_len 8192", "larger than the window of 8192".
_NAME: Final = r"(?: ?[a-z_][a-z_ ]{0,30}[:=]?)?"
_SUM: Final = rf"(?P<input>{_N}){_T}\+ ?(?P<output>{_N}){_T}[)\]]? ?(?:= ?{_N}{_T})?"
# Calculations: each number by its role. "9000 > 8192", "8000 + 1000 > 8192" and
# "1000 > 8192 - 8000".
_FORMULAS: Final = tuple(
    re.compile(formula)
    for formula in (
        rf"(?P<sent>{_N}){_T}[)\]]? ?(?:>=?{_NAME}|/|of|out of|de|из) ?[(\[]?(?P<limit>\d)",
        rf"{_SUM}{_IS_OVER}{_NAME} ?(?P<limit>\d)",
        rf"(?P<output>{_N}) ?>=? ?(?P<limit>{_N}) ?- ?(?P<input>\d)",
    )
)


def measure(
    text: str,
    table: Patterns,
    *,
    near: tuple[int, int] | None = None,
    codes: frozenset[str] = frozenset(),
    counted: bool = False,
    guess: bool = True,
) -> TokenLimit:
    """Return the numbers of a text that states a token limit, by role.

    Args:
        text: the normalised message.
        table: the patterns.
        near: start and end of the deciding sentences, in characters; their numbers take precedence.
            None: everywhere.
        codes: status and codes of the error, which do not count tokens.
        counted: whether the limit includes the completion.
        guess: whether a number without words for it gets the remaining role.
    """
    claims = sorted(_claims(text, table, codes, near))
    winners: dict[Role, _Claim] = {
        claim.role: claim for claim in claims if claim.role and claim.counts
    }
    chosen: dict[Role, int] = {role: claim.value for role, claim in winners.items()}
    chosen |= _calculate(text, {claim.start: claim.value for claim in claims})
    limit = winners.get("limit")
    # A limit whose word is too far away to be certain if there are other numbers.
    doubtful = limit.value if limit and limit.is_near and not limit.is_close else None
    if guess:
        near_by = [claim for claim in claims if claim.is_near]
        loose = {claim.value for claim in near_by if claim.role == "limit" or not claim.is_close}
        _guess(chosen, loose, doubtful)
    found = _token_limit(chosen, doubtful, counted=counted)
    stated = (winners[role] for role in ("sent", "input") if role in winners)
    is_bound = found.is_bound or any(claim.is_bound for claim in stated)
    return replace(found, is_bound=is_bound)


def _claims(
    text: str, table: Patterns, codes: frozenset[str], near: tuple[int, int] | None
) -> Iterator[_Claim]:
    """Yield the numbers of a text that may count tokens, with their roles."""
    numbers = token_counts(text, table, codes)
    # Words between two numbers belong to either: the text is cut at the numbers beside each one.
    starts = [0, *(number.end for number in numbers)]
    ends = [*(number.start + 1 for number in numbers[1:]), len(text)]
    for (value, start, end), first, last in zip(numbers, starts, ends, strict=False):
        before = text[max(first, start - _REACH) : start]
        role, is_close = _role(before, text[end : min(last, end + _REACH)], table)
        is_near = near is None or near[0] <= start <= near[1]
        yield _Claim(is_near, is_close, start, value, role, _BOUND.search(before) is not None)


def _guess(chosen: dict[Role, int], loose: set[int], doubtful: int | None) -> None:
    """Give numbers without words the role that is left: the larger one was sent, the smaller one
    is the limit.
    """
    rest = {value for value in loose if value >= SMALLEST_SIZE}
    sent = chosen.get("sent", chosen.get("input"))
    if sent is None and len(rest) > 1 and chosen.get("limit") == doubtful:
        chosen.pop("limit", None)
    limit = chosen.get("limit")
    rest -= {sent, limit}
    limits = {limit} if limit else rest
    pairs = [pair for pair in product(limits, {sent} if sent else rest) if pair[0] < pair[1]]
    if len(pairs) == 1:
        chosen["limit"], larger = pairs[0]
        if sent is None:
            chosen["sent"] = larger


def _token_limit(chosen: dict[Role, int], doubtful: int | None, *, counted: bool) -> TokenLimit:
    """Return the numbers of these roles as a token limit."""
    limit, total, output, sent = map(chosen.get, _ROLES)
    if output and total and output < total:
        # Parts other than output are input: text, tools, pictures.
        has_more_parts = counted if sent is None else sent + output < total
        sent = total - output if has_more_parts else sent
    if sent is not None and (total is None or (total == sent and total < (limit or 0))):
        total = sent + (output or 0)
    # The limit is for both if an output is stated, or the text counts the completion.
    both = bool(output) or (counted and output is None)
    if output is None and (not both or sent == total):
        sent = None
    excess = total - limit if limit and total else None
    if (excess or 0) < 0 and not both:
        # No request is too long that is smaller than the limit.
        limit, total = (total, limit) if limit == doubtful else (None, None)
    kind: Kind = "input_plus_output" if both else "input"
    # A server that stops counting states as much as fits, or one token more.
    return TokenLimit(limit, total, kind, sent, output, is_bound=excess in {0, 1})


def token_counts(text: str, table: Patterns, codes: frozenset[str] = frozenset()) -> list[Number]:
    """Return the numbers of a text that may count tokens, in order, without codes, seconds, bytes,
    dates and so on.
    """
    counts = (
        Number(value, match.start(), match.end())
        for match in _NUMBER.finditer(text)
        if (value := _value(match)) is not None and _may_count(value, match, table, codes)
    )
    return list(islice(counts, _MAX_NUMBERS))


def _value(match: re.Match[str]) -> int | None:
    """Return the value of a number, None of a fraction.

    "1.5" counts no tokens; "8.192" is a whole number by its separator, "1.2M" by its scale.
    """
    scale = _SCALE.get(match["scale"] or "", 1)
    if not match["fraction"]:
        return int(re.sub(r"\D", "", match["body"] or match["glued"])) * scale
    value = float(match["body"]) * scale
    return round(value) if scale > 1 or value.is_integer() else None


def _may_count(value: int, match: re.Match[str], table: Patterns, codes: frozenset[str]) -> bool:
    """Return whether a number may count tokens, by the words beside it."""
    text = match.string
    before = text[max(0, match.start() - 40) : match.start()]
    after = text[match.end() : match.end() + 40]
    is_opened = before.endswith(("[", "(", "<"))
    if table["no count after"].match(after) or _OVERSHOT.search(before):
        return False
    if is_opened and _LOWER_BOUND.match(after):
        return False
    if _IS_TOKENS.match(after):
        return True
    if table["no count before"].search(before) or str(value) in codes:
        return False
    is_alone = is_opened and _STATUS_IN_BRACKETS.match(after)
    if 400 <= value < 600 and not _role(before.rstrip("[(<"), "", table)[1]:
        # A status, if it is in brackets or opens a statement.
        return not (is_alone or (_STATEMENT.search(before) and _STATUS_OF_WORDS.match(after)))
    # A lone number in brackets is a provider's code, "exceeds limit (2013)". A window is often a
    # multiple of 1,024, a code is not: "(8192)" stays.
    others = text[: match.start()] + text[match.end() :]
    return not (is_alone and value < 10_000 and value % 1024) or bool(re.search(r"\d", others))


def _role(before: str, after: str, table: Patterns) -> tuple[Role | None, bool]:
    """Return the role of a number between two pieces of text, and whether its words are
    next to it.
    """
    filler = _FILLER.search(before)
    edge = filler.start() if filler else len(before)
    # Use the nearest words before it; if two end at one place, the longer.
    words: list[tuple[int, int, Role | None]] = [
        (min(match.end(), edge), -match.start(), role)
        for role in _ROLES
        for match in table[f"{role} before"].finditer(before)
        if match.group()
    ]
    end, _, left = max(words, key=itemgetter(0, 1), default=(-1, 0, None))
    close = end >= edge
    unit = _UNIT.match(after)
    rest = after[unit.end() :] if unit else after
    right: Role | None = next((role for role in _ROLES if table[f"{role} after"].match(rest)), None)
    if right is None:
        return left, close
    # "prompt 10 + max_tokens 5 exceeds 12": the sum exceeds it.
    is_part = left == "output" and right == "sent" and _ADDED.match(before)
    # "a maximum of 8192 input tokens"
    is_limit = left == "limit" and not _IS_MORE.match(after)
    return left if close and (is_part or is_limit) else right, True


def _calculate(text: str, values: dict[int, int]) -> dict[Role, int]:
    """Return the numbers of calculations, by role; ``values`` has them by their position."""
    chosen: dict[Role, int] = {}
    for match in chain.from_iterable(formula.finditer(text) for formula in _FORMULAS):
        terms: dict[Role, int] = {
            role: values.get(match.start(role), 0) for role in _ROLES if role in match.groupdict()
        }
        if "output" in terms and all(terms.values()):
            terms["sent"] = terms["input"] + terms["output"]
            chosen |= terms
        # 7000 / 8192 is not too long.
        elif "output" not in terms and terms["sent"] > terms["limit"] >= _SMALLEST:
            chosen |= terms
    return chosen


_ROLES: Final[tuple[Role, ...]] = ("limit", "sent", "output", "input")
