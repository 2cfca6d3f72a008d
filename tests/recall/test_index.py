"""The index finds what was said, in any language, within bounds, from any thread."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import grows_linearly, repeated, times

from compacter import Compacter
from compacter.messages.parts import Part
from compacter.recall.index import Index
from compacter.recall.passages import Passage, cut
from compacter.recall.question import question
from compacter.recall.quotes import search as search_in
from compacter.recall.terms import terms

LANGUAGES = {
    "English": (
        "who wired the oven?",
        "The ovens were being wired by Tomasz.",
        ("The mill delivers flour on Tuesday."),
    ),
    "German": (
        "Wann öffnet die Bücherei?",
        "Die Bücherei öffnet um neun.",
        ("Der Bäcker backt um vier Uhr Brot."),
    ),
    "Chinese": ("图书馆几点开门？", "图书馆早上九点开门，周一休息。", "面包师每天四点起床做面包。"),
    "Japanese": (
        "図書館は何時に開きますか",
        "図書館は朝九時に開きます。",
        "パン屋は四時にパンを焼きます。",
    ),
    "Korean": (
        "도서관은 언제 엽니까",
        "도서관은 아침 아홉 시에 엽니다.",
        "빵집은 네 시에 빵을 굽습니다.",
    ),
    "Thai": ("ห้องสมุดเปิดกี่โมง", "ห้องสมุดเปิดเก้าโมงเช้า", "ร้านขนมปังอบขนมปังตอนสี่โมง"),
    "Arabic": (
        "متى تفتح المكتبة؟",
        "تفتح المكتبة في التاسعة صباحا.",
        "يخبز الخباز الخبز في الرابعة.",
    ),
    "Hindi": ("पुस्तकालय कब खुलता है?", "पुस्तकालय सुबह नौ बजे खुलता है।", "बेकरी चार बजे रोटी बनाती है।"),
}


def search(where: Index | list[Part], query: str, limit: int = 5) -> list[Passage]:
    return search_in(where if isinstance(where, Index) else Index(where), query, limit)


def user(*texts: str) -> list[Part]:
    return [Part("user", "text", text, "", index) for index, text in enumerate(texts)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_sentence_that_a_question_is_about_comes_first(language: str) -> None:
    question, answer, other = LANGUAGES[language]
    filler = [f"{other} {number}" for number in range(20)]

    assert search(user(*filler[:10], answer, *filler[10:]), question)[0].text == answer


def test_an_answer_is_found_by_the_words_of_the_question_before_it(folded: list[Part]) -> None:
    found = search(folded, "How many rolls does the school take?", limit=1)

    assert "Sixty on weekdays" in found[0].text


def test_words_are_found_in_their_other_forms(folded: list[Part]) -> None:
    assert "electrician" in search(folded, "wiring")[0].text


def test_a_path_is_found_as_a_whole_before_its_parts() -> None:
    entries = user(
        *(f"main py app src {n}" for n in range(30)), ("It crashes in src/app/main.py at once.")
    )

    assert "crashes" in search(entries, "what about src/app/main.py")[0].text


def test_of_two_that_say_the_same_the_newer_one_comes_first() -> None:
    entries = user(
        "The gate code is 4417.",
        *(f"Unrelated remark number {n}." for n in range(30)),
        "The gate code is 9920.",
    )

    assert [passage.index for passage in search(entries, "gate code", limit=2)] == [31, 0]


def test_what_tells_nothing_apart_finds_nothing(folded: list[Part]) -> None:
    assert search(folded, "what is it that you have?") == []


def test_a_passage_tells_who_said_it_where(folded: list[Part]) -> None:
    entries = [*folded, Part("tool", "result", "stock: 14 sacks of spelt", "inventory", 13)]

    found = search(entries, "sacks of spelt", limit=1)[0]

    assert (found.role, found.name, found.index, found.text) == (
        "tool",
        "inventory",
        13,
        "stock: 14 sacks of spelt",
    )


def test_system_prompts_and_media_are_not_searched() -> None:
    entries = [
        Part("system", "text", "The password is heron."),
        Part("user", "media", "[heron.png]"),
    ]

    assert search(entries, "heron") == []


def test_an_index_that_is_extended_stays_as_it_is(folded: list[Part]) -> None:
    index = Index(folded[:6], redact=str.upper)

    longer = index.extend(folded[6:], str.upper)

    assert search(longer, "flour Brannock electrician") == search(
        Index(folded, redact=str.upper), "flour Brannock electrician"
    )
    assert search(index, "flour Brannock") == []


def test_texts_are_cut_at_the_first_search_and_not_again(
    folded: list[Part], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []

    def counted(text: str, *, lines: bool) -> Iterator[tuple[int, int]]:
        taken.append(text)
        return cut(text, lines=lines)

    monkeypatch.setattr("compacter.recall.index.cut", counted)
    index = Index(folded[:6]).extend(folded[6:])
    assert not taken

    assert search(index, "electrician")
    assert search(index.extend(user("The weir is open.")), "weir")
    assert len(taken) == len(folded) + 1


def test_a_message_without_a_word_of_its_own_asks_nothing() -> None:
    assert question(user("Go on, please. OK!")) == []


@pytest.mark.parametrize("again", [copy.deepcopy, lambda index: pickle.loads(pickle.dumps(index))])  # noqa: S301 - its own
def test_a_copy_finds_the_same(folded: list[Part], again: Callable[[Index], Index]) -> None:
    index = Index(folded)

    assert search(again(index), "electrician") == search(index, "electrician")


def test_what_is_redacted_is_neither_found_nor_kept() -> None:
    index = Index(
        user("The key is hunter2 for the shed."),
        redact=lambda text: text.replace("hunter2", "[removed]"),
    )

    assert search(index, "hunter2") == []
    assert search(index, "shed key")[0].text == "The key is [removed] for the shed."
    assert b"hunter2" not in pickle.dumps(index)


def test_a_redaction_that_fails_leaves_the_index_as_it_was(folded: list[Part]) -> None:
    def redact(text: str) -> str:
        if "flour comes" in text:
            raise RuntimeError("no")
        return text

    index = Index(folded[:6], redact=redact)
    with pytest.raises(RuntimeError):
        index.extend(folded[6:], redact)

    assert search(index, "poppy seed rolls") == []
    assert search(index, "electrician")[0].index == 3


def test_the_oldest_gives_way_where_the_index_is_full() -> None:
    index = Index(max_bytes=400_000)

    for number in range(3_000):
        index = index.extend(
            user(
                f"Parcel {number} went to depot {number * 7919 % 3000} by the night train, "
                f"unopened and insured."
            )
        )

    assert index.bytes <= 400_000
    assert search(index, "parcel 2999")[0].text.startswith("Parcel 2999")
    assert not any(passage.text.startswith("Parcel 7 ") for passage in search(index, "parcel 7"))


def test_a_search_by_hand_leaves_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compacter.recall.index.MAX_BYTES", 200_000)
    talk = [
        {"role": "user", "content": f"Parcel {number} went to depot {number * 7} by night."}
        for number in range(3_000)
    ]

    assert Compacter().search(talk, "parcel 7 depot 49")[0].index == 7


@given(st.lists(st.text(), max_size=5), st.text())
@settings(max_examples=times(40, long=400))
def test_no_text_and_no_question_raises(texts: list[str], question: str) -> None:
    found = search(user(*texts), question)

    # A question comes with its answer, which may be the next message.
    whole = "\n…\n".join(texts)
    assert all(piece in whole for passage in found for piece in passage.text.split("\n…\n"))


@pytest.mark.parametrize(
    "question", ['"', "a OR b", "NEAR(x y)", "col:x", "*", "\ud800", "\0", "x" * 1_000_000]
)
def test_no_question_is_a_search_language(question: str, folded: list[Part]) -> None:
    assert isinstance(search(folded, question), list)


@pytest.mark.parametrize("unit", ["a", "a-", "a_b.", "字", "a1/", "¿", "'"])
def test_no_question_takes_more_than_linear_time(unit: str) -> None:
    assert grows_linearly(terms, repeated(unit), 50_000)


def test_a_long_message_is_read_at_its_beginning_and_its_end() -> None:
    text = "alpha " + " ".join(f"word{n}" for n in range(5_000)) + " omega"
    sentences = question(user(text))
    assert sentences[0].startswith("alpha")
    assert sentences[-1].endswith("omega")
    assert sum(map(len, sentences)) <= 4_001


def test_an_index_never_has_more_bytes_than_its_bound() -> None:
    # Each pair of characters is another word, so the index takes six times the text.
    text = "".join(map(chr, range(0x3400, 0x9000))) + "".join(map(chr, range(0x9000, 0x3400, -1)))
    pieces = [text[start : start + 500] for start in range(0, len(text), 500)]
    bound = 300_000

    index = Index(max_bytes=bound)
    for piece in pieces:
        index = index.extend(user(piece))
        assert index.bytes <= bound

    assert index.entries


@pytest.mark.parametrize("text", ["Where to?", "去哪里？", "إلى أين؟", 'She said "why?"'])
def test_a_question_comes_with_what_follows(text: str) -> None:
    assert Index(user(text, "To the weir.")).with_answer(0) == (0, 1)
