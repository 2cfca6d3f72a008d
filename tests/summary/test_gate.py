"""No answer without anything of the conversation stands as a summary: plain faults, and texts that
have nothing of it, in any language.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.effort import grows_linearly, repeated

from compacter import Compacter
from compacter.lines import keep as kept
from compacter.lines.head import Head
from compacter.lines.read import clip
from compacter.messages.parts import Part
from compacter.messages.replies import Reply
from compacter.redaction import decode_escapes, redact_secrets
from compacter.summary import gate, message, prompt
from compacter.summary.message import Summary

INSTRUCTION = prompt.build((), max_tokens=1_000)
SHORT_INSTRUCTION = prompt.build((), max_tokens=1_000, short=True)


def fault(text: str, **options: Any) -> str:
    limit = options.pop("limit", 10_000)
    return gate.fault(Reply(text, **options), limit, INSTRUCTION)


@pytest.mark.parametrize(
    "text",
    [
        "A short summary of what came before.",
        "Task: move the billing job.\nState: moved to jobs-eu-7.\nOpen: alert, old worker.",
        "The assistant refused: \"I'm sorry, but I can't do that.\"",
        "Sure! Here is a summary: the billing job was moved to jobs-eu-7.",
        "User: wants the billing job moved.\nAssistant: moved it; the alert is missing.",
        "Der Benutzer möchte den Billing-Job verschieben; der Alarm fehlt noch.",
        '{"task": "move the billing job", "done": ["moved"]}',
        "| Section | Content |\n|---|---|\n| Task | move the job |",
        "Task: move the job\nDecisions: None\nFacts: None\nDone: the job was moved",
        "## Task\n- move the job\n## Done\n- moved\n## Open questions\n- none",
        "The page uses <summary> elements, which the assistant closed.",
        "请把计费任务移到新的队列。",
    ],
)
def test_a_summary_in_any_form_and_language_is_taken(text: str) -> None:
    assert fault(text) == ""


@pytest.mark.parametrize("text", ["", " \n\t", "...", "\u200b", "---\n***"])
def test_an_answer_without_words_is_empty(text: str) -> None:
    assert fault(text) == "the summary is empty"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"finish": "content_filter"}, "the summarizer refused"),
        ({"finish": "SAFETY"}, "the summarizer refused"),
        ({"refused": True}, "the summarizer refused"),
        ({"called_tool": True}, "the summarizer called a tool"),
        ({"finish": "length"}, "the summary was cut off by its token limit"),
        ({"finish": "MAX_TOKENS"}, "the summary was cut off by its token limit"),
        ({"finish": "max_output_tokens"}, "the summary was cut off by its token limit"),
        ({"finish": "stop"}, ""),
        ({"finish": "end_turn"}, ""),
        ({"finish": None}, ""),
    ],
)
def test_the_replys_own_flags_decide(options: dict[str, Any], reason: str) -> None:
    assert fault("The job was moved and", **options) == reason


@pytest.mark.parametrize(
    "text",
    [
        "The billing job was moved to the queue jobs-eu-7 by the assistant.\n" * 2,
        "The job was moved and the alert is missing. " * 12,
        "计费任务已经移到新的队列，" * 9,
    ],
)
def test_one_sentence_over_and_over_is_refused(text: str) -> None:
    assert fault(text) == "the summary repeats itself"


@pytest.mark.parametrize(
    "text",
    [
        INSTRUCTION.rpartition("\n\n")[2],
        "Task: what the user wants, and what always or never\nDecisions: what was settled, and why",
        "- **Decisions**: what was settled, and why\n- Facts: None\n- Rules: None\n- Done: None",
        "Task: None\nDecisions: None\nFacts: none",
        "Headings, one item a line below each, empty ones left out:",
    ],
)
def test_the_instruction_given_back_is_refused(text: str) -> None:
    assert fault(text) == "the summary gives the instruction back"


def test_so_is_the_short_instruction() -> None:
    given = SHORT_INSTRUCTION.rpartition("\n\n")[2]
    assert gate.fault(Reply(given), 10_000, SHORT_INSTRUCTION)


@pytest.mark.parametrize(("size", "accepted"), [(19, True), (20, False), (21, False)])
def test_a_summary_must_be_smaller_than_what_it_replaces(size: int, *, accepted: bool) -> None:
    assert (fault("x" * size, limit=20) == "") is accepted


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>The user wants a summary.</think>\nThe job was moved.", "The job was moved."),
        ("<think>The user wants a summary of", ""),
        ("```markdown\nThe job was moved.\n```", "```markdown\nThe job was moved.\n```"),
        ("The job was moved.", "The job was moved."),
    ],
)
def test_thoughts_before_an_answer_are_taken_off_and_nothing_else(text: str, left: str) -> None:
    assert gate.clean(text) == left


HERE = Path(__file__).parent
GARBAGE = [json.loads(line) for line in (HERE / "garbage.jsonl").read_text("utf-8").splitlines()]
SUMMARIES = [
    json.loads(line) for line in (HERE / "summaries.jsonl").read_text("utf-8").splitlines()
]
TALKS: dict[str, Any] = json.loads((HERE / "talks.json").read_text("utf-8"))
STORE = [
    f"Store room {number} has {number * 7 % 90} crates of tiles; its lift was oiled."
    for number in range(60)
]


def stands(record: gate.Transcript, text: str) -> bool:
    return not gate.fault(Reply(text), 10**9, INSTRUCTION, record)


@pytest.fixture(scope="module")
def heads(data: Path) -> dict[str, str]:
    """The head of each real conversation, by its id."""
    compacter = Compacter(memory=None)
    found = {}
    for line in (data / "conversations.jsonl").read_text("utf-8").split("\n")[:-1]:
        row = json.loads(line)
        plan = compacter.plan(row["messages"], wire_format=row.get("format", "openai"))
        found[row["id"]] = "\n".join(part.text for part in plan.parts())
    return found


def test_garbage_stands_for_none_of_the_long_real_conversations(heads: dict[str, str]) -> None:
    """Each text for at most one in ninety: an apology in a talk full of apologies is one."""
    records = [gate.Transcript([head]) for head in heads.values() if len(head) >= 4_000]
    most = -(-len(records) // 90)
    for row in GARBAGE:
        standing = sum(stands(record, row["text"]) for record in records)
        assert standing <= most, row


def test_garbage_hardly_ever_stands_for_a_short_real_conversation(heads: dict[str, str]) -> None:
    for size in (1_000, 2_000):
        records = [gate.Transcript([head[:size]]) for head in heads.values() if len(head) >= size]
        standing = sum(stands(record, row["text"]) for record in records for row in GARBAGE)
        assert standing <= len(records) * len(GARBAGE) // 60


def test_short_summaries_of_real_conversations_stand(heads: dict[str, str]) -> None:
    """All that name something of the conversation, or are about a short one."""
    refused = [
        row
        for row in SUMMARIES
        if row["names"]
        and not stands(gate.Transcript([heads[row["conversation"]]]), row["summary"])
    ]
    assert not refused


@pytest.mark.parametrize("language", TALKS)
def test_in_any_script_summaries_stand_and_garbage_does_not(language: str) -> None:
    record = gate.Transcript([TALKS[language]["talk"]])
    assert all(stands(record, text) for text in TALKS[language]["summaries"])
    assert not [text for text in TALKS[language]["garbage"] if stands(record, text)]


@pytest.mark.parametrize("row", GARBAGE, ids=lambda row: f"{row['kind']} {row['text'][:12]!r}")
def test_garbage_does_not_stand_for_a_made_up_talk(row: dict[str, str]) -> None:
    assert not stands(gate.Transcript(STORE), row["text"])


@pytest.mark.parametrize(
    "text",
    [
        "The crates of tiles in the store rooms were counted.",
        "Rooms: crates counted, lifts oiled.",
        "I can't say who oiled the lifts of the store rooms.",
        '{"task": "count crates", "done": ["store rooms 0 to 59"]}',
        "\n".join(STORE),
        "\n".join(STORE[:8]),
    ],
)
def test_a_short_or_plain_summary_of_it_does(text: str) -> None:
    assert stands(gate.Transcript(STORE), text)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "count", "arguments": {"what": "crates of tiles in store room 7"}}',
        '[{"type": "function", "function": {"name": "count", "arguments": "{}"}}]',
        '```json\n{"tool": "count", "input": {"what": "crates"}}\n```',
        'Next I count the crates of store room 8.\n<tool_call>\n{"name": "count"}\n</tool_call>',
        "[TOOL_CALLS] count crates of tiles in store room 7",
        '<invoke name="count"><parameter name="what">crates of tiles</parameter></invoke>',
        "<function=count>crates of tiles in the store rooms</function>",
    ],
)
def test_a_tool_call_as_text_is_refused_whatever_it_names(text: str) -> None:
    fault = gate.fault(Reply(text), 10_000, INSTRUCTION, gate.Transcript(STORE))
    assert fault == "the summarizer called a tool"


def test_nothing_is_compared_with_a_record_without_words() -> None:
    assert stands(gate.Transcript(["x" * 900, "7 8 9"]), "They talked.")


def test_a_name_alone_is_no_summary() -> None:
    record = gate.Transcript(
        ["We meet Ottilie at the harbour, and Ottilie brings ropes and sails."] * 6
    )
    assert not stands(record, "Ottilie")
    assert stands(record, "Ottilie brings ropes.")


@pytest.mark.parametrize(
    "line",
    [
        "In town {n} three shelves are empty; it costs {m} euros to fill them.",
        "- tests/test_module_{n}.py: passed in {m} s",
        "- [x] port the tests of module_{n} to pytest",
        "| town {n} | 3 empty | {m} EUR | open |",
        "在第{n}个镇有三个书架是空的，补货要{m}欧元。",
    ],
)
@pytest.mark.parametrize("count", [8, 40])
def test_a_list_of_like_sentences_is_no_repetition(line: str, count: int) -> None:
    text = "\n".join(line.format(n=n, m=n * 7) for n in range(count))
    assert fault(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "They counted crates. " + "The lift was oiled again. " * 5,
        "\n".join(["- the lift was oiled", "- the crates were counted"] * 6),
        "the lift was oiled and " * 20,
    ],
)
def test_a_loop_is_one(text: str) -> None:
    assert fault(text) == "the summary repeats itself"


def test_the_whole_request_given_back_is_refused() -> None:
    asked = prompt.build([f"user: {line}" for line in STORE], max_tokens=1_000)
    assert fault(asked, limit=10**6) == "the summary gives the instruction back"


HOSTILE = [
    *(
        "<",
        "< ",
        "</",
        "<transcript ",
        "[",
        "[[",
        "((",
        "{{",
        "\u200d",
        "a\u200d",
        "\u0301",
        "\n",
        "\n ",
        "\r",
        "\u2028",
    ),
    *(
        " ",
        "\t",
        ".",
        "!",
        "…",
        "。",
        "-",
        "#",
        "*",
        "_",
        ":",
        "a:",
        "Rule:",
        "\nRule",
        "Rules:\n",
        "user:\n",
        "<|",
    ),
    *(
        "sorry ",
        "I cannot ",
        "kann ich ",
        "write ",
        "please ",
        "summary ",
        "a",
        "1",
        "ab ",
        "漢",
        "漢字",
        "あ",
        "\U0001f600",
    ),
    *(
        "\\u0041",
        "\\",
        "@",
        "a@",
        "a.b",
        "://a:",
        "password",
        "password:",
        "eyJ",
        "-----BEGIN ",
        "--a-",
        "cookie: ",
        "sk-",
    ),
]
RECORD = gate.Transcript(STORE)
READERS: dict[str, Callable[[str], object]] = {
    "neutral": prompt.neutral,
    "line": lambda text: prompt.lines([Part("tool", "result", text, text)]),
    "chunks": lambda text: prompt.chunks(prompt.lines([Part("user", "text", text)]), 4_000),
    "fault": lambda text: gate.fault(Reply(text), 10**9, INSTRUCTION, RECORD),
    "record": lambda text: gate.Transcript([text]),
    "clean": gate.clean,
    "think": lambda text: gate.clean(f"<think>{text}"),
    "kept": lambda text: kept.keep(
        Head([Part("user", "text", text), Part("tool", "result", text, "x")], Summary()),
        4_000,
        with_story=True,
    ),
    "clip": lambda text: clip(text, 200),
    "message": lambda text: message.parse(message.compose(message.Summary(text, (), (), text))),
    "forged message": lambda text: message.parse(f"{message.TAG} 00000000\n{text}"),
    "redact": redact_secrets,
    "decode": decode_escapes,
}


@pytest.mark.parametrize("name", READERS)
def test_ten_times_the_text_is_about_ten_times_the_work(name: str) -> None:
    """Patterns that backtrack would make it a hundred times."""
    for shape in HOSTILE:
        assert grows_linearly(READERS[name], repeated(shape), 1_000), repr(shape)


def test_a_bracket_before_a_long_run_of_spaces_is_read_at_once() -> None:
    assert grows_linearly(prompt.neutral, repeated("<" + " " * 16_000), 16_001)
