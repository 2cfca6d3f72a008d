"""What a memory that outlives the process stores of a summary, and by which settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet

from compacter import Compacter, RedisMemory, SQLiteMemory
from compacter.errors import ConfigurationError
from compacter.gateway.litellm_proxy.settings import Settings
from compacter.memory import BaseMemory, Record
from compacter.memory.address import keys_from
from compacter.memory.record import StoredMessage
from compacter.memory.stored import without_quotes
from compacter.serve import main
from compacter.summary.message import RULE, Summary, compose, parse
from compacter.testing import ScriptedModel, ScriptedSummarizer

OLD = Fernet.generate_key().decode()
NEW = Fernet.generate_key().decode()
WORD = "heliotrope"


def record(content: Any, digest: str = "d") -> Record:
    return Record(
        "k", 3, (), (StoredMessage(0, {"role": "user", "content": content}),), digest, "l"
    )


def summary(story: str = "They chose a colour.") -> str:
    return compose(Summary(story, (f"{RULE}Be brief.",), ("A note.",), f"User: I like {WORD}."))


@pytest.fixture(params=["sqlite", "redis"])
def make(
    request: pytest.FixtureRequest, tmp_path: Path, redis_url: str, namespace: str
) -> Callable[[], BaseMemory]:
    """Makes memories at one place that store no quoted lines."""
    if request.param == "sqlite":
        return lambda: SQLiteMemory(tmp_path / "memory.db", quotes=False)
    return lambda: RedisMemory(redis_url, namespace=namespace, quotes=False)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda text: text,
        lambda text: [{"type": "text", "text": text}],
        lambda text: [{"text": text, "more": None}],
    ],
    ids=["text", "block", "part"],
)
def test_quoted_lines_are_left_out_and_the_rest_stays(wrap: Callable[[str], Any]) -> None:
    stored = without_quotes(record(wrap(summary())))
    assert stored is not None
    assert WORD not in stored.to_json()
    expected = compose(Summary("They chose a colour.", (f"{RULE}Be brief.",), ("A note.",)))
    assert stored == record(wrap(expected))
    assert parse(expected) is not None


def test_other_messages_are_stored_as_they_are() -> None:
    assert without_quotes(record("Go on, please.")) == record("Go on, please.")


def test_the_process_keeps_the_lines_that_are_not_stored(make: Callable[[], BaseMemory]) -> None:
    here = make()
    here.save(record(summary()))
    there = make()
    assert list(here.find(["k"])) == [record(summary())]
    (stored,) = there.find(["k"])
    assert WORD not in stored.to_json()
    assert stored.id == record(summary()).id


def test_a_summary_of_quotes_alone_is_not_stored(make: Callable[[], BaseMemory]) -> None:
    here = make()
    here.save(record(summary(story="")))
    assert list(here.find(["k"])) == [record(summary(story=""))]
    assert list(make().find(["k"])) == []


def test_no_word_of_a_quote_is_in_the_file_and_the_next_call_has_it(tmp_path: Path) -> None:
    memory = SQLiteMemory(tmp_path / "memory.db", quotes=False)
    model = ScriptedModel(window=2_000)
    compacter = Compacter(
        memory=memory, summarizer=ScriptedSummarizer("They spoke about an account."), recall=None
    )
    history = [{"role": "user", "content": f"Question {n} about trains. " * 20} for n in range(20)]
    history[2] = {"role": "user", "content": f"My account number is 4711-{WORD}-0815. " * 3}
    sent = []
    for _ in range(2):
        compacter.wrap(model.completion)("model", history)
        sent.append(str(model.requests[-1].messages))
    memory.close()
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert compacter.totals.rounds == 1
    assert WORD in sent[0]
    assert sent[0] == sent[1]
    assert b"spoke about an account" in files
    assert WORD.encode() not in files


# -- keys from a file or a variable ----------------------------------------------------------------


def test_keys_come_from_a_file_or_a_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "keys"
    file.write_text(f"{NEW}\n{OLD}\n")
    monkeypatch.setenv("KEYS", f"{NEW},{OLD}")
    for source in (f"file:{file}", "env:KEYS", "os.environ/KEYS"):
        assert keys_from(source, "encryption") == [NEW, OLD]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (OLD, "and not a key itself"),
        ("file:/no/such/file", "cannot read '/no/such/file': No such file"),
        ("env:NOT_SET_AT_ALL", "no key in env:NOT_SET_AT_ALL; make one by"),
        (7, "takes file:PATH"),
    ],
    ids=["a key itself", "no file", "no variable", "no text"],
)
def test_a_source_without_a_key_is_refused_and_no_key_repeated(source: Any, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        keys_from(source, "encryption")
    assert OLD not in str(caught.value)


def test_the_environment_names_keys_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    environment = {
        "COMPACTER_MEMORY": f"sqlite:{path}",
        "COMPACTER_MEMORY_ENCRYPTION": f"{NEW} {OLD}",
        "COMPACTER_MEMORY_QUOTES": "false",
    }
    memory: Any = Compacter.from_env(environment).options.memory
    memory.save(record(summary()))
    memory.close()
    assert b"colour" not in path.read_bytes()
    (stored,) = SQLiteMemory(path, encryption=NEW).find(["k"])
    assert "colour" in stored.to_json()
    assert WORD not in stored.to_json()


@pytest.mark.parametrize(
    ("name", "value"), [("ENCRYPTION", "sesame"), ("ENCRYPTION", "file:/no"), ("QUOTES", "maybe")]
)
def test_a_wrong_variable_is_named(tmp_path: Path, name: str, value: str) -> None:
    variable = f"COMPACTER_MEMORY_{name}"
    environment = {"COMPACTER_MEMORY": f"sqlite:{tmp_path / 'm.db'}", variable: value}
    with pytest.raises(ConfigurationError, match=r"COMPACTER_MEMORY") as caught:
        Compacter.from_env(environment)
    assert "sesame" not in str(caught.value)


def test_the_plug_in_names_keys_and_quotes(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text(NEW)
    path = tmp_path / "memory.db"
    given = {"sqlite": str(path), "encryption": f"file:{file}", "quotes": False}
    memory: Any = Settings({"memory": given}).memory
    memory.save(record(summary()))
    (stored,) = SQLiteMemory(path, encryption=[NEW]).find(["k"])
    assert WORD not in stored.to_json()
    with pytest.raises(ConfigurationError, match=r"memory\.encryption needs redis or sqlite"):
        Settings({"memory": {"encryption": f"file:{file}"}})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([f"--memory-encryption={OLD}"], "memory_encryption takes file:PATH"),
        (["--memory-encryption", "file:/no"], "cannot read '/no'"),
        (["--memory-encryption", "env:WRONG"], "takes a key of cryptography's"),
    ],
)
def test_serve_refuses_a_wrong_key_in_one_line(
    tmp_path: Path,
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WRONG", "sesame")
    place = f"sqlite:{tmp_path / 'm.db'}"
    assert main(["--upstream", "http://127.0.0.1:9", "--memory", place, *words]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert OLD not in told
    assert "sesame" not in told
