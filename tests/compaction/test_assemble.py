"""Putting a compacted list together."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter import Compacter
from compacter.compaction.change import assemble
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
    ("messages", "keep", "alternate", "out"),
    [
        (TALK, [0, 4, 5], False, [S, SUMMARY, A2, U3]),
        (TALK, [0, 3, 4, 5], False, [S, SUMMARY, U2, A2, U3]),
        (TALK, [0, 3, 4, 5], True, [S, SUMMARY, ASSISTANT, U2, A2, U3]),
        (TALK, [0, 2, 4, 5], True, [S, SUMMARY, A1, USER, A2, U3]),
        (TALK[1:], [4], True, [SUMMARY, ASSISTANT, U3]),
        # after the whole prefix
        ([S, S, U1, A1, S, U2], [0, 1, 4, 5], False, [S, S, SUMMARY, S, U2]),
        ([U1, S, A1, U2], [1, 3], False, [SUMMARY, S, U2]),  # in the middle it stays where it was
        # what was, may be
        ([U1, U2, A1, U3], [0, 1, 3], True, [SUMMARY, ASSISTANT, U1, U2, ASSISTANT, U3]),
        # also with instructions between
        ([U1, A1, U2, S, U3], [2, 3, 4], True, [SUMMARY, ASSISTANT, U2, S, U3]),
        # results of calls that are lost
        ([U1, SEEN, A1, SEEN, U3], [1, 3, 4], True, [SUMMARY, SEEN, SEEN, U3]),
    ],
)
def test_the_summary_has_its_place_and_turns_alternate(
    messages: list[Any], keep: list[int], alternate: bool, out: list[Any]
) -> None:
    assert assemble(Conversation.of(messages, OPENAI), keep, SUMMARY, alternate=alternate) == out


def test_without_a_summary_a_filler_opens_where_the_user_was_first() -> None:
    assert assemble(Conversation.of(TALK, OPENAI), [0, 2, 3], None, alternate=True) == [
        S,
        USER,
        A1,
        U2,
    ]
    assert assemble(Conversation.of([A1, U1, A2], OPENAI), [0, 1], None, alternate=True) == [A1, U1]
    assert assemble(Conversation.of(TALK, OPENAI), [0, 3, 4], None, alternate=True) == [S, U2, A2]


@pytest.mark.parametrize("form", FORMATS)
def test_nobody_reads_fillers_as_if_they_had_been_said(form: FormatName) -> None:
    wire = get_format(form)
    for role in FILLERS:
        assert list(wire.parts(wire.filler(role), 0)) == []


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
    assert any(FILLERS["assistant"] in str(content) for content in read)
    assert not any("Assistant: [compacter]" in str(content) for content in read)


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

    out = assemble(
        Conversation.of(messages, shape), keep, shape.say("user", "summary"), alternate=True
    )

    kept = [item for item in out if any(item is one for one in messages)]
    assert all(one is messages[index] for one, index in zip(kept, keep, strict=True))
    roles = [shape.speaker(item) for item in out]
    assert roles[0] == "user"
    assert all(one != other for one, other in pairwise(roles))
