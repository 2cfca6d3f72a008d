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
    def test_is_kept_as_it_was_written_last(self) -> None:
        first = call("TodoWrite", 1, todos=todos(fore="pending", main="pending"))
        last = call("TodoWrite", 2, todos=todos(fore="completed", main="pending"))
        assert kept(first, last) == [f"Tool TodoWrite: {last.text}"]

    @pytest.mark.parametrize("tool", ["update_plan", "write_todos", "board"])
    def test_is_known_whatever_the_tool_is_called(self, tool: str) -> None:
        plan = call(tool, 1, plan=[{"step": "Caulk", "state": "open"}] * 2)
        assert kept(plan) == [f"Tool {tool}: {plan.text}"]

    def test_is_none_where_the_newest_stays(self) -> None:
        first = call("TodoWrite", 1, todos=todos(fore="pending", main="pending"))
        last = call("TodoWrite", 2, todos=todos(fore="completed", main="pending"))
        assert kept(first, stays=[last]) == []

    def test_that_is_long_is_kept_by_its_open_items(self) -> None:
        masts = {f"{number:02}": "completed" if number < 40 else "pending" for number in range(44)}
        (line,) = kept(call("TodoWrite", 1, todos=todos(**masts)), budget=600)
        assert [number for number in range(44) if f"{number:02} mast" in line][-4:] == [
            *range(40, 44)
        ]
        assert line.count("pending") == 4

    def test_changes_item_by_item(self) -> None:
        made = Part(
            "tool", "result", "Task #1 created successfully: Caulk the hull", "", 1, 0, "c1"
        )
        done = call("TaskUpdate", 2, taskId="1", status="completed")
        lines = kept(call("TaskCreate", 1, subject="Caulk the hull"), made, done)
        assert any("Caulk the hull" in line for line in lines)
        assert any('"completed"' in line for line in lines)

    def test_may_be_a_checklist(self) -> None:
        old = said("- [ ] Caulk the hull\n- [ ] Tar the ropes", "assistant")
        new = said("Now:\n- [x] Caulk the hull\n- [ ] Tar the ropes", "assistant")
        assert kept(old, new) == ["Assistant: - [x] Caulk the hull … - [ ] Tar the ropes"]

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
            assert json.dumps(state) in summary.quoted


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
    lines = kept(said("Look at the bay."), said(f"{chatter}\nThe mast must be of oak.\n{code}"))
    assert lines == ["User: Look at the bay.", "User: The mast must be of oak."]


def test_what_was_asked_comes_with_the_word_that_it_is_done() -> None:
    lines = kept(
        said("Please order the red carpet for the hall."),
        said("I ordered the red carpet for the hall.", "assistant"),
    )
    assert lines[-1] == "Assistant: I ordered the red carpet for the hall."


def test_decisions_failures_and_names_stay() -> None:
    parts = [said("Decision: the rope is made of steel.", "assistant")]
    for number in range(3):
        parts.append(call("read", number, path="src/crane_arm.py"))
        parts.append(
            Part("tool", "result", "ERROR 7: the crane_arm is jammed", "", number, 0, f"c{number}")
        )
    lines = kept(*parts)
    assert lines[0] == "Assistant: Decision: the rope is made of steel."
    assert "Tool read: ERROR 7: the crane_arm is jammed" in lines
    assert "Tool calls: src/crane_arm.py" in lines


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
    [(["", "They spoke of it."], 4, 0), (["They spoke of it.", ""], 4, 1), ([], 0, 0)],
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
    assert len(asked) <= event.chunks + 1 or not answers


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
