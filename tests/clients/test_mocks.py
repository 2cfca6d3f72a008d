"""Mocks of ``unittest.mock`` in the place of a function or a client."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import openai
import pytest
from tests.conversations import talk

from compacter import Compacter

REFUSAL = ValueError("maximum context length is 8000 tokens, but you requested 9000 tokens")
REPLY = {"choices": [{"message": {"content": "Blue."}}]}
MOCKS: dict[str, Any] = {
    "bare": MagicMock,
    "of a client": lambda: MagicMock(spec=openai.OpenAI),
    "of an instance": lambda: MagicMock(spec_set=openai.OpenAI(api_key="none")),
}


@pytest.mark.parametrize("kind", MOCKS)
def test_a_mock_stays_the_mock_that_the_test_configures(kind: str) -> None:
    mock = MOCKS[kind]()
    wrapped = Compacter().wrap(mock)
    assert wrapped is mock
    wrapped.chat.completions.create.return_value = REPLY
    assert wrapped.chat.completions.create(model="m", messages=[]) is REPLY
    mock.chat.completions.create.assert_called_once_with(model="m", messages=[])


def test_a_mock_of_a_function_is_called_again_with_less() -> None:
    mock = MagicMock(side_effect=[REFUSAL, REPLY])
    wrapped = Compacter(summarizer="extractive").wrap(mock)
    history = talk(40)
    assert wrapped(model="m", messages=history) is REPLY
    first, second = (len(call.kwargs["messages"]) for call in mock.call_args_list)
    assert second < first == len(history)
    other = MagicMock(return_value=REPLY)
    assert other(messages=history) is REPLY  # Its class is its own.
