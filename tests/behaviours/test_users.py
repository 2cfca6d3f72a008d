"""What users of other libraries report, and what must not happen here (P1 to P17)."""

from __future__ import annotations

import asyncio
import base64
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, get_args

import pytest

from compacter import Compacter
from compacter.messages.format import get_format
from compacter.summary import message as summary_message
from compacter.testing import (
    Failure,
    ScriptedModel,
    ScriptedSummarizer,
    TokenLimitError,
    rate_limit_error,
    token_limit_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.behaviours.conftest import Chat, MakeStage, Talk

    SummariesIn = Callable[[Sequence[Chat]], list[str]]

OPENAI = get_format("openai")


@pytest.mark.parametrize("ratio", [0.1, 0.35, 0.6, 0.85, 1.0])
@pytest.mark.parametrize("parallel", [1, 3])
def test_p1_no_tool_result_is_orphaned_over_a_whole_session(
    ratio: float, parallel: int, stage: MakeStage, talk: type[Talk]
) -> None:
    scene = stage(window=1_200, compact_ratio=ratio, max_retries=10)
    history = talk.errand(0)

    for number in range(40):
        assert scene.ask(history) == "ok"
        ids = [f"call_{number % 3}_{place}" for place in range(parallel)]
        history += [
            talk.calls(*ids),
            *(talk.result(name, talk.text(f"result {number}", 200)) for name in ids),
        ]

    assert scene.model.rejected
    assert scene.model.invalid == 0


def test_p2_an_overflow_of_the_summarizer_does_not_stick(stage: MakeStage, talk: type[Talk]) -> None:
    asked = ScriptedSummarizer("Short.", window=400, returns="completion")
    scene = stage(window=1_000, summarizer=asked)
    history = [talk.system()]

    for number in range(40):
        history.append(talk.user(talk.text(f"question {number}", 200)))
        assert scene.ask(history) == "ok"
        history.append(talk.answer(talk.text(f"answer {number}", 200)))

    assert scene.compactions
    assert not any(event.fallback for event in scene.compactions)


@pytest.mark.parametrize("place", ["first", "middle", "last"])
def test_p3_one_oversized_message_is_reduced_wherever_it_stands(place: str, stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=1_000, preserve_recent_turns=1)
    huge = [talk.calls("huge"), talk.result("huge", talk.text("huge result", 40_000))]
    history = talk.errand(4, size=200)
    at = {"first": 2, "middle": 6, "last": len(history)}[place]
    history[at:at] = huge

    assert scene.ask(history) == "ok"
    assert scene.model.invalid == 0


def test_p4_compaction_never_loops_without_progress(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=500, max_retries=50)
    history = [talk.system(talk.text("standing orders", 4_000)), *talk.turns(5)[1:]]

    with pytest.raises(TokenLimitError):
        scene.ask(history)

    sizes = [request.tokens for request in scene.model.requests]
    assert sizes == sorted(set(sizes), reverse=True)
    assert len(scene.summarizer.requests) < 20


@pytest.mark.parametrize("failure", get_args(Failure))
def test_p5_no_bad_answer_is_stored_as_the_summary(
    failure: Any, stage: MakeStage, talk: type[Talk], summaries_in: SummariesIn
) -> None:
    scene = stage(window=500, summarizer=ScriptedSummarizer(fail=failure, returns="completion"))

    scene.ask(talk.turns(12))
    scene.ask(talk.turns(12))

    for words in ("sorry", "So far the user has asked for", "and then, and then"):
        assert words not in summaries_in(scene.sent)[0]


@pytest.mark.parametrize(
    "text",
    [
        "the prompt is 12000 tokens, which is more than the 8192 that fit into the context of this model",
        "input length 12000 exceeds the maximum context length of 8192 tokens",
        "prompt too long: 12,000 tokens > 8,192 maximum",
    ],
)
def test_p6_a_token_limit_is_known_by_its_words(text: str, talk: type[Talk]) -> None:
    calls = 0

    def completion(messages: Sequence[Chat]) -> str:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError(text)
        return "ok"

    assert Compacter(summarizer=ScriptedSummarizer("Short.")).wrap(completion)(messages=talk.turns(12)) == "ok"
    assert calls == 2


def test_p7_the_first_task_and_standing_rules_are_not_lost(talk: type[Talk], summaries_in: SummariesIn) -> None:
    history = talk.turns(0)[:1]
    history.append(talk.user("Port the billing service to Rust. Never touch the file legacy/ledger.py."))
    history += talk.turns(20)[1:]
    compacter = Compacter(summarizer=ScriptedSummarizer("They spoke of the weather."))

    result = compacter.compact(history)
    for _ in range(4):
        result = compacter.compact([*result.messages, *talk.turns(20)[1:]])

    (text,) = summaries_in(result.messages)
    assert "legacy/ledger.py" in text
    assert "Never touch" in text
    assert "billing service" in text


def test_p8_the_prompt_cache_stays_warm(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=2_000)
    history = [talk.system()]

    for number in range(120):
        history.append(talk.user(talk.text(f"question {number}", 150)))
        scene.ask(history)
        history.append(talk.answer(talk.text(f"answer {number}", 150)))

    # Each request but those around a compaction begins with the whole one before it.
    cold = 0
    for earlier, later in zip(scene.model.requests, scene.model.requests[1:], strict=False):
        cold += list(later.messages[: len(earlier.messages)]) != list(earlier.messages)
    assert cold <= 2 * len(scene.compactions)
    assert len(scene.compactions) < 30


def test_p9_thinking_stays_only_where_its_provider_takes_it(talk: type[Talk]) -> None:
    history: list[Any] = [talk.user("Count the ships.")]
    for number in range(10):
        thought = {"type": "thinking", "thinking": "hm " * 40, "signature": f"sig{number}"}
        use = {"type": "tool_use", "id": f"call_{number}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": "ship " * 40}
        history += [{"role": "assistant", "content": [thought, use]}, {"role": "user", "content": [result]}]
    asked = ScriptedSummarizer("Short.")

    for ratio in (0.3, 0.6, 0.9, 1.0):
        compacted = Compacter(summarizer=asked, compact_ratio=ratio).compact(history, wire_format="anthropic")
        for message in compacted.messages:
            blocks = message["content"] if isinstance(message["content"], list) else []
            kinds = [block["type"] for block in blocks]
            # A block of thoughts is valid only unchanged, before the call it led to.
            assert "thinking" not in kinds or kinds == ["thinking", "tool_use"]
            assert "thinking" not in kinds or any(message is own for own in history)
    assert "hm hm" not in "".join(asked.prompts)


def test_p10_the_summarizers_tokens_are_counted(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=600)

    scene.ask(talk.turns(12))

    assert scene.compacter.totals.input_tokens == scene.summarizer.tokens > 0


def test_p11_base64_is_neither_counted_nor_sent_as_text(stage: MakeStage, talk: type[Talk]) -> None:
    data = base64.b64encode(bytes(300_000)).decode()
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
    history = [{"role": "user", "content": [picture]}, *talk.turns(14)[1:]]
    scene = stage(window=1_000)

    scene.ask(history)

    assert data[:50] not in "".join(scene.summarizer.prompts)
    assert scene.compactions[0].original_data_size < 20_000


@pytest.mark.parametrize("stream", [True, False])
def test_p12_the_summary_does_not_leak_into_the_users_answer(stream: bool, talk: type[Talk]) -> None:
    def reply(messages: tuple[Chat, ...]) -> str:
        return "SUMMARY WORDS" if len(messages) == 1 else "the answer"

    model = ScriptedModel(window=900, replies=reply, chunk_size=4)

    answer: Any = Compacter().wrap(model.completion)("m", talk.turns(20), stream=stream)

    text = str(list(answer)) if stream else str(answer)
    assert "SUMMARY" not in text
    assert "ans" in text


async def test_p13_concurrent_calls_make_one_summary_and_lose_nothing(talk: type[Talk]) -> None:
    model = ScriptedModel(window=600)
    compacter = Compacter(summarizer=ScriptedSummarizer("Short.").acall)
    completion = compacter.wrap(model.acompletion)

    replies = await asyncio.gather(*(completion("m", talk.turns(12)) for _ in range(12)))

    assert len(replies) == 12
    assert compacter.totals.rounds == 1


def test_p13_in_threads_too(talk: type[Talk]) -> None:
    model = ScriptedModel(window=600)
    compacter = Compacter(summarizer=ScriptedSummarizer("Short."))
    completion = compacter.wrap(model.completion)

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: completion("m", talk.turns(12)), range(16)))

    assert len(replies) == 16
    assert compacter.totals.rounds == 1


def test_p14_too_large_an_output_is_no_long_history(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(model=ScriptedModel(window=4_000, counts_output=True))
    history = talk.turns(12)

    assert scene.ask(history, max_tokens=3_500) == "ok"

    assert scene.sent == history
    assert scene.kinds() == ["MaxTokensAdjusted"]


@pytest.mark.parametrize("strict_model", [True, False])
def test_p15_strict_alternation_is_kept_over_a_whole_session(
    strict_model: bool, stage: MakeStage, talk: type[Talk]
) -> None:
    model = ScriptedModel(window=900, alternate_roles=strict_model, user_first=True)
    scene = stage(model=model, alternate_roles=strict_model or None)
    history = [talk.system()]

    for number in range(40):
        history.append(talk.user(talk.text(f"question {number}", 150)))
        assert scene.ask(history) == "ok"
        history.append(talk.answer(talk.text(f"answer {number}", 150)))

    assert model.invalid == 0
    assert model.rejected > 3


@pytest.mark.parametrize(
    "answer",
    [
        "Sure! Let me look at the weather for you.",
        "user: And now?\nassistant: It rains.\nuser: Still?\nassistant: Yes.",
        "How can I help you today?",
    ],
)
def test_p16_a_continuation_of_the_chat_is_no_summary(
    answer: str, stage: MakeStage, talk: type[Talk], summaries_in: SummariesIn
) -> None:
    scene = stage(window=600, summarizer=ScriptedSummarizer(answer, returns="completion"))

    assert scene.ask(talk.turns(12)) == "ok"

    assert scene.compactions[0].fallback
    assert answer not in summaries_in(scene.sent)[0]


def test_p17_an_old_error_does_not_trigger_anything(talk: type[Talk]) -> None:
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


def test_p17_one_models_window_is_not_anothers(stage: MakeStage, talk: type[Talk]) -> None:
    small, large = ScriptedModel(window=600), ScriptedModel(window=100_000)

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
