"""Parse a model's summary in sections, check it against the conversation, and merge it with the one before.

Text of the conversation may mislead a model, so the important sections are checked: a rule must be a sentence of the
user, an artifact a name in the conversation, a task something the user wrote about; finished and cancelled items are
not opened again until the user asks for them. Removed items are reported.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from compacter.messages.fields import flat
from compacter.messages.parts import Part
from compacter.summary import rules as standing
from compacter.summary.sentences import Run, clip, named, reader, runs, sentences, stems, words
from compacter.summary.timeline import ARTIFACTS, timeline

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "task": ("Task", "Goal", "Request", "Aufgabe", "Tâche", "Tarea", "Задача", "任务", "タスク"),
    "rules": (
        *("Rules", "Constraints", "User rules", "User's rules"),
        *("Regeln", "Règles", "Reglas", "Правила", "规则", "用户规则", "ルール"),
    ),
    "decisions": ("Decisions", "Key decisions", "Entscheidungen", "Décisions", "Decisiones", "Решения", "决定"),
    "facts": ("Facts", "Key facts", "Fakten", "Faits", "Hechos", "Факты", "事实", "事実"),
    "artifacts": ("Artifacts", "Files", "Dateien", "Fichiers", "Archivos", "Файлы", "文件"),
    "done": ("Done", "Completed", "State", "Erledigt", "Fait", "Hecho", "Сделано", "已完成", "完了"),
    "pending": ("Pending", "To do", "Todo", "In progress", "Next steps", "Offen", "À faire", "Pendiente", "待办"),
    "cancelled": ("Called off", "Cancelled", "Canceled", "Withdrawn", "Abgesagt", "Annulé", "Cancelado", "已取消"),
    "questions": ("Open questions", "Open", "Questions", "Offene Fragen", "Preguntas", "Вопросы", "问题"),
    "failed": ("Failed", "What failed", "Gescheitert", "Échoué", "Fallido", "失败"),
}
"""Sections in their order, each with its heading and other headings that models use for it."""
_KEYS = {name.lower(): key for key, names in _SECTIONS.items() for name in names}
_NAMES = "|".join(sorted(map(re.escape, _KEYS), key=len, reverse=True))
_MORE = r"(?:[ \t](?:[(&/]|and\b|und\b|et\b|y\b|des\b|de\b)[^:：\n]{0,30}?)?"
_HEADING = re.compile(
    rf"[ \t]{{0,4}}(?:#{{1,6}}[ \t]{{1,4}}|[-*][ \t]{{1,4}}(?=[*_]{{2}})|\d{{1,2}}[.)][ \t]{{1,4}})?[*_]{{0,2}}"
    rf"(?P<name>{_NAMES}){_MORE}[*_]{{0,2}}[ \t]{{0,4}}(?:[:：][*_]{{0,2}}(?P<rest>.*)|$)",
    re.IGNORECASE,
)
_TABLE_HEAD = re.compile(r"(?m)^\|.{0,200}\|\n\|[-| :]{3,200}\|$")
_ROW = re.compile(rf"(?im)^\|[ *_]{{0,4}}({_NAMES})[ *_]{{0,4}}\|(.*)\|[ ]{{0,4}}$")
_ELEMENT = re.compile(rf"(?i)<({_NAMES})>|</(?:{_NAMES})>")
_INLINE = re.compile(rf"(?i)(?<=[^\W\d][.;!?])[ ](?=(?:{_NAMES}):[ ])")
_BULLET = re.compile(r"^\s{0,16}(?:[-*•‣·–]|\d{1,3}[.)])\s{1,8}")
_NOTHING = re.compile(r"\W{0,8}(?:none|n/?a|nothing|empty|none (?:so far|yet|stated))?\W{0,8}", re.IGNORECASE)
_FEWEST = 2
"""Fewest headings of an answer in sections; one with fewer is prose."""
_WANTED = frozenset({"task", "decisions", "pending", "questions"})
"""Sections for the wishes of people; text that is only from a tool does not belong there."""
_MOST_CLOSED = 30

_LONGEST_RULE = 400
"""Longest sentence of a user in characters; a longer one is a pasted text."""
_SHORTEST_QUOTE = 8
_BEARS, _MOSTLY, _HARDLY = 0.3, 0.5, 0.34
_LAST_WORD = 160
_LABEL = re.compile(r"^(?:User|Assistant|Tool(?: [^:\n]{1,80})?): ")
_SAID_LAST = re.compile(r" \[(?:User|Assistant) said last: ")
_NAME_END = re.compile(r": | [-–—=(] ?|\t|, ")
_PUNCTUATION = "\"'`*_,;:!?()[]{}<>“”„«»。、"
_MARKS = " \t\"'`*_“”„«»‘’()[]"


Sections = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked summary."""

    sections: Sections
    """Checked items by section, without rules."""
    rules: tuple[str, ...]
    """Lines with rules: the known ones, then sentences of the user that the model quoted, oldest first."""
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
    rule_room: int = 4_000,
) -> Checked:
    """Return the items of a model's ``answer`` that the conversation confirms, merged with the prior summary.

    Args:
        answer: the sections as the model wrote them.
        entries: the messages that the model summarised.
        prior: the checked sections of the summary that the model updated.
        rules: lines with known rules: of the prior summary, declared, or found by code. They are all kept.
        rule_room: largest size of all rules, in characters.
    """
    before = prior or {}
    known_rules = [line.partition(": ")[2] for line in rules]
    known = _Evidence(entries, [item for key in answer for item in answer[key]], before)
    dropped: list[str] = []
    quoted: set[str] = set()
    checked: dict[str, list[str]] = {key: [] for key in _SECTIONS if key != "rules"}
    for key in _SECTIONS:
        for item in answer.get(key, ()):
            if key == "rules":
                said = known.said_by_user(item)
                quoted.update(said)
                if not said and not any(flat(item) in rule for rule in known_rules):
                    dropped.append(f"{key}: {item}")
            elif key == "artifacts" and not known.holds_name(item):
                dropped.append(f"{key}: {item}")
            else:
                place, text = _placed(key, item, known, before)
                checked[place].append(text)
    _restore(checked, before)
    dropped += _closed_stays_closed(checked, before, known)
    for key in ("task", "pending", "questions"):
        checked[key] = [known.with_last_word(item, before.get(key, ())) for item in checked[key]]
    found = standing.lines(entries, rules, budget=rule_room, quoted=quoted) if quoted.difference(known_rules) else []
    return Checked(
        {key: tuple(dict.fromkeys(items)) for key, items in checked.items() if items},
        (*rules, *(line for line in found if line not in rules)),
        tuple(dropped),
    )


def mark(prose: str, entries: Sequence[Part]) -> str:
    """Return prose with the tool's name before each sentence whose content is only from a tool."""
    lines = [sentences(line) for line in prose.splitlines()]
    known = _Evidence(entries, [sentence for line in lines for sentence in line], {})
    for line in lines:
        for at, sentence in enumerate(line):
            tool = known.tool_of(sentence)
            if tool and not sentence.startswith(f"({tool}) "):
                line[at] = f"({tool}) {sentence}"
    return "\n".join(map(" ".join, lines)).strip()


def shortened(story: str, size: int) -> str:
    """Return the most important sentences of a story in about ``size`` characters, with some of each section."""
    found = parse(story)
    blocks = {key: "\n".join(_SAID_LAST.split(item)[0] for item in items) for key, items in (found or {}).items()}
    kept: dict[str, list[str]] = {}
    for key, text in sorted((blocks or {"": story}).items(), key=lambda block: len(block[1])):
        cut = timeline((), size // max(1, len(blocks) - len(kept)), text)
        kept[key] = [line.removeprefix("Summary: ") for line in cut.splitlines() if line and line != ARTIFACTS]
        size -= len(cut)
    return render({key: tuple(lines) for key, lines in kept.items()}) if found else "\n".join(kept[""])


def _placed(key: str, item: str, known: _Evidence, before: Sections) -> tuple[str, str]:
    """Return the section of an item and its text with its speaker; an item only from a tool is a fact."""
    if item in before.get(key, ()):
        return key, item
    item = _bare(item)
    if tool := known.tool_of(item):
        return ("facts" if key in _WANTED else key), f"{tool}: {item}"
    if key == "task" and words(item) and known.share(item, "user") < _MOSTLY:
        return "facts", f"Assistant: {item}" if known.share(item, "assistant") >= _MOSTLY else item
    theirs = known.quoted(item, "assistant")
    return key, f"Assistant: {item}" if theirs >= _MOSTLY and theirs > known.quoted(item, "user") else item


def _restore(checked: dict[str, list[str]], before: Sections) -> None:
    """Restore items that a model has left out: artifacts, and finished or cancelled items (the newest of them)."""
    for key in ("artifacts", "done", "cancelled"):
        items = checked[key]
        lost = [item for item in before.get(key, ()) if not any(_alike(item, other) for other in items)]
        if key == "artifacts":
            lost = [item for item in lost if not any(_name(item) == _name(other) for other in items)]
        checked[key] = [*lost, *items][-_MOST_CLOSED:]


def _closed_stays_closed(checked: dict[str, list[str]], before: Sections, known: _Evidence) -> list[str]:
    """Remove finished and cancelled items from the open ones, unless the user asked for them again."""
    once = [*before.get("done", ()), *before.get("cancelled", ())]
    now = [item for key in ("done", "cancelled") for item in checked[key] if item not in once]
    dropped: list[str] = []
    for key in ("pending", "questions"):
        for item in list(checked[key]):
            reopened = known.asked_by_user(item) or any(_alike(item, other) for other in before.get(key, ()))
            closed = now if reopened else [*once, *now]
            if any(_alike(item, other) for other in closed):
                checked[key].remove(item)
                dropped.append(f"{key}: {item}")
    return dropped


def _bare(item: str) -> str:
    """Return an item of a summary without the speaker and the last statement that a check has added."""
    return _SAID_LAST.split(_LABEL.sub("", item))[0]


def _alike(one: str, other: str) -> bool:
    """Return whether two items are about the same: the longer one has nearly all words of the shorter."""
    ours, theirs = stems(words(_bare(one))), stems(words(_bare(other)))
    shared = len(ours & theirs)
    return shared > 0.8 * min(len(ours), len(theirs)) and shared >= 0.5 * max(len(ours), len(theirs))


class _Evidence:
    """Words of a conversation, by speaker, to check the items of a summary. Linear in its text."""

    def __init__(self, entries: Sequence[Part], items: Iterable[str], before: Sections) -> None:
        """Read the words of ``items`` in ``entries``; ``before`` are the checked sections of the prior summary."""
        asked, kept = [_bare(item) for item in items], [_bare(item) for key in before for item in before[key]]
        self._entries, self._kept = entries, kept
        self._wanted = stems(words(" ".join([*asked, *kept])))
        self._wanted_runs = {run for item in asked for run in runs(words(item))}
        self._texts: dict[str, list[str]] = defaultdict(list)
        self._runs: dict[str, set[Run]] = {}
        for name, entry in named(entries):
            tool = entry.kind == "result" or entry.role == "tool"
            self._texts[f"Tool {name}".strip() if tool else entry.role].append(entry.text)
        self._stems: dict[str, set[str]] = defaultdict(set)
        for who, texts in self._texts.items():
            distinct = set(chain.from_iterable(map(str.split, texts)))
            self._stems[who] = stems(words(" ".join(distinct))) & self._wanted
        for key, items_before in before.items():
            said = stems(words(" ".join(map(_bare, items_before))))
            self._stems["user" if key == "task" else "assistant"] |= said & self._wanted

    @cached_property
    def _flat(self) -> list[str]:
        return [flat(text) for text in (*self._kept, *(entry.text for entry in self._entries))]

    @cached_property
    def _said(self) -> list[tuple[str, str]]:
        """Sentences of users and assistants, each with its speaker's role."""
        people = [one for one in self._entries if one.kind == "text" and one.role in ("user", "assistant")]
        return [(entry.role, sentence) for entry in people for sentence in sentences(entry.text)]

    @cached_property
    def _bearing(self) -> dict[str, list[int]]:
        """For each word of the items, the numbers of these sentences that contain it."""
        bearing: dict[str, list[int]] = defaultdict(list)
        stems_of = reader()
        for place, (_, sentence) in enumerate(self._said):
            for stem in stems_of(sentence) & self._wanted:
                bearing[stem].append(place)
        return bearing

    def said_by_user(self, quote: str) -> list[str]:
        """Return the whole sentences of the user that contain ``quote``; empty if it is not a quotation.

        Whole, as a part may mean the opposite: "delete the backups" of "Never delete the backups".
        """
        found: list[str] = []
        pieces = sentences(_bare(quote).strip(_MARKS))
        for piece in pieces if len(pieces) > 1 else [flat(_bare(quote))]:
            text = piece.strip(_MARKS).rstrip(".。 ")
            holding = [
                said
                for role, said in self._said
                if role == "user"
                and (text in said if len(text) >= _SHORTEST_QUOTE else text == said.rstrip(".。!！ "))
                and len(said) <= _LONGEST_RULE
                and not said.endswith(("?", "？"))
            ]
            found += holding[-1:]
        return found if len(found) == max(1, len(pieces)) else []

    def holds_name(self, item: str) -> bool:
        """Return whether the conversation has the artifact ``item``, and all words in it that look like names."""
        names = [_name(item), *filter(_like_a_name, _bare(item).split())]
        return all(name and any(name.strip(_PUNCTUATION) in text for text in self._flat) for name in names)

    def share(self, item: str, *who: str) -> float:
        """Return the share of the words of ``item``, without common ones, that these speakers used."""
        own = stems(words(_bare(item)))
        return len(own.intersection(chain.from_iterable(self._stems[one] for one in who))) / len(own) if own else 0.0

    def quoted(self, item: str, who: str) -> float:
        """Return the share of runs of three words of ``item`` in the texts of ``who``."""
        if who not in self._runs:
            said = words("\n".join(self._texts[who]))
            self._runs[who] = self._wanted_runs.intersection(zip(said, said[1:], said[2:], strict=False))
        wanted = runs(words(_bare(item)))
        return sum(run in self._runs[who] for run in wanted) / max(1, len(wanted))

    def tool_of(self, item: str) -> str:
        """Return ``Tool NAME`` if the words of ``item`` are only from a tool, else an empty string."""
        tools = [who for who in self._stems if who.startswith("Tool")]
        if self.share(item, *tools) < _MOSTLY:
            return ""
        tool = max(tools, key=lambda who: (self.quoted(item, who), self.share(item, who)))
        quoted = self.quoted(item, tool)
        if quoted >= _MOSTLY and quoted > max(self.quoted(item, "user"), self.quoted(item, "assistant")):
            return tool
        return tool if self.share(item, "user", "assistant") < _HARDLY else ""

    def asked_by_user(self, item: str) -> bool:
        """Return whether a sentence of the user in this conversation is about ``item``."""
        return any(role == "user" for role, _ in self._about(item, fewest=2))

    def with_last_word(self, item: str, before: Sequence[str]) -> str:
        """Return an open item with the last statement about it, unless the item was made from that statement.

        ``before`` are the open items of the prior summary, which keep their last statement if there is no newer one.
        """
        known = next((other for other in before if _alike(item, other)), "")
        item, about = known if _SAID_LAST.search(known) else item, self._about(item)
        if not about or flat(about[-1][1]) in item or (len(about) == 1 and not known):
            return item
        role, last = about[-1]
        return f'{_SAID_LAST.split(item)[0]} [{role.capitalize()} said last: "{clip(last, _LAST_WORD)}"]'

    def _about(self, item: str, fewest: int = 1) -> list[tuple[str, str]]:
        """Return the sentences of users and assistants about ``item``, oldest first: rare words weigh more.

        ``fewest`` words must be shared, and two if more than one word of the item was mentioned.
        """
        every = stems(words(_bare(item)))
        weights = {stem: len(self._bearing[stem]) ** -0.5 for stem in every if stem in self._bearing}
        scores: dict[int, float] = defaultdict(float)
        hits: Counter[int] = Counter()
        for stem, weight in weights.items():
            for place in self._bearing[stem]:
                scores[place] += weight
                hits[place] += 1
        least, enough = min(max(fewest, min(2, len(weights))), len(every)), _BEARS * sum(weights.values())
        return [self._said[at] for at in sorted(scores) if scores[at] >= enough and hits[at] >= least]


def _name(item: str) -> str:
    """Return the name at the beginning of an artifact's line, without its description."""
    text = _bare(item)
    end = _NAME_END.search(text)
    return flat(text[: end.start()] if end else text).strip(_MARKS)


def _like_a_name(word: str) -> bool:
    """Return whether a word is a path, an address or a name with a dot, which a model must not invent."""
    inner = word.strip(_PUNCTUATION + ".")[1:-1]
    return any(mark in inner for mark in "/._@\\")
