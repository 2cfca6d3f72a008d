"""The validator: what may be sent as a compaction of a history, and where each message of it came
from.
"""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter.compaction.check import check, origins_of
from compacter.compaction.conversation import Conversation
from compacter.messages.format import FILLERS, get_format
from compacter.summary import message as summary_message

OPENAI = get_format("openai")
ANTHROPIC = get_format("anthropic")


def say(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text.ljust(150, ".")}


S = say("system", "s")
U1 = say("user", "1")
A1 = say("assistant", "1")
U2 = say("user", "2")
A2 = say("assistant", "2")
U3 = say("user", "3")
BEFORE = [S, U1, A1, U2, A2, U3]
SUMMARY = {"role": "user", "content": summary_message.compose("x")}
A3 = say("assistant", "3")
LONG = say("assistant", "long" * 200)
SEEN, SEEN_TOO = (
    {"role": "tool", "tool_call_id": "c", "content": text} for text in ("seen", "seen too")
)
FILLER, OTHER = ({"role": role, "content": text} for role, text in sorted(FILLERS.items()))


def faults(after: list[Any], before: list[Any] = BEFORE, **options: Any) -> list[str]:
    form = options.pop("form", OPENAI)
    conversation = Conversation(before, form, pinned=options.pop("pins", ()))
    options.setdefault("alternate", False)
    return check(conversation, after, **options)[1]


@pytest.mark.parametrize(
    ("after", "options"),
    [
        ([S, SUMMARY, A2, U3], {}),
        ([S, SUMMARY, U3], {}),
        ([S, U2, A2, U3], {}),
        ([S, SUMMARY], {"before": [S, A1, LONG]}),  # Nobody asked anything.
        (
            [SUMMARY, SEEN, SEEN_TOO, U3],
            {"alternate": True, "before": [U1, LONG, SEEN, A2, SEEN_TOO, U3]},
        ),
        # An English summary has more characters than the Chinese talk, but fewer bytes.
        (
            [{"role": "user", "content": summary_message.compose("e" * 400)}, U3],
            {"before": [{"role": "user", "content": "数" * 300}, U3]},
        ),
        ([S, {**U1, "content": "short"}, A1, U2, A2, U3], {"edits": True}),
        (
            [{**U1, "content": "short"}, U2, A2, U3],
            {"edits": True, "alternate": True, "before": [U1, U2, A2, U3]},
        ),
    ],
)
def test_what_keeps_the_promises_is_sound(after: list[Any], options: dict[str, Any]) -> None:
    assert faults(after, **options) == []


@pytest.mark.parametrize(
    ("after", "options", "told"),
    [
        ([], {}, "nothing is left"),
        ([SUMMARY, U2, A2, U3], {}, "message 0, which must stay, is gone"),
        ([S, SUMMARY, A2], {}, "message 5, which must stay, is gone"),
        ([S, SUMMARY, U3], {"pins": (2,)}, "message 2, which must stay, is gone"),
        (BEFORE, {}, "did not get smaller"),
        # A single byte less, in as many characters.
        (
            [S, {**U1, "content": "e" * 150}, U3],
            {"edits": True, "before": [S, {**U1, "content": "e" * 149 + "é"}, U3]},
            "did not get smaller",
        ),
        ([S, A2, U2, U3], {}, "changed their order"),
        ([S, SUMMARY, A2, A2, U3], {}, "neither original nor the summary"),
        ([S, SUMMARY, say("user", "x"), U3], {}, "neither original nor the summary"),
        ([S, SUMMARY, FILLER, U3], {}, "neither original nor the summary"),
        ([S, A2, SUMMARY, U3], {}, "right after the system prompt"),
        ([SUMMARY, S, A2, U3], {}, "before the system prompt"),
        ([say("user", "x"), S, A2, U3], {}, "before the system prompt"),
        ([S, {"role": "system", "content": "x"}, A2, U3], {}, "has the system"),
        ([S, A2, U3, SUMMARY], {}, "newest message is not one of the conversation's"),
        ([S, SUMMARY, FILLER, FILLER, U3], {"alternate": True}, "neither original nor the summary"),
        (
            [S, U1, A1, U2, A2, {**U3, "content": "short"}],
            {"edits": True},
            "message 5, which must stay, is gone",
        ),
        # An edited list has one message for each.
        ([S, SUMMARY, {**A2, "content": "."}, U3], {"edits": True}, "neither original"),
        (
            [S, *[{**U1, "content": "."}] * 4, U3],
            {"edits": True},
            ("neither original nor the summary"),
        ),
        (
            [say("user", "x"), say("user", "y"), A1, U3],
            {"edits": True, "before": [A1, LONG, U3]},
            "neither original nor the summary",
        ),
    ],
)
def test_what_breaks_one_is_named(after: list[Any], options: dict[str, Any], told: str) -> None:
    assert told in "; ".join(faults(after, **options))


def test_the_assistant_may_speak_first_where_it_did_before() -> None:
    assert faults([S, A1, U2, A2, U3], [S, A1, U1, A1, U2, A2, U3], alternate=True) == []


def test_an_edited_copy_may_stand_beside_a_neighbour_of_its_role_where_the_original_did() -> None:
    before = [U1, A1, U2, U3, A2, say("user", "4")]
    shorter = {**U2, "content": "short"}

    after = [U1, A1, shorter, *before[3:]]
    conversation = Conversation(before, ANTHROPIC)

    made, wrong = check(conversation, after, alternate=True, edits=True)

    assert wrong == []
    assert made.messages == tuple(after)


def test_an_edited_copy_is_not_taken_for_a_message_of_another_speaker() -> None:
    copies = [S, U1, *({**BEFORE[at], "content": "short"} for at in (3, 4)), U1, U3]
    assert "neither original nor the summary" in "; ".join(faults(copies, edits=True))


class TestPairs:
    CALLING: ClassVar = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "c", "name": "look", "input": {}}],
    }
    SEEN: ClassVar = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x" * 200}],
    }

    def test_half_a_pair_is_a_fault(self) -> None:
        before = [U1, self.CALLING, self.SEEN, A2, U3]
        for after in (
            [U1, self.CALLING, A2, U3],
            [U1, A2, self.SEEN, U3],
            [SUMMARY, self.CALLING, U3],
        ):
            assert faults(after, before, form=ANTHROPIC)

    def test_what_was_broken_before_may_stay_broken(self) -> None:
        assert (
            faults([SUMMARY, self.SEEN, A2, U3], [U1, A1, self.SEEN, A2, U3], form=ANTHROPIC) == []
        )

    def test_a_call_that_lost_its_results_is_a_fault_though_it_is_the_last(self) -> None:
        before = [U1, A1, U3, self.CALLING, self.SEEN]
        assert "a call lost its results" in faults(
            [SUMMARY, U3, self.CALLING], before, form=ANTHROPIC
        )


def test_a_prior_summary_stands_beside_no_new_one_unless_it_is_pinned() -> None:
    prior = {"role": "user", "content": summary_message.compose("before")}
    before = [S, prior, A1, U2, A2, U3]
    assert "stands beside the new one" in "; ".join(faults([S, SUMMARY, prior, A2, U3], before))
    assert faults([S, SUMMARY, prior, A2, U3], before, pins=(1,)) == []


def kept_and_discarded(
    before: list[Any], after: list[Any]
) -> tuple[list[int | None], tuple[Any, ...]]:
    origins = origins_of(before, after)
    return list(origins), tuple(
        message for index, message in enumerate(before) if index not in origins
    )


class TestChange:
    def test_kept_and_discarded_are_the_whole_in_order(self) -> None:
        positions, gone = kept_and_discarded(BEFORE, [S, SUMMARY, A2, U3])
        assert positions == [0, None, 4, 5]
        assert list(gone) == [U1, A1, U2]

    def test_equal_messages_are_told_apart(self) -> None:
        one = say("user", "same")
        other = say("user", "same")
        positions, gone = kept_and_discarded([one, A1, other], [other])
        assert positions == [2]
        assert gone[0] is one

    def test_one_object_at_many_places_is_taken_from_the_end(self) -> None:
        positions, gone = kept_and_discarded([U1, A1, U1, A1, U1, A1], [SUMMARY, U1, A1])
        assert positions == [None, 4, 5]
        assert len(gone) == 4

    def test_objects_at_many_places_are_taken_in_their_order(self) -> None:
        assert kept_and_discarded([A1, U1, A1, U1], [U1, A1, SUMMARY])[0] == [1, 2, None]

    @given(
        st.lists(st.sampled_from([U1, A1, U2]), max_size=8),
        st.lists(st.sampled_from([U1, A1, SUMMARY]), max_size=3),
    )
    def test_each_message_has_one_place_and_what_has_none_is_discarded(
        self, before: list[Any], made: list[Any]
    ) -> None:
        for start in range(len(before) + 1):
            after = [*made, *before[start:]]
            positions, gone = kept_and_discarded(before, after)
            places = [place for place in positions if place is not None]
            assert all(
                message is before[place]
                for message, place in zip(after, positions, strict=True)
                if place is not None
            )
            assert positions[len(made) :] == list(range(start, len(before)))
            assert len(places) == len(set(places))
            assert [
                id(message) for place, message in enumerate(before) if place not in places
            ] == list(map(id, gone))
