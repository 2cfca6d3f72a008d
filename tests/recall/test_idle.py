"""Ordinary messages, held against a long chat about a bakery: they ask nothing that was said."""

from __future__ import annotations

import pytest

from compacter.messages.parts import Part
from compacter.recall.index import Index
from compacter.recall.question import question
from compacter.recall.quotes import Quoter

IDLE = """
Sounds good, the garden looks great today.
Thanks, I will show this to my boss on Friday.
My coffee got cold while I was reading that.
The weather is lovely, I might go for a walk by the river.
Perfect, that is clear now.
Please make the second paragraph a little shorter.
Can you rewrite this in a friendlier tone?
I have to run, the bus is coming in five minutes.
Could you give me three more examples like this?
What is the boiling point of water at high altitude?
My daughter just drew a picture of a dragon, it is adorable.
Great work, please continue with the next part.
How do I remove a red wine stain from a carpet?
Let me think about it over dinner.
That is funny, my neighbour said the same thing.
Write a short birthday poem for my aunt.
I do not understand the last sentence.
Wow, I did not expect such a long answer.
Put the whole thing into bullet points, please.
The phone is ringing, one moment.
What would you cook for six guests on a Sunday?
Sorry, typo, I meant the other way around.
Please use simpler language, I am not an expert.
I was at the dentist this morning and my mouth is still numb.
Is there a word for the smell of rain on dry ground?
Our cat sleeps on the keyboard again.
Good question, I do not know either.
Could you check what I just wrote for mistakes?
I like the blue version better.
How long does it take to learn an instrument like the cello?
Fine, then we will do it your way.
The meeting went well, everybody was happy.
Explain how a lock on a canal works.
Ha, the printer is out of paper, of course.
Please turn that into a letter.
I will try it out at home and tell you.
What rhymes with orange?
It is late here, I am going to bed.
Are you still there?
Could you make it sound more cheerful?
""".strip().splitlines()
# Each of these nouns stands in the chat once: rare there, and nothing that was asked for.
_NOUNS = """
garden boss coffee river walk paragraph tone bus minutes water picture dinner neighbour birthday
sentence points phone guests language morning rain ground keyboard version meeting paper letter
home bed instrument canal wine carpet
"""
NOUNS = _NOUNS.split()


def chat() -> list[Part]:
    parts = []
    for day in range(200):
        noun = NOUNS[day // 5] if day % 5 == 0 and day < 5 * len(NOUNS) else "oven"
        said = (
            f"On day {day} we baked {day * 7 % 90} loaves of rye, and somebody spoke of a {noun}."
        )
        parts.append(Part("user", "text", said, "", 2 * day))
        answer = f"I have noted {day * 7 % 90} loaves for that day. Shall I add them up?"
        parts.append(Part("assistant", "text", answer, "", 2 * day + 1))
    return parts


@pytest.fixture(scope="module")
def whole() -> tuple[Index, int]:
    parts = chat()
    index = Index(parts[:-10])
    return index.extend(parts[-10:]), index.count


def test_ordinary_messages_bring_nothing_although_their_nouns_are_rare(
    whole: tuple[Index, int],
) -> None:
    index, compacted = whole
    quoted = []
    for text in IDLE:
        quoter = Quoter(index, 2_000, compacted=compacted)
        quoter.answer(question([Part("user", "text", text)]))
        quoted += [text] if quoter.quotation() else []
    assert len(quoted) <= 0.08 * len(IDLE), quoted


@pytest.mark.parametrize(
    ("asked", "day"),
    [
        ("Who spoke of a canal?", 150),
        ("On what day was the cello, I mean the instrument, spoken of?", 145),
    ],
)
def test_the_same_nouns_are_found_where_they_are_asked_for(
    asked: str, day: int, whole: tuple[Index, int]
) -> None:
    index, compacted = whole
    quoter = Quoter(index, 2_000, compacted=compacted)
    quoter.answer(question([Part("user", "text", asked)]))
    made = quoter.quotation()
    assert made is not None
    assert f"On day {day} we baked" in made.text
