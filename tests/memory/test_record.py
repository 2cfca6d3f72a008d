from __future__ import annotations

import json
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import pytest
from litellm import Message as LitellmMessage

from compacter.memory import Record
from compacter.memory.record import footprint
from compacter.messages.fields import Unencodable

SUMMARY = {"role": "user", "content": "So far: naïve 旅行 \ud83d, and a tab\t."}
RECORD = Record(
    key="k",
    boundary=7,
    view=(SUMMARY, 2, 5, None, {"role": "assistant", "content": "."}),
    digest="d",
    last="l",
    compacted_user=4,
)


def test_a_record_comes_back_from_its_text_as_it_was() -> None:
    text = RECORD.to_json()
    assert text.isascii()
    assert Record.from_json(text) == Record.from_json(text.encode()) == RECORD


def test_bytes_in_a_message_come_back_as_bytes() -> None:
    message = {
        "role": "user",
        "content": [{"image": {"format": "png", "source": {"bytes": b"\x89PNG\x00"}}}],
    }
    record = replace(RECORD, view=(message,))
    assert Record.from_json(record.to_json()) == record


def sealed(data: object) -> str:
    """A text with a seal that fits."""
    body = json.dumps(data)
    seal = blake2b(body.encode(), digest_size=16).hexdigest()
    return f"{VERSION} {seal} {body}"


GOOD = json.loads(RECORD.to_json().split(" ", 2)[2])
REQUIRED = ("key", "boundary", "view", "digest", "last")
VERSION = int(RECORD.to_json().split(" ", 1)[0])


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "null", "[]", "7", '"text"', b"\xff\xfe\x00", b"", "[" * 100_000),
        RECORD.to_json()[:-20],
        *(sealed(None), sealed([]), sealed("text"), sealed(GOOD).replace(" ", "", 1)),
        *(sealed({key: GOOD[key] for key in GOOD if key != name}) for name in REQUIRED),
        RECORD.to_json().replace(str(VERSION), str(VERSION + 1), 1),
    ],
    ids=lambda text: repr(text[:1]),
)
def test_what_is_no_record_is_none(text: str | bytes) -> None:
    """A text that lacks a field, was altered or is of another version is ignored."""
    assert Record.from_json(sealed(GOOD)) == RECORD
    assert Record.from_json(text) is None


def test_no_changed_byte_goes_unnoticed() -> None:
    text = RECORD.to_json().encode()
    for place in range(len(text)):
        for bit in (0, 3, 6):
            altered = bytearray(text)
            altered[place] ^= 1 << bit
            assert Record.from_json(bytes(altered)) is None, altered


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": object()},
        {"role": "user", 7: "seven"},
        {"role": "user", "content": {"compacter:bytes": "YWJj"}},
        {"role": "user", "content": {"text": {1, 2}}},
        ["not a dict", {"role": "user"}],
    ],
    ids=["object", "number as key", "marked bytes", "set", "list"],
)
def test_a_message_that_would_not_come_back_has_no_text(message: Any) -> None:
    record = replace(RECORD, view=(message,))
    try:
        text = record.to_json()
    except Unencodable:
        return
    assert Record.from_json(text) in (record, None)


@pytest.mark.parametrize(
    ("content", "least"),
    [
        ("x" * 100_000, 100_000),
        ("旅" * 100_000, 200_000),
        ("🙂" * 100_000, 400_000),
        ([{"image": {"source": {"bytes": b"\x89PNG" * 25_000}}}], 100_000),
        (["x"] * 10_000, 80_000),
        (LitellmMessage(role="assistant", content="x" * 100_000), 100_000),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, int) else "",
)
def test_the_size_counts_what_is_kept_alive(content: Any, least: int) -> None:
    small = replace(RECORD, view=({"role": "user", "content": ""},))
    large = replace(RECORD, view=({"role": "user", "content": content},))
    assert least <= footprint(large) - footprint(small) <= 4 * least
