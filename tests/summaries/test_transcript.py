from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compacter.messages.parts import Entry, PartKind, Speaker
from compacter.summaries import transcript

BREAKS = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"]
HOSTILE = st.lists(
    st.sampled_from([*BREAKS, "<", "/", ">", "|", "transcript", "user: ", "im_end", "[INST]", "x", " "])
).map("".join)


def entry(text: str, role: Speaker = "user", kind: PartKind = "text", name: str = "") -> Entry:
    return Entry(role, kind, text, name)


def test_each_entry_is_headed_by_its_speaker() -> None:
    entries = [
        entry("Hello"),
        entry('{"q": 1}', "assistant", "call", "look_up"),
        entry("found", "tool", "result", "look_up"),
        entry("[image/png]", "user", "media"),
        entry("what came before", "assistant", "summary"),
        entry("done", "tool", "result"),
    ]
    assert transcript.render(entries).splitlines() == [
        "<transcript>",
        "user: Hello",
        'call look_up: {"q": 1}',
        "result look_up: found",
        "user: [image/png]",
        "summary: what came before",
        "result: done",
        "</transcript>",
    ]


@given(st.lists(st.tuples(HOSTILE, HOSTILE), max_size=5))
def test_no_content_can_begin_a_line_of_its_own(pairs: list[tuple[str, str]]) -> None:
    entries = [entry(text, "tool", "result", name) for text, name in pairs]
    lines = transcript.render(entries).splitlines()
    at_the_margin = [line for line in lines if not line.startswith(" ")]
    assert at_the_margin[0] == transcript.OPEN
    assert at_the_margin[-1] == transcript.CLOSE
    assert len(at_the_margin) == len(entries) + 2
    assert all(line.startswith("result") for line in at_the_margin[1:-1])


@given(HOSTILE)
def test_no_content_can_spell_the_fence(text: str) -> None:
    inside = transcript.render([entry(text)]).removeprefix(transcript.OPEN).removesuffix(transcript.CLOSE)
    assert "<transcript>" not in inside.lower()
    assert "</transcript>" not in inside.lower()


@pytest.mark.parametrize(
    "token", ["<|im_start|>", "<|eot_id|>", "<｜User｜>", "</s>", "<end_of_turn>", "[/INST]", "<<SYS>>"]
)
def test_control_tokens_of_chat_templates_are_broken_up(token: str) -> None:
    assert token not in transcript.render([entry(f"before {token} after")])


def test_ordinary_text_is_left_as_it_is() -> None:
    text = "if a < b and c > d: print('<b>')  # [x] {y} | 日本語 😀"
    assert transcript.neutral(text) == text


def test_a_speaker_costs_a_few_characters() -> None:
    assert len(transcript.line(entry("x" * 100, "assistant"))) <= 100 + 12
