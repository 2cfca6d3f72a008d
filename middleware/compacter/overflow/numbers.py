# ruff: noqa: E501 - a row of a vocabulary is one line.
"""Numbers of a text as token counts: how they are written, and what cannot be one."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_NUMBERS = 400
"""Numbers of one text that are weighed; an error that states more of them is a dump."""

_SCALE = {
    "k": 1_000,
    "m": 1_000_000,
    "万": 10_000,
    "萬": 10_000,
    "thousand": 1_000,
    "million": 1_000_000,
    "mio": 1_000_000,
    "mil": 1_000,
    "тыс": 1_000,
    "млн": 1_000_000,
    "만": 10_000,
}
_NUMBER = re.compile(
    r"(?<![a-z0-9_])(?<!\d[.,:])(?<!\d ['’])(?<![a-z]-)(?<![a-z]\.)(?<!\d-)"
    r"(?P<body>\d{1,3}(?P<sep>[,._' ])\d{3}(?:(?P=sep)\d{3}){0,3}(?![\d])(?![,._]\d)"
    r"|\d{1,2}(?:,\d{2}){1,3},\d{3}(?!\d)"
    r"|\d{1,12}(?P<fraction>\.\d{1,3})?)"
    r"(?: ?(?P<scale>k|m|万|萬|만|thousand|million|mio|mil|тыс|млн)(?![a-z]))?"
    r"(?![a-z0-9_%]|\.\d|:\d|-\d|-[a-su-z]|/\d{1,2}/)|(?<![a-z0-9_.:/-])(?P<glued>\d{2,9})(?=tok)",
)
_BY = re.compile(
    r"\b(?:by|um|por|di|на)(?: (?:about|approximately|around|roughly|at least|more than|over|nearly|circa))? ?~?[(\[]?$"
)
_LABEL = re.compile(
    r"(?:\b(?:status(?:[_ ]?code)?|error(?:[_ ]?code)?|err(?:no|code)?|code|http|https|line|port|attempt|attempts|try|retry|retried|version|v|ref|id|pid|channel|step|index|position|msgs?|trace|exit code|httpstatuscode|after|retry-after|temperature|top_p|top_k|第|错误码|エラー|오류)[\"']?(?: ?[:=#] ?| \(?|\()[\"'#]?)$"
)
_OTHER_UNIT = re.compile(
    r"[)\]]? ?-?(?:seconds?|secs?|s\b|ms\b|milliseconds?|minutes?|mins?|hours?|days?|bytes?|kb\b|mb\b|gb\b|kib\b|mib\b|characters?|chars?\b|字符|字节|文字|字\b|글자|images?\b|documents?\b|tools?\b|files?\b|pages?\b|messages?\b(?! (?:tokens?|limit|length))|times?\b|attempts?\b|tries\b|requests?\b|retries|draft|% |percent|/ ?min|per min|per day|parameters?\b|gpus?\b|zeichen|caracter|caracteres|caracteres|caratteri|символ|секунд|sekunden|secondes|segundos|秒|分钟|bad request|unprocessable|payload too|request entity|too many req|internal server|client error)"
)
_IN_BRACKETS = re.compile(r"[<\[(]$")
_LOWER_BOUND = re.compile(r", ?\d{2,12}[\])]")
_CLOSED = re.compile(r"[>\])](?! ?-?tok)")
_OVERSHOOT = re.compile(r" ?tokens? (?:over|too many|too long|longer|more than|above|beyond|past|in excess)\b")


@dataclass(frozen=True, slots=True)
class Number:
    """A whole number that may count tokens, and where it stands in the text."""

    value: int
    start: int
    end: int


def token_counts(text: str, codes: frozenset[str] = frozenset()) -> list[Number]:
    """The numbers of a normalised text that may count tokens, in order.

    Left out: status and error codes (``codes`` are those of the error itself), overshoots ("by 10 tokens"), counts of
    seconds, bytes or images, dates, versions, digits in names.
    """
    found: list[Number] = []
    for match in _NUMBER.finditer(text):
        if len(found) >= MAX_NUMBERS:
            break
        value = _value(match)
        if value is None or _is_decoy(text, match, value, codes):
            continue
        found.append(Number(value, match.start(), match.end()))
    return found


def _value(match: re.Match[str]) -> int | None:
    body = match["body"] or match["glued"]
    scale = _SCALE.get(match["scale"] or "", 1)
    if match["fraction"]:
        if scale == 1:
            return None
        return round(float(body) * scale)
    return int(re.sub(r"\D", "", body)) * scale


def _is_decoy(text: str, match: re.Match[str], value: int, codes: frozenset[str]) -> bool:
    before = text[max(0, match.start() - 40) : match.start()]
    after = text[match.end() : match.end() + 40]
    if _BY.search(before) or _OVERSHOOT.match(after) or _OTHER_UNIT.match(after):
        return True
    if _LABEL.search(before) and not _counts_tokens(after):
        return True
    if _IN_BRACKETS.search(before) and (_LOWER_BOUND.match(after) or (400 <= value < 600 and _CLOSED.match(after))):
        return True
    if str(value) in codes and not _counts_tokens(after):
        return True
    return _is_bare_code(text, match, value)


def _counts_tokens(after: str) -> bool:
    return re.match(r"[)\]]? ?-?(?:`?\w{1,12}`? )?(?:tok|トークン|토큰|токен|jeton|个?token)", after) is not None


def _is_bare_code(text: str, match: re.Match[str], value: int) -> bool:
    """A lone, odd, small number in brackets that nothing calls tokens is an error's code: "exceeds limit (1234)"."""
    if not 1_000 <= value < 10_000 or value % 8 == 0 or text[match.end() : match.end() + 1] != ")":
        return False
    if text[match.start() - 1 : match.start()] != "(":
        return False
    return re.search(r"\d", text[: match.start()]) is None and re.search(r"\d|token", text[match.end() :]) is None
