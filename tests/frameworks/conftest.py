"""Common parts of the frameworks' tests: a provider, a history that is too long for it, and the
manual's snippets.

Each file runs in an environment of its own (``make frameworks``), and is skipped where its
framework is not installed.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.frameworks.provider import Provider

from compacter import Compacter, Shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PAGES = Path(__file__).parents[2] / "docs" / "frameworks"


class Served(Provider):
    """A provider, and what a test asks of it."""

    def recovered(self) -> bool:
        """Whether something was refused, nothing was broken, and the last request was answered."""
        assert self.invalid == []
        return self.refused > 0 and len(self.accepted) > 0

    def kept_the_pictures(self) -> bool:
        """Whether the last two requests were answered, each with its own picture beside a text that
        was shortened.
        """
        sent = list(map(str, self.accepted[-2:]))
        shown = [re.findall(r"data:image/png;base64,[\w+/=]+", request) for request in sent]
        each_is_shown = [len(found) for found in shown] == [1, 1] and shown[0] != shown[1]
        return (
            self.recovered()
            and each_is_shown
            and all("characters left out" in request for request in sent)
        )


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Served]]:
    """Start a provider, which clients find by the environment. At the end each one that was asked
    must have recovered.
    """
    started: list[Served] = []
    with ExitStack() as stack:

        def start(**options: Any) -> Served:
            served = stack.enter_context(Served(**options))
            started.append(served)
            monkeypatch.setenv("OPENAI_BASE_URL", f"{served.url}/v1")
            monkeypatch.setenv("OPENAI_API_BASE", f"{served.url}/v1")
            monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
            return served

        yield start
        assert all(served.recovered() for served in started if served.model.requests)


@pytest.fixture(params=[False, True, "flat"], ids=["status", "in-stream", "flat"])
def in_stream(request: pytest.FixtureRequest) -> bool | str:
    """Where a stream is refused: by its status, or inside HTTP 200, as the protocol has it or as a
    flat event.
    """
    refused: bool | str = request.param
    return refused


@pytest.fixture
def pictures() -> list[str]:
    """Two different PNGs as base64 text."""
    return [
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGNgYPgPAAEDAQAIicLsAAAAAElFTkSuQmCC",
    ]


@pytest.fixture
def about_it() -> str:
    """Text beside the picture: too long by itself."""
    return "What is on this picture? " * 1_000


@pytest.fixture
def shortening() -> Compacter:
    return Compacter(strategy=Shorten())


@pytest.fixture
def compacter() -> Compacter:
    return Compacter()


@pytest.fixture
def talk() -> list[tuple[str, str]]:
    """A conversation that is too long: a role and a text each, the user's first and last."""
    said = [
        (
            role,
            (
                f"{'Question' if role == 'user' else 'Answer'} {number}: "
                f"{'ships came into the harbour. ' * 8}"
            ),
        )
        for number in range(20)
        for role in ("user", "assistant")
    ]
    return [*said, ("user", "What colour is the harbour?")]


@pytest.fixture
def history(talk: list[tuple[str, str]]) -> list[Any]:
    """The same as messages of chat completions, where a framework takes them."""
    return [{"role": role, "content": text} for role, text in talk]


@pytest.fixture
def report() -> str:
    """A tool's result, of which four are too long."""
    return "a ship came in, and its cargo was written down. " * 40


@pytest.fixture
def run_page(serve: Callable[..., Served]) -> Callable[[str], dict[str, Any]]:
    """Run the snippets of a page of the manual; what they have defined."""

    def run(name: str) -> dict[str, Any]:
        text = (PAGES / f"{name}.md").read_text(encoding="utf-8")
        names: dict[str, Any] = {"__name__": "__main__"}
        for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            exec(compile(block, f"{name}.md", "exec", dont_inherit=True), names)  # noqa: S102 - the manual's own
        return names

    return run
