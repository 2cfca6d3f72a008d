"""Where a history is cut, and what the sizes of its parts are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, Shorten, Truncate
from compacter.testing import ScriptedSummarizer

if TYPE_CHECKING:
    from tests.promises.conftest import MakeStage, Talk


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


def test_empty_in_empty_out() -> None:
    result = Compacter(summarizer=ScriptedSummarizer()).compact([])
    assert (result.messages, result.changed, result.fits) == ([], False, True)


def test_under_budget_everything_is_kept(talk: type[Talk]) -> None:
    history = talk.turns(5)
    size = sum(len(message["content"]) for message in history)
    asked = ScriptedSummarizer("Short.")
    compacter = Compacter(summarizer=asked)

    result = compacter.compact(history, budget=size)

    assert (result.messages, result.changed, result.fits) == (history, False, True)
    assert compacter.plan(history, budget=size).cut == 0
    assert not asked.requests
    assert compacter.compact(history, budget=size - 1).changed


@pytest.mark.parametrize("ratio", [0.1, 0.5, 0.9, 1.0])
def test_truncation_keeps_a_contiguous_newest_part(ratio: float, talk: type[Talk]) -> None:
    history = talk.turns(10)

    result = Compacter(strategy=Truncate(), compact_ratio=ratio).compact(history)

    kept = [history.index(message) for message in result.messages if message in history]
    assert kept[0] == 0
    assert kept[1:] == list(range(kept[1], len(history)))
    assert result.discarded == tuple(history[1 : kept[1]])


def test_a_ratio_of_one_folds_all_that_may_be_folded(talk: type[Talk]) -> None:
    history = talk.turns(5)

    plan = Compacter(compact_ratio=1).plan(history)

    assert plan.head == tuple(history[1:-1])


@pytest.mark.parametrize("ratio", [0.2, 0.25, 0.4, 0.5, 0.75, 0.9])
def test_what_reaches_the_target_goes_to_the_head(ratio: float, talk: type[Talk]) -> None:
    history = talk.turns(10, size=100)
    compactable = 20 * 100

    plan = Compacter(compact_ratio=ratio).plan(history)

    # A tail may begin with its turn, so at most the rest of that turn goes along.
    assert plan.head_size >= ratio * compactable
    assert plan.head_size - 200 < ratio * compactable


@pytest.mark.parametrize("ratio", [0.01, 0.7, 1.0])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_at_least_one_message_remains(ratio: float, count: int, talk: type[Talk]) -> None:
    history = [talk.answer(talk.text(f"thought {number}", 900)) for number in range(count)]

    result = Compacter(compact_ratio=ratio, summarizer=ScriptedSummarizer()).compact(history)

    assert result.messages
    assert any(message in history for message in result.messages)


@pytest.mark.parametrize("ratio", [number / 20 for number in range(1, 21)])
@pytest.mark.parametrize("parallel", [1, 2, 4])
def test_no_cut_stands_on_a_tool_result(ratio: float, parallel: int, talk: type[Talk]) -> None:
    plan = Compacter(compact_ratio=ratio).plan(talk.errand(7, size=200, parallel=parallel))

    assert plan.cut
    assert all(message["role"] != "tool" for message in plan.messages[plan.cut :][:1])


@pytest.mark.parametrize(
    "text", ["naïve ", "日本語テキスト", "👩‍👩‍👧 ", "\u0627\u0644\u0633\u0644\u0627\u0645 "]
)
def test_text_is_cut_between_characters(text: str, talk: type[Talk]) -> None:
    history = [
        talk.user("go"),
        talk.calls("c"),
        talk.result("c", text * 2_000),
        talk.answer("done"),
        talk.user("next"),
    ]

    result = Compacter(strategy=Shorten()).compact(history, budget=2_000)

    shortened = str(result.messages[2]["content"])
    assert len(shortened) < 2_000
    shortened.encode()
    assert shortened.startswith(text)
    assert set(shortened) <= set(text + "[]()…. ,\n") | set("abcdefghijklmnopqrstuvwxyz0123456789 ")


def test_short_text_is_verbatim_and_unknown_blocks_are_harmless(talk: type[Talk]) -> None:
    strange = {
        "role": "user",
        "content": [{"type": "hologram", "of": "a ship"}, {"type": "text", "text": "Hm."}],
    }
    asked = ScriptedSummarizer("Short.")
    history = [*talk.turns(3)[:-1], strange, *talk.turns(3)[1:]]

    result = Compacter(summarizer=asked, compact_ratio=0.9).compact(history)

    assert result.changed
    assert strange in result.discarded
    assert "Hm." in asked.prompts[0]


@pytest.mark.parametrize("turns", [1, 3, 5])
def test_the_newest_turns_are_kept(turns: int, talk: type[Talk]) -> None:
    history = talk.turns(10)[:-1]

    result = compacter(preserve_recent_turns=turns, compact_ratio=1).compact(history)

    assert result.messages[2:] == history[-2 * turns :]
    assert len(result.discarded) == len(history) - 1 - 2 * turns


def test_few_turns_fold_where_they_must(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500, preserve_recent_turns=50)

    assert scene.ask(talk.turns(12)) == "ok"
    assert scene.compactions


def test_kept_and_discarded_are_all_in_order(talk: type[Talk]) -> None:
    history = talk.turns(10)

    result = compacter(pin=lambda message: "answer 3" in message["content"]).compact(history)

    kept = [message for message in result.messages if any(message is own for own in history)]
    places = [history.index(message) for message in result.discarded]
    assert places == sorted(places)
    assert sorted(places + [history.index(message) for message in kept]) == list(
        range(len(history))
    )


def test_an_oversized_newest_turn_is_reduced(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=1_000, preserve_recent_turns=1)
    history = [*talk.turns(4), talk.calls("c"), talk.result("c", talk.text("result", 6_000))]

    assert scene.ask(history) == "ok"
    assert scene.model.invalid == 0


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_an_oversized_message_is_reduced(place: str, stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=1_000, preserve_recent_turns=1)
    huge = [talk.calls("huge"), talk.result("huge", talk.text("huge result", 40_000))]
    history = talk.errand(4, size=200)
    at = {"first": 2, "middle": 6, "last": len(history)}[place]
    history[at:at] = huge

    assert scene.ask(history) == "ok"
    assert scene.model.invalid == 0
