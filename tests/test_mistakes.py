"""The likeliest mistakes get the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter, ConfigurationError, History, Quotes
from compacter.options import Options

HELLO = {"role": "user", "content": "hello"}


def completion(messages: list[Any]) -> None: ...


def append(text: Any) -> None:
    History().append(text)


def pin(index: int) -> None:
    History([HELLO]).pin(index)


@pytest.mark.parametrize("given", [completion, 0.7, "gpt-4o"])
def test_what_is_passed_without_a_name(given: Any) -> None:
    with pytest.raises(TypeError, match=r"compact_ratio=0\.7.*\.wrap\(completion\).*@compacted"):
        Compacter(given)


@pytest.mark.parametrize(
    ("name", "value", "meant"),
    [
        ("compact_ratio", 70, r"0\.7"),
        ("trigger_tokens", 80, r"0\.8"),
        ("prepare_tokens", 70, r"0\.7"),
        ("recall", 15, r"0\.15"),
    ],
)
def test_a_share_in_per_cent(name: str, value: int, meant: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"{name}: .*did you mean {meant}\?"):
        Compacter(**{name: value})  # type: ignore[arg-type]


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
    compacter = Compacter()
    registers: tuple[Any, ...] = (compacter.on_compaction, compacter.on_event)
    for register in registers:
        with pytest.raises(ConfigurationError, match=r"@compacter\.on_compaction .*no parenth"):
            register()


def test_an_embedder_that_is_none() -> None:
    embed: Any = 5
    with pytest.raises(ValueError, match=r"(?s)embed.* callable.*embed.* string"):
        Quotes(embed=embed)


async def test_a_limit_in_tokens_where_characters_are_meant() -> None:
    limit: Any = {"max_tokens": 100}
    compacter = Compacter()
    with pytest.raises(TypeError, match=r"'max_tokens': budget=.*History\(messages, max_tokens="):
        compacter.compact([HELLO], **limit)
    with pytest.raises(TypeError, match="budget="):
        await compacter.acompact([HELLO], **limit)


def test_a_text_for_a_message() -> None:
    with pytest.raises(ConfigurationError, match=r'\{"role": "user", "content": '):
        append("hello")


@pytest.mark.parametrize("index", [99, 1, -2])
def test_a_pin_on_a_message_that_is_not_there(index: int) -> None:
    with pytest.raises(IndexError, match=f"no message {index}: the history has 1"):
        pin(index)
