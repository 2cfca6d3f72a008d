"""Read and write a model's summary in sections."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from compacter.messages.fields import flat
from compacter.text.sentences import sentences

Sections = Mapping[str, Sequence[str]]
"""Items of a summary by section; the sentences of prose by an empty text."""

_NAMES_OF_EACH = """
    task: Task, Goal, Request, Aufgabe, Tâche, Tarea, Задача, 任务, タスク
    rules: Rules, Constraints, User rules, User's rules, Regeln, Règles, Reglas, Правила, 规则, 用户规则, ルール
    decisions: Decisions, Key decisions, Entscheidungen, Décisions, Decisiones, Решения, 决定
    facts: Facts, Key facts, Fakten, Faits, Hechos, Факты, 事实, 事実
    artifacts: Artifacts, Files, Dateien, Fichiers, Archivos, Файлы, 文件
    done: Done, Completed, State, Erledigt, Fait, Hecho, Сделано, 已完成, 完了
    pending: Pending, To do, Todo, In progress, Next steps, Offen, À faire, Pendiente, 待办
    cancelled: Called off, Cancelled, Canceled, Withdrawn, Abgesagt, Annulé, Cancelado, 已取消
    questions: Open questions, Open, Questions, Offene Fragen, Preguntas, Вопросы, 问题
    failed: Failed, What failed, Gescheitert, Échoué, Fallido, 失败
"""  # noqa: E501 - a section a line
_ROWS = (line.strip().partition(": ") for line in _NAMES_OF_EACH.strip().splitlines())
_SECTIONS = {key: names.split(", ") for key, _, names in _ROWS}
"""Sections in their order, each with its heading and other headings that models use for it."""
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


def parse(text: str) -> Sections:
    """Return the items under each heading; of prose the sentences, under none."""
    found: dict[str, list[str]] = {}
    items = before = list[str]()
    # Put rows of tables, tags and headings within a line on lines of their own.
    lines = _ROW.sub(r"\1: \2", _TABLE_HEAD.sub("", text))
    lines = _ELEMENT.sub(lambda tag: f"\n{tag[1]}: " if tag[1] else "\n", lines)
    lines = _INLINE.sub("\n", lines)
    for line in lines.splitlines():
        heading = _HEADING.fullmatch(line.rstrip())
        if heading:
            items = found.setdefault(_KEYS[heading["name"].lower()], [])
            line = heading["rest"] or ""  # noqa: PLW2901 - text after the colon is an item
        item = flat(_BULLET.sub("", line))
        if not _NOTHING.fullmatch(item) and not (items is before and item.endswith(":")):
            items.append(item)
    if len(found) < _FEWEST:
        return {"": sentences(text)}
    if before:
        found["facts"] = [*before, *found.get("facts", ())]
    return {key: tuple(dict.fromkeys(items)) for key, items in found.items() if items}


def render(parsed: Sections) -> str:
    """Return the sections as text; ``parse`` reads it back."""
    blocks = list(parsed.get("", ()))
    for key, (heading, *_) in _SECTIONS.items():
        items = [f"> {item}" if _HEADING.fullmatch(item) else item for item in parsed.get(key, ())]
        if len(items) == 1:
            blocks.append(f"{heading}: {items[0]}")
        elif items:
            blocks.append("\n- ".join([f"{heading}:", *items]))
    return "\n".join(blocks)
