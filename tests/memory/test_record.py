from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from litellm import Message as LitellmMessage

from compacter.memory import Record
from compacter.memory.record import VERSION, StoredMessage

SUMMARY = {"role": "user", "content": "So far: naïve 旅行 \ud83d, and a tab\t."}
RECORD = Record(
    key="k",
    boundary=7,
    kept=(2, 5),
    literals=(StoredMessage(0, SUMMARY), StoredMessage(6, {"role": "assistant", "content": "."}, behind_system=True)),
    digest="d",
    last="l",
    folded_user=4,
)


def test_a_record_comes_back_from_its_text_as_it_was() -> None:
    text = RECORD.to_json()
    assert text.isascii()
    assert Record.from_json(text) == Record.from_json(text.encode()) == RECORD


def test_bytes_in_a_message_come_back_as_bytes() -> None:
    message = {"role": "user", "content": [{"image": {"format": "png", "source": {"bytes": b"\x89PNG\x00"}}}]}
    record = replace(RECORD, literals=(StoredMessage(0, message),))
    assert Record.from_json(record.to_json()) == record


def test_an_sdks_object_comes_back_as_a_dict() -> None:
    record = replace(RECORD, literals=(StoredMessage(0, LitellmMessage(role="assistant", content="Cut short.")),))
    found = Record.from_json(record.to_json())
    assert found is not None
    assert found.literals[0].message["content"] == "Cut short."


GOOD = json.loads(RECORD.to_json())


@pytest.mark.parametrize(
    "change",
    [
        {"version": VERSION + 1},
        {"boundary": 0},
        {"boundary": True},
        {"boundary": "7"},
        {"boundary": 2},
        {"kept": [5, 2]},
        {"kept": [2, 2]},
        {"kept": [-1]},
        {"kept": list(range(7))},
        {"kept": None},
        {"literals": [[0, "text", False]]},
        {"literals": [[0, {}]]},
        {"literals": [[8, {}, False]]},
        {"literals": [[-1, {}, False]]},
        {"literals": [[0, {"compacter:bytes": "no base64!"}, False]]},
        {"digest": None},
        {"last": 1},
        {"folded_user": 7},
        {"folded_user": -2},
    ],
    ids=str,
)
def test_a_record_that_makes_no_sense_is_none(change: dict[str, Any]) -> None:
    assert Record.from_json(json.dumps({**GOOD, **change})) is None


@pytest.mark.parametrize("name", list(GOOD))
def test_a_record_that_lacks_a_field_is_none(name: str) -> None:
    assert Record.from_json(json.dumps({key: value for key, value in GOOD.items() if key != name})) is None


@pytest.mark.parametrize(
    "text",
    ["", "{", "null", "[]", "7", '"text"', b"\xff\xfe\x00", b"", "[" * 100_000, RECORD.to_json()[:-20]],
    ids=lambda text: repr(text[:10]),
)
def test_what_is_no_record_is_none(text: str | bytes) -> None:
    assert Record.from_json(text) is None


def test_the_size_counts_the_text() -> None:
    small = replace(RECORD, literals=(StoredMessage(0, {"role": "user", "content": ""}),))
    large = replace(RECORD, literals=(StoredMessage(0, {"role": "user", "content": "x" * 10_000}),))
    assert large.size - small.size == 2 * 10_000
