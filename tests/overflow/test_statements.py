"""Statements of a message beside the phrase that decides: statuses, advice, other numbers, lists of
reasons.
"""

from __future__ import annotations

import pytest
from tests.overflow.phrases import detect_text

from compacter.overflow import detect_token_limit, explain

CLEAR = "The prompt exceeds the context window"
LIKELY = "The prompt is too long"


class CarryingError(Exception):
    """An error with a cause that carries another exception as well."""

    def __init__(self, cause: Exception, carried: Exception) -> None:
        super().__init__("no reply")
        self.__cause__ = cause
        self.original_exception = carried


@pytest.mark.parametrize(
    "status", [401, 402, 403, 404, 405, 407, 408, 409, 429, 502, 503, 504, 529]
)
class TestAStatusOfAnotherKind:
    def test_is_believed_unless_both_numbers_are_stated(self, status: int) -> None:
        assert explain(f"{CLEAR} of 8192 tokens.", status=status).kind == "other error"

    def test_may_pass_a_token_limit_on(self, status: int) -> None:
        found = detect_text("The prompt is too long: 9000 tokens > 8192 maximum", status=status)

        assert found is not None
        assert (found.limit, found.requested) == (8192, 9000)


@pytest.mark.parametrize(
    "status", [200, 400, 406, 410, 413, 422, 428, 430, 500, 501, 505, 528, 530]
)
def test_any_other_status_leaves_it_to_the_text(status: int) -> None:
    assert explain(f"{CLEAR}.", status=status).kind == "token limit"


def test_advice_about_the_output_does_not_hide_what_was_said_of_the_prompt() -> None:
    assert explain(f"{LIKELY}. The max_tokens limit is 4096.").kind == "token limit"


def test_the_first_piece_of_advice_is_the_statement() -> None:
    assert explain("Please shorten the prompt. Then, please reduce the messages.").statement == (
        "please shorten the prompt."
    )


def test_the_numbers_beside_the_first_piece_of_advice_come_first() -> None:
    found = detect_text(
        "The limit is 8192. Please shorten the prompt. We mean it. Really. Do it. "
        "Please reduce the messages. "
        "The limit is 4096."
    )

    assert found is not None
    assert found.limit == 8192


def test_two_bare_numbers_in_brackets_are_sizes_even_where_one_looks_like_a_status() -> None:
    found = detect_text("The context window is exceeded (256 and 512).")

    assert found is not None
    assert (found.limit, found.requested) == (256, 512)


@pytest.mark.parametrize("term", ["3.5", "12:30"])
@pytest.mark.parametrize("sum_", ["9000 tokens + {} > 8192", "{} > 8192 - 5000"])
def test_a_sum_with_a_term_that_is_no_count_leaves_the_other_numbers_readable(
    sum_: str, term: str
) -> None:
    found = detect_text(f"{CLEAR}: {sum_.format(term)}.")

    assert found is not None
    assert found.limit == 8192


def test_the_names_of_a_sum_are_the_nearest_ones_before_it() -> None:
    aside = (
        "The caller left max_tokens at its default, and the reader of this long "
        "message may wonder what that is. "
    )
    found = detect_text(
        f"{aside * 2}The prompt and the completion exceed the context window: 7000 + 2000 > 8192."
    )

    assert found is not None
    assert (found.input_tokens, found.output_tokens) == (7000, 2000)


def test_a_reason_that_says_nothing_does_not_hide_the_next_one() -> None:
    error = CarryingError(
        KeyError("choices"), RuntimeError("prompt is too long: 9000 tokens > 8192 maximum")
    )

    found = detect_token_limit(error)

    assert found is not None
    assert (found.limit, found.requested) == (8192, 9000)


def test_the_first_reason_that_says_something_decides() -> None:
    refused = RuntimeError("prompt is too long: 9000 tokens > 8192 maximum")
    error = CarryingError(RuntimeError("Rate limit exceeded"), refused)

    assert detect_token_limit(error) is None


ELSEWHERE = "The limit: 4096 tokens."
STATEMENT = (
    "The prompt exceeds the context window, whose limit, as the manual says in "
    "many words, is 8192 tokens."
)


@pytest.mark.parametrize(
    "text",
    [
        f"{ELSEWHERE} That was yesterday. It was tried again. {STATEMENT}",
        f"Try one. Try two. Try three. {STATEMENT} That is all. Nothing was sent. {ELSEWHERE}",
        f"{STATEMENT} That is all. Nothing was sent. {ELSEWHERE}",
    ],
)
def test_a_number_further_off_gives_way_however_plain_its_words(text: str) -> None:
    found = detect_text(text)

    assert found is not None
    assert found.limit == 8192
