"""Messages of many providers, gateways and languages, in our own words: token limits, and what looks like one.

``token_limits.jsonl`` has a text with the numbers that it states, ``look_alikes.jsonl`` texts of other errors; both
with status and code where these matter.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compacter.overflow import detect_text


def read(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()]


def text_of(row: dict[str, Any]) -> str:
    return str(row["text"])


@pytest.mark.parametrize("row", read("token_limits.jsonl"), ids=text_of)
def test_a_token_limit_is_recognised_with_its_numbers(row: dict[str, Any]) -> None:
    found = detect_text(row["text"], status=row.get("status"), code=row.get("code"))

    assert found is not None
    assert (found.limit, found.requested) == (row["limit"], row["requested"])


@pytest.mark.parametrize("row", read("look_alikes.jsonl"), ids=text_of)
def test_a_look_alike_is_no_token_limit(row: dict[str, Any]) -> None:
    assert detect_text(row["text"], status=row.get("status"), code=row.get("code")) is None
