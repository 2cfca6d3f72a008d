"""Two workers with one memory, and what they count."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.gateway.conftest import Start, config, deployment, new_mark, request

from pretend_fleet.provider import Provider
from pretend_fleet.proxies import Proxy

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def workers(
    start: Start, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> list[Proxy]:
    path: Path = tmp_path_factory.mktemp("memory") / "memory.db"
    models = [
        deployment("plain", "openai/plain", provider),
        deployment("writer", "openai/writer-window-100000", provider),
    ]
    said = config(
        models,
        {"memory": {"address": f"sqlite:{path}", "share": "team"}},
        general_settings={"custom_auth": "gateway_auth.user_api_key_auth"},
    )
    said["litellm_settings"]["callbacks"].append("prometheus")
    return [start(said), start(said)]


def test_what_one_worker_has_compacted_the_other_one_knows(
    workers: list[Proxy], provider: Provider
) -> None:
    mark = new_mark()
    answers = [worker.post(CHAT, request("chat", "plain", mark)) for worker in workers]
    assert [answer.status for answer in answers] == [200, 200]
    assert models(provider, mark) == ["plain", "writer-window-100000", "plain", "plain"]


def test_keys_of_one_team_share_and_others_do_not(workers: list[Proxy], provider: Provider) -> None:
    mark = new_mark()
    body = request("chat", "plain", mark)
    for key in ("sk-anna-of-blue", "sk-bert-of-blue", "sk-carl-of-red", "sk-dora"):
        assert workers[0].post(CHAT, body, key=key).status == 200
    compacting = ["plain", "writer-window-100000", "plain"]
    assert models(provider, mark) == [*compacting, "plain", *compacting, *compacting]


def test_what_happens_is_counted_by_model_group(workers: list[Proxy]) -> None:
    def counted(name: str) -> float:
        page = workers[0].get("/metrics/").text
        found = re.search(
            rf'^compacter_{name}_total{{(?=.*model_group="plain").*tenant_class="other".*}} (\S+)$',
            page,
            re.MULTILINE,
        )
        return float(found[1]) if found else 0.0

    before = counted("compactions"), counted("refusals"), counted("tokens_saved")
    workers[0].post(CHAT, request("chat", "plain", new_mark()))
    assert counted("compactions") == before[0] + 1
    assert counted("refusals") == before[1] + 1
    assert counted("tokens_saved") > before[2] + 500


def models(provider: Provider, mark: str) -> list[str]:
    """The models of one conversation's requests, in order."""
    return [
        one.model
        for one in list(provider.seen)
        if f"{mark}:" in str(one.body) or f"{mark} " in str(one.body)
    ]
