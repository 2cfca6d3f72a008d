"""Settings of the config, the payer and the memory of a call, and what does not change without the
plug-in.
"""

from __future__ import annotations

import json
import threading
import time

import pytest
from tests.gateway.conftest import Json, Start, config, deployment, new_mark, request

from pretend_fleet.provider import Provider, Seen
from pretend_fleet.proxies import Answer, Proxy

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def proxy(start: Start, provider: Provider) -> Proxy:
    groups = {
        "plain": "openai/plain",
        "off": "openai/plain",
        "shadow": "openai/plain",
        "small": "openai/plain",
        "big": "openai/plain-window-100000",
        "broken": "openai/broken",
        "picky": "openai/picky",
        "slow": "openai/plain-slow-0.5",
        "lost": "openai/plain",
        "mute": "openai/broken",
        "writer": "openai/writer-window-100000",
    }
    prices = {"writer": {"input_cost_per_token": 0.001}}
    settings: Json = {
        "model_groups": {
            "off": False,
            "shadow": {"dry_run": True},
            "lost": {"summarizer": "mute"},
        },
        "keys": {"never": {"enabled": False}},
        "teams": {"brief": {"summarizer": "extractive"}},
    }
    return start(
        config(
            [
                deployment(name, model, provider, **prices.get(name, {}))
                for name, model in groups.items()
            ],
            settings,
            litellm_settings={
                "num_retries": 0,
                "context_window_fallbacks": [{"small": ["big"]}],
            },
            router_settings={"fallbacks": [{"broken": ["plain"]}]},
            general_settings={"custom_auth": "gateway_auth.user_api_key_auth"},
        )
    )


@pytest.mark.parametrize(("model", "key"), [("off", "sk-anna"), ("plain", "sk-never")])
def test_where_it_is_off_the_client_gets_the_refusal(
    proxy: Proxy, provider: Provider, model: str, key: str
) -> None:
    mark = new_mark()
    answer = proxy.post(CHAT, request("chat", model, mark), key=key)
    assert answer.status == 400
    assert "context" in answer.text
    assert len(seen(provider, mark)) == 1


def test_dry_run(proxy: Proxy, provider: Provider) -> None:
    """With `dry_run` a refusal is logged, and the client gets it."""
    mark = new_mark()
    answer = proxy.post(CHAT, request("chat", "shadow", mark))
    assert answer.status == 400
    assert [one.model for one in seen(provider, mark)] == ["plain"]
    assert "dry run: shadow refused (limit 1500" in proxy.log.read_text()


def test_a_larger_model_that_the_config_names_comes_first(proxy: Proxy, provider: Provider) -> None:
    mark = new_mark()
    answer = proxy.post(CHAT, request("chat", "small", mark))
    assert answer.status == 200
    assert [one.model for one in seen(provider, mark)] == ["plain", "plain-window-100000"]


def test_fallbacks_for_other_failures_keep_working(proxy: Proxy, provider: Provider) -> None:
    mark = new_mark()
    answer = proxy.post(CHAT, request("chat", "broken", mark, count=2))
    assert answer.status == 200
    assert mark in answer.text
    assert seen(provider, mark)[-1].model == "plain"


def test_the_model_that_such_a_fallback_leads_to_compacts_too(
    proxy: Proxy, provider: Provider
) -> None:
    mark = new_mark()
    answer = proxy.post(CHAT, request("chat", "broken", mark))
    assert answer.status == 200, answer.text
    assert [one.model for one in seen(provider, mark)] == [
        "broken",
        "plain",
        "writer-window-100000",
        "plain",
    ]


def test_another_bad_request_goes_straight_back(proxy: Proxy, provider: Provider) -> None:
    mark = new_mark()
    answer = proxy.post(CHAT, request("chat", "picky", mark))
    assert answer.status == 400
    assert "temperature" in answer.text
    assert len(seen(provider, mark)) == 1


def test_a_history_that_cannot_be_compacted_gets_the_providers_own_refusal(
    proxy: Proxy, provider: Provider
) -> None:
    mark = new_mark()
    body = {
        "model": "plain",
        "messages": [{"role": "user", "content": f"{mark} " + "wall " * 2_000}],
    }
    answer = proxy.post(CHAT, body)
    assert answer.status == 400
    assert "maximum context length is 1500" in answer.text
    assert len(seen(provider, mark)) == 1


def test_a_summary_is_on_the_account_of_the_caller_and_marked(proxy: Proxy) -> None:
    name = f"payer{time.monotonic_ns()}"
    proxy.post(CHAT, request("chat", "plain", new_mark()), key=f"sk-{name}-of-green")
    by_group = {line["model_group"]: line for line in logged(proxy, name, 2)}
    summary = by_group["writer"]
    answer = by_group["plain"]
    assert summary["tags"] == ["compacter"]
    assert summary["marked"] == {"compacter": "summary", "model_group": "plain"}
    assert (summary["team"], summary["hash"]) == ("green", answer["hash"])
    assert summary["cost"] > 0.5


def test_a_request_to_several_models_at_once_is_left_alone(proxy: Proxy) -> None:
    for name, model in (("one", "plain"), ("several", "plain,big")):
        key = f"{name}{time.monotonic_ns()}"
        proxy.post(CHAT, request("chat", model, new_mark(), count=1), key=f"sk-{key}")
        lines = logged(proxy, key, 1)
        assert {line["looked_into"] for line in lines} == {name == "one"}


@pytest.mark.parametrize(
    ("model", "key"),
    [
        pytest.param("plain", "sk-poor", id="a key without access to the summary model"),
        pytest.param("lost", "sk-anna", id="a summary model that fails"),
        pytest.param("plain", "sk-anna-of-brief", id="a team without a summary model"),
    ],
)
def test_without_a_summary_model_the_fallback_takes_over(
    proxy: Proxy, provider: Provider, model: str, key: str
) -> None:
    mark = new_mark()
    answer = proxy.post(CHAT, request("chat", model, mark), key=key)
    assert answer.status == 200, answer.text
    models = [one.model for one in seen(provider, mark)]
    assert [name for name in models if name != "broken"] == ["plain", "plain"]


def test_one_key_is_never_served_the_record_of_another(proxy: Proxy, provider: Provider) -> None:
    mark = new_mark()
    body = request("chat", "plain", mark)
    for key in ("sk-anna", "sk-bert", "sk-anna", "sk-bert"):
        assert proxy.post(CHAT, body, key=key).status == 200
    models = [one.model for one in seen(provider, mark)]
    compacting = ["plain", "writer-window-100000", "plain"]
    reusing = ["plain"]
    assert models == [*compacting, *compacting, *reusing, *reusing]


def test_clients_that_choose_the_same_call_id_get_their_own_answers(proxy: Proxy) -> None:
    marks = [new_mark() for _ in range(8)]
    answers: dict[str, Answer] = {}
    same = Proxy(proxy.port, proxy.process, proxy.log, extra={"x-litellm-call-id": "one-for-all"})

    def call(mark: str) -> None:
        answers[mark] = same.post(CHAT, request("chat", "slow", mark))

    threads = [threading.Thread(target=call, args=(mark,)) for mark in marks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for mark in marks:
        content = answers[mark].json["choices"][0]["message"]["content"]
        assert [word for word in content.split() if word.startswith("mark-")] == [mark]


def test_a_client_cannot_name_a_call_by_its_metadata(proxy: Proxy) -> None:
    mark = new_mark()
    body = request("chat", "plain", mark) | {"metadata": {"compacter_call": "0" * 32}}
    answer = proxy.post(CHAT, body)
    assert answer.status == 200
    assert mark in answer.text


def seen(provider: Provider, mark: str) -> list[Seen]:
    """The requests of one conversation."""
    return [
        one
        for one in list(provider.seen)
        if f"{mark}:" in str(one.body) or f"{mark} " in str(one.body)
    ]


def logged(proxy: Proxy, key: str, count: int) -> list[Json]:
    """The proxy's log of a key's calls; it does that after it has answered."""
    path = proxy.log.with_name("record.jsonl")
    end = time.monotonic() + 20
    while time.monotonic() < end:
        lines = (
            [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        )
        found = [line for line in lines if line["key"] == key]
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError("the calls were not logged")
