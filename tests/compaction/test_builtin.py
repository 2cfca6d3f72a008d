"""The strategies that come with it, in every message format."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conversations import bot, user
from tests.effort import grows_linearly, repeated

import compacter
from compacter import ClearToolResults, Compacter, Shorten, Summarize, Truncate
from compacter.compaction.strategies import BUILT_IN, as_strategies
from compacter.errors import ConfigurationError
from compacter.events import CompactionFailed
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer
from compacter.text.shorten import shorten

if TYPE_CHECKING:
    from tests.compaction.conftest import Form

LONG = "r" * 3_000
MANUAL = Path(__file__).parents[2] / "docs" / "strategies.md"


def run(form: Form, items: list[Any], strategy: Any, **options: Any) -> Any:
    budget = options.pop("budget", None)
    summarizer = ScriptedSummarizer("They counted the ships.")
    before = copy.deepcopy(items)
    compacter = Compacter(strategy=strategy, summarizer=summarizer, **options)
    result = compacter.compact(items, wire_format=form.name, budget=budget)
    assert items == before
    assert form.broken(result.messages) == []
    return result


def test_each_public_strategy_has_its_name_in_the_table_and_a_row_in_the_manual() -> None:
    public = [getattr(compacter, name) for name in compacter.__all__]
    ours = {
        each
        for each in public
        if each.__module__.startswith("compacter.compaction") and hasattr(each, "compact")
    }
    manual = MANUAL.read_text(encoding="utf-8")

    assert {type(make()) for make in BUILT_IN.values()} == ours - {compacter.CompactionStrategy}, (
        "a strategy is in BUILT_IN (compaction/strategies.py) and in each list of __init__.py"
    )
    assert [make().name for make in BUILT_IN.values()] == list(BUILT_IN)
    assert [
        make for make in BUILT_IN.values() if f"| `{type(make()).__name__}(" not in manual
    ] == [], "write a row for it in docs/strategies.md"


class TestTruncate:
    def test_it_says_that_messages_are_gone(self, form: Form) -> None:
        result = run(form, form.errand([LONG] * 6), Truncate())
        texts = (form.format.plain_text(item) or "" for item in result.messages)
        (note,) = [text for text in texts if summary_message.parse(text)]
        assert "Earlier messages were left out" in note
        assert result.event.summarizer_calls == 0

    def test_a_summary_alone_is_nothing_to_drop(self) -> None:
        note = {"role": "user", "content": summary_message.compose("They counted the ships.")}
        kept = [note, user("And now?")]
        assert not Compacter(strategy=Truncate(), compact_ratio=1.0).compact(kept).changed

    def test_a_prior_summary_stays(self, form: Form) -> None:
        once = run(form, form.errand([LONG] * 6), Summarize()).messages
        again = run(form, [*once, *form.errand([LONG] * 6)], Truncate())
        texts = [form.format.plain_text(item) or "" for item in again.messages]
        (summary,) = [text for text in texts if summary_message.parse(text)]
        assert "They counted the ships." in summary
        assert "left out without a summary" in summary

    def test_the_rules_are_those_of_now_and_not_of_the_prior_summary(self) -> None:
        prior = summary_message.Summary("They met.", ("Rule: Be loud.",))
        said = [user("word " * 60), bot("word " * 60)] * 5
        messages = [user(summary_message.compose(prior)), *said]
        made = Compacter(strategy=Truncate(), rules=["Be brief."]).compact(messages)
        summary = summary_message.parse(made.messages[0]["content"])
        assert summary is not None
        assert summary.rules == ("Rule: Be brief.",)

    def test_its_note_stands_once_below_those_of_other_strategies(self) -> None:
        said = [{"role": role, "content": "word " * 60} for role in ("user", "assistant") * 10]
        archive = Compacter(strategy=lambda task: task.keep(range(6, 20), note="In the archive."))
        messages = archive.compact(said).messages
        for _ in range(2):
            truncating = Compacter(strategy=Truncate(), compact_ratio=0.4)
            messages = truncating.compact([*messages, *said[:4]]).messages
        summary = summary_message.parse(messages[0]["content"])
        assert summary is not None
        assert summary.notes == (
            "In the archive.",
            "Earlier messages were left out without a summary.",
        )


class TestClearToolResults:
    def test_old_large_results_become_receipts_with_their_size_and_pairs_stay(
        self, form: Form
    ) -> None:
        items = form.errand([LONG, "short", LONG, LONG, LONG])
        result = run(form, items, ClearToolResults(keep_recent=2))
        texts = form.results(result.messages)
        assert texts[1] == "short"
        assert texts[3:] == [LONG, LONG]
        for text in (texts[0], texts[2]):
            assert len(text) < 80
            assert "3,000 characters" in text
        assert len(result.messages) == len(items)
        assert len(result.discarded) == 2

    @pytest.mark.parametrize(
        ("sizes", "options", "cleared"),
        [
            ([401, 400, 401, 401, 401, 401], {}, [0, 2]),
            ([3_000] * 4, {"keep_recent": 1, "exclude": ["read"]}, [0, 2]),
            ([3_000] * 2, {}, []),
            ([3_000] * 3, {}, []),
            ([3_000] * 4, {}, [0]),
            ([5] * 6, {"keep_recent": 0}, []),
        ],
        ids=["400 characters", "named tools", "two", "three", "one more", "nothing large"],
    )
    def test_old_large_results_are_cleared_once(
        self, form: Form, sizes: list[int], options: Any, cleared: list[int]
    ) -> None:
        """The newest three, those of up to 400 characters, and those of named tools stay."""
        tools = ["look", "read", *["look"] * 4][: len(sizes)]
        items = form.errand(["r" * size for size in sizes], tools)
        made = run(form, items, ClearToolResults(**options))
        texts = form.results(made.messages)
        assert [at for at, size in enumerate(sizes) if len(texts[at]) < size] == cleared
        assert made.changed is bool(cleared)
        assert not run(form, made.messages, ClearToolResults(**options)).changed

    def test_of_a_message_with_results_and_words_only_results_are_cleared(self) -> None:
        def seen(number: int) -> list[Any]:
            use = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {}}
            result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": LONG}
            said = {"type": "text", "text": "Go on. " * 200}
            return [
                {"role": "assistant", "content": [use]},
                {"role": "user", "content": [result, said]},
            ]

        items = [user("Look."), *seen(0), *seen(1), user("And now?")]
        made = Compacter(strategy=ClearToolResults(keep_recent=1)).compact(
            items, wire_format="anthropic"
        )
        assert "cleared" in str(made.messages[2]["content"][0])
        assert made.messages[2]["content"][1] == items[2]["content"][1]
        assert made.messages[4] is items[4]

    def test_no_receipt_is_longer_than_the_result_was(self, form: Form) -> None:
        items = form.errand(["r" * size for size in range(40, 100, 5)])
        texts = form.results(run(form, items, ClearToolResults(keep_recent=0, min_size=0)).messages)
        assert all(len(text) <= size for text, size in zip(texts, range(40, 100, 5), strict=True))
        assert "cleared" in texts[-1]

    def test_pinned_results_are_left_alone(self, form: Form) -> None:
        items = form.errand([LONG] * 4)
        pinned = items[2]
        result = run(form, items, ClearToolResults(keep_recent=1), pin=lambda item: item is pinned)
        assert pinned in result.messages
        assert [text == LONG for text in form.results(result.messages)] == [
            True,
            False,
            False,
            True,
        ]

    def test_the_cleared_view_is_sticky_byte_for_byte(self) -> None:
        from tests.compaction.conftest import Form as AForm

        form = AForm("openai")
        model = ScriptedModel(window=3_000)
        completion = Compacter(strategy=ClearToolResults(keep_recent=1)).wrap(model.completion)
        history = form.errand([LONG] * 4)
        completion("m", history)
        first = json.dumps(model.requests[-1].messages)
        history = [*copy.deepcopy(history), form.say("assistant", "ok"), form.say("user", "More?")]
        completion("m", history)
        assert model.rejected == 1
        assert json.dumps(model.requests[-1].messages[:-2]) == first


class TestShorten:
    def test_one_oversized_result_keeps_beginning_and_end(self, form: Form) -> None:
        items = form.errand(["begin " + "x" * 20_000 + " end"])
        result = run(form, items, Shorten(), budget=2_000)
        (text,) = form.results(result.messages)
        assert result.fits
        assert text.startswith("begin")
        assert text.endswith("end")
        assert "characters left out" in text

    def test_no_message_gets_smaller_than_it_is_told(self, form: Form) -> None:
        items = form.errand([LONG] * 4)
        for strategy, least in ((Shorten(min_size=100), 100), (Shorten(), 400)):
            result = run(form, items, strategy, budget=500)
            assert all(0.85 * least < len(text) <= least for text in form.results(result.messages))

    def test_it_takes_from_the_largest_only(self, form: Form) -> None:
        items = form.errand(["small " * 20, LONG, LONG])
        result = run(form, items, Shorten(), budget=2_500)
        small, *large = form.results(result.messages)
        assert small == "small " * 20
        assert all(800 < len(text) < 1_300 for text in large)

    def test_what_must_stay_is_never_shortened(self, form: Form) -> None:
        items = [
            form.say("user", "x" * 5_000),
            form.say("assistant", LONG),
            form.say("user", "y" * 5_000),
        ]
        pinned = items[0]
        result = run(form, items, Shorten(), budget=4_000, pin=lambda item: item is pinned)
        assert result.messages[0] is pinned
        assert result.messages[-1] is items[-1]
        assert not result.fits

    def test_it_is_the_last_resort_where_no_head_is_left(self, form: Form) -> None:
        items = [form.say("assistant", "x" * 20_000), form.say("user", "And now?")]
        asked = ScriptedSummarizer(fail="too_large")
        result = Compacter(summarizer=asked).compact(
            form.errand([LONG * 6])[:3] + items[-1:], wire_format=form.name, budget=2_500
        )
        assert result.fits

    def test_a_summary_of_what_came_before_is_never_shortened(self, form: Form) -> None:
        summary = form.say("user", summary_message.compose("They counted ships. " * 200))
        result = run(form, [summary, *form.errand([LONG] * 4)], Shorten(), budget=6_000)
        assert result.messages[0] is summary
        assert all("characters left out" in text for text in form.results(result.messages))
        assert result.fits

    def test_with_everything_pinned_it_leaves_all_and_does_not_fail(self, form: Form) -> None:
        told: list[Any] = []
        compacter = Compacter(strategy=Shorten(), pin=lambda message: True, on_event=told.append)
        assert not compacter.compact(
            form.errand([LONG] * 4), wire_format=form.name, budget=500
        ).changed
        assert not any(isinstance(event, CompactionFailed) for event in told)

    def test_a_text_beside_something_larger_that_cannot_be_shortened_stays(self) -> None:
        function = {"name": "write", "arguments": json.dumps({"text": "x" * 5_000})}
        call = {"id": "c", "type": "function", "function": function}
        items = [
            user("Write it."),
            {"role": "assistant", "content": "I will. " * 40, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": LONG},
            user("And now?"),
        ]
        made = Compacter(strategy=Shorten()).compact(items, budget=6_000)
        assert made.messages[1] is items[1]
        assert "characters left out" in made.messages[2]["content"]

    def test_a_text_of_a_hundred_characters_stays_beside_a_long_one(self) -> None:
        texts = [{"type": "text", "text": text} for text in ("w" * 100, LONG, LONG)]
        items = [bot(texts), user("And now?")]
        made = Compacter(strategy=Shorten()).compact(items, budget=2_000)
        short, *long = (part["text"] for part in made.messages[0]["content"])
        assert short == "w" * 100
        assert all(800 < len(text) < 1_000 for text in long)


class TestShorteningText:
    @pytest.mark.parametrize("mark", ["\u0301", "👩\u200d", "\U0001f1e6"])
    def test_one_character_of_many_marks_takes_linear_time(self, mark: str) -> None:
        assert grows_linearly(lambda text: shorten(f"e{text}", 1_000), repeated(mark), 4_000)


class TestAList:
    def test_it_stops_as_soon_as_it_fits(self, form: Form) -> None:
        chain = [ClearToolResults(keep_recent=0), Summarize()]
        enough = run(form, form.errand([LONG] * 4), chain, budget=6_000)
        assert enough.event.strategy == "clear_tool_results"
        more = run(form, form.errand([LONG, *["short " * 40] * 12]), chain, budget=1_500)
        assert more.event.strategy == "clear_tool_results+summarize"
        assert more.fits

    @pytest.mark.parametrize(
        ("kept", "name"), [(1, "clear_tool_results"), (9, "clear_tool_results+summarize")]
    )
    def test_without_numbers_it_aims_at_half_of_the_size(
        self, form: Form, kept: int, name: str
    ) -> None:
        chain = [ClearToolResults(keep_recent=kept), Summarize()]
        assert run(form, form.errand([LONG] * 10), chain).event.strategy == name


@pytest.mark.parametrize(
    "make",
    [
        lambda: ClearToolResults(keep_recent=-1),
        lambda: ClearToolResults(min_size=True),
        lambda: ClearToolResults(exclude="read"),
        lambda: ClearToolResults(exclude=7),  # type: ignore[arg-type]
        lambda: ClearToolResults(exclude=[7]),  # type: ignore[list-item]
        lambda: Shorten(min_size=99),
        lambda: Shorten(min_size="big"),  # type: ignore[arg-type]
        lambda: as_strategies([]),
        lambda: as_strategies([Summarize]),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(ConfigurationError):
        make()
