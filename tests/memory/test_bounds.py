"""A memory keeps no more alive than its limit, for any messages."""

from __future__ import annotations

import copy
import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest
from litellm import Message as LitellmMessage
from tests.memory.matching import Matching

from compacter.memory import InProcessMemory
from compacter.messages.format import MessageFormat

Talk = Callable[..., list[dict[str, Any]]]
SUMMARY = {"role": "user", "content": "[summary] So far."}
MOST = 1 << 20


def picture(number: int) -> str:
    """A picture as base64 text, 200 kB, each another one."""
    return f"data:image/png;base64,{number:08d}" + "A" * 200_000


def with_pictures(talk: Talk, about: str) -> list[Any]:
    """A history in which every user message holds a picture."""
    history: list[Any] = talk(20, about)
    for number in range(1, 20, 2):
        image = {"type": "image_url", "image_url": {"url": picture(number)}}
        history[number] = {"role": "user", "content": [{"type": "text", "text": about}, image]}
    return history


def as_objects(talk: Talk, about: str) -> list[Any]:
    """A history of an SDK's objects with long texts."""
    return [
        message
        if message["role"] != "assistant"
        else LitellmMessage(**{**message, "content": about * 20_000})
        for message in talk(20, about)
    ]


def plain(talk: Talk, about: str) -> list[Any]:
    """A history of short texts."""
    return talk(300, about)


def alive(root: object) -> int:
    """Bytes that are reachable from an object, but for classes, functions and modules."""
    seen: dict[int, object] = {}
    left = [root]
    while left:
        item = left.pop()
        if id(item) in seen or isinstance(item, (type, type(sys), type(alive))):
            continue
        seen[id(item)] = item
        left.extend(gc.get_referents(item))
    return sum(sys.getsizeof(item, 0) for item in seen.values())


@pytest.mark.parametrize("make", [with_pictures, as_objects, plain], ids=lambda make: make.__name__)
def test_all_that_is_kept_alive_is_within_the_bound(
    openai: MessageFormat, talk: Talk, make: Callable[[Talk, str], list[Any]]
) -> None:
    memory = InProcessMemory(max_bytes=MOST)
    matcher = Matching(memory)
    empty = alive(memory)
    for user in range(30):
        history = make(talk, f"journey {user} ")
        after = [history[0], SUMMARY, *history[15:]]
        matcher.remember("scope", openai, history, after)
        assert matcher.view("scope", openai, history) == after
    assert len(memory) == 30
    assert alive(memory) - empty <= 1.2 * MOST


def test_what_was_looked_up_before_is_not_encoded_again(
    openai: MessageFormat, talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher = Matching(InProcessMemory())
    for make in (plain, with_pictures, as_objects):
        history = make(talk, make.__name__)
        after = [history[0], SUMMARY, *history[15:]]
        matcher.remember("scope", openai, history, after)
        with monkeypatch.context() as patch:
            patch.setattr("compacter.memory.match.prefix_digest", pytest.fail)
            assert matcher.view("scope", openai, history) == after
            assert matcher.view("scope", openai, copy.deepcopy(history)) == after
