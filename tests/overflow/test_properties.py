"""Properties of any text: no crash, and numbers that survive how they are written."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import times
from tests.overflow.phrases import detect_text

from compacter.messages.refusals import detect_in_reply
from compacter.overflow import TokenLimit, detect_token_limit

SEPARATORS = ["", ",", ".", "_", "'", " ", "\u202f", "\u2009", "\u00a0"]
PHRASES = [
    (
        "The model's maximum context length is {limit} tokens. However, the messages "
        "resulted in {sent} tokens."
    ),
    "The prompt has {sent} tokens, which exceeds the context window of {limit} tokens.",
    "prompt is too long: {sent} tokens > {limit} maximum",
    "Context window: {limit} tokens. You sent {sent} tokens. The input is too long.",
    "input length ({sent}) exceeds the model's maximum context length ({limit})",
    "the prompt contains {sent} tokens but at most {limit} tokens are allowed",
    (
        "Limit is {limit} tokens, requested {sent} tokens: the request exceeds the "
        "model's context window"
    ),
]
PIECES = r"""
prompt input context window length tokens maximum limit exceeds too long max_tokens requested rate
per minute 8192 9000 128k 1.5M 上下文 超过 ( ) [ ] > + - , . : ; { } " ' ~ % \ \n
"""
WORDS = st.sampled_from([*PIECES.split(), "\n", "\t", "\x1b[31m", "\u0301", "\ud7ff"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text(), inner)
        | st.dictionaries(st.sampled_from(["error", "message", "code", "choices", "type"]), inner)
    ),
)


def written(value: int, separator: str) -> str:
    """A number with its thousands apart, from ten thousand on."""
    return f"{value:,}".replace(",", separator)


@given(st.text() | st.lists(WORDS, max_size=60).map(" ".join))
def test_no_text_makes_it_raise(text: str) -> None:
    for found in (detect_text(text), detect_token_limit(Exception(text))):
        assert found is None or isinstance(found, TokenLimit)


@given(JSON)
def test_no_body_and_no_reply_makes_it_raise(body: object) -> None:
    error = Exception("failed")
    error.body = body  # type: ignore[attr-defined]

    for found in (
        detect_token_limit(error),
        detect_in_reply(body),
        detect_in_reply({"error": body}),
    ):
        assert found is None or isinstance(found, TokenLimit)


@given(
    phrase=st.sampled_from(PHRASES),
    limit=st.integers(4_096, 2_000_000),
    over=st.integers(1, 3_000_000),
    separator=st.sampled_from(SEPARATORS),
)
def test_numbers_survive_their_separators(
    phrase: str, limit: int, over: int, separator: str
) -> None:
    found = detect_text(
        phrase.format(limit=written(limit, separator), sent=written(limit + over, separator))
    )

    assert found is not None
    assert (found.limit, found.requested) == (limit, limit + over)


@given(
    phrase=st.sampled_from(PHRASES),
    limit=st.integers(4_096, 900_000),
    over=st.integers(1, 99_999),
    data=st.data(),
)
def test_numbers_survive_line_wraps(
    phrase: str, limit: int, over: int, data: st.DataObject
) -> None:
    words = phrase.format(limit=limit, sent=limit + over).split(" ")
    gaps = data.draw(
        st.lists(
            st.sampled_from([" ", "\n", "\r\n   ", "\t", "  "]),
            min_size=len(words),
            max_size=len(words),
        )
    )
    text = "".join(word + gap for word, gap in zip(words, gaps, strict=True))

    found = detect_text(text)

    assert found is not None
    assert (found.limit, found.requested) == (limit, limit + over)


@given(
    phrase=st.sampled_from(PHRASES),
    thousands=st.integers(4, 900),
    over=st.integers(1, 99),
    suffix=st.sampled_from(["k", "K", " k"]),
)
def test_thousands_may_be_a_letter(phrase: str, thousands: int, over: int, suffix: str) -> None:
    found = detect_text(
        phrase.format(limit=f"{thousands}{suffix}", sent=f"~{thousands + over}{suffix}")
    )

    assert found is not None
    assert (found.limit, found.requested) == (thousands * 1000, (thousands + over) * 1000)


@given(
    phrase=st.sampled_from(PHRASES),
    limit=st.integers(4_096, 900_000),
    over=st.integers(1, 99_999),
    depth=st.integers(0, 3),
)
@settings(max_examples=times(15, long=100))
def test_numbers_survive_json_in_json(phrase: str, limit: int, over: int, depth: int) -> None:
    text = phrase.format(limit=limit, sent=limit + over)
    for _ in range(depth):
        text = json.dumps(
            {"error": {"message": text, "type": "invalid_request_error", "code": None}}
        )

    found = detect_text(text)

    assert found is not None
    assert (found.limit, found.requested) == (limit, limit + over)
