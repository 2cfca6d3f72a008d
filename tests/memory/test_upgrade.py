"""What an earlier version has stored is used by this one.

``stored_by_0_2.sql`` was written by version 0.2.0: the conversation below, refused at 1,500 tokens,
with ``summarizer="extractive"``. A running service is upgraded one process at a time, so the two
versions also share a memory for some minutes.
"""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from compacter import Compacter
from compacter.memory import SQLiteMemory

STORED = Path(__file__).with_name("stored_by_0_2.sql")
WINDOW = 1_500
HEADING = "summary of what came before"


class TooLongError(Exception):
    code = "context_length_exceeded"


def talk(turns: int) -> list[dict[str, str]]:
    said = [{"role": "system", "content": "You are terse."}]
    for number in range(turns):
        question = f"Question {number}: what about harbour number {number}? " * 8
        answer = f"Harbour {number} takes ships of {number + 20} metres. " * 8
        said.append({"role": "user", "content": question})
        said.append({"role": "assistant", "content": answer})
    return [*said, {"role": "user", "content": "Which harbour was the first?"}]


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A file as 0.2 left it, some seconds ago."""
    path = tmp_path / "memory.db"
    database = sqlite3.connect(path)
    database.executescript(STORED.read_text())
    database.execute("UPDATE records SET used = ?", (time.time(),))
    database.commit()
    database.close()
    return path


def sent_messages(compacter: Compacter, messages: list[dict[str, str]]) -> list[list[Any]]:
    """The messages of each request of one call to a model with this window."""
    sent: list[list[Any]] = []

    def completion(*, messages: list[Any], model: str) -> dict[str, Any]:
        sent.append(messages)
        tokens = sum(len(message["content"]) for message in messages) // 4
        if tokens > WINDOW:
            raise TooLongError(
                f"This model's maximum context length is {WINDOW} tokens. However, your messages "
                f"resulted in {tokens} tokens."
            )
        return {"choices": [{"message": {"role": "assistant", "content": model}}]}

    compacter.wrap(completion)(messages=messages, model="gpt-x")
    return sent


def test_a_conversation_goes_on_from_the_record_of_the_version_before(stored: Path) -> None:
    compacter = Compacter(memory=SQLiteMemory(stored), summarizer="extractive")

    (request,) = sent_messages(compacter, talk(20))

    assert len(request) < len(talk(20))
    assert "Harbour 0 takes ships of 20 metres." in request[1]["content"]
    assert compacter.totals.rounds == 0
