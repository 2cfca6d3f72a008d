"""An unusable config is reported at start, with the path of the fault."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.gateway.conftest import ROOT, Start, config, deployment

from compacter.errors import ConfigurationError
from compacter.gateway.checks import problem_of
from compacter.gateway.litellm_proxy.settings import Settings, check_names
from compacter.memory import InProcessMemory
from pretend_fleet.provider import Provider

HERE = "callback_settings.compacter"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["compact_ratio"], f"{HERE}: must be a valid dictionary"),
        ({"compact_ration": 0.5}, f"{HERE}.compact_ration cannot be set here"),
        ({"compact_ratio": 3}, f"{HERE}: compact_ratio: "),
        ({"pin": "lambda m: True"}, f"{HERE}.pin cannot be set here"),
        ({"summarizer": 3}, f"{HERE}: summarizer: "),
        ({"dry_run": "perhaps"}, f"{HERE}.dry_run: "),
        ({"model_groups": ["small"]}, f"{HERE}.model_groups: must be a valid dictionary"),
        (
            {"model_groups": {"small": {"max_retries": -1}}},
            (f"{HERE}.model_groups.small: max_retries: "),
        ),
        ({"teams": {"blue": {"colour": "blue"}}}, f"{HERE}.teams.blue.colour cannot be set here"),
        ({"keys": {"anna": {"memory": {}}}}, f"{HERE}.keys.anna.memory cannot be set here"),
        ({"memory": {"address": "localhost"}}, f"{HERE}.memory: memory takes sqlite:PATH"),
        ({"memory": {"disk": "x.db"}}, f"{HERE}.memory.disk: "),
        ({"memory": {"share": "everybody"}}, f"{HERE}.memory.share: "),
    ],
)
def test_what_is_wrong_is_named_with_its_place(given: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Settings(given)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("sqlite:{}/m.db", "SQLiteMemory"),
        ("redis://127.0.0.1:1/0", "RedisMemory"),
        ("in-process", "InProcessMemory"),
        ("none", "NoneType"),
    ],
)
def test_the_memory_may_be_an_address(address: str, kind: str, tmp_path: Path) -> None:
    assert type(Settings({"memory": address.format(tmp_path)}).memory).__name__ == kind


CONFIG = {
    "model_list": [{"model_name": name} for name in ("small", "large", "writer", "openai/*")],
    "router_settings": {"model_group_alias": {"cheap": "small"}},
}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model_groups": {"smal": {}}}, f"{HERE}.model_groups.smal: .*did you mean 'small'"),
        ({"model_groups": {"embeddings": False}}, "known: cheap, large, openai/\\*, small, writer"),
        ({"summarizer": "writter"}, f"{HERE}.summarizer: .*did you mean 'writer'"),
        (
            {"teams": {"blue": {"summarizer": "Writer"}}},
            f"{HERE}.teams.blue.summarizer: .*did you mean 'writer'",
        ),
    ],
)
def test_a_model_group_that_the_config_has_not_is_named_with_the_nearest_one(
    given: Any, said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        check_names(CONFIG, Settings(given).groups)


@pytest.mark.parametrize(
    "given",
    [
        {"model_groups": {"small": {}, "cheap": {}, "openai/gpt-x": {}}},
        {"summarizer": "writer", "keys": {"anna": {"summarizer": "extractive"}}},
        {},
    ],
)
def test_groups_wildcards_and_aliases_are_names(given: Any) -> None:
    check_names(CONFIG, Settings(given).groups)


@pytest.mark.parametrize(
    "config", [{}, {**CONFIG, "general_settings": {"store_model_in_db": True}}]
)
def test_where_models_may_come_later_no_name_is_refused(config: Any) -> None:
    check_names(config, Settings({"summarizer": "nobody"}).groups)


class Failing(InProcessMemory):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def find(self, keys: Any) -> Any:
        raise self.error


def test_a_memory_that_does_not_answer_is_told_without_its_password() -> None:
    said = problem_of(Failing(ConnectionError("Error 111")), "redis://me:hunter2@redis:6379/0")
    assert said is not None
    assert "the memory at redis://redis:6379/0 does not answer (ConnectionError)" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("text", ["NOAUTH Authentication required.", "WRONGPASS invalid"])
def test_a_memory_that_wants_a_password_is_refused_with_the_remedy(text: str) -> None:
    with pytest.raises(ConfigurationError, match="redis://:PASSWORD@HOST") as raised:
        problem_of(Failing(RuntimeError(text)), "redis://:hunter2@h")
    assert "hunter2" not in str(raised.value)


def test_the_more_specific_setting_wins() -> None:
    settings = Settings(
        {
            "compact_ratio": 0.1,
            "max_retries": 7,
            "model_groups": {"small": {"compact_ratio": 0.2}},
            "teams": {"blue": {"compact_ratio": 0.3}},
            "keys": {"anna": {"compact_ratio": 0.4, "enabled": False}},
        }
    )
    ratios = [
        settings.of("other", (None,), (None,))[1].options.compact_ratio,
        settings.of("small", (None,), (None,))[1].options.compact_ratio,
        settings.of("small", ("id", "blue"), (None,))[1].options.compact_ratio,
        settings.of("small", ("id", "blue"), ("hash", "anna"))[1].options.compact_ratio,
    ]
    assert ratios == [0.1, 0.2, 0.3, 0.4]
    assert settings.of("other", (None,), ("hash", "anna"))[0].enabled is False
    assert settings.of("other", (None,), (None,))[1].options.max_retries == 7


def test_a_proxy_does_not_start_with_such_a_config(start: Start, provider: Provider) -> None:
    with pytest.raises(
        RuntimeError,
        match=r"callback_settings\.compacter\.compact_ration cannot be set here",
    ):
        start(config([deployment("plain", "openai/plain", provider)], {"compact_ration": 0.5}))


@pytest.mark.parametrize("version", ["1.80.0", "1.107.3"])
def test_a_litellm_that_it_does_not_work_with_is_named(python: Path, version: str) -> None:
    program = (
        "import compacter.gateway.litellm_proxy.plugin as plugin\n"
        "import compacter.gateway.litellm_proxy.settings as start\n"
        f"start.version = lambda name: {version!r}\n"
        "plugin.make()\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "middleware"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    ran = subprocess.run(
        [str(python), "-c", program],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        check=False,
    )
    assert (
        f"does not work with litellm {version}: it is tested with 1.106.x, 1.108.x, 1.109.x"
        in ran.stderr
    )
