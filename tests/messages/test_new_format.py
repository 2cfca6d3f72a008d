"""A new message format is one file, with a table, and its name in the list of formats."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from compacter import ClearToolResults, Compacter
from compacter.messages.blocks import Row
from compacter.messages.format import FORMATS, MessageFormat, get_format
from compacter.messages.recognise import TELLING, recognise

NAME: Any = "telex"


class TelexFormat(MessageFormat):
    """Messages of lines; calls and answers are blocks too."""

    name = NAME
    text_type = "line"
    own = frozenset({"words"})
    table = {  # noqa: RUF012 - ClassVar in the base class
        "line": Row("text", ("text",), edits=("text",)),
        "dial": Row("call", ("words",), ("station",), ("number",)),
        "answer": Row("result", ("heard",), call_id=("number",), edits=("heard",)),
    }
    telling = ("line", "dial", "answer")


@pytest.fixture(autouse=True)
def telex(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file, and the line in ``FormatName``."""
    file = ModuleType("compacter.messages.telex")
    vars(file)["TELEX"] = TelexFormat()
    monkeypatch.setitem(sys.modules, file.__name__, file)
    monkeypatch.setattr("compacter.messages.format.FORMATS", (*FORMATS, NAME))
    for kind in TelexFormat.telling:
        monkeypatch.setitem(TELLING, kind, NAME)


def history(turns: int = 12) -> list[dict[str, Any]]:
    """Questions, each with a call, its answer and what came of it."""
    talk: list[dict[str, Any]] = []
    for turn in range(turns):
        dial = {"type": "dial", "station": "harbour", "number": turn, "words": {"quay": turn}}
        answer = {"type": "answer", "number": turn, "heard": f"Ship {turn} lies there. " * 40}
        told = {"type": "line", "text": f"Quay {turn} has ship {turn}."}
        talk += [
            {"role": "user", "content": [{"type": "line", "text": f"Who lies at quay {turn}?"}]},
            {"role": "assistant", "content": [dial]},
            {"role": "user", "content": [answer]},
            {"role": "assistant", "content": [told]},
        ]
    return [*talk, {"role": "user", "content": [{"type": "line", "text": "Go on, please."}]}]


def test_it_is_recognised_and_its_calls_stay_with_their_answers() -> None:
    talk = history()
    outline = get_format(NAME).outline(talk)

    assert recognise(talk) == NAME
    assert outline.broken == ()
    assert outline.steps[:4] == [0, 1, 3, 4]


def test_it_is_compacted_and_the_summary_is_a_message_of_it() -> None:
    made = Compacter(summarizer=lambda messages: "They spoke of ships.").compact(history())

    form = get_format(NAME)
    assert made.changed
    assert form.outline(made.messages).broken == ()
    assert any("They spoke of ships." in (form.plain_text(one) or "") for one in made.messages)


def test_its_results_are_edited_where_they_stand() -> None:
    talk = history()
    made = Compacter(strategy=ClearToolResults(keep_recent=1), memory=None).compact(talk)
    answer = made.messages[2]["content"][0]

    assert (answer["type"], answer["number"]) == ("answer", 0)
    assert "cleared to save room" in answer["heard"]
    assert "Ship 0" in talk[2]["content"][0]["heard"]


def test_a_memory_tells_its_messages_apart() -> None:
    form = get_format(NAME)
    contents = [form.content(message) for message in history()]

    assert all(contents.count(content) == 1 for content in contents)
