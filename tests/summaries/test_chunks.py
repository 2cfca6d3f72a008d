from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter.messages.parts import Entry
from compacter.summaries import chunks, transcript

PART = re.compile(r"^\(part \d+ of \d+\) ")
TEXTS = st.text(st.sampled_from("ab \n\r\u0301\u200d😀👍🏽🇩🇪日e"), max_size=900)
ENTRIES = st.lists(
    st.builds(
        lambda kind, text, index: Entry("tool" if kind == "result" else "assistant", kind, text, "tool", index),
        st.sampled_from(["text", "call", "result"]),
        TEXTS,
        st.integers(0, 9),
    ),
    max_size=8,
)


@given(entries=ENTRIES, budget=st.integers(chunks.SMALLEST, 1200))
def test_chunks_fit_their_budget_and_leave_nothing_out(entries: list[Entry], budget: int) -> None:
    split = chunks.split(entries, budget)
    assert all(len(transcript.render(chunk)) <= budget for chunk in split)
    assert "".join(PART.sub("", entry.text) for chunk in split for entry in chunk) == "".join(e.text for e in entries)


def test_what_fits_is_one_chunk_as_it_was() -> None:
    entries = (Entry("user", "text", "a"), Entry("assistant", "text", "b"))
    assert chunks.split(entries, 500) == (entries,)


def test_nothing_gives_no_chunk() -> None:
    assert chunks.split((), 500) == ()


def test_an_oversized_entry_is_cut_into_labelled_parts() -> None:
    split = chunks.split([Entry("user", "text", "word " * 400)], 600)
    texts = [entry.text for chunk in split for entry in chunk]
    assert [text.split(")")[0] + ")" for text in texts] == [
        f"(part {n} of {len(texts)})" for n in range(1, len(texts) + 1)
    ]
    assert len(texts) == 4


def test_calls_stay_with_their_results_where_both_fit() -> None:
    filler = Entry("user", "text", "x" * 300)
    pair = (Entry("assistant", "call", "c" * 90, "tool"), Entry("tool", "result", "r" * 90, "tool"))
    assert chunks.split([filler, *pair, filler], 500) == ((filler,), pair, (filler,))


@pytest.mark.parametrize(
    ("text", "torn"),
    [
        ("e\u0301" * 800, "\u0301"),
        ("👍🏽" * 800, "🏽"),
        ("🇩🇪" * 800, None),
        ("\r\n" * 800, "\n"),
        ("👩\u200d💻" * 500, "\u200d"),
    ],
)
def test_no_part_begins_inside_a_character(text: str, torn: str | None) -> None:
    parts = [PART.sub("", entry.text) for chunk in chunks.split([Entry("user", "text", text)], 500) for entry in chunk]
    assert len(parts) > 1
    for part in parts:
        assert torn is None or not part.startswith(torn)
        assert not unicodedata.category(part[0]).startswith("M")
        if torn is None:
            assert len(part) % 2 == 0


def test_a_pile_of_marks_larger_than_a_chunk_is_cut_all_the_same() -> None:
    text = "e" + "\u0301" * 3000
    split = chunks.split([Entry("user", "text", text)], 400)
    assert "".join(PART.sub("", entry.text) for chunk in split for entry in chunk) == text


def test_a_budget_that_holds_no_part_is_an_error() -> None:
    with pytest.raises(ValueError, match="at least 256 characters, not 10"):
        chunks.split([Entry("user", "text", "a")], 10)
