"""The likeliest mistakes get the remedy."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.conversations import talk

import compacter
from compacter import Compacter, History, compacted
from compacter.errors import ConfigurationError
from compacter.events import CompactionStarted
from compacter.options import Options
from compacter.testing import ScriptedModel

HELLO = {"role": "user", "content": "hello"}


def completion(messages: list[Any]) -> None: ...


def append(text: Any) -> None:
    History().append(text)


@pytest.mark.parametrize("given", [completion, 0.7, "gpt-4o"])
def test_what_is_passed_without_a_name(given: Any) -> None:
    with pytest.raises(TypeError, match=r"compact_ratio=0\.7.*\.wrap\(completion\).*@compacted"):
        Compacter(given)


def test_a_share_in_per_cent() -> None:
    """A share in per cent is refused; ``test_options`` has those that may be tokens."""
    with pytest.raises(ConfigurationError, match=r"compact_ratio: .*did you mean 0\.7\?"):
        Compacter(compact_ratio=70)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("trigger", "trigger_tokens"),
        ("max_tokens_before_summary", "trigger_tokens"),
        ("keep", "preserve_recent_turns"),
        ("messages_to_keep", "preserve_recent_turns"),
        ("summary_model", "summarizer"),
        ("summarization_prompt", "summary_prompt"),
        ("compaction_ratio", "compact_ratio"),
    ],
)
def test_an_option_of_another_library(name: str, meant: str) -> None:
    assert meant in Options.model_fields
    with pytest.raises(ConfigurationError, match=rf"'{name}'; did you mean {meant}\?"):
        Compacter(**{name: 5})  # type: ignore[arg-type]


def test_a_decorator_with_parentheses_that_has_none() -> None:
    one = Compacter()
    registers: tuple[Any, ...] = (one.on_compaction, one.on_event)
    for register in registers:
        with pytest.raises(ConfigurationError, match=r"@compacter\.on_compaction .*no parenth"):
            register()


@pytest.mark.parametrize("given", [0.5, "gpt-4o"])
def test_an_option_of_the_decorator_without_its_name(given: Any) -> None:
    """The error for ``@compacted(0.5)`` states that options have names."""
    decorate: Any = compacted
    with pytest.raises(TypeError, match=r"@compacted\(compact_ratio=0\.5\), not"):
        decorate(given)


@pytest.mark.parametrize("name", ["wrap", "compact", "on_event"])
def test_a_method_that_is_called_on_the_module(name: str) -> None:
    """The error for ``compacter.wrap(f)`` states that a ``Compacter`` has that method."""
    assert hasattr(Compacter, name)
    with pytest.raises(AttributeError, match=rf"Compacter\(\.\.\.\)\.{name}\("):
        getattr(compacter, name)


async def test_a_result_that_is_awaited() -> None:
    """The error for ``await compacter.compact(...)`` names ``acompact``."""
    result: Any = Compacter(summarizer="extractive").compact(talk())
    with pytest.raises(TypeError, match="await acompact"):
        await result


def test_a_field_that_an_event_lacks(caplog: pytest.LogCaptureFixture) -> None:
    """The error for a field that does not exist lists the fields, and the call goes on."""

    def hook(event: Any) -> None:
        assert event.tokens_saved

    completion = Compacter(summarizer="extractive", on_compaction=hook).wrap(
        ScriptedModel(window=900).completion
    )
    completion("m", talk())
    assert "CompactionEvent has no 'tokens_saved'; it has sentence, model" in caplog.text
    event = CompactionStarted(trigger="manual", original_data_size=2, head_size=1)
    assert not hasattr(event, "tokens_saved")
    assert copy.deepcopy(event) == event


@pytest.mark.parametrize("answer", [["a", "list"], 5, None, lambda prompt: prompt])
def test_what_a_function_returns_in_place_of_a_summary(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The error for a function whose answer is not a summary states what to return, not another
    model.
    """

    def summarize(messages: list[Any]) -> Any:
        return answer(messages) if callable(answer) else answer

    completion = Compacter(summarizer=summarize).wrap(ScriptedModel(window=900).completion)
    completion("m", talk())
    assert "the summary was refused: " in caplog.text
    assert "docs/troubleshooting.md#" in caplog.text
    assert "capable model" not in caplog.text


async def test_a_limit_in_tokens_where_characters_are_meant() -> None:
    limit: Any = {"max_tokens": 100}
    one = Compacter()
    with pytest.raises(TypeError, match=r"'max_tokens': budget=.*History\(messages, max_tokens="):
        one.compact([HELLO], **limit)
    with pytest.raises(TypeError, match="budget="):
        await one.acompact([HELLO], **limit)


@pytest.mark.parametrize("message", ["hello", {"content": "hello"}, {}])
def test_what_is_appended_in_place_of_a_message(message: Any) -> None:
    """The error for a text, or a dict without a role, shows a message."""
    with pytest.raises(ConfigurationError, match=r'\{"role": "user", "content": '):
        append(message)


@pytest.mark.parametrize(
    ("message", "wire_format"),
    [({"type": "reasoning", "summary": []}, "responses"), ({"parts": [{"text": "a"}]}, "gemini")],
)
def test_messages_of_formats_without_a_role_are_appended(message: Any, wire_format: str) -> None:
    """Items of the Responses API, and Gemini's contents, need no role."""
    History(wire_format=wire_format).append(message)


@pytest.mark.parametrize("index", [99, 1, -2])
def test_a_pin_on_a_message_that_is_not_there(index: int) -> None:
    history = History([HELLO])
    for use in (history.pin, history.unpin):
        with pytest.raises(IndexError, match=f"no message {index}: the history has 1"):
            use(index)
