"""``History``: a list with pins that compacts itself; each way of use, and all against a plain
model.
"""

from __future__ import annotations

import copy
import json
import operator
from typing import Any

import pytest

from compacter import Compacter, CompactionError, History, InvalidHistoryError
from compacter.errors import ConfigurationError
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError

Chat = dict[str, Any]


def chat(number: int, size: int = 200) -> Chat:
    return {"role": "assistant" if number % 2 else "user", "content": f"{number} ".ljust(size, "x")}


def talk(count: int = 20, size: int = 200) -> list[Chat]:
    return [chat(number, size) for number in range(count)]


def own(**options: Any) -> Compacter:
    return Compacter(summarizer=ScriptedSummarizer("They talked."), **options)


class TestAList:
    def test_it_does_what_a_list_does(self) -> None:
        history = History(talk(4))
        plain = talk(4)
        for each in (history, plain):
            each.append(chat(4))
            each.extend([chat(5), chat(6)])
            each.insert(0, chat(7))
            each.extend([chat(8)])
            del each[1]
            del each[2:4]
            each[0] = chat(9)
            each.remove(chat(8))
            each.pop()
            each.reverse()
        assert history == plain
        assert len(history.pins) == len(history)

    @pytest.mark.parametrize("other", [3, {"role": "user", "content": "Hello."}, "Hello."])
    def test_it_is_extended_by_lists_of_messages_alone(self, other: Any) -> None:
        history = History(talk(2))
        with pytest.raises(ConfigurationError, match="takes a list of messages"):
            history.extend(other)
        assert history == talk(2)

    def test_it_has_no_sums_and_no_assignment_to_slices(self) -> None:
        """Nobody could guess what became of pins, rules and archives."""
        history = History(talk(2))
        untyped: Any = operator
        for act in (
            lambda: untyped.add(history, talk(1)),
            lambda: untyped.add(talk(1), history),
            lambda: untyped.add(history, history.copy()),
            lambda: untyped.iadd(history, talk(1)),
            lambda: history.__setitem__(slice(0, 1), talk(1)),
        ):
            with pytest.raises(TypeError):
                act()
        assert history == talk(2)
        with pytest.raises(TypeError, match="del, insert or extend"):
            history[:] = []

    def test_messages_in_no_known_format_have_no_name_in_events(self) -> None:
        assert History([{"speaker": "me"}] * 5).conversation == ""

    def test_a_pin_goes_with_its_message(self) -> None:
        history = History()
        for number in range(4):
            history.append(chat(number), pinned=number == 1)
        history.insert(0, chat(9))
        del history[1]
        assert history.pins == (False, True, False, False)
        history.reverse()
        assert [message for message, pin in zip(history, history.pins, strict=True) if pin] == [
            chat(1)
        ]
        history[history.pins.index(True)] = chat(8)
        assert sum(history.pins) == 1
        history.unpin(-2 % len(history))
        assert not any(history.pins[2:3])

    def test_a_copy_is_a_history_of_its_own(self) -> None:
        history = History(talk(3), compacter=Compacter())
        for clone in (copy.copy(history), history.copy(), copy.deepcopy(history), History(history)):
            clone.append(chat(3), pinned=True)
            assert (len(history), len(clone), sum(clone.pins)) == (3, 4, 1)


class TestCompacting:
    def test_a_head_that_is_all_pinned_asks_no_model(self) -> None:
        asked = ScriptedSummarizer()
        history = History(compacter=Compacter(summarizer=asked))
        for message in talk(6):
            history.append(message, pinned=True)
        with pytest.raises(CompactionError):
            history.compact()
        assert not asked.requests
        assert history == talk_pinned(6)

    def test_under_its_threshold_nothing_happens_and_over_it_a_report_comes(self) -> None:
        history = History(talk(20), compacter=own(), max_tokens=2_000)
        assert not history.compact_if_needed().changed
        history.extend(talk(60))
        result = history.compact_if_needed()
        assert result.event is not None
        assert result.event.compacted_data_size < result.event.original_data_size
        assert result.event.strategy == "summarize"
        assert not history.needs_compaction()
        assert result.fits

    def test_the_users_counter_is_used(self) -> None:
        history = History(talk(4), compacter=own(token_counter=len), max_tokens=5)
        assert not history.needs_compaction()
        history.append(chat(4))
        assert history.needs_compaction()
        assert history.tokens() == 5

    def test_a_reserve_lowers_the_threshold_and_never_crashes(self) -> None:
        history = History(talk(4), compacter=own(), max_tokens=300, reserve_tokens=100)
        assert history.needs_compaction()
        assert history.tokens() == 200
        assert (
            History([], compacter=own(), max_tokens=1, reserve_tokens=10**6).needs_compaction()
            is False
        )
        assert History(
            talk(1), compacter=own(), max_tokens=1, reserve_tokens=10**6
        ).needs_compaction()

    def test_forced_it_compacts_under_its_threshold_and_refuses_what_is_too_short(self) -> None:
        history = History(talk(), compacter=own(), max_tokens=10**6)
        assert history.compact().changed
        short = History([chat(0)], compacter=own())
        with pytest.raises(CompactionError, match="too short"):
            short.compact()
        assert short == [chat(0)]

    def test_without_a_limit_of_its_own_it_keeps_within_the_models_window(self) -> None:
        history = History(talk(4), compacter=own(), model="gpt-4o")
        assert not history.needs_compaction()
        history.extend(talk(80, 8_000))
        assert history.compact_if_needed().changed
        assert not history.needs_compaction()

    def test_without_a_known_window_it_waits_for_a_refusal(self) -> None:
        history = History(talk(80, 8_000), compacter=own(), model="nobody/nothing-7")
        assert not history.needs_compaction()

    async def test_it_does_so_without_blocking(self) -> None:
        history = History(talk(80), compacter=own(), max_tokens=2_000)
        assert (await history.acompact_if_needed()).changed
        assert (await history.acompact(summary="Nothing of note.")).changed
        assert sum("Nothing of note." in message["content"] for message in history) == 1

    def test_what_cannot_shrink_is_not_summarised_each_time(self) -> None:
        asked = ScriptedSummarizer("They talked.")
        history = History(compacter=Compacter(summarizer=asked), max_tokens=1_000)
        history.append({"role": "user", "content": "RULES " * 1_000}, pinned=True)
        for number in range(1, 31):
            history.append(chat(number, 100))
            history.compact_if_needed()
        assert len(asked.requests) <= 6
        assert history.pins[0] or history.pins[1]

    def test_a_change_during_a_call_that_folds_nothing_stays_and_is_no_news(self) -> None:
        told: list[Any] = []
        history = History(talk())

        def completion(messages: Any) -> str:
            history.append(chat(99))
            return "fine"

        assert (
            Compacter(trigger_tokens=10**6, on_event=told.append).wrap(completion)(history)
            == "fine"
        )
        assert history == [*talk(), chat(99)]
        assert told == []

    def test_a_change_in_the_meantime_is_never_overwritten(self) -> None:
        told: list[Any] = []

        def summarizer(messages: Any) -> str:
            history.append(chat(99))
            return "They talked."

        history = History(talk(), compacter=Compacter(summarizer=summarizer, on_event=told.append))
        assert not history.compact().changed
        assert history == [*talk(), chat(99)]
        assert [
            event.trigger for event in told if getattr(event, "reason", "") == "history_changed"
        ] == ["manual"]


def talk_pinned(count: int) -> History:
    history = History()
    for message in talk(count):
        history.append(message, pinned=True)
    return history


class TestInACall:
    def test_a_call_that_succeeds_leaves_it_compacted(self) -> None:
        model = ScriptedModel(window=900)
        history = History(talk(30, 200))
        own().wrap(model.completion)("m", history)
        assert history == list(model.requests[-1].messages)

    def test_a_call_that_fails_leaves_it_as_it_was(self) -> None:
        history = History(talk(30, 200))
        model = ScriptedModel(window=900, replies=RuntimeError("gone"))
        with pytest.raises(RuntimeError):
            own().wrap(model.completion)("m", history)
        assert history == talk(30, 200)
        with pytest.raises(TokenLimitError):
            own().wrap(ScriptedModel(window=10).completion)("m", history)
        assert history == talk(30, 200)

    def test_a_pin_holds_over_what_a_memory_had_folded_before_it(self) -> None:
        model = ScriptedModel(window=1_600)
        completion = own().wrap(model.completion)
        completion("m", talk(31, 250))
        history = History(talk(31, 250))
        history.pin(2)
        completion("m", history)
        assert talk(31, 250)[2] in model.requests[-1].messages


class TestSnapshots:
    def test_pins_and_fold_survive(self) -> None:
        history = History(talk(), compacter=own())
        history.pin(3)
        history.compact()
        restored = History(compacter=own())
        restored.restore(history.snapshot())
        assert restored == history
        restored.extend(talk())
        restored.compact()
        assert (
            sum(summary_message.parse(message["content"]) is not None for message in restored) == 1
        )

    def test_bytes_surrogates_and_other_formats_come_back(self) -> None:
        messages = [
            {
                "role": "user",
                "parts": [{"inlineData": {"mimeType": "image/png", "data": b"\x00\xff"}}],
            },
            {"role": "model", "parts": [{"text": "a \ud83d b"}]},
        ]
        history = History(messages, wire_format="gemini")
        text = history.snapshot()
        restored = History()
        restored.restore(text.encode())
        assert list(restored) == messages

    @pytest.mark.parametrize(
        "change",
        [
            {"version": 2},
            {"version": None},
            {"version": True},
            {"pins": [True]},
            {"pins": None},
            {"pins": [1] * 20},
            {"messages": {}},
            {"messages": [1] * 20},
            {"wire_format": "morse"},
            {"wire_format": []},
            {"rules": "Answer in French."},
            {"rules": [7]},
            {"archive": {}},
            {"archive": 7},
            {"archive": {"shift": "one", "entries": []}},
            {"archive": {"shift": 0, "entries": [["user", "text", "Hello.", "", "first"]]}},
        ],
        ids=str,
    )
    def test_a_wrong_version_or_a_mangled_file_changes_nothing(
        self, change: dict[str, Any]
    ) -> None:
        data = json.loads(History(talk()).snapshot())
        history = History([chat(5)])
        version = history.version
        with pytest.raises(InvalidHistoryError):
            history.restore(json.dumps({**data, **change}))
        assert history == [chat(5)]
        assert history.version == version

    @pytest.mark.parametrize("text", ["", "{", "[]", "3", "null", "{}", b"\xff", "[" * 100_000])
    def test_what_is_no_snapshot_is_refused(self, text: str | bytes) -> None:
        history = History([chat(5)])
        with pytest.raises(InvalidHistoryError):
            history.restore(text)
        assert history == [chat(5)]
