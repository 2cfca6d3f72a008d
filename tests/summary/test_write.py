"""The writer of summaries, step by step: what it asks the model, and what it makes of answers."""

from __future__ import annotations

from typing import Any

import pytest

from compacter.effects import Ask
from compacter.lines.head import Head
from compacter.messages.parts import Part
from compacter.messages.replies import Reply
from compacter.overflow import TokenLimit
from compacter.summary.message import NoSummaryError, Summary
from compacter.summary.write import Writer, quote

FIRST = "Count the crates in all store rooms, please, and never open one."
STORY = "Crates in store rooms are counted."


def shown(ask: Ask) -> str:
    """The prompt of a request to the model."""
    return ask.messages[0]["content"]


class TooLongError(Exception):
    """A prompt that was too long."""

    def __init__(self, limit: int | None = None) -> None:
        super().__init__("too long")
        self.limit = limit


def detect(error: Exception) -> TokenLimit | None:
    return TokenLimit(limit=error.limit) if isinstance(error, TooLongError) else None


def head(count: int = 40, prior: Summary | None = None) -> Head:
    said = [Part("user", "text", FIRST, "", 0)]
    for number in range(1, count):
        text = f"Store room {number} has {number * 7} crates of tiles, and a lift beside it."
        said.append(Part("assistant" if number % 2 else "user", "text", text, "", number))
    return Head(said, prior or Summary())


def writer(**options: Any) -> Writer:
    defaults: dict[str, Any] = {
        "head": head(),
        "prefix": None,
        "detect": detect,
        "size": 4_000,
        "room": 900,
        "insisted": 1_800,
        "lines": 300,
        "space": 2_000,
        "tokens": 200,
        "window": None,
        "chars_per_token": 4.0,
    }
    return Writer(**{**defaults, **options})


def written(made: Writer, *answers: str | Reply | Exception) -> tuple[Summary, list[Ask]]:
    """The summary, and all that was asked; the last answer is given again."""
    flow = made.write()
    asked = [next(flow)]
    while True:
        answer = answers[min(len(asked), len(answers)) - 1]
        try:
            if isinstance(answer, Exception):
                asked.append(flow.throw(answer))
            else:
                asked.append(flow.send(Reply(answer) if isinstance(answer, str) else answer))
        except StopIteration as stop:
            return stop.value, asked


class TestWhatIsAsked:
    def test_is_the_whole_head_once_with_the_tokens_of_the_text(self) -> None:
        summary, asked = written(writer(), STORY)
        assert summary.story == STORY
        assert [each.max_tokens for each in asked] == [200]
        assert all(f"Store room {number} has" in shown(asked[0]) for number in range(1, 40))
        assert asked[0].pieces == 1
        assert "in at most 60 words" in shown(asked[0])

    def test_comes_with_the_story_so_far_or_else_the_lines_so_far(self) -> None:
        for prior, text in (
            (Summary("Doors were shut.", quoted="User: hi"), "Doors were shut."),
            (Summary(quoted="User: shut doors"), "User: shut doors"),
        ):
            _, asked = written(writer(head=head(prior=prior)), STORY)
            assert f"<earlier_summary>\n {text}\n" in shown(asked[0])

    def test_at_the_end_of_the_conversation_is_the_instruction_alone(self) -> None:
        prefix = [{"role": "user", "content": FIRST}]
        summary, asked = written(writer(prefix=prefix), STORY)
        assert summary.story == STORY
        assert asked[0].prefix == prefix
        assert "Store room 1 has" not in shown(asked[0])

    def test_there_is_followed_by_the_transcript_if_the_answer_is_no_summary(self) -> None:
        summary, asked = written(writer(prefix=[{"role": "user", "content": FIRST}]), "ok", STORY)
        assert summary.story == STORY
        assert asked[1].prefix is None
        assert "Store room 1 has" in shown(asked[1])

    def test_is_the_programs_own_prompt(self) -> None:
        _, asked = written(writer(template="Shorten: {history}."), STORY)
        assert shown(asked[0]).startswith("Shorten: <transcript>\n")


class TestASecondTry:
    def test_is_for_fewer_words_after_an_answer_that_is_no_summary(self) -> None:
        summary, asked = written(writer(), "I'm sorry, but I can't help with that.", STORY)
        assert summary.story == STORY
        assert len(asked) == 2
        assert "in at most 30 words" in shown(asked[1])
        assert [each.max_tokens for each in asked] == [200, 200]

    @pytest.mark.parametrize("answer", ["", Reply("Crates and", finish="length")])
    def test_has_four_times_the_tokens_after_one_that_spent_them(self, answer: Any) -> None:
        _, asked = written(writer(), answer, STORY)
        assert [each.max_tokens for each in asked] == [200, 800]

    def test_is_the_last_one(self) -> None:
        with pytest.raises(NoSummaryError, match="has nothing of the conversation"):
            written(writer(), "I'm sorry, but I can't help with that.")

    def test_is_not_made_after_an_exception(self) -> None:
        made = writer()
        flow = made.write()
        next(flow)
        error = RuntimeError("down")
        with pytest.raises(NoSummaryError, match="the summarizer raised RuntimeError") as caught:
            flow.throw(error)
        assert caught.value.cause is error


class TestTheAnswer:
    def test_stands_as_it_was_written_but_for_redaction_and_thoughts(self) -> None:
        answer = f"<think>Which rooms?</think>\n## Crates\n- {STORY} Call 555-1234."
        made = writer(redact=lambda text: text.replace("555-1234", "[phone]"))
        summary, _ = written(made, answer)
        assert summary.story == f"## Crates\n- {STORY} Call [phone]."

    def test_beside_it_stand_lines_of_the_conversation(self) -> None:
        summary, _ = written(writer(), STORY)
        assert f"User: {FIRST}" in summary.quoted
        assert len(summary.quoted) <= 300

    def test_leaves_the_lines_what_there_is_room_for(self) -> None:
        summary, _ = written(writer(space=len(STORY) + 90), STORY)
        assert len(summary.quoted) <= 90

    def test_leaves_them_all_of_a_budget_by_hand(self) -> None:
        summary, _ = written(writer(fills=True), STORY)
        assert 700 < len(summary.quoted) <= 900 - len(STORY)

    def test_that_is_much_shorter_than_the_story_so_far_is_added_to_it(self) -> None:
        prior = Summary(" ".join(f"Store room {number} was shut." for number in range(20)))
        summary, _ = written(writer(head=head(prior=prior)), STORY)
        assert summary.story == f"{prior.story}\n\n{STORY}"

    def test_otherwise_replaces_it(self) -> None:
        prior = Summary("Rooms were shut, and the lifts beside them were oiled.")
        summary, _ = written(writer(head=head(prior=prior)), STORY)
        assert summary.story == STORY

    def test_as_large_as_what_it_replaces_is_refused(self) -> None:
        with pytest.raises(NoSummaryError, match="not smaller than what it replaces"):
            written(writer(size=1_300), " ".join(f"Crates of room {n}." for n in range(62)))

    def test_of_other_words_may_repeat_what_an_earlier_summary_says(self) -> None:
        prior = Summary("The ferry to Oland leaves from pier Kessler.")
        summary, _ = written(
            writer(head=head(2, prior)), "The ferry to Oland leaves from pier Kessler; rooms too."
        )
        assert "Kessler" in summary.story


class TestALongAnswer:
    LONG = " ".join(f"Store room {number} has {number * 7} crates." for number in range(40))

    def test_is_asked_to_be_shorter(self) -> None:
        summary, asked = written(writer(), self.LONG, STORY)
        assert summary.story == STORY
        assert len(asked) == 2
        assert f"<earlier_summary>\n {self.LONG}" in shown(asked[1])

    def test_that_becomes_no_shorter_stays_as_it_was(self) -> None:
        summary, _ = written(writer(), self.LONG, f"{self.LONG} And more of the crates.")
        assert summary.story == self.LONG

    def test_that_stays_long_is_kept_whole_where_there_is_room(self) -> None:
        summary, _ = written(writer(), self.LONG)
        assert summary.story == self.LONG
        assert len(summary.story) + len(summary.quoted) <= 2_000

    def test_is_cut_behind_a_sentence_where_there_is_none(self) -> None:
        summary, _ = written(writer(insisted=900), self.LONG)
        assert 800 < len(summary.story) <= 900
        assert summary.story.endswith("crates. …")


class TestAHeadThatIsTooLongForTheModel:
    def test_is_given_in_pieces_each_of_which_updates_the_text(self) -> None:
        made = writer(head=head(200), window=2_000, size=15_000)
        summary, asked = written(made, *(f"Store rooms, part {n} of crates." for n in range(30)))
        assert made.chunks == len(asked) > 2
        assert [each.piece for each in asked] == list(range(1, len(asked) + 1))
        assert all(len(shown(each)) < 2_000 * 4 for each in asked)
        for number in range(1, 200):
            assert sum(f"Store room {number} has" in shown(each) for each in asked) == 1
        assert "part 0 of crates" in shown(asked[1])
        assert summary.story.endswith(f"part {len(asked) - 1} of crates.")

    def test_is_split_by_the_limit_that_a_refusal_states(self) -> None:
        made = writer(head=head(200), size=15_000)
        _, asked = written(made, TooLongError(1_000), STORY)
        assert len(shown(asked[0])) > 12_000
        assert max(len(shown(each)) for each in asked[1:]) < 1_000 * 4

    def test_leaves_the_story_so_far_a_fifth_of_the_window(self) -> None:
        told = " ".join(f"The crates of store room {number} are counted." for number in range(40))
        made = writer(head=head(200), window=1_000, size=15_000, tokens=800, room=4_000)
        _, asked = written(made, told)
        earlier = shown(asked[1]).partition("<earlier_summary>")[2].partition("</earlier")[0]
        assert 600 < len(earlier) <= 1_000 // 5 * 4 + 10

    def test_is_not_asked_for_at_the_end_of_the_conversation(self) -> None:
        prefix = [{"role": "user", "content": FIRST}]
        _, asked = written(writer(head=head(200), window=2_000, size=15_000, prefix=prefix), STORY)
        assert all(each.prefix is None for each in asked)

    def test_is_split_where_an_answer_that_spent_its_tokens_needs_more_room(self) -> None:
        made = writer(head=head(83), window=2_000, size=6_000)
        _, asked = written(made, "", STORY)
        assert asked[0].pieces == 1
        assert asked[1].pieces > 1
        assert asked[1].max_tokens >= 2 * asked[0].max_tokens

    def test_is_halved_by_one_that_states_none(self) -> None:
        made = writer(head=head(200), size=15_000)
        _, asked = written(made, TooLongError(), STORY)
        sizes = [len(shown(each)) for each in asked]
        assert max(sizes[1:]) < 0.7 * sizes[0]

    def test_has_lines_for_each_piece_without_an_answer(self) -> None:
        made = writer(head=head(500), window=2_000, size=40_000)
        bad = "I'm sorry, but I can't help with that."
        summary, asked = written(made, STORY, bad, bad, STORY, bad, bad, STORY)
        assert made.chunks_without_model == 2
        assert made.chunks == asked[-1].pieces
        assert len(summary.story) + len(summary.quoted) > 0.8 * made.room

    def test_is_not_given_further_after_two_such_pieces_in_a_row(self) -> None:
        made = writer(head=head(500), window=2_000, size=40_000)
        bad = "I'm sorry, but I can't help with that."
        _, asked = written(made, STORY, bad)
        assert len(asked) == 5
        assert made.chunks > 5
        assert made.chunks_without_model == made.chunks - 1

    def test_gives_no_summary_if_the_first_piece_has_none(self) -> None:
        made = writer(head=head(200), window=2_000, size=15_000)
        with pytest.raises(NoSummaryError):
            written(made, "I'm sorry, but I can't help with that.")

    def test_gives_none_if_no_piece_is_small_enough(self) -> None:
        with pytest.raises(NoSummaryError, match="too long for the summarizer"):
            written(writer(head=head(200), size=15_000), TooLongError())


class TestUnverified:
    def test_are_identifiers_and_numbers_that_the_conversation_does_not_have(self) -> None:
        made = writer()
        written(made, "Crates in store rooms: 273 counted, 4,711 missing; see store/plan_9.csv.")
        assert made.unverified() == ("store/plan_9.csv", "4,711")


class TestWithoutAModel:
    def test_lines_stand_alone_or_below_the_story_so_far(self) -> None:
        assert quote(head(), 600).story == ""
        below = quote(head(prior=Summary("Doors were shut.")), 600)
        assert below.story == "Doors were shut."
        assert f"User: {FIRST}" in below.quoted
        assert len(below.story) + len(below.quoted) <= 600

    def test_a_long_story_leaves_a_sixth_of_the_room_for_lines(self) -> None:
        story = " ".join(f"Door {number} was shut." for number in range(90))
        below = quote(head(prior=Summary(story)), 600)
        assert 450 < len(below.story) <= 500
        assert below.quoted

    def test_there_may_be_no_room(self) -> None:
        with pytest.raises(NoSummaryError, match="no room"):
            quote(head(), 0)

    def test_there_may_be_nothing_to_read(self) -> None:
        with pytest.raises(NoSummaryError, match="nothing can be read"):
            quote(Head([Part("user", "media", "[image]", "", 0)], Summary()), 2_000)


def test_a_text_weighs_what_its_characters_do() -> None:
    """An English summary of a Chinese talk may have three characters for each of the talk's."""
    talk = [Part("user", "text", "图书馆搬到新楼 Brandis Ohlsen，箱子已经编号。" * 60, "", 0)]
    text = " ".join(f"Brandis moves box {number} for Ohlsen." for number in range(60))
    summary, asked = written(
        writer(head=Head(talk, Summary()), room=1_300, insisted=1_300, size=1_700), text
    )
    assert len(text) > 1_700
    assert len(asked) == 1
    assert summary.story == text


def test_without_a_window_a_head_is_one_piece() -> None:
    _, asked = written(writer(head=head(2_000), size=140_000), STORY)
    assert len(asked) == 1
