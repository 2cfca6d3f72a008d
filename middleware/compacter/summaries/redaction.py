"""Ready-made patterns for what should not reach a summarizer: keys, tokens, passwords, cards, addresses.

Patterns are for shapes that providers document or that are unmistakable by themselves; each replacement names
what was taken out. Every pattern is bounded or anchored on a literal, so that the time stays linear in the
text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_Replace = str | Callable[[re.Match[str]], str]


def _kept(label: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{match['keep']}[{label}]" + (match.groupdict().get("after") or "")


def _card(match: re.Match[str]) -> str:
    return "[card number]" if _luhn([int(digit) for digit in match[0] if digit.isdigit()]) else match[0]


def _luhn(digits: list[int]) -> bool:
    """The check digit of payment cards (ISO/IEC 7812-1)."""
    doubled = [digit if place % 2 == 0 else digit * 2 - 9 * (digit > 4) for place, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


_NAME_OF_ONE = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|secret[_-]?key|client[_-]?secret|(?:api|access|auth|"
    r"account|private|signing|encryption)[_-]?key|apikey"
    r"|(?:access|auth|refresh|bearer|session|id|bot)?[_-]?token|credentials?"
    r"|contraseña|mot de passe|passwort|kennwort|senha|пароль|密码|パスワード)"
)

_PATTERNS: tuple[tuple[re.Pattern[str], _Replace], ...] = (
    (
        re.compile(
            r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
            r"(?:(?!-----BEGIN )[\s\S]){1,16384}?(?:-----END (?P=kind)-----|"
            r""
            r""
            r"\Z)"
        ),
        "[private key]",
    ),
    # Connection strings: scheme://user:password@host
    (
        re.compile(r"(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s:/@'\"<>]{0,128}:)[^\s@/'\"<>]{1,256}(?P<after>@)"),
        _kept("password"),
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"), "[token]"),
    (
        re.compile(
            r"(?P<keep>\b(?:authorization|proxy-authorization)[\"']?\s{0,4}[:=]\s{0,4}[\"']?(?:basic|"
            r"bearer|token|digest)\s{1,4})[^\s\"',;]{4,4096}",
            re.IGNORECASE,
        ),
        _kept("token"),
    ),
    (re.compile(r"(?P<keep>\bbearer\s{1,4})[A-Za-z0-9._~+/=-]{16,4096}", re.IGNORECASE), _kept("token")),
    # AWS access key ids; the secret beside them has no shape of its own and goes with its name below.
    (re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b"), "[AWS key]"),
    (
        re.compile(
            r"\b(?:sk-(?:ant-|proj-|or-|svcacct-|admin-)?[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic and others
            r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,}"  # Stripe
            r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"  # Git hosts
            r"|xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"  # Slack
            r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}"  # Google
            r"|hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|pplx-[A-Za-z0-9]{20,}|"
            r"r8_[A-Za-z0-9]{20,}|nvapi-[A-Za-z0-9_-]{20,}"
            r"|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|dop_v1_[a-f0-9]{32,}|shp(?:at|ca|pa|"
            r"ss)_[a-fA-F0-9]{20,}"
            r"|SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}|key-[a-f0-9]{32}|sq0(?:atp|"
            r"csp)-[A-Za-z0-9_-]{20,}|lin_api_[A-Za-z0-9]{20,}|ntn_[A-Za-z0-9]{20,}"
            r"|\d{8,10}:AA[A-Za-z0-9_-]{30,})"  # Telegram
        ),
        "[API key]",
    ),
    (
        re.compile(
            r"(?P<keep>(?<![A-Za-z0-9])[\w.-]{0,40}?"
            + _NAME_OF_ONE
            + r"[\"'`*]{0,3}\s{0,4}(?::=|=>|=|:|\bis\b|：|は|是)\s{0,4}[\"'`]{0,3})"
            r"(?!\[|\s|true\b|false\b|null\b|none\b|undefined\b|\$\{|<|\*{3})[^\s\"'`,;}{)]{6,512}",
            re.IGNORECASE,
        ),
        _kept("secret"),
    ),
    (re.compile(r"(?<![\d.-])(?:\d[ -]?){12,18}\d(?![\d.]?\d)"), _card),
    (
        re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})\.){1,8}[A-Za-z]{2,24}\b"),
        "[e-mail]",
    ),
)


def redact_secrets(text: str) -> str:
    """Return ``text`` with secrets and personal addresses replaced by what they were, in brackets.

    Covers private keys, passwords in connection strings and assignments, JWT and bearer tokens, API keys of
    well-known shapes, AWS key ids, payment cards (by their check digit) and e-mail addresses. Applying it
    twice changes nothing.
    """
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text
