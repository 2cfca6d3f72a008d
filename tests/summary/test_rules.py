"""Standing instructions of the user: few and sure, and they live on."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter
from compacter.messages.parts import Part
from compacter.summary.head import Head
from compacter.summary.message import parse
from compacter.summary.rules import is_rule, rules
from compacter.testing import ScriptedModel, ScriptedSummarizer

STANDING = [
    "Never restart the billing service during the day.",
    "Always show the totals in euros.",
    "From now on, answer in short sentences.",
    "Please never deploy on a Friday.",
    "You must never share the key.",
    "Ok, but always ask me first.",
    "- Never share the key with anybody.",
    "3. Always keep a copy.",
    "From here on, keep the commits small.",
    "Remember: always add a test.",
    "Use metric units from now on.",
    "Schreibe niemals Kommentare.",
    "Ab sofort bitte auf Deutsch antworten.",
    "Ne modifie jamais le fichier paie.ods.",
    "No uses nunca emojis.",
    "Sempre responda em português.",
    "Всегда отвечай по-русски.",
    "绝不要忘记：以后都用中文回答。",
    "今後は日本語で答えてください。",
    "항상 한국어로 대답해 주세요.",
]
NOTHING = [
    "Which tests must I run?",
    "Never mind.",
    "Never say never!",
    "Never saw this coming.",
    "Never looked better.",
    "Never forget the champion of the people.",
    "Always up for something sweet.",
    "Always here to help!",
    "You never give up, I admire that.",
    "I always wanted to see Norway.",
    "He never called me back.",
    "The nurse on duty is Kim from now on.",
    "# Never call this twice",
    "// always returns a copy",
    "Usage: always pass a file",
    "Be honest.",
    "Keep it short.",
    "Write that down and tell me what we must not forget.",
    "Please find out why the import fails.",
    "We never heard of it.",
    "Always happy to hear from you!",
    'raise ValueError("you must never give a name")',
    "Nunca he vivido en Lima, yo no.",
    "Ich war noch nie in Rom.",
    "Je vais toujours à Lyon en train.",
    "Yo siempre como tarde.",
    "我从来不知道必须这样。",
    "",
    "Never",
]


def lines(*texts: str, room: int = 10_000) -> tuple[str, ...]:
    return rules(Head([Part("user", "text", text) for text in texts]), room)


@pytest.mark.parametrize("sentence", STANDING)
def test_what_is_plainly_meant_to_last_is_a_rule(sentence: str) -> None:
    assert lines(sentence) == (f"Rule: {sentence}",)


@pytest.mark.parametrize("sentence", NOTHING)
def test_nothing_else_is(sentence: str) -> None:
    assert not is_rule(sentence)
    assert lines(sentence) == ()


@pytest.mark.parametrize(
    "part",
    [
        Part("assistant", "text", "Never restart the server."),
        Part("tool", "result", "Never restart the server.", "fetch"),
        Part("assistant", "call", "Never restart the server.", "fetch"),
        Part("user", "media", "Never restart the server."),
        Part("user", "text", "See:\n```\nNever restart the server.\n```"),
    ],
)
def test_only_what_the_user_wrote_can_be_a_rule(part: Part) -> None:
    assert rules(Head([part]), 10_000) == ()


def test_a_rule_said_again_stands_once() -> None:
    assert lines("Always ask Ann.", "Never shout.", "Always ask Ann.") == (
        "Rule: Always ask Ann.",
        "Rule: Never shout.",
    )


def test_declared_rules_come_first_and_whole_whatever_the_budget() -> None:
    head = Head([Part("user", "text", "Never shout.")], declared=["Ask Ann. " * 20])
    assert rules(head, 30) == (f"Rule: {('Ask Ann. ' * 20).strip()}",)


def test_many_rules_and_changes_take_a_third_of_a_summary() -> None:
    many = [f"Never use box {number}." for number in range(300)]
    many += [f"You may use box {number} again." for number in range(300)]
    assert sum(len(line) + 1 for line in lines(*many, room=2_700)) <= 900


def test_what_the_user_said_later_about_a_rule_stands_beside_it() -> None:
    lifts = [f"You may use tabs again in file {number}." for number in range(9)]
    found = lines("Never use tabs.", *lifts)
    assert found == ("Rule: Never use tabs.", *(f"User: {lift}" for lift in lifts[-3:]))


def talk(turn: int) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": f"How far is town {turn} from the river now, roughly?"},
        {"role": "assistant", "content": f"Town {turn} lies {turn + 7} miles from it. " * 4},
    ]


@pytest.mark.parametrize("summarizer", ["extractive", lambda *_, **__: "They spoke of towns."])
def test_rules_live_through_thirty_compactions(summarizer: Any) -> None:
    wanted = ("Rule: Never close pier 7.", "Rule: Always answer in verse.")
    compacter = Compacter(summarizer=summarizer, memory=None)
    messages: list[Any] = [
        {"role": "user", "content": "Never close pier 7. Always answer in verse. And the tide?"},
        *talk(200),
        *talk(201),
    ]
    for turn in range(30):
        messages += [*talk(turn), *talk(turn + 50), *talk(turn + 90), *talk(turn + 130)]
        messages += [{"role": "user", "content": "And now?"}]
        messages = list(compacter.compact(messages, budget=900).messages)
        (summary,) = filter(None, (parse(message["content"]) for message in messages))
        assert summary.rules[:2] == wanted
        assert len(summary.rules) <= 5


@pytest.mark.parametrize(
    "summarizer", ["extractive", ScriptedSummarizer("They talked of refunds.")]
)
def test_a_rule_outlives_a_fold_in_which_a_long_last_message_leaves_little_room(
    summarizer: Any,
) -> None:
    model = ScriptedModel(window=1_000)
    completion = Compacter(summarizer=summarizer, recall=None).wrap(model.completion)
    history = [
        {"role": "user", "content": "Never send a refund above 100 euros without asking me first."},
        {"role": "assistant", "content": "Understood, I will ask you."},
    ]
    for number in range(12):
        history.append(
            {
                "role": "user",
                "content": (f"Which refund did customer {number} get? It was long ago."),
            }
        )
        history.append(
            {
                "role": "assistant",
                "content": (f"Customer {number} got {number * 7} euros, in three parts. ") * 3,
            }
        )
    for long in (3_400, 40, 40):
        history.append({"role": "user", "content": "Read this. ".ljust(long, "x")})
        completion("m", history)
        assert (
            "Rule: Never send a refund above 100 euros" in model.requests[-1].messages[0]["content"]
        )
        history += [
            {"role": "assistant", "content": "So it is. " * 30},
            {"role": "user", "content": "And then? " * 30},
        ]


NEWS = """\
The council approved a budget of 4.2 million euros for the new bridge on Monday, after a debate of
five hours. Under the new plan, every landlord at the harbour has to register his mooring, and no
boat may stay longer than a week. Dogs are not allowed on the pier. The speed limit is 5 knots in
the inner basin and 8 in the outer one. The mayor said that the ferry will run twice a day in
summer. A spokesman called the decision overdue. The fee is up to 40 euros a night, depending on the
length of the boat. Members of the club pay half of it. The contract with the builder ends no later
than 31 December. Work on the northern quay began in the spring.
"""
"""A pasted article, longer than what people type."""


def test_rules_in_a_pasted_article_are_not_the_users() -> None:
    assert len(NEWS) > 600
    asked = "Always answer in plain words."
    assert lines(f"{asked}\n\n{NEWS}") == (f"Rule: {asked}",)
