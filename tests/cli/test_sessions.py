"""Session files of agents: what the model would see next."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.dialects import parts_of

from compacter.messages.format import get_format
from compacter.tools.cli.files import Transcript, read_transcript

if TYPE_CHECKING:
    from tests.cli.conftest import Line, Run

    Write = Callable[[str, Any], Path]

STEPS = 8


def told(step: int) -> str:
    return f"The lamp of buoy {step} was replaced, it now shines {step + 2} miles far. " * 4


# -- Claude Code -----------------------------------------------------------------------------------


def claude(kind: str, key: str, parent: str | None, content: Any, **more: Any) -> Line:
    message = {
        "role": kind,
        "content": content,
        **({"id": more.pop("answer")} if "answer" in more else {}),
    }
    ids = {"uuid": key, "parentUuid": parent, "sessionId": "s-1", "isSidechain": False}
    return {"type": kind, "message": message, "timestamp": "2026-01-01T00:00:00Z", **ids, **more}


def claude_session() -> list[Line]:
    """Steps with two calls at a time, whose blocks and results come in a line each, between one
    another.
    """
    lines: list[Line] = [{"type": "summary", "summary": "Buoys", "leafUuid": "x"}]
    before: str | None = None
    for step in range(STEPS):
        lines.append(claude("user", f"q{step}", before, f"Check buoy {step}, please."))
        answer = f"msg_{step}"
        uses = [
            {"type": "tool_use", "id": f"t{step}{part}", "name": "look", "input": {"part": part}}
            for part in "ab"
        ]
        for part, use in zip("ab", uses, strict=True):
            lines.append(claude("assistant", f"u{step}{part}", f"q{step}", [use], answer=answer))
            result = {"type": "tool_result", "tool_use_id": use["id"], "content": told(step)}
            lines.append(claude("user", f"r{step}{part}", f"u{step}{part}", [result]))
        before = f"a{step}"
        text = [{"type": "text", "text": f"Buoy {step} is fine."}]
        lines.append(claude("assistant", before, f"r{step}b", text, answer=f"end_{step}"))
    return [*lines, claude("user", "last", before, "Which buoy shines the farthest?")]


def test_claude_code_joins_the_blocks_of_one_answer(write: Write) -> None:
    write("s.jsonl", claude_session())
    read = read_transcript("s.jsonl")
    assert (read.kind, read.wire_format, read.id) == ("Claude Code", "anthropic", "s-1")
    assert len(read.messages) == STEPS * 5 + 1
    calls = read.messages[1]["content"]
    assert [block["id"] for block in calls] == ["t0a", "t0b"]
    assert get_format("anthropic").outline(read.messages).broken == ()


def test_claude_code_begins_at_its_own_compaction(write: Write) -> None:
    boundary = {
        "type": "system",
        "subtype": "compact_boundary",
        "uuid": "b",
        "parentUuid": None,
        "sessionId": "s-1",
    }
    summary = claude(
        "user",
        "sum",
        "b",
        "This session is continued: all buoys were checked.",
        isCompactSummary=True,
    )
    write(
        "s.jsonl",
        [*claude_session(), boundary, summary, claude("assistant", "z", "sum", "Understood.")],
    )
    read = read_transcript("s.jsonl")
    assert [each["content"] for each in read.messages] == [
        summary["message"]["content"],
        "Understood.",
    ]


def test_claude_code_leaves_out_sidechains_errors_and_branches_that_were_left(write: Write) -> None:
    lines = [
        claude("user", "1", None, "Look at the mast."),
        claude("assistant", "2", "1", "It is straight."),
        claude("user", "3", "2", "Paint it red."),
        claude("assistant", "4", "3", "It is red."),
        claude("user", "side", "1", "search the stores", isSidechain=True),
        claude("assistant", "fail", "2", "API Error: 529", isApiErrorMessage=True),
        claude("user", "5", "2", "Paint it blue."),
        claude("assistant", "6", "5", "It is blue."),
    ]
    write("s.jsonl", lines)
    said = [each["content"] for each in read_transcript("s.jsonl").messages]
    assert said == ["Look at the mast.", "It is straight.", "Paint it blue.", "It is blue."]


# -- Codex -----------------------------------------------------------------------------------------


def item(payload: Line) -> Line:
    return {"timestamp": "2026-01-01T00:00:00Z", "type": "response_item", "payload": payload}


def spoken(role: str, text: str) -> Line:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def codex_session() -> list[Line]:
    meta = {
        "timestamp": "2026-01-01T00:00:00Z",
        "type": "session_meta",
        "payload": {"id": "c-1", "cwd": "/work"},
    }
    lines: list[Line] = [meta, {"type": "turn_context", "payload": {"model": "gpt"}}]
    for step in range(STEPS):
        lines.append(item(spoken("user", f"Check buoy {step}, please.")))
        lines.append(
            {
                "type": "event_msg",
                "payload": {"type": "user_message", "message": f"Check buoy {step}"},
            }
        )
        call = {"type": "function_call", "call_id": f"c{step}", "name": "look", "arguments": "{}"}
        lines += [
            item(call),
            item({"type": "function_call_output", "call_id": f"c{step}", "output": told(step)}),
        ]
        lines.append(item(spoken("assistant", f"Buoy {step} is fine.")))
    return [*lines, item(spoken("user", "Which buoy shines the farthest?"))]


def test_codex_is_read_as_items_of_the_responses_api(write: Write) -> None:
    write("rollout.jsonl", codex_session())
    read = read_transcript("rollout.jsonl")
    assert (read.kind, read.wire_format, read.id) == ("Codex", "responses", "c-1")
    assert len(read.messages) == STEPS * 4 + 1


@pytest.mark.parametrize("replaced", [True, False])
def test_codex_begins_at_its_own_compaction(write: Write, replaced: bool) -> None:
    history = [spoken("user", "All buoys were checked.")]
    payload = {"message": "All buoys were checked."} | (
        {"replacement_history": history} if replaced else {}
    )
    write(
        "rollout.jsonl",
        [*codex_session(), {"type": "compacted", "payload": payload}, item(spoken("user", "And?"))],
    )
    read = read_transcript("rollout.jsonl")
    assert read.messages[-1] == spoken("user", "And?")
    assert "All buoys were checked." in json.dumps(read.messages[-2])
    assert not any(each.get("type") == "function_call" for each in read.messages)


# -- pi --------------------------------------------------------------------------------------------


def entry(key: str, parent: str | None, message: Line) -> Line:
    return {
        "type": "message",
        "id": key,
        "parentId": parent,
        "timestamp": "2026-01-01T00:00:00Z",
        "message": message,
    }


def pi_session() -> list[Line]:
    lines: list[Line] = [
        {"type": "session", "version": 3, "id": "p-1", "timestamp": "t", "cwd": "/work"}
    ]
    before: str | None = None
    for step in range(STEPS):
        lines.append(
            entry(f"q{step}", before, {"role": "user", "content": f"Check buoy {step}, please."})
        )
        call = {"type": "toolCall", "id": f"c{step}", "name": "look", "arguments": {"buoy": step}}
        lines.append(
            entry(f"u{step}", f"q{step}", {"role": "assistant", "content": [call], "model": "m"})
        )
        result = {"role": "toolResult", "toolCallId": f"c{step}", "toolName": "look"}
        lines.append(
            entry(
                f"r{step}",
                f"u{step}",
                {**result, "content": [{"type": "text", "text": told(step)}]},
            )
        )
        before = f"a{step}"
        text = {"role": "assistant", "content": [{"type": "text", "text": f"Buoy {step} is fine."}]}
        lines.append(entry(before, f"r{step}", text))
    return [
        *lines,
        entry("last", before, {"role": "user", "content": ("Which buoy shines the farthest?")}),
    ]


def test_pi_is_read_as_chat_messages(write: Write) -> None:
    write("s.jsonl", pi_session())
    read = read_transcript("s.jsonl")
    assert (read.kind, read.wire_format, read.id) == ("pi", "openai", "p-1")
    assert len(read.messages) == STEPS * 4 + 1
    assert read.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"buoy": 0}'
    assert get_format("openai").outline(read.messages).broken == ()


def test_pi_follows_the_newest_branch_and_its_own_compaction(write: Write) -> None:
    lines = [
        *pi_session(),
        {
            "type": "compaction",
            "id": "k",
            "parentId": "a7",
            "summary": "Seven buoys.",
            "firstKeptEntryId": "q7",
        },
        entry("new", "k", {"role": "user", "content": "Go on."}),
    ]
    write("s.jsonl", lines)
    said = [each["content"] for each in read_transcript("s.jsonl").messages]
    assert said == [
        "Seven buoys.",
        "Check buoy 7, please.",
        None,
        told(7),
        "Buoy 7 is fine.",
        "Go on.",
    ]


def pi_first_form(**header: Any) -> list[Line]:
    """A session as pi wrote it before entries had ids: in order, and without links."""
    first, *entries = pi_session()
    return [
        {key: first[key] for key in first if key != "version"} | header,
        *({key: each[key] for key in each if key not in ("id", "parentId")} for each in entries),
    ]


@pytest.mark.parametrize("header", [{}, {"version": 1}, {"provider": "p", "modelId": "m"}])
def test_pis_first_form_is_read_in_order(write: Write, header: Line) -> None:
    write("s.jsonl", pi_first_form(**header))
    assert shown(read_transcript("s.jsonl")) == shown_of("pi.jsonl", write)


def test_a_file_of_pi_of_which_only_a_part_is_linked_is_read_whole(write: Write) -> None:
    header, *entries = pi_first_form()
    summary = entry("0badf00d", None, {"role": "user", "content": "A summary."})
    write("s.jsonl", [header, summary, *entries])
    assert len(read_transcript("s.jsonl").messages) == len(entries) + 1


def test_pis_second_form_has_a_role_by_another_name(write: Write) -> None:
    header, *entries = pi_session()
    hook = entry("h", "last", {"role": "hookMessage", "content": "The hook says: low tide."})
    write("s.jsonl", [{**header, "version": 2}, *entries, hook])
    assert read_transcript("s.jsonl").messages[-1]["content"] == "The hook says: low tide."


def test_pi_leaves_out_the_summaries_of_older_compactions(write: Write) -> None:
    lines = [
        *pi_session(),
        {"type": "compaction", "id": "k", "parentId": "last", "summary": "Old."},
        entry("x", "k", {"role": "user", "content": "Go on."}),
        {
            "type": "compaction",
            "id": "k2",
            "parentId": "x",
            "summary": "New.",
            "firstKeptEntryId": "last",
        },
    ]
    write("s.jsonl", lines)
    texts = [each["content"] for each in read_transcript("s.jsonl").messages]
    assert texts == ["New.", "Which buoy shines the farthest?", "Go on."]


# -- opencode --------------------------------------------------------------------------------------


def stored(key: str, role: str, *parts: Line, **more: Any) -> Line:
    info = {"id": key, "sessionID": "ses_1", "role": role, "time": {"created": 1}, **more}
    return {"info": info, "parts": list(parts)}


def text_part(text: str) -> Line:
    return {"type": "text", "text": text}


def opencode_session() -> Line:
    messages: list[Line] = []
    for step in range(STEPS):
        state = {"status": "completed", "input": {"buoy": step}, "output": told(step)}
        call = {"type": "tool", "tool": "look", "callID": f"c{step}", "state": state}
        messages.append(stored(f"msg_{step}1", "user", text_part(f"Check buoy {step}, please.")))
        messages.append(stored(f"msg_{step}2", "assistant", {"type": "step-start"}, call))
        messages.append(stored(f"msg_{step}3", "assistant", text_part(f"Buoy {step} is fine.")))
    messages.append(stored("msg_99", "user", text_part("Which buoy shines the farthest?")))
    return {"info": {"id": "ses_1", "title": "Buoys"}, "messages": messages}


def test_opencode_is_read_with_the_results_of_its_tools(write: Write) -> None:
    write("s.json", opencode_session())
    read = read_transcript("s.json")
    assert (read.kind, read.wire_format, read.id) == ("opencode", "openai", "ses_1")
    assert len(read.messages) == STEPS * 4 + 1
    assert get_format("openai").outline(read.messages).broken == ()


def test_opencode_begins_at_its_own_compaction(write: Write) -> None:
    session = opencode_session()
    session["messages"] += [
        stored("msg_a", "user", {"type": "compaction", "auto": True}),
        stored("msg_b", "assistant", text_part("All buoys were checked."), summary=True),
    ]
    write("s.json", session)
    said = [each["content"] for each in read_transcript("s.json").messages]
    assert said == ["What did we do so far?", "All buoys were checked."]


# -- all of them -----------------------------------------------------------------------------------

SESSIONS = {
    "claude.jsonl": claude_session,
    "codex.jsonl": codex_session,
    "pi.jsonl": pi_session,
    "pi-first.jsonl": pi_first_form,
    "opencode.json": opencode_session,
}


def shown(read: Transcript) -> list[str]:
    """The words of each message, whatever shape a new one has."""
    wire = get_format(read.format)
    return [" ".join(part.text for part in parts_of(wire, message)) for message in read.messages]


def shown_of(name: str, write: Write) -> list[str]:
    write(name, SESSIONS[name]())
    return shown(read_transcript(name))


UNKNOWN: dict[str, tuple[Any, str]] = {
    "claude.jsonl": ({"type": "hologram", "uuid": "h", "parentUuid": "q3"}, "hologram (1)"),
    "codex.jsonl": ({"type": "hologram", "payload": {"x": 1}}, "hologram (1)"),
    "pi.jsonl": (
        {"type": "message", "id": "h", "parentId": "q3", "message": {"role": "oracle"}},
        "message of role oracle (1)",
    ),
    "pi-first.jsonl": ({"type": "hologram\x1b[31m"}, r"hologram\u001b[31m (1)"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_line_that_is_not_known_is_skipped_and_named(run: Run, write: Write, name: str) -> None:
    whole = shown_of(name, write)
    line, named = UNKNOWN[name]
    lines: Any = SESSIONS[name]()
    write(name, [*lines[:8], line, *lines[8:]])
    assert shown(read_transcript(name)) == whole
    for words in (["plan", name], ["search", name, "buoy"], ["compact", name, "-o", "-"]):
        told = run(*words)
        assert told.code == 0, told.err
        assert named in told.err.replace("\n", " ")


@pytest.mark.parametrize("name", [*UNKNOWN, "opencode.json"])
def test_of_a_session_without_unknown_lines_nothing_is_said(
    run: Run, write: Write, name: str
) -> None:
    write(name, SESSIONS[name]())
    assert run("plan", name).err == ""


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_line_of_a_session_that_is_not_json_is_skipped_and_named(
    run: Run, write: Write, name: str
) -> None:
    whole = shown_of(name, write)
    text = Path(name).read_text()
    rows = [*text.splitlines()[:3], '{"type": "mess', *text.splitlines()[3:]]
    write(name, "\n".join(rows) + "\n")
    assert shown(read_transcript(name)) == whole
    assert "not JSON (1)" in run("plan", name).err


def test_parts_of_opencode_that_are_not_known_are_named(run: Run, write: Write) -> None:
    session = opencode_session()
    session["messages"][0]["parts"].append({"type": "hologram"})
    write("s.json", session)
    assert "part of type hologram (1)" in run("plan", "s.json").err.replace("\n", " ")


def test_names_of_unknown_lines_are_short_and_few(run: Run, write: Write) -> None:
    lines = [{"type": f"kind-{number} " + "x" * 500} for number in range(9)]
    write("s.jsonl", [*pi_session(), *lines])
    said = run("plan", "s.jsonl").err.replace("\n", " ")
    assert "9 lines of pi skipped" in said
    assert "and 4 other kinds" in said
    assert len(said) < 400


@pytest.mark.parametrize("name", SESSIONS)
def test_of_a_compacted_session_the_messages_are_written(run: Run, write: Write, name: str) -> None:
    write(name, SESSIONS[name]())
    read = read_transcript(name)

    told = run("compact", name, "-o", "new.json", "--budget", "2000")

    assert told.code == 0, told.err
    again = read_transcript("new.json")
    assert (again.kind, again.format, again.id) == ("messages", read.wire_format, read.id)
    kept = [message for message in again.messages if message in read.messages]
    assert len(kept) == len(again.messages) - 1  # All but the summary.
    assert shown(again)[-1] == shown(read)[-1]
    assert any("shines" in text and "compacter" in text for text in shown(again)[:2])
    assert get_format(again.format).outline(again.messages).broken == ()


def test_messages_never_take_the_place_of_a_session(run: Run, write: Write) -> None:
    original = write("s.jsonl", pi_session()).read_bytes()
    told = run("compact", "s.jsonl", "-o", "./s.jsonl", "--force")
    assert (told.code, "a session of pi" in told.err) == (2, True)
    assert Path("s.jsonl").read_bytes() == original


def test_a_session_of_pi_without_links_is_read_in_order_with_all_that_the_model_saw(
    write: Write,
) -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    said: list[Line] = [
        {
            "type": "message",
            "id": "1",
            "message": {"role": "user", "content": [{"type": "text", "text": "Look:"}, image]},
        },
        {"type": "custom_message", "id": "2", "content": "The tide is low."},
        {
            "type": "message",
            "id": "3",
            "message": {"role": "bashExecution", "command": "ls", "output": "a.txt"},
        },
        {
            "type": "message",
            "id": "4",
            "message": {"role": "branchSummary", "summary": "Another way was tried."},
        },
        {
            "type": "message",
            "id": "5",
            "message": {"role": "bashExecution", "command": "x", "excludeFromContext": True},
        },
    ]
    write("s.jsonl", [pi_session()[0], *said])
    read = [(each["role"], each["content"]) for each in read_transcript("s.jsonl").messages]
    texts = ["Look:\n[image]", "The tide is low.", "Ran `ls`\na.txt", "Another way was tried."]
    assert read == [("user", text) for text in texts]


def test_a_result_that_opencode_has_cleared_is_shown_as_it_shows_it(write: Write) -> None:
    session = opencode_session()
    session["messages"][1]["parts"][1]["state"]["time"] = {"compacted": 1}
    write("s.json", session)
    results = [
        each["content"] for each in read_transcript("s.json").messages if each["role"] == "tool"
    ]
    assert results == ["[Old tool result content cleared]", *map(told, range(1, STEPS))]


def test_a_session_in_a_json_list_is_read(write: Write) -> None:
    write("s.json", claude_session())
    assert read_transcript("s.json").kind == "Claude Code"


def spoilt(value: Any, chance: random.Random) -> Any:
    """The same data with a few values of another kind."""
    if chance.random() < 0.015:
        return chance.choice([None, 3, "x", [], {}, [None], {"type": 5}, True])
    if isinstance(value, dict):
        return {key: spoilt(each, chance) for key, each in value.items() if chance.random() > 0.01}
    return [spoilt(each, chance) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", SESSIONS)
def test_a_spoilt_session_is_read_or_refused_and_never_a_traceback(
    run: Run, write: Write, name: str, seed: int
) -> None:
    session: Any = SESSIONS[name]()
    chance = random.Random(seed)
    whole = isinstance(session, dict)
    write(
        name,
        {key: spoilt(session[key], chance) for key in session}
        if whole
        else [spoilt(e, chance) for e in session],
    )
    told = run("compact", name, "-o", "out", "--budget", "2000", "--force")
    assert told.code in {0, 1, 2}
    if told.code == 0:
        assert run("plan", "out", "--json").code == 0


@pytest.mark.parametrize("name", SESSIONS)
def test_plan_and_search_read_a_session(run: Run, write: Write, name: str) -> None:
    write(name, SESSIONS[name]())
    assert run("plan", name, "--json").data["compacted_characters"] > 0
    assert "7 miles" in run("search", name, "how far does the lamp of buoy 5 shine").out
