"""A model's summary in sections: read, checked against the conversation, and merged with the one before.

A model may be led by what it reads. So code decides what stands under the headings that bind: a rule is a sentence of
the user, an artifact a name that the conversation holds, a task what the user spoke of; what was finished or called
off stays so until the user asks again. What the check takes out is reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from compacter.messages.parts import Part
from compacter.summary.evidence import Evidence, Origin, alike, bare
from compacter.summary.message import LATER, RULE
from compacter.summary.words import flat, sentences

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "task": ("Task", "Goal", "Request"),
    "rules": ("Rules", "Constraints", "User rules", "User's rules", "Rules and constraints"),
    "decisions": ("Decisions", "Decisions and why", "Key decisions"),
    "facts": ("Facts", "Key facts"),
    "artifacts": ("Artifacts", "Files"),
    "done": ("Done", "Completed", "State"),
    "pending": ("Pending", "To do", "Todo", "In progress", "Next steps"),
    "cancelled": ("Called off", "Cancelled", "Canceled", "Withdrawn"),
    "questions": ("Open questions", "Open", "Questions"),
    "failed": ("Failed", "What failed"),
}
"""The sections in their order: how each is headed, and what else models head it with."""
_KEYS = {name.lower(): key for key, names in _SECTIONS.items() for name in names}
_NAMES = "|".join(sorted(map(re.escape, _KEYS), key=len, reverse=True))
_HEADING = re.compile(
    rf"[ \t]{{0,4}}(?:#{{1,6}}[ \t]{{1,4}}|[-*][ \t]{{1,4}}(?=[*_]{{2}})|\d{{1,2}}[.)][ \t]{{1,4}})?[*_]{{0,2}}"
    rf"(?P<name>{_NAMES})[*_]{{0,2}}[ \t]{{0,4}}(?:[:：][*_]{{0,2}}(?P<rest>.*)|$)",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\s{0,16}(?:[-*•‣·–]|\d{1,3}[.)])\s{1,8}")
_NOTHING = re.compile(r"\W{0,8}(?:none|n/?a|nothing|empty|none (?:so far|yet|stated))?\W{0,8}", re.IGNORECASE)
_FEWEST = 2
"""Headings below which an answer is prose."""
_WANTED = frozenset({"task", "decisions", "pending", "questions"})
"""Sections that say what people want: no tool wants anything."""
_MOST_RULE_TEXT, _MOST_CLOSED = 4_000, 30

Sections = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Checked:
    """What the check left of a summary."""

    sections: Sections
    """Checked items by section; the rules apart."""
    rules: tuple[str, ...]
    """Lines with rules: the sure ones, then sentences of the user that the model quoted, oldest first."""
    dropped: tuple[str, ...] = ()
    """What was taken out, each as ``section: item``."""


def parse(text: str) -> Sections | None:
    """Return the items under each heading, or None where ``text`` is prose."""
    found: dict[str, list[str]] = {}
    items = before = list[str]()
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line.rstrip())
        if heading:
            items = found.setdefault(_KEYS[heading["name"].lower()], [])
            line = heading["rest"] or ""  # noqa: PLW2901 - what stands behind the colon is an item like any other
        item = flat(_BULLET.sub("", line, count=1))
        if not _NOTHING.fullmatch(item) and not (items is before and item.endswith(":")):
            items.append(item)
    if len(found) < _FEWEST:
        return None
    if before:
        found["facts"] = [*before, *found.get("facts", ())]
    return {key: tuple(dict.fromkeys(items)) for key, items in found.items() if items}


def render(sections: Sections) -> str:
    """Return the sections as text; ``parse`` reads it back."""
    blocks: list[str] = []
    for key, (heading, *_) in _SECTIONS.items():
        items = [f"> {item}" if _HEADING.fullmatch(item) else item for item in sections.get(key, ())]
        if len(items) == 1:
            blocks.append(f"{heading}: {items[0]}")
        elif items:
            blocks.append("\n- ".join([f"{heading}:", *items]))
    return "\n".join(blocks)


def check(
    answer: Sections,
    entries: Sequence[Part],
    *,
    prior: Sections | None = None,
    rules: Sequence[str] = (),
) -> Checked:
    """Return what of a model's ``answer`` may stand for ``entries`` and what came before.

    Args:
        answer: the sections as the model wrote them.
        entries: the conversation that it has read.
        prior: the checked sections of the summary that it has updated.
        rules: lines with rules that are sure: of the prior summary, declared, or found by code. They all stay.
    """
    before = prior or {}
    known_rules = [line.partition(": ")[2] for line in rules]
    known = Evidence(entries, [item for key in answer for item in answer[key]], before)
    dropped: list[str] = []
    new_rules: dict[str, None] = {}
    checked: dict[str, list[str]] = {key: [] for key in _SECTIONS if key != "rules"}
    for key in _SECTIONS:
        for item in answer.get(key, ()):
            if key == "rules":
                sentence = known.sentence_of_user(item)
                if sentence and sentence not in known_rules:
                    new_rules[sentence] = None
                elif not sentence and not any(flat(item) in rule for rule in known_rules):
                    dropped.append(f"{key}: {item}")
            elif key == "artifacts" and not known.holds_name(item):
                dropped.append(f"{key}: {item}")
            else:
                place, text = _placed(key, item, known.origin(item), before)
                checked[place].append(text)
    _restore(checked, before, known)
    dropped += _closed_stays_closed(checked, before, known)
    for key in ("task", "pending", "questions"):
        checked[key] = [known.with_last_word(item) for item in checked[key]]
    return Checked(
        {key: tuple(dict.fromkeys(items)) for key, items in checked.items() if items},
        (*rules, *_lines(known.in_order(new_rules), known)),
        tuple(dropped),
    )


def mark(prose: str, entries: Sequence[Part]) -> str:
    """Return prose with the tool's name before each sentence that only a tool said."""
    lines = [sentences(line) for line in prose.splitlines()]
    known = Evidence(entries, [sentence for line in lines for sentence in line], {})

    def marked(sentence: str) -> str:
        tool = known.origin(sentence).tool
        return f"({tool}) {sentence}" if tool and not sentence.startswith(f"({tool}) ") else sentence

    return "\n".join(" ".join(map(marked, line)) for line in lines).strip()


def _placed(key: str, item: str, origin: Origin, before: Sections) -> tuple[str, str]:
    """Return where an item belongs and how it reads: what only a tool said is a fact of that tool."""
    if item in before.get(key, ()):
        return key, item
    item = bare(item)
    if origin.tool:
        return ("facts" if key in _WANTED else key), f"{origin.tool}: {item}"
    if key == "task" and not origin.user:
        return "facts", f"Assistant: {item}" if origin.assistant else item
    return key, f"Assistant: {item}" if origin.quotes_assistant else item


def _restore(checked: dict[str, list[str]], before: Sections, known: Evidence) -> None:
    """Put back what a model must not forget: artifacts, and what was finished or called off (the newest of it)."""
    for key in ("artifacts", "done", "cancelled"):
        items = checked[key]
        lost = [item for item in before.get(key, ()) if not any(alike(item, other) for other in items)]
        if key == "artifacts":
            lost = [item for item in lost if not any(known.same_name(item, other) for other in items)]
        checked[key] = [*lost, *items][-_MOST_CLOSED:]


def _closed_stays_closed(checked: dict[str, list[str]], before: Sections, known: Evidence) -> list[str]:
    """Take out of what is open what was finished or called off, unless the user asked for it again."""
    once = [*before.get("done", ()), *before.get("cancelled", ())]
    now = [item for key in ("done", "cancelled") for item in checked[key] if item not in once]
    dropped: list[str] = []
    for key in ("pending", "questions"):
        for item in list(checked[key]):
            reopened = known.asked_by_user(item) or any(alike(item, other) for other in before.get(key, ()))
            closed = now if reopened else [*once, *now]
            if any(alike(item, other) for other in closed):
                checked[key].remove(item)
                dropped.append(f"{key}: {item}")
    return dropped


def _lines(said: Iterable[str], known: Evidence) -> list[str]:
    """Return the newest rules that fit, each followed by what the user said about it later."""
    lines: list[str] = []
    room = _MOST_RULE_TEXT
    for sentence in reversed(list(said)):
        later = known.later_word(sentence)
        group = [RULE + sentence, *([LATER + later] if later and RULE + later not in lines else [])]
        room -= sum(map(len, group))
        lines = group + lines if room >= 0 else lines
    return lines
