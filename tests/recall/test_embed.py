"""Quotes by meaning: questions in other words than the passage's, and embedders that fail."""

from __future__ import annotations

import math
import threading
from array import array
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from compacter import Compacter, Quotes
from compacter.errors import ConfigurationError
from compacter.recall.frame import is_quotes
from compacter.recall.index import Index
from compacter.recall.question import question
from compacter.recall.quotes import Quoter
from compacter.recall.vectors import closeness, fuse, read_vectors
from compacter.testing import token_limit_error

KEY = "The spare key of the boathouse hangs behind the copper kettle in the pantry."
OTHER_WORDS = "How can one open the marina shed?"
LIMIT = 4_000
AXES = 16


def embed(texts: list[str]) -> list[list[float]]:
    """Both ways to say one thing have one direction; any other text has that of its length."""
    vectors = []
    for text in texts:
        vector = [0.0] * AXES
        meant = "boathouse" in text or "marina" in text
        vector[0 if meant else 1 + len(text) % (AXES - 1)] = 3.0
        vector[-1] += 1.0
        vectors.append(vector)
    return vectors


async def embed_async(texts: list[str]) -> list[list[float]]:
    return embed(texts)


def history(asked: str) -> list[dict[str, str]]:
    said = [{"role": "user", "content": KEY}, {"role": "assistant", "content": "Noted, I see."}]
    for turn in range(60):
        wish = f"Room {turn} wants paint number {turn * 7}{', and curtains' * (turn % 5)}."
        said.append({"role": "user", "content": wish})
        said.append({"role": "assistant", "content": f"Paint {turn * 7} is on the list now."})
    return [*said, {"role": "user", "content": asked}]


class Program:
    """A program whose provider takes 4,000 characters."""

    def __init__(self, embedder: Any) -> None:
        self.sent: list[dict[str, str]] = []
        options: dict[str, Any] = {"summarizer": lambda messages, **_: "They spoke of the house."}
        self.compacter = Compacter(recall=Quotes(embed=embedder), **options)
        self.call = self.compacter.wrap(self.completion)

    def completion(self, messages: list[dict[str, str]], **_: Any) -> dict[str, Any]:
        size = sum(len(message["content"]) for message in messages)
        if size > LIMIT:
            raise token_limit_error(limit=LIMIT // 4, input_tokens=size // 4)
        self.sent[:] = messages
        return {"choices": [{"message": {"role": "assistant", "content": "Noted."}}]}

    def wait(self) -> None:
        """Wait until what is compacted has its vectors."""
        embeddings = getattr(self.compacter._state.recall()._near, "__self__", None)
        under_way = None if embeddings is None else embeddings.add(())
        if under_way is not None:
            under_way.result(30)

    @property
    def quotes(self) -> str:
        """The quotes in the request that the provider has accepted."""
        return next((one["content"] for one in self.sent if is_quotes(one["content"])), "")


def quotes_for(asked: str, embedder: Any) -> str:
    """Return the quotes for a question that comes when the compacted messages have vectors."""
    program = Program(embedder)
    begun = history("Go on.")
    program.call(messages=begun)
    program.wait()
    gone_on = [*begun, {"role": "assistant", "content": "Gone."}]
    program.call(messages=[*gone_on, {"role": "user", "content": asked}])
    return program.quotes


@pytest.mark.parametrize("embedder", [embed, embed_async])
def test_a_question_in_other_words_finds_its_passage(embedder: Callable[..., Any]) -> None:
    assert KEY not in quotes_for(OTHER_WORDS, None)
    assert KEY in quotes_for(OTHER_WORDS, embedder)


def test_a_question_in_the_same_words_finds_it_too() -> None:
    assert KEY in quotes_for("Where does the spare key of the boathouse hang?", embed)


def test_a_message_that_asks_nothing_gets_no_quotes() -> None:
    assert quotes_for("Marina, great, thank you.", embed) == ""


class Counting:
    """An embedder that keeps what it is given."""

    def __init__(self) -> None:
        self.given: list[str] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.given.extend(texts)
        return embed(texts)


def test_every_passage_is_embedded_once() -> None:
    counting = Counting()
    assert KEY in quotes_for(OTHER_WORDS, counting)
    assert len(counting.given) == len(set(counting.given))


def test_options_of_a_call_have_nothing_embedded_again() -> None:
    counting = Counting()
    program = Program(counting)
    for _ in range(3):
        program.call(messages=history(OTHER_WORDS), compacter_options={"conversation": "house"})
        program.wait()
    assert len(counting.given) == len(set(counting.given)) > 40


def test_a_compaction_has_what_it_removes_embedded_before_any_question() -> None:
    counting = Counting()
    program = Program(counting)
    program.call(messages=[*history("Go on."), {"role": "assistant", "content": "I go on."}])
    program.wait()
    assert any(KEY in text for text in counting.given)


def test_passages_under_way_hold_no_call_up() -> None:
    answer = threading.Event()
    embedded: list[str] = []

    def slow_for_many(texts: list[str]) -> list[list[float]]:
        if len(texts) > 1:
            answer.wait(30)
            embedded.extend(texts)
        return embed(texts)

    program = Program(slow_for_many)
    try:
        program.call(messages=history("Where does the spare key of the boathouse hang?"))
        assert embedded == []
        assert KEY in program.quotes
    finally:
        answer.set()


def boom(texts: list[str]) -> list[list[float]]:
    raise RuntimeError(texts[0])


NONSENSE: dict[str, Any] = {
    "raises": boom,
    "too few": lambda texts: embed(texts)[1:],
    "lengths": lambda texts: [*embed(texts)[1:], [1.0]] if len(texts) > 1 else [[]],
    "not a number": lambda texts: [[math.nan, 1.0] for _ in texts],
    "zeros": lambda texts: [[0.0, 0.0] for _ in texts],
    "nothing": lambda texts: None,
    "texts": lambda texts: texts,
}


@pytest.mark.parametrize("embedder", NONSENSE.values(), ids=NONSENSE)
def test_without_usable_vectors_words_alone_find_it_and_one_warning_says_so(
    embedder: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert KEY in quotes_for("Where does the spare key of the boathouse hang?", embedder)
    warned = [one.message for one in caplog.records if "found by words alone" in one.message]
    assert len(warned) == 1
    assert KEY not in warned[0]


def test_a_slow_embedder_holds_no_call_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("compacter.call.embedding._DEADLINE", 0.01)
    answer = threading.Event()

    def slow(texts: list[str]) -> list[list[float]]:
        answer.wait(30)
        return embed(texts)

    program = Program(slow)
    try:
        program.call(messages=history("Where does the spare key of the boathouse hang?"))
        assert KEY in program.quotes
    finally:
        answer.set()
    assert "embed took longer" in caplog.text


@pytest.mark.parametrize("value", [3, lambda: None])
def test_an_embedder_that_cannot_be_called_is_refused_at_once(value: object) -> None:
    with pytest.raises((ConfigurationError, ValidationError)):
        Compacter(recall=Quotes(embed=value))  # type: ignore[arg-type]


def test_vectors_are_compared_by_direction() -> None:
    (vector,) = read_vectors([[3, 4]], 1)
    assert list(vector) == pytest.approx([0.6, 0.8])


ELSEWHERE = array("f", [0.0, 1.0])


def test_without_vectors_nothing_is_close() -> None:
    assert closeness([None, None], [ELSEWHERE], array("f", [1.0, 0.0])) == {}
    assert closeness([array("f", [1.0, 0.0])], [ELSEWHERE], array("f", [1.0])) == {}


def test_an_embedder_for_which_all_texts_are_alike_tells_nothing() -> None:
    same = [array("f", [1.0, 0.0])] * 20
    assert closeness(same, same[:6], same[0]) == {}


def test_a_passage_without_a_vector_is_left_to_its_words() -> None:
    vectors = [array("f", [1.0, 0.0]) if at % 2 else array("f", [0.0, 1.0]) for at in range(20)]
    held = [*vectors, None, array("f", [1.0, 0.0])]
    near = closeness(held, [ELSEWHERE], array("f", [1.0, 0.0]))
    assert 20 not in near
    assert near[21] == max(near.values())


def test_in_a_conversation_of_like_messages_the_one_that_is_meant_stands_out() -> None:
    alike = [array("f", [0.9, 0.1, 0.42])] * 50
    meant = array("f", [0.2, 0.8, 0.56])
    elsewhere = [array("f", [0.0, 0.0, 1.0])]
    near = closeness([*alike, None, meant], elsewhere, array("f", [0.0, 0.9, 0.43]))
    assert fuse({}, [near], 0.0).keys() == {51}


def test_clear_words_count_more_than_meaning() -> None:
    scores = fuse({1: 1.0}, [{2: 0.9}], evidence=3.0)
    assert max(scores, key=scores.__getitem__) == 1
    scores = fuse({1: 1.0}, [{2: 0.9}], evidence=0.5)
    assert max(scores, key=scores.__getitem__) == 2


def test_where_words_tell_nothing_meaning_decides_alone() -> None:
    assert fuse({}, [{2: 0.9, 3: 0.1}], evidence=0.0) == {2: 1.0}


def test_what_is_close_to_nothing_adds_nothing(folded: list[Any]) -> None:
    assert fuse({1: 1.0}, [{2: 0.1}], evidence=1.0) == {1: 1.0}
    quoter = Quoter(Index(folded), 1_000)
    quoter.answer(question((), ()), near={})
    assert quoter.quotation() is None
