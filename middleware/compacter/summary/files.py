"""The files and other resources that an agent has worked on: one line for each, the last used
first.

A line is ``Tool edit, read: src/app.py … No match for the text``: the tools that touched it, the
last one first; its name; and what the last one answered, where that is not what it always answers.
Files that only commands name are left to the lines of these commands: a line for each of them took
the room of better ones (of the names that later steps use, in a fifth of the size: .75 for .78).
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from compacter.messages.parts import Part
from compacter.text.sentences import output_lines
from compacter.text.speech import ELLIPSIS, named
from compacter.text.values import parse, values

HEADING = "Files worked on, the last used first:"
"""Heading of the chapter; no model's section is called so."""
_LINE = re.compile(r"Tool ([^:\n]{1,80}): (.+)")
# A path or an address, or a file's name, as a whole argument.
_NAME = re.compile(r"[^\s'\"<>|;]{0,120}[/\\][^\s'\"<>|;]{1,120}|[\w@+~-]{1,80}\.[A-Za-z]\w{0,7}")
# An argument that says what a tool does which can do several things.
_WORD = re.compile(r"[a-z][a-z_]{2,15}")
# Characters of the shortest and the longest name, and of the longest answer: about a line.
_SHORTEST = 5
_LONGEST = 160
_LONGEST_ANSWER = 100
# Characters up to which a result of a call that names only a file is an answer, not the file.
_WHOLE_ANSWER = 400
# Tools that a line names, and their characters; a line of a summary allows 80.
_MOST_TOOLS = 3
_LONGEST_TOOLS = 60
# Answers alike, but for digits and paths, from which on they tell nothing.
_USUAL = 3
# Characters added to each line's price, as in `timeline`.
_HANDLING = 12
_DIGITS = re.compile(r"\d+")


@dataclass(slots=True)
class _Use:
    """What was done with one resource."""

    tools: list[str] = field(default_factory=list)
    answer: str = ""
    times: int = 0
    last: int = 0


def split_off(text: str) -> tuple[str, list[str]]:
    """Return an earlier summary's text without this chapter, and the chapter's lines."""
    before, heading, chapter = f"\n{text}".partition(f"\n{HEADING}\n")
    if not heading:
        return text, []
    block, _, after = chapter.partition("\n\n")
    return f"{before.strip()}\n\n{after}".strip(), block.splitlines()


def lines(parts: Sequence[Part], room: int, earlier: Sequence[str] = ()) -> list[str]:
    """Return the chapter's lines in at most ``room`` characters, heading included; those that are
    used more and later are chosen first. Linear in the text.

    ``earlier`` are the lines of the summary before.
    """
    uses = _uses(parts, earlier)
    _drop_usual_answers(uses)
    total = max((use.last for use in uses.values()), default=0) or 1
    ranked = list[tuple[float, int, str]]()
    for name, use in uses.items():
        line = f"Tool {_tools(use)}: {name}"
        line += f" {ELLIPSIS} {use.answer}" if use.answer else ""
        weight = 1 + math.log1p(use.times) + 2 * use.last / total
        ranked.append((weight / (len(line) + _HANDLING), use.last, line))
    left = room - len(HEADING) - 3
    chosen = list[tuple[int, str]]()
    for _, last, line in sorted(ranked, reverse=True):
        if len(line) + 1 <= left:
            left -= len(line) + 1
            chosen.append((last, line))
    return [line for _, line in sorted(chosen, reverse=True)]


def _uses(parts: Sequence[Part], earlier: Sequence[str]) -> dict[str, _Use]:
    """Return what was done with each resource, by its name."""
    uses: dict[str, _Use] = {}
    for place, line in enumerate(reversed(earlier)):
        known = _LINE.fullmatch(line.strip())
        if known:
            name, _, answer = known[2].partition(f" {ELLIPSIS} ")
            uses[name] = _Use(known[1].split(", ")[::-1], answer, 1, place)
    began = len(earlier)
    waiting: dict[str | None, deque[list[_Use]]] = defaultdict(deque)
    for place, (tool, part) in enumerate(named(parts), began):
        if part.kind == "call":
            touched = list[_Use]()
            names, verb = _find_touched(part.text)
            did = f"{tool} ({verb})" if verb else tool
            for name in names:
                use = uses.setdefault(name, _Use())
                use.answer = ""
                use.times += 1
                use.last = place
                if did in use.tools:
                    use.tools.remove(did)
                use.tools.append(did)
                touched.append(use)
            waiting[part.call_id].append(touched)
        elif part.kind == "result" and waiting[part.call_id]:
            for use in waiting[part.call_id].popleft():
                use.answer = _answer(part.text)
    return uses


def _find_touched(text: str) -> tuple[list[str], str]:
    """Return the names of files and addresses among the arguments of a call, and the word that says
    what it does, such as ``view`` or ``create``; an empty text if there is none.
    """
    data = parse(text)
    given = [text] if data is None else [one.text.strip() for one in values(data)]
    names = [name for name in given if _SHORTEST <= len(name) <= _LONGEST and _NAME.fullmatch(name)]
    return names, next((word for word in given if _WORD.fullmatch(word)), "")


def _answer(text: str) -> str:
    """Return the first line of a result that tells something; an empty text where the result is the
    file itself.
    """
    if len(text) > _WHOLE_ANSWER:
        return ""
    # "ERROR:" alone tells nothing.
    telling = (line for line in output_lines(text) if not line.endswith(":"))
    told = next(telling, "")
    return told if len(told) <= _LONGEST_ANSWER else ""


def _drop_usual_answers(uses: dict[str, _Use]) -> None:
    """Drop answers that a tool gives again and again: its name says as much."""
    shapes: dict[str, str] = {}
    for name, use in uses.items():
        shapes[name] = _DIGITS.sub("0", use.answer.replace(name, ""))
    counts = Counter(shapes.values())
    for name, use in uses.items():
        if counts[shapes[name]] >= _USUAL:
            use.answer = ""


def _tools(use: _Use) -> str:
    """Return the names of the tools that touched a resource, the last one first."""
    told = ""
    for tool in use.tools[: -_MOST_TOOLS - 1 : -1]:
        longer = f"{told}, {tool}" if told else tool
        told = longer if len(longer) <= _LONGEST_TOOLS else told
    return told or "call"
