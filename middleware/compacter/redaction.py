"""Redaction of text that leaves a conversation: decode escapes, then apply the option ``redact``.

The built-in patterns of secrets are data, in ``secrets.toml``. The issuers' prefixes there were
compared with the rules of gitleaks and detect-secrets:
https://github.com/gitleaks/gitleaks/blob/master/config/gitleaks.toml
https://github.com/Yelp/detect-secrets/tree/master/detect_secrets/plugins
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Final

from compacter.text.colours import without_colours

# A pair of surrogates, or one character, except quotes, backslashes, control characters and halves
# of such a pair.
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    r"|\\u(?!00[01]|0022|005[cC]|[dD][89a-fA-F])[0-9a-fA-F]{4}"
)


def decode_escapes(text: str) -> str:
    r"""Return ``text`` with JSON's ``\uXXXX`` escapes decoded, except quotes, backslashes and
    control characters.

    JSON stays valid. Apply it before ``redact_secrets``: an escaped label or key does not match any
    pattern.
    """
    return _ESCAPE.sub(lambda match: str(json.loads(f'"{match[0]}"')), text)


@dataclass(frozen=True, slots=True)
class Redaction:
    r"""The option ``redact``, for any text that leaves a conversation: decode, then redact.

    After an escape sequence (``\nsk-...``) a secret has no word boundary before it, and an escaped
    quote would end it too early. So ``function`` gets escaped blanks as blanks, and each quoted
    string with escapes in decoded form.
    """

    function: Callable[[str], str]

    def __call__(self, text: str) -> str:
        """Return ``text`` redacted; JSON stays JSON."""
        text = decode_escapes(text)
        if "\\" in text:
            text = _ESCAPED.sub(self._redact_string, text)
        # Remove the codes of colours first, as their last letter would join the next word.
        plain = without_colours(text)
        if plain != text and self.function(plain) != plain:
            text = plain
        if "\\" not in text or "\v" in text or "\f" in text:
            return self.function(text)
        # Two kinds of blanks that JSON and prose do not have.
        masked = _ESCAPED_BLANK.sub(lambda match: "\f" if match[1] == "t" else "\v", text)
        clean = self.function(masked)
        return text if clean == masked else clean.replace("\f", r"\t").replace("\v", r"\n")

    def _redact_string(self, match: re.Match[str]) -> str:
        """Return a JSON string with escapes redacted; anything else unchanged."""
        if "\\" not in match[0]:
            return match[0]
        try:
            value = json.loads(match[0])
        except ValueError:
            return match[0]
        clean = self(value)
        return match[0] if clean == value else json.dumps(clean, ensure_ascii=False)


_ESCAPED_BLANK = re.compile(r"(?<!\\)\\([nrt])")
# A string of JSON; one that does not end in its line matches too, so that the time is linear.
_ESCAPED = re.compile(r'"(?:[^"\\\n]|\\.)*"?')


# -- the built-in patterns -------------------------------------------------------------------------


def redact_secrets(text: str) -> str:
    """Return ``text`` with each secret and each e-mail address replaced by the name of its kind, in
    brackets.

    It finds private keys; passwords in connection strings, command lines, markup and assignments;
    one-time codes and PINs that stand after a label; cookies; JWT and bearer tokens; signatures in
    URLs; API keys of well-known forms and AWS key ids; and payment cards and IBANs whose check
    digits are right. It does not find phone numbers or names of people, because these have no fixed
    form. To redact them too, write a function that calls this one first. A second call with the
    result changes nothing.
    """
    for pattern, replace in _patterns():
        text = pattern.sub(replace, text)
    return text


@cache
def _patterns() -> Sequence[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
    """Return the patterns of ``secrets.toml``, each with the function that replaces a match."""
    table = tomllib.loads(Path(__file__).with_name("secrets.toml").read_text(encoding="utf-8"))

    def read(pattern: str) -> re.Pattern[str]:
        whole = re.sub("<([A-Z]+)>", lambda name: table["words"][name[1]], pattern)
        return re.compile(whole.replace("\n", ""))

    table["words"]["ISSUERS"] = "|".join(key["pattern"] for key in table["key"])
    patterns = []
    for row in table["secret"]:
        check = _CHECKS.get(row.get("check"))
        each = read(row["each"]) if "each" in row else None
        replace = partial(_replace, kind=row["kind"], check=check, each=each)
        patterns.append((read(row["pattern"]), replace))
    return patterns


def _replace(
    match: re.Match[str],
    *,
    kind: str,
    check: Callable[[re.Match[str]], bool] | None = None,
    each: re.Pattern[str] | None = None,
) -> str:
    """Return the replacement of a match; the match itself if its check fails."""
    if check is not None and not check(match):
        return match[0]
    groups = match.groupdict("")
    secret = each.sub(partial(_replace, kind=kind), groups["each"]) if each else f"[{kind}]"
    return f"{groups.get('keep', '')}{secret}{groups.get('after', '')}"


def _is_card(match: re.Match[str]) -> bool:
    """Return whether digits are those of a payment card (ISO/IEC 7812-1)."""
    digits = re.sub(r"\D", "", match[0])
    # Every second digit, from the right, is doubled, and its two digits are added up.
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    total = sum(map(int, digits[::-2])) + sum(doubled)
    return bool(_ISSUERS.fullmatch(digits)) and total % 10 == 0


def _is_iban(match: re.Match[str]) -> bool:
    """Return whether the check digits of an account number are valid (ISO 13616)."""
    plain = match[0].replace(" ", "")
    number = "".join(str(int(character, 36)) for character in plain[4:] + plain[:4])
    return int(number) % 97 == 1


def _is_assigned(match: re.Match[str]) -> bool:
    """Return whether the value behind a label is a secret.

    A placeholder, a type or a reference is not. Behind "is", or in a table, only a value with a
    digit is a secret. After a sign, a single word or number is a secret only if its line or field
    ends with it; else it may begin a sentence.
    """
    groups = match.groupdict("")
    quoted = groups["quoted"]
    value = quoted or groups["bare"].rstrip(".!?:)")
    if _NO_SECRET.fullmatch(value):
        return False
    if groups.get("loose"):
        return not value.isdigit() and any(map(str.isdigit, value))
    if quoted or not (value.isalpha() or value.isdigit()):
        return True
    ends = groups["keep"].endswith("=") or _END.match(match.string, match.end())
    return bool(ends) and (value.isalpha() or bool(groups["password"]))


# Prefixes and lengths of the card networks (ISO/IEC 7812), as one number in ten has a valid check
# digit.
_ISSUERS: Final = re.compile(
    r"4\d{15}(?:\d{3})?|5[0-8]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3(?:0[0-5]|"
    r"[689]\d)\d{11}|35\d{14}|6\d{15,18}"
)
# Values that are not secrets: the whole text has one of these forms.
_NO_SECRET: Final = re.compile(
    r"""
    (.)\1*                             # one character, repeated
    # A placeholder.
    |(?i:your|my|change|example|dummy|fake|test|sample|placeholder|insert|replace).*
    |(?i:\*{3}|x{3}|a{4}).*
    |.{0,64}(?i:secret|password|token|key|session|ident|credential|auth|redacted).*
    # A word about values, or the beginning of a rule of a form, as in "required|min:8".
    |(?i:string|number|integer|boolean|object|bytes|varchar|optional|required|hidden|text|undefined
    |missing|default|include|omit|same-origin|enabled|disabled|input|field|true|false|null|none|str|int|bool
    |float|any|expired|invalid|valid|wrong|correct|changed|reset|unknown|empty|yes/no|on/off|y/n|pass
    |passed|fail|failed|skip|skipped|done|open|closed)(?:\|.*)?
    # A reference: a call, an index, a name, a variable, a path, a tag.
    |[&*]?[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){0,20}[\[(].*
    |[&*]?[A-Za-z_]\w{0,200}(?:(?:\.|->|::)[A-Za-z_]\w{0,200}){1,20}
    |[^\W\d_]*_[^\W\d]*
    |[\w./-]{1,200}\.[a-z]{2,4}(?:::\w{1,200}){0,8}
    |\$(?:[A-Z_]+\b|[{(]).*|%[\w(].*|[<{\[/~].*|\.{2,}.*|![A-Za-z]{2,16}
    """,
    re.DOTALL | re.VERBOSE,
)
# The end of a line or of a field.
_END: Final = re.compile(r"[.!?:)\"'`*]{0,4}[ \t]{0,8}(?:\Z|[\r\n,;}\]|&\\#])")
_CHECKS: Final = {
    "assigned": _is_assigned,
    "card": _is_card,
    "iban": _is_iban,
    # Not a placeholder beside the name of a secret.
    "value": lambda match: _NO_SECRET.fullmatch(match["value"]) is None,
}
