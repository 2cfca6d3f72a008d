"""Histories of every shape that a provider takes, made up at random."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st

Chat = dict[str, Any]

WORDS = (
    "ship",
    "harbour",
    "née",
    "雨",
    "🚢",
    "0x7f",
    "/srv/a.txt",
    "never",
    "42 km",
    "\n",
    "</transcript>",
    '{"a": 1}',
)
IDS = ("call_1", "call_2", "call_3", "toolu_9")

texts = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join).filter(str.strip)
contents = st.one_of(
    texts, st.lists(texts.map(lambda text: {"type": "text", "text": text}), min_size=1, max_size=3)
)


def said(role: str) -> st.SearchStrategy[list[Chat]]:
    return contents.map(lambda content: [{"role": role, "content": content}])


@st.composite
def errands(draw: st.DrawFn) -> list[Chat]:
    """An assistant message with calls, and their results in any order; ids come again in later
    steps.
    """
    ids = draw(st.lists(st.sampled_from(IDS), min_size=1, max_size=3, unique=True))
    calls = [
        {"id": name, "type": "function", "function": {"name": "look", "arguments": draw(texts)}}
        for name in ids
    ]
    results = [
        {"role": "tool", "tool_call_id": name, "content": draw(texts)}
        for name in draw(st.permutations(ids))
    ]
    return [
        {"role": "assistant", "content": draw(st.none() | texts), "tool_calls": calls},
        *results,
    ]


@st.composite
def chats(draw: st.DrawFn) -> list[Chat]:
    """A list that OpenAI's rules accept: system messages anywhere, perhaps a tool result at its
    end.
    """
    prefix = draw(st.lists(said("system"), max_size=2))
    steps = draw(
        st.lists(
            st.one_of(
                said("user"), said("assistant"), errands(), said("user"), errands(), said("system")
            ),
            min_size=1,
            max_size=24,
        )
    )
    return [message for step in (*prefix, *steps) for message in step]


@st.composite
def dialogues(draw: st.DrawFn) -> list[Chat]:
    """A list in which user and assistant take strict turns; tool steps count as the assistant's."""
    history = list(draw(st.just([]) | said("system")))
    for _ in range(draw(st.integers(1, 12))):
        history += draw(said("user")) + draw(st.one_of(said("assistant"), errands()))
    return [*history, *draw(said("user"))] if history[-1]["role"] == "assistant" else history


@pytest.fixture(scope="session")
def any_chat() -> st.SearchStrategy[list[Chat]]:
    """Any list that is valid."""
    return chats()


@pytest.fixture(scope="session")
def any_dialogue() -> st.SearchStrategy[list[Chat]]:
    """Any list with strict turns."""
    return dialogues()
