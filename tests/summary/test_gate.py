"""Answers that are plainly not a summary: six faults, in any language."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.effort import grows_linearly, repeated

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
READERS: dict[str, Callable[[str], object]] = {
    "neutral": prompt.neutral,
    "line": lambda text: prompt.lines([Part("tool", "result", text, text)]),
    "chunks": lambda text: prompt.chunks(prompt.lines([Part("user", "text", text)]), 4_000),
    "fault": lambda text: gate.fault(Reply(text), 10**9, INSTRUCTION),
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
