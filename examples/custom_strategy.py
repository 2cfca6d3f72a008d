"""Two strategies of ten lines each: a sliding window, and one that keeps important messages."""

from __future__ import annotations

import re
from typing import Any

from compacter import Compacter, CompactionPlan
from compacter.testing import ScriptedModel


class SlidingWindow:
    """The newest ``size`` messages, and a note that there were others."""

    name = "sliding_window"

    def __init__(self, size: int) -> None:
        self.size = size

    def compact(self, plan: CompactionPlan) -> list[Any]:
        """Keep the last ones. The system prompt, pins and tool partners stay by themselves."""
        first = max(len(plan.messages) - self.size, 0)
        return plan.keep(
            range(first, len(plan.messages)), note=(f"{first} older messages are not shown.")
        )


class Important:
    """The tail as planned, and from the head whatever has numbers, names or rules, as long as it
    fits.
    """

    name = "important"
    signs = re.compile(r"\d|\b(?:must|never|always|agreed|deadline)\b|(?<=[a-z] )[A-Z][a-z]+")

    def compact(self, plan: CompactionPlan) -> list[Any]:
        """Score each message of the head, and take the best ones into a third of its size."""
        room = plan.size(plan.head) // 3
        keep = list(range(plan.cut, len(plan.messages)))
        for index in sorted(plan.compacted, key=lambda at: -self.score(plan.messages[at])):
            room -= plan.size([plan.messages[index]])
            if room < 0:
                break
            keep.append(index)
        return plan.keep(keep, note="Small talk is left out above.")

    def score(self, message: dict[str, Any]) -> float:
        """Signs of importance by length."""
        text = str(message["content"])
        return len(self.signs.findall(text)) / (len(text) or 1)


TALK = (
    "Good morning to you, how are things over there today, all well I hope?",
    "The budget must not exceed 4,500 euros.",
    "Nice weather we are having, is it not, and so mild for the time of year?",
    "We agreed that Ines signs the contract by 14 March.",
    "Well, well, let me think about that for a little while longer, if I may.",
)


def main() -> None:
    """The same talk through each."""
    history = [
        {"role": "assistant" if turn % 2 else "user", "content": TALK[turn % len(TALK)]}
        for turn in range(40)
    ]
    history.append({"role": "user", "content": "So what did we agree on?"})
    for strategy in (SlidingWindow(10), Important()):
        model = ScriptedModel(window=450)
        compacter = Compacter(strategy=strategy)
        compacter.wrap(model.completion)("any-model", history)
        sent = model.requests[-1].messages
        kept = sum(
            "4,500" in message["content"] or "14 March" in message["content"] for message in sent
        )
        small = sum(
            "weather" in message["content"] or "Good morning" in message["content"]
            for message in sent
        )
        print(
            f"{strategy.name}: {len(history)} messages became {len(sent)}: {kept} facts, "
            f"{small} pleasantries"
        )


if __name__ == "__main__":
    main()
