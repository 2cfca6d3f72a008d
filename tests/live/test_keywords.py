"""With a real model as the summarizer, what the user said of themselves is still there after a
compaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from embedded_model import EmbeddedModel

KEYWORDS = ("Lindqvist", "Kanazawa", "cartographer", "falconry")
SAID = (
    "My name is Alice Lindqvist.",
    "I live in Kanazawa.",
    "I work as a cartographer.",
    "My hobby is falconry. Never show me pictures of caged birds.",
)
TOPICS = ("the harbour", "the lighthouse", "the old ferry", "the fish market")


def long_history() -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = []
    for said in SAID:
        history += [
            {"role": "user", "content": said},
            {"role": "assistant", "content": "Thank you, I see."},
        ]
    for number in range(12):
        topic = TOPICS[number % len(TOPICS)]
        history.append(
            {"role": "user", "content": (f"Part {number}: what can you tell me about {topic}?")}
        )
        history.append(
            {"role": "assistant", "content": (f"In year {1800 + number} {topic} was painted blue.")}
        )
    return [*history, {"role": "user", "content": "Name one thing that is painted blue."}]


def test_planted_keywords_and_rules_are_in_the_summary_message(model: EmbeddedModel) -> None:
    events: list[CompactionEvent] = []
    compacter = Compacter(max_summary_tokens=120, on_compaction=events.append)
    with openai.OpenAI(base_url=model.api_base, api_key="none", timeout=600) as client:
        reply = compacter.wrap(client).chat.completions.create(
            model=model.name,
            messages=long_history(),  # type: ignore[arg-type]
            max_tokens=8,
            temperature=0,
        )
    assert reply.choices[0].message.content
    kept = events[0].summary + events[0].ledger
    # What so small a model writes may be refused; what stands in its place holds the same.
    assert sum(keyword in kept for keyword in KEYWORDS) >= 3
    assert "Never show me pictures of caged birds." in kept
