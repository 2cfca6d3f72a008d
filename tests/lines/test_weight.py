"""How many tokens a text has by its script."""

from __future__ import annotations

import pytest

from compacter.lines.asks import question
from compacter.lines.quotes import Quoter
from compacter.lines.talk import Talk
from compacter.lines.weight import tokens, tokens_each
from compacter.messages.parts import Part

# Tokens of each text with cl100k, which has more of them than newer tokenizers.
COUNTED = {
    "The electrician needed nine days, and then the oven worked.": 13,
    "Электрику понадобилось девять дней, и тогда печь заработала.": 29,
    "电工花了九天时间接线，然后烤炉就能用了。": 25,
    "전기 기술자가 아흐레 동안 배선했습니다.": 24,
    "| 14 | 2024-05-27 | town hall | 18412 |": 19,
}
CHINESE = "备用钥匙挂在储藏室的铜壶后面，不要告诉邻居家的孩子们。"
ENGLISH = "The spare key hangs behind the copper kettle in the pantry."


@pytest.mark.parametrize("text", COUNTED)
def test_an_estimate_is_not_below_what_a_tokenizer_counts(text: str) -> None:
    assert COUNTED[text] <= tokens(text) <= 2 * COUNTED[text]


def test_the_average_of_a_conversation_is_that_of_its_beginning() -> None:
    assert tokens_each(["word " * 4_000, CHINESE * 1_000]) == pytest.approx(0.25)
    assert tokens_each([]) == pytest.approx(0.3)
    assert tokens_each([CHINESE]) == pytest.approx(1.5)


@pytest.mark.parametrize("text", ["", "\ud800", "a" * 1_000_000])
def test_no_text_raises(text: str) -> None:
    assert tokens(text) >= 0


def characters_quoted(folded: str, talk: str, room: int) -> int:
    others = [Part("user", "text", f"{talk} {n}", "", n) for n in range(400)]
    entries = [*others, *(Part("user", "text", f"{folded * 3}{n}", "", n) for n in range(9))]
    asked = question([Part("user", "text", f"{folded[:14]}?", "", 99)])
    quoter = Quoter(Talk(entries), room, tokens_each([talk]))
    quoter.answer(asked)
    made = quoter.quotation()
    return len(made.text) if made else 0


def test_quotes_in_a_costlier_script_than_the_conversation_have_fewer_characters() -> None:
    among_english = characters_quoted(CHINESE, ENGLISH, 900)
    among_chinese = characters_quoted(CHINESE, "今天天气很好，我们去河边散步，然后喝茶。", 900)

    assert among_chinese > 700
    assert 0 < among_english < among_chinese / 2
