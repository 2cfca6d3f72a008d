"""No hook changes what is sent, and no quote causes a refusal: programs of many calls."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.effort import times

from compacter import Compacter
from compacter.lines.frame import strip
from compacter.messages.format import get_format
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.conversations import Chat

ENGLISH = ("the", "harbour", "master", "keeps", "a", "ledger", "of", "barrels", "until", "noon")
CHINESE = ["港口", "主管", "记录", "每一个", "中午", "之前", "离开", "木桶", "数量", "价格"]


def tokens(messages: Sequence[Any], _: Any = None) -> int:
    """A token for a Chinese character and for four other ones."""
    text = "".join(str(message["content"]) for message in messages)
    return sum(4 if ord(letter) > 255 else 1 for letter in text) // 4


def told(rng: random.Random, name: str) -> str:
    words = rng.choice([ENGLISH, CHINESE])
    return f"{name}: {' '.join(rng.choices(words, k=rng.randint(20, 60)))}."


def program(seed: int, conversations: int = 3) -> Iterator[tuple[list[Chat], dict[str, Any]]]:
    """Calls of some conversations in turn, as a program makes them that resends its history."""
    rng = random.Random(seed)
    talks: list[list[Chat]] = [
        [{"role": "system", "content": f"You are clerk {number}."}]
        for number in range(conversations)
    ]
    for number in range(36):
        talk = rng.choice(talks)
        told_before = rng.randint(0, number)
        question = f"What of barrel{told_before} and ship{told_before}?"
        talk.append({"role": "user", "content": question})
        yield list(talk), rng.choice([{}, {}, {"max_tokens": 50}])
        talk.append({"role": "assistant", "content": told(rng, f"barrel{number} ship{number}")})


def requests(seed: int, **hooks: Any) -> list[tuple[Any, ...]]:
    """Requests that the provider receives in this program."""
    rng = random.Random(seed)
    model = ScriptedModel(
        window=rng.randint(800, 1_500),
        style=rng.choice(["openai", "bedrock"]),
        count=tokens,
        truncates=rng.random() < 0.2,
        usage=rng.random() < 0.8,
    )
    options: dict[str, Any] = {"recall": rng.choice([0.4, 300, None])}
    if rng.random() < 0.3:
        options["trigger_tokens"] = 600
    summarizer = ScriptedSummarizer("They talked about barrels.")
    completion = Compacter(summarizer=summarizer, **options, **hooks).wrap(model.completion)
    for messages, given in program(seed):
        completion("m", messages, **given)
    return [(request.messages, dict(request.options)) for request in model.requests]


@pytest.mark.parametrize("seed", range(times(5, long=12)))
def test_a_hook_never_changes_a_request(seed: int) -> None:
    without = requests(seed)
    for hook in ("on_event", "on_compaction", "before_compaction"):
        assert requests(seed, **{hook: lambda _: None}) == without


@pytest.mark.parametrize("style", ["openai", "bedrock"])
@pytest.mark.parametrize("usage", [True, False])
def test_quotes_cause_no_refusal_whatever_the_script(style: str, usage: bool) -> None:
    for seed in range(times(3, long=6)):
        rng = random.Random(seed)
        model = ScriptedModel(
            window=rng.randint(1_000, 2_500), style=style, count=tokens, usage=usage
        )
        summarizer = ScriptedSummarizer("They talked about barrels.")
        compacter = Compacter(summarizer=summarizer, recall=0.4)
        compacter._state.calibration("m").window = model.window
        completion = compacter.wrap(model.completion)
        for messages, given in program(seed, 1):
            completion("m", messages, **given)
        for request in model.requests:
            if request.refused:
                assert tokens(strip(request.messages, get_format("openai"))) > model.window
