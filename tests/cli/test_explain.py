"""``compacter explain``: on what people paste, and on every error of a collection where one is at
hand.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compacter.tools.cli.explain import judge

if TYPE_CHECKING:
    from tests.cli.conftest import Run

DATA = (
    Path(os.environ.get("COMPACTER_DATA") or Path(__file__).parents[3] / "shared" / "data")
    / "token_limit_errors.jsonl"
)
TOO_LONG = "prompt is too long: 205668 tokens > 200000 maximum"
RATE_LIMIT = "Rate limit reached: 30000 tokens per minute. Please try again in 6 s."


def test_a_token_limit_is_told_with_its_numbers_and_what_would_be_done(run: Run) -> None:
    told = run("explain", TOO_LONG)
    assert told.code == 0
    assert "This is a token limit" in told.out
    assert "205,668 tokens" in told.out
    assert "200,000 are allowed" in told.out
    assert "5,668 tokens (3%)" in told.out
    assert "docs/detector.md" in told.out


def test_another_error_is_told_with_the_row_that_decided(run: Run) -> None:
    told = run("explain", "--verbose", RATE_LIMIT)
    assert told.code == 1
    assert "not a token limit" in told.out
    assert "other error: " in told.out


@pytest.mark.parametrize(
    ("text", "veto"),
    [
        ("The conversation no longer fits into the GPU memory.", "other thing: memory"),
        (RATE_LIMIT, "other error: rate limit"),
        ('{"message": "max_tokens exceeds the token limit"}', "output: max_tokens"),
    ],
)
def test_the_veto_that_decided_is_named(run: Run, text: str, veto: str) -> None:
    """Somebody whose error is not recognised sees which words speak against it, without -v."""
    explained = run("explain", text)

    assert explained.code == 1
    assert veto in " ".join(explained.out.split())


def test_a_size_that_is_only_a_bound_is_shown_as_one(run: Run) -> None:
    """No excess is computed from it."""
    text = "The prompt has at least 8193 tokens, the maximum context length is 8192 tokens."
    explained = run("explain", text)

    assert "as far as the server counted" in " ".join(explained.out.split())
    assert "1 token" not in explained.out
    assert run("explain", "--json", text).data["is_bound"] is True


def test_a_text_that_no_rule_knows_names_the_way_out(run: Run) -> None:
    told = run("explain", "The reading frame is over.")
    assert told.code == 1
    assert "detect=" in told.out


def test_a_text_comes_from_a_file_or_from_standard_input(run: Run, folder: Path) -> None:
    (folder / "error.txt").write_text(TOO_LONG)
    assert run("explain", "error.txt").code == 0
    assert run("explain", stdin=TOO_LONG).code == 0
    assert run("explain", "-", stdin=TOO_LONG).code == 0


@pytest.mark.parametrize(
    "name", ["nofile.txt", "logs/nofile", "C:\\logs\\error.txt", "~/nofile", "../nofile.json"]
)
def test_the_name_of_a_missing_file_is_not_taken_for_an_error(
    run: Run, folder: Path, name: str
) -> None:
    told = run("explain", name)
    assert (told.code, told.err) == (2, f"compacter: {name}: there is no such file\n")
    (folder / "logs").mkdir()
    assert "is a directory" in run("explain", "logs").err


@pytest.mark.parametrize("nothing", ["", "  \n"])
def test_no_text_is_a_mistake_that_says_what_to_pass(run: Run, nothing: str) -> None:
    told = run("explain", stdin=nothing)
    assert told.code == 2
    assert "pass it in quotes" in told.err
    assert run("explain", nothing).err == told.err


def test_the_status_that_came_with_it_counts(run: Run) -> None:
    assert run("explain", "The request is too long for this model").code == 0
    assert run("explain", "The request is too long for this model", "--status", "401").code == 1


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": TOO_LONG, "type": "invalid_request_error"}},
        {
            "error": {
                "code": 400,
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 4030,
                "n_ctx": 2048,
            }
        },
        {
            "name": "AI_RetryError",
            "message": "Failed after 2 attempts.",
            "errors": [{"message": TOO_LONG}],
        },
        {"name": "LLMError", "message": "The provider failed.", "cause": {"message": TOO_LONG}},
        {
            "name": "LLMError",
            "message": "The provider failed.",
            "errors": ["timeout", {"message": TOO_LONG}],
        },
    ],
)
def test_json_bodies_and_serialised_errors_are_read(body: dict[str, Any]) -> None:
    assert judge(json.dumps(body)).kind == "token limit"


def test_of_several_tries_the_last_one_decides() -> None:
    tries = [{"message": TOO_LONG}, {"message": RATE_LIMIT}]
    assert (
        judge(json.dumps({"message": "Failed after 2 attempts.", "errors": tries})).kind
        == "other error"
    )


def test_a_traceback_is_read_down_to_the_exception_that_caused_the_last() -> None:
    pasted = f"""Traceback (most recent call last):
  File "agent.py", line 3, in step
    raise error
openai.BadRequestError: Error code: 400 - {{'error': {{'message': '{TOO_LONG}'}}}}

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "agent.py", line 9, in run
    step()
agent.ProviderError: the provider could not answer
"""
    verdict = judge(pasted)
    assert verdict.kind == "token limit"
    assert verdict.limit
    assert verdict.limit.requested == 205_668


def test_an_output_limit_that_does_not_fit_is_lowered_first(run: Run) -> None:
    told = run(
        "explain",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens "
        "(6000 in the messages, 3000 in the completion).",
    )
    assert "Lower the output limit" in told.out
    assert "808 tokens" in told.out


def deep(levels: int) -> str:
    return '{"cause":' * levels + "{}" + "}" * levels


@pytest.mark.parametrize(
    "text", ["{" * 100_000, deep(5_000), deep(500), "a.b" * 50_000, "Traceback" * 9_000, "\0"]
)
def test_hostile_texts_get_an_answer(run: Run, text: str) -> None:
    assert run("explain", stdin=text).code in {0, 1}


@pytest.mark.skipif(
    not DATA.exists(), reason=(f"no collection of errors at {DATA} (set COMPACTER_DATA)")
)
def test_every_collected_error_is_judged_rightly_with_its_numbers() -> None:
    wrong: list[object] = []
    with DATA.open(encoding="utf-8") as collected:
        rows = [row for row in map(json.loads, collected) if not row["ambiguous"]]
    for row in rows:
        verdict = judge(json.dumps(row))
        if (verdict.kind == "token limit") is not (row["kind"] == "overflow"):
            wrong.append((row["id"], verdict.kind))
        for name in ("limit", "requested") if verdict.limit is not None else ():
            stated = (
                row[name]
                if not (name == "requested" and row["requested_is"] == "sum_not_literal")
                else None
            )
            if stated is not None and getattr(verdict.limit, name) != stated:
                wrong.append((row["id"], name, getattr(verdict.limit, name)))
    assert wrong == []
