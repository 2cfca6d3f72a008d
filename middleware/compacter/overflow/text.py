"""Normalise the text of an error, which may have passed through a terminal, a JSON encoder or an
editor, and divide it into sentences.

The patterns (see ``table``) are written for the normalised form: lower case, ASCII digits and
quotes, no accents, single spaces, no URL, no colour code, JSON escapes decoded, and nothing that a
complaint about a part of the request quotes of it.
"""

from __future__ import annotations

import re
import unicodedata
from html import unescape
from itertools import pairwise
from typing import Final

from compacter.text.colours import without_colours

MAX_TEXT: Final = 32_768
"""Most characters read of one error. Of a longer text the beginning and the end are read."""

BREAK: Final = "\x1e"
"""Separator of two pieces that are not one sentence."""

SOFT: Final = "\x1d"
"""Space at which something new may begin: a line break, or a word with a capital."""

MAX_SENTENCE: Final = 1_500
"""Longest sentence in characters; a longer one is read in pieces of this size."""

MAX_SENTENCES: Final = 200
"""Most sentences read; of more, the first and the last half of this number."""

Span = tuple[int, int]
"""Start and end of a piece of text, in characters."""

# Also a line that begins as a line of a log does: with a time, a level, an attempt.
_PARAGRAPH: Final = re.compile(
    r"\n[ \t\r]{0,40}\n|\n(?=[A-Z][A-Za-z_ -]{1,30}: )|(?=Received Model Group=)"
    r"|\n(?=[^\w\n]{0,8}(?:\d{1,2}:\d\d|\d{4}[-/]\d\d|\w{3} \d{1,2} \d\d:"
    r"|(?i:trace|debug|info|warn(?:ing)?|error|fatal|(?:will )?retry(?:ing)?|try|attempt|exit"
    r"|process|caused by)\b))"
    # "... 9000 tokens Your max_tokens was 512": a sentence without a full stop.
    r"|(?<=[^\s.!?:;,A-Z]) (?=(?:The|This|You|Your|It|If|To|We|No|Nothing|Please|See|Try|Use)"
    r" [a-z])"
)

_ESCAPED_LETTERS: Final = re.compile(r"(?:\\{1,16}u[0-9a-fA-F]{4}){1,64}")
_ESCAPE: Final = re.compile(r"\\{1,16}u")
_ESCAPED_SPACE: Final = re.compile(r"\\{1,16}[nrt](?![a-z]{1,8}[:\\])")
_ESCAPED_QUOTE: Final = re.compile(r"\\{1,16}(?=[\"'`/])")
_END: Final = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bmax)(?<!\bmin)(?<!\bapprox)(?<!\bno)[.!?](?=[\s\"'`)\]}]|$)"
    r"|[。！？\x1e;；]|[\"'`](?=\s?[,}])|\s-\s(?=\{)"
)

_URL: Final = re.compile(r"\b[a-z][a-z0-9+.-]{1,9}://[^\s\"'<>)\]]{1,2000}", re.IGNORECASE)
# The name of a model has words, dates and windows of its own: "chat-2025-03-24, 64k".
_MODEL: Final = re.compile(
    r"\b(?!\w{0,20}(?:token|context|length|max|limit|input|prompt|size))"
    r"(?=[\w.-]{0,60}\d)[a-z]{2,20}[\w./]{0,20}(?:-\w{1,20}(?:\.\w{1,12}){0,3}){1,8}"
    r"(?:(?:, ?| ?[(\[])\d{1,4}[km]\b[)\]]?)?"
)
_SPACE: Final = re.compile(r"[^\S\x1e]+")
# "... 9000 tokens Questions? Write to ...": the end of a sentence without a full stop.
_NEW_LINE: Final = re.compile(r"\r?\n|(?<=[^\s.!?:;,A-Z]) (?=[A-Z][a-z]{1,20} [a-z])")
# A line, a dash, a bar, words with a colon.
_CLAUSE_END: Final = re.compile(
    r"[\x1d\x1e]|\s[-\u2013\u2014|](?=\s)"
    r"|(?<=[^\s.!?:;,])(?: (?!exce|long|large|full|reach|limit|length|size|max|minute|hour|day)"
    r"[a-z]{2,14}){1,3}:(?= )"
    # Prefix of a message in a log: "[gpu 22 of 24 GB] ...", "reading a.txt (12 KB): ..."
    r"|(?<=\)): |(?<=\]):? "
)
_HARD_SPACE: Final = re.compile(r"(?<=\d)[\u00a0\u2007\u2008\u2009\u202f](?=\d{3}(?!\d))")
_INVISIBLE: Final = re.compile(r"[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
# Encoded data, such as a picture: no word of a language with spaces is so long.
_BLOB: Final = re.compile(r"[^\W\u2e80-\ud7ff]{120,}")
_ACCENT: Final = re.compile(r"[\u0300-\u036f]")
_SPELLINGS: Final = str.maketrans(
    "\u2018\u2019\u201a\u201b\u2032\u00b4\u02bc\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb",
    "'" * 7 + '"' * 7,
) | str.maketrans(
    {"\u2264": "<=", "\u2a7d": "<=", "\u2266": "<=", "\u2265": ">=", "\u2a7e": ">=", "\u2267": ">="}
    | {"\u00df": "ss"}
)

# A complaint about a part of the request, by its path or as a value that cannot be read, quotes the
# caller. An apostrophe ends no quotation ("this model's"); the end of the text does.
_COMPLAINT: Final = re.compile(
    r"(?:\b(?:messages|contents|input|items?)(?:[.\[]{1,2}\d{1,6}\]?|\.(?=content|text))"
    r"|\b(?:invalid|unexpected|unsupported|illegal|unterminated|malformed)"
    r" (?:value|type|content|character|string|json|argument|escape|part|role|block|name)"
    r"|\bmust (?:be non-?empty|not be (?:empty|blank|null)|be an? (?:string|list|array|object))\b"
    r"|\b(?:guardrails?|moderation|content (?:filter|policy))\b"
    r"|\b(?:parse|decode|deserialize|serialize)\b)[^\n\x1e]{0,120}?"
    r"(?<![a-z0-9\])])(?P<quote>[\"'`])(?=[^\"'`\s]{1,40}\s)"
)
_QUOTE_END: Final = {quote: re.compile(rf"{quote}(?![a-z])") for quote in "\"'`"}


def text_of(value: object) -> str:
    """Return ``str(value)``, empty if that raises, or decoded bytes; at most ``MAX_TEXT``
    characters.
    """
    try:
        if isinstance(value, bytes | bytearray):
            value = value[: 4 * MAX_TEXT].decode("utf-8", "replace")
        return limit_text(str(value))
    except Exception:  # noqa: BLE001 - a foreign class may raise anything
        return ""


def limit_text(text: str) -> str:
    """Return at most ``MAX_TEXT`` characters: the beginning, and the end, which has the last of
    several attempts.
    """
    half = MAX_TEXT // 2
    return text if len(text) <= MAX_TEXT else f"{text[:half]} {BREAK} {text[-half:]}"


def without_accents(text: str) -> str:
    """Return text without accents, and full-width forms as plain characters. Patterns are converted
    in the same way.
    """
    # One letter may expand to eighteen.
    text = limit_text(unicodedata.normalize("NFKD", text.translate(_SPELLINGS)))
    return unicodedata.normalize("NFKC", _ACCENT.sub("", text))


def normalise(text: str) -> str:
    """Return the normalised form of at most ``MAX_TEXT`` characters of ``text``."""
    return mark(text).replace(SOFT, " ")


def mark(text: str) -> str:
    """Return the normalised form with ``SOFT`` for spaces at which something new may begin."""
    text = without_colours(limit_text(text))
    text = _ESCAPED_LETTERS.sub(_decode_escapes, text)
    text = _PARAGRAPH.sub(f" {BREAK} ", text)
    text = _ESCAPED_QUOTE.sub("", _ESCAPED_SPACE.sub("\n", text))
    text = unescape(text)
    text = _NEW_LINE.sub(SOFT, _BLOB.sub(" ", text))
    # Most errors are ASCII, for which this would be wasted.
    if not text.isascii():
        text = without_accents(_INVISIBLE.sub("", _HARD_SPACE.sub("_", text)))
    # Addresses have words and numbers of their own ("/v1/context/8192").
    text = _MODEL.sub("it", _URL.sub(_endpoint, text).lower())
    text = _without_quotation(text)
    return _SPACE.sub(lambda match: SOFT if SOFT in match.group() else " ", text)


def _decode_escapes(match: re.Match[str]) -> str:
    """Return the characters of JSON escapes, two of which may be one character."""
    return bytes.fromhex(_ESCAPE.sub("", match[0])).decode("utf-16-be", "replace")


def _endpoint(match: re.Match[str]) -> str:
    """Return the kind of call that a URL names."""
    return " embedding request " if "/embed" in match.group().lower() else " "


def _without_quotation(text: str) -> str:
    """Return the text without the parts of the request that a complaint about them quotes."""
    kept: list[str] = []
    at = 0
    # The exception, its body and the response each repeat the complaint.
    while complaint := _COMPLAINT.search(text, at):
        kept.append(text[at : complaint.end()])
        end = _QUOTE_END[complaint["quote"]].search(text, complaint.end())
        at = end.end() if end else len(text)
    return " ".join([*kept, text[at:]])


def sentences(text: str) -> list[Span]:
    """Return start and end of the sentences of a normalised text; long ones in pieces."""
    ends = [0, *(match.end() for match in _END.finditer(text)), len(text)]
    found = [
        (cut, min(end, cut + MAX_SENTENCE))
        for start, end in pairwise(ends)
        for cut in range(start, end, MAX_SENTENCE)
        if text[cut : min(end, cut + MAX_SENTENCE)].strip()
    ]
    half = MAX_SENTENCES // 2
    return found if len(found) <= MAX_SENTENCES else [*found[:half], *found[-half:]]


def clauses(marked: str) -> list[Span]:
    """Return start and end of the pieces of a sentence: lines, what follows a dash or a label."""
    edges = [match.start() + 1 for match in _CLAUSE_END.finditer(marked)]
    return list(pairwise(sorted({0, *edges, len(marked)})))
