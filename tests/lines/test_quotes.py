"""Quotes: found by what is rare, in any language, with what gives them meaning and what changed
since.
"""

from __future__ import annotations

import json

import pytest

from compacter.lines.asks import question
from compacter.lines.quotes import MOST_FOR_STEP, Quoter, search
from compacter.lines.talk import Talk
from compacter.messages.parts import Part

_FILLER = (
    "And store room {n}, what is in it?",
    "Room {n} has {n} crates of tiles, and its lamp was oiled.",
)


def talk(*planted: str | Part) -> list[Part]:
    """Filler with something said in the middle of it, user first."""
    parts: list[Part] = []
    for n in range(20):
        texts = [text.format(n=n) for text in _FILLER]
        middle = planted if n == 9 else ()
        for at, text in enumerate([*texts, *middle]):
            part = text
            if isinstance(part, str):
                part = Part("assistant" if at % 2 else "user", "text", part, "", len(parts))
            parts.append(part)
    return parts


def quoted(asked: str, *planted: str | Part, room: int = 1_500) -> str:
    quoter = Quoter(Talk(talk(*planted)), room)
    quoter.answer(question([Part("user", "text", asked, "", 99)]))
    made = quoter.quotation()
    return made.text if made else ""


@pytest.mark.parametrize(
    ("row", "asked", "answer"),
    [
        (
            '{"holder": "Quillfeather", "ticket": "T-88213"}',
            "Which ticket has Quillfeather?",
            "T-88213",
        ),
        ("réglages : seuilHumidite=61", "Quelle humidité avons-nous retenue ?", "61"),
        ('{"najemca": "Wierzbowska", "umowa": "GD-7713"}', "Jaką umowę ma Wierzbowska?", "GD-7713"),
        ('{"担当": "柊木", "伝票": "W55.2081"}', "柊木さんの伝票は何番ですか。", "W55.2081"),
        ("pump-idle-cutoff = 415", "What is the cutoff?", "415"),
    ],
)
def test_a_rare_name_finds_its_row_in_any_language(row: str, asked: str, answer: str) -> None:
    assert answer in quoted(asked, Part("tool", "result", row, "lookup", 19))


def test_a_changed_statement_comes_with_its_change() -> None:
    text = quoted(
        "On which port does the pump listen?",
        "The pump listens on port 4417.",
        "Noted.",
        "Make it 5520 instead, the other is taken.",
        "Changed.",
    )
    assert text.rfind("5520") > text.rfind("4417")


def test_without_room_for_its_change_a_statement_is_not_quoted() -> None:
    for room in range(200, 900, 20):
        text = quoted(
            "On which port does the pump listen?",
            "The pump listens on port 4417.",
            "Noted.",
            "The pump has moved, since the crane there is under repair: it is 5520 now, they say.",
            "Changed.",
            room=room,
        )
        assert "4417" not in text or "5520" in text


def test_a_value_comes_with_its_own_record() -> None:
    records = [{"room": f"RM{n}", "rent": f"8{n}.12", "key": f"box {n}"} for n in range(452, 480)]
    text = quoted(
        "What is the rent of RM468?", Part("tool", "result", json.dumps(records), "rooms", 19)
    )
    assert '"RM468", "rent": "8468.12"' in text


def test_an_answer_comes_with_its_question() -> None:
    text = quoted(
        "Who pays for the awning?", "Who pays for the awning?", "Halvorsen does, in three parts."
    )
    assert "Halvorsen" in text


@pytest.mark.parametrize(
    "asked", ["Yup.", "Go ahead.", "The second one.", "Great, thank you!", "ええ、それで。"]
)
def test_an_assent_gets_no_quotes(asked: str) -> None:
    assert quoted(asked, "Shall we go ahead with the awning?", "Yes.", asked, "Very well.") == ""


def test_a_value_deep_in_a_record_is_found_by_a_task_that_names_its_holder() -> None:
    names = ("Quillfeather", "Ostrander", "Vandermeer")
    fees = ("heating", "water", "garage", "waste")
    records = [
        {
            "holder": name,
            "lease": f"L-{at}77",
            "monthly": {
                f"{fee}Fee": {"value": 100 * at + n, "note": "ok"} for n, fee in enumerate(fees)
            },
            "deposits": {"key": {"value": 70 + at}, "rent": {"value": 900 + at}},
        }
        for at, name in enumerate(names, 3)
    ]
    text = json.dumps({"ok": True, "leases": records}, indent=2)
    quoter = Quoter(Talk(talk(Part("tool", "result", text, "leases", 19))), MOST_FOR_STEP)
    quoter.remind(["Send Ostrander a letter about the heating fee."])
    made = quoter.quotation()
    assert made is not None
    assert "400" in made.text
    assert "300" not in made.text


def test_a_greeting_that_stands_in_the_request_hides_no_line() -> None:
    told = "Thanks, Mara! The spare valve is in the green locker."
    parts = talk(told)
    quoter = Quoter(Talk(parts), 1_500, request="Thanks, Mara! See you at noon.")
    quoter.answer(["Where is the spare valve?"])
    made = quoter.quotation()
    assert made is not None
    assert "green locker" in made.text


def test_a_line_that_repeats_a_task_for_something_else_is_not_quoted() -> None:
    told = "Decision: the socket cache is kept in shelves, since others lock up under load."
    quoter = Quoter(Talk(talk("Now please write the layer of the frame cache.", told)), 1_500)
    quoter.remind(["Now please write the layer of the socket cache."])
    made = quoter.quotation()
    assert made is not None
    assert "shelves" in made.text
    assert "frame" not in made.text


def test_a_row_keeps_its_columns_where_a_newer_line_has_no_room() -> None:
    rows = [
        f"| CL-{n}83-X | Irene Quaye {n} | 742.4{n} | desk {n} | 2033-09-1{n} |"
        for n in range(1, 8)
    ]
    table = "\n".join(
        ["| claim | insured | reserve | assessor | reopened |", "|---" * 5 + "|", *rows]
    )
    newer = f"The reserve is checked by {'the auditors of the harbour office and ' * 7}the crew."
    parts = talk(Part("tool", "result", table, "claims", 19), newer)
    quoter = Quoter(Talk(parts), 400)
    quoter.remind(["Tell me the reserve of claim CL-483-X."])
    made = quoter.quotation()
    assert made is not None
    assert "| claim | insured | reserve" in made.text
    assert rows[3] in made.text


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("We camped by the weir.", "Where is camping allowed?"),
        ("The applied torque is 7 Nm.", "What torque do I apply?"),
        ("Klucz ma pan Rybak.", "Czy klucz jest u Rybaka?"),
        ("The pump runs at bench: 7.", "What runs at bench 7?"),
    ],
)
def test_an_inflected_word_is_found(said: str, asked: str) -> None:
    assert said in quoted(asked, said)


def test_an_id_means_more_than_the_words_of_which_questions_are_made() -> None:
    told = "Booking KC18K6: from Minneapolis by Newark to Charlotte."
    other = "Could you check which of these flights take over three hours, and where they go?"
    parts = talk("Is KC18K6 paid?", "Yes.", "Where does it go?", told)
    parts.insert(6, Part("user", "text", other, "", 6))
    quoter = Quoter(Talk(parts), 330)
    quoter.answer(["Over which airport does KC18K6 go?"])
    made = quoter.quotation()
    assert made is not None
    assert told in made.text
    assert other not in made.text


def test_a_number_is_no_beginning_of_another() -> None:
    rows = [f"Window {n} looks to the garden behind wall {n}." for n in range(3, 40)]
    parts = [Part("user", "text", row, "", at) for at, row in enumerate(rows)]
    quoter = Quoter(Talk(parts), 600)
    quoter.answer(["Where does window 3 look to?"])
    made = quoter.quotation()
    assert made is not None
    assert rows[0] in made.text


def test_an_ellipsis_never_stands_inside_a_record() -> None:
    text = "\n\n".join(f"room: RM{n}\nrent: {n}.12\nuntil: 2033" for n in range(452, 470))
    lines = quoted(
        "What is the rent of RM468?", Part("tool", "result", text, "rooms", 19)
    ).splitlines()
    at = next(number for number, line in enumerate(lines) if "RM468" in line)
    assert lines[at + 1].strip() == "rent: 468.12"


def test_a_search_finds_by_hand_what_a_question_finds() -> None:
    found = search(Talk(talk("The awning is sold to Halvorsen.", "Noted.")), "Halvorsen", 1)
    assert [passage.text for passage in found] == ["The awning is sold to Halvorsen."]
    assert (found[0].role, found[0].name) == ("user", "")
