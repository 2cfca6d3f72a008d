"""What gollem's ``middleware/compacter`` promises: one reactive round after another (G1 to G17)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import tenacity

from compacter import Compacter, CompactionError
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

    from tests.behaviours.conftest import Chat, MakeStage, Talk


@pytest.mark.parametrize(("texts", "size"), [([], 0), (["héllo"], 5), (["one", "three", ""], 8)])
def test_g1_the_data_size_of_texts_is_the_sum_of_their_characters(texts: list[str], size: int) -> None:
    plan = Compacter().plan([{"role": "user", "content": text} for text in texts])

    assert plan.original_data_size == size


def test_g1_calls_arguments_and_results_weigh_too(talk: type[Talk]) -> None:
    history = [talk.user("go"), talk.calls("c"), talk.result("c", "x" * 50)]

    plan = Compacter().plan(history)

    assert plan.original_data_size >= len("go") + len("look_up") + len('{"topic": "the harbour"}') + 50


def test_g2_an_empty_list_has_an_empty_head_and_an_empty_tail() -> None:
    plan = Compacter().plan([])

    assert (plan.cut, plan.head, plan.tail, plan.head_size, plan.tail_size) == (0, (), (), 0, 0)


def test_g3_a_ratio_of_one_folds_all_that_may_be_folded(talk: type[Talk]) -> None:
    history = talk.turns(5)

    plan = Compacter(compact_ratio=1).plan(history)

    assert plan.head == tuple(history[1:-1])


@pytest.mark.parametrize("ratio", [0.1, 0.25, 0.4, 0.5, 0.75, 0.9])
def test_g4_the_message_that_reaches_the_target_goes_to_the_head(ratio: float, talk: type[Talk]) -> None:
    history = talk.turns(10, size=100)
    compactable = 20 * 100

    plan = Compacter(compact_ratio=ratio).plan(history)

    # A tail may begin with its turn, so at most the rest of that turn goes along.
    assert plan.head_size >= ratio * compactable
    assert plan.head_size - 200 < ratio * compactable


@pytest.mark.parametrize("ratio", [0.01, 0.7, 1.0])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_g5_at_least_one_message_remains(ratio: float, count: int, talk: type[Talk]) -> None:
    history = [talk.answer(talk.text(f"thought {number}", 900)) for number in range(count)]

    result = Compacter(compact_ratio=ratio, summarizer=ScriptedSummarizer()).compact(history)

    assert result.messages
    assert any(message in history for message in result.messages)


def test_g6_once_too_long_then_success_makes_exactly_two_requests(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500)

    answer = scene.ask(talk.turns(12))

    assert answer == "ok"
    assert [request.refused for request in scene.model.requests] == [True, False]


@pytest.mark.parametrize("retries", [1, 2, 4])
def test_g7_always_too_long_ends_in_the_providers_error(retries: int, stage: MakeStage, talk: type[Talk]) -> None:
    # The model refuses whatever it is sent, and says no numbers that would allow to aim.
    refusal = token_limit_error("bedrock", limit=10, input_tokens=20)
    scene = stage(model=ScriptedModel(window=10**9, replies=refusal), max_retries=retries, compact_ratio=0.3)

    with pytest.raises(TokenLimitError) as caught:
        scene.ask(talk.turns(40))

    assert caught.value is refusal
    assert len(scene.model.requests) == 1 + retries
    assert "compacter gave up" in caught.value.__notes__[0]


def test_g7_a_rejected_request_is_never_sent_twice(stage: MakeStage, talk: type[Talk]) -> None:
    refusal = token_limit_error("bedrock", limit=10, input_tokens=20)
    scene = stage(model=ScriptedModel(window=10**9, replies=refusal), max_retries=30, compact_ratio=0.6)

    with pytest.raises(TokenLimitError):
        scene.ask(talk.turns(6))

    sent = [request.messages for request in scene.model.requests]
    assert len(sent) < 31
    assert all(one != other for index, one in enumerate(sent) for other in sent[:index])


@pytest.mark.parametrize("messages", [1, 2])
def test_g8_without_a_history_the_error_comes_without_a_second_request(
    messages: int, stage: MakeStage, talk: type[Talk]
) -> None:
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
def test_g9_any_other_error_is_raised_untouched_after_one_request(
    error: Exception, stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(model=ScriptedModel(window=10**9, replies=error))

    with pytest.raises(type(error)) as caught:
        scene.ask(talk.turns(12))

    assert caught.value is error
    assert not getattr(error, "__notes__", [])
    assert len(scene.model.requests) == 1
    assert not scene.told


def test_g10_a_stream_that_is_too_long_is_opened_twice_and_read_once(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(model=ScriptedModel(window=500, replies="hello there", chunk_size=3))
    completion = scene.compacter.wrap(scene.model.completion)

    stream = completion(model="scripted", messages=talk.turns(12), stream=True)
    text = "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in stream)

    assert text == "hello there"
    assert [request.refused for request in scene.model.requests] == [True, False]
    assert len(scene.model.streams) == 1


def test_g11_the_hook_gets_sizes_and_the_summarizers_own_tokens(stage: MakeStage, talk: type[Talk]) -> None:
    usage = {"prompt_tokens": 321, "completion_tokens": 23, "total_tokens": 344}
    summarizer = ScriptedSummarizer("They spoke of the weather.", returns="completion", usage=usage)
    scene = stage(window=500, summarizer=summarizer)

    scene.ask(talk.turns(12))

    (event,) = scene.compactions
    assert event.attempt == 1
    assert 0 < event.compacted_data_size < event.original_data_size
    assert event.summarizer_calls == len(summarizer.requests)
    assert event.input_tokens == 321 * event.summarizer_calls
    assert event.output_tokens == 23 * event.summarizer_calls
    assert event.summary == "They spoke of the weather."


@pytest.mark.parametrize("answers_too", [False, True])
def test_g12_roles_alternate_where_they_must(answers_too: bool, stage: MakeStage, talk: type[Talk]) -> None:
    model = ScriptedModel(window=500, alternate_roles=True)
    scene = stage(model=model, alternate_roles=True)
    history = talk.turns(12)
    if answers_too:
        history = [*history[:-1], talk.user("And now?"), talk.answer("Rain."), talk.user("Sure?")]

    for ratio in (0.2, 0.5, 0.55, 0.9, 1.0):
        scene = stage(model=model, alternate_roles=True, compact_ratio=ratio, memory=None)
        assert scene.ask(history) == "ok"

    assert model.rejected == 5
    assert model.invalid == 0


def _in_retry_error(error: Exception) -> Exception:
    attempt: tenacity.Future = tenacity.Future(attempt_number=3)
    attempt.set_exception(error)
    return tenacity.RetryError(attempt)


def _as_cause(error: Exception) -> Exception:
    outer = RuntimeError("the call failed")
    outer.__cause__ = error
    return outer


def _as_context(error: Exception) -> Exception:
    outer = RuntimeError("the call failed")
    outer.__context__ = error
    return outer


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
def test_g13_the_error_counts_wherever_it_is_wrapped(
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


# G14, what a real model keeps of planted words, is measured with the embedded model in tests/live.


@pytest.mark.parametrize("style", sorted(STYLES))
def test_g15_every_providers_refusal_is_known(style: str, stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(model=ScriptedModel(window=500, style=style))

    assert scene.ask(talk.turns(12)) == "ok"
    assert scene.model.rejected >= 1


@pytest.mark.parametrize("style", sorted(STYLES))
def test_g15_every_providers_other_errors_are_told_apart(style: str, stage: MakeStage, talk: type[Talk]) -> None:
    for error in (rate_limit_error(style), server_error(style)):
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
def test_g15_the_right_text_with_a_wrong_kind_of_error_is_no_token_limit(
    status: int, code: str, stage: MakeStage, talk: type[Talk]
) -> None:
    words = "The context window takes at most 8000 tokens, but your messages amount to 9000 tokens."
    body = {"error": {"message": words, "type": code, "code": code}}
    error = ProviderError(
        f"Error code: {status} - {body}", message=words, status_code=status, code=code, kind=code, body=body
    )
    scene = stage(model=ScriptedModel(window=10**9, replies=error))

    with pytest.raises(ProviderError):
        scene.ask(talk.turns(12))

    assert len(scene.model.requests) == 1


def test_g16_the_hook_fires_after_the_summary_and_before_the_retry(talk: type[Talk]) -> None:
    order: list[str] = []
    model = ScriptedModel(window=500)

    def completion(messages: Sequence[Chat]) -> Any:
        order.append("call")
        return model.completion("scripted", messages)

    def summarizer(messages: Sequence[Chat]) -> str:
        order.append("summary")
        return "They spoke of the weather."

    compacter = Compacter(summarizer=summarizer, on_compaction=lambda event: order.append("hook"))
    compacter.wrap(completion)(messages=talk.turns(12))

    assert order[0] == "call"
    assert set(order[1:-2]) == {"summary"}
    assert order[-2:] == ["hook", "call"]


def test_g16_the_hook_fires_once_a_round_also_when_the_retry_then_fails(stage: MakeStage, talk: type[Talk]) -> None:
    refusal = token_limit_error("bedrock", limit=10, input_tokens=20)
    scene = stage(model=ScriptedModel(window=10**9, replies=refusal), max_retries=2, compact_ratio=0.3)

    with pytest.raises(TokenLimitError):
        scene.ask(talk.turns(40))

    assert [event.attempt for event in scene.compactions] == [1, 2]


def test_g16_the_hook_never_fires_when_nothing_was_done(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=100)

    with pytest.raises(TokenLimitError):
        scene.ask([talk.user(talk.text("only", 2_000))])

    assert not scene.compactions


def test_g17_with_no_retries_the_error_is_raised_and_nothing_is_summarised(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500, max_retries=0)

    with pytest.raises(TokenLimitError) as caught:
        scene.ask(talk.turns(12))

    assert len(scene.model.requests) == 1
    assert not scene.summarizer.requests
    assert scene.kinds() == ["RetriesExhausted"]
    assert "max_retries=0" in caught.value.__notes__[0]
    assert not issubclass(CompactionError, type(caught.value))
