from __future__ import annotations

import asyncio
import copy
import threading
from typing import TYPE_CHECKING, Any

import pytest
import trio

from compacter.testing import (
    InvalidRequestError,
    ProviderError,
    Replies,
    ScriptedModel,
    ScriptExhaustedError,
    TokenLimitError,
    rate_limit_error,
)

if TYPE_CHECKING:
    from compacter.messages.format import Message

HELLO = [{"role": "user", "content": "hello"}]


def user(characters: int) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "x" * characters}]


def call(name: str = "look_up", arguments: str = "{}") -> dict[str, Any]:
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


class TestWindow:
    def test_a_window_that_is_no_whole_number_is_refused(self) -> None:
        """The error names the argument and shows what it takes."""
        odd: Any = "300"
        with pytest.raises(ValueError, match=r"window must be a whole number, .*window=300.*'300'"):
            ScriptedModel(window=odd)

    def test_one_token_more_is_refused_with_both_numbers(self) -> None:
        model = ScriptedModel(window=10)
        with pytest.raises(TokenLimitError, match=r"10 tokens.*11 tokens"):
            model.completion("m", user(41))

    def test_max_tokens_counts_only_where_the_provider_counts_it(self) -> None:
        assert ScriptedModel(window=10).completion("m", HELLO, max_tokens=9)
        with pytest.raises(
            TokenLimitError,
            match=(
                r"11 tokens \(2 in the messages, 9 in the "
                r"completion\)"
            ),
        ):
            ScriptedModel(window=10, counts_output=True).completion("m", HELLO, max_tokens=9)

    @pytest.mark.parametrize(
        ("window", "max_tokens", "characters"), [(100, 2, 8), (5, None, 12), (2, 50, 4)]
    )
    def test_an_answer_without_room_is_cut(
        self, window: int, max_tokens: int | None, characters: int
    ) -> None:
        model = ScriptedModel(window=window, replies="0123456789" * 9)
        choice = model.completion("m", HELLO, max_tokens=max_tokens)["choices"][0]
        assert (len(choice["message"]["content"]), choice["finish_reason"]) == (
            characters,
            "length",
        )

    def test_a_truncating_server_answers_and_tells_only_in_the_usage(self) -> None:
        reply = ScriptedModel(window=10, truncates=True).completion("m", user(400))
        assert reply["usage"]["prompt_tokens"] == 10

    def test_another_tokenizer_takes_the_place_of_the_characters(self) -> None:
        model = ScriptedModel(window=3, count=lambda messages, _: 4 * len(messages))
        with pytest.raises(TokenLimitError, match="4 tokens"):
            model.completion("m", HELLO)


class TestReplies:
    def test_a_list_is_used_up_and_a_refused_request_uses_none(self) -> None:
        model = ScriptedModel(window=10, replies=["one", "two"])
        assert model.completion("m", HELLO)["choices"][0]["message"]["content"] == "one"
        with pytest.raises(TokenLimitError):
            model.completion("m", user(100))
        assert model.completion("m", HELLO)["choices"][0]["message"]["content"] == "two"
        with pytest.raises(ScriptExhaustedError, match="2 replies"):
            model.completion("m", HELLO)

    def test_a_function_sees_the_messages(self) -> None:
        model = ScriptedModel(replies=lambda messages: messages[-1]["content"].upper())
        assert model.completion("m", HELLO)["choices"][0]["message"]["content"] == "HELLO"

    def test_tool_calls_end_with_their_own_reason(self) -> None:
        choice = ScriptedModel(replies={"tool_calls": [call()]}).completion("m", HELLO)["choices"][
            0
        ]
        assert choice["finish_reason"] == "tool_calls"
        assert choice["message"] == {"role": "assistant", "content": None, "tool_calls": [call()]}

    def test_a_whole_completion_is_passed_on_as_it_is(self) -> None:
        whole = {"choices": [{"message": {"content": "hi"}, "finish_reason": "eos"}], "extra": 1}
        model = ScriptedModel(replies=whole)
        reply = model.completion("m", HELLO)
        assert reply == whole
        assert reply["choices"] is not whole["choices"]

    def test_an_exception_is_raised(self) -> None:
        error = rate_limit_error()
        with pytest.raises(ProviderError) as caught:
            ScriptedModel(replies=[error]).completion("m", HELLO)
        assert caught.value is error

    @pytest.mark.parametrize("replies", [7, [7]])
    def test_anything_else_is_a_type_error(self, replies: Replies) -> None:
        with pytest.raises(TypeError, match="7"):
            ScriptedModel(replies=replies).completion("m", HELLO)

    def test_an_object_has_the_members_that_the_sdks_objects_always_have(self) -> None:
        model = ScriptedModel(reply_type="object", replies="done")
        message = model.completion("m", HELLO).choices[0].message
        assert (message.content, message.tool_calls, message.refusal) == ("done", None, None)
        chunks = list(model.completion("m", HELLO, stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "done"
        assert not any(chunk.usage or chunk.choices[0].delta.tool_calls for chunk in chunks)
        with pytest.raises(AttributeError, match="'contents'"):
            _ = message.contents

    def test_an_async_function_needs_acompletion(self) -> None:
        async def reply(_: tuple[Message, ...]) -> str:
            await asyncio.sleep(0)
            return "later"

        model = ScriptedModel(replies=reply)
        with pytest.raises(TypeError, match="acompletion"):
            model.completion("m", HELLO)
        answer = asyncio.run(model.acompletion("m", HELLO))
        assert answer["choices"][0]["message"]["content"] == "later"

    @pytest.mark.parametrize(
        ("usage", "seen"), [(False, None), ({"prompt_tokens": 7}, {"prompt_tokens": 7})]
    )
    def test_usage_can_be_left_out_or_made_up(
        self, usage: bool | dict[str, int], seen: object
    ) -> None:
        assert ScriptedModel(usage=usage).completion("m", HELLO).get("usage") == seen


class TestCalls:
    def test_trio_will_do(self) -> None:
        async def streamed() -> list[Any]:
            return [
                chunk async for chunk in await ScriptedModel().acompletion("m", HELLO, stream=True)
            ]

        assert trio.run(ScriptedModel().acompletion, "m", HELLO)["choices"]
        assert trio.run(streamed)

    @pytest.mark.parametrize(
        "options",
        [
            {"window": 0},
            {"style": "nobody"},
            {"overflow_at": "first-event"},
            {"reply_type": "json"},
        ],
    )
    def test_nonsense_is_told_at_construction(self, options: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=f"{next(iter(options))}|nobody"):
            ScriptedModel(**options)


class TestBooks:
    def test_requests_are_copies(self) -> None:
        model = ScriptedModel()
        messages = copy.deepcopy(HELLO)
        model.completion("m", messages, temperature=1)
        messages[0]["content"] = "changed"
        request = model.requests[0]
        assert request.messages == tuple(HELLO)
        assert (request.model, dict(request.options), request.streaming) == (
            "m",
            {"temperature": 1},
            False,
        )

    def test_every_kind_of_request_is_counted(self) -> None:
        model = ScriptedModel(window=10)
        model.completion("m", HELLO)
        with pytest.raises(TokenLimitError):
            model.completion("m", user(100), stream=True)
        with pytest.raises(InvalidRequestError):
            model.completion("m", [])
        assert [(request.refused, bool(request.invalid)) for request in model.requests] == [
            (False, False),
            (True, False),
            (False, True),
        ]
        assert (model.rejected, model.invalid, model.tokens_sent) == (1, 1, 2 + 25)
        assert model.requests[1].streaming

    def test_what_the_request_before_began_with_is_cached(self) -> None:
        model = ScriptedModel(chars_per_token=1)
        first = [{"role": "system", "content": "abc"}, {"role": "user", "content": "de"}]
        model.completion("m", first)
        reply = model.completion("m", [*first, {"role": "assistant", "content": "f"}])
        model.completion("m", [first[0], {"role": "user", "content": "other"}])
        assert [request.cached_tokens for request in model.requests] == [0, 5, 3]
        assert reply["usage"]["prompt_tokens_details"] == {"cached_tokens": 5}
        assert (model.cached_tokens, model.uncached_tokens) == (8, 5 + 6 + 8 - 8)

    def test_threads_lose_no_request(self) -> None:
        model = ScriptedModel()
        threads = [
            threading.Thread(target=lambda: [model.completion("m", HELLO) for _ in range(20)])
            for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(model.requests) == 160


class TestStrict:
    def test_a_broken_list_is_refused_before_its_length_is_looked_at(self) -> None:
        orphan = {"role": "tool", "tool_call_id": "call_9", "content": "x" * 1000}
        with pytest.raises(InvalidRequestError, match="call_9"):
            ScriptedModel(window=10).completion("m", [*HELLO, orphan])

    def test_it_can_be_turned_off(self) -> None:
        assert ScriptedModel(strict=False).completion("m", [])

    def test_another_check_takes_the_place_of_the_rules(self) -> None:
        model = ScriptedModel(check=lambda messages: "too polite" if messages == HELLO else None)
        with pytest.raises(InvalidRequestError, match="too polite"):
            model.completion("m", HELLO)
        assert model.completion("m", user(3))
