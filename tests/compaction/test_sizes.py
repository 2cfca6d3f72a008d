"""How much is folded and how much a summary may take, in characters and tokens."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from tests.compaction.conftest import carried_out, plan, refused
from tests.conversations import user

from compacter import Compacter, CompactionEvent, CompactionPlan
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.compaction.sizes import Sizes
from compacter.effects import Ask
from compacter.messages.format import get_format
from compacter.messages.replies import Reply
from compacter.options import Options
from compacter.overflow import TokenLimit
from compacter.summary.message import FRAME, parse
from compacter.testing import token_limit_error

OPENAI = get_format("openai")
TALK = [{"role": "user", "content": f"Part {number} ".ljust(100, "x")} for number in range(41)]
"""Forty messages of 100 characters that may be folded, and the last one, which stays; each is a
turn."""


class ContextLengthError(Exception):
    """A refusal without numbers."""

    code = "context_length_exceeded"


def job(**facts: Any) -> CompactionPlan:
    rules = facts.pop("rules", ())
    facts = {"trigger": "token_limit", "calibration": Calibration(), "is_required": True, **facts}
    return refused(conversation=Conversation(TALK, OPENAI, rules=rules), **facts)


@pytest.mark.parametrize(
    ("trigger", "window", "output", "expected"),
    [
        (1_000, None, 0, 1_000),
        (0.8, None, 0, None),
        (0.8, 1_000, 0, 800),
        (1_000, 8_000, 500, 1_000),
        (1_000, 1_200, 500, 700),
        (0.8, 1_000, 1_000, 500),  # At most half of the window is left to the output.
        (5_000, 1_000, 0, 1_000),
        (1, 1_000, 0, 1),
    ],
)
def test_threshold(trigger: float, window: int | None, output: int, expected: int | None) -> None:
    """The threshold is what is set, or less to leave room for the output."""
    sizes = Sizes(Options(), Calibration(window=window), output_tokens=output)

    assert sizes.threshold(trigger) == expected


@pytest.mark.parametrize(
    ("size", "tokens", "above", "target"),
    [
        (4_000, 999, 0, None),
        (4_000, 1_000, 0, 3_600),
        (2_000, 2_000, 0, 900),  # In the characters of this history.
        (5_000, 1_500, 4_000, None),  # What stayed above the threshold must grow by a quarter.
        (5_001, 1_500, 4_000, 3_000),
    ],
)
def test_below_the_threshold(size: int, tokens: int, above: int, target: int | None) -> None:
    """From the threshold of 1,000 tokens on, a history is compacted to nine tenths of it."""
    assert Sizes(Options()).below(1_000, size, tokens, above) == target


@pytest.mark.parametrize(
    ("options", "tokens", "expected"),
    [
        ({"prepare_tokens": 0.8}, 799, (0.0, 1)),
        # Due at 970 tokens, 170 from now: so much more is compacted.
        ({"prepare_tokens": 0.8}, 800, (0.7 + 170 / 970, 3_880)),
        ({"prepare_tokens": 0.8, "compact_ratio": 0.3}, 970, (0.3, 3_880)),
        ({"prepare_tokens": 0.5, "compact_ratio": 0.9}, 500, (1.0, 3_880)),
        ({"prepare_tokens": 0.75, "trigger_tokens": 0.8}, 699, (0.0, 1)),
        ({"prepare_tokens": 0.75, "trigger_tokens": 0.8}, 700, (0.7 + 1 / 8, 3_200)),
    ],
)
def test_ahead(options: dict[str, Any], tokens: int, expected: tuple[float, int]) -> None:
    """A compaction made ahead leaves as much as the ratio leaves once it is due."""
    share, target = Sizes(Options(**options), Calibration(window=1_000)).ahead(tokens) or (9, 9)

    assert share == pytest.approx(expected[0])
    assert target == expected[1]


class TestTheTokensOfASummary:
    @pytest.mark.parametrize(
        ("options", "window", "head", "tokens"),
        [
            ({}, None, 40_000, 4_096),
            ({}, None, 4_000, 1_000),  # No more than what it replaces.
            ({}, 8_000, 40_000, 1_000),  # An eighth of the window,
            ({"summarizer": "extractive"}, 8_000, 40_000, 1_000),  # without a model too.
            ({"max_summary_tokens": 300}, 8_000, 40_000, 300),
            ({}, 8_000, 100, 75),  # Two or three sentences.
        ],
    )
    def test_are_the_option_or_a_share_of_the_window_or_what_it_replaces(
        self, options: dict[str, Any], window: int | None, head: int, tokens: int
    ) -> None:
        work = job(calibration=Calibration(window=window))
        assert (
            replace(work.sizes, options=Options(**options)).summary(head)
            == tokens * 4 * 3 // 2 + FRAME
        )

    def test_are_half_for_the_models_words_and_asked_for_in_words(self) -> None:
        options = Options(max_summary_tokens=500, compact_ratio=1.0)
        asked, _ = carried_out(options, job(), "", "They talked of many things.")
        words = [
            int(found[1])
            for one in asked
            if (found := re.search(r"at most (\d+) words", one.messages[0]["content"]))
        ]
        assert words == [500 * 3 // 5 // 2, 500 * 3 // 5 // 4]
        assert [one.max_tokens for one in asked] == [500, 2_000]  # Reasoning counts against it.


class TestAHeadThatIsTooLongForOnePrompt:
    def parts(self, request: Ask) -> list[int]:
        return [int(found) for found in re.findall(r"Part (\d+) x", request.messages[0]["content"])]

    def test_is_split_as_the_summarizers_limit_says_and_nothing_is_left_out(self) -> None:
        refusal = token_limit_error(limit=500, input_tokens=1_200)
        asked, made = carried_out(
            Options(compact_ratio=1.0, max_summary_tokens=200),
            job(),
            refusal,
            "They talked of many things.",
        )
        read = list(map(self.parts, asked))
        assert read[0] == list(range(40))
        assert all(len(one.messages[0]["content"]) // 4 < 500 for one in asked[1:])
        assert [part for one in read[1:] for part in one] == list(range(40))
        assert (made.event.chunks, made.event.chunks_without_model) == (len(asked) - 1, 0)

    @pytest.mark.parametrize("window", [100, 200, 300, 400, 600])
    def test_is_split_in_any_window_however_small(self, window: int) -> None:
        for turns in range(5, 41, 5):
            talk = Conversation([*TALK[:turns], TALK[-1]], OPENAI)
            work = replace(job(calibration=Calibration(window=window)), conversation=talk)
            _, made = carried_out(Options(compact_ratio=1.0), work, "They talked.")
            assert not made.event.fallback, turns

    @pytest.mark.parametrize("window", range(700, 1_400, 50))
    def test_is_read_in_as_few_prompts_as_hold_it_and_none_of_them_is_tiny(
        self, window: int
    ) -> None:
        options = Options(compact_ratio=1.0, max_summary_tokens=200)
        asked, _ = carried_out(
            options, job(calibration=Calibration(window=window)), "They talked of many things."
        )
        line = len("user: ") + 100 + len("\n")
        parts = [len(self.parts(one)) for one in asked]
        frame = len(asked[0].messages[0]["content"]) - line * parts[0]
        most = (int(0.92 * window) - min(200, window // 8)) * 4 - frame
        assert (len(asked) - 1) * most < 40 * line
        longest = max(len(one.messages[0]["content"]) for one in asked)
        if len(asked) > 1:
            assert (
                longest <= most + frame + 150
            )  # With the summary so far, from the second prompt on.
        assert 2 * min(parts) > max(parts)


class TestAnAnswerThatIsTooLong:
    @pytest.mark.parametrize(
        "words",
        [
            " ".join(f"ship{n}" for n in range(200)),
            "".join(chr(0xE01 + n * 7 % 40) + chr(0xE01 + n * n % 38) for n in range(400)),
            '{"a": "' + ", ".join(f"pier{n}" for n in range(200)) + '"}',
        ],
        ids=["words", "Thai", "JSON"],
    )
    def test_in_one_sentence_is_never_cut_to_nothing(self, words: str) -> None:
        talk = [{"role": role, "content": f"{role} {words}"} for role in ("user", "assistant") * 9]
        work = replace(job(), conversation=Conversation([*talk, *TALK[-3:]], OPENAI))
        options = Options(compact_ratio=1.0, max_summary_tokens=60)
        _, made = carried_out(options, work, words)
        assert made.event.summary.strip()
        assert not made.event.fallback


class TestTheRoomOfASummary:
    def of(self, work: CompactionPlan, **options: Any) -> tuple[int, CompactionPlan]:
        tasks: list[CompactionPlan] = []

        def watching(task: CompactionPlan) -> Any:
            tasks.append(task)
            return task.messages

        options["strategy"] = watching
        carried_out(Options(**options), work)
        return tasks[0].longest_summary, tasks[0]

    def test_is_less_than_what_it_replaces(self) -> None:
        size, task = self.of(job(), compact_ratio=0.5)
        assert task.head_size == 2_000
        assert size == 2_000 - FRAME - 1

    @pytest.mark.parametrize(
        ("target", "reserved", "left"),
        [(2_500, 0, 2_400), (2_500, 400, 2_000), (1_100, 9_000, None)],
    )
    def test_is_what_the_rest_leaves_of_the_target_less_what_is_kept_for_quotes(
        self, target: int, reserved: int, left: int | None
    ) -> None:
        size, task = self.of(job(target=target, reserved=reserved), compact_ratio=1.0)
        assert task.tail_size == 100
        assert size == ((target - 100 - FRAME + 1) // 2 if left is None else left - FRAME)

    @pytest.mark.parametrize(("more", "size"), [(99, (FRAME + 99) * 92 // 100), (100, 0)])
    def test_by_hand_is_a_share_of_a_budget_that_cannot_be_kept(self, more: int, size: int) -> None:
        work = job(target=FRAME + more, trigger="manual")
        assert self.of(work, compact_ratio=1.0)[0] == size

    @pytest.mark.parametrize(("longer", "asked_again"), [(0, False), (1, True)])
    def test_is_kept_or_the_summary_is_asked_for_again(
        self, longer: int, asked_again: bool
    ) -> None:
        words = "".join(f"Part {number} has ship {number}. " for number in range(99))[
            : 2_000 - FRAME - 1 + longer
        ]
        options = Options(compact_ratio=0.5, max_summary_tokens=4_000)
        asked, made = carried_out(options, job(), words[:-1] + ".", "They talked of many things.")
        assert len(asked) == 1 + asked_again
        assert (made.event.summary == "They talked of many things.") is asked_again
        assert not made.event.fallback

    @pytest.mark.parametrize("budget", range(700, 1_100, 9))
    def test_holds_the_declared_rules_and_all_else(self, budget: int) -> None:
        talk = [
            {"role": "user", "content": f"Ship {number} lies in harbour {number}. " * 3}
            for number in range(30)
        ]
        rules = ["Answer in French.", "Never name a ship.", "Be brief."]
        made = Compacter(summarizer="extractive", rules=rules).compact(talk, budget=budget)
        assert made.fits
        assert all(f"Rule: {rule}" in made.messages[0]["content"] for rule in rules)


class TestTheCut:
    """With a target of 2,100 characters, 100 of them taken: 2,000 of 4,000 must go, and what the
    summary takes.
    """

    @pytest.mark.parametrize(
        ("options", "facts", "folded"),
        [
            ({}, {}, 3_000),  # A summary may take half of what is left,
            ({"max_summary_tokens": 60}, {}, 2_360 + FRAME),  # or what it may have.
            ({}, {"reserved": 600}, 3_300),  # Quotes get their part first,
            ({}, {"reserved": 5_000}, 3_500),  # half of it at most.
            ({"summarizer": "extractive", "max_summary_tokens": 4_000}, {}, 3_000),
            # By hand the same,
            ({}, {"trigger": "manual"}, 3_000),
            (
                {"max_summary_tokens": 60},
                {"trigger": "manual"},
                2_360 + FRAME,
            ),
            (
                {"max_summary_tokens": 60, "summarizer": "extractive"},
                {"trigger": "manual"},
                3_840,  # and without a model nearly all of it is the summary's.
            ),
            # Rules come first, with "Rule: " and a line's end.
            ({}, {"rules": ("r" * 193,)}, 3_100),
            ({}, {"rules": ("r" * 1_193,)}, 3_600),
            (
                {"max_summary_tokens": 60},
                {"rules": ("r" * (234 - FRAME % 100),)},
                2_601 + FRAME // 100 * 100,
            ),
            ({"max_summary_tokens": 60}, {"rules": ("r" * 193,)}, 2_560 + FRAME),
        ],
    )
    def test_makes_room_for_the_summary(
        self, options: dict[str, Any], facts: dict[str, Any], folded: int
    ) -> None:
        made = plan(Options(compact_ratio=0.1, **options), job(target=2_100, **facts))
        assert made.cut == math.ceil(folded / 100)
        assert made.head_size + made.tail_size == made.original_data_size == 4_100

    def test_reaches_the_message_that_stays_where_the_target_is_too_small_for_anything(
        self,
    ) -> None:
        made = plan(Options(), job(target=10))
        assert made.cut == 40


def test_the_goal_of_a_chain_is_half_of_the_size_where_no_target_is_known() -> None:
    goals: list[int] = []

    def watching(task: CompactionPlan) -> Any:
        goals.append(task.goal)
        return task.messages

    strategy: Any = (watching, watching)
    carried_out(Options(strategy=strategy), job(is_required=False))
    assert goals == [2_050] * 2


class TestTheEvent:
    def test_has_the_figures_of_the_compaction(self) -> None:
        calibration = Calibration(chars_per_token=2.0, window=5_000)
        found = TokenLimit(limit=1_900, requested=2_050)
        work = job(calibration=calibration, token_limit=found, attempt=2, model="m", digest="d")
        answer = Reply("They talked of many things.", input_tokens=70, output_tokens=6, cost=0.25)
        asked, made = carried_out(
            Options(compact_ratio=0.5), work, Reply("", input_tokens=10, cost=0.5), answer
        )
        event: CompactionEvent = made.event
        size = sum(map(OPENAI.size, made.messages))
        assert (event.original_data_size, event.compacted_data_size) == (4_100, size)
        assert (event.original_tokens, event.compacted_tokens) == (2_050, round(size / 2))
        assert (event.messages_before, event.messages_after) == (41, len(made.messages))
        assert (event.limit, event.requested, event.attempt, event.model) == (1_900, 2_050, 2, "m")
        assert (event.summarizer_calls, len(asked)) == (2, 2)
        assert (event.input_tokens, event.output_tokens, event.cost) == (80, 6, 0.75)
        assert event.ratio == 0.5
        assert list(event.discarded) == TALK[:20]

    def test_has_no_cost_where_one_of_the_answers_has_none(self) -> None:
        _, made = carried_out(
            Options(compact_ratio=0.5), job(), Reply("", cost=0.5), Reply("They talked a lot.")
        )
        assert made.event.cost is None
        _, made = carried_out(Options(compact_ratio=0.5, summarizer="extractive"), job())
        assert made.event.cost == 0.0

    @pytest.mark.parametrize(("target", "fits"), [(4_099, True), (None, True), (90, False)])
    def test_comes_with_whether_the_target_was_reached(
        self, target: int | None, fits: bool
    ) -> None:
        _, made = carried_out(
            Options(compact_ratio=0.5), job(target=target), "They talked of many things."
        )
        assert made.fits is fits


def test_by_hand_a_budget_that_is_kept_changes_nothing() -> None:
    kept = Compacter(summarizer="extractive").compact(TALK, budget=4_100)
    assert (
        not Compacter(strategy=lambda task: task.messages[1:]).compact(TALK, budget=4_100).changed
    )
    assert (kept.changed, kept.fits, list(kept.messages)) == (False, True, TALK)
    assert Compacter(summarizer="extractive").compact(TALK, budget=4_099).changed


class TestTheLastResort:
    """Where a request must become smaller and no strategy made it small enough, its largest
    messages are shortened.
    """

    def shortened(self, talk: list[Any], target: int | None, *, must: bool = True) -> Any:
        work = refused(
            conversation=Conversation(talk, OPENAI),
            trigger="token_limit",
            calibration=Calibration(),
            target=target,
            is_required=must,
        )
        _, made = carried_out(Options(), work, "They talked of many things.")
        return made

    def test_takes_from_a_call_that_waits_for_its_result_where_nothing_can_be_folded(self) -> None:
        waiting = {
            "role": "assistant",
            "content": "x" * 4_000,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ],
        }
        talk = [user("Look."), waiting]
        for target, most in ((None, 2_010), (1_500, 1_500)):
            made = self.shortened(talk, target)
            assert made.event.strategy == "shorten"
            assert made.messages[1]["tool_calls"] == waiting["tool_calls"]
            assert 0.9 * most < made.event.compacted_data_size <= most
        assert self.shortened(talk, None, must=False) is None

    def test_takes_from_the_tail_what_folding_left_too_large(self) -> None:
        waiting = [
            user("Look."),
            {
                "role": "assistant",
                "content": "x" * 4_000,
                "tool_calls": [
                    {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                ],
            },
        ]
        made = self.shortened([*TALK, *waiting], 3_000)
        assert made.event.strategy == "summarize+shorten"
        assert made.fits
        assert made.event.discarded == (*TALK, waiting[-1])
        assert self.shortened([*TALK, *waiting], 5_000).event.strategy == "summarize"


class TestTheLinesThatFillASummary:
    """A model says little of a head of 32,000 characters; quoted lines fill the summary, but not
    the window.
    """

    TALK = tuple(
        {
            "role": ("user", "assistant")[turn % 2],
            "content": " ".join(
                f"Ship {turn}-{number} lies in bay {number * 7 + turn}." for number in range(20)
            ),
        }
        for turn in range(61)
    )

    @pytest.mark.parametrize(
        ("options", "calibration", "most"),
        [
            # Without a model three sixteenths of the window, at most a third of what it replaces,
            ({}, Calibration(window=100_000), 32_097 // 3),
            ({}, Calibration(), 32_097 // 3),
            ({}, Calibration(window=8_192), 1_536 * 4),
            ({}, Calibration(window=20_000, chars_per_token=2.0), 3_750 * 2),
            ({"max_summary_tokens": 300}, Calibration(window=8_192), 300 * 4),  # or what is set.
        ],
    )
    def test_take_a_share_of_the_head_and_of_the_window(
        self, options: dict[str, Any], calibration: Calibration, most: int
    ) -> None:
        conversation = Conversation(self.TALK, OPENAI)
        work = refused(
            conversation=conversation,
            trigger="token_limit",
            calibration=calibration,
            is_required=True,
        )
        _, made = carried_out(Options(compact_ratio=1.0, summarizer="extractive", **options), work)
        summary = parse(made.messages[0]["content"])
        assert summary is not None
        assert made.event.discarded == self.TALK[:60]
        assert 0.9 * most < len(summary.text) <= most

    @pytest.mark.parametrize(("summarizer", "most"), [(None, 1_000), ("extractive", 32_097 // 3)])
    def test_fill_what_a_budget_leaves_by_hand_only(self, summarizer: Any, most: int) -> None:
        sizes = []
        for trigger in ("token_limit", "manual"):
            work = refused(
                conversation=Conversation(self.TALK, OPENAI),
                trigger=trigger,
                calibration=Calibration(),
                target=20_000,
                is_required=True,
            )
            options = Options(summarizer=summarizer, compact_ratio=1.0)
            _, made = carried_out(options, work, "They talked of many ships.")
            summary = parse(made.messages[0]["content"])
            assert summary is not None
            sizes.append(len(summary.text))
        assert sizes[0] <= most < 15_000 < sizes[1]
