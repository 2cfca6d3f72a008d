"""An agent's one long turn: clear old tool results first, and summarize only if that is not
enough.
"""

from __future__ import annotations

from typing import Any

from compacter import ClearToolResults, Compacter, Summarize
from compacter.testing import ScriptedModel, ScriptedSummarizer

STEPS = 60


def call(number: int) -> dict[str, Any]:
    """An assistant message with one call."""
    name = "list_files" if number == 0 else "read_file"
    function = {"name": name, "arguments": f'{{"path": "src/module_{number}.py"}}'}
    return {"tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}]}


def main() -> None:
    """One request, sixty tool steps."""
    summarizer = ScriptedSummarizer(
        "They read one module after the other and found nothing wrong so far."
    )
    model = ScriptedModel(
        window=6_000, replies=[*(call(number) for number in range(STEPS)), "I have read them all."]
    )
    compacter = Compacter(
        strategy=[ClearToolResults(keep_recent=4, exclude=("list_files",)), Summarize()],
        summarizer=summarizer,
    )
    completion = compacter.wrap(model.completion)
    compacter.on_compaction(
        lambda event: print(
            f"  {event.strategy}: {event.original_data_size} to "
            f"{event.compacted_data_size} characters"
        )
    )

    history: list[dict[str, Any]] = [
        {"role": "system", "content": "You review code."},
        {"role": "user", "content": "Read all the modules and tell me what is wrong with them."},
    ]
    while True:
        message = completion("any-model", history)["choices"][0]["message"]
        history.append(message)
        if not message.get("tool_calls"):
            break
        for made in message["tool_calls"]:
            result = "def function(argument):\n    return argument\n" * 20
            history.append({"role": "tool", "tool_call_id": made["id"], "content": result})
    print(
        f"{len(history)} messages, {model.rejected} requests refused, "
        f"{len(summarizer.prompts)} summaries"
    )


if __name__ == "__main__":
    main()
