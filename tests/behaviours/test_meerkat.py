"""What meerkat's ``Compactor`` promises: a proactive trigger and a rewrite that is checked (M1 to M21)."""

from __future__ import annotations

import base64
import copy
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, CompactionError, History
from compacter.compaction.check import violations
from compacter.compaction.conversation import Conversation
from compacter.messages.format import wire
from compacter.summaries import tag
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.behaviours.conftest import Chat, MakeStage, Stage, Talk

    SummariesIn = Callable[[Sequence[Chat]], list[str]]

OPENAI = wire("openai")
PICTURE = base64.b64encode(bytes(4_000_000)).decode()


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


def chat(scene: Stage, history: list[Chat], turns: int, talk: type[Talk], size: int = 200) -> list[int]:
    """Hold so many more turns; the numbers of the calls before which it was compacted."""
    when = []
    for number in range(turns):
        history.append(talk.user(talk.text(f"question {number}", size)))
        seen = len(scene.compactions)
        scene.ask(history)
        if len(scene.compactions) > seen:
            when.append(number)
        history.append(talk.answer(talk.text(f"answer {number}", size)))
    return when


def test_m1_never_on_the_first_call(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=10**6, trigger_tokens=10)

    scene.ask(talk.turns(50))

    assert scene.told == []


def test_m1_but_on_the_second(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=10**6, trigger_tokens=1_000)
    history = talk.turns(50)

    scene.ask(history)
    scene.ask([*history, talk.answer("x"), talk.user("y")])

    (event,) = scene.compactions
    assert event.trigger == "threshold"
    assert scene.model.requests[-1].tokens < 1_000
    assert scene.model.rejected == 0


@pytest.mark.parametrize("between", [0, 2, 5])
def test_m2_the_cool_down_holds_back_the_next_calls(between: int, stage: MakeStage, talk: type[Talk]) -> None:
    # Each turn adds 100 tokens, each compaction takes few away: the threshold is reached again soon.
    scene = stage(window=10**6, trigger_tokens=2_000, min_calls_between=between, compact_ratio=0.05)

    when = chat(scene, [talk.system()], 60, talk)

    assert len(when) > 1
    assert all(later - earlier > between for earlier, later in pairwise(when))


def test_m2_a_failed_compaction_counts(stage: MakeStage, talk: type[Talk]) -> None:
    asked = ScriptedSummarizer(fail="raises", returns="completion")
    scene = stage(window=10**6, trigger_tokens=1_000, min_calls_between=5, fallback=None, summarizer=asked, memory=None)

    chat(scene, [talk.system()], 16, talk)

    failed = scene.kinds().count("CompactionFailed")
    assert failed
    assert len(asked.requests) <= 3


# M3, the threshold itself, and M5, a history far above it, are held in tests/flow/test_trigger.py.


def test_m4_tool_schemas_count(stage: MakeStage, talk: type[Talk]) -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "d" * 2_000, "parameters": {}}}]
    without, beside = stage(window=10**6, trigger_tokens=1_000), stage(window=10**6, trigger_tokens=1_000)
    history = talk.turns(7)

    for scene, options in ((without, {}), (beside, {"tools": tools})):
        scene.ask(history, **options)
        scene.ask([*history, talk.answer("x"), talk.user("y")], **options)

    assert (len(without.compactions), len(beside.compactions)) == (0, 1)


@pytest.mark.parametrize("ratio", [0.3, 0.7, 1.0])
def test_m6_system_messages_survive_verbatim_and_in_order(ratio: float, talk: type[Talk]) -> None:
    history = talk.turns(10)
    history[1:1] = [talk.system("Second."), {"role": "developer", "content": "Third."}]
    history.insert(10, talk.system("In the middle."))

    result = compacter(compact_ratio=ratio).compact(history)

    systems = [message for message in history if message["role"] in ("system", "developer")]
    assert [message for message in result.messages if message["role"] in ("system", "developer")] == systems


def test_m7_the_summary_stands_after_the_whole_system_prefix(talk: type[Talk]) -> None:
    history = [talk.system(), talk.system("Second."), *talk.turns(10)[1:]]

    result = compacter().compact(history)

    assert result.messages[:2] == history[:2]
    assert result.messages[2]["content"].startswith(tag.TAG)


@pytest.mark.parametrize("turns", [1, 3, 5])
def test_m8_the_newest_turns_are_kept(turns: int, talk: type[Talk]) -> None:
    history = talk.turns(10)[:-1]

    result = compacter(preserve_recent_turns=turns, compact_ratio=1).compact(history)

    assert result.messages[2:] == history[-2 * turns :]
    assert len(result.discarded) == len(history) - 1 - 2 * turns


def test_m8_fewer_turns_than_that_still_fold_where_they_must(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500, preserve_recent_turns=50)

    assert scene.ask(talk.turns(12)) == "ok"
    assert scene.compactions


def test_m9_a_summary_message_is_no_turn_and_is_replaced(talk: type[Talk], summaries_in: SummariesIn) -> None:
    first = compacter(preserve_recent_turns=2, compact_ratio=1).compact(talk.turns(6)[:-1])
    second = compacter(preserve_recent_turns=2, compact_ratio=1).compact([*first.messages, *talk.turns(3)[1:-1]])

    assert len(summaries_in(first.messages)) == len(summaries_in(second.messages)) == 1
    assert len(second.messages) == 1 + 1 + 4


def test_m10_kept_and_discarded_are_all_in_order(talk: type[Talk]) -> None:
    history = talk.turns(10)

    result = compacter(pin=lambda message: "answer 3" in message["content"]).compact(history)

    kept = [message for message in result.messages if any(message is own for own in history)]
    places = [history.index(message) for message in result.discarded]
    assert places == sorted(places)
    assert sorted(places + [history.index(message) for message in kept]) == list(range(len(history)))


def test_m11_an_oversized_newest_turn_does_not_stand_in_the_way(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=1_000, preserve_recent_turns=1)
    history = [*talk.turns(4), talk.calls("c"), talk.result("c", talk.text("result", 6_000))]

    assert scene.ask(history) == "ok"
    assert scene.model.invalid == 0


def test_m12_media_stay_in_what_is_kept_and_are_placeholders_in_what_is_summarised(talk: type[Talk]) -> None:
    def picture(name: str) -> Chat:
        url = f"data:image/png;base64,{PICTURE[:400]}"
        return talk.user("") | {
            "content": [
                {"type": "text", "text": name},
                {"type": "image_url", "image_url": {"url": url}},
                {"type": "file", "file": {"filename": "/home/me/secret/plan.pdf", "file_data": url}},
            ]
        }

    history = [picture("old"), *talk.turns(12)[1:-1], picture("new")]
    asked = ScriptedSummarizer("Short.")

    result = compacter(summarizer=asked).compact(history)

    assert history[0] in result.discarded
    assert result.messages[-1] is history[-1]
    assert PICTURE[:40] not in "".join(asked.prompts)
    assert "image" in asked.prompts[0]
    assert "/home/me/secret" not in asked.prompts[0]


def test_m13_reasoning_is_left_out_of_what_is_summarised(talk: type[Talk]) -> None:
    thinking: list[Any] = [
        {"role": "assistant", "content": "So.", "reasoning_content": "SECRET THOUGHT one"},
        {"role": "assistant", "content": None, "reasoning_content": "SECRET THOUGHT two"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "SECRET THOUGHT three", "signature": "x"},
                {"type": "text", "text": "Well."},
            ],
        },
    ]
    asked = ScriptedSummarizer("Short.")

    compacter(summarizer=asked).compact([talk.user("go"), *thinking, *talk.turns(12)[1:]])

    assert "SECRET THOUGHT" not in "".join(asked.prompts)
    assert "So." in asked.prompts[0]
    assert "Well." in asked.prompts[0]


def test_m14_the_source_history_is_not_changed(talk: type[Talk]) -> None:
    history = talk.errand(10)
    before = copy.deepcopy(history)
    middle = compacter()

    middle.plan(history)
    middle.compact(history)
    middle.compact(history, budget=900)

    assert history == before


def test_m15_a_picture_weighs_like_a_picture(talk: type[Talk]) -> None:
    url = f"data:image/png;base64,{PICTURE}"
    history = [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]},
        talk.answer("x"),
    ]

    assert compacter().plan(history).original_data_size < 10_000


class TestM16TheValidator:
    """It refuses every rewrite that breaks a promise."""

    @pytest.fixture
    def history(self, talk: type[Talk]) -> list[Chat]:
        return [talk.system(), *talk.turns(6)[1:], talk.calls("c"), talk.result("c", "42")]

    def faults(self, before: list[Chat], after: list[Any], protected: Sequence[int] = (0,)) -> list[str]:
        conversation = Conversation.of(before, OPENAI, pinned=protected)
        return violations(conversation, conversation.with_messages(after), alternate=False)

    def test_a_sound_rewrite_has_no_fault(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(history, [history[0], talk.user(tag.compose("x")), *history[8:]]) == []

    def test_nothing_left(self, history: list[Chat]) -> None:
        assert self.faults(history, [])

    def test_nothing_discarded(self, history: list[Chat]) -> None:
        assert self.faults(history, list(history))

    def test_growth(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(history, [history[0], talk.user(tag.compose("x" * 9_000)), *history[8:]])

    def test_a_message_twice(self, history: list[Chat]) -> None:
        assert self.faults(history, [history[0], *history[8:], *history[8:]])

    def test_a_lost_system_message(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(history, [talk.user(tag.compose("x")), *history[8:]])

    def test_a_stray_message(self, history: list[Chat], talk: type[Talk]) -> None:
        strays = [talk.user("I never said that."), talk.answer("Nor I.")]
        assert self.faults(history, [history[0], talk.user(tag.compose("x")), *strays, *history[8:]])

    def test_a_wrong_place_for_the_summary(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(history, [talk.user(tag.compose("x")), history[0], *history[8:]])

    def test_another_order(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(history, [history[0], talk.user(tag.compose("x")), *history[10:], *history[8:10]])

    def test_half_a_pair(self, history: list[Chat], talk: type[Talk]) -> None:
        assert self.faults(history, [history[0], talk.user(tag.compose("x")), *history[8:-1]])
        assert self.faults(history, [history[0], talk.user(tag.compose("x")), *history[8:-2], history[-1]])


def test_m17_a_failed_compaction_is_told_and_the_turn_goes_on(stage: MakeStage, talk: type[Talk]) -> None:
    asked = ScriptedSummarizer(fail="raises", returns="completion")
    scene = stage(window=10**6, trigger_tokens=1_000, fallback=None, summarizer=asked)
    history = talk.turns(20)

    scene.ask(history)
    assert scene.ask([*history, talk.answer("x"), talk.user("y")]) == "ok"

    assert "CompactionFailed" in scene.kinds()
    assert scene.sent[:-2] == history


def test_m18_a_summarizer_over_its_capacity_still_ends_in_a_compaction(talk: type[Talk]) -> None:
    asked = ScriptedSummarizer("Short.", window=900)

    result = compacter(summarizer=asked).compact(talk.turns(40))

    assert result.event is not None
    assert not result.event.fallback
    answered = "".join(
        prompt for prompt, request in zip(asked.prompts, asked.requests, strict=True) if not request.refused
    )
    names = [message["content"].partition(":")[0] for message in result.discarded]
    assert [name for name in names if f"{name}:" not in answered] == []


def test_m19_a_host_made_summary_replaces_the_model_call(talk: type[Talk], summaries_in: SummariesIn) -> None:
    asked = ScriptedSummarizer("Short.")

    result = compacter(summarizer=asked).compact(talk.turns(8), summary="They met in May.")

    assert "They met in May." in summaries_in(result.messages)[0]
    assert not asked.requests


@pytest.mark.parametrize("summary", ["I'm sorry, but I can't help with that.", "x" * 10**5])
def test_m19_one_that_is_none_is_refused(summary: str, talk: type[Talk]) -> None:
    with pytest.raises(CompactionError):
        compacter().compact(talk.turns(8), summary=summary)


# M20, the usage of a refused summary, is held in tests/test_events.py (TestTotals).


def test_m21_after_a_restart_a_compacted_conversation_goes_on(talk: type[Talk], summaries_in: SummariesIn) -> None:
    before = History(talk.turns(12))
    compacter().wrap(ScriptedModel(window=600).completion)("m", before)
    stored = before.snapshot()

    model = ScriptedModel(window=600)
    after = History()
    after.restore(stored)
    completion = compacter().wrap(model.completion)
    for turn in talk.turns(20)[1:]:
        after.append(turn)
        if turn["role"] == "user":
            completion("m", after)

    assert model.invalid == 0
    assert model.rejected > 0
    assert len(summaries_in(list(after))) == 1
