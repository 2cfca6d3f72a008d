"""Putting a compacted list together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compaction.conftest import refused

from compacter import Compacter
from compacter.compaction.calibration import Calibration
from compacter.compaction.check import check
from compacter.compaction.conversation import Conversation
from compacter.messages.format import FILLERS, FORMATS, FormatName, get_format
from compacter.testing import ScriptedModel, ScriptedSummarizer

OPENAI = get_format("openai")
USER, ASSISTANT = ({"role": role, "content": text} for role, text in FILLERS.items())


def say(role: str, text: str = "x") -> dict[str, Any]:
    return {"role": role, "content": text}


S, U1, A1, U2, A2, U3 = (
    say(r, str(n))
    for n, r in enumerate(["system", "user", "assistant", "user", "assistant", "user"])
)
TALK = [S, U1, A1, U2, A2, U3]
SUMMARY = say("user", "summary")
SEEN = {"role": "tool", "tool_call_id": "c", "content": "seen"}


@pytest.mark.parametrize(
    ("messages", "given", "out"),
    [
        (TALK, [S, SUMMARY, A2, U3], [S, SUMMARY, A2, U3]),
        (TALK, [S, SUMMARY, U2, A2, U3], [S, SUMMARY, ASSISTANT, U2, A2, U3]),
        (TALK, [S, SUMMARY, A1, A2, U3], [S, SUMMARY, A1, USER, A2, U3]),
        (TALK[1:], [SUMMARY, U3], [SUMMARY, ASSISTANT, U3]),
        # what was, may be
        ([U1, U2, A1, U3], [SUMMARY, U1, U2, U3], [SUMMARY, ASSISTANT, U1, U2, ASSISTANT, U3]),
        # also with instructions between
        ([U1, A1, U2, S, U3], [SUMMARY, U2, S, U3], [SUMMARY, ASSISTANT, U2, S, U3]),
        # results of calls that are lost
        ([U1, SEEN, A1, SEEN, U3], [SUMMARY, SEEN, SEEN, U3], [SUMMARY, SEEN, SEEN, U3]),
        # a filler opens where the user was first
        (TALK, [S, A1, U2, U3], [S, USER, A1, U2, ASSISTANT, U3]),
        ([A1, U1, A2, U2], [A1, U1, U2], [A1, U1, ASSISTANT, U2]),
        (TALK, [S, U2, A2], [S, U2, A2]),
    ],
)
def test_where_roles_alternate_fillers_are_added_to_what_a_strategy_returns(
    messages: list[Any], given: list[Any], out: list[Any]
) -> None:
    conversation = Conversation(messages, OPENAI)

    assert list(check(conversation, given, alternate=True)[0].messages) == out
    assert list(check(conversation, given, alternate=False)[0].messages) == given


@pytest.mark.parametrize(
    ("messages", "cut", "out"),
    [
        (TALK, 4, [S, SUMMARY, A2, U3]),
        # after the whole prefix
        ([S, S, U1, A1, S, U2], 4, [S, S, SUMMARY, S, U2]),
        ([U1, S, A1, U2], 3, [SUMMARY, S, U2]),  # in the middle it stays where it was
    ],
)
def test_the_summary_has_its_place(messages: list[Any], cut: int, out: list[Any]) -> None:
    calibration = Calibration()
    conversation = Conversation(messages, OPENAI)
    work = refused(conversation=conversation, cut=cut, trigger="manual", calibration=calibration)
    made = work.replace_head("summary")

    at = out.index(SUMMARY)
    assert [*made[:at], *made[at + 1 :]] == [*out[:at], *out[at + 1 :]]
    assert made[at]["content"].endswith("summary")


def test_a_summarizer_and_quotes_never_show_a_filler() -> None:
    summarizer = ScriptedSummarizer("They spoke of harbours.")
    model = ScriptedModel(
        window=1_500, replies=[{"content": [{"type": "text", "text": "Three ships."}]}] * 120
    )
    chat = Compacter(summarizer=summarizer, recall=200).wrap(
        model.completion, wire_format="anthropic"
    )
    history: list[Any] = []
    for day in range(90):
        history.append(
            say(
                "user",
                (f"Question {day}: what came into the harbour on day {day}, and who carried it?"),
            )
        )
        chat("m", history)
        history.append({"role": "assistant", "content": [{"type": "text", "text": "Three ships."}]})
    assert len(summarizer.prompts) >= 2
    assert FILLERS["assistant"] not in "".join(summarizer.prompts)
    read = [message["content"] for request in model.requests for message in request.messages]
    assert not any(FILLERS["assistant"] in str(content) for content in read)


@pytest.mark.parametrize("form", FORMATS)
@given(data=st.data())
def test_kept_messages_are_the_same_objects_in_order_and_turns_alternate(
    form: FormatName, data: st.DataObject
) -> None:
    shape = get_format(form)
    count = data.draw(st.integers(1, 12))
    messages = [
        shape.say("assistant" if number % 2 else "user", str(number)) for number in range(count)
    ]
    keep = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))

    given = [shape.say("user", "summary"), *(messages[index] for index in keep)]
    out = check(Conversation(messages, shape), given, alternate=True)[0].messages

    kept = [item for item in out if any(item is one for one in messages)]
    assert all(one is messages[index] for one, index in zip(kept, keep, strict=True))
    roles = [shape.speaker(item) for item in out]
    assert roles[0] == "user"
    assert all(one != other for one, other in pairwise(roles))
