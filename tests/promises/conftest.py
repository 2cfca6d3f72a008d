"""Histories to order, a stage with a model and a book of events: what the behaviours are
played on.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest

from compacter import Compacter, CompactionEvent
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from compacter.events import Event

Chat = dict[str, Any]
SummariesIn: TypeAlias = "Callable[[Sequence[Chat]], list[str]]"
FILL = "and some words about the weather in town "


class Talk:
    """Chat messages in which a number identifies every text."""

    @staticmethod
    def text(name: str, size: int = 200) -> str:
        """A text of exactly this many characters that begins with its name."""
        return (f"{name}: " + FILL * (size // len(FILL) + 1))[: max(size, len(name))]

    @staticmethod
    def system(text: str = "You are terse.") -> Chat:
        return {"role": "system", "content": text}

    @staticmethod
    def user(text: str) -> Chat:
        return {"role": "user", "content": text}

    @staticmethod
    def answer(text: str) -> Chat:
        return {"role": "assistant", "content": text}

    @staticmethod
    def calls(*ids: str, name: str = "look_up", text: str | None = None) -> Chat:
        function = {"name": name, "arguments": json.dumps({"topic": "the harbour"})}
        return {
            "role": "assistant",
            "content": text,
            "tool_calls": [{"id": name, "type": "function", "function": function} for name in ids],
        }

    @staticmethod
    def result(call: str, text: str) -> Chat:
        return {"role": "tool", "tool_call_id": call, "content": text}

    @classmethod
    def turns(cls, count: int, size: int = 200, *, question: str = "And now?") -> list[Chat]:
        """A system prompt, turns of one question and one answer, a last question."""
        history = [cls.system()]
        for number in range(count):
            history.append(cls.user(cls.text(f"question {number}", size)))
            history.append(cls.answer(cls.text(f"answer {number}", size)))
        return [*history, cls.user(question)]

    @classmethod
    def errand(cls, rounds: int, size: int = 400, *, parallel: int = 1) -> list[Chat]:
        """One task and a single long turn of tool calls: an agent at work. Its ids come again."""
        history = [cls.system(), cls.user("Count the ships.")]
        for number in range(rounds):
            ids = [f"call_{number % 3}_{place}" for place in range(parallel)]
            history.append(cls.calls(*ids))
            history += [cls.result(call, cls.text(f"result {number}", size)) for call in ids]
        return history


@dataclass
class Stage:
    """A wrapped scripted model, its summarizer, and the events that the hooks got."""

    model: ScriptedModel
    summarizer: ScriptedSummarizer
    compacter: Compacter
    told: list[Event] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    """Actors in order of their work: ``model``, ``summarizer``, ``hook``."""

    def ask(self, messages: Sequence[Chat], **options: Any) -> str:
        """The answer's text."""
        reply: Any = self.compacter.wrap(self.model.completion)(
            model="scripted", messages=messages, **options
        )
        text: str = reply["choices"][0]["message"]["content"]
        return text

    @property
    def sent(self) -> list[Chat]:
        """The messages of the last request."""
        return list(self.model.requests[-1].messages)

    @property
    def compactions(self) -> list[CompactionEvent]:
        return [event for event in self.told if isinstance(event, CompactionEvent)]

    def kinds(self) -> list[str]:
        """The events' names, in order."""
        return [type(event).__name__ for event in self.told]


def summaries(messages: Sequence[Chat]) -> list[str]:
    """The texts of the summary messages among these, also of those that were joined to a message of
    the user's.
    """
    contents = [message.get("content") for message in messages]
    texts = [
        block if isinstance(block, str) else block.get("text", "")
        for content in contents
        for block in (content if isinstance(content, list) else [content or ""])
    ]
    return [text for text in texts if text.startswith(summary_message.TAG)]


@pytest.fixture
def talk() -> type[Talk]:
    """Histories to order."""
    return Talk


@pytest.fixture
def summaries_in() -> Callable[[Sequence[Chat]], list[str]]:
    """The texts of the summary messages in a list."""
    return summaries


class MakeStage:
    """Builds a stage: the model's window in tokens, then any options of ``Compacter``."""

    def __call__(
        self,
        window: int = 500,
        *,
        model: ScriptedModel | None = None,
        summarizer: ScriptedSummarizer | None = None,
        own_model: bool = False,
        **options: Any,
    ) -> Stage:
        model = model or ScriptedModel(window=window)
        summarizer = summarizer or ScriptedSummarizer(
            "They spoke of the weather.", returns="completion"
        )
        if not own_model:
            options.setdefault("summarizer", summarizer)
        made = Stage(model, summarizer, Compacter(**options))
        made.compacter.on_event(made.told.append)
        return made


@pytest.fixture
def stage() -> MakeStage:
    """A stage to order."""
    return MakeStage()
