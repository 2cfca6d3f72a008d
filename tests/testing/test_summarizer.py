from __future__ import annotations

from typing import get_args

import pytest

from compacter.testing import Failure, ProviderError, ScriptedSummarizer, TokenLimitError

PROMPT = [{"role": "user", "content": "Summarise this: we met, we spoke, we parted."}]


def test_it_says_its_text_and_keeps_the_prompts() -> None:
    summarizer = ScriptedSummarizer("They met.")
    assert summarizer(PROMPT, model="m", max_tokens=1) == "They met."
    assert summarizer([{"role": "system", "content": "Be brief."}, *PROMPT]) == "They met."
    assert summarizer.prompts == (PROMPT[0]["content"], "Be brief.\n\n" + PROMPT[0]["content"])
    assert summarizer.tokens == 11 + 14
    assert (summarizer.requests[0].model, summarizer.requests[0].max_tokens) == ("m", 1)


def test_a_function_makes_the_summary_of_the_prompt() -> None:
    summarizer = ScriptedSummarizer(lambda messages: messages[0]["content"][:9])
    assert summarizer(PROMPT) == "Summarise"


@pytest.mark.parametrize("usage", [True, {"prompt_tokens": 3}])
def test_a_completion_carries_usage(usage: bool | dict[str, int]) -> None:
    reply = ScriptedSummarizer("They met.", returns="completion", usage=usage)(PROMPT)
    assert reply["choices"][0]["message"]["content"] == "They met."
    assert reply["usage"]["prompt_tokens"] == (11 if usage is True else 3)


async def test_it_can_be_asynchronous() -> None:
    assert await ScriptedSummarizer("They met.").acall(PROMPT) == "They met."


@pytest.mark.parametrize(
    ("fail", "answer"),
    [
        ("nothing", None),
        ("empty", ""),
        ("blank", " \n\t "),
        ("refusal", "I'm sorry, but I can't help with that."),
    ],
)
def test_bad_texts(fail: Failure, answer: str | None) -> None:
    assert ScriptedSummarizer(fail=fail)(PROMPT) == answer


@pytest.mark.parametrize(
    ("fail", "reason", "member"),
    [
        ("tool_call", "tool_calls", "tool_calls"),
        ("length", "length", "content"),
        ("filtered", "content_filter", "refusal"),
    ],
)
def test_what_only_a_completion_can_tell(fail: Failure, reason: str, member: str) -> None:
    reply = ScriptedSummarizer(fail=fail)(PROMPT)
    choice = reply["choices"][0]
    assert choice["finish_reason"] == reason
    assert choice["message"][member]


def test_a_summary_that_is_larger_than_its_prompt() -> None:
    reply = ScriptedSummarizer(fail="too_large")(PROMPT)
    assert isinstance(reply, str)
    assert len(reply) > len(PROMPT[0]["content"])


@pytest.mark.parametrize(
    ("fail", "kind", "status"),
    [("raises", ProviderError, 500), ("overflows", TokenLimitError, 400)],
)
def test_errors(fail: Failure, kind: type[ProviderError], status: int) -> None:
    with pytest.raises(kind) as caught:
        ScriptedSummarizer(fail=fail)(PROMPT)
    assert caught.value.status_code == status


def test_an_exception_of_ones_own_is_raised_each_time() -> None:
    error = OSError("gone")
    summarizer = ScriptedSummarizer(fail=error)
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            summarizer(PROMPT)
    assert len(summarizer.requests) == 2


def test_failures_come_one_per_call_and_then_end() -> None:
    summarizer = ScriptedSummarizer("fine", fail=["empty", None, "raises"])
    assert [summarizer(PROMPT), summarizer(PROMPT)] == ["", "fine"]
    with pytest.raises(ProviderError):
        summarizer(PROMPT)
    assert summarizer(PROMPT) == "fine"


def test_a_prompt_over_its_window_is_refused() -> None:
    summarizer = ScriptedSummarizer(window=10, style="anthropic")
    with pytest.raises(TokenLimitError, match="11 tokens"):
        summarizer(PROMPT)
    assert [request.refused for request in summarizer.requests].count(True) == 1


def test_an_unknown_failure_is_told_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=rf"fail takes '{get_args(Failure)[0]}'.*'sulks'"):
        ScriptedSummarizer(fail=["sulks"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="returns takes 'text', 'completion'"):
        ScriptedSummarizer(returns="json")  # type: ignore[arg-type]
