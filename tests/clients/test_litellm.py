"""litellm: its functions, its Anthropic and Responses interfaces, and the Router."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import litellm
import pytest
from litellm import anthropic_interface
from litellm.exceptions import ContextWindowExceededError
from litellm.router import Router
from litellm.types.router import Deployment, LiteLLM_Params
from tests.clients.conftest import Recording
from tests.clients.loopback import WORDS

from compacter import Compacter
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from tests.clients.loopback import Provider


@pytest.fixture
def options(openai_server: Provider) -> dict[str, Any]:
    return {
        "model": "openai/gpt-test",
        "api_base": openai_server.url + "/v1",
        "api_key": "none",
        "max_retries": 0,
    }


def text_of(chunks: list[Any]) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def test_completion(
    options: dict[str, Any],
    compacter: Recording,
    chat: list[Any],
    refusing: Any,
    openai_server: Provider,
) -> None:
    openai_server.refuse = refusing
    completion: Any = compacter.wrap(litellm.completion)
    assert completion(messages=chat, **options).choices[0].message.content == WORDS
    assert len(compacter.events) == 1
    assert text_of(list(completion(messages=chat, stream=True, **options))) == WORDS
    assert len(compacter.events) == 1


async def test_acompletion(options: dict[str, Any], compacter: Recording, chat: list[Any]) -> None:
    reply: Any = await compacter.wrap(litellm.acompletion)(messages=chat, **options)
    assert reply.choices[0].message.content == WORDS
    assert len(compacter.events) == 1


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_model_by_name_writes_the_summary(
    openai_server: Provider, monkeypatch: pytest.MonkeyPatch, *, asynchronous: bool
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", f"{openai_server.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    model = ScriptedModel(window=600, replies="It is noted.")
    made = Compacter(summarizer="openai/gpt-summary")
    talk = [
        {"role": role, "content": f"Lamp {at}. " * 30}
        for at in range(6)
        for role in ("user", "assistant")
    ]
    talk.append({"role": "user", "content": "Which lamp is lit?"})
    if asynchronous:
        await made.wrap(model.acompletion)("m", talk)
    else:
        made.wrap(model.completion)("m", talk)
    assert {body["model"] for body in openai_server.bodies} == {"gpt-summary"}
    assert WORDS in str(model.requests[-1].messages)
    assert made.totals.summarizer_calls == len(openai_server.bodies)


@pytest.mark.parametrize("name", ["completion_with_retries", "acompletion_with_retries"])
async def test_the_functions_that_retry(
    name: str, options: dict[str, Any], compacter: Recording, chat: list[Any]
) -> None:
    reply: Any = compacter.wrap(getattr(litellm, name))(messages=chat, num_retries=1, **options)
    reply = await reply if inspect.isawaitable(reply) else reply
    assert reply.choices[0].message.content == WORDS
    assert len(compacter.events) == 1


async def test_responses(options: dict[str, Any], compacter: Recording, items: list[Any]) -> None:
    pytest.importorskip("mcp", reason="litellm.responses needs it")
    reply: Any = compacter.wrap(litellm.responses)(input=items, **options)
    assert reply.output[0].content[0].text == WORDS
    assert len(compacter.events) == 1
    other = Compacter(max_summary_tokens=200, on_compaction=compacter.events.append)
    again: Any = await other.wrap(litellm.aresponses)(input=items, **options)
    assert again.output[0].content[0].text == WORDS
    assert len(compacter.events) == 2


async def test_anthropic_messages(
    anthropic_server: Provider, compacter: Recording, blocks: list[Any]
) -> None:
    options: dict[str, Any] = {
        "model": "anthropic/claude-test",
        "api_base": anthropic_server.url,
        "api_key": "none",
        "max_tokens": 100,
    }
    reply: Any = await compacter.wrap(anthropic_interface.messages.acreate)(
        messages=blocks, **options
    )
    assert reply["content"][0]["text"] == WORDS
    assert len(compacter.events) == 1


def test_the_module_is_refused_with_the_remedy(compacter: Compacter) -> None:
    with pytest.raises(TypeError, match=r"compacter\.wrap\(litellm\.completion\)"):
        compacter.wrap(litellm)


@pytest.mark.parametrize(
    "name", ["batch_completion", "batch_completion_models", "text_completion", "run_tool_loop"]
)
def test_functions_with_several_conversations_or_none_are_refused_with_a_reason(
    name: str, compacter: Compacter
) -> None:
    with pytest.raises(TypeError, match=f"{name}: it "):
        compacter.wrap(getattr(litellm, name))


@pytest.fixture
def router(options: dict[str, Any]) -> Router:
    return Router(model_list=[{"model_name": "ours", "litellm_params": options}], num_retries=0)


WAYS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "completion": lambda router, chat: router.completion(model="ours", messages=chat),
    "completion, by position": lambda router, chat: router.completion("ours", chat),
    "completion, streamed": lambda router, chat: router.completion("ours", chat, stream=True),
    "chat.completions": lambda router, chat: router.chat.completions.create(chat, model="ours"),
    "acompletion": lambda router, chat: router.acompletion(model="ours", messages=chat),
    "acompletion, by position": lambda router, chat: router.acompletion("ours", chat),
    "acompletion, streamed": lambda router, chat: router.acompletion("ours", chat, stream=True),
    "schedule": lambda router, chat: router.schedule_acompletion("ours", chat, priority=0),
    "batch, models": lambda router, chat: router.abatch_completion(models=["ours"], messages=chat),
    "batch, chats": lambda router, chat: router.abatch_completion(["ours"], [chat]),
    "batch, one model": lambda router, chat: router.abatch_completion_one_model_multiple_requests(
        model="ours", messages=[chat]
    ),
    "batch, fastest": lambda router, chat: router.abatch_completion_fastest_response(
        model="ours", messages=chat
    ),
}


async def said(reply: Any) -> str:
    """Return the text of a reply, of a stream, or of a list with one of them."""
    awaited = inspect.isawaitable(reply)
    if awaited:
        reply = await reply
    while isinstance(reply, list):
        (reply,) = reply
    if hasattr(reply, "choices"):
        return str(reply.choices[0].message.content)
    return text_of([chunk async for chunk in reply] if awaited else list(reply))


@pytest.mark.parametrize("way", WAYS)
async def test_the_router(way: str, router: Router, compacter: Recording, chat: list[Any]) -> None:
    """Whichever method of a wrapped Router sends the messages, they are compacted; those of the
    original are not.
    """
    wrapped: Any = compacter.wrap(router)
    assert await said(WAYS[way](wrapped, chat)) == WORDS
    assert len(compacter.events) == 1
    with pytest.raises(ContextWindowExceededError):
        router.completion("ours", chat)


def test_a_wrapped_router_is_a_router_and_keeps_what_it_was_made_from(
    options: dict[str, Any], compacter: Compacter, chat: list[Any]
) -> None:
    """A wrapped Router has the same type, and works where nothing else refers to the original."""
    made = [{"model_name": "ours", "litellm_params": options}]
    wrapped: Any = compacter.wrap(Router(model_list=made, num_retries=0))
    gc.collect()
    assert wrapped.completion("ours", chat).choices[0].message.content == WORDS
    assert type(wrapped) is Router


def test_deployments_that_come_later_are_the_wrapped_routers_too(
    options: dict[str, Any], router: Router, compacter: Compacter, chat: list[Any]
) -> None:
    """The wrapped Router sends to deployments that the original has got since."""
    wrapped: Any = compacter.wrap(router)
    router.add_deployment(Deployment(model_name="later", litellm_params=LiteLLM_Params(**options)))
    assert wrapped.completion("later", chat).choices[0].message.content == WORDS


async def test_the_routers_responses(
    router: Router, compacter: Recording, items: list[Any]
) -> None:
    pytest.importorskip("mcp", reason="litellm.responses needs it")
    wrapped: Any = compacter.wrap(router)
    response = await wrapped.aresponses(model="ours", input=items)
    assert response.output[0].content[0].text == WORDS
    assert len(compacter.events) == 1


async def test_a_routers_method_by_itself(
    router: Router, compacter: Recording, chat: list[Any]
) -> None:
    """A method of a Router can be wrapped alone; one that compacts each of several requests cannot,
    and one without messages cannot.
    """
    wrap: Any = compacter.wrap
    assert await said(wrap(router.completion)("ours", chat)) == WORDS
    assert await said(wrap(router.acompletion)("ours", chat)) == WORDS
    assert await said(wrap(router.schedule_acompletion)("ours", chat, priority=0)) == WORDS
    assert len(compacter.events) == 1
    with pytest.raises(TypeError, match="abatch_completion: it sends several"):
        compacter.wrap(router.abatch_completion)
    with pytest.raises(TypeError, match="sends no messages"):
        compacter.wrap(router.embedding)


@pytest.mark.parametrize("name", ["completion", "acompletion"])
async def test_a_method_of_a_router_that_nobody_else_holds(
    name: str, options: dict[str, Any], compacter: Recording, chat: list[Any]
) -> None:
    """It works alone, so its wrapper does too."""
    made = [{"model_name": "ours", "litellm_params": options}]
    method = getattr(Router(model_list=made, num_retries=0), name)
    gc.collect()
    wrapped: Any = compacter.wrap(method)
    assert await said(wrapped(model="ours", messages=chat)) == WORDS
    assert len(compacter.events) == 1


def test_another_method_of_such_a_router_says_what_helps(
    options: dict[str, Any], compacter: Compacter
) -> None:
    made = [{"model_name": "ours", "litellm_params": options}]
    method: Any = Router(model_list=made, num_retries=0).schedule_acompletion
    gc.collect()
    if getattr(method.__self__, "model_list", None):
        pytest.skip("this litellm's methods hold their Router")
    with pytest.raises(TypeError, match="keep the Router in a variable"):
        compacter.wrap(method)


def test_a_router_that_would_be_compacted_in_part_is_refused(
    router: Router, compacter: Compacter
) -> None:
    """If a later litellm has its batches call something else, ``wrap`` raises and names the
    remedy.
    """
    if "_core" not in vars(router):
        pytest.skip("this litellm's Router has no core")
    vars(router)["abatch_completion"] = MethodType(litellm.acompletion, object())
    with pytest.raises(TypeError, match=r"abatch_completion does not call .* install litellm"):
        compacter.wrap(router)
