"""Standing instructions of the user: which sentences are some, and what becomes of them
over folds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from compacter import Compacter
from compacter.messages.parts import Part, Speaker
from compacter.summary import rules
from compacter.summary.timeline import timeline
from compacter.testing import ScriptedModel, ScriptedSummarizer

STANDING = [
    "Never restart the billing service during the day.",
    "Always show the totals in euros.",
    "Please do not touch the folder /srv/archive.",
    "From now on, answer in short sentences.",
    "Whenever a job fails, tell me its number.",
    "If a test fails, tell me before you mend it.",
    "The folder must stay read-only.",
    "Each invoice should have a date.",
    "I'd prefer flights in the morning.",
    "I want you to call me Captain.",
    "Call me Captain.",
    "Reply in German.",
    "Keep all answers below 90 words.",
    "No emojis, please.",
    "We never deploy on a Friday.",
    "The whole trip may cost at most 2,350 euros.",
    "The budget is 400 euros.",
    "- **Safety**: Never share the key with anybody.",
    "3. Always keep a copy.",
    "From here on, keep the commits small.",
    "Please use metric units.",
    "Stay on the old server until I say otherwise.",
    "I don't want a window seat.",
    "Searching by author should be easy.",
    "Whatever you do, keep the originals.",
    "Schicke niemals Kundendaten nach außen.",
    "Ab jetzt bitte nur noch Deutsch.",
    "Nenn mich Chef.",
    "Starte den Dienst nie am Tag neu.",
    "Non usare mai il vecchio modulo.",
    "Nigdy nie ruszaj folderu zdjęć.",
    "Ne modifie jamais le fichier paie.ods.",
    "Réponds toujours en trois phrases.",
    "No borres nunca la carpeta de facturas.",
    "Usa siempre el sistema métrico.",
    "绝不要在周末发布新版本。",
    "以后请用中文回答。",
    "必ず日本語で書いてください。",
    "今後は敬語を使わないでください。",
    "테스트 데이터는 절대 삭제하지 마세요.",
]
NOTHING = [
    "Which tests must I run?",
    "Never mind.",
    "Don't worry, it will be fine!",
    "That must have been a great evening.",
    "You never give up, I admire that.",
    "I always wanted to see Norway.",
    "He never called me back.",
    "RULES:",
    "# Never call this twice",
    "// always returns a copy",
    "+# don't sort here",
    "TypeError: size must be a number",
    "error: you must give a name",
    "Usage: always pass a file",
    "Please find out why the import fails.",
    "Book the cheaper one.",
    "don't use the oldCache here",
    "If yes, send it.",
    "Don't close it yet, I am still reading.",
    "We never heard of it.",
    "Whenever I cook, the alarm goes off.",
    "Always happy to hear from you!",
    "You must be joking.",
    "Everything should work by now.",
    "The reindexing should be running.",
    "For the other one it should be a new key.",
    "I don't want to be late.",
    "The bus should be here any minute.",
    "My aunt should have written by then.",
    "My neighbour said we must never park there.",
    "You should never have sold it, said my aunt.",
    "The cap is 40 seats, I think.",
    "Clap for every singer in this choir.",
    'raise ValueError("you must give a name")',
    "Nunca he vivido en Lima.",
    "Use the red one for now.",
    "Call me back tomorrow.",
    "Ich war noch nie in Rom.",
    "Plane eine Reise nach Bergen im Mai.",
    "Réserve la salle pour le 3 mai.",
    "Nie wiem, co teraz robić.",
    "Ten plik nie działa na serwerze.",
    "Je vais toujours à Lyon en train.",
    "Yo siempre como tarde.",
    "我从来不知道必须这样。",
    "私は必ず行きます。",
    "",
    "Never",
]


def user(*texts: str) -> list[Part]:
    return [Part("user", "text", text) for text in texts]


@pytest.mark.parametrize("sentence", STANDING)
def test_what_is_meant_to_last_is_a_rule(sentence: str) -> None:
    assert rules.lines(user(sentence)) == [f"Rule: {sentence}"]


@pytest.mark.parametrize("sentence", NOTHING)
def test_what_is_said_for_the_moment_is_none(sentence: str) -> None:
    assert rules.lines(user(sentence)) == []


@pytest.mark.parametrize(
    "part",
    [
        Part("assistant", "text", "Never restart the server."),
        Part("tool", "result", "Never restart the server.", "fetch"),
        Part("assistant", "call", "Never restart the server.", "fetch"),
        Part("user", "result", "Never restart the server.", "fetch"),
        Part("user", "media", "Never restart the server."),
    ],
)
def test_only_what_the_user_wrote_can_be_a_rule(part: Part) -> None:
    assert rules.lines([part]) == []


def test_code_in_a_message_states_no_rule() -> None:
    assert rules.lines(user("Look:\n```\nAlways call the parent first.\n```")) == []


def test_people_who_talk_to_one_another_set_no_rules() -> None:
    people: tuple[tuple[Speaker, str], ...] = (("user", "Ann"), ("assistant", "Bo"))
    talk = [
        Part(role, "text", f"{name}: Never forget to call your mother on day {day}.")
        for day in range(3)
        for role, name in people
    ]
    assert rules.lines(talk) == []


@pytest.mark.parametrize(
    "label", ["Day {}", "Task", "Bug {}", "Ann", "Frage", "Step {}", "Request", "PS"]
)
def test_a_label_before_what_the_user_says_hides_no_rule(label: str) -> None:
    said = [
        f"{label.format(number)}: Never close gate {number}. Is gate {number} open?"
        for number in range(6)
    ]
    talk = [
        part
        for text in said
        for part in (Part("user", "text", text), Part("assistant", "text", "Yes, it is open."))
    ]
    assert len(rules.lines(talk)) == 6


@pytest.mark.parametrize(
    "label",
    [
        "Ann: ",
        "**Ann:** ",
        "[Ann]: ",
        "<ann> ",
        "Ann Lee (10:42): ",
        "[10:42] Ann: ",
        "Dr. Ann Lee: ",
        "@bot ",
        "Ann (she/her): ",
        "[2026-05-03 10:42] Ann: ",
    ],
)
def test_a_speaker_before_the_sentence_hides_no_rule(label: str) -> None:
    rule = f"{label}Please always give prices in euros."
    assert rules.lines(user(rule)) == [f"Rule: {rule}"]


@pytest.mark.parametrize(
    ("by", "rule"),
    [
        ("Assistant", "Never close gate 7."),
        ("Tom", "Please always give prices in euros."),
        ("Tom", "From now on, use the short form."),
        ("Tom", "Always answer in one sentence."),
    ],
)
def test_a_log_in_which_both_sides_have_a_name_has_rules(by: str, rule: str) -> None:
    talk = [
        part
        for said in (rule, "What does the berth cost?", "And the crane?")
        for part in (
            Part("user", "text", f"Ann: {said}"),
            Part("assistant", "text", f"{by}: It is in the list."),
        )
    ]
    assert rules.lines(talk) == [f"Rule: Ann: {rule}"]


def test_a_rule_said_again_stands_once_and_as_the_newest() -> None:
    said = user("Never use tabs.", "Always use the metric system.", "Never use tabs.")
    assert rules.lines(said) == ["Rule: Always use the metric system.", "Rule: Never use tabs."]


def test_declared_rules_come_first_and_whole_whatever_the_budget() -> None:
    kept = rules.lines(user("Never use tabs."), declared=["Ask Ann before any payment."], budget=0)
    assert kept == ["Rule: Ask Ann before any payment."]


def test_typed_rules_are_kept_before_those_of_a_document() -> None:
    document = "\n".join(
        f"- Never paint wall number {number} in the colour {number}." for number in range(40)
    )
    kept = rules.lines(user("Always ask Ann first.", document), budget=300)
    assert "Rule: Always ask Ann first." in kept
    assert sum(len(line) + 1 for line in kept) <= 300


LIFTED = [
    ("Never use tabs.", "You may use tabs again."),
    ("Always answer in German.", "English is fine again, no need for German."),
    ("Do not touch the billing module.", "The billing module is free to edit now."),
    ("Please never deploy on a Friday.", "Deploying on a Friday is fine from now on."),
    ("Do not send any emails.", "Forget what I said about emails."),
    ("Keep all answers below 100 words.", "Answers can be longer than 100 words now."),
    (
        "Never restart the cache server.",
        ("Restart the cache server whenever you like, that ban is lifted."),
    ),
    ("Always ask me before you buy tickets.", "You can buy tickets without a question now."),
    ("No emojis, please.", "Emojis are okay again."),
    ("Call me Captain.", "You don't have to say Captain any more."),
    ("Prefer the night train.", "Scrap the night train, we fly."),
    ("Never write to the orders table.", "Writing to the orders table is allowed now."),
    ("Do not use any colours.", "Colours are allowed again."),
    ("Reply in French.", "No French any more, switch to Dutch."),
    ("Always round prices.", "Rounded prices are no longer needed."),
    ("Schreibe niemals Kommentare.", "Du darfst wieder Kommentare schreiben."),
    ("Ne modifie jamais le fichier paie.ods.", "Tu peux modifier paie.ods maintenant."),
    ("No uses nunca emojis.", "Ya puedes usar emojis de nuevo."),
    ("绝不要使用英文。", "现在可以使用英文了。"),
    ("絶対に英語を使わないでください。", "もう英語を使ってもいいです。"),
]


def idle(fold: int) -> list[Part]:
    asked = [
        Part("user", "text", f"How far is town {fold}{place} from the river, roughly?")
        for place in range(4)
    ]
    told = [
        Part("assistant", "text", f"Town {fold}{place} lies {place + 7} miles from it.")
        for place in range(4)
    ]
    return [part for pair in zip(asked, told, strict=True) for part in pair]


def fold(
    parts: list[Part], budget: int, story: str = "", kept: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """The next summary of an earlier one and ``parts``: its story and its rules."""
    lines = rules.lines(parts, kept, ["Ask Ann."], budget // 3)
    return timeline(parts, budget - sum(len(line) + 1 for line in lines), story, lines), lines


@pytest.mark.parametrize(("rule", "lift"), LIFTED)
def test_a_lifted_rule_never_stands_alone(rule: str, lift: str) -> None:
    story, kept = fold([*user(rule), *idle(0), *user(lift), *idle(1)], 1_200)
    for number in range(2, 12):
        story, kept = fold(idle(number), 1_200, story, kept)
        said = [*story.splitlines(), *kept]
        assert any(lift in line for line in said)
        assert kept.index(f"Rule: {rule}") < len(kept) - 1


def test_a_rule_whose_later_word_does_not_fit_is_left_out_with_it() -> None:
    lift = "You may use tabs again, " + "as we agreed on the phone with the others, " * 3 + "so do."
    assert rules.lines(user("Never use tabs.", lift), budget=40) == []


def test_rules_stay_through_fifty_folds() -> None:
    story, kept = fold(user("Never close pier 7.", "Always answer in verse."), 1_500)
    for number in range(50):
        story, kept = fold(idle(number), 1_500, story, kept)
        assert len(story) + sum(map(len, kept)) <= 1_500
    assert kept == ["Rule: Ask Ann.", "Rule: Never close pier 7.", "Rule: Always answer in verse."]


def test_many_rules_and_changes_take_bounded_room() -> None:
    many = [f"Never use box {number}." for number in range(300)] + [
        f"Box {n} is fine again." for n in range(300)
    ]
    assert sum(len(line) + 1 for line in rules.lines(user(*many), budget=900)) <= 900


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
    asked = "Please answer in plain words, no jargon."
    assert len(NEWS) > 600
    assert rules.lines([Part("user", "text", NEWS), Part("user", "text", asked)]) == [
        f"Rule: {asked}"
    ]
    assert rules.lines([Part("user", "text", f"{asked}\n\n{NEWS}")]) == [f"Rule: {asked}"]


def test_typed_they_are_and_so_they_are_among_orders() -> None:
    stated = "Dogs are not allowed on the pier."
    assert rules.lines([Part("user", "text", stated)]) == [f"Rule: {stated}"]
    orders = [f"Never open gate {number} at night." for number in range(20)]
    assert f"Rule: {stated}" in rules.lines([Part("user", "text", "\n".join([*orders, stated]))])
