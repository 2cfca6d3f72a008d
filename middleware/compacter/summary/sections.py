"""Parse a model's summary in sections, check it against the conversation, and merge it with the one
before.

Text of the conversation may mislead a model, so the important sections are checked: a rule must be
a sentence of the user, an artifact a name in the conversation, a task something the user wrote
about; finished and cancelled items are not opened again until the user asks for them. Removed items
are reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compacter.messages.fields import flat
from compacter.messages.parts import Part
from compacter.summary import rules as standing
from compacter.summary.evidence import SAID_LAST, Evidence, Items, Sections, bare, name_of
from compacter.summary.timeline import ARTIFACTS, timeline
from compacter.summary.worklist import WorkList
from compacter.text.find import Finder
from compacter.text.sentences import sentences_of_each
from compacter.text.words import words

# Sections in their order, each with its heading and other headings that models use for it.
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "task": ("Task", "Goal", "Request", "Aufgabe", "Tâche", "Tarea", "Задача", "任务", "タスク"),
    "rules": (
        *("Rules", "Constraints", "User rules", "User's rules"),
        *("Regeln", "Règles", "Reglas", "Правила", "规则", "用户规则", "ルール"),
    ),
    "decisions": (
        "Decisions",
        "Key decisions",
        "Entscheidungen",
        "Décisions",
        "Decisiones",
        "Решения",
        "决定",
    ),
    "facts": ("Facts", "Key facts", "Fakten", "Faits", "Hechos", "Факты", "事实", "事実"),
    "artifacts": ("Artifacts", "Files", "Dateien", "Fichiers", "Archivos", "Файлы", "文件"),
    "done": (
        "Done",
        "Completed",
        "State",
        "Erledigt",
        "Fait",
        "Hecho",
        "Сделано",
        "已完成",
        "完了",
    ),
    "pending": (
        "Pending",
        "To do",
        "Todo",
        "In progress",
        "Next steps",
        "Offen",
        "À faire",
        "Pendiente",
        "待办",
    ),
    "cancelled": (
        "Called off",
        "Cancelled",
        "Canceled",
        "Withdrawn",
        "Abgesagt",
        "Annulé",
        "Cancelado",
        "已取消",
    ),
    "questions": (
        "Open questions",
        "Open",
        "Questions",
        "Offene Fragen",
        "Preguntas",
        "Вопросы",
        "问题",
    ),
    "failed": ("Failed", "What failed", "Gescheitert", "Échoué", "Fallido", "失败"),
}
_KEYS = {name.lower(): key for key, names in _SECTIONS.items() for name in names}
_NAMES = "|".join(sorted(map(re.escape, _KEYS), key=len, reverse=True))
_MORE = r"(?:[ \t](?:[(&/]|and\b|und\b|et\b|y\b|des\b|de\b)[^:：\n]{0,30}?)?"
_HEADING = re.compile(
    rf"[ \t]{{0,4}}(?:#{{1,6}}[ \t]{{1,4}}|[-*][ \t]{{1,4}}(?=[*_]{{2}})|"
    rf"\d{{1,2}}[.)][ \t]{{1,4}})?[*_]{{0,2}}"
    rf"(?P<name>{_NAMES}){_MORE}[*_]{{0,2}}[ \t]{{0,4}}(?:[:：][*_]{{0,2}}(?P<rest>.*)|$)",
    re.IGNORECASE,
)
_TABLE_HEAD = re.compile(r"(?m)^\|.{0,200}\|\n\|[-| :]{3,200}\|$")
_ROW = re.compile(rf"(?im)^\|[ *_]{{0,4}}({_NAMES})[ *_]{{0,4}}\|(.*)\|[ ]{{0,4}}$")
_ELEMENT = re.compile(rf"(?i)<({_NAMES})>|</(?:{_NAMES})>")
_INLINE = re.compile(rf"(?i)(?<=[^\W\d][.;!?])[ ](?=(?:{_NAMES}):[ ])")
_BULLET = re.compile(r"^\s{0,16}(?:[-*•‣·–]|\d{1,3}[.)])\s{1,8}")
_NOTHING = re.compile(
    r"\W{0,8}(?:none|n/?a|nothing|empty|none (?:so far|yet|stated))?\W{0,8}", re.IGNORECASE
)
# Fewest headings of an answer in sections; one with fewer is prose.
_FEWEST = 2
# Sections for the wishes of people; text that is only from a tool does not belong there.
_WANTED = frozenset({"task", "decisions", "pending", "questions"})
# Most items of one section, the newest.
_MOST_CLOSED = 30

# Share of an item's words from which on they are somebody's: more than half.
_MOSTLY = 0.5


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked summary."""

    sections: Sections
    """Checked items by section, without rules."""
    rules: tuple[str, ...]
    """Lines with rules: the known ones, then sentences of the user that the model quoted, oldest
    first."""
    dropped: tuple[str, ...] = ()
    """Removed items, each as ``section: item``."""


def parse(text: str) -> Sections | None:
    """Return the items under each heading, or None if ``text`` is prose."""
    found: dict[str, list[str]] = {}
    items = before = list[str]()
    # Put rows of tables, tags and headings within a line on lines of their own.
    text = _ROW.sub(r"\1: \2", _TABLE_HEAD.sub("", text))
    text = _INLINE.sub("\n", _ELEMENT.sub(lambda tag: f"\n{tag[1]}: " if tag[1] else "\n", text))
    for line in text.splitlines():
        heading = _HEADING.fullmatch(line.rstrip())
        if heading:
            items = found.setdefault(_KEYS[heading["name"].lower()], [])
            line = heading["rest"] or ""  # noqa: PLW2901 - text after the colon is an item
        item = flat(_BULLET.sub("", line))
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
        items = [
            f"> {item}" if _HEADING.fullmatch(item) else item for item in sections.get(key, ())
        ]
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
    rule_room: int = 4_000,
    work: WorkList | None = None,
) -> Checked:
    """Return the items of a model's ``answer`` that the conversation confirms, merged with the
    prior summary.

    Args:
        answer: the sections as the model wrote them.
        entries: the messages that the model summarised.
        prior: the checked sections of the summary that the model updated.
        rules: lines with known rules: of the prior summary, declared, or found by code. They are
        all kept.
        rule_room: largest size of all rules, in characters.
        work: the agent's lists of work: what is done there is not open.
    """
    before = prior or {}
    known_rules = [line.partition(": ")[2] for line in rules]
    in_rules = Finder("\n".join(known_rules), map(flat, answer.get("rules", ())))
    known = Evidence(entries, [item for key in answer for item in answer[key]], before)
    dropped: list[str] = []
    quoted: set[str] = set()
    checked: dict[str, list[str]] = {key: [] for key in _SECTIONS if key != "rules"}
    for key in _SECTIONS:
        for item in answer.get(key, ()):
            if key == "rules":
                said = known.find_sentences_of_user(item)
                quoted.update(said)
                if not said and not in_rules.holds(flat(item)):
                    dropped.append(f"{key}: {item}")
            elif key == "artifacts" and not known.holds_name(item):
                dropped.append(f"{key}: {item}")
            else:
                place, text = _place(key, item, known, before)
                checked[place].append(text)
    _restore(checked, before)
    dropped += _close(checked, before, known)
    if work:
        dropped += _close_by_list(checked, work)
    for key in ("task", "pending", "questions"):
        open_before = Items(before.get(key, ()))
        checked[key] = [known.with_last_word(item, open_before) for item in checked[key]]
    found = (
        standing.lines(entries, rules, budget=rule_room, quoted=quoted)
        if quoted.difference(known_rules)
        else []
    )
    return Checked(
        {key: tuple(dict.fromkeys(items)) for key, items in checked.items() if items},
        tuple(dict.fromkeys((*rules, *found))),
        tuple(dropped),
    )


def mark(prose: str, entries: Sequence[Part]) -> str:
    """Return prose with the tool's name before each sentence whose content is only from a tool."""
    lines = sentences_of_each(prose.splitlines())
    known = Evidence(entries, [sentence for line in lines for sentence in line], {})
    for line in lines:
        for at, sentence in enumerate(line):
            tool = known.tool_of(sentence)
            if tool and not sentence.startswith(f"({tool}) "):
                line[at] = f"({tool}) {sentence}"
    return "\n".join(map(" ".join, lines)).strip()


def shortened(story: str, size: int) -> str:
    """Return the most important sentences of a story in about ``size`` characters, with some of
    each section.
    """
    found = parse(story)
    blocks = {
        key: "\n".join(SAID_LAST.split(item)[0] for item in items)
        for key, items in (found or {}).items()
    }
    kept: dict[str, list[str]] = {}
    for key, text in sorted((blocks or {"": story}).items(), key=lambda block: len(block[1])):
        cut = timeline((), size // max(1, len(blocks) - len(kept)), text)
        kept[key] = [
            line.removeprefix("Summary: ")
            for line in cut.splitlines()
            if line and line != ARTIFACTS
        ]
        size -= len(cut)
    return (
        render({key: tuple(lines) for key, lines in kept.items()}) if found else "\n".join(kept[""])
    )


def _place(key: str, item: str, known: Evidence, before: Sections) -> tuple[str, str]:
    """Return the section of an item and its text with its speaker; an item only from a tool is a
    fact.
    """
    if item in before.get(key, ()):
        return key, item
    item = bare(item)
    if tool := known.tool_of(item):
        return ("facts" if key in _WANTED else key), f"{tool}: {item}"
    if key == "task" and words(item) and known.share(item, "user") < _MOSTLY:
        return "facts", f"Assistant: {item}" if known.share(item, "assistant") >= _MOSTLY else item
    theirs = known.quoted(item, "assistant")
    return key, f"Assistant: {item}" if theirs >= _MOSTLY and theirs > known.quoted(
        item, "user"
    ) else item


def _restore(checked: dict[str, list[str]], before: Sections) -> None:
    """Restore items that a model has left out: artifacts, and finished or cancelled items (the
    newest of them).
    """
    for key in ("artifacts", "done", "cancelled"):
        items = checked[key]
        others = Items(items)
        lost = [item for item in before.get(key, ()) if not others.has_like(item)]
        if key == "artifacts":
            names = set(map(name_of, items))
            lost = [item for item in lost if name_of(item) not in names]
        checked[key] = [*lost, *items][-_MOST_CLOSED:]


def _close_by_list(checked: dict[str, list[str]], work: WorkList) -> list[str]:
    """Remove items that the agent's own list has as done or called off from the open ones, and
    return what was removed.
    """
    closed = Items(work.closed())
    still_open = Items(work.open())
    kept: list[str] = []
    dropped: list[str] = []
    for item in checked["pending"]:
        if closed.has_like(item) and not still_open.has_like(item):
            dropped.append(f"pending: {item}")
        else:
            kept.append(item)
    checked["pending"] = kept
    return dropped


def _close(checked: dict[str, list[str]], before: Sections, known: Evidence) -> list[str]:
    """Remove finished and cancelled items from the open ones, unless the user asked for them again,
    and return what was removed.
    """
    once = [*before.get("done", ()), *before.get("cancelled", ())]
    earlier = set(once)
    now = [item for key in ("done", "cancelled") for item in checked[key] if item not in earlier]
    closed_now = Items(now)
    closed = Items([*once, *now])
    dropped: list[str] = []
    for key in ("pending", "questions"):
        open_before = Items(before.get(key, ()))
        still_open: list[str] = []
        for item in checked[key]:
            is_reopened = known.has_user_asked(item) or open_before.has_like(item)
            if (closed_now if is_reopened else closed).has_like(item):
                dropped.append(f"{key}: {item}")
            else:
                still_open.append(item)
        checked[key] = still_open
    return dropped
