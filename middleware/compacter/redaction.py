"""Ready-made patterns for what should not reach a summarizer: keys, tokens, passwords, cards, addresses.

Patterns are for shapes that providers document or that are unmistakable by themselves; each replacement names
what was taken out. Word boundaries are those of ASCII, since Chinese or Japanese writes no space before a key.
Every pattern is bounded or anchored on a literal, so that the time stays linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_Replace = str | Callable[[re.Match[str]], str]


def _kept(label: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{match['keep']}[{label}]" + (match.groupdict().get("after") or "")


_ISSUERS = re.compile(
    r"4\d{15}(?:\d{3})?|5[0-8]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}|3[5]\d{14}|6\d{15,18}"
)
"""Beginnings and lengths that card networks use (ISO/IEC 7812): most numbers with a right check digit are no cards."""


def _card(match: re.Match[str]) -> str:
    digits = re.sub(r"\D", "", match[0])
    return "[card number]" if _ISSUERS.fullmatch(digits) and _luhn([*map(int, digits)]) else match[0]


def _luhn(digits: list[int]) -> bool:
    """The check digit of payment cards (ISO/IEC 7812-1)."""
    doubled = [digit if place % 2 == 0 else digit * 2 - 9 * (digit > 4) for place, digit in enumerate(reversed(digits))]
    return sum(doubled) % 10 == 0 and len(set(digits)) > 1


_WORDS_FOR_ONE = (
    r"(?:pass(?:word|wd|phrase|code)|(?<![A-Za-z])pass|pwd"
    r"|contraseña|mot de passe|passwort|kennwort|senha|пароль|密码|密碼|パスワード|비밀번호)"
)
_WORDS_FOR_KEYS = (
    r"(?:secret|secret[_-]?key|client[_-]?secret|(?:api|access|auth|account|private|signing|encryption)[_-]?key|apikey"
    r"|(?:access|auth|refresh|bearer|session|id|bot)?[_-]?token|credentials?)"
)
_STRENGTH = re.compile(r"[\d\W_]")
_REFERENCE = re.compile(
    r"[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)*[\[(].*"  # a call, an index
    r"|[A-Za-z_]\w*(?:(?:\.|->|::)[A-Za-z_]\w*)+|[^\W\d]+"  # an attribute, a name
    r"|\$(?:[A-Z_]+\b|[{(]).*|%[\w(].*|[<{\[/~].*|\.{2,}.*|(?i:your)[-_ ].*",  # a variable, a path, a placeholder
    re.DOTALL,
)
"""Where a secret comes from, or will be put: no secret itself."""
_PLAIN_WORDS = """
    string number integer boolean object bytes varchar optional required password passwd secret token hidden
    undefined missing include omit same-origin enabled disabled input field true false null none
"""
_NO_SECRETS = frozenset(_PLAIN_WORDS.split())


def _assigned(match: re.Match[str]) -> str:
    """The assignment without its value, where that may be a secret: a name, a type or a count is none."""
    word = (match["quoted"] or match["bare"]).rstrip(".!?:)")
    if word and word.lower() not in _NO_SECRETS and _looks_secret(match, word):
        return f"{match['keep']}[secret]"
    return match[0]


def _looks_secret(match: re.Match[str], word: str) -> bool:
    if match["linked"].strip().isalpha():  # "The password is ..." goes on as a sentence, unless it looks like one.
        return bool(re.match(r"(?=[!-~]{4})[!-.0-}][!-~]*?[\dA-Z]", word))
    if match["quoted"]:
        name = word.isidentifier() and not match["password"] and not _STRENGTH.search(word)
        return not name and (
            (word.isidentifier() and not word.startswith("YOUR_")) or " " in word or not _REFERENCE.fullmatch(word)
        )
    if match["password"] and word.isalpha() and word.islower():
        return not re.match(r" [a-z]", match.string[match.end() : match.end() + 2])
    if _REFERENCE.fullmatch(word):
        return False
    return bool(match["password"]) or (not word.isdigit() and bool(re.search(r"\d", word)))


_PATTERNS: tuple[tuple[re.Pattern[str], _Replace], ...] = (
    (
        re.compile(
            r"-----BEGIN (?P<kind>[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?)-----"
            r"(?:(?:(?!-----BEGIN )[\s\S]){1,16384}?-----END (?P=kind)-----"
            r"|(?:(?:\s|\\[rn]){1,8}[A-Za-z0-9+/=]{8,}){0,800})"  # Cut off by whoever printed it.
        ),
        "[private key]",
    ),
    # Connection strings: scheme://user:password@host
    (
        re.compile(
            r"(?P<keep>\b[a-zA-Z][a-zA-Z0-9+.-]{1,30}://[^\s:/@'\"<>]{0,128}:)[^\s/'\"<>]{1,256}(?P<after>@)",
            re.ASCII,
        ),
        _kept("password"),
    ),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?", re.ASCII), "[token]"),
    (
        re.compile(
            r"(?P<keep>\b(?i:(?:proxy-)?authorization[\\\"']{0,3}\s{0,4}[:=]\s{0,4}[\\\"']{0,3}"
            r"(?:(?:basic|bearer|token|digest|apikey|bot)\s{1,4})?))"
            r"(?=[^\s\"',;\\]{0,4096}[\dA-Z=]|[^\s\"',;\\]{16})[^\s\"',;\\]{8,4096}",
            re.ASCII,
        ),
        _kept("token"),
    ),
    (
        re.compile(
            r"(?P<keep>\b(?i:bearer)\s{1,4})(?=[A-Za-z._~+/=-]{0,200}[\d])[A-Za-z0-9._~+/=-]{16,4096}", re.ASCII
        ),
        _kept("token"),
    ),
    # AWS access key ids; the secret beside them has no shape of its own and goes with its name below.
    (re.compile(r"\b(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b", re.ASCII), "[AWS key]"),
    (
        re.compile(
            r"\b(?:sk-(?:ant|proj|or|svcacct|admin|None)-[A-Za-z0-9_-]{16,}"  # OpenAI, Anthropic, OpenRouter
            r"|[sp]k-lf-[a-f0-9-]{32,}|sk-(?=[A-Za-z]{0,200}\d)[A-Za-z0-9]{16,}|ABSK[A-Za-z0-9+/=]{40,}"
            r"|(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|whsec_[A-Za-z0-9]{16,}"  # Stripe
            r"|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|gl(?:pat|dt|rt|cbt|ptt|soat)-[A-Za-z0-9_-]{16,}"
            r"|xox[abeoprs][.-][A-Za-z0-9.-]{10,}|xapp-[A-Za-z0-9-]{10,}"  # Slack
            r"|AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}"  # Google
            r"|1//0[A-Za-z0-9_-]{30,}"
            r"|hf_[A-Za-z0-9]{20,}|gsk_[A-Za-z0-9]{20,}|xai-[A-Za-z0-9]{20,}|pplx-[A-Za-z0-9]{20,}|"
            r"r8_[A-Za-z0-9]{20,}|nvapi-[A-Za-z0-9_-]{20,}"
            r"|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{20,}|dop_v1_[a-f0-9]{32,}|shp(?:at|ca|pa|"
            r"ss)_[a-fA-F0-9]{20,}"
            r"|SG\.[A-Za-z0-9_-]{12,}\.[A-Za-z0-9_-]{12,}|key-[a-f0-9]{32}|sq0(?:atp|"
            r"csp)-[A-Za-z0-9_-]{20,}|lin_api_[A-Za-z0-9]{20,}|ntn_[A-Za-z0-9]{20,}|secret_[A-Za-z0-9]{40,}"
            r"|hv[sb]\.[A-Za-z0-9_-]{20,}|dapi[a-f0-9]{32}|dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9]{30,}|fm2_[A-Za-z0-9+/=]{30,}"
            r"|[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}|AGE-SECRET-KEY-1[A-Z0-9]{50,}|figd_[A-Za-z0-9_-]{30,}"
            r"|PMAK-[a-f0-9-]{40,}|glsa_[A-Za-z0-9_]{30,}|NRAK-[A-Z0-9]{20,}|SK[a-f0-9]{32}\b"
            r"|[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{30,}"  # Microsoft Entra
            r"|[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,40}"  # Discord
            r"|\d{8,10}:AA[A-Za-z0-9_-]{30,})",  # Telegram
            re.ASCII,
        ),
        "[API key]",
    ),
    (re.compile(r"(?P<keep>\bhooks\.slack\.com/services/)[A-Za-z0-9/]{20,}", re.ASCII), _kept("token")),
    (re.compile(r"(?P<keep>\b(?:set-)?cookie:\s{0,4}[^\s=;]{1,64}=)[^\s;]{8,4096}", re.IGNORECASE), _kept("token")),
    (
        re.compile(r"(?P<keep>\bcurl\s[^\n]{0,200}?(?:-u|--user)[ =][\"']?[^\s:\"']{1,64}:)[^\s\"']{3,256}"),
        _kept("password"),
    ),
    (
        re.compile(
            r"(?P<keep>(?<![A-Za-z0-9])[\w.-]{0,40}?(?:(?P<password>"
            + _WORDS_FOR_ONE
            + r")|"
            + _WORDS_FOR_KEYS
            + r")[\\\"'`*]{0,4}\s{0,4}(?P<linked>:=|=>|=|:|\bis\b|：|は|是)\s{0,4}"
            r"(?:[\\`*]{0,2}(?P<quote>[\"'`])|[\\\"'`*]{0,4}))"
            r"(?!\[|\s)(?:(?(quote)(?P<quoted>[^\"'`\n\\]{4,512})|(?!))|(?P<bare>[^\s\"'`,;}{\\]{4,512}))",
            re.IGNORECASE,
        ),
        _assigned,
    ),
    (re.compile(r"(?<![\w.-])(?:(?:\d[ -]?){12,18}\d|\d{4}(?:\.\d{4}){3})(?![\d.]?\d)", re.ASCII), _card),
    (
        re.compile(
            r"(?<![\w.+'-])(?!git@)[\w.+'-]{1,64}@(?:[^\W_](?:[\w-]{0,62})\.){1,8}[^\W\d_]{2,24}(?![A-Za-z0-9])"
        ),
        "[e-mail]",
    ),
)


def redact_secrets(text: str) -> str:
    """Return ``text`` with secrets and personal addresses replaced by what they were, in brackets.

    Covers private keys, passwords in connection strings and assignments, JWT and bearer tokens, API keys of
    well-known shapes, AWS key ids, payment cards (by issuer and check digit) and e-mail addresses. Phone numbers, names
    and the like are not secrets of a shape: a function of your own may call this one and go on. Applying it twice
    changes nothing.
    """
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text
