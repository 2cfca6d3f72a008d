"""A summary for one caller is never served to another one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest

from compacter import SQLiteMemory

Serve = Callable[..., Any]
Talk = Callable[..., Any]


def ask(url: str, history: Any, key: str = "sk-one", **headers: str) -> None:
    with openai.OpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0) as client:
        client.chat.completions.create(model="m", messages=history, extra_headers=headers)


@pytest.mark.parametrize(
    "other",
    [{"key": "sk-two"}, {"openai-project": "p2"}, {"api-key": "k2"}, {"cookie": "session=2"}],
)
def test_another_caller_with_the_same_conversation_gets_its_own_summary(
    serve: Serve, openai_server: Any, talk: Talk, tmp_path: Path, other: dict[str, Any]
) -> None:
    serving = serve(f"{openai_server.url}/v1", memory=SQLiteMemory(tmp_path / "memory.db"))
    ask(serving.url, talk())
    before = len(openai_server.bodies)
    ask(serving.url, talk(), **other)
    assert len(openai_server.bodies) - before == before
    assert serving.board.numbers()["rounds"] == 2


def test_the_same_caller_gets_the_same_summary(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve(f"{openai_server.url}/v1")
    ask(serving.url, talk())
    before = len(openai_server.bodies)
    ask(serving.url, talk(), **{"x-request-id": "another"})
    assert len(openai_server.bodies) - before == 1


def test_other_paths_and_upstreams_do_not_share(
    serve: Serve, openai_server: Any, talk: Talk
) -> None:
    serving = serve([f"one={openai_server.url}/v1", f"two={openai_server.url}/deployments/two"])
    ask(f"{serving.url}/one", talk())
    ask(f"{serving.url}/two", talk())
    assert serving.board.numbers()["rounds"] == 2


def test_no_key_and_no_text_is_told_or_kept(
    serve: Serve,
    openai_server: Any,
    talk: Talk,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("DEBUG")
    file = tmp_path / "memory.db"
    memory = SQLiteMemory(file)
    serving = serve(f"{openai_server.url}/v1", memory=memory, summarizer="extractive")
    body = json.dumps({"model": "m", "messages": talk(about="sesame")}).encode()
    head = f"Authorization: Bearer sk-open-sesame\nContent-Length: {len(body)}\nConnection: close\n"
    assert serving.ask(f"POST /v1/chat/completions HTTP/1.1\nHOST\n{head}\n", body).startswith(
        b"HTTP/1.1 200 "
    )
    page = serving.get("/compacter")
    out, err = capfd.readouterr()
    told = page.decode() + "".join(serving.lines) + out + err + caplog.text
    assert "sesame" not in told
    memory.close()
    assert b"sk-open" not in file.read_bytes()


def test_a_models_name_is_text_on_the_page(serve: Serve, openai_server: Any, talk: Talk) -> None:
    serving = serve(f"{openai_server.url}/v1")
    with openai.OpenAI(base_url=f"{serving.url}/v1", api_key="k", max_retries=0) as client:
        name = "<script>alert(1)</script>\x1b[2J" + "x" * 200
        client.chat.completions.create(model=name, messages=talk())
    page = serving.get("/compacter").decode()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;[2Jxxx" in page
    assert "alert(1)</script>" not in page
    assert "x" * 60 not in page
    assert not any("\x1b" in line for line in serving.lines)


def test_health_and_totals_are_told(serve: Serve, openai_server: Any, talk: Talk) -> None:
    serving = serve(f"{openai_server.url}/v1")
    ask(serving.url, talk())
    assert serving.get("/healthz").endswith(b'{"status":"ok"}')
    assert b"1 compaction" in serving.get("/compacter")
    assert any(line.startswith("compacted ") for line in serving.lines)


@pytest.mark.parametrize("texts", [False, True])
def test_texts_are_shown_only_where_they_are_asked_for(
    serve: Serve, openai_server: Any, talk: Talk, *, texts: bool
) -> None:
    serving = serve(
        f"{openai_server.url}/v1",
        texts=texts,
        summarizer=lambda messages, **_: "Part 0 of piers was built of oak.",
    )
    ask(serving.url, talk())
    page = serving.get("/compacter").decode()
    assert ("Part 0 of piers was built of oak." in page) is texts
