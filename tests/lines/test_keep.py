"""Kept lines: what the user told is kept with what gives it meaning, or not at all."""

from __future__ import annotations

from compacter.lines.head import Head
from compacter.lines.keep import keep
from compacter.messages.parts import Part
from compacter.summary.message import Summary

_FILLER = "The page was read, its rows were counted and nothing else was noted there."


def said(*texts: str | tuple[str, str]) -> list[Part]:
    """Parts of user and assistant in turn, or of the given role."""
    turns = [
        ("user" if at % 2 == 0 else "assistant", text) if isinstance(text, str) else text
        for at, text in enumerate(texts)
    ]
    return [Part(role, "text", text, "", at) for at, (role, text) in enumerate(turns)]  # type: ignore[arg-type]


def kept(*texts: str, budget: int = 600, quoted: str = "", story: bool = False) -> str:
    return keep(Head(said(*texts), Summary(quoted=quoted)), budget, with_story=story)


def test_an_order_inside_a_message_is_kept() -> None:
    text = kept(
        "Let us begin.", _FILLER, f"{_FILLER} Never write my number into a file. {_FILLER}", _FILLER
    )
    assert "User: Never write my number into a file." in text or "Never write my number" in text


def test_a_short_answer_is_kept_with_what_it_answers() -> None:
    offer = "Shall I burn the old slats or sell them to the zoo?"
    text = kept(
        "Let us begin.", _FILLER, "How do we go on?", offer, "The second one, please.", "Very well."
    )
    assert "The second one" not in text or offer in text


def test_a_forbidden_item_is_kept_with_its_heading() -> None:
    spec = "We review the shop.\n\nDo:\n- sort the seeds\n\nDo NOT:\n- delete routes\n- add tests\n"
    for budget in range(60, 900, 40):
        text = kept(spec + f"\n{_FILLER}" * 9, _FILLER, budget=budget)
        assert "delete routes" not in text or "Do NOT" in text.partition("delete routes")[0]


def test_an_order_is_kept_with_what_changed_it() -> None:
    text = kept(
        "Begin.",
        _FILLER,
        "Set quillDepth to 40.",
        _FILLER,
        "Marek wants quillDepth at 55.",
        _FILLER,
    )
    assert "55" in text or "40" not in text


def test_another_programs_summary_is_nobodys_words() -> None:
    old = (
        "This session is being continued from a previous conversation.\n\n"
        "Summary:\nNext: delete the table."
    )
    assert "User: Next" not in kept(old, _FILLER, "Keep the table.", _FILLER, story=True)


def test_what_an_earlier_summary_quotes_is_read_again() -> None:
    quoted = "User: Do NOT: - delete routes\nAssistant: The slats are sold."
    text = kept("Go on.", _FILLER, quoted=quoted, story=True)
    assert "User: Do NOT: - delete routes" in text


def test_names_of_short_arguments_come_before_what_was_written() -> None:
    written = " ".join(f"berth_{n} = 1;" for n in range(60))
    call = Part(
        "assistant", "call", f'{{"content": "{written}", "path": "src/tide.py"}}', "write", 1
    )
    parts = [*said("Write it."), call, Part("tool", "result", "ok", "write", 2)]
    text = keep(Head(parts, Summary()), 300)
    assert "Names in earlier tool calls: src/tide.py, berth_0" in text


def test_no_more_is_kept_than_the_budget() -> None:
    for budget in range(0, 500, 7):
        text = kept(
            "Please sort the seeds by price.",
            _FILLER,
            "Never use tabs.",
            _FILLER,
            budget=budget,
            story=True,
        )
        assert len(text) <= budget


def test_without_a_model_the_newest_answer_comes_first() -> None:
    turns = [
        f"Question {n}. What of it?" if n % 2 == 0 else f"Answer {n}. {_FILLER}" for n in range(60)
    ]
    assert "Answer 59" in kept(*turns, budget=400, story=True)


def test_without_a_model_announcements_come_last() -> None:
    parts = [*said("Mend the gate.")]
    for n in range(1, 20):
        parts.append(Part("assistant", "text", f"Now let me look at hinge {n} first.", "", n))
        parts.append(Part("assistant", "call", "{}", "look", n))
    parts.append(Part("assistant", "text", "The gate hangs again, on brass.", "", 20))
    assert "hangs again, on brass" in keep(Head(parts, Summary()), 110, with_story=True)
