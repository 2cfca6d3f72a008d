"""Which messages belong together: the same rules for every message format."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from tests.dialects import parts_of
from tests.effort import grows_linearly

from compacter.compaction.conversation import Conversation
from compacter.messages.parts import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.dialects import Call, Dialect, Result

    from compacter.messages.format import Message

LOOK: Call = ("c1", "look", {"at": "sky"})
SEEN: Result = ("c1", "look", "blue")


def test_thousands_of_parallel_calls_answered_in_reverse_are_paired_in_linear_time(
    dialect: Dialect,
) -> None:
    def talk(size: int) -> list[Message]:
        calls: list[Call] = [(f"c{number}", f"look{number}", {}) for number in range(size)]
        results: list[Result] = [(called, name, "blue") for called, name, _ in reversed(calls)]
        return [dialect.user("a"), *dialect.calls(calls), *dialect.results(results)]

    outline = dialect.format.outline(talk(1_000))

    assert (outline.steps, outline.broken) == ([0, 1], ())
    assert grows_linearly(dialect.format.outline, talk, 1_000)


def test_a_stray_result_does_not_part_a_call_from_its_own(dialect: Dialect) -> None:
    stray: Result = ("stray", "other", "?")
    messages = [
        *dialect.calls([LOOK]),
        *dialect.results([stray]),
        *dialect.results([SEEN]),
        dialect.user("a"),
    ]

    assert dialect.format.outline(messages).steps == [0, 3]
    assert dialect.broken(messages) == [("orphan result", dialect.key(stray))]


def test_only_genuine_user_messages_are_the_users(dialect: Dialect) -> None:
    messages = [
        dialect.user("a"),
        *dialect.calls([LOOK]),
        *dialect.results([SEEN]),
        dialect.answer("b"),
    ]
    outline = dialect.format.outline(messages)

    assert outline.kinds == [Kind.USER, Kind.ASSISTANT, Kind.RESULT, Kind.ASSISTANT]
    assert Conversation(messages, dialect.format).last_user == 0


def test_a_user_who_answers_and_speaks_keeps_results_with_their_calls(mixing: Dialect) -> None:
    assert mixing.mixed
    messages = [
        mixing.user("a"),
        *mixing.calls([LOOK]),
        mixing.mixed([SEEN], "and now?"),
        mixing.answer("b"),
    ]
    outline = mixing.format.outline(messages)

    assert outline.steps == [0, 1, 3]
    assert (outline.kinds[2], outline.broken) == (Kind.USER, ())
    assert Conversation(messages, mixing.format).last_user == 2
    assert [(entry.role, entry.kind) for entry in parts_of(mixing.format, messages[2], 2)] == [
        ("tool", "result"),
        ("user", "text"),
    ]


# Histories as they may come: whole rounds with ids that are used again, abandoned calls, results of
# nothing.
_IDS = st.lists(st.sampled_from(["c1", "c2", "c3"]), min_size=1, max_size=3, unique=True)
_EVENTS = st.one_of(
    st.tuples(st.just("user"), st.just(["x"])),
    st.tuples(st.just("answer"), st.just(["x"])),
    st.tuples(st.just("thought"), st.just(["x"])),
    st.tuples(st.just("round"), _IDS),
    st.tuples(st.just("round"), _IDS),
    st.tuples(st.just("calls"), _IDS),
    st.tuples(st.just("results"), _IDS),
    st.tuples(st.just("mixed"), _IDS),
)


def _history(
    dialect: Dialect, events: Iterable[tuple[str, list[str]]]
) -> tuple[list[Message], list[tuple[int, int]]]:
    """The messages, and the places of calls and results that belong together."""
    messages: list[Message] = []
    pairs: list[tuple[int, int]] = []
    for what, ids in events:
        start = len(messages)
        calls: list[Call] = [(i, f"tool_{i}", {"q": i}) for i in ids]
        results: list[Result] = [(i, f"tool_{i}", f"out of {i}") for i in ids]
        if what == "user":
            messages.append(dialect.user("ask"))
        elif what == "answer":
            messages.append(dialect.answer("tell"))
        elif what == "thought":
            messages += dialect.thought("hm", "tell")
        elif what == "mixed" and dialect.mixed:
            messages.append(dialect.mixed(results, "and?"))
        elif what == "results":
            messages += dialect.results(results)
        else:
            messages += dialect.calls(calls)
            middle = len(messages)
            if what == "round":
                messages += dialect.results(results)
                width = len(messages) - middle
                pairs += [
                    (start + min(n, middle - start - 1), middle + min(n, width - 1))
                    for n in range(len(ids))
                ]
    return messages, pairs


@given(events=st.lists(_EVENTS, max_size=14))
def test_steps_partition_any_history_and_part_no_pair(
    dialect: Dialect, events: list[tuple[str, list[str]]]
) -> None:
    messages, pairs = _history(dialect, events)
    outline = dialect.format.outline(messages)

    assert outline.steps == sorted(set(outline.steps))
    assert outline.steps[:1] == ([0] if messages else [])
    assert all(0 <= step < len(messages) for step in outline.steps)
    assert len(outline.kinds) == len(outline.sizes) == len(messages)
    assert not [(a, b) for a, b in pairs for step in outline.steps if a < step <= b]
    assert outline.open is None or outline.open == outline.steps[-1]
