"""A wrapped client looks like the one it was made from, and leaves that one alone."""

from __future__ import annotations

import functools
import inspect
import os
import subprocess
import sys
import types
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from google import genai
from litellm import router

from compacter import Compacter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CLIENTS: dict[str, Callable[[], Any]] = {
    "OpenAI": lambda: openai.OpenAI(api_key="none"),
    "AsyncOpenAI": lambda: openai.AsyncOpenAI(api_key="none"),
    "AzureOpenAI": lambda: openai.AzureOpenAI(
        api_key="none", azure_endpoint="https://x.openai.azure.com", api_version="1"
    ),
    "AsyncAzureOpenAI": lambda: openai.AsyncAzureOpenAI(
        api_key="none", azure_endpoint="https://x.openai.azure.com", api_version="1"
    ),
    "Anthropic": lambda: anthropic.Anthropic(api_key="none"),
    "AsyncAnthropic": lambda: anthropic.AsyncAnthropic(api_key="none"),
    "AnthropicBedrock": lambda: import_module("anthropic").AnthropicBedrock(
        aws_region="us-east-1", aws_access_key="none", aws_secret_key="none"
    ),
    "AnthropicVertex": lambda: import_module("anthropic").AnthropicVertex(
        region="us-east1", project_id="none", access_token="none"
    ),
    "genai.Client": lambda: genai.Client(api_key="none"),
    "bedrock-runtime": lambda: import_module("boto3").client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
    ),
    "litellm.Router": lambda: router.Router(model_list=[]),
}
PARTS: dict[str, tuple[str, ...]] = {
    "OpenAI": (
        "chat",
        "chat.completions",
        "responses",
        "chat.completions.with_raw_response",
        "with_streaming_response.responses",
    ),
    "AsyncOpenAI": ("chat.completions", "responses", "responses.with_streaming_response"),
    "Anthropic": ("messages", "beta", "beta.messages", "messages.with_raw_response"),
    "AsyncAnthropic": ("messages", "beta.messages"),
    "AnthropicBedrock": ("messages", "beta.messages"),
    "AnthropicVertex": ("messages", "beta.messages"),
    "genai.Client": ("models", "aio", "aio.models", "chats"),
}
ALL = pytest.mark.parametrize("name", CLIENTS)


def kind(member: object) -> str:
    """Sort of a member."""
    if inspect.ismethod(member):
        return "method"
    if inspect.isroutine(member):
        return "function"
    return type(member).__qualname__


@functools.cache
def surface(thing: Any) -> dict[str, str]:
    """Public names of an object -> the sort of each, also of what cannot be read."""
    found = {}
    for name in dir(thing):
        if not name.startswith("_"):
            try:
                found[name] = kind(getattr(thing, name))
            except Exception as error:  # noqa: BLE001 - a property may need what is not configured
                found[name] = type(error).__name__
    return found


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@ALL
def test_each_public_member_is_still_there_and_of_the_same_kind(name: str) -> None:
    client = CLIENTS[name]()
    wrapped = Compacter().wrap(client)
    if name == "genai.Client":  # Its chats are made by a property, so its class is a subclass.
        assert isinstance(wrapped, type(client))
    else:
        assert type(wrapped) is type(client)
    assert wrapped is not client
    for part in ("", *PARTS.get(name, ())):
        mine, theirs = (
            functools.reduce(getattr, part.split(".") if part else (), one)
            for one in (wrapped, client)
        )
        assert isinstance(mine, type(theirs))
        assert type(mine).__qualname__ == type(theirs).__qualname__
        # litellm's Router of 1.110 does not list its ``chat``, which is the copy's own.
        unlisted = {one for one in surface(mine).keys() - surface(theirs).keys() if one == "chat"}
        assert {**surface(theirs), **dict.fromkeys(unlisted, "Chat")} == surface(mine), part


@ALL
def test_the_original_and_its_parts_are_untouched(name: str) -> None:
    client = CLIENTS[name]()
    for part in PARTS.get(name, ()):
        functools.reduce(getattr, part.split("."), client)
    before = {
        key: (id(value), dict(getattr(value, "__dict__", {})))
        for key, value in vars(client).items()
    }
    Compacter().wrap(client)
    after = {
        key: (id(value), dict(getattr(value, "__dict__", {})))
        for key, value in vars(client).items()
    }
    assert before == after


@ALL
def test_wrapping_does_not_fill_the_originals_cached_properties(name: str) -> None:
    client = CLIENTS[name]()
    before = set(vars(client))
    Compacter().wrap(client)
    assert set(vars(client)) == before


def test_the_resources_lead_back_to_the_copy() -> None:
    client = openai.OpenAI(api_key="none")
    original: Any = client.chat.completions
    assert original.with_raw_response._completions is original
    wrapped = Compacter().wrap(client)
    assert wrapped.chat.completions._client is wrapped
    assert vars(wrapped.chat.completions)["_post"].__self__ is wrapped
    assert client.chat.completions._client is client
    raw = wrapped.chat.completions.with_raw_response
    assert raw._completions is wrapped.chat.completions


@pytest.mark.parametrize(
    "stranger",
    [object(), 7, "text", types.ModuleType("other"), None],
    ids=["object", "number", "text", "module", "None"],
)
def test_a_stranger_gets_an_error_that_tells_what_is_supported(stranger: Any) -> None:
    with pytest.raises(TypeError) as caught:
        Compacter().wrap(stranger)
    for word in (
        "openai",
        "anthropic",
        "google.genai",
        "bedrock-runtime",
        "litellm",
        "docs/clients.md",
    ):
        assert word in str(caught.value)
    assert str(caught.value).count(": ") == 1


def test_a_class_is_told_apart_from_its_object() -> None:
    with pytest.raises(TypeError, match="it is a class, so wrap an object of it"):
        Compacter().wrap(openai.OpenAI)


def test_a_vendors_method_that_sends_no_messages_is_told() -> None:
    client = openai.OpenAI(api_key="none")
    for method in (client.embeddings.create, client.chat.completions.retrieve, client.files.list):
        with pytest.raises(TypeError, match="sends no messages that compacter knows"):
            Compacter().wrap(method)


def test_wrapping_a_function_imports_no_sdk(root: Path) -> None:
    program = (
        "import sys, compacter\n"
        "compacter.Compacter().wrap(lambda messages: None)\n"
        "sdks = 'openai', 'anthropic', 'google.genai', 'boto3', 'botocore', 'litellm'\n"
        "print([name for name in sdks if name in sys.modules])"
    )
    path = {**os.environ, "PYTHONPATH": str(root / "middleware")}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=path
    )
    assert done.stdout.strip() == "[]"
