"""With a real model as the summarizer, declared rules are still there after a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai

from compacter import Compacter, CompactionEvent

if TYPE_CHECKING:
    from embedded_model import EmbeddedModel

SAID = (
    "My name is Alice Lindqvist.",
    "I live in Kanazawa.",
    "I work as a cartographer.",
    "My hobby is falconry.",
    "Never show me pictures of caged birds.",
)
RULE = "Answer in one sentence."
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


def test_a_declared_rule_is_in_the_summary_message(model: EmbeddedModel) -> None:
    """Whatever so small a model writes, in a window of 512 tokens."""
    events: list[CompactionEvent] = []
    compacter = Compacter(max_summary_tokens=120, rules=[RULE], on_compaction=events.append)
    with openai.OpenAI(base_url=model.api_base, api_key="none", timeout=600) as client:
        reply = compacter.wrap(client).chat.completions.create(
            model=model.name,
            messages=long_history(),  # type: ignore[arg-type]
            max_tokens=8,
            temperature=0,
        )
    assert reply.choices[0].message.content
    kept = events[0].summary + events[0].ledger
    assert f"Rule: {RULE}" in kept
