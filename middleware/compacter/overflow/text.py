"""One plain form for a message, whatever terminal, JSON encoder or keyboard it came through."""

from __future__ import annotations

import re
import unicodedata

MAX_TEXT = 65_536
"""Characters of one error that are read. A longer text gives its beginning and its end."""

BREAK = "\x1e"
"""Separates pieces that do not belong to one sentence."""

_HEAD = MAX_TEXT * 3 // 4
_ANSI = re.compile(r"\x1b\[[0-9;]{0,20}[A-Za-z]")
_ESCAPED_SPACE = re.compile(r"\\{1,16}[nrt](?![a-z]{1,8}[:\\])")
_ESCAPED_QUOTE = re.compile(r"\\{1,16}(?=[\"'`/])")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,9}://[^\s\"'<>)\]]{1,2000}", re.IGNORECASE)
_BOX = re.compile(r"[\u2500-\u257f]+")
_HARD_SPACE = re.compile(r"(?<=\d)[\u00a0\u2007\u2008\u2009\u202f](?=\d{3}(?!\d))")
_FORMAT = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\u0600-\u0605]")
_QUOTES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2264\u2a7d\u2266", "\u2264"),
        "\u00df": "ss",
        "\u0131": "i",
    }
)
_COMPARISONS = (
    ("\u2264", "<="),
    ("\u2265", ">="),
    ("\u2267", ">="),
    ("&gt;", ">"),
    ("&lt;", "<"),
    ("&#39;", "'"),
    ("&quot;", '"'),
    ("&nbsp;", " "),
)
_MARKS = re.compile(r"[\u0300-\u036f]")
_WIDE_DIGIT = re.compile(r"[^\x00-\x7f]")
_SPACE = re.compile(r"[^\S\x1e]+")

# A hard wrap breaks a number or a word at the edge of a terminal, so what stands before it is a full line.
_BROKEN_NUMBER = re.compile(r"(?<=[^\n]{60}\d)\n(?=\d{1,6}(?!\d))")
_NEW_PARAGRAPH = re.compile(r"\n\s{0,40}\n|\n(?=[A-Z][A-Za-z_ -]{1,30}: )")
_BREAKABLE = (
    "requested",
    "exceeds",
    "exceeded",
    "exceed",
    "context",
    "maximum",
    "tokens",
    "messages",
    "prompt",
    "length",
    "window",
    "completion",
    "longer",
    "limit",
    "allowed",
    "resulted",
    "reduce",
)
_BROKEN_WORD = re.compile(
    "|".join(
        rf"\b{word[0]}" + "".join(f"[ -]?{letter}" for letter in word[1:]) + r"\b"
        for word in sorted(_BREAKABLE, key=len, reverse=True)
    )
)

# An error that echoes the caller's own messages proves nothing by what those messages say.
_ECHO_ROLE = re.compile(r"[\"']role[\"']\s{0,4}:\s{0,4}[\"'](?:user|assistant|system|tool|developer)[\"']")
_ECHO = re.compile(r"[\"'](?:content|text|arguments)[\"']\s{0,4}:\s{0,4}(?:\"[^\"]{0,20000}\"|'[^']{0,20000}')")
_ECHO_INPUT = re.compile(r"\binput_value=(?:\"[^\"]{0,20000}\"|'[^']{0,20000}')")


def bounded(text: str) -> str:
    """At most ``MAX_TEXT`` characters: the beginning, and the end, where the last of several tries stands."""
    return text if len(text) <= MAX_TEXT else text[:_HEAD] + BREAK + text[_HEAD - MAX_TEXT :]


def fold(text: str) -> str:
    """Latin letters without accents, full-width forms as plain ones; vocabularies go through this as well."""
    text = unicodedata.normalize("NFKC", _MARKS.sub("", unicodedata.normalize("NFKD", text.translate(_QUOTES))))
    for exotic, plain in _COMPARISONS:
        text = text.replace(exotic, plain)
    return text


def normalise(text: str) -> str:
    """Lower case, single spaces, ASCII digits and quotes; no URL, no colour code, no frame of a terminal."""
    text = bounded(text)
    text = _ANSI.sub("", text)
    text = _BOX.sub(" ", text)
    text = _BROKEN_NUMBER.sub("", text)
    text = _NEW_PARAGRAPH.sub(f" {BREAK} ", text)
    text = _ESCAPED_QUOTE.sub("", _ESCAPED_SPACE.sub(" ", text))
    if not text.isascii():
        text = fold(_FORMAT.sub("", _HARD_SPACE.sub("_", text)))
        text = _WIDE_DIGIT.sub(_ascii_digit, text)
    else:
        for exotic, plain in _COMPARISONS[3:]:
            text = text.replace(exotic, plain)
    text = _URL.sub(" ", text).lower()
    if _ECHO_ROLE.search(text):
        text = _ECHO.sub(" ", text)
    text = _ECHO_INPUT.sub(" ", text)
    text = _SPACE.sub(" ", text)
    return _BROKEN_WORD.sub(_mended, text)


def _ascii_digit(match: re.Match[str]) -> str:
    char = match.group()
    return str(unicodedata.decimal(char)) if char.isdecimal() else char


def _mended(match: re.Match[str]) -> str:
    return match.group().replace(" ", "").replace("-", "")
