"""Messages of many providers, gateways and languages, in our own words: token limits, and what
looks like one.

``token_limits.jsonl`` has a text with the numbers that it states, ``look_alikes.jsonl`` texts of
other errors; both with status and code where these matter. ``phrases.txt`` has short sentences for
single words of the table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.overflow.phrases import detect_text, phrases

from compacter.overflow import TokenLimit


def read(name: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for line in (Path(__file__).parent / name).read_text(encoding="utf-8").splitlines()
    ]


def detected(row: dict[str, Any]) -> TokenLimit | None:
    return detect_text(row["text"], status=row.get("status"), code=row.get("code"))


def test_every_token_limit_is_recognised_with_its_numbers() -> None:
    rows = read("token_limits.jsonl")

    found = {
        row["text"]: (limit.limit, limit.requested)
        for row in rows
        if (limit := detected(row)) is not None
    }

    assert rows
    assert {row["text"]: found.get(row["text"]) for row in rows} == {
        row["text"]: (row.get("limit"), row.get("requested")) for row in rows
    }


def test_no_look_alike_is_a_token_limit() -> None:
    rows = read("look_alikes.jsonl")

    assert rows
    assert [row["text"] for row in rows if detected(row) is not None] == []


def test_every_phrase_is_judged_rightly() -> None:
    sentences = phrases()

    assert {text: detect_text(text) is not None for text in sentences} == sentences
