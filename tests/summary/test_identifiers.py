"""Names and values that were said once survive a summary without a model, also many in a row."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from compacter import Compacter

SAID = [
    "The order number is {id}.|A-4471-{n}",
    "My booking reference is {id}, please use it.|QX{n}ZP",
    "Wire it to {id}.|DE89 3704 0044 0532 {n}",
    "The customer is called {id}.|Ottilie Brandt{n}",
    "Call her on {id} after six.|+49 40 55{n}",
    "Her address is {id}.|ottilie.{n}@harbour.example",
    "The page is at {id} now.|https://harbour.example/berth/{n}",
    "The config lives in {id}.|deploy/berth-{n}.toml",
    "The commit that broke it is {id}.|9f3c{n}e",
    "We agreed on a price of {id}.|{n},50 euros",
    "The meeting is on {id}.|2026-07-14 at 10:{n}",
    "The server answers on {id}.|10.4.7.1:{n}",
    "The ticket is {id}.|HARB-{n}",
    "The function that fails is {id}.|resolve_berth_{n}()",
    "It runs version {id}.|4.12.{n}",
    "The crate has the label {id}.|SN:77-{n}-K",
    "Set the variable {id}.|BERTH_LIMIT_{n}=40",
    "The ship is called {id}.|Sturmvogel {n}",
    "The branch is {id}.|fix/berth-{n}",
    "The port of the mirror is {id}.|port {n}",
]
CHAT = [
    "That sounds good, let us keep going with the next part of it.",
    "I see what you mean, and it makes sense to me as well.",
    "The weather at the harbour was rough again, so nothing moved much.",
    "Could you explain a little more how the cranes are usually planned?",
    "Cranes are planned by the tide, the size of the ship and who is on duty.",
    "We had a long talk about it yesterday, and everybody had an opinion.",
    "In general a berth is free for a few hours before the next ship comes in.",
    "Thanks, that helps a lot! I will think about it over the weekend.",
]


def wrap_hard(text: str) -> str:
    """The text with line breaks where a mail program puts them."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > 60:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


DRESS: dict[str, Callable[[str, str], str]] = {
    "plain": lambda role, text: text,
    "hard-wrapped": lambda role, text: wrap_hard(text),
    "labelled": lambda role, text: f"{'Mara' if role == 'user' else 'Tom'}: {text}",
}


def conversation(dress: str, seed: int = 1) -> tuple[list[dict[str, str]], list[str]]:
    """A long conversation, and the thirty names and values that are said in it, once each."""
    chance = random.Random(seed)
    messages: list[dict[str, str]] = []
    ids: list[str] = []
    for number in range(150):
        role = "user" if number % 2 == 0 else "assistant"
        sentences = chance.sample(CHAT, 5)
        if number % 5 == 0:
            sentence, _, shape = SAID[(number // 5) % len(SAID)].partition("|")
            ids.append(shape.format(n=chance.randrange(1_000, 9_999)))
            sentences.insert(chance.randrange(5), sentence.format(id=ids[-1]))
        messages.append({"role": role, "content": DRESS[dress](role, " ".join(sentences))})
    messages.append({"role": "user", "content": "What now?"})
    return messages, ids


def survived(messages: list[dict[str, Any]], ids: list[str]) -> float:
    text = " ".join(" ".join(str(message["content"]) for message in messages).split())
    return sum(one in text for one in ids) / len(ids)


@pytest.mark.parametrize(
    ("dress", "share", "least"),
    [
        ("plain", 0.1, 0.85),
        ("plain", 0.2, 0.95),
        ("labelled", 0.1, 0.85),
        ("labelled", 0.2, 0.95),
        ("hard-wrapped", 0.1, 0.85),
        ("hard-wrapped", 0.2, 0.9),  # A line that ends inside a value loses the other half.
    ],
)
def test_they_survive_in_a_share_of_the_size(dress: str, share: float, least: float) -> None:
    messages, ids = conversation(dress)
    size = sum(len(message["content"]) for message in messages)
    made = Compacter(summarizer="extractive").compact(messages, budget=int(size * share))
    assert survived(made.messages, ids) >= least


@pytest.mark.parametrize("dress", DRESS)
def test_they_survive_ten_compactions(dress: str) -> None:
    messages, ids = conversation(dress)
    compacter = Compacter(summarizer="extractive")
    kept: list[Any] = []
    step = len(messages) // 10
    for start in range(0, 10 * step, step):
        kept = [*kept, *messages[start : start + step], {"role": "user", "content": "Go on."}]
        kept = list(compacter.compact(kept, budget=3_000).messages)
    assert survived(kept, ids) >= 0.6
