"""``plan``, ``compact`` and ``search``, on files of every API's shape."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.dialects import DIALECTS, retold

from compacter import Compacter, CompactionEvent
from compacter.messages.format import get_format
from compacter.messages.parts import Kind
from compacter.runtime import models
from compacter.testing import ScriptedModel
from compacter.tools.cli import conversation
from compacter.tools.cli.files import read_transcripts

if TYPE_CHECKING:
    from tests.cli.conftest import Line, Run

    Write = Callable[[str, Any], Path]


CALL = {"name": "depth", "arguments": '{"harbour": 3}'}
LOOKED_UP: list[dict[str, Any]] = [
    {"role": "user", "content": "Look harbour 3 up."},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "t1", "function": CALL}]},
    {"role": "tool", "tool_call_id": "t1", "content": "7 metres " * 40},
    {"role": "assistant", "content": "Seven metres."},
]
PARAMS = {"openai": "messages", "anthropic": "messages", "responses": "input", "gemini": "contents"}


def request(name: str, chat: list[Line]) -> dict[str, Any]:
    """A request of this format, with a call and its result."""
    param = PARAMS.get(name, "messages")
    if name == "openai":
        return {param: chat, "model": "m"}
    return {"model": "m", "system": "Be brief.", param: retold(name, [*LOOKED_UP, *chat])}


@pytest.mark.parametrize("name", DIALECTS)
def test_compact_writes_the_format_that_it_read(
    run: Run, write: Write, chat: list[Line], name: str
) -> None:
    before = request(name, chat)
    write("in.json", before)

    told = run("compact", "in.json", "-o", "out.json", "--extractive", "--budget", "2500")

    assert told.code == 0, told.err
    after = json.loads(Path("out.json").read_text())
    param = next(key for key in ("messages", "input", "contents") if key in before)
    assert {key: value for key, value in after.items() if key != param} == {
        key: value for key, value in before.items() if key != param
    }
    assert len(after[param]) < len(before[param])
    assert after[param][-1] == before[param][-1]
    read = get_format(name).outline(after[param])
    assert Kind.UNKNOWN not in read.kinds
    assert read.broken == ()


@pytest.mark.parametrize("name", DIALECTS)
def test_plan_and_search_read_it(run: Run, write: Write, chat: list[Line], name: str) -> None:
    write("in.json", request(name, chat))
    planned = run("plan", "in.json", "--json", "--window", "800")
    found = run("search", "in.json", "how deep is harbour 7", "--json")
    assert planned.data["wire_format"] == name
    assert (
        planned.data["compacted_characters"] + planned.data["kept_characters"]
        == planned.data["characters"]
    )
    assert not planned.data["fits"]
    assert any("Harbour 7 has 11 metres" in passage["text"] for passage in found.data)


def test_a_list_a_line_a_message_and_a_line_a_conversation_are_read(
    run: Run, write: Write, chat: list[Line]
) -> None:
    write("list.json", chat)
    write("messages.jsonl", chat)
    write("several.jsonl", [{"messages": chat}, {"request": {"messages": chat[:5]}}, chat[:3]])
    assert [len(each.messages) for each in read_transcripts("list.json")] == [26]
    assert [len(each.messages) for each in read_transcripts("messages.jsonl")] == [26]
    assert [len(each.messages) for each in read_transcripts("several.jsonl")] == [26, 5, 3]
    assert run("plan", "several.jsonl", "--conversation", "2", "--json").data["messages"] == 5


def test_json_lines_come_out_as_json_lines(run: Run, write: Write, chat: list[Line]) -> None:
    write("in.jsonl", chat)
    told = run("compact", "in.jsonl")
    kept = [json.loads(line) for line in told.out.splitlines()]
    assert kept[0] == chat[0]
    assert kept[-1] == chat[-1]
    assert len(kept) < len(chat)


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")


def test_a_list_of_requests_is_read_as_several_conversations(
    run: Run, write: Write, chat: list[Line]
) -> None:
    write("chats.json", [{"id": "a", "messages": chat}, {"body": {"messages": chat[:5]}}])
    assert [len(each.messages) for each in read_transcripts("chats.json")] == [26, 5]
    assert run("plan", "chats.json", "--conversation", "2", "--json").data["messages"] == 5


def test_plan_of_what_must_stay_says_that_nothing_can_be_compacted(
    run: Run, write: Write, chat: list[Line]
) -> None:
    write("chat.json", [chat[0], chat[-1]])
    told = run("plan", "chat.json")
    assert (told.code, "Nothing is compacted: " in told.out) == (0, True)


def test_a_file_of_several_asks_which(run: Run, write: Write, chat: list[Line]) -> None:
    write("several.jsonl", [chat, chat])
    told = run("plan", "several.jsonl")
    assert told.code == 2
    assert "--conversation 1 to 2" in told.err
    assert "has 2" in run("plan", "several.jsonl", "--conversation", "3").err


def test_plan_shows_roles(run: Run, write: Write, chat: list[Line]) -> None:
    write("chat.json", chat)
    told = run("plan", "chat.json", "--window", "900")
    assert told.code == 0
    for words in ("system", "assistant", "window", "does not fit"):
        assert words in told.out
    roomy = run("plan", "chat.json", "--window", "90000").out
    assert "the conversation fits.\nNothing is compacted.\n" in roomy


CHINESE = "我查看了{n}号仓库的账本，发现三月份少了{n}箱茶叶，经理说是运输途中受潮。"
ENGLISH = "I went through the ledger of store {n}: {n} chests of tea are missing in March. "
JSON = '{{"id":"{n}","qty":{n},"ok":true,"path":"/srv/a{n}/b.js","sha":"9f{n}c1e{n}"}}'


def real_tokens(messages: list[Line]) -> int:
    encoding = pytest.importorskip("litellm").encoding
    return sum(len(encoding.encode(message["content"])) + 4 for message in messages)


@pytest.mark.parametrize("text", [CHINESE, ENGLISH, JSON], ids=["Chinese", "English", "JSON"])
def test_half_of_the_window_is_free(run: Run, write: Write, text: str) -> None:
    """A compaction for a window leaves half of it free, by a real tokenizer, in any script."""
    talk = [
        {"role": role, "content": content}
        for n in range(300)
        for role, content in (("user", f"Store {n}?"), ("assistant", text.format(n=n) * 3))
    ]
    write("chat.json", talk)
    told = run("compact", "chat.json", "-o", "out.json", "--window", "8000", "--json")
    assert told.data["fits"]
    after = json.loads(Path("out.json").read_text())
    assert real_tokens(after) <= 4_000
    assert real_tokens(talk) <= told.data["tokens_before"]


@pytest.mark.parametrize(
    "options", ["--window 900", "--window 90000", "--ratio 0.4", "--model gpt-4", ""]
)
def test_plan_and_compact_agree(
    run: Run, write: Write, chat: list[Line], options: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``plan`` and ``compact`` of one file with the same options compact the same messages."""
    message = {"content": "The harbours were gone through one by one."}
    monkeypatch.setattr(models, "completion", lambda **_: {"choices": [{"message": message}]})
    write("chat.json", chat)
    planned = run("plan", "chat.json", "--json", *options.split()).data
    told = run("compact", "chat.json", "-o", "out.json", "--json", *options.split()).data
    kept = [each for at, each in enumerate(chat) if at not in planned["compacted"]]
    after = json.loads(Path("out.json").read_text())
    assert [each for each in after if each in chat] == kept
    assert told["changed"] is bool(planned["compacted"])
    assert (told["tokens_before"], told["window"]) == (planned["tokens"], planned["window"])


@pytest.mark.parametrize("window", [400, 600, 900])
def test_plan_the_command_and_a_call_compact_the_same(
    run: Run, write: Write, chat: list[Line], window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where both count the same tokens, and the window is what the model's is."""
    model = ScriptedModel(window=window)
    monkeypatch.setattr(conversation, "_tokens", lambda _, messages: model.count(messages, {}))
    write("chat.json", chat)
    planned = run("plan", "chat.json", "--json", "--window", str(window)).data
    events: list[CompactionEvent] = []
    compacter = Compacter(summarizer="extractive", on_compaction=events.append)
    compacter.wrap(model.completion)("m", chat)
    discarded = [chat[index] for index in planned["compacted"]]
    assert list(events[0].discarded) == discarded
    # The Compacter has learnt the window of this model by now.
    plan = compacter.plan(chat, model="m")
    assert [chat[index] for index in plan.compacted] == discarded


def test_plan_looks_up_the_window_of_a_model(run: Run, write: Write, chat: list[Line]) -> None:
    write("chat.json", chat)
    assert run("plan", "chat.json", "--model", "gpt-4o", "--json").data["window"] == models.window(
        "gpt-4o"
    )
    told = run("plan", "chat.json", "--model", "nobody/nothing-7")
    assert told.code == 2
    assert "--window" in told.err


def test_a_ratio_is_obeyed_and_a_wrong_one_named(run: Run, write: Write, chat: list[Line]) -> None:
    write("chat.json", chat)
    small = run("plan", "chat.json", "--ratio", "0.2", "--json").data["compacted_characters"]
    large = run("plan", "chat.json", "--ratio", "0.9", "--json").data["compacted_characters"]
    assert small < large
    told = run("plan", "chat.json", "--ratio", "7")
    assert told.code == 2
    assert told.err.startswith("compacter: --ratio: ")


def test_nothing_is_written_over_without_force(run: Run, write: Write, chat: list[Line]) -> None:
    write("chat.json", chat)
    out = write("out.json", "mine")
    told = run("compact", "chat.json", "-o", "out.json")
    assert (told.code, out.read_text()) == (2, "mine")
    assert "--force" in told.err
    assert run("compact", "chat.json", "-o", "out.json", "--force").code == 0
    assert json.loads(out.read_text())
    assert [path.name for path in out.parent.iterdir() if path.name.endswith(".part")] == []


def test_a_file_that_is_written_over_keeps_its_permissions_and_its_links(
    run: Run, write: Write, chat: list[Line], folder: Path
) -> None:
    path = write("chat.json", chat)
    path.chmod(0o600)
    (folder / "link.json").symlink_to(path)
    before = path.read_text()
    assert run("compact", "link.json", "-o", "link.json", "--force").code == 0
    assert path.read_text() != before
    assert path.stat().st_mode & 0o777 == 0o600
    assert (folder / "link.json").is_symlink()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_written_to_and_stays(
    run: Run, write: Write, chat: list[Line], folder: Path
) -> None:
    write("chat.json", chat)
    os.mkfifo(folder / "pipe")
    reader = os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        assert run("compact", "chat.json", "-o", "pipe").code == 0
        assert len(json.load(pipe)) < len(chat)
    assert (folder / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("sub", "is a directory"),
        ("none/out.json", "no such folder"),
        ("a" * 300, ": File name too long"),
        pytest.param("/dev/full", "cannot be written: No space left", marks=FULL),
    ],
)
def test_where_nothing_can_be_written_one_line_says_so(
    run: Run, write: Write, chat: list[Line], folder: Path, output: str, said: str
) -> None:
    write("chat.json", chat)
    (folder / "sub").mkdir()
    told = run("compact", "chat.json", "-o", output)
    assert (told.code, told.err.count("\n")) == (2, 1)
    assert said in told.err
    assert not list(folder.glob(".compacter.*"))


def test_a_budget_that_cannot_be_reached_is_told(run: Run, write: Write, chat: list[Line]) -> None:
    write(
        "chat.json",
        [
            *chat,
            {"role": "assistant", "content": "ok"},
            {"role": "user", "content": "why? " * 2_000},
        ],
    )
    told = run("compact", "chat.json", "-o", "out.json", "--budget", "900")
    assert told.code == 1
    assert "budget of 900" in told.err
    assert Path("out.json").exists()


def test_a_model_writes_the_summary(
    run: Run, write: Write, chat: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def completion(**options: Any) -> dict[str, Any]:
        asked.append(options)
        said = {
            "role": "assistant",
            "content": ("They went through the harbours one by one; the deepest is not named."),
        }
        usage = {"prompt_tokens": 900, "completion_tokens": 20}
        return {"choices": [{"message": said, "finish_reason": "stop"}], "usage": usage}

    monkeypatch.setattr(models, "completion", completion)
    write("chat.json", chat)
    told = run("compact", "chat.json", "--model", "gpt-4o")
    assert told.code == 0, told.err
    assert asked[0]["model"] == "gpt-4o"
    assert "one by one" in told.out
    assert "read 900" in told.err


def test_a_bar_shows_the_pieces_of_a_models_summary(
    run: Run, write: Write, chat: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, ``compacter compact`` shows how far a summary in pieces is."""
    monkeypatch.setenv("FORCE_COLOR", "1")  # Rich takes the output for a terminal's.
    monkeypatch.setenv("TERM", "xterm")
    said = {"role": "assistant", "content": "They went through the harbours."}
    monkeypatch.setattr(models, "completion", lambda **_: {"choices": [{"message": said}]})
    write("chat.json", [*chat, *({"role": "user", "content": "Harbour. " * 2_000},) * 9])
    told = run("compact", "chat.json", "-o", "out.json", "--model", "gpt-4")
    assert re.search("1/[2-9]", told.err)


def test_a_model_that_fails_is_told_and_nothing_is_written(
    run: Run, write: Write, chat: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    def completion(**_: Any) -> None:
        raise OSError("no route")

    monkeypatch.setattr(models, "completion", completion)
    write("chat.json", chat)
    told = run("compact", "chat.json", "--model", "gpt-4o", "-o", "out.json")
    assert told.code == 3
    assert told.err.count("OSError") == told.err.count("no route") == 1
    assert not Path("out.json").exists()


def test_half_a_surrogate_pair_goes_through_every_command(
    run: Run, folder: Path, chat: list[Line]
) -> None:
    cut = [
        *chat[:-1],
        {"role": "user", "content": "The lighthouse \ud83d"},
        {"role": "assistant", "content": "Ö"},
        chat[-1],
    ]
    (folder / "chat.json").write_text(json.dumps(cut))
    assert run("compact", "chat.json", "-o", "out.json").code == 0
    assert json.loads((folder / "out.json").read_bytes())[-1] == chat[-1]
    assert run("search", "chat.json", "lighthouse").code == 0
    assert run("plan", "out.json", "--json").code == 0


def test_declared_rules_stand_in_the_summary(run: Run, write: Write, chat: list[Line]) -> None:
    write("chat.json", chat)
    assert "Answer in metres." in run("compact", "chat.json", "--rule", "Answer in metres.").out


def test_search_tells_where_and_fails_where_nothing_is(
    run: Run, write: Write, chat: list[Line]
) -> None:
    write("chat.json", chat)
    told = run("search", "chat.json", "berth B-9", "--limit", "1")
    assert told.code == 0
    assert "message 21 (index 20), assistant" in told.out
    (passage,) = run("search", "chat.json", "berth B-9", "--limit", "1", "--json").data
    assert (passage["message"], passage["index"]) == (21, 20)
    assert run("search", "chat.json", "zeppelin").code == 1
    assert run("search", "chat.json", " ").code == 2


def test_standard_input_is_read(run: Run, chat: list[Line]) -> None:
    assert run("plan", "-", "--json", stdin=json.dumps(chat)).data["messages"] == 26


def lines(*values: Line) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


TALK = {"role": "user", "content": "a"}
BAD = {
    "missing.json": (None, "no such file"),
    "empty.json": ("", "is empty"),
    "words.txt": ("hello there", "neither JSON nor JSONL"),
    "broken.jsonl": (f"{lines(TALK)}{{oops\n{{}}\n", "line 2"),
    "other.json": ('{"name": "x", "version": 3}', "has no list of messages"),
    "numbers.json": ("[1, 2, 3]", "has no list of messages"),
    "nothing.json": ("[]", "has no list of messages"),
    "odd.json": ('[{"role": "captain", "content": "ahoy"}]', "role 'captain'"),
    "deep.json": ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    "number.json": ("3", "has no list of messages"),
    "numbers.jsonl": ("1\n2\n", "has no list of messages"),
    "nul\0.json": (None, "null"),
    "mixed.jsonl": (lines({"messages": [TALK]}, {"x": 1}), "conversation 2 has no list"),
    "silent.json": (json.dumps([{"role": "user", "text": "How deep?"}]), "are read as empty"),
    # What other programs write for themselves.
    "typed.jsonl": (lines({"type": "session", "id": "s"}, {"type": "message"}), "type 'session'"),
    "nested.jsonl": (lines({"type": "user", "message": TALK}, {"type": "x"}), "type 'user'"),
    "payload.jsonl": (lines({"type": "meta", "payload": {}}, {"type": "x"}), "type 'meta'"),
    "export.json": (json.dumps({"messages": [{"info": {}, "parts": [{"type": "text"}]}]}), "parts"),
    "stream.jsonl": (
        lines({"type": "message", **TALK}, {"type": "tool_use", "tool_name": "look"}),
        "messages[1] has nothing that the format responses knows",
    ),
    "blocks.json": (
        json.dumps([TALK, {"role": "user", "content": [{"type": "toolResponse", "id": "1"}]}]),
        "messages[1] has nothing that the format openai knows",
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", ["plan", "compact"])
def test_another_file_is_a_mistake(run: Run, folder: Path, name: str, command: str) -> None:
    """A file with no conversation gets one line that says what it is not, and no traceback."""
    text, words = BAD[name]
    if text is not None:
        (folder / name).write_text(text)
    told = run(command, name)
    assert told.code == 2
    assert words in told.err
    assert told.err.startswith("compacter: ")
    assert told.err.count("\n") == 1


def test_bytes_that_are_no_text_are_named(run: Run, folder: Path) -> None:
    (folder / "image.json").write_bytes(b"\x89PNG\x00\xff\xfe\xfa")
    assert "image.json is not UTF-8 text" in run("plan", "image.json").err
    assert "standard input is not UTF-8 text" in run("plan", "-", stdin=b"\x89PNG\x00\xff").err


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_of_windows_programs_are_read(
    run: Run, folder: Path, chat: list[Line], encoding: str
) -> None:
    (folder / "chat.json").write_text(json.dumps(chat), encoding=encoding)
    assert run("plan", "chat.json", "--json").data["messages"] == 26


def test_a_last_line_that_is_still_being_written_is_left_out(
    folder: Path, chat: list[Line]
) -> None:
    text = "".join(json.dumps(each) + "\n" for each in chat) + '{"role": "us'
    (folder / "chat.jsonl").write_text(text)
    assert [len(each.messages) for each in read_transcripts("chat.jsonl")] == [26]
