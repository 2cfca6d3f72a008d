"""The files of examples/fleet say what they should, as far as that shows without a cluster."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.gateway import chart

from compacter.gateway.litellm_proxy.settings import Settings
from compacter.gateway.metrics import COUNTERS, SECONDS
from compacter.gateway.serve.app import GAUGES
from compacter.gateway.serve.board import OWN_COUNTERS

FOLDER = Path(__file__).parents[2] / "examples" / "fleet"


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def test_the_config_has_settings_that_the_plugin_takes() -> None:
    pytest.importorskip("redis")
    (config,) = documents("config.yaml")
    given = config["callback_settings"]["compacter"]
    assert given["memory"]["redis"] == "os.environ/REDIS_URL"  # The proxy puts in the value.
    given["memory"]["redis"] = "redis://:secret@redis:6379/0"
    settings = Settings(given)
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


def test_the_manifest_is_the_chart_filled_in() -> None:
    manifest = (FOLDER / "kubernetes.yaml").read_text()
    again = "run: python -m tests.gateway.chart"
    assert manifest.partition("apiVersion")[2] == chart.rendered().partition("apiVersion")[2], again


@pytest.mark.parametrize("version", ["1.29", "1.34"])
def test_every_part_of_the_chart_is_what_kubernetes_takes(version: str) -> None:
    validate = pytest.importorskip("kubernetes_validate").validate
    parts = list(yaml.safe_load_all(chart.rendered("another")))
    assert len(parts) == 7
    for part in parts:
        validate(part, version, strict=True)


HELM = shutil.which("helm") or ""


@pytest.mark.skipif(not HELM, reason="helm is not installed")
def test_helm_fills_in_the_chart_as_the_tests_do() -> None:
    subprocess.run([HELM, "lint", "--strict", chart.CHART], check=True)
    command = [HELM, "template", "compacter-proxy", str(chart.CHART)]
    filled = subprocess.run(command, check=True, capture_output=True).stdout

    def by_name(parts: Iterable[Any]) -> dict[tuple[str, str], Any]:
        return {(part["kind"], part["metadata"]["name"]): part for part in parts}

    assert by_name(yaml.safe_load_all(filled)) == by_name(documents("kubernetes.yaml"))


def test_every_selector_of_the_manifest_selects_pods_that_there_are() -> None:
    parts = documents("kubernetes.yaml")
    labels = {
        part["spec"]["template"]["metadata"]["labels"]["app"]
        for part in parts
        if part["kind"] == "Deployment"
    }
    services = {part["spec"]["selector"]["app"] for part in parts if part["kind"] == "Service"}
    budgets = {
        part["spec"]["selector"]["matchLabels"]["app"]
        for part in parts
        if part["kind"] == "PodDisruptionBudget"
    }
    (policy,) = [part["spec"] for part in parts if part["kind"] == "NetworkPolicy"]
    allowed = policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"]["app"]
    assert services == labels == {"compacter-proxy", "compacter-proxy-redis"}
    assert {allowed, *budgets} == {"compacter-proxy"}
    assert policy["podSelector"]["matchLabels"]["app"] == "compacter-proxy-redis"


def test_a_pod_has_longer_to_end_than_it_waits_before_it_begins_to() -> None:
    (proxy, *_) = documents("kubernetes.yaml")
    pod = proxy["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] >= pause + 120


def test_an_action_of_a_template_that_is_not_read_here_is_refused() -> None:
    with pytest.raises(ValueError, match="not known"):
        chart.fill("a: {{ quote .Values.image }}", {"Values": {"image": "x"}})


THERE_ARE = {
    *(f"compacter_{name}_total" for name in (*COUNTERS, *OWN_COUNTERS)),
    *(f"compacter_{name}" for name in GAUGES),
    *(f"compacter_{name}_bucket" for name in SECONDS),
}


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    queries = " ".join(
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
    )
    asked = set(re.findall(r"compacter_[a-z_]+", queries))
    assert asked
    assert asked <= THERE_ARE


def test_the_dashboard_shows_what_an_operator_has_to_see() -> None:
    panels = json.loads((FOLDER / "grafana.json").read_text())["panels"]
    asked = set(re.findall(r"compacter_[a-z_]+", str([panel["targets"] for panel in panels])))
    assert {f"compacter_{name}" for name in GAUGES} <= asked
    prepared = {"compacter_prepared_used_total", "compacter_prepared_unused_total"}
    assert {*prepared, "compacter_records_reused_total"} <= asked
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(set(places)) == len(places) == len({panel["id"] for panel in panels})


def test_every_alert_asks_for_metrics_that_there_are_and_has_a_remedy() -> None:
    (rules,) = documents("alerts.yaml")
    for group in rules["groups"]:
        for rule in group["rules"]:
            asked = set(re.findall(r"compacter_[a-z_]+", rule["expr"]))
            assert asked
            assert asked <= THERE_ARE
            assert rule["annotations"]["remedy"]


def test_the_manual_names_every_metric() -> None:
    pages = (FOLDER.parents[1] / "docs" / name for name in ("gateway.md", "serve.md"))
    manual = "".join(page.read_text() for page in pages)
    named = {name.removesuffix("_bucket") for name in THERE_ARE}
    assert [name for name in named if f"`{name}" not in manual] == []


def test_every_extra_but_the_proxys_is_pinned_with_the_tests() -> None:
    root = FOLDER.parents[1]
    extras = tomllib.loads((root / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    pinned = re.search(r"^EXTRAS := (.*)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert pinned is not None
    assert set(pinned[1].split()) == set(extras) - {"proxy"}
