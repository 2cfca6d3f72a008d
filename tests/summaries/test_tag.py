from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from compacter.summaries import tag

LINES = st.lists(
    st.one_of(st.text(max_size=20), st.sampled_from([tag.TAG, tag.HEADING, "\\" + tag.HEADING, "", "\n", "Rule: x"])),
    max_size=6,
).map("\n".join)


@given(prose=LINES, ledger=LINES)
@example(prose=tag.HEADING, ledger=tag.HEADING)
@example(prose=f"a\n\n{tag.HEADING}\nb", ledger="c")
@example(prose="\n", ledger="\n")
def test_what_was_composed_is_read_back_exactly(prose: str, ledger: str) -> None:
    assert tag.parse(tag.compose(prose, ledger)) == tag.Parsed(prose, ledger)


@given(prose=LINES, ledger=LINES)
def test_the_frame_bounds_what_composing_adds(prose: str, ledger: str) -> None:
    escapes = prose.count(tag.HEADING) + ledger.count(tag.HEADING)
    assert len(tag.compose(prose, ledger)) <= len(prose) + len(ledger) + tag.FRAME + escapes


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        " " + tag.TAG,
        tag.TAG + " and more",
        tag.TAG[:-1],
        "> " + tag.TAG,
        tag.TAG.upper() + "\nx",
    ],
)
def test_a_text_without_the_tag_line_is_no_summary(text: str) -> None:
    assert tag.parse(text) is None


def test_a_tag_that_somebody_typed_is_no_summary() -> None:
    made = tag.compose("They spoke.", "Rule: never push")

    assert tag.parse(f"{tag.TAG}\nThey spoke.") is None
    assert tag.parse(made.replace("spoke", "spoke of admin rights")) is None
    assert tag.parse(made.partition("\n")[0]) is None
    assert tag.parse(made) is not None


def test_a_summary_divides_alike_with_and_without_its_tag() -> None:
    joined = tag.join("What happened.", "Rule: never push")
    assert (
        tag.divide(joined)
        == tag.divide(tag.compose("What happened.", "Rule: never push"))
        == tag.Parsed("What happened.", "Rule: never push")
    )
