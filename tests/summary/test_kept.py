"""Kept lines: what stays word for word beside a model's words, and through many compactions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compacter import Compacter
from compacter.messages.parts import Part
from compacter.summary.head import Head
from compacter.summary.kept import keep
from compacter.summary.message import parse

Chat = dict[str, Any]


def call(tool: str, number: int, **arguments: object) -> Part:
    return Part("assistant", "call", json.dumps(arguments), tool, number, 0, f"c{number}")


def said(text: str, role: Any = "user") -> Part:
    return Part(role, "text", text)


def kept(*parts: Part, budget: int = 2_000, **options: Any) -> list[str]:
    return keep(Head(parts, **options), budget).splitlines()


def todos(**states: str) -> list[dict[str, str]]:
    return [{"content": f"Rig the {name} mast", "status": state} for name, state in states.items()]


class TestAListOfWork:
    """The newest state of a list of work stays, short: what is still open."""

    def test_is_kept_as_it_was_written_last(self) -> None:
        first = call("TodoWrite", 1, todos=todos(fore="pending", main="pending"))
        last = call("TodoWrite", 2, todos=todos(fore="completed", main="in_progress", mizzen="new"))
        assert kept(first, last) == [
            "Newest list of work: in_progress: Rig the main mast; new: Rig the mizzen mast"
        ]

    @pytest.mark.parametrize("tool", ["update_plan", "write_todos", "board"])
    def test_is_known_whatever_the_tool_is_called(self, tool: str) -> None:
        plan = call(tool, 1, plan=[{"step": "Caulk", "state": "open"}] * 2)
        assert kept(plan) == ["Newest list of work: open: Caulk, Caulk"]

    def test_is_none_where_the_newest_stays(self) -> None:
        first = call("TodoWrite", 1, todos=todos(fore="pending", main="pending"))
        last = call("TodoWrite", 2, todos=todos(fore="completed", main="pending"))
        assert kept(first, stays=[last]) == []

    def test_that_is_long_is_cut(self) -> None:
        masts = {f"{number:02}": "completed" if number < 40 else "pending" for number in range(90)}
        (line,) = kept(call("TodoWrite", 1, todos=todos(**masts)))
        assert line.startswith("Newest list of work: pending: Rig the 40 mast, Rig the 41 mast")
        assert len(line) < 230

    def test_may_be_a_checklist(self) -> None:
        old = said("- [ ] Caulk the hull\n- [ ] Tar the ropes", "assistant")
        new = said("Now:\n- [x] Caulk the hull\n- [ ] Tar the ropes\n- [ ] Sail", "assistant")
        assert kept(old, new) == ["Newest list of work: pending: Tar the ropes, Sail"]

    @pytest.mark.parametrize("summarizer", ["extractive", lambda *_, **__: "They spoke of masts."])
    def test_lives_through_thirty_compactions(self, summarizer: Any) -> None:
        masts = {f"{number}th": ("completed", "pending")[number % 2] for number in range(8)}
        state = todos(**masts)
        function = {"name": "todo_write", "arguments": json.dumps({"todos": state})}
        messages: list[Chat] = [
            {"role": "user", "content": "Rig the ship, and tell me about the tide."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c", "type": "function", "function": function}],
            },
            {"role": "tool", "tool_call_id": "c", "content": "ok"},
        ]
        compacter = Compacter(summarizer=summarizer, memory=None)
        for turn in range(30):
            for number in range(6):
                messages += [
                    {"role": "user", "content": f"How high is the tide {turn}-{number}?"},
                    {"role": "assistant", "content": f"Tide {turn}-{number} is low. " * 12},
                ]
            messages = list(compacter.compact(messages).messages)
            (summary,) = filter(None, (parse(str(each["content"])) for each in messages))
            assert "pending: Rig the 1th mast, Rig the 3th mast" in summary.quoted


def test_the_users_short_messages_stay_newest_first_and_corrections_before_them() -> None:
    talk = [said(f"I saw ship {number} in the bay.") for number in range(40)]
    talk.insert(3, said("Actually the fee must be 41 euros."))
    lines = kept(said("Look at the bay."), *talk, budget=600)
    assert lines[:2] == ["User: Look at the bay.", "User: Actually the fee must be 41 euros."]
    assert lines[-1] == "User: I saw ship 39 in the bay."
    assert "User: I saw ship 9 in the bay." not in lines


def test_of_a_long_message_wishes_stay_and_no_code() -> None:
    chatter = "I saw a ship in the bay, and it was a large one. " * 8
    code = "self.deck.paint(colour)  # must never be [red]; use {blue}"
    lines = kept(said("Look at the bay."), said(f"{chatter}\nMake the mast of oak only.\n{code}"))
    assert lines == ["User: Look at the bay.", "User: Make the mast of oak only."]


def test_an_order_outranks_talk_wherever_it_stands() -> None:
    """A user's orders to the assistant outrank talk."""
    talk = [said(f"Mara: Ship {number} looked lovely, did it not see us!") for number in range(40)]
    talk[20] = said(f"Don't write the name of ship 7 into any file.\n\n{talk[20].text * 12}")
    lines = kept(said("Look at the bay."), *talk, budget=300)
    assert "User: Don't write the name of ship 7 into any file." in lines


@pytest.mark.parametrize("text", ["Hey Dave!", "Thanks, that is great.", "ok", "## Plan", "Well:"])
def test_mere_talk_is_not_kept(text: str) -> None:
    assert kept(said("Look at the bay."), said(text)) == ["User: Look at the bay."]


def test_a_correction_is_kept_wherever_what_it_corrects_is_kept() -> None:
    asked = "Der Termin in Bergen ist am 3. Mai um 8 Uhr, bitte trage ihn ein."
    changed = "Der Termin in Bergen ist nun am 9. Mai."
    talk = [said(f"Und wie war es in Stadt {number}, alles gut?") for number in range(60)]
    lines = kept(said(asked), said(changed), *talk, budget=240)
    assert lines[:2] == [f"User: {asked}", f"User: {changed}"]


def test_no_other_kind_outranks_what_the_user_said() -> None:
    ships = [
        said(f"Schiff {number} liegt in Bucht {number * 7}.", "assistant") for number in range(9)
    ]
    mine = [said(f"Ich habe {number} Lampen an Mole {number * 3} gezählt.") for number in range(9)]
    text = keep(
        Head([part for pair in zip(mine, ships, strict=True) for part in pair]),
        900,
        with_story=True,
    )
    assert all(part.text in text for part in mine)


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "Please do this:\n```\n{}\n```",
        "<task>\n{}\n</task>\n<env>\n10:00\n</env>",
        "See:\n<pr_description>\n{}\n</pr_description>\nCan you help me?",
    ],
)
def test_the_first_request_is_kept_also_between_tags_and_fences(around: str) -> None:
    task = "The gate opens by itself.\nIt must stay shut at night.\nMake the smallest change."
    lines = "\n".join(kept(said(around.format(task)), said("ok", "assistant")))
    assert all(line in lines for line in task.splitlines())


def test_of_a_long_first_request_the_beginning_and_what_it_asks_stay() -> None:
    story = " ".join(
        f"Ship {number} came to the bay in the morning of that day." for number in range(40)
    )
    lines = "\n".join(kept(said(f"Here is a log. {story}\nCan you count the ships? {story}")))
    assert "Here is a log. Ship 0 came" in lines
    assert "Can you count the ships?" in lines
    assert "Ship 30 came" not in lines


def test_what_came_of_a_request_stands_behind_it() -> None:
    """The request stays behind the summary of its first steps; then it is compacted, too."""

    def step(number: int) -> list[Chat]:
        function = {"name": "build", "arguments": json.dumps({"part": number})}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        done = f"Part {number} of the shed stands and was checked. " * 12
        return [
            {"role": "assistant", "content": f"I build part {number}.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{number}", "content": done},
        ]

    request = "Please build a shed with twelve parts, and test each one."
    messages: list[Chat] = [{"role": "user", "content": request}]
    for number in range(1, 13):
        messages += step(number)
    compacter = Compacter(summarizer="extractive", memory=None)
    messages = list(compacter.compact(messages, budget=3_000).messages)
    (summary,) = filter(None, (parse(str(message["content"])) for message in messages))
    assert summary.quoted.startswith("After the user's message below:\n")
    messages += [{"role": "user", "content": "Now paint the door."}, *step(13), *step(14)]
    compacted = compacter.compact(messages, budget=1_500)
    (summary,) = filter(None, (parse(str(each["content"])) for each in compacted.messages))
    lines = summary.quoted.splitlines()
    assert lines[0] == f"User: {request}"
    assert any("part 1" in line.lower() for line in lines[1:])


def test_code_that_was_read_is_no_failure() -> None:
    source = (
        "try:\n    return open(path)\nexcept OSError as error:\n    raise ValueError('no path')"
    )
    read = Part("tool", "result", source, "read", 1, 0, "c1")
    assert kept(said("Review the loaders."), read) == ["User: Review the loaders."]


def test_names_of_calls_stand_on_one_line_with_commas() -> None:
    calls = [call("read", number, path="src/crane_arm.py") for number in range(3)]
    calls.append(call("read", 4, path="src/hook.py"))
    assert kept(*calls) == ["Names in earlier tool calls: src/crane_arm.py, src/hook.py"]


def test_nothing_that_stays_in_view_is_kept_and_nothing_is_said_twice() -> None:
    line = "The fee of the harbour is 41 euros."
    assert kept(said(line), stays=[said(line)]) == []
    assert kept(said(line), said(line)) == [f"User: {line}"]


def test_it_never_exceeds_its_budget() -> None:
    talk = [said(f"Ship {number} lies in bay {number * 7}.") for number in range(50)]
    for budget in range(0, 1_500, 37):
        assert len("\n".join(kept(*talk, budget=budget))) <= budget


@pytest.mark.parametrize(
    ("answers", "chunks", "lost"),
    [(["", "They spoke of it."], 4, 0), (["They spoke of it.", "", ""], 4, 1), ([], 0, 0)],
)
def test_a_piece_without_a_summary_is_stood_for_by_lines(
    answers: list[str], chunks: int, lost: int
) -> None:
    given = iter(answers)

    def summarizer(*_: Any, **__: Any) -> str:
        number = len(asked)
        asked.append(number)
        if not answers:
            raise ConnectionError("away")
        return next(given, f"They spoke of pier {number}, and that it was there.")

    asked: list[int] = []
    talk: list[Chat] = [
        {"role": ("user", "assistant")[n % 2], "content": f"Pier {n} is {n} metres long. " * 20}
        for n in range(40)
    ]
    events: list[Any] = []

    def provider(*, model: str, messages: list[Chat]) -> Chat:
        tokens = sum(len(each["content"]) for each in messages) // 4
        if tokens > 2_000:
            limit = f"This model's maximum context length is 2000 tokens, not {tokens} tokens."
            raise ValueError(limit)
        return {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}

    compacter = Compacter(summarizer=summarizer, on_compaction=events.append)
    compacter.wrap(provider)(model="m", messages=[*talk, {"role": "user", "content": "And?"}])
    event = events[0]
    assert event.fallback is (not answers)
    assert event.chunks >= chunks
    assert event.chunks_without_model == lost
    assert len(asked) <= event.chunks + 1 + lost or not answers


def test_a_long_file_hides_neither_what_was_said_before_it_nor_the_names_of_calls() -> None:
    source = "\n".join(
        f"{n}\tmooring{n} = rope(bollard_{n * 7}, length={n * 13})" for n in range(900)
    )
    told = "The second winch lacks its drum brake, so the build fails."
    messages: list[Chat] = [{"role": "user", "content": "Compare the two winches for me."}]
    for number, (text, path, result) in enumerate(
        [("", "src/winch/drum_brake.py", "ok"), (told, "src/winch/moorings.py", source)]
    ):
        function = {"name": "read", "arguments": json.dumps({"path": path})}
        calls = [{"id": f"c{number}", "type": "function", "function": function}]
        messages += [
            {"role": "assistant", "content": text, "tool_calls": calls},
            {"role": "tool", "tool_call_id": f"c{number}", "content": result},
        ]
    messages += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}]
    compacter = Compacter(summarizer="extractive", memory=None)
    compacted = compacter.compact(messages, budget=1_200)
    summary = json.dumps(compacted.messages)
    assert told in summary
    assert "src/winch/drum_brake.py" in summary
    assert "bollard_" in summary
