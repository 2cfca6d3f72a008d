"""Redaction of text that leaves a conversation: decode what is escaped, then take out what the
option ``redact`` takes out.

The built-in patterns of secrets are data, in ``secrets.toml``. The issuers' prefixes there were
compared with the rules of gitleaks and detect-secrets:
https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml
https://github.com/Yelp/detect-secrets/tree/master/detect_secrets/plugins
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

__all__ = ["Redaction", "decode_escapes", "redact_rules", "redact_secrets"]

_ESCAPE = re.compile(
    r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|"
    r"\\u([0-9a-fA-F]{4})"
)


def decode_escapes(text: str) -> str:
    r"""Return ``text`` with JSON's ``\uXXXX`` escapes decoded, except quotes, backslashes and
    control characters.

    JSON stays valid. Apply it before ``redact_secrets``: an escaped label or key does not match any
    pattern.
    """
    return _ESCAPE.sub(_decode_escape, text) if "\\u" in text else text


def _decode_escape(match: re.Match[str]) -> str:
    high, low, single = match.groups()
    code = (
        int(single, 16)
        if single
        else 0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00
    )
    return match[0] if code < 0x20 or code in (0x22, 0x5C) or 0xD800 <= code < 0xE000 else chr(code)


@dataclass(frozen=True, slots=True)
class Redaction:
    r"""The option ``redact``, for any text that leaves a conversation: decode, then redact.

    A secret behind an escape sequence (``\nsk-...``) has no word boundary before it, and one with
    an escaped quote in it ends too early. So ``function`` gets escaped blanks as blanks, and where
    a text is JSON also each string that has escapes, as it is when decoded. There a label also
    counts for what stands in a list below it, and for the value beside it:
    ``{"name": "DB_PASSWORD", "value": "..."}``.
    """

    function: Callable[[str], str]

    def __call__(self, text: str) -> str:
        """Return ``text`` redacted; JSON stays JSON."""
        return self._redact_text(text, _DEPTH)

    def _redact_text(self, text: str, depth: int) -> str:
        text = decode_escapes(text)
        if depth and ("\\" in text or _DISTANT.search(text)):
            whole = self._json(text, depth)
            if whole is None:
                whole = "\n".join(self._json(line, depth) or line for line in text.split("\n"))
            text = whole
        return self._without_escapes(text)

    def _without_escapes(self, text: str) -> str:
        if _COLOUR.search(text):
            # Without the colour codes, whose last letter is a part of the word after it.
            plain = _COLOUR.sub("", text)
            if self.function(plain) != plain:
                text = plain
        if "\\" not in text or "\v" in text or "\f" in text:
            return self.function(text)
        # Two kinds of blanks that JSON and prose do not have.
        masked = _ESCAPED_BLANK.sub(lambda match: "\f" if match[1] == "t" else "\v", text)
        clean = self.function(masked)
        return text if clean == masked else clean.replace("\f", r"\t").replace("\v", r"\n")

    def _json(self, text: str, depth: int) -> str | None:
        """Return JSON with the strings that have escapes redacted; ``None`` if it is not JSON."""
        if not text.lstrip().startswith(("{", "[", '"')):
            return None
        try:
            value = json.loads(text)
            clean = self._strings(value, "", depth)
        except (ValueError, RecursionError):
            return None
        # An escaped slash would end a password that has one.
        if clean == value and r"\/" not in text:
            return text
        return json.dumps(clean, ensure_ascii=False)

    def _strings(self, value: Any, label: str, depth: int) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, dict):
            beside = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), label)
            return {
                self._string(key, "", depth): self._below(inner, beside, depth)
                if key.lower() in _VALUES
                else self._strings(inner, key, depth)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [self._below(inner, label, depth) for inner in value]
        return self._string(value, label, depth) if isinstance(value, str) else value

    def _below(self, value: Any, label: str, depth: int) -> Any:  # noqa: ANN401 - JSON
        """Return a value whose label does not stand right before it."""
        clean = self._strings(value, label, depth)
        if clean != value or not isinstance(value, str) or not _LABEL.search(label):
            return clean
        return self._redact_labelled(value, label)

    def _redact_labelled(self, text: str, label: str) -> str:
        """Return ``text`` redacted as the value of a label."""
        if len(text) > _LONGEST_VALUE:
            return text
        plain = f'"{label}": "{_ESCAPED.sub("", text)}"'
        redacted = self.function(plain)
        if redacted == plain or not redacted.startswith(f'"{label}": "'):
            return text
        return redacted.removeprefix(f'"{label}": ').strip('"')

    def _string(self, text: str, label: str, depth: int) -> str:
        if not _ESCAPED.search(text):
            return text
        clean = self._redact_text(text, depth - 1)
        if label and clean == text:
            return self._redact_labelled(text, label)  # A password with a quote in it.
        return clean


def redact_rules(rules: Iterable[str], redact: Callable[[str], str] | None) -> tuple[str, ...]:
    """Return the rules that the program declares, as they stand in summaries and events.

    A rule that ``redact`` raises at is left out, as all text is that cannot be redacted.
    """
    if redact is None:
        return tuple(rules)
    clean: list[str] = []
    for rule in rules:
        with suppress(Exception):  # Of the user's function.
            clean.append(redact(rule))
    return tuple(clean)


# JSON inside a string of JSON is read to this depth: a tool's arguments in a body in a log.
_DEPTH = 4
# Longest value, in characters, that may be one secret as a whole.
_LONGEST_VALUE = 512
_NAMES = ("name", "key", "Name", "Key", "field", "variable", "header")
# Fields of JSON that hold a label, and the value that belongs to it.
_VALUES = frozenset(("value", "val", "content", "data", "default", "text", "string"))
_LABEL = re.compile(r"(?i)pass|pwd|secret|token|key|credential|auth")
# A label of JSON that does not stand right before its value.
_DISTANT = re.compile(
    r"(?i)(?:pass|pwd|secret|token|key|credential|auth)[\w-]{0,32}\"\s{0,4}(?::\s{0,4}[\[{]"
    r"|,[^{}]{0,64}?\"(?:value|val|content|data)\"\s{0,4}:)"
    r"|\"(?:value|val|content|data)\"\s{0,4}:[^{}]{0,200}?(?:pass|pwd|secret|token|key|credential)"
)
_COLOUR = re.compile(r"(?:\x1b|\\(?:u001b|x1b|033|e))\[[0-9;?]{0,32}[A-Za-z]")
_ESCAPED_BLANK = re.compile(r"(?<!\\)\\([nrt])")
# Characters that JSON escapes.
_ESCAPED = re.compile(r"[\"\\\x00-\x1f]")


# -- the built-in patterns -------------------------------------------------------------------------


def redact_secrets(text: str) -> str:
    """Return ``text`` with secrets and personal addresses replaced by their kind, in brackets.

    Covers private keys, passwords in connection strings, command lines, markup and assignments,
    one-time codes and PINs by their label, cookies, JWT and bearer tokens, signatures in URLs, API
    keys of well-known forms, AWS key ids, payment cards and IBANs (by check digit) and e-mail
    addresses. Phone numbers and names have no fixed form; your own function may redact them after
    calling this one. Applying it twice has no further effect.
    """
    for pattern, replace in _patterns():
        text = pattern.sub(replace, text)
    return text


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]:
    """Return the patterns of ``secrets.toml``, each with what replaces a match."""
    file = Path(__file__).with_name("secrets.toml")
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    keys = "|".join(key["pattern"] for key in data["key"])
    rules = [{"kind": "API key", "pattern": f"{_KEY}(?:{keys})"}, *data["secret"]]
    patterns = []
    for rule in rules:
        pattern = rule["pattern"]
        for name, words in data["words"].items():
            pattern = pattern.replace(f"<{name}>", words)
        flags = [re.RegexFlag[flag.upper()] for flag in rule.get("flags", ["ascii"])]
        replace = partial(_replace, kind=rule["kind"], check=_CHECKS.get(rule.get("check", "")))
        patterns.append((re.compile(pattern.replace("\n", ""), sum(flags)), replace))
    return tuple(patterns)


def _replace(
    match: re.Match[str], *, kind: str, check: Callable[[re.Match[str]], bool] | None
) -> str:
    """Return what stands in place of a secret; what it is if a check finds that it is none."""
    if check is not None and not check(match):
        return match[0]
    groups = match.groupdict()
    if groups.get("pairs"):
        return f"{groups['keep']}{_PAIR.sub(_without_cookie, groups['pairs'])}"
    return f"{groups.get('keep') or ''}[{kind}]{groups.get('after') or ''}"


def _without_cookie(pair: re.Match[str]) -> str:
    name = pair["name"]
    return pair[0] if name.lower() in _COOKIE_ATTRIBUTES else f"{name}=[token]"


def _is_card(match: re.Match[str]) -> bool:
    """Return whether digits are those of a payment card (ISO/IEC 7812-1)."""
    digits = re.sub(r"\D", "", match[0])
    # Digits at every second place are doubled, and the digits of the result added up.
    doubled = [
        sum(divmod(int(digit) * (1 + place % 2), 10)) for place, digit in enumerate(digits[::-1])
    ]
    return _ISSUERS.fullmatch(digits) is not None and sum(doubled) % 10 == 0


def _is_iban(match: re.Match[str]) -> bool:
    """Return whether the check digits of an account number are valid (ISO 13616)."""
    plain = match[0].replace(" ", "")
    number = "".join(str(int(character, 36)) for character in plain[4:] + plain[:4])
    return len(plain) >= 15 and int(number) % 97 == 1


def _is_value(match: re.Match[str]) -> bool:
    """Return whether the value beside the name of a secret is one, and no placeholder."""
    return _is_literal(match["value"])


def _is_assigned(match: re.Match[str]) -> bool:
    """Return whether the value behind a label is a secret, and not a name, a type or a count."""
    word = (match["quoted"] or match["bare"]).rstrip(".!?:)")
    label = match["keep"]
    before = match.string[max(0, match.start() - 64) : match.start()]
    # A test runner's "PASS: test_name"; a name for itself: {"access_token": "access_token"}.
    has_digit = re.search(r"\d", word) is not None
    is_result = re.match(r"PASS\b", label) is not None and before[-1:] not in ("_", "-")
    is_result = is_result and (not has_digit or "/" in word)
    is_name = word.isidentifier() and not word.isalpha()
    if is_result or not _is_literal(word) or (is_name and word.lower() in label.lower()):
        return False
    # "The password is ..." may go on as a sentence.
    if match["linked"] == "|" or match["linked"].isalpha():
        return has_digit and not word.isdigit()
    if match["quoted"]:
        return not word.isalpha() or bool(match["password"]) or len(word) >= _SHORTEST
    if _ATTRIBUTE.search(before):
        return False
    if word.isalpha():
        # A variable of settings; a password that ends its line or field: "password: tr4 lala" does
        # not, nor does code.
        is_set = _CONFIGURED.fullmatch((before + label).rpartition("\n")[2]) is not None
        goes_on = _OPERATOR if label.endswith("=") else _GOES_ON
        ends = goes_on.match(match.string, match.end()) is None
        humps = re.findall(r"[A-Z]+[a-z]*|[a-z]+", word)
        is_random = len(word) >= _SHORTEST and 2.5 * len(humps) > len(word)
        return is_set or is_random or (bool(match["password"]) and word.islower() and ends)
    return bool(match["password"]) or (has_digit and not word.isdigit())


def _is_literal(word: str) -> bool:
    """Return whether a word is neither a reference, a placeholder nor a word about values."""
    first = word.partition("|")[0].lower()  # "required|min:8" is a rule of a form.
    return (
        len(set(word)) > 1
        and first not in _NOT_SECRETS
        and _PLACEHOLDER.match(word) is None
        and (word.isalpha() or _REFERENCE.fullmatch(word) is None)
    )


# What every key begins with: no letter before it, and twenty characters of a key.
_KEY: Final = r"(?<![A-Za-z0-9])(?!--|\.\.)(?=[\w.:~+/=-]{20})"
# Prefixes and lengths of the card networks (ISO/IEC 7812), as a valid check digit alone is no proof
# of a card.
_ISSUERS: Final = re.compile(
    r"4\d{15}(?:\d{3})?|5[0-8]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|"
    r"[689]\d)\d{11}|35\d{14}|6\d{15,18}"
)
_PAIR: Final = re.compile(r"(?P<name>[^\s=;]{1,64})=[^\s;]{8,4096}")
_COOKIE_ATTRIBUTES: Final = frozenset(
    ("path", "expires", "max-age", "domain", "samesite", "priority", "theme", "lang", "locale")
)
# A reference, which is not a secret itself: a call, an index, a name, a variable, a path, a tag.
_REFERENCE: Final = re.compile(
    r"[&*]?[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){0,20}[\[(].*"
    r"|[&*]?[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){1,20}|[^\W\d]+"
    r"|\$(?:[A-Z_]+\b|[{(]).*|%[\w(].*|[<{\[/~].*|\.{2,}.*|![A-Za-z]{2,16}",
    re.DOTALL,
)
_PLACEHOLDER: Final = re.compile(
    r"(?i:your|my|change|example|dummy|fake|test|sample|placeholder|insert|replace|\*{3}|x{3}|a{4})"
    r"|.{0,64}(?i:secret|password|token|key|session|ident|credential|auth|redacted)"
)
_PLAIN_WORDS: Final = """
    string number integer boolean object bytes varchar optional required hidden text undefined
    missing include omit same-origin enabled disabled input field true false null none str int bool
    float any expired invalid valid wrong correct changed reset unknown empty yes/no on/off y/n pass
    passed fail failed skip skipped done open closed
"""
_NOT_SECRETS: Final = frozenset(_PLAIN_WORDS.split())
# Before a label, by which a bare value is a name: `self.password = hashed`.
_ATTRIBUTE: Final = re.compile(r"\b(?:self|this|cls)\.\Z")
# A variable in a file of settings or a shell, which holds no name of another variable.
_CONFIGURED: Final = re.compile(r"[^=]{0,64}[A-Z][A-Z0-9_]{2,63}[\"']?\s?=[\"']?")
# What follows a value of letters that is none: an operator, a call; after a blank a sentence too.
_OPERATOR: Final = re.compile(r"[.(\[]| (?:if|or|and|else|for|in|is|not)\b")
_GOES_ON: Final = re.compile(r"[.(\[]|[ \t]{1,4}[\w=+|&?]")
# Letters from which a quoted value is no name of a mode or a kind (`sameorigin`).
_SHORTEST: Final = 12
_CHECKS: Final = {
    "assigned": _is_assigned,
    "card": _is_card,
    "iban": _is_iban,
    "value": _is_value,
}
