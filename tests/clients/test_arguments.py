"""Reading a call: messages of any kind, the server it goes to, and replies that the provider has
edited.
"""

from __future__ import annotations

import functools
from collections import deque
from importlib import import_module
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from google import genai
from litellm.router import Router
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import Compacter
from compacter.call.arguments import Binding, bind
from compacter.messages.replies import is_edited_by_provider, tokens_read
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.clients.loopback import Provider

TALK = [{"role": "user", "content": f"Question {number}? ".ljust(160, "q")} for number in range(30)]


class Incomparable:
    """As arrays are: what it is compared with makes no difference, it has no truth."""

    def __eq__(self, other: object) -> bool:
        raise ValueError("the truth of this is ambiguous")

    __hash__ = None  # type: ignore[assignment]


def test_a_parameter_may_have_a_default_that_cannot_be_compared() -> None:
    def ask(messages: list[Any], seed: Any = Incomparable()) -> str:  # noqa: B008 - that is what is tested
        return "done"

    assert Compacter().wrap(ask)([{"role": "user", "content": "Hello."}]) == "done"


# -- messages as any iterable ----------------------------------------------------------------------

ITERABLES: dict[str, Callable[[], Iterable[Any]]] = {
    "generator": lambda: (message for message in TALK),
    "map": lambda: map(dict, TALK),
    "iterator": lambda: iter(TALK),
    "values": dict(enumerate(TALK)).values,
    "tuple": lambda: tuple(TALK),
    "deque": lambda: deque(TALK),
}


@pytest.mark.parametrize("kind", ITERABLES)
@pytest.mark.parametrize("by_name", [True, False])
def test_an_iterable_is_read_once_and_passed_on_as_a_list(kind: str, by_name: bool) -> None:
    model = ScriptedModel(window=900)
    seen: list[Any] = []

    def completion(messages: Any) -> Any:
        seen.append(list(messages))
        assert isinstance(messages, (list, tuple, deque))
        return model.completion("m", list(messages))

    compacter = Compacter(summarizer="extractive")
    chat = compacter.wrap(completion)
    for _ in range(2):
        messages = ITERABLES[kind]()
        reply = chat(messages=messages) if by_name else chat(messages)
        assert reply["choices"][0]["message"]["content"] == "ok"
    assert seen[0] == TALK
    assert [request.refused for request in model.requests] == [True, False, False]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_the_sdks_take_one_too(
    asynchronous: bool, openai_server: Provider, compacter: Recording, chat: list[Any]
) -> None:
    options: dict[str, Any] = {
        "base_url": openai_server.url + "/v1",
        "api_key": "none",
        "max_retries": 0,
    }
    if asynchronous:
        async with openai.AsyncOpenAI(**options) as client:
            reply = await compacter.wrap(client).chat.completions.create(
                model="m", messages=iter(chat)
            )
    else:
        with openai.OpenAI(**options) as other:
            reply = compacter.wrap(other).chat.completions.create(model="m", messages=iter(chat))
    assert reply.choices[0].message.content == WORDS
    assert len(openai_server.bodies[0]["messages"]) == len(chat)
    assert len(compacter.events) == 1


def test_so_does_anthropics_stream_helper(
    anthropic_server: Provider, compacter: Recording, blocks: list[Any]
) -> None:
    with anthropic.Anthropic(
        base_url=anthropic_server.url, api_key="none", max_retries=0
    ) as client:
        wrapped = compacter.wrap(client)
        with wrapped.messages.stream(model="m", max_tokens=50, messages=iter(blocks)) as stream:
            assert stream.get_final_text() == WORDS
    assert len(compacter.events) == 1


# -- where a call goes -----------------------------------------------------------------------------


def endpoint(client: Any, *path: str) -> str:
    """Facts that the binding of a wrapped client's method reads."""
    wrapped = Compacter().wrap(client)
    return endpoint_of(functools.reduce(getattr, path, wrapped))


def endpoint_of(method: Any) -> str:
    inside = [cell.cell_contents for cell in getattr(method, "__func__", method).__closure__]
    inside += [
        cell.cell_contents for one in inside for cell in getattr(one, "__closure__", ()) or ()
    ]
    inside += [one.binding for one in inside if hasattr(one, "binding")]
    found: str = next(one for one in inside if isinstance(one, Binding)).read((), {}).endpoint
    return found


def test_the_endpoint_tells_kinds_of_clients_and_servers_apart() -> None:
    chat = ("chat", "completions", "create")
    boto: Any = import_module("boto3").client
    aws = {"aws_access_key_id": "none", "aws_secret_access_key": "none"}

    def router(*places: str) -> Router:
        params = [{"model": "openai/m", "api_key": "none", "api_base": place} for place in places]
        return Router(model_list=[{"model_name": "ours", "litellm_params": one} for one in params])

    found = [
        endpoint(openai.OpenAI(api_key="none"), *chat),
        endpoint(openai.OpenAI(api_key="none", base_url="http://a/v1"), *chat),
        endpoint(openai.OpenAI(api_key="none", base_url="http://b/v1"), *chat),
        endpoint(openai.AsyncOpenAI(api_key="none", base_url="http://b/v1"), *chat),
        endpoint(openai.OpenAI(api_key="none").with_options(base_url="http://c/v1"), *chat),
        endpoint(anthropic.Anthropic(api_key="none"), "messages", "create"),
        endpoint(genai.Client(api_key="none"), "models", "_generate_content"),
        endpoint(boto("bedrock-runtime", region_name="us-east-1", **aws), "converse"),
        endpoint(boto("bedrock-runtime", region_name="eu-west-1", **aws), "converse"),
        endpoint(router("http://a"), "completion"),
        endpoint(router("http://b"), "completion"),
    ]
    assert all(found)
    assert len(set(found)) == len(found)
    assert endpoint(router("http://a", "http://b"), "completion") == endpoint(
        router("http://b", "http://a"), "completion"
    )


def test_the_endpoint_of_a_copy_is_the_copys_own() -> None:
    wrapped = Compacter().wrap(openai.OpenAI(api_key="none", base_url="http://a/v1"))
    assert "http://b/v1" in endpoint_of(
        wrapped.with_options(base_url="http://b/v1").chat.completions.create
    )


def test_a_call_may_say_itself_where_it_goes() -> None:
    binding = bind(lambda messages, **options: None)
    assert binding is not None
    nowhere, there, elsewhere = (
        binding.read((), said).endpoint
        for said in ({}, {"base_url": "http://a"}, {"api_base": "http://b"})
    )
    assert nowhere == ""
    assert there != elsewhere != ""


# -- what the provider has edited ------------------------------------------------------------------

EDITED: dict[str, Any] = {
    "context editing": {
        "context_management": {"applied_edits": [{"type": "clear_tool_uses_20250919"}]}
    },
    "a step of its own": {
        "usage": {"input_tokens": 5, "iterations": [{"type": "compaction", "input_tokens": 90}]}
    },
    "a compaction block": {
        "content": [{"type": "compaction", "content": "They talked."}, {"type": "text"}]
    },
    "the answer of a compaction": {"stop_reason": "compaction", "content": []},
    "a compaction item": {
        "output": [{"type": "compaction", "encrypted_content": "opaque"}, {"type": "message"}]
    },
    "litellm's blocks": {
        "choices": [{"message": {"provider_specific_fields": {"compaction_blocks": [{"a": 1}]}}}]
    },
    "litellm's edits": {
        "choices": [
            {
                "message": {
                    "provider_specific_fields": {
                        "context_management": {"applied_edits": [{"a": 1}]}
                    }
                }
            }
        ]
    },
}


def objects(value: Any) -> Any:
    if isinstance(value, dict):
        return SimpleNamespace(**{name: objects(member) for name, member in value.items()})
    return [objects(member) for member in value] if isinstance(value, list) else value


@pytest.mark.parametrize("reply", EDITED.values(), ids=EDITED.keys())
def test_a_reply_that_the_provider_edited_for_is_known(reply: Any) -> None:
    assert is_edited_by_provider(reply)
    assert is_edited_by_provider(objects(reply))
    usage = reply.get("usage", {"input_tokens": 5})
    assert tokens_read({**reply, "usage": usage}) == 0
