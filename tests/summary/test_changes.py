"""Changed facts, through several compactions of wrapped calls: the new word is always there, the
old one never without it.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.effort import times

from compacter import Compacter
from compacter.testing import ScriptedSummarizer

CHANGED = [
    ("The gate code is KX-41.", "The gate code is PQ-77 now."),
    ("My budget for the roof is 5,000 euros.", "Make the budget for the roof 7,500 euros."),
    ("The deadline of the leaflet is 5 May.", "The deadline of the leaflet moved to 19 June."),
    ("Our mail server listens on port 2525.", "We changed the port of the mail server to 2626."),
    ("The release is called Heron.", "We renamed it: the release is called Osprey."),
    ("Marta's extension is 142.", "Marta has a new extension: 199."),
    ("The talk with Olga is on Tuesday.", "The talk with Olga is on Thursday instead."),
    ("We fly to Lisbon in autumn.", "Change of plan, in autumn we fly to Porto."),
    ("The spare parts lie in Bremen.", "The spare parts have moved to Kiel."),
    ("The wifi password is lavender7.", "The new wifi password is rosemary9."),
    ("The lease of the hall ends in March.", "The lease of the hall was extended to August."),
    ("A ticket costs 12 euros.", "A ticket costs 15 euros now."),
    ("The rate of the loan is 4.1 percent.", "The rate of the loan went up to 4.7 percent."),
    ("The nurse on duty is Bella.", "The nurse on duty is Kim from now on."),
    ("I take the 7:10 train to work.", "These days I take the 8:40 train to work."),
    (
        "Die Frist für den Antrag ist der 3. Juli.",
        ("Die Frist für den Antrag ist jetzt der 9. August."),
    ),
    ("Le train de Lyon part à 8h15.", "Le train de Lyon part maintenant à 9h40."),
    ("La reunión con Rosa es el lunes.", "La reunión con Rosa es ahora el jueves."),
    ("Склад находится в Твери.", "Склад теперь находится в Туле."),
    ("订单编号是A1001。", "订单编号改成B2002。"),
    ("会議は三階で開きます。", "会議は五階に変更します。"),
]
LIFTED = [
    ("Never use tabs.", "You may use tabs again."),
    ("Always answer in German.", "English is fine again, no need for German."),
    ("Do not touch the billing module.", "The billing module is free to edit now."),
    ("Please never deploy on a Friday.", "Deploying on a Friday is fine from now on."),
    ("Do not send any emails.", "Forget what I said about emails."),
    ("Keep all answers below 100 words.", "Answers can be longer than 100 words now."),
    ("No emojis, please.", "Emojis are okay again."),
    ("Call me Captain.", "You don't have to say Captain any more."),
    ("Never write to the orders table.", "Writing to the orders table is allowed now."),
    ("Reply in French.", "No French any more, switch to Dutch."),
]
WAYS: dict[str, Any] = {
    "no model": lambda: "extractive",
    "a model": lambda: ScriptedSummarizer("They looked at boats and asked how far the towns are."),
    "sections": lambda: ScriptedSummarizer(
        "Task: look at boats\nDone: counted some boats\nFacts: the towns are far"
    ),
}


def idle(turns: int, first: int) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for turn in range(first, first + turns):
        said.append(
            {"role": "user", "content": (f"How far is town {turn} from river {turn * 3}, roughly?")}
        )
        said.append(
            {"role": "assistant", "content": (f"Town {turn} lies {turn + 7} miles from it. ") * 3}
        )
    return said


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("old", "new"), [*CHANGED, *LIFTED])
def test_the_new_word_is_always_there_and_the_old_one_never_alone(
    old: str, new: str, way: str
) -> None:
    compacter = Compacter(summarizer=WAYS[way](), memory=None)
    messages = [
        *idle(3, 0),
        {"role": "user", "content": old},
        *idle(3, 3),
        {"role": "user", "content": new},
    ]
    for fold in range(times(5, long=10)):
        messages = [*messages, *idle(8, 6 + fold * 8), {"role": "user", "content": "And now?"}]
        messages = list(compacter.compact(messages, budget=2_400).messages)
        text = json.dumps(messages, ensure_ascii=False)
        assert new in text
        assert text.find(old) < text.rindex(new)


SEVERAL = {
    "en": (
        ("The meeting room stays on floor 3.", "Actually the meeting room moved to floor 5."),
        ("Plan the trip to Bergen in spring.", "Forget the trip to Bergen, we stay home."),
    ),
    "de": (
        ("Die Sitzung findet im Raum 12 statt.", "Die Sitzung findet jetzt doch im Raum 31 statt."),
        ("Plane die Reise nach Bergen im Mai.", "Die Reise nach Bergen brauchen wir nicht mehr."),
    ),
    "es": (
        ("La reunión es en la sala 12.", "La reunión es ahora en la sala 31."),
        ("Organiza el viaje a Bergen en mayo.", "Olvida el viaje a Bergen, nos quedamos en casa."),
    ),
    "zh": (
        ("会议在12号房间举行。", "会议改成在31号房间举行。"),
        ("请计划五月去卑尔根的旅行。", "取消去卑尔根的旅行，我们待在家里。"),
    ),
}


@pytest.mark.parametrize("budget", [600, 900, 1_300, 2_000])
@pytest.mark.parametrize("language", SEVERAL)
def test_each_of_several_changes_in_one_talk_goes_with_its_own_statement(
    language: str, budget: int
) -> None:
    changes = SEVERAL[language]
    messages: list[dict[str, Any]] = []
    for number, said in enumerate((*(old for old, _ in changes), *(new for _, new in changes))):
        messages += [*idle(4, number * 4), {"role": "user", "content": said}]
    compacter = Compacter(summarizer="extractive", memory=None)
    for fold in range(6):
        messages = [*messages, *idle(6, 40 + fold * 6), {"role": "user", "content": "And now?"}]
        messages = list(compacter.compact(messages, budget=budget).messages)
        text = json.dumps(messages, ensure_ascii=False)
        for old, new in SEVERAL[language]:
            assert old not in text or new in text
