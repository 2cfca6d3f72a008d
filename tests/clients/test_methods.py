"""The manual lists every method of each installed SDK that takes messages; a vendor's new one fails
here.
"""

from __future__ import annotations

import functools
import inspect
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anthropic
import litellm
import openai
import pytest
from google import genai
from litellm.router import Router
from tests.clients.sdk_methods import NAMES, methods_of

from compacter import Compacter
from compacter.clients.litellm import REFUSED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
OPERATIONS = {"messages", "body", "input", "modelInput"}


def functions() -> Iterator[str]:
    for name in dir(litellm):
        function = getattr(litellm, name, None)
        if not inspect.isfunction(function) or not function.__module__.startswith("litellm"):
            continue
        if set(inspect.signature(function).parameters) & NAMES:
            yield name


def bedrock() -> Any:
    return import_module("boto3").client(
        "bedrock-runtime",
        region_name="us-east-1",
        aws_access_key_id="none",
        aws_secret_access_key="none",
    )


def operations() -> Iterator[str]:
    client = bedrock()
    for name, operation in client.meta.method_to_api_mapping.items():
        if OPERATIONS & set(
            client.meta.service_model.operation_model(operation).input_shape.members
        ):
            yield name


def gemini() -> Iterator[str]:
    """As ``methods``; what an interaction is made of is passed on as keywords."""
    client = genai.Client(api_key="none")
    yield from methods_of(client, "google.genai")
    yield from (
        f"{path}interactions.create" for path in ("", "aio.") if hasattr(client, "interactions")
    )


SDKS: dict[str, Callable[[], Iterator[str]]] = {
    "openai": lambda: methods_of(openai.OpenAI(api_key="none"), "openai.resources"),
    "anthropic": lambda: methods_of(anthropic.Anthropic(api_key="none"), "anthropic.resources"),
    "google-genai": gemini,
    "bedrock-runtime": operations,
    "litellm": functions,
    "Router": lambda: methods_of(Router(model_list=[]), "nothing below it"),
}
CLIENTS: dict[str, Callable[[], Any]] = {
    "openai": lambda: openai.OpenAI(api_key="none"),
    "anthropic": lambda: anthropic.Anthropic(api_key="none"),
    "bedrock-runtime": bedrock,
    "Router": lambda: Router(model_list=[]),
}


@pytest.fixture
def listed(root: Path) -> dict[str, dict[str, str]]:
    """SDK -> method -> what the manual says of it."""
    found: dict[str, dict[str, str]] = {}
    for line in (root / "docs" / "clients.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and cells[0] in SDKS:
            found.setdefault(cells[0], {}).update(
                dict.fromkeys(re.findall(r"`([^`]+)`", cells[2]), cells[1])
            )
    return found


@pytest.mark.parametrize("sdk", SDKS)
def test_the_manual_lists_each_method(sdk: str, listed: dict[str, dict[str, str]]) -> None:
    assert set(SDKS[sdk]()) - {name for name in REFUSED if sdk == "litellm"} <= set(listed[sdk])


@pytest.mark.parametrize("sdk", CLIENTS)
def test_what_is_listed_as_compacting_is_wrapped_and_all_else_is_not(
    sdk: str, listed: dict[str, dict[str, str]]
) -> None:
    client = CLIENTS[sdk]()
    wrapped = Compacter().wrap(client)
    for path, outcome in listed[sdk].items():
        mine = member(wrapped, path)
        theirs = member(client, path)
        compacts = outcome.startswith("compacts")
        if theirs is None:  # Of a newer SDK, or without a method.
            assert not compacts, path
            continue
        # By the wrapped Router's ``acompletion``.
        by_another = sdk == "Router" and ("by the wrapped" in outcome or "schedule" in path)
        expected = compacts and not by_another
        assert (code(mine) is not code(theirs)) == expected, path


def code(method: Any) -> object:
    """Return what stays where a client makes a new method at each access."""
    return getattr(method, "__func__", method).__code__


def member(client: Any, path: str) -> Any:
    try:
        return functools.reduce(getattr, path.split("."), client)
    except AttributeError:
        return None


def test_what_is_listed_as_refused_is_refused(listed: dict[str, dict[str, str]]) -> None:
    for name, outcome in listed["litellm"].items():
        if outcome == "refused":
            with pytest.raises(TypeError, match=f"cannot wrap litellm's {name}"):
                Compacter().wrap(getattr(litellm, name))
