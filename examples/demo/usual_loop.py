"""The loop that everybody writes first: catch the error, summarize the oldest part, try again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Complete = Callable[..., Any]


def with_usual_loop(complete: Complete, summarize: Complete) -> Complete:
    """Return a function that completes a history, and shortens it where it is refused."""

    def chat(model: str, messages: list[dict[str, Any]]) -> Any:
        while True:
            try:
                return complete(model=model, messages=messages)
            except Exception as error:
                if "context" not in str(error):
                    raise
            cut = 1 + int((len(messages) - 1) * 0.7)
            while cut < len(messages) and messages[cut]["role"] == "tool":
                cut += 1
            old = "\n".join(f"{each['role']}: {each['content']}" for each in messages[1:cut])
            summary = summarize([{"role": "user", "content": f"Summarize this:\n{old}"}])
            messages[1:cut] = [{"role": "user", "content": f"Summary so far: {summary}"}]

    return chat
