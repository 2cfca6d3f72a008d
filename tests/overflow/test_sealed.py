"""Errors that say that a conversation has what only another model can read."""

from __future__ import annotations

import re

import pytest

from compacter.overflow import detect_token_limit, is_sealed
from compacter.overflow.table import Row, rows

ROWS = [row for row in rows() if row.meaning == "sealed"]


class RefusedError(Exception):
    """An error of a vendor's SDK."""

    def __init__(self, text: str, status: int | None = 400, code: str | None = None) -> None:
        super().__init__(text)
        self.status_code = status
        self.code = code


@pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])
def test_each_row_has_a_sample_that_needs_it_and_that_is_no_token_limit(row: Row) -> None:
    others = [re.compile(other.compilable) for other in ROWS if other is not row]

    assert is_sealed(RefusedError(row.sample))
    assert detect_token_limit(RefusedError(row.sample)) is None
    assert not any(pattern.search(row.sample.lower()) for pattern in others)
    assert row.source.startswith("https://")


def test_it_is_known_by_its_code_in_an_exception_in_a_body_and_behind_another_error() -> None:
    code = "invalid_encrypted_content"
    behind = RuntimeError("the model could not be asked")
    behind.__cause__ = RefusedError("Bad request", code=code)

    assert is_sealed(RefusedError("Bad request", code=code))
    assert is_sealed({"code": code, "message": "Bad request"})
    assert is_sealed(behind)


@pytest.mark.parametrize(
    "error",
    [
        RefusedError("prompt is too long: 9000 tokens > 8192 maximum"),
        RefusedError("Invalid signature: the request signature we calculated does not match", 403),
        RefusedError("Incorrect API key provided. You can find your API key at ...", 401),
        RefusedError("Invalid `signature` in `thinking` block", 401),
        RefusedError("The encrypted content could not be verified", 529),
        RefusedError("`thinking` blocks are not supported by this model"),
        RefusedError("Invalid value: 'thinking'. Supported values are: 'text'"),
        RefusedError("messages.1: tool_use ids were found without tool_result blocks"),
        RefusedError("The signature of the token is invalid or expired"),
        ValueError("thought"),
        KeyError("thought_signature"),
    ],
)
def test_no_other_error_is_one(error: Exception) -> None:
    assert not is_sealed(error)


def test_an_error_that_cannot_be_read_is_none() -> None:
    class UnreadableError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    assert not is_sealed(UnreadableError())
