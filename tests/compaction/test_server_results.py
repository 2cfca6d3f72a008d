"""Results of tools that the provider runs itself, which stand in the assistant's own message."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from compacter import ClearToolResults, Compacter, Shorten
from compacter.messages.format import get_format

LOG = "\n".join(f"line {number}: {number * 37} bytes written" for number in range(400))
CLEARED = f"[tool result cleared to save room: {len(LOG):,} characters]"


def anthropic(kind: str, content: Any) -> dict[str, Any]:
    use = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "code_execution",
        "input": {"code": "run()"},
    }
    result = {"type": kind, "tool_use_id": "srvtoolu_1", "content": content}
    return {"role": "assistant", "content": [use, result, {"type": "text", "text": "It ran."}]}


def ran(kind: str, **others: Any) -> dict[str, Any]:
    return {"type": kind, "stdout": LOG, "stderr": "", "return_code": 0, "content": [], **others}


EDITABLE: dict[str, tuple[Any, dict[str, Any]]] = {
    "code execution": (
        "anthropic",
        anthropic("code_execution_tool_result", ran("code_execution_result")),
    ),
    "bash": (
        "anthropic",
        anthropic("bash_code_execution_tool_result", ran("bash_code_execution_result")),
    ),
    "a file": (
        "anthropic",
        anthropic(
            "text_editor_code_execution_tool_result",
            {
                "type": "text_editor_code_execution_view_result",
                "file_type": "text",
                "content": LOG,
                "num_lines": 400,
            },
        ),
    ),
    "mcp": ("anthropic", anthropic("mcp_tool_result", [{"type": "text", "text": LOG}])),
    "mcp of responses": (
        "responses",
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "name": "read",
            "server_label": "s",
            "arguments": "{}",
            "output": LOG,
        },
    ),
    "the code interpreter": (
        "responses",
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "code": "run()",
            "container_id": "c",
            "status": "completed",
            "outputs": [
                {"type": "logs", "logs": LOG},
                {"type": "image", "url": "https://a.example/1.png"},
            ],
        },
    ),
    "file search": (
        "responses",
        {
            "type": "file_search_call",
            "id": "fs_1",
            "queries": ["bytes"],
            "status": "completed",
            "results": [{"file_id": "f1", "filename": "log.txt", "score": 0.9, "text": LOG}],
        },
    ),
    "code of gemini": (
        "gemini",
        {
            "role": "model",
            "parts": [
                {"executable_code": {"language": "PYTHON", "code": "run()"}},
                {"code_execution_result": {"outcome": "OUTCOME_OK", "output": LOG}},
                {"text": "It ran."},
            ],
        },
    ),
}
SEALED: dict[str, dict[str, Any]] = {
    "web search": anthropic(
        "web_search_tool_result",
        [
            {
                "type": "web_search_result",
                "url": "https://a.example/",
                "title": "A",
                "encrypted_content": "QUJD" * 900,
            }
        ],
    ),
    "web fetch": anthropic(
        "web_fetch_tool_result",
        {
            "type": "web_fetch_result",
            "url": "https://a.example/",
            "content": {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": LOG},
            },
        },
    ),
    "encrypted output": anthropic(
        "code_execution_tool_result",
        {
            "type": "encrypted_code_execution_result",
            "encrypted_stdout": "QUJD" * 900,
            "stderr": "",
            "return_code": 0,
            "content": [],
        },
    ),
    "an error": anthropic(
        "code_execution_tool_result",
        {"type": "code_execution_tool_result_error", "error_code": "unavailable"},
    ),
}


def compacted(strategy: Any, wire_format: Any, message: Any) -> Any:
    """The message after a compaction, in the middle of a conversation."""
    say = get_format(wire_format).say
    talk = [
        say("user", "Run it."),
        message,
        say("user", "And now?"),
        say("assistant", "Done."),
        say("user", "Thanks."),
    ]
    return Compacter(strategy=strategy).compact(talk, wire_format=wire_format).messages[1]


def without_log(value: Any, text: str) -> Any:
    if isinstance(value, dict):
        return {key: without_log(inner, text) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_log(inner, text) for inner in value]
    return text if value == LOG else value


@pytest.mark.parametrize("case", [name for name in EDITABLE if name != "mcp"])
def test_free_text_is_cleared_in_place_and_the_rest_is_as_it_was(case: str) -> None:
    wire_format, message = EDITABLE[case]
    before = copy.deepcopy(message)
    cleared = compacted(ClearToolResults(keep_recent=0), wire_format, message)
    assert cleared == without_log(message, CLEARED)
    assert message == before


def test_a_result_of_an_mcp_server_is_cleared() -> None:
    cleared = compacted(ClearToolResults(keep_recent=0), *EDITABLE["mcp"])
    assert cleared["content"][1] == {
        "type": "mcp_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": CLEARED,
    }


@pytest.mark.parametrize("case", EDITABLE)
def test_free_text_is_shortened_like_that_of_any_tool(case: str) -> None:
    wire_format, message = EDITABLE[case]
    form = get_format(wire_format)
    short = compacted(Shorten(), wire_format, message)
    assert form.size(short) < form.size(message) * 0.6
    assert "characters left out" in str(short)


@pytest.mark.parametrize("case", SEALED)
@pytest.mark.parametrize(
    "strategy", [ClearToolResults(keep_recent=0, min_size=0), Shorten(min_size=100)]
)
def test_what_the_provider_must_get_back_stays(strategy: Any, case: str) -> None:
    assert (
        compacted(strategy, "anthropic", SEALED[case])["content"][:2] == SEALED[case]["content"][:2]
    )


@pytest.mark.parametrize(("keep_recent", "left"), [(0, []), (1, ["r3"]), (2, ["r2", "r3"])])
def test_they_count_among_the_newest_results(keep_recent: int, left: list[str]) -> None:
    def result(number: int) -> Any:
        return anthropic(
            "bash_code_execution_tool_result",
            ran("bash_code_execution_result", stdout=f"r{number} {LOG}"),
        )

    talk: list[Any] = [{"role": "user", "content": "Run it."}]
    for number in (1, 2, 3):
        talk += [result(number), {"role": "user", "content": "Again."}]
    made = Compacter(strategy=ClearToolResults(keep_recent=keep_recent)).compact(
        talk, wire_format="anthropic"
    )
    assert [word for word in ("r1", "r2", "r3") if f"{word} " in str(made.messages)] == left


def test_a_tool_that_is_excluded_is_not_cleared() -> None:
    wire_format, message = EDITABLE["bash"]
    assert (
        compacted(ClearToolResults(keep_recent=0, exclude=["code_execution"]), wire_format, message)
        is message
    )
    wire_format, message = EDITABLE["mcp of responses"]
    assert (
        compacted(ClearToolResults(keep_recent=0, exclude=["read"]), wire_format, message)
        is message
    )
