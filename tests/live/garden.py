"""A talk that is too long for the model. Its summary's prompt is always the same one, which the
server reads once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compacter import CompactionEvent
    from embedded_model import EmbeddedModel


def chat() -> list[Any]:
    history: list[Any] = [{"role": "system", "content": "You answer questions about a garden."}]
    for number in range(13):
        history.append(
            {"role": "user", "content": (f"Bed {number}: what grows there in the summer months?")}
        )
        if number % 8 == 0:
            function = {"name": "look_up", "arguments": f'{{"bed": {number}}}'}
            call = {"id": f"call_{number}", "type": "function", "function": function}
            history.append({"role": "assistant", "content": "", "tool_calls": [call]})
            history.append(
                {
                    "role": "tool",
                    "tool_call_id": f"call_{number}",
                    "content": f'{{"plants": {number + 3}}}',
                }
            )
        history.append(
            {
                "role": "assistant",
                "content": f"In bed {number} there are {number + 3} rose bushes, all yellow.",
            }
        )
    return [*history, {"role": "user", "content": "Which colour are the roses?"}]


def check(events: list[CompactionEvent], model: EmbeddedModel) -> None:
    """Compacted because the server said so, with its own numbers, by what the server then took."""
    assert events
    assert events[0].trigger == "token_limit"
    assert events[0].limit == model.window
    assert (events[0].requested or 0) > model.window
    assert events[-1].compacted_data_size < events[0].original_data_size
