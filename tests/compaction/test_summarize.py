"""Parts of a summary: the model that writes it, its content, and the report if no summary is
made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.compaction.conftest import carried_out, refused
from tests.conversations import user

from compacter import Compacter, CompactionError, CompactionPlan
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation
from compacter.errors import ConfigurationError
from compacter.events import CompactionFailed
from compacter.messages.format import FILLERS, FormatName, get_format
from compacter.messages.replies import Reply
from compacter.options import Options
from compacter.summary.message import FRAME, STORY_FRAME, Summary, compose, parse

TOLD = "The user tells of many ships."
TALK: list[Any] = [
    {"role": role, "content": f"{role.title()} {turn} tells of {turn * 7} ships. ".ljust(200, ".")}
    for turn in range(10)
    for role in ("user", "assistant")
]
QUESTION: Any = user("And now?")


def job(messages: list[Any], form: FormatName = "openai", **facts: Any) -> CompactionPlan:
    rules = facts.pop("rules", ())
    conversation = Conversation(messages, get_format(form), rules=rules)
    facts = {"trigger": "token_limit", "calibration": Calibration(), "is_required": True, **facts}
    return refused(conversation=conversation, **facts)


def summary_of(made: Any) -> Summary:
    found = [
        parse(message["content"])
        for message in made.messages
        if isinstance(message["content"], str)
    ]
    (summary,) = [one for one in found if one is not None]
    return summary


class TestASummaryThatTheCallerGives:
    @pytest.mark.parametrize(("longer", "taken"), [(-1, True), (0, False)])
    def test_is_shorter_than_its_room(self, longer: int, taken: bool) -> None:
        head = sum(len(message["content"]) for message in TALK)
        given = (
            "".join(f"Ship {number} has {number} masts. " for number in range(200))[
                : head - FRAME - 2 + longer
            ]
            + "."
        )
        work = job([*TALK, QUESTION], summary=given)
        options = Options(compact_ratio=1.0)
        if taken:
            assert summary_of(carried_out(options, work)[1]).story == given
        else:
            with pytest.raises(CompactionError, match="the summary that was passed is refused"):
                carried_out(options, work)

    def test_is_redacted_and_without_blanks_around_it(self) -> None:
        options = Options(redact=lambda text: text.replace("Ann", "[x]"))
        asked, made = carried_out(options, job(TALK, summary="\n  They met Ann. \n"))
        assert (asked, made.event.summary, summary_of(made).story) == (
            [],
            "They met [x].",
            "They met [x].",
        )


class TestWhoIsAsked:
    def test_nobody_where_nothing_can_be_read(self) -> None:
        thinking = {"type": "thinking", "thinking": "hm " * 100, "signature": "s"}
        messages = [
            get_format("anthropic").say("user", "Go."),
            *({"role": "assistant", "content": [thinking]} for _ in range(5)),
        ]
        told: list[Any] = []
        asked, _ = carried_out(Options(), job(messages, "anthropic"), TOLD, told=told)
        assert asked == []
        assert any(
            isinstance(one, CompactionFailed) and "nothing can be read" in one.reason
            for one in told
        )

    @pytest.mark.parametrize(
        ("options", "facts", "form", "native"),
        [
            ({}, {"trigger": "prepared"}, "openai", True),
            ({}, {"trigger": "prepared"}, "anthropic", True),
            ({}, {"is_cached": True}, "openai", True),
            ({}, {}, "openai", False),
            ({}, {"trigger": "manual"}, "openai", False),
            # The messages themselves are not redacted.
            ({"redact": str.upper}, {"trigger": "prepared"}, "openai", False),
            ({"redact": str.upper}, {"is_cached": True}, "openai", False),
            ({"summarizer": len}, {"trigger": "prepared"}, "openai", False),
            # It is too long for one prompt.
            ({}, {"trigger": "prepared", "calibration": Calibration(window=600)}, "openai", False),
        ],
    )
    def test_the_model_at_the_end_of_the_conversation_where_it_is_made_ahead(
        self, options: dict[str, Any], facts: dict[str, Any], form: FormatName, native: bool
    ) -> None:
        messages = [get_format(form).say(message["role"], message["content"]) for message in TALK]
        asked, made = carried_out(Options(**options), job(messages, form, **facts), TOLD)
        assert (asked[0].prefix is not None) is native
        if native:
            assert (
                tuple(asked[0].prefix or ())
                == made.event.discarded
                == tuple(messages[: len(made.event.discarded)])
            )
            assert len(asked) == made.event.summarizer_calls == 1


class TestAnAnswer:
    def after(self, prior: Summary, *answers: str, **facts: Any) -> tuple[str, Any]:
        """The first prompt, and the compaction, of a history that begins with a summary."""
        messages = [{"role": "user", "content": compose(prior)}, *TALK, QUESTION]
        asked, made = carried_out(Options(compact_ratio=1.0), job(messages, **facts), *answers)
        return asked[0].messages[0]["content"], made

    @pytest.mark.parametrize(("longer", "asked_again"), [(-2, False), (-1, True)])
    def test_is_with_the_rules_smaller_than_what_it_replaces(
        self, longer: int, asked_again: bool
    ) -> None:
        rule = "r" * 294
        head = sum(len(message["content"]) for message in TALK)
        answer = "".join(f"Ship {number} has {number} masts. " for number in range(200))
        answer = answer[: head - FRAME - len("Rule: ") - len(rule) + longer - 1] + "."
        options = Options(compact_ratio=1.0, max_summary_tokens=4_000)
        asked, _ = carried_out(options, job([*TALK, QUESTION], rules=(rule,)), answer, TOLD)
        assert len(asked) == 1 + asked_again

    def test_is_reported_with_the_names_and_numbers_that_nobody_stated(self) -> None:
        answer = (
            "User 3 tells of 21 ships in notes/tane.md. Notes are in notes/none.md, 4711 lines."
        )
        _, made = self.after(Summary("They wrote notes/tane.md in Tane."), answer)
        assert made.event.unverified == ("notes/none.md", "4711")
        assert made.event.summary == answer

    @pytest.mark.parametrize("summarizer", [None, "extractive"])
    def test_has_no_note_of_what_was_left_out_before(self, summarizer: Any) -> None:
        prior = {
            "role": "user",
            "content": compose(Summary("They met.", notes=("Six are left out.",))),
        }
        work = job([prior, *TALK, QUESTION])
        _, made = carried_out(Options(summarizer=summarizer, compact_ratio=1.0), work, TOLD)
        assert summary_of(made).notes == ()


class TestWhatIsTold:
    def test_of_bad_answers_is_what_they_cost(self) -> None:
        told: list[Any] = []
        carried_out(
            Options(), job(TALK), Reply("", input_tokens=10, output_tokens=3, cost=0.5), told=told
        )
        (failed,) = [one for one in told if isinstance(one, CompactionFailed)]
        assert (failed.input_tokens, failed.output_tokens, failed.cost, failed.error) == (
            20,
            6,
            1.0,
            "",
        )

    def test_of_a_summarizer_that_raised_is_its_error(self) -> None:
        told: list[Any] = []
        lost = LookupError("lost")
        carried_out(Options(), job(TALK), lost, told=told)
        (failed,) = [one for one in told if isinstance(one, CompactionFailed)]
        assert (failed.error, failed.cause) == ("LookupError", lost)
        with pytest.raises(
            CompactionError, match="the summarizer raised LookupError: lost"
        ) as raised:
            carried_out(Options(fallback=()), job(TALK), lost)
        assert raised.value.__cause__ is lost

    def test_where_rules_leave_no_room_is_an_error_if_there_is_no_fallback(self) -> None:
        work = job([*TALK, QUESTION], rules=("r" * 3_000,), target=3_100)
        told: list[Any] = []
        _, made = carried_out(Options(), work, TOLD, told=told)
        assert made is None  # A fallback would leave the rules out or take more than there is.
        (failed,) = [one for one in told if isinstance(one, CompactionFailed)]
        assert failed.reason.startswith("rules: ")
        with pytest.raises(CompactionError, match="the declared rules take 3007 characters"):
            carried_out(Options(fallback=()), work, TOLD)

    @pytest.mark.parametrize("target", [100, 8 + FRAME])
    def test_without_a_model_is_that_there_is_no_room(self, target: int) -> None:
        told: list[Any] = []
        work = job([*TALK, QUESTION], target=target)
        _, made = carried_out(
            Options(summarizer="extractive", fallback=("extractive",)), work, told=told
        )
        (failed,) = [one for one in told if isinstance(one, CompactionFailed)]
        assert failed.reason == "there is no room for a summary"
        assert (made.event.strategy, made.event.fallback) == ("truncate", True)


class TestTheFallbackTruncate:
    def test_needs_no_redaction(self) -> None:
        def redact(text: str) -> str:
            raise LookupError("lost")

        options = Options(fallback=("truncate",), redact=redact, summarizer="extractive")
        _, made = carried_out(options, job(TALK))
        assert (made.event.strategy, made.event.fallback) == ("truncate", True)


class TestWithoutAModel:
    OPTIONS = Options(summarizer="extractive", compact_ratio=1.0)

    @pytest.mark.parametrize(
        ("prior", "notes"),
        [(Summary("They met in Tane."), ()), (Summary(quoted="User: Be brief."), ())],
    )
    def test_an_earlier_summary_stays_where_nothing_else_can_be_read(
        self, prior: Summary, notes: tuple[str, ...]
    ) -> None:
        form = get_format("anthropic")
        thinking = {"type": "thinking", "thinking": "hm " * 300, "signature": "s"}
        unread = [{"role": "assistant", "content": [thinking]}] * 3
        work = job(
            [form.say("user", compose(prior)), *unread, form.say("user", "And now?")], "anthropic"
        )
        _, made = carried_out(self.OPTIONS, work)
        assert parse(form.plain_text(made.messages[0]) or "") == replace(prior, notes=notes)

    @pytest.mark.parametrize(("size", "least", "most"), [(450, 160, 200), (1_200, 300, 400)])
    def test_a_summary_has_a_third_of_the_head_or_two_hundred_characters(
        self, size: int, least: int, most: int
    ) -> None:
        ships = "".join(f"Ship {number} lies in bay {number * 7}. " for number in range(99))
        talk = [
            *({"role": "user", "content": ships[at : at + 150]} for at in range(0, size, 150)),
            QUESTION,
        ]
        _, made = carried_out(self.OPTIONS, job(talk))
        # Without a model's text its heading is free for a line.
        assert least < len(summary_of(made).quoted) <= most + STORY_FRAME

    @pytest.mark.parametrize(("story", "stays"), [(770, True), (3_000, False)])
    def test_an_earlier_story_stays_where_it_leaves_room(self, story: int, stays: bool) -> None:
        told = "They sailed to the isles. ".ljust(story, "x")
        talk = [{"role": "user", "content": compose(told)}, *TALK[1:], QUESTION]
        head = sum(len(message["content"]) for message in talk[:-1])
        _, made = carried_out(self.OPTIONS, job(talk))
        summary = summary_of(made)
        assert (summary.story == told) is stays
        assert "They sailed to the isles." in summary.text
        assert "ships" in summary.quoted
        assert len(summary.text) <= head // 3

    def test_what_stays_is_not_quoted_and_what_was_said_is_no_rule(self) -> None:
        rule = "Never name a ship in a letter."
        said = "The harbour of Tane has seven piers."
        talk = [
            user(f"{rule} {said} {'Ship 1 lies in bay 7. ' * 20}"),
            {"role": "assistant", "content": "Ship 2 lies in bay 14. " * 20},
            {"role": "system", "content": said},
            *TALK,
            QUESTION,
        ]
        _, made = carried_out(self.OPTIONS, job(talk))
        summary = summary_of(made)
        assert summary.rules == ()
        assert f"User: {rule}" in summary.quoted
        assert said not in summary.text
        assert "Ship 1" in summary.quoted


class TestKeep:
    PRIOR: Any = {"role": "user", "content": compose("They met in Tane.")}  # noqa: RUF012

    def of(self, messages: list[Any], *notes: str) -> Any:
        result: Any = None
        for note in notes:
            made = Compacter(
                strategy=lambda task, note=note: task.keep(
                    range(len(task.messages) - 4, len(task.messages)), note
                )
            )
            result = made.compact(messages)
            messages = [*result.messages, *TALK[:4]]
        return result

    def test_without_a_note_the_prior_summary_stays_as_it_is(self) -> None:
        result = self.of([self.PRIOR, *TALK], "")
        assert list(result.messages) == [self.PRIOR, *TALK[-4:]]
        assert (result.event.summary, result.event.ledger) == ("", "")

    def test_a_note_is_one_line_below_the_prior_summary_and_replaces_an_earlier_one(self) -> None:
        result = self.of([self.PRIOR, *TALK], "Some are\nleft out.", "More are\nleft out.")
        summary = parse(result.messages[0]["content"])
        assert summary == Summary("They met in Tane.", (), ("More are left out.",))
        assert (result.event.summary, result.event.ledger) == (
            "They met in Tane.",
            "Note: More are left out.",
        )
        assert self.of(TALK, "Some are\nleft out.").event.summary == "Some are left out."

    def test_keeps_a_call_with_its_result(self) -> None:
        call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
        step = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "Seven."},
        ]
        for index in (10, 11):
            made = Compacter(strategy=lambda task, index=index: task.keep([index])).compact(
                [*TALK[:10], *step, *TALK[10:], QUESTION]
            )
            assert made.messages == [*step, QUESTION]

    def test_without_a_note_takes_back_what_was_folded_before(self) -> None:
        def strategy(task: Any) -> Any:
            task.replace_head("They never talked.")
            return task.keep(range(16, 20))

        event = Compacter(strategy=strategy).compact(TALK).event
        assert event is not None
        assert (event.summary, event.ledger) == ("", "")


class TestEntries:
    def test_have_no_fillers_and_no_prior_summary(self) -> None:
        texts: list[str] = []

        def reading(task: Any) -> Any:
            texts.extend(part.text for part in task.parts())
            return task.messages

        prior, filler = (user(text) for text in (compose("They met."), FILLERS["user"]))
        Compacter(strategy=reading, compact_ratio=1.0).compact(
            [prior, TALK[1], filler, *TALK[3:], QUESTION]
        )
        assert texts == [message["content"] for message in (TALK[1], *TALK[3:])]


class Later:
    """Strategies that would have to be awaited."""

    name = "later"

    async def compact(self, task: Any) -> Any:
        return task.messages


class Awaited:
    async def __call__(self, task: Any) -> Any:
        return task.messages


@pytest.mark.parametrize("strategy", [Later(), Awaited(), Later().compact])
def test_a_strategy_that_would_have_to_be_awaited_is_refused(strategy: Any) -> None:
    with pytest.raises(ConfigurationError, match="not async"):
        Compacter(strategy=strategy)
