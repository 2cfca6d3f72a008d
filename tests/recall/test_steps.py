"""Names in an agent's newest step bring the lines with them, before its newest call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compacter import Compacter, Quotes
from compacter.messages.parts import Part
from compacter.recall.frame import STEP_NOTE, is_quotes
from compacter.recall.index import Index
from compacter.recall.question import task
from compacter.recall.quotes import Quoter
from compacter.testing import token_limit_error

WINDOW = 1_500
FACT = "pump quail-77: valve torque 41 newton metres"


def step(number: int, note: str, result: str) -> list[dict[str, Any]]:
    function = {"name": "look", "arguments": json.dumps({"page": number})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": note, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def run(note: str, result: str = "ok", fact: str = FACT, **options: Any) -> list[dict[str, Any]]:
    """Return the last request of an agent whose first steps were compacted."""
    sent: list[list[dict[str, Any]]] = []

    def completion(messages: list[dict[str, Any]]) -> Any:
        size = sum(len(json.dumps(message)) for message in messages)
        if size > 4 * WINDOW:
            raise token_limit_error(limit=WINDOW, input_tokens=size // 4)
        sent.append([dict(message) for message in messages])
        return {"choices": [{"message": {"role": "assistant", "content": "Going on."}}]}

    options.setdefault("recall", Quotes())
    compacter = Compacter(summarizer=lambda messages, **_: "They looked at pages.", **options)
    call = compacter.wrap(completion)
    history: list[dict[str, Any]] = [{"role": "user", "content": "Read all of the pages."}]
    history += step(0, "Going on.", f"{'-' * 40}\n{fact}\n{'=' * 40}")
    for number in range(1, 60):
        history += step(number, "Going on.", f"row {number}: nothing of note on this page\n" * 3)
    call(messages=history)
    call(messages=[*history, *step(60, note, result)])
    again = sent[-1]
    call(messages=[*history, *step(60, note, result)])
    assert sent[-1] == again  # The same step again has the same bytes.
    return again


def quotes(request: list[dict[str, Any]]) -> str:
    text = str(request[-3]["content"])
    return text if is_quotes(text) else ""


@pytest.mark.parametrize(
    ("note", "result"),
    [
        ("Next I tighten the valve of quail-77.", "ok"),
        ("Going on.", "some row\nnext: tighten the valve of quail-77"),
    ],
)
def test_what_a_step_names_is_fetched(note: str, result: str) -> None:
    text = quotes(run(note, result))
    assert FACT in text
    assert "Tool look, message 2" in text
    assert STEP_NOTE in text


def test_a_step_that_names_nothing_known_gets_nothing() -> None:
    assert quotes(run("Next I look at something entirely different.")) == ""


def test_steps_can_be_left_out() -> None:
    assert quotes(run("I tighten the valve of quail-77.", recall=Quotes(steps=False))) == ""


def chosen(said: list[str], asked: str, request: str = "", *, told: int = 999) -> list[str]:
    """The lines for a task, of what the user said; from ``told`` on a tool did."""
    parts = [
        Part("tool", "result", text, "", at) if at >= told else Part("user", "text", text, "", at)
        for at, text in enumerate(said)
    ]
    quoter = Quoter(Index(parts), 2_000, texts=[asked], request=request)
    quoter.remind()
    made = quoter.quotation(STEP_NOTE)
    return [passage.text for passage in made.passages] if made else []


NOISE = [f"remark {number} on the harbour and its cranes" for number in range(60)]


def test_the_newest_statement_stands_last() -> None:
    said = ["limit of the davit: 164 euros", *NOISE, "limit of the davit: 189 euros"]
    assert chosen(said, "check the davit against its limit")[-1] == said[-1]


def test_an_older_statement_never_stands_behind_a_newer_one_in_view() -> None:
    said = ["limit of the davit: 164 euros", *NOISE, "limit of the davit: 189 euros"]
    lines = chosen(said, "check the davit against its limit", request=f"User: {said[-1]}")
    assert lines == [] or lines[-1] == said[-1]


@pytest.mark.parametrize(
    "newest",
    [
        "The board met, so the davit gets 189 euros as its limit.",
        "The limit was too low: 189 euros for the davit.",
    ],
)
def test_the_newest_statement_in_other_words_stands_last(newest: str) -> None:
    older = [f"The davit should have a limit of {euros}." for euros in range(164, 176, 2)]
    said = [*older, *NOISE, newest]
    assert chosen(said, "check the davit limit")[-1] == newest


def test_what_stands_in_view_alone_is_not_quoted() -> None:
    said = [*NOISE, "limit of the davit: 189 euros"]
    assert chosen(said, "check the davit against its limit", request=said[-1]) == []


def test_the_same_asked_of_others_does_not_hide_the_line_that_is_meant() -> None:
    others = [f"attach the customs list of town{number}" for number in range(12)]
    said = ["wrote the customs list of Bergen to exports/9.csv", *NOISE, *others]
    assert said[0] in chosen(said, "attach the customs list of Bergen")


def test_two_lines_with_the_only_name_are_both_quoted() -> None:
    said = ["ran the build of quokka", "quokka has failed, as its disk is full", *NOISE]
    assert chosen(said, "Next I repair quokka.") == said[:2]


def test_what_the_user_told_in_passing_is_not_hidden_by_lists_that_name_the_thing() -> None:
    told = "If anything breaks in dialysis, Jarek Ulvang carries the pager."
    lists = [
        *(f"todos.0: restock the crash cart of dialysis: {state}" for state in ("open", "done")),
        "saved scan of the dialysis phantom as lamp.dcm",
    ]
    others = [f"page whoever is responsible, since a pump broke in ward{n}" for n in range(12)]
    asked = "Next I page whoever is responsible, since a pump broke in dialysis."
    assert told in chosen([told, *NOISE, *lists, *others], asked, told=1)


@pytest.mark.parametrize(
    ("note", "result"),
    [
        ("Next I tighten the valve of quail-77.", "a line of the page\n" * 9),
        ("Going on.", "valve of quail-77; torque=[41]; {ok: true}"),
        ("Going on.", "quail-77 | valve | 41 | ok | -- | /srv/quail-77"),
    ],
)
def test_what_a_step_prints_or_has_carried_out_asks_for_nothing(note: str, result: str) -> None:
    """Quotes are for a task that is stated: no listing, and no intention that has its results."""
    assert quotes(run(note, result)) == ""


def test_boilerplate_of_results_brings_nothing() -> None:
    """A word in several results is not a name."""
    said = [f"command {number} was run\nProcess group of the shell" for number in range(9)]
    assert chosen([*NOISE, *said], "Look for the shell of the process group", told=60) == []


def real_looking_run() -> list[dict[str, Any]]:
    """Return an agent's usual steps: edits with receipts, builds, listings, prose between."""
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Review the branch, mend what is wrong and run the tests."}
    ]
    rooms = ["session", "config", "watch", "store", "resume", "cloud", "skills", "spi"]
    for number in range(96):
        room = rooms[number * 5 % len(rooms)]
        path = f"pkg/{room}/part_{number % 7}.go"
        kinds = [
            (
                f"Let me apply the fix in {room} and keep its helper in line with the others.",
                {"edit": path},
                f"The file {path} has been updated successfully. (file state is current)",
            ),
            (
                "Now let me format, build, lint and test the changes.",
                {"command": f"make build && make lint # {room}", "description": "Build and lint"},
                "BUILD OK",
            ),
            (
                f"Let me look at how {room} is wired into the command.",
                {"command": f"grep -rn {room} pkg | head"},
                "\n".join(
                    f"{path}:{line}: // {room} keeps the list of runs while the command waits"
                    for line in range(number, number + 6)
                ),
            ),
            (
                f"The tests of {room} pass now, so the next part can be reviewed.",
                {"todos": f"review {room}: completed"},
                "Todos have been modified successfully. Please proceed with the current tasks.",
            ),
        ]
        note, arguments, result = kinds[number % 4]
        function = {"name": "work", "arguments": json.dumps(arguments)}
        call = {"id": f"c{number}", "type": "function", "function": function}
        history += [
            {"role": "assistant", "content": note, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": result},
        ]
    return history


def test_most_steps_of_a_run_that_only_works_get_no_quotes() -> None:
    """At most one step in twenty, and on average 25 characters a step."""
    blocks: list[str] = []

    def completion(messages: list[dict[str, Any]]) -> Any:
        size = sum(len(json.dumps(message)) for message in messages)
        if size > 8_000:
            raise token_limit_error(limit=2_000, input_tokens=size // 4)
        texts = [str(message["content"]) for message in messages]
        blocks.append("".join(text for text in texts if STEP_NOTE in text))
        return {"choices": [{"message": {"role": "assistant", "content": "Going on."}}]}

    call = Compacter(summarizer="extractive", recall=Quotes()).wrap(completion)
    history = real_looking_run()
    for end in range(3, len(history) + 1, 2):
        call(messages=history[:end])
    assert sum(map(bool, blocks)) <= len(blocks) / 20
    assert sum(map(len, blocks)) <= 25 * len(blocks)


def test_what_a_call_names_is_no_task() -> None:
    """A receipt, and an intention that the call has carried out, bring no lines."""
    call = Part("assistant", "call", '{"edit": "pkg/quail.go"}', "edit", 1)
    receipt = Part("tool", "result", "The file pkg/quail.go has been updated well.", "edit", 2)
    assert task([call, receipt]) == []
