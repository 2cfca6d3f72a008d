"""System messages, pinned messages and standing rules stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, History
from compacter.summary import message as summary_message
from compacter.testing import ScriptedSummarizer

if TYPE_CHECKING:
    from tests.promises.conftest import MakeStage, SummariesIn, Talk


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


def test_pinned_messages_survive_in_order_and_stay_pinned(talk: type[Talk]) -> None:
    history = History(talk.turns(10), compacter=compacter(compact_ratio=1))
    wanted = [history[3], history[8], history[15]]
    for index in (15, 3, 8):
        history.pin(index)

    result = history.compact()

    assert result.changed
    assert [message for message in history if any(message is one for one in wanted)] == wanted
    assert [
        message for message, pinned in zip(history, history.pins, strict=True) if pinned
    ] == wanted


def test_a_predicate_pins_too(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=600, pin=lambda message: "question 2:" in str(message["content"]))
    history = talk.turns(12)

    scene.ask(history)

    assert history[5] in scene.sent
    assert history[5] not in scene.compactions[0].discarded


def test_a_message_can_be_appended_pinned_and_let_go(talk: type[Talk]) -> None:
    history = History(talk.turns(6), compacter=compacter(compact_ratio=1))
    rule = talk.user("Never mention the harbour.")
    history.append(rule, pinned=True)
    history.extend(talk.turns(6)[1:])
    history.compact()
    assert rule in list(history)

    history.unpin(list(history).index(rule))
    history.extend(talk.turns(6)[1:])
    history.compact()
    assert rule not in list(history)


@pytest.mark.parametrize("ratio", [0.3, 0.7, 1.0])
def test_system_messages_survive_verbatim_and_in_order(ratio: float, talk: type[Talk]) -> None:
    history = talk.turns(10)
    history[1:1] = [talk.system("Second."), {"role": "developer", "content": "Third."}]
    history.insert(10, talk.system("In the middle."))

    result = compacter(compact_ratio=ratio).compact(history)

    systems = [message for message in history if message["role"] in ("system", "developer")]
    assert [
        message for message in result.messages if message["role"] in ("system", "developer")
    ] == systems


def test_the_summary_stands_after_the_whole_system_prefix(talk: type[Talk]) -> None:
    history = [talk.system(), talk.system("Second."), *talk.turns(10)[1:]]

    result = compacter().compact(history)

    assert result.messages[:2] == history[:2]
    assert result.messages[2]["content"].startswith(summary_message.TAG)


def test_first_task_and_rules_are_not_lost(talk: type[Talk], summaries_in: SummariesIn) -> None:
    history = talk.turns(0)[:1]
    history.append(
        talk.user("Port the billing service to Rust. Never touch the file legacy/ledger.py.")
    )
    history += talk.turns(20)[1:]
    compacter = Compacter(summarizer=ScriptedSummarizer("They spoke of the weather."))

    result = compacter.compact(history)
    for _ in range(4):
        result = compacter.compact([*result.messages, *talk.turns(20)[1:]])

    (text,) = summaries_in(result.messages)
    assert "legacy/ledger.py" in text
    assert "Never touch" in text
    assert "billing service" in text
