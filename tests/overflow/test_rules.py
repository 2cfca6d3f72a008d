"""Verdicts on sentences, codes, classes and statuses together."""

from __future__ import annotations

import pytest
from tests.overflow.phrases import detect_text

from compacter.overflow import TokenLimit, detect_token_limit, explain
from compacter.overflow.detect import judge
from compacter.overflow.signals import Signals
from compacter.overflow.table import default_table

CLEAR = "The prompt exceeds the context window."
LIKELY = "The prompt is too long."
RATE = "The rate limit was exceeded."
THING = "String too long."


def named(name: str, text: str = "", module: str = "sdk", **attributes: object) -> Exception:
    error: Exception = type(name, (Exception,), {"__module__": module})(text)
    for key, value in attributes.items():
        setattr(error, key, value)
    return error


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{CLEAR} {RATE}", "token limit"),
        (f"{CLEAR} It was truncated.", "other error"),
        (f"{RATE} {CLEAR}", "token limit"),
        (f"{RATE} {LIKELY}", "token limit"),
        (f"{LIKELY} {RATE}", "token limit"),
        (f"{CLEAR} {THING}", "token limit"),
        (f"{THING} {CLEAR}", "token limit"),
        (f"{LIKELY} {THING}", "nothing"),
        (f"{THING} {LIKELY}", "nothing"),
        (f"{LIKELY} The description must not exceed 5000 characters.", "nothing"),
        (f"{LIKELY} It took 5 seconds.", "token limit"),
        (f"{LIKELY} max_tokens exceeds the token limit.", "nothing"),
        (f"{LIKELY} max_tokens is 5.", "token limit"),
    ],
)
def test_a_statement_decides_else_the_last_clear_sentence_and_a_doubt_outweighs_a_likely_one(
    text: str, kind: str
) -> None:
    assert explain(text).kind == kind


def test_the_numbers_come_from_the_statement_that_decides() -> None:
    found = detect_text(
        "1: prompt exceeds the limit of 4096 tokens. a. b. c. d. "
        "2: prompt exceeds the limit of 8192 tokens. a. b. c. d."
    )

    assert found == TokenLimit(8192, source="tokens exceed a limit")


def test_the_sentence_before_and_two_after_belong_to_a_statement() -> None:
    found = detect_text(
        "The limit is 8192. The prompt exceeds the context window. a. Requested 9000. "
        "The limit is 4096."
    )

    assert found == TokenLimit(8192, 9000, source="context exceeded")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("context length: 8192. requested 9000", True),
        ("tokens: limit 8192, requested 9000", True),
        ("tokens: limit 64, requested 65", True),
        ("tokens: limit 63, requested 65", False),
        ("tokens: limit 8192, requested 8192", False),
        ("limit 8192, requested 9000", False),
        ("tokens: limit 8192. String too long. requested 9000", False),
        ("tokens: limit 8192. max_tokens: requested 9000", False),
        ("Please shorten the messages. Token limit 8192, requested 9000", False),
    ],
)
def test_where_no_rule_knows_the_phrase_stated_sizes_speak(text: str, *, found: bool) -> None:
    limit = detect_text(text)

    assert (limit is not None and limit.source == "sizes") is found


def test_a_phrase_that_is_known_comes_before_stated_sizes() -> None:
    assert explain("Prompt too long. Tokens: limit 8192, requested 9000").rule == "subject too long"


@pytest.mark.parametrize(
    "code",
    [
        "rate_limit_exceeded",
        "insufficient_quota",
        "throttling",
        "authentication_error",
        "permission_denied",
        "overloaded_error",
        "content_filter",
        "billing_hard_limit",
        "string_above_max_length",
        "resource_exhausted",
    ],
)
def test_a_code_of_another_kind_of_error_is_believed(code: str) -> None:
    assert explain(CLEAR, code=code).kind == "other error"


WINDOW = "The model's maximum context length is 8192 tokens, but your messages have 9000 tokens."


@pytest.mark.parametrize(
    ("status", "code"),
    [
        *((status, None) for status in (None, 400, 402, 403, 429, 503)),
        *(
            (status, code)
            for status in (None, 400)
            for code in ("rate_limit_error", "AccessDenied")
        ),
    ],
)
def test_both_numbers_and_a_window_win_over_a_status_or_a_code(
    status: int | None, code: str | None
) -> None:
    found = detect_text(WINDOW, status=status, code=code)

    assert found is not None
    assert (found.limit, found.requested) == (8192, 9000)


@pytest.mark.parametrize(
    ("status", "code"), [(402, "billing_error"), (403, "AccessDenied"), (429, "rate_limit_error")]
)
def test_a_status_and_a_code_that_agree_are_believed(status: int, code: str) -> None:
    assert detect_text(WINDOW, status=status, code=code) is None


@pytest.mark.parametrize(
    ("status", "code"), [(402, None), (None, "insufficient-quota"), (429, "ratelimit")]
)
def test_numbers_without_a_window_may_be_a_purses(status: int | None, code: str | None) -> None:
    text = "Prompt tokens limit exceeded: 9000 > 8192."

    assert detect_text(text) is not None
    assert detect_text(text, status=status, code=code) is None


@pytest.mark.parametrize(
    "name", ["QuotaExceededError", "AuthenticationError", "ContentPolicyViolationError"]
)
def test_a_class_of_another_kind_of_error_is_believed_unless_a_sentence_is_clear(name: str) -> None:
    assert detect_token_limit(named(name, LIKELY)) is None
    assert detect_token_limit(named(name, CLEAR)) is not None


@pytest.mark.parametrize(
    "name",
    ["RateLimitError", "TooManyRequests", "OverloadedError", "ServiceUnavailable", "Throttling"],
)
def test_a_busy_servers_class_is_believed_unless_both_numbers_are_stated(name: str) -> None:
    assert detect_token_limit(named(name, CLEAR)) is None
    assert detect_token_limit(named(name, "prompt is too long: 9000 > 8192")) is not None


def test_a_class_is_known_by_its_name_and_not_by_its_module() -> None:
    assert detect_token_limit(named("ApiError", CLEAR, module="throttling.quota")) is not None
    assert detect_token_limit(named("ApiError", "x", module="ContextWindowExceededError")) is None


@pytest.mark.parametrize(
    ("text", "kind"), [("", "token limit"), (THING, "nothing"), (RATE, "other error")]
)
def test_a_class_that_claims_a_token_limit_is_believed_unless_the_text_doubts_it(
    text: str, kind: str
) -> None:
    assert explain(named("ContextWindowExceededError", text)).kind == kind


def test_a_class_that_claims_a_token_limit_has_its_numbers_read() -> None:
    found = detect_token_limit(
        named("ContextWindowExceededError", ("Provided 9000, but the maximum is 8192."))
    )

    assert found == TokenLimit(8192, 9000, source="class")


@pytest.mark.parametrize("code", ["context_length_exceeded", "context-length-exceeded"])
@pytest.mark.parametrize("text", ["Bad request", THING, RATE])
def test_a_code_that_names_the_fault_is_believed_whatever_the_text_says(
    code: str, text: str
) -> None:
    assert detect_text(text, status=404, code=code) == TokenLimit(source="code")


def test_beside_a_code_the_text_still_says_what_it_says() -> None:
    assert explain(f"{CLEAR} {RATE}", code="context_length_exceeded").rule == "context exceeded"


def test_the_status_is_no_number_of_tokens() -> None:
    text = "context window exceeded: the limit is 256, and 503"

    assert detect_text(text) == TokenLimit(256, 503, source="context exceeded")
    assert detect_text(text, status=503, code="context_length_exceeded") == TokenLimit(
        256, source="context exceeded"
    )


def test_a_group_speaks_with_its_last_error_that_says_something() -> None:
    limits = [ValueError(f"prompt exceeds the limit of {limit} tokens") for limit in (4096, 8192)]
    group = ExceptionGroup("two", [ValueError(RATE), *limits, KeyError("x")])
    other = ExceptionGroup("two", [KeyError("x"), ValueError(RATE)])

    assert (explain(group).limit or TokenLimit()).limit == 8192
    assert explain(other).kind == "other error"


@pytest.mark.parametrize(
    ("outer", "expected"),
    [
        (CLEAR, (8192, 9000)),
        ("The prompt exceeds the context window of 8192 tokens", (8192, 9000)),
        ("The prompt exceeds the context window of 4096 tokens", (4096, None)),
        ("The prompt of 9000 tokens exceeds the context window", (8192, 9000)),
        ("The prompt of 9500 tokens exceeds the context window", (None, 9500)),
        ("The prompt of 9500 tokens exceeds the context window of 9400", (9400, 9500)),
    ],
)
def test_numbers_that_a_wrapper_lost_come_from_its_reason_where_both_agree(
    outer: str, expected: tuple[int | None, int | None]
) -> None:
    error = RuntimeError(outer)
    error.__cause__ = RuntimeError("prompt is too long: 9000 tokens > 8192")

    found = detect_token_limit(error)

    assert found is not None
    assert (found.limit, found.requested) == expected
    assert found.source == (detect_text(outer) or TokenLimit()).source


def test_a_wrapper_of_another_error_keeps_its_own_finding() -> None:
    error = RuntimeError(CLEAR)
    error.__cause__ = RuntimeError(RATE)

    assert detect_token_limit(error) == TokenLimit(source="context exceeded")


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("The prompt and max_tokens exceed the context window", True),
        ("The sum of messages and max_tokens must be at most 8192", True),
        (
            "The prompt exceeds the context window. Reduce the messages or the completion length.",
            False,
        ),
        (
            (
                "The prompt exceeds the context window. The messages may be long, and the "
                "completion length too."
            ),
            False,
        ),
        (
            (
                "The prompt exceeds the context window. String too long: max_tokens and prompt "
                "exceed it."
            ),
            False,
        ),
    ],
)
def test_the_completion_is_counted_in_where_a_sentence_sets_both_against_the_limit(
    text: str, *, counted: bool
) -> None:
    found = detect_text(text)

    assert found is not None
    assert found.kind == ("input_plus_output" if counted else "input")


@pytest.mark.parametrize("abbreviation", ["e.g.", "i.e.", "max.", "min.", "approx.", "no."])
def test_an_abbreviation_does_not_end_a_sentence(abbreviation: str) -> None:
    assert detect_text(f"The history, {abbreviation} all of it, exceeds the model") is not None


def test_a_very_long_sentence_is_read_in_pieces() -> None:
    filler = "x " * 1_500  # The most characters of a piece.

    assert explain(filler + "prompt " + "y " * 1_500 + " exceeds the model").kind == "nothing"
    assert explain(filler + CLEAR).kind == "token limit"


def test_of_very_many_sentences_the_first_and_the_last_are_read() -> None:
    filler = "x. " * 200  # The most sentences that are read

    assert explain(f"{CLEAR} {filler}").kind == "token limit"
    assert explain(f"{filler} {CLEAR}").kind == "token limit"
    assert explain(f"{filler[:150]}{CLEAR} {filler}").kind == "token limit"
    assert explain(f"{filler} {CLEAR} {filler}").kind == "nothing"


def test_nothing_but_exceptions_is_judged() -> None:
    assert explain(KeyboardInterrupt(CLEAR)).kind == "nothing"
    assert judge(Signals(), default_table()).kind == "nothing"


def test_of_several_likely_statements_the_first_is_told() -> None:
    verdict = explain(f"{LIKELY} The messages exceed the length of the model.")

    assert (verdict.rule, verdict.statement) == ("subject too long", LIKELY.lower())
