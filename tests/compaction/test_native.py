"""Summaries beside the provider's own compaction: the model reads nothing before its
newest block.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from compacter import Compacter, InProcessMemory
from compacter.messages.format import get_format
from compacter.summary.message import TAG
from compacter.testing import token_limit_error

BLOCKS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {
            "role": "assistant",
            "content": [{"type": "compaction", "content": "They talked of boats."}],
        }
    ],
    "responses": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "QUJDREVG" * 20}],
}


def talk(wire_format: str, first: int) -> list[Any]:
    say = get_format(wire_format).say
    said = list[Any]()
    for number in range(first, first + 15):
        said.append(say("user", f"Which boat lies at pier {number}? I saw {number * 3} of them."))
        said.append(
            say("assistant", f"Boat {number * 7} of Oller, {number + 11} metres long. " * 4)
        )
    return [*said, say("user", "And now?")]


def read_by_the_model(wire_format: str, messages: Any) -> list[Any]:
    """The messages from the newest block on, as the provider takes them."""
    first = max((at for at, one in enumerate(messages) if one in BLOCKS[wire_format]), default=0)
    return list(messages[first:])


@pytest.mark.parametrize("answers_first", [False, True])
@pytest.mark.parametrize("resent", [False, True])
@pytest.mark.parametrize("wire_format", list(BLOCKS))
def test_one_summary_is_in_the_request_however_often_both_compact(
    wire_format: Any, *, resent: bool, answers_first: bool
) -> None:
    sent: list[Any] = []

    def provider(messages: Any, model: str = "m") -> str:
        sent.append(list(messages))
        tokens = len(json.dumps(read_by_the_model(wire_format, messages))) // 4
        if tokens > 800:
            raise token_limit_error(limit=800, input_tokens=tokens)
        return "ok"

    compacter = Compacter(
        summarizer="extractive", recall=None, memory=InProcessMemory() if resent else None
    )
    if answers_first:  # What is kept begins with the assistant.
        compacter = compacter.replace(
            before_compaction=lambda plan: replace(plan, cut=plan.cut // 2 * 2 + 1)
        )
    call = compacter.wrap(provider, wire_format=wire_format, messages_param="messages")
    history: list[Any] = []
    for first in (0, 100, 200, 300):
        history += talk(wire_format, first)
        assert call(history) == "ok"
        assert [TAG in json.dumps(one) for one in sent[-1]].count(True) == 1
        assert TAG in json.dumps(read_by_the_model(wire_format, sent[-1]))
        history = [*(history if resent else sent[-1]), *BLOCKS[wire_format]]
