"""Tell what a user wrote from what the user's message only carries: retrieved text, fenced code,
files, quoted mail, pasted output.

A user who pastes a mail has not said what the mail says. Where a paste has no visible end, all
after its beginning counts as pasted, as an order taken from a stranger does more harm than one of
the user's that is not noticed; a question at the end is the user's in any case. All of it is linear
in the text.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from compacter.messages.parts import Part
from compacter.text.sentences import has_code
from compacter.text.values import parse

PASTE = "paste"
"""Name under which pasted text is quoted: ``Tool paste``."""
OUTPUT = "output"
"""Name under which the message of a host is quoted that carries a tool's output as the user."""

Marks = tuple[str, str]
"""What stands before and after each retrieved text."""
Span = tuple[int, int]


class Piece(NamedTuple):
    """A run of a user's message."""

    text: str
    is_own: bool
    """Whether the user wrote it."""


# -- text between delimiters -----------------------------------------------------------------------

_TAG = re.compile(r"<(/?)([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,300})?>")
_OWN_TAGS = re.compile(
    r"(?i)(?:b|i|u|em|strong|small|br|p|a|span|kbd|li|ul|ol|h[1-6])$|"
    r".*(?:instruct|rule|task|guideline|prompt|request|question|query|goal|requirement|constraint|"
    r"preference|user|issue|important)"
)
"""Tags for emphasis, and elements in which programs put what the user wants."""
_QUOTES = re.compile(r"\"\"\"|'''")
_FENCE = re.compile(r"[ \t]{0,12}(`{3,}|~{3,})([^`\n]*)$")

# -- beginnings of what has no end -----------------------------------------------------------------

_MAIL = re.compile(
    r"(?i)\W{0,12}(?:(?:original|forwarded|ursprüngliche|weitergeleitete) (?:message|nachricht)|"
    r"begin forwarded message|message (?:transféré|d'origine)|mensaje (?:reenviado|original))\b|"
    r"(?:on|am|le|el) .{4,120} (?:wrote|schrieb|a écrit|escribió)\b.{0,80}[:：]\s*$"
)
_HEADER = re.compile(r"(?i)(?:from|to|subject|date|sent|cc|von|an|betreff|gesendet|de|à|objet): \S")
_FEWEST_HEADERS = 2
"""Lines of a mail's head from which on it is one: "To: " alone may be typed."""
_CARRIED = (
    r"(?:file|document|doc|article|page|web ?site|readme|e-?mail|mail|letter|log|logs|output|"
    r"transcript|excerpt|snippet|passage|attachment|ticket|comment|review|reply|response|message|"
    r"notes?|contents?|text|docs|changelog|thread|error|stack ?trace|traceback|answer|results?|"
    r"chat|post|paste|datei|dokument|ausgabe|artikel|seite|nachricht|protokoll|fichier|courriel|"
    r"sortie|texte|page|archivo|correo|salida|texto|mensaje|文件|邮件|输出|内容|日志|文章|メール|"
    r"ファイル|出力|記事|ログ)"
)
_SHOWS = (
    r"(?:here(?:'s| is| are| comes)?|this is|that is|these are|below|see|look at|read|check|"
    r"i (?:just )?(?:got|get|received|copied|pasted|saw|see|ran)|attached|pasted?|pasting|from|"
    r"the following|contents? of|got|hier(?: ist| sind| kommt)?|das ist|voici|voilà|aquí|这是|"
    r"以下|次の|これは)"
)
_SPEAKS = (
    r"(?:wrote|writes|sent|said|says|replied|answered|returned|returns|printed|prints|reads|shows|"
    r"showed|states|logged|reported|schrieb|sagt|écrit|dit|escribió|dice)"
)
_BARE_HEAD = (
    r"(?:file|document|article|readme|e-?mail|logs?|output|transcript|excerpt|attachment|"
    r"traceback|stack ?trace|console|terminal|std(?:out|err)|error(?: message)?|changelog|datei|"
    r"ausgabe|fichier|archivo|文件|邮件|输出|日志)"
)
_ANNOUNCES = (
    re.compile(
        rf"(?i)\W{{0,8}}(?:{_SHOWS})\b.{{0,100}}?\b{_CARRIED}s?\b|(?:这是|以下|次の|これは)"
    ),
    re.compile(rf"(?i).{{0,80}}?\b{_SPEAKS}(?: (?:me|us|back|this|that|the following))?\s?[:：]"),
    re.compile(
        r"(?i)\W{0,8}(?:(?:my|the|his|her|their|our|full|raw|original|tool|command|shell|server) )"
        rf"{{0,3}}{_BARE_HEAD}(?: [^\s:]{{1,80}})?\s?[:：]"
    ),
)
"""The last clause of a line that announces what is pasted below it."""
_CLAUSE_MARKS = (". ", "! ", "? ", ", ", "; ", "。", "，")
_LONGEST_ANNOUNCEMENT = 160
"""Most characters of that clause: longer ones are sentences of a story."""
_NAME_OF_FILE = r"[\w./\\~-]{1,120}\.[a-z][a-z0-9]{0,4}"
_FILE_NAME = re.compile(
    r"(?i)(?:(?:#{1,4} |={2,} ?|-{2,} ?|\*{2,})(?:file:? )?|(?:file|path|datei|fichier)[:：] ?)`?"
    rf"{_NAME_OF_FILE}`?[:：\s=*-]{{0,12}}$|`?{_NAME_OF_FILE}`?(?:[:：]|\s?(?:={{2,}}|-{{2,}}))$"
)
"""The name of a file, set off as a heading of its content."""
_HEADING = re.compile(r"#{0,4} ?[A-Z][A-Z _]{2,40}[:：]")
"""A heading in capitals, with a line of its own."""
_OUTPUT_HEAD = re.compile(
    r"(?i)\W{0,4}(?:observations?|(?:tool|function|command|execution|shell|terminal|console|"
    r"script|code|api|search|action|step)[ _-]{0,1}(?:call[ _-])?(?:output|result|response|"
    r"observation)s?|(?:result|output|response|observation)s? (?:of|from|for)|std(?:out|err)|"
    r"exit (?:code|status)|execution (?:succeeded|failed))\b[^\n:：]{0,80}[:：\]>]|"
    r"\s{0,4}\[[^\]\n]{1,160}\]\s{1,2}(?:result|output|response)s?\b"
)
"""Beginning of a message by which hosts without a role for tools hand over their output."""
_PROMPT_END = re.compile(
    r"(?:(?:ba|z|c)?sh[\w.-]{0,10}[$#]|[\w.-]{1,40}@[\w.-]{1,60}[:~ ]\S{0,80}[$#%]|"
    r"[A-Z]:\\\S{0,80}>|>>>|[$#])\s*$"
)
"""A last line that is a shell waiting for the next command."""
_CALL_END = re.compile(
    r"(?is).*(?:</(?:tool_call|function_calls?|invoke|tool_use|execute_\w{1,20}|function|action)>|"
    r"\baction(?: input)?:[^\n]{1,400}|<\|?(?:tool_call|function_call)[^\n]{0,400})\s*"
    r"(?:```)?\s*$"
)
_CALL_TAIL = 1_000
"""Characters at the end of an assistant's text in which a call written as text is looked for."""
_CALL_KEYS = ({"tool"}, {"tool_name"}, {"function"}, {"action"}, {"name", "arguments"})
"""Keys of a call that is written as JSON; one of these sets must be there."""

# -- lines that nobody types -----------------------------------------------------------------------

_OUTPUT_LINE = re.compile(
    r"\W{0,3}\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|"
    r"\W{0,3}(?:\[[\w.: -]{1,40}\]\s{0,2}){0,3}"
    r"(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[\]:\s|]|"
    r"\s{0,12}File \".{1,200}\", line \d|Traceback \(|\s{1,12}at [\w.$<>]{1,120} ?\(|"
    r"[\w.]{0,80}(?:Error|Exception)(?::|$)|"
    r"diff --git |@@ -|\+\+\+ |--- [ab]/|index [0-9a-f]{7}|[-dl]r[w-][x-]|"
    r"\s{0,8}\d{1,6}(?:[|→\t]|:(?:\S|\s{2}|$))|[\w./-]{2,120}:\d{1,6}[:-]|"
    r"([=_*~])\1{3,} .{1,120} \1{3,}\s*$|.{1,80}?\.{6,200}[^.\s]\S{0,20}\s*$|"
    r"\s{0,40}[\]}\[{)]{1,4}[,;]?\s*$|\s{0,40}\"[^\"\n]{1,80}\"\s?:|<!DOCTYPE"
)
_LISTED = re.compile(r"[\w.@~/-]{1,120}(?:/|\.[a-z]\w{0,4})\s*$")
"""The name of a file or a folder, alone on its line."""
_OUTPUT_LABEL = re.compile(
    r"(?i)\s{0,4}\[(?:[^\]\n]{0,80} )?(?:output|std(?:out|err)|terminal|console|shell)\]:?\s*$"
)
"""A line by which a host says that a program wrote what follows, up to an empty line."""
_PROMPT = re.compile(
    r"(?:[\w.-]{1,40}@[\w.-]{1,60}[:~ ].{0,60}[$#%] |\$ |bash-[\d.]{0,8}[$#]|C:\\.{0,80}>|>>> |"
    r"PS .{1,80}> |% )\S?"
)
"""A command as it stands in a terminal."""
_FEWEST_CODE = 3
"""Lines of code that make a block a paste: one or two may be typed beside a sentence."""


def separate(text: str, marks: Marks | None = None) -> list[Piece]:
    """Return ``text`` in pieces, each the user's own or not, in order; blank pieces are left out.

    ``marks`` are those of retrieved text, if the program declares them.
    """
    if _OUTPUT_HEAD.match(text) or parse(text) is not None:
        return [Piece(text, is_own=False)]
    spans = [*_between(text, marks), *_elements(text), *_quotations(text)]
    spans += _blocks(text, _merge(spans))
    pieces: list[Piece] = []
    at = 0
    for start, end in (*_merge(spans), (len(text), len(text))):
        for piece, is_own in ((text[at:start], True), (text[start:end], False)):
            if piece.strip():
                pieces.append(Piece(piece, is_own))
        at = end
    return pieces


def own_parts(parts: Sequence[Part], marks: Marks | None = None) -> list[Part]:
    """Return ``parts`` with each text of a user in pieces: what is not the user's own is a tool's.

    ``marks`` as in ``separate``. A message that follows a call which the assistant wrote as text is
    the output of that call.
    """
    split: list[Part] = []
    before: Part | None = None
    for part in parts:
        if part.role != "user" or part.kind != "text":
            split.append(part)
        # The first message of an agent may show its terminal below the task.
        elif before is not None and (_calls(before) or _is_terminal(part.text)):
            split.append(_carry(part, part.text, OUTPUT))
        else:
            pieces = separate(part.text, marks)
            name = PASTE if any(piece.is_own for piece in pieces) else OUTPUT
            for piece in pieces:
                own = replace(part, text=piece.text)
                split.append(own if piece.is_own else _carry(part, piece.text, name))
        before = part
    return split


def _carry(part: Part, text: str, name: str) -> Part:
    return replace(part, role="tool", text=text, name=name)


def _is_terminal(text: str) -> bool:
    """Return whether ``text`` ends with a shell that waits for the next command."""
    _, line_break, last = text.rstrip().rpartition("\n")
    return bool(line_break) and _PROMPT_END.match(last) is not None


def _calls(part: Part) -> bool:
    """Return whether this is a text of an assistant that ends with a call of a tool."""
    if part.kind != "text" or part.role != "assistant":
        return False
    tail = part.text.rstrip()[-_CALL_TAIL:]
    if _CALL_END.match(tail):
        return True
    start = tail.find("{")
    if start < 0 or not tail.rstrip("`\n ").endswith("}"):
        return False
    call = parse(tail[start:].rstrip("`\n "))
    return isinstance(call, dict) and any(keys <= call.keys() for keys in _CALL_KEYS)


def _merge(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif start < end:
            merged.append((start, end))
    return merged


def _between(text: str, marks: Marks | None) -> Iterator[Span]:
    """Yield each text between the marks; one without a second mark goes to the end."""
    if marks is None:
        return
    at = 0
    while (start := text.find(marks[0], at)) >= 0:
        end = text.find(marks[1], start + len(marks[0]))
        at = len(text) if end < 0 else end + len(marks[1])
        yield start, at


def _elements(text: str) -> Iterator[Span]:
    """Yield each element with tags around it, unless its name says that it is the user's."""
    tags = list(_TAG.finditer(text))
    closings: dict[str, list[int]] = defaultdict(list)
    for place, tag in enumerate(tags):
        if tag[1]:
            closings[tag[2]].append(place)
    done = 0
    for place, tag in enumerate(tags):
        if place < done or tag[1] or _OWN_TAGS.match(tag[2]):
            continue
        ends = closings.get(tag[2], ())
        first = bisect_left(ends, place)
        if first < len(ends):
            done = ends[first]
            yield tag.start(), tags[done].end()


def _quotations(text: str) -> Iterator[Span]:
    """Yield each text between two threefold quotation marks."""
    opened: dict[str, int] = {}
    for mark in _QUOTES.finditer(text):
        start = opened.pop(mark[0], None)
        if start is None:
            opened[mark[0]] = mark.start()
        else:
            yield start, mark.end()


class _Block(NamedTuple):
    """Lines without an empty one between them."""

    start: int
    lines: list[str]

    @property
    def end(self) -> int:
        return self.start + sum(map(len, self.lines))


def _blocks(text: str, carried: Sequence[Span]) -> Iterator[Span]:
    """Yield fenced texts, quoted lines, blocks of output, and pastes without an end.

    ``carried`` are the spans of other kinds, which are not read again.
    """
    reader = _LineReader([start for start, _ in carried])
    blocks = list(_split(_blank(text, carried)))
    for block in blocks:
        reader.read_heading(block)
        if reader.is_open:
            if block is not blocks[-1] or not _asks(block):
                yield block.start, block.end
        elif _FENCE.match(block.lines[0].rstrip("\r\n")) or _looks_like_output(block):
            yield block.start, block.end
            reader.announced = None
        else:
            yield from reader.read(block)


def _blank(text: str, spans: Sequence[Span]) -> str:
    """Return the text with spaces in place of the characters in ``spans``."""
    pieces: list[str] = []
    at = 0
    for start, end in spans:
        pieces += [text[at:start], " " * (end - start)]
        at = end
    return "".join([*pieces, text[at:]])


class _LineReader:
    """Reads typed lines, and remembers whether a paste was announced or has begun."""

    def __init__(self, carried: Sequence[int]) -> None:
        """Begin; ``carried`` are the starts of what was announced if it follows an announcement."""
        self.announced: int | None = None
        """Where the last line stands if it said that a paste follows."""
        self.is_open = False
        """Whether a paste without an end has begun."""
        self._carry = carried
        self._is_section = False

    def read_heading(self, block: _Block) -> None:
        """End a paste that began with a heading in capitals where the next such heading stands.

        Programs write their tasks so: "ISSUE: ..." and then "INSTRUCTIONS: ...".
        """
        if self.is_open and self._is_section and _HEADING.fullmatch(block.lines[0].strip()):
            self.is_open = False

    def read(self, block: _Block) -> Iterator[Span]:
        """Yield the lines of a block that are not the user's."""
        at = block.start
        for line in block.lines:
            end = at + len(line)
            if _OUTPUT_LABEL.match(line):
                self.announced = None
                yield at, block.end
                return
            is_quoted = line.lstrip().startswith(">")
            if is_quoted:
                self.announced = None
            elif not self.is_open:
                self._read_line(block, line, at)
            if is_quoted or self.is_open:
                yield at, end
            at = end

    def _read_line(self, block: _Block, line: str, at: int) -> None:
        announced = self.announced
        if announced is not None:
            follows = bisect_left(self._carry, announced)
            if follows < len(self._carry) and self._carry[follows] < at + len(line):
                announced = None
        self.announced = None
        if _begins_mail(block, line):
            self.is_open = True
        elif announced is not None:
            self.is_open = not _looks_like_output(_Block(0, [line]))
            self._is_section = _HEADING.fullmatch(line.strip()) is not None
        elif _introduces(line.strip()):
            self.announced = at


def _split(text: str) -> Iterator[_Block]:
    """Yield the blocks of a text; a fenced text is one block."""
    block = _Block(0, [])
    at = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        opening = _FENCE.match(line.rstrip("\r\n"))
        if fence:
            block.lines.append(line)
            if opening and opening[1].startswith(fence) and not opening[2].strip():
                fence = ""
                yield block
                block = _Block(at + len(line), [])
        elif opening:
            if block.lines:
                yield block
            fence = opening[1]
            block = _Block(at, [line])
        elif line.strip():
            block.lines.append(line)
        else:
            if block.lines:
                yield block
            block = _Block(at + len(line), [])
        at += len(line)
    if block.lines:
        yield block


def _asks(block: _Block) -> bool:
    return "".join(block.lines).rstrip(" \n\r\t\"'”’)").endswith(("?", "？", "؟"))


def _begins_mail(block: _Block, line: str) -> bool:
    """Return whether a quoted or forwarded mail begins at this line."""
    if _MAIL.match(line):
        return True
    if not _HEADER.match(line):
        return False
    return sum(_HEADER.match(other) is not None for other in block.lines[:12]) >= _FEWEST_HEADERS


def _introduces(line: str) -> bool:
    """Return whether a line announces what is pasted below it: a file, a mail, an output."""
    if not line.rstrip(" *_`-=").endswith((":", "：")):
        return _FILE_NAME.fullmatch(line) is not None
    clause = line[max(line.rfind(mark, 0, -1) for mark in _CLAUSE_MARKS) + 1 :].strip(" *_`")
    if len(clause) > _LONGEST_ANNOUNCEMENT:
        return False
    whole = _ANNOUNCES[0].match(clause) or any(one.fullmatch(clause) for one in _ANNOUNCES[1:])
    return bool(whole) or _FILE_NAME.fullmatch(line) is not None


def _looks_like_output(block: _Block) -> bool:
    """Return whether nobody types such lines: a terminal, a log, a stack trace, code."""
    if _PROMPT.match(block.lines[0]):
        return True
    shaped = sum(_is_shaped(line) for line in block.lines)
    if 2 * shaped >= len(block.lines):
        return True
    code = sum(_LISTED.match(line) is not None or _is_code(line) for line in block.lines)
    return len(block.lines) >= _FEWEST_CODE and 2 * code >= len(block.lines)


def _is_code(line: str) -> bool:
    return has_code(line.strip()) and not _is_own_tag(line)


def _is_shaped(line: str) -> bool:
    """Return whether a line has the shape of a log, a listing, or an element."""
    if _OUTPUT_LINE.match(line):
        return True
    return _TAG.match(line.lstrip()) is not None and not _is_own_tag(line)


def _is_own_tag(line: str) -> bool:
    tag = _TAG.match(line.lstrip())
    return tag is not None and _OWN_TAGS.match(tag[2]) is not None
