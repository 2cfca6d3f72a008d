from __future__ import annotations

import pytest

from compacter.messages.parts import Entry
from compacter.summaries import instructions, ledger, oneself

TALK = [Entry("user", "text", f"Tell me something about pier {n}, which is number {n * 31}.") for n in range(40)]


@pytest.mark.parametrize(
    "said",
    [
        "My name is Alice Lindqvist.",
        "I live in Kanazawa.",
        "I'm a cartographer.",
        "My favourite dish is soup.",
        "You can call me Al.",
        "Ich heiße Jonas und komme aus Bern.",
        "Mein Hund ist zwölf.",
        "J'habite à Lyon.",
        "Me llamo Inés.",
        "Moro em Braga.",
        "Mi chiamo Ada.",
        "Ik woon in Gent.",
        "Mieszkam w Łodzi.",
        "Меня зовут Вера.",
        "我住在杭州。",
        "私は京都に住んでいます。",
        "저는 부산에 살아요.",
    ],
)
def test_what_people_say_of_themselves_stays_in_the_ledger_fold_after_fold(said: str) -> None:
    first = ledger.build([Entry("user", "text", "Good morning."), Entry("user", "text", said), *TALK], budget=500)
    assert said in first
    again = ledger.build(TALK, prior=first, budget=500)
    assert said in again
    assert again.count(said) == 1


@pytest.mark.parametrize(
    "said",
    [
        "Where do I live?",
        "My name is?",
        "The name is wrong.",
        "I am looking at it.",
        "I'm going home.",
        "Is my job safe?",
    ],
)
def test_other_sentences_are_none(said: str) -> None:
    assert oneself.statements([Entry("user", "text", said)]) == []


@pytest.mark.parametrize(("role", "kind"), [("assistant", "text"), ("tool", "result"), ("system", "text")])
def test_only_the_user_speaks_of_themselves(role: str, kind: str) -> None:
    entry = Entry(role, kind, "My name is Mallory.")  # type: ignore[arg-type]
    assert oneself.statements([entry]) == []


def test_the_newer_of_two_statements_about_the_same_holds() -> None:
    talk = [
        Entry("user", "text", "My phone number is 555 0101."),
        *TALK,
        Entry("user", "text", "My phone number is 555 0199."),
    ]
    made = ledger.build([Entry("user", "text", "Hello, paint the shed."), *talk], budget=500)
    assert "555 0199" in made
    assert "555 0101" not in made


def test_a_request_that_is_done_with_its_answer_is_no_rule() -> None:
    found = dict(instructions.find(TALK))
    assert found == {}
    assert dict(instructions.find([Entry("user", "text", "Give me all prices in euros.")]))
