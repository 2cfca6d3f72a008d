"""Which errors are a token limit, wherever they are wrapped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import tenacity

from compacter import Compacter
from compacter.summary import message as summary_message
from compacter.testing import (
    STYLES,
    ProviderError,
    ScriptedModel,
    ScriptedSummarizer,
    TokenLimitError,
    rate_limit_error,
    server_error,
    token_limit_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.promises.conftest import Chat, MakeStage, Talk


def _as_cause(error: Exception) -> Exception:
    outer = RuntimeError("the call failed")
    outer.__cause__ = error
    return outer


def _as_context(error: Exception) -> Exception:
    outer = RuntimeError("the call failed")
    outer.__context__ = error
    return outer


def _in_retry_error(error: Exception) -> Exception:
    attempt: tenacity.Future = tenacity.Future(attempt_number=3)
    attempt.set_exception(error)
    return tenacity.RetryError(attempt)


@pytest.mark.parametrize(
    "wrapped",
    [
        _as_cause,
        _as_context,
        _in_retry_error,
        lambda error: ExceptionGroup("several", [error]),
        lambda error: _as_cause(_in_retry_error(ExceptionGroup("several", [error]))),
    ],
    ids=["cause", "context", "RetryError", "group", "all of them"],
)
def test_a_wrapped_error_counts(
    wrapped: Callable[[Exception], Exception], talk: type[Talk]
) -> None:
    model = ScriptedModel(window=500)

    def completion(messages: Sequence[Chat]) -> Any:
        try:
            return model.completion("scripted", messages)
        except TokenLimitError as error:
            caught = error
        raise wrapped(caught)

    reply = Compacter(summarizer=ScriptedSummarizer()).wrap(completion)(messages=talk.turns(12))

    assert reply["choices"][0]["message"]["content"] == "ok"
    assert len(model.requests) == 2


@pytest.mark.parametrize("style", sorted(STYLES))
def test_every_providers_refusal_is_known(style: str, stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(model=ScriptedModel(window=500, style=style))

    assert scene.ask(talk.turns(12)) == "ok"
    assert scene.model.rejected >= 1


@pytest.mark.parametrize("style", sorted(STYLES))
def test_other_errors_are_told_apart(style: str, stage: MakeStage, talk: type[Talk]) -> None:
    for error in (rate_limit_error(), server_error()):
        scene = stage(model=ScriptedModel(window=10**9, style=style, replies=error))
        with pytest.raises(ProviderError):
            scene.ask(talk.turns(3))
        assert len(scene.model.requests) == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "invalid_api_key"),
        (403, "permission_denied"),
        (404, "not_found"),
        (429, "rate_limit_exceeded"),
        (429, "insufficient_quota"),
    ],
)
def test_the_right_text_with_a_wrong_kind_of_error_is_no_token_limit(
    status: int, code: str, stage: MakeStage, talk: type[Talk]
) -> None:
    words = "The context window takes at most 8000 tokens, but your messages amount to 9000 tokens."
    body = {"error": {"message": words, "type": code, "code": code}}
    error = ProviderError(
        f"Error code: {status} - {body}",
        message=words,
        status_code=status,
        code=code,
        kind=code,
        body=body,
    )
    scene = stage(model=ScriptedModel(window=10**9, replies=error))

    with pytest.raises(ProviderError):
        scene.ask(talk.turns(12))

    assert len(scene.model.requests) == 1


def test_an_old_error_does_not_trigger_anything(talk: type[Talk]) -> None:
    old = token_limit_error(limit=10, input_tokens=20)
    calls = 0

    def completion(messages: Sequence[Chat]) -> None:
        nonlocal calls
        calls += 1
        try:
            raise old
        except TokenLimitError:
            # What was handled already stays in the context of the next error.
            raise rate_limit_error()  # noqa: B904 - that is the point

    with pytest.raises(type(rate_limit_error())):
        Compacter(summarizer=ScriptedSummarizer("Short.")).wrap(completion)(messages=talk.turns(12))

    assert calls == 1


def test_one_models_window_is_not_anothers(stage: MakeStage, talk: type[Talk]) -> None:
    small = ScriptedModel(window=600)
    large = ScriptedModel(window=100_000)

    def completion(model: str, messages: Sequence[Chat]) -> Any:
        return (small if model == "small" else large).completion(model, messages)

    compacter = Compacter(summarizer=ScriptedSummarizer("Short."), trigger_tokens=0.8)
    wrapped = compacter.wrap(completion)
    history = talk.turns(12)
    wrapped("small", history)
    wrapped("large", history)
    wrapped("large", [*history, talk.answer("x"), talk.user("y")])

    assert small.rejected == 1
    assert summary_message.TAG not in str(large.requests[-1].messages)
    assert list(large.requests[0].messages) == history
