"""All that one compaction does with texts takes time that is linear in them, whatever they say.

Each public function of ``text/`` and ``summary/`` has its work in the table below: one without is
found by introspection.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.effort import grows_linearly

import compacter.summary
import compacter.text
from compacter import Compacter
from compacter.messages.parts import Part
from compacter.summary import (
    checks,
    evidence,
    files,
    message,
    needs,
    prompt,
    rules,
    sections,
    timeline,
    worklist,
    worth,
    write,
)
from compacter.summary.head import Head
from compacter.summary.rule_words import Row
from compacter.text import find, own, sentences, shorten, speech, values, words, wrapped

SHAPES: dict[str, Callable[[int], str]] = {
    "one sentence": lambda i: "Never restart the production server. ",
    "sentences": lambda i: f"Never restart the server number {i} without asking me first. ",
    "lines": lambda i: f"- always write report{i} to src/out/file{i % 7}.md\n",
    "hard-wrapped": lambda i: f"the harbour of number {i} has a crane that is newer than the\n",
    "one word": lambda i: "aaaa ",
    "no spaces": lambda i: f"从现在开始不要修改数据库{i}",
    "brackets": lambda i: "[{(<",
    "JSON": lambda i: '{"a": "b", "c": [' if i % 2 else '"x"]}\n',
    "headings": lambda i: ("Rules:\n", f"- never do x{i}\n", "Pending: y\n")[i % 3],
    "marks": lambda i: '"""`> ```\n',
    "quoted mail": lambda i: "On 3 May, Bob wrote:\n",
    "announcements": lambda i: "i got the mail that she wrote here is the text of the mail:\n",
    "names": lambda i: f"src/a{i}.py " if i % 2 else "src/a.py: b\n",
    "questions": lambda i: f"What about {i}? ",
}


def text_of(shape: str) -> Callable[[int], str]:
    def make(size: int) -> str:
        pieces: list[str] = []
        number = 0
        while size > 0:
            pieces.append(SHAPES[shape](number))
            size -= len(pieces[-1])
            number += 1
        return "".join(pieces)

    return make


def talk(text: str) -> list[Part]:
    """A conversation of short messages with these words, and one long message."""
    said: list[Part] = []
    for index, start in enumerate(range(0, len(text) // 2, 60)):
        piece = text[start : start + 60]
        role = ("user", "assistant", "tool")[index % 3]
        if role == "tool":
            said.append(Part.of_call("search", {"query": piece[:40]}, f"c{index}", index))
            said.append(Part.of_result(piece, f"c{index}", index, f"tool{index % 5}"))
        else:
            said.append(Part.of_text("user" if role == "user" else "assistant", piece, index))
    said.append(Part.of_text("user", text[len(text) // 2 :], len(said)))
    return said


def listed(text: str) -> evidence.Sections:
    items = tuple(text[start : start + 60] for start in range(0, len(text), 60))
    return dict.fromkeys(("task", "rules", "artifacts", "done", "pending", "questions"), items)


SIZES = write.Sizes(
    head=10**7,
    room=10**6,
    filled=4_000,
    planned=4_000,
    tokens=1_000,
    window=None,
    summarizer_window=None,
    chars_per_token=4.0,
)


def write_with_model(text: str) -> None:
    writing = write.write(Head(talk(text), message.Summary(text)), SIZES)
    answer = None
    with suppress(StopIteration, message.NoSummaryError):
        while True:
            writing.send(answer)
            answer = write.Answer(sections.render(listed(text)))


def use_items(text: str) -> None:
    lines = text.splitlines() or [text]
    items = evidence.Items(lines)
    for line in lines:
        items.has_like(line)


def use_evidence(text: str) -> None:
    items = [item for found in listed(text).values() for item in found]
    known = evidence.Evidence(talk(text), items, {})
    for item in items[: len(items) // 6]:
        known.find_sentences_of_user(item)
        known.holds_name(item)
        known.tool_of(item)
        known.has_user_asked(item)
        known.with_last_word(item, evidence.Items([]))


def use_finder(text: str) -> None:
    pieces = [text[start : start + 40] for start in range(0, len(text), 40)]
    finder = find.Finder(text, pieces)
    for piece in pieces:
        finder.holds(piece)


def use_read(text: str) -> None:
    read = speech.read(talk(text))
    speech.quote(read, range(0, len(read), 2))


def use_values(text: str) -> None:
    data = json.loads(json.dumps([text, {"a": [text[:50]] * (len(text) // 50)}]))
    list(values.values(data))


def use_head(text: str) -> None:
    head = Head(talk(text), message.Summary(text), stays=talk(text), marks=("<", ">"))
    head.rules(4_000)
    head.quote(4_000, text, ())
    head.own_of(list(head.parts))


def use_work_list(text: str) -> None:
    records = [{"content": line, "status": "pending"} for line in text.split()]
    checklist = "\n".join(f"- [ ] {line}\nDone: {line}" for line in text.split())
    parts = [
        Part.of_call("todo", json.dumps(records), "c1", 1),
        Part("assistant", "text", checklist),
        *talk(text),
    ]
    work = worklist.WorkList(parts, text.splitlines(), parts)
    work.lines(4_000)
    work.without_lists(parts)
    for line in checklist.splitlines():
        work.is_outdated(line)
    sections.check(listed(text), parts, work=work)


def use_quote(text: str) -> None:
    with suppress(message.NoSummaryError):
        write.quote(Head(talk(text)), 4_000, 4_000)


def use_compacter(text: str) -> None:
    said = [part for part in talk(text) if part.kind == "text"]
    chat = [{"role": part.role, "content": part.text} for part in said]
    for summarizer in ("extractive", lambda _: text[: len(text) // 9]):
        options: dict[str, Any] = {"summarizer": summarizer, "fallback": "truncate"}
        Compacter(memory=None, **options).compact(chat, model="m")


WORK: dict[str, Callable[[str], object]] = {
    "text.words.words": words.words,
    "text.words.runs": words.runs,
    "text.words.stems": words.stems,
    "text.words.stems_of_words": lambda text: words.stems_of_words(words.words(text)),
    "text.words.reader": words.reader(),
    "text.words.clip": lambda text: words.clip(text, len(text) // 2),
    "text.sentences.sentences": sentences.sentences,
    "text.sentences.sentences_of_each": lambda text: sentences.sentences_of_each([text]),
    "text.sentences.split": sentences.split,
    "text.sentences.clauses": lambda text: list(sentences.clauses(text)),
    "text.sentences.lines": sentences.lines,
    "text.sentences.output_lines": lambda text: list(sentences.output_lines(text)),
    "text.sentences.is_prose": sentences.is_prose,
    "text.sentences.is_typed_prose": sentences.is_typed_prose,
    "text.sentences.has_code": sentences.has_code,
    "text.speech.calls": lambda text: speech.calls(talk(text)),
    "text.speech.named": lambda text: speech.named(talk(text)),
    "text.speech.read": use_read,
    "text.speech.quote": use_read,
    "text.wrapped.unwrap": wrapped.unwrap,
    "text.wrapped.split_each": lambda text: wrapped.split_each([text]),
    "text.values.parse": values.parse,
    "text.values.values": use_values,
    "text.own.separate": lambda text: own.separate(text, ("<", ">")),
    "text.own.own_parts": lambda text: own.own_parts(talk(text)),
    "text.find.Finder": use_finder,
    "text.shorten.shorten": lambda text: shorten.shorten(text, len(text) // 3),
    "text.shorten.original_size": shorten.original_size,
    "text.shorten.pieces": shorten.pieces,
    "summary.message.compose": lambda text: message.compose(message.Summary(text, (text,))),
    "summary.message.write_out": lambda text: message.write_out(text, text.splitlines()),
    "summary.message.parse": lambda text: message.parse(message.compose(text)),
    "summary.message.rule_lines": lambda text: message.rule_lines(text.splitlines()),
    "summary.prompt.build": lambda text: prompt.build(text, prior=text, max_tokens=900),
    "summary.prompt.instruction": lambda text: prompt.instruction(
        prior=True, template=text, max_tokens=900
    ),
    "summary.prompt.render": lambda text: prompt.render(talk(text)),
    "summary.prompt.line": lambda text: [prompt.line(part) for part in talk(text)],
    "summary.prompt.neutral": prompt.neutral,
    "summary.prompt.chunks": lambda text: prompt.chunks(talk(text), 400),
    "summary.checks.clean": checks.clean,
    "summary.checks.fault": lambda text: checks.fault(
        text, entries=talk(text), limit=10**7, told=text
    ),
    "summary.checks.copies": lambda text: checks.copies(text, text, talk(text)),
    "summary.sections.parse": sections.parse,
    "summary.sections.render": lambda text: sections.render(listed(text)),
    "summary.sections.check": lambda text: sections.check(
        listed(text), talk(text), prior=listed(text), rules=text.splitlines()
    ),
    "summary.sections.mark": lambda text: sections.mark(text, talk(text)),
    "summary.sections.shortened": lambda text: sections.shortened(text, 2_000),
    "summary.evidence.Items": use_items,
    "summary.evidence.Evidence": use_evidence,
    "summary.evidence.bare": evidence.bare,
    "summary.evidence.name_of": evidence.name_of,
    "summary.rules.compiled": lambda text: rules.compiled(
        Row(f"name: {line}", re.escape(line), line) for line in text.splitlines()
    ),
    "summary.rules.tone": lambda text: [rules.tone(text), *map(rules.tone, text.splitlines())],
    "summary.rules.is_for_good": rules.is_for_good,
    "summary.rules.takes_back": rules.takes_back,
    "summary.rules.overlap": lambda text: rules.overlap(set(text.split()), set(text.split())),
    "summary.rules.lines": lambda text: rules.lines(
        talk(text), [f"Rule: {line}" for line in text.splitlines()], text.splitlines()
    ),
    "summary.timeline.timeline": lambda text: timeline.timeline(talk(text), 4_000, text),
    "summary.worth.Pool": lambda text: worth.Pool(speech.read(talk(text))),
    "summary.needs.find_needs": lambda text: list(
        needs.find_needs(worth.Pool(speech.read(talk(text))))
    ),
    "summary.needs.find_later": lambda text: needs.find_later(worth.Pool(speech.read(talk(text)))),
    "summary.files.lines": lambda text: files.lines(talk(text), 4_000, text.splitlines()),
    "summary.files.split_off": files.split_off,
    "summary.worklist.WorkList": use_work_list,
    "summary.worklist.split_off": worklist.split_off,
    "summary.head.Head": use_head,
    "summary.write.write": write_with_model,
    "summary.write.quote": use_quote,
    "Compacter.compact": use_compacter,
}
DATA = {"Sentence", "Value", "Piece", "Checked", "Summary", "NoSummaryError"} | {
    *("Sizes", "Question", "Answer", "Written", "Row"),
}
"""Classes that only hold what they are given."""


def public_names() -> set[str]:
    names: set[str] = set()
    for package in (compacter.text, compacter.summary):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                own_name = getattr(value, "__module__", "") == module.name
                acts = inspect.isfunction(value) or inspect.isclass(value)
                if own_name and acts and not name.startswith("_") and name not in DATA:
                    names.add(f"{module.name}.{name}".removeprefix("compacter."))
    return names


def test_each_public_function_of_these_rooms_has_its_work_in_the_table() -> None:
    assert public_names() == WORK.keys() - {"Compacter.compact"}


LONGER = {"summary.sections.mark": 4_000}
"""Characters to begin with, where a shorter text does not yet reach a bounded number of places: the
step between the two would look like growth."""


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", WORK)
def test_time_is_linear(name: str, shape: str) -> None:
    assert grows_linearly(WORK[name], text_of(shape), LONGER.get(name, 1_000))
