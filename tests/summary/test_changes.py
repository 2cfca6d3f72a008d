"""What changed, through ten folds by the front door: the new word is always there, the old one never without it."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
    ("The nurse on duty is Bella.", "The nurse on duty is Kim from now on."),
    ("I take the 7:10 train to work.", "These days I take the 8:40 train to work."),
    ("Die Frist für den Antrag ist der 3. Juli.", "Die Frist für den Antrag ist jetzt der 9. August."),
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
    "sections": lambda: ScriptedSummarizer("Task: look at boats\nDone: counted some boats\nFacts: the towns are far"),
}


def idle(turns: int, first: int) -> list[dict[str, Any]]:
    said: list[dict[str, Any]] = []
    for turn in range(first, first + turns):
        said.append({"role": "user", "content": f"How far is town {turn} from river {turn * 3}, roughly?"})
        said.append({"role": "assistant", "content": f"Town {turn} lies {turn + 7} miles from it. " * 3})
    return said


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("old", "new"), [*CHANGED, *LIFTED])
def test_the_new_word_is_always_there_and_the_old_one_never_alone(old: str, new: str, way: str) -> None:
    compacter = Compacter(summarizer=WAYS[way](), memory=None)
    messages = [*idle(3, 0), {"role": "user", "content": old}, *idle(3, 3), {"role": "user", "content": new}]
    for fold in range(10):
        messages = [*messages, *idle(8, 6 + fold * 8), {"role": "user", "content": "And now?"}]
        messages = list(compacter.compact(messages, budget=2_400).messages)
        text = json.dumps(messages, ensure_ascii=False)
        assert new in text
        assert text.find(old) < text.rindex(new)
