"""A tool by which the model searches the whole conversation, in OpenAI's and Anthropic's loops."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from compacter import Compacter, recall_tool
from compacter.testing import ScriptedModel

# Quotes are off, so that the tool has something to do. With both, the model looks up what the
# quotes left open.
compacter = Compacter(summarizer="extractive", compact_ratio=0.8, recall=None)


def openai_turn(completion: Callable[..., Any], history: list[Any], question: str) -> str:
    """One turn over chat completions. The caller's own list still holds all of the conversation."""
    tool = recall_tool(history)
    history.append({"role": "user", "content": question})
    while True:
        reply = completion(model="any-model", messages=history, tools=[tool.definition])
        message = reply["choices"][0]["message"]
        history.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        history.extend(tool.answer(call) for call in message["tool_calls"])


def anthropic_turn(create: Callable[..., Any], history: list[Any], question: str) -> str:
    """One turn over Anthropic's Messages API, where one message holds the results of all calls."""
    tool = recall_tool(history, "anthropic")
    history.append({"role": "user", "content": question})
    while True:
        reply = create(model="any-model", max_tokens=500, messages=history, tools=[tool.definition])
        blocks = reply["content"]
        history.append({"role": "assistant", "content": blocks})
        calls = [block for block in blocks if block["type"] == "tool_use"]
        if not calls:
            return str(blocks[0]["text"])
        results = [block for call in calls for block in tool.answer(call)["content"]]
        history.append({"role": "user", "content": results})


def thinks(messages: Sequence[Any]) -> str | dict[str, Any]:
    """A stand-in for a model: it looks up what it is asked about, and reads out what it finds."""
    last = messages[-1]
    if last["role"] == "tool":
        return f"I found this. {last['content'].splitlines()[0]}"
    if last["content"].startswith("What did"):
        function = {"name": "recall", "arguments": json.dumps({"query": last["content"]})}
        return {
            "tool_calls": [
                {"id": f"call_{len(messages)}", "type": "function", "function": function}
            ]
        }
    return "All right."


def as_anthropic(model: ScriptedModel) -> Callable[..., Any]:
    """The same stand-in, speaking Anthropic's language."""

    def create(*, messages: list[Any], max_tokens: int, **_: object) -> dict[str, Any]:  # noqa: ARG001 - as the API has it
        plain: list[Any] = []
        for message in messages:
            block = (
                message["content"] if isinstance(message["content"], str) else message["content"][0]
            )
            if isinstance(block, str):
                plain.append({"role": message["role"], "content": block})
            elif block["type"] == "tool_result":
                plain.append(
                    {
                        "role": "tool",
                        "tool_call_id": block["tool_use_id"],
                        "content": block["content"],
                    }
                )
            elif block["type"] == "tool_use":
                function = {"name": block["name"], "arguments": json.dumps(block["input"])}
                call = {"id": block["id"], "type": "function", "function": function}
                plain.append({"role": "assistant", "content": None, "tool_calls": [call]})
            else:
                plain.append({"role": message["role"], "content": block["text"]})
        message = model.completion("any-model", plain)["choices"][0]["message"]
        calls = message.get("tool_calls") or ()
        blocks: list[Any] = [
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": json.loads(call["function"]["arguments"]),
            }
            for call in calls
        ]
        return {
            "content": blocks or [{"type": "text", "text": message["content"]}],
            "stop_reason": "end_turn",
        }

    return create


def main() -> None:
    """Talk until the beginning is compacted, and ask about it."""
    models = ScriptedModel(window=600, replies=thinks), ScriptedModel(window=600, replies=thinks)
    loops = (
        ("OpenAI", openai_turn, compacter.wrap(models[0].completion)),
        ("Anthropic", anthropic_turn, compacter.wrap(as_anthropic(models[1]))),
    )
    for name, turn, call in loops:
        history: list[Any] = []
        for number in range(36):
            turn(
                call,
                history,
                (f"Firm {number} quotes {number * 35 + 400} euros for the roof, valid for a week."),
            )
        print(f"{name}: {turn(call, history, 'What did firm 2 quote for the roof?')}")
    print(f"{compacter.totals.rounds} compactions")


if __name__ == "__main__":
    main()
