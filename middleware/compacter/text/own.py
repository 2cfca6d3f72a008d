"""Tell what a user wrote from what the user's message only carries: retrieved text, fenced code,
files, quoted mail, pasted output.

A user who pastes a mail has not said what the mail says. Where a paste has no visible end, all
after its beginning counts as pasted, as an order taken from a stranger does more harm than one of
the user's that is not noticed; a question at the end is the user's in any case. All of it is linear
in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from compacter.text.sentences import has_code
from compacter.text.values import parse

Marks = tuple[str, str]
"""What stands before and after each retrieved text."""
Span = tuple[int, int]


class Piece(NamedTuple):
    """A run of a user's message."""

    text: str
    is_own: bool
    """Whether the user wrote it."""


# Most characters at each end of a message in which the user's own words are looked for: nobody
# types more.
_TYPED_ENDS = 8_000
BEGINS = re.compile(
    r"(?i)\W{0,4}(?:observ|tool|function|command|execut|shell|terminal|console|script|code|api|"
    r"search|action|step|result|output|response|std|exit)"
)
SIGNS = re.compile(r"[\n<`\[{>#]")
"""A text that begins with none of these words, and has none of these signs nor threefold quotes, is
the user's own, unless the program declares marks."""
_RUN = re.compile(rb"\x00+|\x01+")
"""What is the user's own, and what is carried."""
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,300})?>")
# Tags for emphasis, and elements in which programs put what the user wants.
_OWN_TAGS = re.compile(
    r"(?i)(?:b|i|u|em|strong|small|br|p|a|span|kbd|li|ul|ol|h[1-6])$|"
    r".*(?:instruct|rule|task|guideline|prompt|request|question|query|goal|requirement|constraint|"
    r"preference|user|issue|important)"
)
# Fenced and threefold quoted texts; a fence without an end goes to the end.
_ENCLOSED = re.compile(
    r"(?ms)^[ \t]{0,12}(`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t]{0,12}\1[`~]*[ \t]*$|\Z)|"
    r"\"\"\".*?(?:\"\"\"|\Z)"
)
_MAIL = re.compile(
    r"(?i)\W{0,12}(?:(?:original|forwarded|ursprüngliche|weitergeleitete) (?:message|nachricht)|"
    r"begin forwarded message|message (?:transféré|d'origine)|mensaje (?:reenviado|original))\b|"
    r"(?:on|am|le|el) .{4,120} (?:wrote|schrieb|a écrit|escribió)\b.{0,80}[:：]\s*$|"
    r"(?:from|von|de|to|an|subject|betreff|objet): \S.*\n(?:from|to|subject|date|sent|cc|von|an|"
    r"betreff|gesendet|de|à|objet): \S"
)
_CARRIED = (
    r"(?:file|document|doc|article|page|web ?site|readme|e-?mail|mail|letter|log|logs|output|"
    r"transcript|excerpt|snippet|passage|attachment|ticket|comment|review|reply|response|message|"
    r"notes?|contents?|text|docs|changelog|thread|error|stack ?trace|traceback|answer|results?|"
    r"chat|post|paste|datei|dokument|ausgabe|artikel|seite|nachricht|protokoll|fichier|courriel|"
    r"sortie|texte|page|archivo|correo|salida|texto|mensaje|文件|邮件|输出|内容|日志|文章|メール|"
    r"ファイル|出力|記事|ログ)"
)
# The last clause of a line that announces what is pasted below it.
_ANNOUNCES = re.compile(
    r"(?i)\W{0,8}(?:here(?:'s| is| are| comes)?|this is|that is|these are|below|see|look at|read|"
    r"check|i (?:just )?(?:got|get|received|copied|pasted|saw|see|ran)|attached|pasted?|pasting|"
    r"from|the following|contents? of|got|hier(?: ist| sind| kommt)?|das ist|voici|voilà|aquí)\b"
    rf".{{0,100}}?\b{_CARRIED}s?\b|(?:这是|以下|次の|これは)|"
    r".{0,80}?\b(?:wrote|writes|sent|said|says|replied|answered|returned|returns|printed|prints|"
    r"reads|shows|showed|states|logged|reported|schrieb|sagt|écrit|dit|escribió|dice)"
    r"(?: (?:me|us|back|this|that|the following))?\s?[:：]|"
    r"\W{0,8}(?:(?:my|the|his|her|their|our|full|raw|original|tool|command|shell|server) ){0,3}"
    r"(?:file|document|article|readme|e-?mail|logs?|output|transcript|excerpt|attachment|traceback|"
    r"stack ?trace|console|terminal|std(?:out|err)|error(?: message)?|changelog|datei|ausgabe|"
    r"fichier|archivo|文件|邮件|输出|日志)(?: [^\s:]{1,80})?\s?[:：]"
)
_CLAUSE_MARK = re.compile(r"[.!?,;] |[。，]")
_LONGEST_ANNOUNCEMENT = 160
_NAME_OF_FILE = r"[\w./\\~-]{1,120}\.[a-z][a-z0-9]{0,4}"
# The name of a file, set off as a heading of its content.
_FILE_NAME = re.compile(
    r"(?i)(?:(?:#{1,4} |={2,} ?|-{2,} ?|\*{2,})(?:file:? )?|(?:file|path|datei|fichier)[:：] ?)`?"
    rf"{_NAME_OF_FILE}`?[:：\s=*-]{{0,12}}$|`?{_NAME_OF_FILE}`?(?:[:：]|\s?(?:={{2,}}|-{{2,}}))$"
)
# A heading in capitals ends a paste: "ISSUE: ..." and then "INSTRUCTIONS: ...".
_HEADING = re.compile(r"#{0,4} ?[A-Z][A-Z _]{2,40}[:：]\s*$")
# Beginning of a message by which hosts without a role for tools hand over their output.
_OUTPUT_HEAD = re.compile(
    r"(?i)\W{0,4}(?:observations?|(?:tool|function|command|execution|shell|terminal|console|"
    r"script|code|api|search|action|step)[ _-]{0,1}(?:call[ _-])?(?:output|result|response|"
    r"observation)s?|(?:result|output|response|observation)s? (?:of|from|for)|std(?:out|err)|"
    r"exit (?:code|status)|execution (?:succeeded|failed))\b[^\n:：]{0,80}[:：\]>]|"
    r"\s{0,4}\[[^\]\n]{1,160}\]\s{1,2}(?:result|output|response)s?\b"
)
# Lines that nobody types: logs, stacks, differences, listings, prompts, code.
_OUTPUT_LINE = re.compile(
    r"\W{0,3}\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|"
    r"\W{0,3}(?:\[[\w.: -]{1,40}\]\s{0,2}){0,3}"
    r"(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[\]:\s|]|"
    r"\s{0,12}File \".{1,200}\", line \d|Traceback \(|\s{1,12}at [\w.$<>]{1,120} ?\(|"
    r"[\w.]{0,80}(?:Error|Exception)(?::|$)|"
    r"diff --git |@@ -|\+\+\+ |--- [ab]/|index [0-9a-f]{7}|[-dl]r[w-][x-]|"
    r"\s{0,8}\d{1,6}(?:[|→\t]|:(?:\S|\s{2}|$))|[\w./-]{2,120}:\d{1,6}[:-]|"
    r"([=_*~])\1{3,} .{1,120} \1{3,}\s*$|.{1,80}?\.{6,200}[^.\s]\S{0,20}\s*$|"
    r"\s{0,40}[\]}\[{)]{1,4}[,;]?\s*$|\s{0,40}\"[^\"\n]{1,80}\"\s?:|<!DOCTYPE|"
    r"[\w.-]{1,40}@[\w.-]{1,60}[:~ ].{0,60}[$#%] |\$ |bash-[\d.]{0,8}[$#]|C:\\.{0,80}>|>>> |"
    r"PS .{1,80}> |% \S"
)
# A line by which a host says that a program wrote what follows, up to an empty line.
_OUTPUT_LABEL = re.compile(
    r"(?i)\s{0,4}\[(?:[^\]\n]{0,80} )?(?:output|std(?:out|err)|terminal|console|shell)\]:?\s*$"
)
# The name of a file or a folder, alone on its line.
_LISTED = re.compile(r"[\w.@~/-]{1,120}(?:/|\.[a-z]\w{0,4})\s*$")
_FEWEST_CODE = 3
"""Lines of code that make a block a paste: one or two may be typed beside a sentence."""


def separate(text: str, marks: Marks | None = None) -> list[Piece]:
    """Return ``text`` in pieces, each the user's own or not, in order; blank pieces are left out.

    ``marks`` are those of retrieved text, if the program declares them.
    """
    if _OUTPUT_HEAD.match(text) or parse(text) is not None:
        return [Piece(text, is_own=False)]
    enclosing = [_ENCLOSED]
    if marks:  # One without a second mark goes to the end.
        before, after = map(re.escape, marks)
        enclosing.append(re.compile(rf"(?s){before}.*?(?:{after}|\Z)"))
    enclosed = [found.span() for each in enclosing for found in each.finditer(text)]
    middle = (_TYPED_ENDS, len(text) - _TYPED_ENDS)
    mask = bytearray(len(text))
    _carry(mask, [*enclosed, *_elements(text), middle])
    _carry(mask, _pasted(text, mask))
    runs = [run.span() for run in _RUN.finditer(mask)]
    return [
        Piece(text[start:end], not mask[start]) for start, end in runs if text[start:end].strip()
    ]


def _carry(mask: bytearray, spans: Iterable[Span]) -> None:
    """Mark what is carried: each character once, so that spans within others cost nothing."""
    at = 0
    for start, end in sorted(spans):
        at = max(at, start)
        mask[at:end] = b"\1" * (end - at)
        at = max(at, end)


def _elements(text: str) -> Iterator[Span]:
    """Yield each element with tags around it, unless its name says that it is the user's."""
    ends: dict[str, int] = {}
    starts: dict[int, int] = {}
    for tag in reversed(list(_TAG.finditer(text))):
        if tag[1]:
            ends[tag[2]] = tag.end()
        elif tag[2] in ends and not _OWN_TAGS.match(tag[2]):
            starts[ends[tag[2]]] = tag.start()
    return ((start, end) for end, start in starts.items())


def _pasted(text: str, mask: bytearray) -> Iterator[Span]:
    """Yield quoted lines, blocks of output, and pastes without an end, beside what is carried in
    other ways, which counts as an empty line.
    """
    plain = "".join(
        ("\n" + " " * (end - start - 2) + "\n")[start - end :] if mask[start] else text[start:end]
        for start, end in (run.span() for run in _RUN.finditer(mask))
    )
    is_asked = plain.rstrip(" \n\r\t\"'”’)")[-1:] in "?？؟"
    last = len(plain.rstrip())
    at = 0
    announced = -1
    is_open = is_section = False
    for is_empty, block in groupby(plain.splitlines(keepends=True), lambda line: not line.strip()):
        lines = list(block)
        end = at + sum(map(len, lines))
        if is_open and is_section and _HEADING.match(lines[0]):
            is_open = False
        if not (is_empty or is_open) and _looks_like_output(lines):
            announced = -1
            yield at, end
            lines = []
        elif is_empty and mask.find(1, at, end) >= 0:
            announced = -1  # What was announced is carried in another way.
        for place, line in enumerate(lines if not is_empty else ()):
            bare = line.strip()
            if _OUTPUT_LABEL.match(line):
                yield at, end
                break
            is_quoted = bare.startswith(">")
            if not is_open and not is_quoted:
                is_section = announced >= 0 and _HEADING.match(bare) is not None
                is_open = announced >= 0 or bool(_MAIL.match("".join(lines[place : place + 2])))
                announced = at if _introduces(bare) else -1
            if is_quoted or (is_open and not (is_asked and end >= last)):
                yield at, at + len(line)
            at += len(line)
        at = end


def _introduces(line: str) -> bool:
    """Return whether a line announces what is pasted below it: a file, a mail, an output."""
    if _FILE_NAME.fullmatch(line) is not None:
        return True
    clause = _CLAUSE_MARK.split(line)[-1].strip(" *_`")
    is_short = line.rstrip(" *_`-=").endswith((":", "：")) and len(clause) <= _LONGEST_ANNOUNCEMENT
    return is_short and _ANNOUNCES.match(clause) is not None


def _looks_like_output(lines: Sequence[str]) -> bool:
    """Return whether nobody types such lines: a terminal, a log, a stack trace, code."""
    shaped = code = 0
    for line in lines:
        tag = _TAG.match(line.lstrip())
        if tag is None or not _OWN_TAGS.match(tag[2]):
            shaped += tag is not None or _OUTPUT_LINE.match(line) is not None
            code += _LISTED.match(line) is not None or has_code(line.strip())
    return 2 * shaped >= len(lines) or (len(lines) >= _FEWEST_CODE and 2 * code >= len(lines))
