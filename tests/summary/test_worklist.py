"""The lists of work that an agent keeps: the last state of each item, and no other."""

from __future__ import annotations

import json

import pytest

from compacter.messages.parts import Part
from compacter.summary import sections
from compacter.summary.head import Head
from compacter.summary.message import Summary
from compacter.summary.worklist import HEADING, WorkList, split_off
from compacter.summary.write import quote


def call(tool: str, number: int, /, **arguments: object) -> Part:
    return Part.of_call(tool, json.dumps(arguments), f"c{number}", number)


def result(number: int, text: str) -> Part:
    return Part.of_result(text, f"c{number}", number)


def said(text: str, role: str = "assistant") -> Part:
    return Part(role, "text", text)  # type: ignore[arg-type]


def todos(number: int, **states: str) -> Part:
    records = [
        {"content": f"Rig the {name} mast", "status": state, "activeForm": f"Rigging the {name}"}
        for name, state in states.items()
    ]
    return call("TodoWrite", number, todos=records)


def lines(*parts: Part) -> list[str]:
    return WorkList(parts).lines(10_000)


class TestAListThatIsWrittenAgain:
    def test_is_told_in_its_last_state(self) -> None:
        assert lines(
            todos(1, fore="in_progress", main="pending", mizzen="pending"),
            result(1, "Todos have been modified."),
            todos(2, fore="completed", main="in_progress", mizzen="cancelled"),
        ) == [
            "Tool TodoWrite: completed … Rig the fore mast",
            "Tool TodoWrite: cancelled … Rig the mizzen mast",
            "Tool TodoWrite: in_progress … Rig the main mast",
        ]

    def test_keeps_what_was_done_and_drops_what_it_names_no_more(self) -> None:
        assert lines(
            todos(1, fore="completed", main="pending", mizzen="pending"),
            todos(2, mizzen="in_progress"),
        ) == [
            "Tool TodoWrite: completed … Rig the fore mast",
            "Tool TodoWrite: in_progress … Rig the mizzen mast",
        ]

    @pytest.mark.parametrize(
        ("tool", "key", "text", "open_", "done"),
        [
            ("update_plan", "plan", "step", "pending", "completed"),
            ("manage_todo_list", "todoList", "title", "not-started", "completed"),
            ("write_todos", "todos", "description", "pending", "completed"),
            ("board", "items", "task", "In Progress", "Done"),
        ],
    )
    def test_whatever_the_agent_calls_it(
        self, tool: str, key: str, text: str, open_: str, done: str
    ) -> None:
        first = [{text: "Caulk the hull", "status": open_}]
        last = [{text: "Caulk the hull", "status": done}]
        assert lines(call(tool, 1, **{key: first}), call(tool, 2, **{key: last})) == [
            f"Tool {tool}: {done} … Caulk the hull"
        ]

    def test_may_be_json_inside_a_text(self) -> None:
        inner = json.dumps([{"content": "Caulk the hull", "status": "pending"}])
        assert lines(call("todo", 1, todos=inner)) == ["Tool todo: pending … Caulk the hull"]

    def test_may_only_change_some_items(self) -> None:
        whole = [
            {"id": "1", "content": "Caulk the hull", "status": "pending"},
            {"id": "2", "content": "Tar the ropes", "status": "pending"},
        ]
        assert lines(
            call("todo_write", 1, merge=False, todos=whole),
            call("todo_write", 2, merge=True, todos=[{"id": "1", "status": "completed"}]),
        ) == [
            "Tool todo_write: #1 … completed … Caulk the hull",
            "Tool todo_write: pending … Tar the ropes",
        ]

    def test_is_not_the_arguments_of_any_call_with_a_state(self) -> None:
        assert not WorkList([call("search_issues", 1, state="open", title="hull")])
        assert not WorkList([call("list", 1, filters=[{"status": "open"}])])


class TestTasksWithNumbers:
    PARTS = (
        call("TaskCreate", 1, subject="Caulk the hull", description="All seams."),
        result(1, "Task #1 created successfully: Caulk the hull"),
        call("TaskCreate", 2, subject="Tar the ropes"),
        result(2, "Task #2 created successfully: Tar the ropes"),
    )

    def test_are_open_at_first(self) -> None:
        assert lines(*self.PARTS) == [
            "Tool TaskCreate: Task #1 created successfully: Caulk the hull",
            "Tool TaskCreate: Task #2 created successfully: Tar the ropes",
        ]

    def test_are_told_in_the_state_that_another_call_gave_them(self) -> None:
        update = call("TaskUpdate", 3, taskId="1", status="completed")
        assert lines(*self.PARTS, update, result(3, "Updated task #1 status")) == [
            "Tool TaskUpdate: #1 … completed … Caulk the hull",
            "Tool TaskCreate: Task #2 created successfully: Tar the ropes",
        ]

    def test_are_not_told_once_nobody_knows_to_what_they_were_changed(self) -> None:
        update = call("TaskUpdate", 3)
        assert lines(*self.PARTS, update, result(3, "Updated task #1 status")) == [
            "Tool TaskCreate: Task #2 created successfully: Tar the ropes",
        ]

    def test_keep_their_number_in_later_summaries(self) -> None:
        earlier = lines(*self.PARTS, call("TaskUpdate", 3, taskId="1", status="in_progress"))
        later = WorkList(
            [
                call("TaskUpdate", 4, taskId="1", status="completed"),
                call("TaskUpdate", 5, taskId="2", status="in_progress"),
            ],
            earlier,
        )
        assert later.lines(1_000) == [
            "Tool TaskUpdate: #1 … completed … Caulk the hull",
            "Tool TaskUpdate: #2 … in_progress … Tar the ropes",
        ]


class TestChecklists:
    def test_are_told_line_by_line_in_the_last_state(self) -> None:
        assert lines(
            said("The plan:\n\n- [ ] Caulk the hull\n- [ ] Tar the ropes\n3. [ ] Paint the name"),
            said("Now:\n- [x] Caulk the hull\n- [-] Tar the ropes\n- [ ] Paint the name"),
        ) == [
            "Assistant: [x] Caulk the hull",
            "Assistant: [-] Tar the ropes",
            "Assistant: [ ] Paint the name",
        ]

    def test_may_stand_in_a_file_that_is_edited(self) -> None:
        edit = {"old": "- [ ] Caulk the hull", "new": "- [x] Caulk the hull"}
        assert lines(
            call("write", 1, path="plan.md", content="# Plan\n- [ ] Caulk the hull"),
            call("edit", 2, path="plan.md", **edit),
        ) == ["Tool edit: [x] Caulk the hull"]

    def test_of_a_file_that_is_only_read_are_nobodys_plan(self) -> None:
        read = (call("read", 1, path="README.md"), result(1, "- [ ] Windows\n- [x] Linux"))
        assert lines(*read) == []

    def test_that_a_file_shows_tell_the_state_of_known_items(self) -> None:
        assert lines(
            said("- [ ] Caulk the hull"),
            call("read", 1, path="plan.md"),
            result(1, "- [x] Caulk the hull\n- [ ] Sell the boat"),
        ) == ["Tool read: [x] Caulk the hull"]

    def test_may_say_the_state_in_a_word(self) -> None:
        assert lines(
            said("1. Caulk the hull — *in progress*\n2. Tar the ropes (done)\n3. Paint - pending")
        ) == [
            "Assistant: Tar the ropes (done)",
            "Assistant: Caulk the hull — *in progress*",
            "Assistant: Paint - pending",
        ]

    def test_items_that_a_text_names_twice_are_not_told(self) -> None:
        assert lines(said("- [ ] Run the tests\n- [ ] Sail\n- [ ] Run the tests")) == [
            "Assistant: [ ] Sail"
        ]
        assert lines(
            said("- [ ] Run the tests\n- [ ] Sail\n- [ ] Run the tests"),
            said("- [x] Run the tests"),
        ) == ["Assistant: [ ] Sail"]

    def test_may_have_boxes(self) -> None:
        assert lines(said("☐ Caulk the hull\n☒ Tar the ropes\n- ✅ A ship that sails")) == [
            "Assistant: ☒ Tar the ropes",
            "Assistant: ☐ Caulk the hull",
        ]

    @pytest.mark.parametrize(
        "line",
        [
            "[x] Opening connection",
            "[2] see below",
            "- [link](to)",
            "- a value (open)",
            "- x[ ] = 1",
        ],
    )
    def test_are_not_any_line_with_brackets(self, line: str) -> None:
        assert lines(said(line)) == []


class TestWhatTheAgentSays:
    def test_closes_an_open_item(self) -> None:
        assert lines(said("- [ ] Caulk the hull\n- [ ] Sail"), said("Done: caulked the hull.")) == [
            "Assistant: [ ] Sail"
        ]

    def test_does_not_close_one_that_was_opened_again(self) -> None:
        assert lines(said("**Done:** caulk the hull"), said("- [ ] Caulk the hull")) == [
            "Assistant: [ ] Caulk the hull"
        ]

    def test_closes_nothing_else(self) -> None:
        listed = said("- [ ] Caulk the hull of the cutter")
        assert lines(listed, said("Done: painted the name on the stern.")) != []


class TestInASummary:
    def summary(
        self, *parts: Part, prior: Summary | None = None, stays: tuple[Part, ...] = ()
    ) -> str:
        return quote(Head(parts, prior, stays=stays), 2_000, 2_000).quoted

    def test_no_item_is_told_in_an_earlier_state(self) -> None:
        text = self.summary(
            said("We rig the ship.", "user"),
            said("The plan:\n- [ ] Caulk the hull with oakum\n- [ ] Tar the ropes"),
            todos(1, fore="in_progress", main="pending"),
            said("So far:\n- [x] Caulk the hull with oakum"),
            todos(2, fore="completed", main="in_progress"),
        )
        told, chapter = split_off(text)
        assert chapter == [
            "Assistant: [x] Caulk the hull with oakum",
            "Tool TodoWrite: completed … Rig the fore mast",
            "Assistant: [ ] Tar the ropes",
            "Tool TodoWrite: in_progress … Rig the main mast",
        ]
        assert "[ ] Caulk" not in told
        assert "mast" not in told

    def test_later_states_replace_those_of_the_summary_before(self) -> None:
        first = self.summary(said("- [ ] Caulk the hull\n- [ ] Tar the ropes"))
        assert split_off(first)[1] == [
            "Assistant: [ ] Caulk the hull",
            "Assistant: [ ] Tar the ropes",
        ]
        prior = Summary("", (), (), first)
        second = self.summary(said("- [x] Caulk the hull"), prior=prior)
        assert split_off(second)[1] == [
            "Assistant: [x] Caulk the hull",
            "Assistant: [ ] Tar the ropes",
        ]
        assert "[ ] Caulk" not in second

    def test_what_a_later_message_that_stays_tells_is_not_told(self) -> None:
        text = self.summary(
            todos(1, fore="in_progress", main="pending", mizzen="completed"),
            stays=(todos(2, fore="completed", main="in_progress"),),
        )
        assert split_off(text)[1] == ["Tool TodoWrite: completed … Rig the mizzen mast"]

    def test_what_is_open_comes_first_where_the_room_is_small(self) -> None:
        work = WorkList([todos(1, fore="completed", main="completed", mizzen="pending")])
        room = len(HEADING) + 90
        assert work.lines(room) == ["Tool TodoWrite: pending … Rig the mizzen mast"]


def test_a_model_that_tells_a_done_item_as_open_loses_that_line() -> None:
    parts = [
        said("Rig the ship.", "user"),
        todos(1, fore="in_progress", main="pending"),
        todos(2, fore="completed", main="in_progress"),
    ]
    answer = sections.parse(
        "Task: Rig the ship.\nPending:\n- Rig the fore mast\n- Rig the main mast"
    )
    assert answer is not None
    checked = sections.check(answer, parts, work=WorkList(parts))
    assert [item for item in checked.sections["pending"] if "fore" in item] == []
    assert [item for item in checked.sections["pending"] if "main" in item] != []
    assert checked.dropped == ("pending: Assistant: Rig the fore mast",)
