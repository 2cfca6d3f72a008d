"""One conversation with tools, in each message format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from tests.dialects import DIALECTS

from compacter.messages.format import FORMATS, FormatName, MessageFormat, get_format

Item = dict[str, Any]


@dataclass(frozen=True)
class Form:
    """How a message format writes a word, and a call of one tool with its result."""

    name: FormatName

    @property
    def format(self) -> MessageFormat:
        return get_format(self.name)

    def say(self, role: str, text: str) -> Item:
        said: Item = self.format.say("user" if role == "user" else "assistant", text)
        return said

    def look(self, number: int, text: str, tool: str = "look") -> list[Item]:
        """A call and its result; ids come again."""
        name, dialect = f"call_{number % 2}", DIALECTS[self.name]
        return [*dialect.calls([(name, tool, {})]), *dialect.results([(name, tool, text)])]

    def errand(self, results: list[str], tools: list[str] | None = None) -> list[Item]:
        """A task, one tool call for each result, and a last answer and question."""
        items = [self.say("user", "Count the ships.")]
        for number, text in enumerate(results):
            items += self.look(number, text, tools[number] if tools else "look")
        return [*items, self.say("assistant", "Seven."), self.say("user", "And now?")]

    def results(self, items: list[Item]) -> list[str]:
        """The results' texts, in order."""
        entries = [entry for index, item in enumerate(items) for entry in self.format.parts(item, index)]
        return [entry.text for entry in entries if entry.kind == "result"]

    def broken(self, items: list[Item]) -> list[str]:
        return [half.call_id for half in self.format.outline(items).broken]


@pytest.fixture(params=FORMATS)
def form(request: pytest.FixtureRequest) -> Form:
    """Each message format in turn."""
    return Form(request.param)
