"""The files of examples/fleet say what they should, as far as that shows without a cluster."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from compacter.gateway.figures import COUNTERS, GAUGES
from compacter.gateway.litellm_proxy.settings import Settings

yaml: Any = pytest.importorskip("yaml")
FOLDER = Path(__file__).parents[2] / "examples" / "fleet"


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def test_the_config_has_settings_that_the_plugin_takes() -> None:
    pytest.importorskip("redis")
    (config,) = documents("config.yaml")
    settings = Settings(config["callback_settings"]["compacter"])
    assert "compacter.clients.litellm_proxy.compacter" in config["litellm_settings"]["callbacks"]
    assert settings.of("local", (None,), (None,))[1].options.compact_ratio == 0.6
    assert settings.of("chat", (None,), ("hash", "batch-jobs"))[0].enabled is False


def test_every_service_of_the_compose_file_can_be_started() -> None:
    (compose,) = documents("compose.yaml")
    services = compose["services"]
    assert set(services) == {"redis", "proxy", "front"}
    for service in services.values():
        assert "image" in service or (FOLDER / service["build"] / "Dockerfile").is_file()
        assert set(service.get("depends_on", ())) <= set(services)


def test_every_part_of_the_manifest_is_of_a_kind_and_selects_what_there_is() -> None:
    parts = documents("kubernetes.yaml")
    labels = {
        part["spec"]["template"]["metadata"]["labels"]["app"]
        for part in parts
        if part["kind"] == "Deployment"
    }
    services = {part["spec"]["selector"]["app"] for part in parts if part["kind"] == "Service"}
    assert [part["apiVersion"] for part in parts] == ["apps/v1", "v1", "apps/v1", "v1"]
    assert services == labels == {"compacter-proxy", "redis"}


THERE_ARE = {
    *(f"compacter_{name}_total" for name in COUNTERS),
    *(f"compacter_{name}" for name in GAUGES),
    "compacter_summary_seconds_bucket",
}


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    queries = " ".join(
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
    )
    asked = set(re.findall(r"compacter_[a-z_]+", queries))
    assert asked
    assert asked <= THERE_ARE


def test_every_alert_asks_for_metrics_that_there_are_and_has_a_remedy() -> None:
    (rules,) = documents("alerts.yaml")
    for group in rules["groups"]:
        for rule in group["rules"]:
            asked = set(re.findall(r"compacter_[a-z_]+", rule["expr"]))
            assert asked
            assert asked <= THERE_ARE
            assert rule["annotations"]["remedy"]


def test_the_manual_names_every_metric() -> None:
    manual = (FOLDER.parents[1] / "docs" / "gateway.md").read_text()
    assert [name for name in COUNTERS if f"compacter_{name}_total" not in manual] == []


def test_every_extra_but_the_proxys_is_pinned_with_the_tests() -> None:
    root = FOLDER.parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    pinned = re.search(r"^EXTRAS := (.*)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert pinned is not None
    assert set(pinned[1].split()) == set(extras) - {"proxy"}
