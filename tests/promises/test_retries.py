"""How often a call is made again, and what is raised in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, CompactionError
from compacter.testing import (
    ScriptedModel,
    TokenLimitError,
    rate_limit_error,
    server_error,
    token_limit_error,
)

if TYPE_CHECKING:
    from tests.promises.conftest import Chat, MakeStage, Talk


def test_what_fits_is_passed_on_unchanged_and_nothing_is_told(
    stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(window=10_000)
    history = talk.turns(5)

    scene.ask(history)

    assert scene.sent == history
    assert scene.told == []


def test_once_too_long_makes_two_requests(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500)

    answer = scene.ask(talk.turns(12))

    assert answer == "ok"
    assert [request.refused for request in scene.model.requests] == [True, False]


@pytest.mark.parametrize("retries", [1, 2, 4])
def test_always_too_long_ends_in_the_providers_error(
    retries: int, stage: MakeStage, talk: type[Talk]
) -> None:
    # The model refuses whatever it is sent, and says no numbers that would allow to aim.
    refusal = token_limit_error("bedrock", limit=10, input_tokens=20)
    scene = stage(
        model=ScriptedModel(window=10**9, replies=refusal), max_retries=retries, compact_ratio=0.3
    )

    with pytest.raises(TokenLimitError) as caught:
        scene.ask(talk.turns(40))

    assert caught.value is refusal
    assert len(scene.model.requests) == 1 + retries
    assert "compacter gave up" in caught.value.__notes__[0]


def test_a_rejected_request_is_never_sent_twice(stage: MakeStage, talk: type[Talk]) -> None:
    refusal = token_limit_error("bedrock", limit=10, input_tokens=20)
    scene = stage(
        model=ScriptedModel(window=10**9, replies=refusal), max_retries=30, compact_ratio=0.6
    )

    with pytest.raises(TokenLimitError):
        scene.ask(talk.turns(6))

    sent = [request.messages for request in scene.model.requests]
    assert len(sent) < 31
    assert all(one != other for index, one in enumerate(sent) for other in sent[:index])


@pytest.mark.parametrize("messages", [1, 2])
def test_one_message_is_sent_once(messages: int, stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=100)
    long = talk.user(talk.text("only", 2_000))

    with pytest.raises(TokenLimitError):
        scene.ask([talk.system(), long][-messages:])

    assert len(scene.model.requests) == 1
    assert not scene.summarizer.requests


@pytest.mark.parametrize(
    "error",
    [rate_limit_error(), server_error(), ValueError("no"), KeyError("choices"), TimeoutError()],
    ids=lambda error: type(error).__name__,
)
def test_any_other_error_is_raised_untouched_after_one_request(
    error: Exception, stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(model=ScriptedModel(window=10**9, replies=error))

    with pytest.raises(type(error)) as caught:
        scene.ask(talk.turns(12))

    assert caught.value is error
    assert not getattr(error, "__notes__", [])
    assert len(scene.model.requests) == 1
    assert not scene.told


def test_no_retries(stage: MakeStage, talk: type[Talk]) -> None:
    """The error is raised, and nothing is summarized."""
    scene = stage(window=500, max_retries=0)

    with pytest.raises(TokenLimitError) as caught:
        scene.ask(talk.turns(12))

    assert len(scene.model.requests) == 1
    assert not scene.summarizer.requests
    assert scene.kinds() == ["RetriesExhausted"]
    assert "max_retries=0" in caught.value.__notes__[0]
    assert not issubclass(CompactionError, type(caught.value))


def test_compaction_never_loops_without_progress(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500, max_retries=50)
    history = [talk.system(talk.text("standing orders", 4_000)), *talk.turns(5)[1:]]

    with pytest.raises(TokenLimitError):
        scene.ask(history)

    sizes = [request.tokens for request in scene.model.requests]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(scene.summarizer.requests) < 20


def test_too_large_an_output_is_no_long_history(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(model=ScriptedModel(window=4_000, counts_output=True))
    history = talk.turns(12)

    assert scene.ask(history, max_tokens=3_500) == "ok"

    assert scene.sent == history
    assert scene.kinds() == ["MaxTokensAdjusted"]


# Quotes never cause a refusal: where the window is not known, that shows only when they have been
# sent.
@pytest.mark.parametrize("max_retries", [1, 2])
def test_the_last_request_that_is_allowed_has_no_quotes(max_retries: int) -> None:
    history = [
        {
            "role": role,
            "content": f"{said} {number}: captain Miller{number} has the depth of Pier{number}. "
            + "The wind was low, and nobody came to the quay. " * 6,
        }
        for number in range(14)
        for role, said in (("user", "Question"), ("assistant", "Answer"))
    ]
    asked: list[list[Chat]] = []

    def complete(model: str, messages: list[Chat]) -> Any:
        asked.append(messages)
        if len(messages) == len(asked[0]) or any(
            "quoted from earlier" in message["content"] for message in messages
        ):
            raise token_limit_error("bedrock", limit=1, input_tokens=2)
        return {
            "choices": [
                {"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
            ]
        }

    compacter = Compacter(
        max_retries=max_retries,
        recall=2_000,
        summarizer=lambda messages, **_: "They spoke of piers.",
    )
    compacter.wrap(complete)(
        "m", [*history, {"role": "user", "content": ("What did captain Miller3 say of Pier3?")}]
    )

    assert len(asked) == 1 + max_retries
