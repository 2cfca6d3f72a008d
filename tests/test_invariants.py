"""Invariants: every strategy, pins anywhere, every wire format, histories made up and real."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects import DIALECTS
from tests.effort import times

from compacter import (
    ClearToolResults,
    Compacter,
    CompactionResult,
    Shorten,
    Summarize,
    Truncate,
)
from compacter.compaction.conversation import Conversation
from compacter.compaction.strategies import StrategyLike
from compacter.messages.format import FILLERS, FORMATS, FormatName, MessageFormat, get_format
from compacter.messages.parts import Kind
from compacter.summary import message as summary_message

Item = dict[str, Any]
STRATEGIES: dict[str, StrategyLike | Sequence[StrategyLike]] = {
    "summarize": Summarize(),
    "truncate": Truncate(),
    "clear": ClearToolResults(keep_recent=1),
    "shorten": Shorten(),
    "chain": [ClearToolResults(keep_recent=2), Truncate()],
    "all": [ClearToolResults(), Shorten(), Summarize()],
}


# -- histories in any wire format


def say(form: FormatName, role: str, text: str) -> Item:
    if form == "gemini":
        return {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]}
    if form == "bedrock":
        return {"role": role, "content": [{"text": text}]}
    return {"role": role, "content": text}


def calling(form: FormatName, ids: Sequence[str], size: int) -> list[Item]:
    """An assistant's calls and all their results."""
    dialect = DIALECTS[form]
    results = [(name, "look", f"seen by {name} ".ljust(size, "r")) for name in ids]
    return [*dialect.calls([(name, "look", {}) for name in ids]), *dialect.results(results)]


@st.composite
def histories(draw: st.DrawFn, form: FormatName) -> list[Item]:
    """Turns of questions, tool calls with reused ids, and answers; the user first, roles
    in turns.
    """
    items: list[Item] = []
    if form == "openai" and draw(st.booleans()):
        items.append({"role": "system", "content": "Be brief."})
    for number in range(draw(st.integers(1, 7))):
        size = draw(st.sampled_from([3, 60, 400, 2_500]))
        items.append(say(form, "user", f"question {number} ".ljust(size, "q")))
        for again in range(draw(st.integers(0, 3))):
            ids = [f"call_{again % 2}_{place}" for place in range(draw(st.integers(1, 3)))]
            items += calling(form, ids, draw(st.sampled_from([5, 300, 3_000])))
        if number < 6 or draw(st.booleans()):
            items.append(say(form, "assistant", f"answer {number} ".ljust(size, "a")))
        if form == "openai" and draw(st.integers(0, 8)) == 0:
            items.append({"role": "system", "content": f"From now on, rule {number}."})
    return items


# -- the check


def faults(
    form: FormatName, items: list[Any], result: CompactionResult, pins: Sequence[int] = ()
) -> Iterator[str]:
    """Everything that is wrong with a compaction, in words of this test's own."""
    shape = get_format(form)
    out = result.messages
    before = Conversation(items, shape)
    after = Conversation(result.messages, shape)
    if items and not out:
        yield "nothing is left"
        return
    sooner, later = (
        Counter((half.what, half.call_id) for half in each.broken) for each in (before, after)
    )
    yield from (f"new {what} {call}" for what, call in later - sooner)
    if after.end < len(after.messages) and before.end == len(before.messages):
        yield "a call lost its results"
    places = {id(item): index for index, item in enumerate(items)}
    kept = [places[id(item)] for item in out if id(item) in places]
    whole = Counter(kept) + Counter(places[id(item)] for item in result.discarded)
    if result.changed and whole != Counter(range(len(items))):
        yield "kept and discarded are not the whole"
    if kept != sorted(kept):
        yield "the order changed"
    must = {id(items[index]) for index in pins}
    must |= {
        id(item) for item, kind in zip(items, before.kinds, strict=True) if kind is Kind.SYSTEM
    }
    last = before.last_user
    must |= {id(items[last])} if last is not None else set()
    if must - set(map(id, out)):
        yield "something that must stay is gone"
    if result.changed and after.size >= before.size:
        yield "it did not get smaller"
    texts = [shape.plain_text(item) or "" for item in out]
    if sum(summary_message.parse(text) is not None for text in texts) > 1:
        yield "two summaries"
    if shape.alternates:
        yield from turn_faults(shape, items, out)


def turn_faults(shape: MessageFormat, items: list[Any], out: list[Any]) -> Iterator[str]:
    """Whether the user is first and roles take turns, where they did."""
    roles = [shape.speaker(item) for item in out if shape.speaker(item) != "system"]
    was = [shape.speaker(item) for item in items if shape.speaker(item) != "system"]
    clean = all(one != other for one, other in pairwise(was))
    if clean and any(one == other for one, other in pairwise(roles)):
        yield "roles do not alternate"
    if was and roles and was[0] == "user" != roles[0]:
        yield "the user is not first"


def compact(
    form: FormatName,
    items: list[Any],
    strategy: StrategyLike | Sequence[StrategyLike],
    **options: Any,
) -> CompactionResult:
    budget = options.pop("budget", None)
    compacter = Compacter(
        strategy=strategy,
        summarizer=lambda messages, **_: "They talked of it.",
        memory=None,
        **options,
    )
    return compacter.compact(items, wire_format=form, budget=budget)


def strangers(form: FormatName, items: list[Any], result: CompactionResult) -> list[Any]:
    """Messages that are neither originals nor fillers."""
    fillers = [get_format(form).say(role, text) for role, text in FILLERS.items()]
    mine = set(map(id, items))
    return [item for item in result.messages if id(item) not in mine and item not in fillers]


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=times(4, long=30))
@given(data=st.data())
def test_on_made_up_histories_nothing_that_must_hold_is_broken(
    form: FormatName, name: str, data: st.DataObject
) -> None:
    items = data.draw(histories(form))
    before = copy.deepcopy(items)
    ratio = data.draw(st.sampled_from([0.1, 0.5, 0.7, 1.0]))
    pins = data.draw(st.sets(st.sampled_from(range(len(items))), max_size=4))
    pinned = {id(items[index]) for index in pins}
    budget = data.draw(st.none() | st.integers(50, 6_000))
    turns = data.draw(st.integers(0, 3))

    result = compact(
        form,
        items,
        STRATEGIES[name],
        compact_ratio=ratio,
        pin=lambda item: id(item) in pinned,
        budget=budget,
        preserve_recent_turns=turns,
    )

    assert items == before
    assert list(faults(form, items, result, sorted(pins))) == []
    if name in ("summarize", "truncate") and budget is None:
        assert len(strangers(form, items, result)) <= 1
    if budget is not None:
        assert result.fits == (sum(get_format(form).outline(result.messages).sizes) <= budget)


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=times(4, long=30))
@given(data=st.data())
def test_compacting_again_and_again_keeps_one_summary(
    form: FormatName, data: st.DataObject
) -> None:
    items: list[Any] = []
    for _ in range(4):
        more = data.draw(histories(form))
        items = [*items, *(item for item in more if item.get("role") != "system")]
        result = compact(form, items, Summarize())
        assert list(faults(form, items, result)) == []
        items = result.messages


@pytest.mark.parametrize(("name", "ratio"), [("truncate", 0.7), ("clear", 0.5), ("chain", 1.0)])
def test_on_real_conversations_nothing_is_broken(data: Path, name: str, ratio: float) -> None:
    draw = random.Random(f"{name} {ratio}")
    checked = 0
    with (data / "conversations.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            items = record["messages"]
            pins = draw.sample(range(len(items)), min(draw.randrange(4), len(items)))
            pinned = {id(items[index]) for index in pins}
            result = compact(
                record["format"],
                items,
                STRATEGIES[name],
                compact_ratio=ratio,
                pin=_one_of(pinned),
                budget=draw.choice([None, len(line) // 4]),
            )
            assert list(faults(record["format"], items, result, pins)) == [], record["id"]
            assert items == json.loads(line)["messages"]
            checked += 1
    assert checked > 20


def _one_of(pinned: set[int]) -> Callable[[Any], bool]:
    return lambda item: id(item) in pinned
