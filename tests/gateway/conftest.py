"""A real LiteLLM proxy with the plug-in, before a pretend provider with a true window.

The proxy runs on an interpreter of its own (``make gateway`` makes ``.venv-proxy``), or on the one
that ``COMPACTER_PROXY_PYTHON`` names. Without one, these tests are skipped.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pretend_fleet.provider import Provider
from pretend_fleet.proxies import Answer, Proxy, running

ROOT = Path(__file__).parents[2]
PYTHON = Path(
    os.environ.get("COMPACTER_PROXY_PYTHON", ROOT / ".venv-proxy" / "bin" / "python")
).absolute()
BESIDE = Path(__file__).with_name("beside")
_NUMBERS = itertools.count(1)
Json = dict[str, Any]


@pytest.fixture(scope="session")
def python() -> Path:
    """The interpreter that has ``litellm[proxy]``."""
    if not PYTHON.exists():
        pytest.skip("no interpreter with litellm[proxy]: make gateway")
    return PYTHON


@pytest.fixture(scope="module")
def provider(python: Path) -> Iterator[Provider]:
    with Provider() as server:
        yield server


Start = Callable[..., Proxy]


@pytest.fixture(scope="module")
def start(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Starts proxies that end with the module."""
    with contextlib.ExitStack() as stack:

        def begin(config: Json) -> Proxy:
            folder = tmp_path_factory.mktemp("proxy")
            environment = {"PYTHONPATH": f"{ROOT / 'middleware'}{os.pathsep}{BESIDE}"}
            environment["GATEWAY_RECORD"] = str(folder / "record.jsonl")
            return stack.enter_context(running(python, config, folder, environment))

        yield begin


def deployment(group: str, model: str, provider: Provider, **params: Any) -> Json:
    """One deployment of a model group. ``model`` is litellm's name, such as
    ``openai/new-event``.
    """
    base = provider.url if model.startswith("anthropic/") else f"{provider.url}/v1"
    reached: Json = {"api_base": base, "api_key": "none"}
    if model.startswith("bedrock/"):
        reached = {
            "aws_bedrock_runtime_endpoint": provider.url,
            "aws_region_name": "us-east-1",
            "aws_access_key_id": "none",
            "aws_secret_access_key": "none",
        }
    return {
        "model_name": group,
        "litellm_params": {"model": model, **reached, **params},
        "model_info": {"max_input_tokens": 100_000} if "writer" in model else {},
    }


def config(models: list[Json], settings: Json | None = None, **more: Any) -> Json:
    """A config file with the plug-in in it. Nothing is made ahead unless a test wants it, so that
    requests can be counted.
    """
    plug_in = {"summarizer": "writer", "prepare_tokens": None, **(settings or {})}
    return {
        "model_list": models,
        "litellm_settings": {
            "callbacks": ["compacter.gateway.litellm_proxy.compacter", "gateway_recorder.recorder"],
            **more.pop("litellm_settings", {}),
        },
        "callback_settings": {"compacter": plug_in},
        **more,
    }


def new_mark() -> str:
    """A word that stands in one conversation alone."""
    return f"mark-{os.getpid()}x{next(_NUMBERS)}"


def turns(count: int, mark: str) -> list[tuple[str, str]]:
    """Questions and answers about a house."""
    question = "And for {mark}: what about the roof, the windows and the wall of garden number {n}?"
    answer = "The roof of number {n} is fine, its windows need paint and the wall still stands."
    return [
        (" ".join([question.format(mark=mark, n=n)] * 2), " ".join([answer.format(n=n)] * 2))
        for n in range(count)
    ]


PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


def request(
    protocol: str,
    model: str,
    mark: str,
    *,
    count: int = 20,
    stream: bool = False,
    tools: bool = False,
) -> Json:
    """A request whose history is too long for 1,500 tokens; with ``tools`` every other turn calls
    one.
    """
    items: list[Json] = []
    for n, (question, answer) in enumerate(turns(count, mark)):
        items.append({"role": "user", "content": question})
        if tools and n % 2:
            items.extend(_pair(protocol, f"call_{n}", answer))
        items.append({"role": "assistant", "content": answer})
    last = "Please use the tool now." if tools else "What did I ask first?"
    items.append({"role": "user", "content": last})
    body: Json = {
        "model": model,
        "stream": stream,
        "input" if protocol == "responses" else "messages": items,
    }
    if protocol == "messages":
        body["max_tokens"] = 200
    if tools:
        body["tools"] = [_tool(protocol)]
    return body


def _pair(protocol: str, call_id: str, text: str) -> list[Json]:
    if protocol == "responses":
        return [
            {
                "type": "function_call",
                "call_id": call_id,
                "name": "look_up",
                "arguments": '{"q": "wall"}',
            },
            {"type": "function_call_output", "call_id": call_id, "output": text},
        ]
    if protocol == "messages":
        use = {"type": "tool_use", "id": call_id, "name": "look_up", "input": {"q": "wall"}}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    function = {"name": "look_up", "arguments": '{"q": "wall"}'}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": text},
    ]


def _tool(protocol: str) -> Json:
    schema = {"type": "object", "properties": {"q": {"type": "string"}}}
    if protocol == "messages":
        return {"name": "look_up", "input_schema": schema}
    if protocol == "responses":
        return {"type": "function", "name": "look_up", "parameters": schema}
    return {"type": "function", "function": {"name": "look_up", "parameters": schema}}


def said(answer: Answer, *, stream: bool) -> str:
    """The words of an answer, and the names and arguments of the tools that it calls, in any of the
    protocols.
    """
    if not stream:
        return answer.text.replace('\\"', '"')
    parts: list[str] = []
    for event in answer.events:
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            parts.append(delta.get("content") or "")
            functions = [call["function"] for call in delta.get("tool_calls") or ()]
            parts.extend(
                (one.get("name") or "") + (one.get("arguments") or "") for one in functions
            )
        delta = event.get("delta")
        block = event.get("content_block") or event.get("item") or {}
        if event.get("type") in {"content_block_start", "response.output_item.added"}:
            parts.append(block.get("name") or "")
        if isinstance(delta, dict):
            parts.append(delta.get("text") or delta.get("partial_json") or "")
        elif isinstance(delta, str):
            parts.append(delta)
        if event.get("type") in {"error", "response.failed"} or event.get("error"):
            parts.append(f"ERROR {event}")
    return "".join(parts)
