"""Redaction of text that leaves a conversation: decode what is escaped, then take out what the
option ``redact`` takes out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from compacter.secret_patterns import redact_secrets

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
