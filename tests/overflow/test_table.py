"""Each row of the table earns its place: its sample is judged rightly with it, and wrongly without
it.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from tests.overflow.alternatives import without_each
from tests.overflow.phrases import detect_text, phrases
from tests.overflow.test_messages import read

from compacter.overflow.detect import judge
from compacter.overflow.signals import Signals, signals_of
from compacter.overflow.statements import Verdict
from compacter.overflow.table import Patterns, Row, default_table
from compacter.overflow.table import rows as all_rows
from compacter.overflow.text import normalise

ROWS = tuple(row for row in all_rows() if row.meaning not in ("sealed", "lost"))
"""All but those of ``test_sealed.py`` and ``test_unsaid.py``, which are not part of a verdict."""
VETOES = {"output", "idiom", "other call", "other error", "other thing", "other unit", "handled"}
BESIDE = {"other code", "busy type", "other type"}
"""Meanings that are read beside the text, in a code or in the name of a class."""

rows = pytest.mark.parametrize("row", ROWS, ids=[row.label for row in ROWS])


def verdict(row: Row, table: Patterns) -> Verdict:
    named = {
        "type": Signals(types=(row.sample,)),
        "other code": Signals(CLEAR, codes=frozenset((row.sample.lower(),))),
        "busy type": Signals(CLEAR, types=(row.sample,)),
        "other type": Signals(LIKELY, types=(row.sample,)),
    }
    return judge(named.get(row.meaning) or signals_of(row.sample), table)


def is_right(row: Row, found: Verdict) -> bool:
    if row.meaning in VETOES | BESIDE:
        return found.limit is None
    if found.limit is None:
        return False
    if not row.meaning.endswith((" before", " after")):
        return True
    # Numbers of a sample have their role by their value.
    limit = 8192 if "8192" in row.sample else None
    requested = 9000 if "9000" in row.sample or "8000" in row.sample else None
    return (found.limit.limit, found.limit.requested) == (limit, requested)


@rows
def test_the_sample_of_a_row_is_judged_rightly_and_without_the_row_wrongly(row: Row) -> None:
    found = verdict(row, default_table())

    assert is_right(row, found), f"{row.sample!r} is judged as {found}"

    others = [other for other in ROWS if other.meaning == row.meaning and other is not row]
    table = Patterns(ROWS)
    table.update(default_table())
    table[row.meaning] = Patterns(others)[row.meaning] if others else re.compile(r"(?!)")

    found = verdict(row, table)

    assert not is_right(row, found), (
        f"{row.sample!r} needs no row {row.label!r}: without it, it is judged as {found}"
    )


CLEAR = "The prompt exceeds the context window."
LIKELY = "The prompt is too long."

CODES = """
rate_limit throttling_error too_many_requests too_many_connections rpm_limit tpm_limit
tokens_per_minute requests_per_day limit_requests concurrency_exceeded frequency_limit
insufficient_quota resource_exhausted usage_limit_reached spend_limit spending_limit monthly_limit
daily_limit allocation_exceeded
billing_hard_limit payment_required Arrearage account_overdue low_balance credit_limit
credits_exhausted credit_exceeded credits_required insufficient_credits insufficient_funds
subscription_inactive
authentication_error unauthenticated unauthorized authorisation_failed invalid_api_key
permission_denied forbidden access_denied denied_access no_access not_allowed signature_mismatch
invalid_token expired account_suspended account_deactivated
overloaded_error service_unavailable timeout timed_out deadline_exceeded bad_gateway
connection_error connection_reset engine_busy server_busy at_capacity
conflict not_found already_exists aborted
content_filter content_policy content_management content_moderation policy_violation safety_block
moderation_blocked sensitive_words data_inspection_failed guardrail_intervened cyber_policy
string_above_max_length array_too_long string_too_long
"""

CLASSES = """
RateLimitError TooManyRequests OverloadedError ServiceUnavailable ThrottlingException
QuotaExceeded AuthenticationError PermissionDenied Unauthorized Forbidden ExpiredToken
ContentPolicyViolation ContentFilter LengthFinishReason

ContextWindowExceededError ContextLengthExceeded ContextSizeOverflow ContextLimitError
ContextWindowLimitExceeded ContextWindowSizeExceeded ContextOverflowError ContextExceeded
ExceedMaxContext ExceedsModelContext ExceededContext ExceededTokens TokenLimitExceeded
TokenLimitReached TokenLimitError PromptTooLong InputTooLong ContextTooLong ConversationTooLarge
"""


@cache
def samples() -> tuple[list[str], list[tuple[str, str]]]:
    """The normalised texts of all that is collected here, and what stands before and after a
    number in them.
    """
    rows_of = [*read("token_limits.jsonl"), *read("look_alikes.jsonl")]
    raw = [row["text"] for row in rows_of] + [*phrases(), *(row.sample for row in ROWS)]
    texts = [normalise(signals_of(text).text) for text in raw]
    texts += [code.lower() for row in rows_of if (code := row.get("code"))]
    texts += CLASSES.lower().split()
    texts += [code.replace("_", "") for code in CODES.lower().split()]
    numbers = [
        (text[max(0, match.start() - 80) : match.start()], text[match.end() : match.end() + 80])
        for text in texts
        for match in re.finditer(r"\d[\d,.]*", text)
    ]
    return texts, numbers


def matches(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    return [match.span() for match in pattern.finditer(text)]


@rows
def test_each_alternative_of_a_pattern_has_a_sample_that_is_read_differently_without_it(
    row: Row,
) -> None:
    texts, numbers = samples()
    if row.meaning.endswith(" before"):
        texts = [before for before, _ in numbers]
    elif row.meaning.endswith(" after"):
        texts = [after for _, after in numbers]
    pattern = row.compilable
    whole = re.compile(pattern)
    read_so = [(text, spans) for text in set(texts) if (spans := matches(whole, text))]

    without_sample = [
        name
        for name, others in without_each(pattern)
        if all(matches(others, text) == spans for text, spans in read_so)
    ]

    assert without_sample == [], (
        f"alternatives of {row.label!r} that no text of tests/overflow needs: write one into "
        f"phrases.txt, or take them out; letters that several begin with are not shown"
    )


@pytest.mark.parametrize("code", CODES.split())
def test_a_code_of_another_error_wins_over_words_however_it_is_written(code: str) -> None:
    for mark in ("", "-", "_"):
        assert detect_text(CLEAR, code=code.replace("_", mark)) is None, mark


def test_the_names_of_rows_are_unique() -> None:
    assert len({row.label for row in ROWS}) == len(ROWS)


def test_no_pattern_has_a_repeat_without_a_bound() -> None:
    patterns = {row.label: re.sub(r"\\.|\[[^\]]*\]", "x", row.pattern) for row in ROWS}

    assert [
        name for name, pattern in patterns.items() if re.search(r"[*+]|\{\d+,\}", pattern)
    ] == []
