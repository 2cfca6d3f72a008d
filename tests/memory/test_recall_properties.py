"""Whatever the history and whatever became of it: the view is what a plain comparison says
it is.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.memory.matching import Matching

from compacter.memory import InProcessMemory
from compacter.messages.format import get_format

OPENAI = get_format("openai")
SUMMARY = {"role": "user", "content": "[summary]"}
Messages = list[dict[str, Any]]

texts = st.sampled_from(["a", "b", "ab", "naïve", ""])
spoken = st.builds(
    lambda role, text: {"role": role, "content": text},
    st.sampled_from(["user", "assistant"]),
    texts,
)
systems = st.builds(lambda text: {"role": "system", "content": text}, texts)
messages = st.one_of(spoken, spoken, spoken, systems)


def is_system(message: dict[str, Any]) -> bool:
    return bool(message["role"] == "system")


@st.composite
def compactions(draw: st.DrawFn) -> tuple[Messages, set[int], int]:
    """A history, the positions of what was folded among its spoken messages, and the boundary
    behind them.
    """
    history = draw(
        st.lists(messages, min_size=3, max_size=12).filter(
            lambda found: not all(map(is_system, found))
        )
    )
    count = sum(not is_system(message) for message in history)
    first = draw(st.integers(0, min(3, count - 1)))
    more = draw(st.sets(st.integers(first, count - 1)))
    folded = {first, *more}
    return history, folded, max(folded) + 1


@st.composite
def continuations(draw: st.DrawFn, history: Messages) -> Messages:
    """The history resent: continued, forked, shortened, edited, under other system messages, as
    copies.
    """
    later = list(history)
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(later)))
        before, after = later[:place], later[place:]
        new = draw(st.lists(messages, min_size=1, max_size=3))
        marked = [{**message, "cache_control": {"type": "ephemeral"}} for message in before]
        later = draw(
            st.sampled_from(
                [
                    [*later, *new],
                    [*before, *new],
                    before,
                    [*before, *new[:1], *after[1:]],
                    [*before, *new[:1], *after],
                    [*before, *after[1:]],
                    [*marked, *after],
                    copy.deepcopy(later),
                ]
            )
        )
    return later


def in_order(view: Messages | None) -> tuple[Messages, Messages] | None:
    """The spoken messages of a view, and the system messages, which may be elsewhere between them
    than before.
    """
    if view is None:
        return None
    spoken = [message for message in view if not is_system(message)]
    return spoken, [message for message in view if is_system(message)]


def compacted(history: Messages, folded: set[int], boundary: int) -> Messages:
    """The plain model of a view: the summary behind the system prompt, the folded messages left
    out.
    """
    lead = next(
        (index for index, message in enumerate(history) if not is_system(message)), len(history)
    )
    view = [*history[:lead], SUMMARY]
    position = 0
    for message in history[lead:]:
        if is_system(message) or position not in folded or position >= boundary:
            view.append(message)
        position += not is_system(message)
    return view


def expected(
    history: Messages, later: Messages, folded: set[int], boundary: int
) -> Messages | None:
    """The plain model of recognition: compare the contents of what was folded, one by one."""
    old, new = (
        [message for message in each if not is_system(message)] for each in (history, later)
    )
    if len(new) < boundary:
        return None
    if any(old[place]["role"] != new[place]["role"] for place in folded):
        return None
    if any(old[place]["content"] != new[place]["content"] for place in folded):
        return None
    users = [place for place, message in enumerate(new) if message["role"] == "user"]
    if users and users[-1] in folded:
        return None
    view = compacted(later, folded, boundary)
    said = [message["role"] for message in view if not is_system(message)]
    if len(new) == boundary and said[-1] == "assistant" != new[-1]["role"]:
        return None
    return view


@given(st.data(), compactions())
def test_the_view_is_what_comparing_contents_says(
    data: st.DataObject, compaction: tuple[Messages, set[int], int]
) -> None:
    history, folded, boundary = compaction
    memory = InProcessMemory()
    recall = Matching(memory)
    view = compacted(history, folded, boundary)
    recall.remember("scope", OPENAI, history, view)
    assert recall.view("scope", OPENAI, history) in (view, None)
    for _ in range(3):
        later = data.draw(continuations(history))
        untouched = copy.deepcopy(later)
        wanted = expected(history, later, folded, boundary)
        for matcher in recall, Matching(memory):
            assert in_order(matcher.view("scope", OPENAI, later)) == in_order(wanted)
        assert later == untouched
