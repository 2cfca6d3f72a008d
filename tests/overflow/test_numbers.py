"""Which numbers of a text count tokens, and which of them is the limit."""

from __future__ import annotations

import pytest
from tests.overflow.phrases import detect_text

from compacter.overflow import TokenLimit
from compacter.overflow.numbers import measure, token_counts
from compacter.overflow.table import default_table
from compacter.overflow.text import normalise

TABLE = default_table()


def counts(text: str, codes: frozenset[str] = frozenset()) -> list[int]:
    return [number.value for number in token_counts(normalise(text), TABLE, codes)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("8192", [8192]),
        ("8,192 8.192 8_192 8'192", [8192, 8192, 8192, 8192]),
        ("1,048,576 1.048.576 1 048 576", [1048576, 1048576, 1048576]),
        ("10,48,576", [1048576]),
        ("128k 128 K 1.2M 1.25k", [128000, 128000, 1200000, 1250]),
        ("3万 2万 5만", [30000, 20000, 50000]),
        ("128 thousand, 2 million, 8 тыс, 1 млн", [128000, 2000000, 8000, 1000000]),
        ("9000.0", [9000]),
        ("0.25k", [250]),
        ("9000tok", [9000]),
        ("9000-token", [9000]),
        ("~9000 tokens", [9000]),
        ("(9000)", []),
        ("(9000) 8192", [9000, 8192]),
    ],
)
def test_a_number_is_read_however_it_is_written(text: str, values: list[int]) -> None:
    assert counts(text) == values


@pytest.mark.parametrize(
    "text",
    [
        "gpt-4-32768 llama-8192-v2 v8192 model8192 8192b",
        "2026-03-04 11:22:33 12.5.8192 1.5",
        "98.5% 50%",
        "<400>",
        "[429]",
        "(503)",
        "status 8192 code: 8192 error=8192 line 8192 port:8192 attempt 8192 id 8192",
        "exceeded by 8192, by about 8192, by at least 8192 tokens, um 8192, por 8192",
        "8192 tokens over, 8192 tokens too many, 8192 tokens longer",
        (
            "8192 seconds 8192 ms 8192 bytes 8192 kb 8192 characters 8192 images 8192 "
            "messages 8192 times 8192 percent"
        ),
        "8192 字符 8192 秒 8192 символов 8192 Zeichen 8192 caractères",
    ],
)
def test_a_number_that_counts_something_else_is_left_out(text: str) -> None:
    assert counts(text) == []


def test_the_codes_of_the_error_are_no_counts_unless_tokens_follow() -> None:
    assert counts("9500 of 8192", frozenset({"9500"})) == [8192]
    assert counts("9500 tokens of 8192", frozenset({"9500"})) == [9500, 8192]


def test_the_lower_end_of_a_range_is_no_count() -> None:
    assert counts("[100, 8192]") == [8192]
    assert counts("(100, 8192)") == [8192]


@pytest.mark.parametrize(
    ("text", "values"), [("limit (512) 600", [512, 600]), ("failed (512) 600", [600])]
)
def test_a_number_like_a_status_in_brackets_counts_where_a_word_claims_it(
    text: str, values: list[int]
) -> None:
    assert counts(text) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("400 the prompt is too long", []),
        ("the call failed: 413 - the prompt is too long", []),
        ("(500 in the messages, 512 in the completion)", [500, 512]),
        ("500 in your prompt; 512 for the completion", [500, 512]),
        ("prompt 500 + completion 512 exceeds", [500, 512]),
    ],
)
def test_a_status_stands_only_at_the_beginning_of_a_statement(text: str, values: list[int]) -> None:
    assert counts(text) == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("exceeds limit (2013)", []),
        ("exceeds limit (9999)", []),
        ("exceeds limit (10000)", [10000]),
        ("exceeds limit 9000 (2013)", [9000, 2013]),
    ],
)
def test_a_lone_small_number_in_brackets_is_the_providers_code(
    text: str, values: list[int]
) -> None:
    assert counts(text) == values


def test_a_dump_of_numbers_is_not_read_to_its_end() -> None:
    assert len(counts("9000 tokens, " * 500)) == 200


@pytest.mark.parametrize(
    ("text", "limit", "requested"),
    [
        ("The context window is exceeded: 9000 and 8192", 8192, 9000),
        ("The context window is exceeded: 8192 and 9000", 8192, 9000),
        ("The context window is exceeded: 9000, 8192 and 7000", None, None),
        ("The context window is exceeded: 15 and 8192", None, None),
        ("The context window is exceeded: 64 and 8192", 64, 8192),
        ("The context window of 8192 is exceeded: requested 5", 8192, None),
        ("The context window of 8192 is exceeded: prompt 5", 8192, None),
        ("The context window is exceeded: a limit of 8192, and 9000", 8192, 9000),
        ("The context window is exceeded: a limit of 8192, and 7000", 8192, None),
        ("The context window is exceeded: a limit of 8192, and 8192", 8192, None),
        ("The context window is exceeded: requested 9000, and 8192", 8192, 9000),
        ("The context window is exceeded: requested 9000, and 9500", None, 9000),
        ("The context window is exceeded: requested 9000, and 8192, and 7000", None, 9000),
    ],
)
def test_a_number_without_a_word_takes_the_role_that_is_left_if_it_fits(
    text: str, limit: int | None, requested: int | None
) -> None:
    found = detect_text(text)

    assert found is not None
    assert (found.limit, found.requested) == (limit, requested)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prompt tokens 9000 > 8192", TokenLimit(8192, 9000)),
        ("9000 / 8192 tokens", TokenLimit(8192, 9000)),
        ("9000 of 8192 tokens", TokenLimit(8192, 9000)),
        ("7000 / 8192 tokens", TokenLimit(None, 7000)),
        (
            "prompt and max_tokens: 5000 + 4000 > 8192",
            TokenLimit(8192, 9000, "input_plus_output", 5000, 4000),
        ),
        (
            "5000 + 4000 = 9000 exceeds 8192",
            TokenLimit(8192, 9000, "input_plus_output", 5000, 4000),
        ),
        ("4000 > 8192 - 5000", TokenLimit(8192, 9000, "input_plus_output", 5000, 4000)),
    ],
)
def test_arithmetic_says_it_all(text: str, expected: TokenLimit) -> None:
    assert measure(text, TABLE, guess=False) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "input 5000, output 4000, limit 8192",
            TokenLimit(8192, 9000, "input_plus_output", 5000, 4000),
        ),
        ("input 5000, output 0, limit 4096", TokenLimit(4096, 5000, "input", 5000, 0)),
        (
            "total 9000, input 5000, output 4000",
            TokenLimit(None, 9000, "input_plus_output", 5000, 4000),
        ),
        ("total 9000, output 4000", TokenLimit(None, 9000, "input_plus_output", None, 4000)),
        (
            "sent 5000, input 5000, output 4000, limit 8192",
            TokenLimit(8192, 9000, "input_plus_output", 5000, 4000),
        ),
        (
            "requested 9000, input 9000, output 10, limit 8192",
            TokenLimit(8192, 9000, "input_plus_output", 9000, 10),
        ),
        ("limit 8192, input 9000 in the messages", TokenLimit(8192, 9000)),
        ("output 4000", TokenLimit(None, None, "input_plus_output", None, 4000)),
        ("requested 9000, input 7000", TokenLimit(None, 9000)),
    ],
)
def test_the_parts_of_a_total_are_told_apart(text: str, expected: TokenLimit) -> None:
    assert measure(text, TABLE) == expected


def test_a_total_that_counts_the_output_gives_the_input_as_the_rest() -> None:
    expected = TokenLimit(None, 9000, "input_plus_output", 5000, 4000)

    assert measure("total 9000, output 4000", TABLE, counted=True) == expected
    assert measure("total 4000, output 4000", TABLE, counted=True).input_tokens is None


def test_where_the_output_is_counted_without_a_number_the_input_is_the_total() -> None:
    assert measure("input 9000", TABLE, counted=True) == TokenLimit(None, 9000, "input_plus_output")
    assert measure("requested 9000, input 7000", TABLE, counted=True) == TokenLimit(
        None, 9000, "input_plus_output", 7000
    )


def test_a_number_in_the_deciding_sentences_comes_before_another() -> None:
    text = "limit 8192 tokens. elsewhere a limit 4096 tokens"

    assert measure(text, TABLE, near=(0, 18)).limit == 8192
    assert measure(text, TABLE, near=(19, len(text))).limit == 4096
    assert measure(text, TABLE).limit == 4096


def test_a_loose_number_outside_the_deciding_sentences_is_not_taken() -> None:
    text = "limit 8192. and later 9000"

    assert measure(text, TABLE, near=(0, 10)).requested is None
    assert measure(text, TABLE, near=(0, len(text))).requested == 9000


def test_a_word_beside_its_number_comes_before_a_distant_one() -> None:
    assert (
        measure("limit: 8192, then the limit that somebody once wrote down as 4096", TABLE).limit
        == 8192
    )


def test_a_word_speaks_for_eighty_characters_and_not_further() -> None:
    assert measure("limit" + " x" * 37 + " 8192", TABLE, guess=False).limit == 8192
    assert measure("limit" + " x" * 41 + " 8192", TABLE, guess=False).limit is None


@pytest.mark.parametrize("output", [400, 500, 512, 599, 600])
def test_an_output_limit_is_read_whatever_its_size(output: int) -> None:
    found = detect_text(
        f"This model's maximum context length is 8192 tokens. However, you requested "
        f"{8000 + output} tokens "
        f"(8000 in the messages, {output} in the completion)."
    )

    assert found is not None
    assert (found.kind, found.input_tokens, found.output_tokens) == (
        "input_plus_output",
        8000,
        output,
    )


AT_LEAST = "This model's maximum context length is 8192 tokens. However, you requested "


@pytest.mark.parametrize(
    ("text", "is_bound"),
    [
        (AT_LEAST + "2048 output tokens and your prompt contains at least 7000 input tokens", True),
        (AT_LEAST + "at least 9000 tokens", True),
        (AT_LEAST + "up to 9000 tokens", True),
        ("The prompt has more than 9000 tokens, the context window holds 8192.", True),
        ("The prompt has over 9000 tokens, the context window holds 8192.", True),
        (AT_LEAST + "8193 tokens (6145 in the messages, 2048 in the completion)", True),
        (AT_LEAST + "8192 tokens (6144 in the messages, 2048 in the completion)", True),
        (AT_LEAST + "8194 tokens (6146 in the messages, 2048 in the completion)", False),
        (AT_LEAST + "about 9000 tokens", False),
        ("The prompt has 9000 tokens, more than the limit of 8192.", False),
        ("The prompt has 9000 tokens, and the limit is up to 8192.", False),
        ("The prompt exceeds the context window of at least 8192 tokens.", False),
    ],
)
def test_a_size_that_is_only_a_bound_is_marked_as_one(text: str, is_bound: bool) -> None:
    """A size "at least" so large is a bound, and so is the limit or one token more: a server that
    stops counting states no other size.
    """
    limit = detect_text(text)

    assert limit is not None
    assert limit.is_bound is is_bound


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("limit 8192, requested 9100 (6000 of text, 1100 of tools, 2000 for the output)", 7100),
        ("limit 8192: 6000 in the messages, 2000 in the completion", 6000),
    ],
)
def test_all_that_is_not_output_is_input(text: str, parts: int) -> None:
    """A provider may count text, tools and pictures apart."""
    limit = measure(text, TABLE)

    assert (limit.limit, limit.requested) == (8192, parts + 2000)
    assert (limit.input_tokens, limit.output_tokens) == (parts, 2000)


@pytest.mark.parametrize(
    ("text", "limit", "requested"),
    [
        ("The chat got bigger than the head of our model: 9300 tokens, it keeps 8192", 8192, 9300),
        ("Input prompt (2716 tokens) is too long and exceeds limit of 4096", None, None),
    ],
)
def test_no_request_is_smaller_than_the_limit_that_it_exceeds(
    text: str, limit: int | None, requested: int | None
) -> None:
    """Such a pair is swapped if the limit has no word beside it, else dropped."""
    stated = detect_text(text)

    assert stated is not None
    assert (stated.limit, stated.requested) == (limit, requested)
