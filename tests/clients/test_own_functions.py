"""Functions of the user's are asked for a summary in terms that they can pass on."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dialects import DIALECTS, Dialect

from compacter import Compacter, CompactionEvent

LIMITS = {"openai": {"max_tokens"}, "anthropic": {"max_tokens"}, "responses": {"max_output_tokens"}}
REFUSAL = ValueError("maximum context length is 8000 tokens, but you requested 9000 tokens")


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_the_limit_has_the_formats_own_name_or_none(dialect: Dialect) -> None:
    history = []
    for turn in range(30):
        history.append(dialect.user(f"What is pier {turn} made of? " * 9))
        history.append(dialect.answer(f"Pier {turn} is made of oak. " * 9))
    history.append(dialect.user("And now?"))
    events: list[CompactionEvent] = []
    asked: list[dict[str, Any]] = []

    def ask(messages: list[Any], **options: Any) -> Any:
        if len(messages) >= len(history):
            raise REFUSAL
        asked.append(options)
        return "They talked about a harbour."

    wrapped: Any = Compacter(on_compaction=events.append, max_summary_tokens=300).wrap(
        ask, messages_param="messages", wire_format=dialect.name
    )
    wrapped(history)
    assert [event.fallback for event in events] == [False]
    assert set(asked[0]) == LIMITS.get(dialect.name, set())
