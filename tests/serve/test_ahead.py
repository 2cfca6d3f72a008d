"""Behind the pass-through nobody waits for a summary either."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import openai
import pytest

from compacter.gateway.serve.board import Board
from compacter.gateway.serve.targets import make_setup

Serve = Callable[..., Any]
Talk = Callable[..., Any]
REFUSED = ("CompactionEvent", "token_limit")


@pytest.mark.parametrize("stream", [False, True])
def test_a_summary_is_made_before_it_is_needed_and_then_used(
    serve: Serve, openai_server: Any, talk: Talk, stream: bool
) -> None:
    serving = serve(f"{openai_server.url}/v1", prepare_tokens=0.7)
    with openai.OpenAI(base_url=f"{serving.url}/v1", api_key="sk-one", max_retries=0) as client:

        def say(history: Any) -> None:
            reply: Any = client.chat.completions.create(
                model="m",
                messages=history,
                stream=stream,
                extra_body={"stream_options": {"include_usage": True}} if stream else None,
            )
            if stream:
                list(reply)

        def number(name: str) -> int:
            return int(serving.board.numbers()[name])

        def refused() -> int:
            records = serving.board.records
            return sum((one.kind, one.fields.get("trigger")) == REFUSED for one in list(records))

        say(talk(20, "masts"))  # Refused: the window is known from now on.
        assert refused() == 1
        for turns in range(3, 20):
            say(talk(turns))
            if number("prepared") == 0:
                time.sleep(0.1)  # The user reads the answer.
        assert number("prepared") >= 1
        assert number("prepared_used") >= 1
        assert refused() == 1


def test_it_is_on_unless_it_is_turned_off(openai_server: Any) -> None:
    def option(**given: Any) -> object:
        setup = make_setup(Board(), {"upstream": openai_server.url, **given})
        return setup.targets[0].state.options.prepare_tokens

    assert option() == 0.7
    assert option(prepare_tokens=None) is None
