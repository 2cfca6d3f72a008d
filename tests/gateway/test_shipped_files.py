"""The files of examples/fleet say what they should, as far as that shows without a cluster."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.clients.loopback import free_port
from tests.gateway import chart

from compacter.gateway.litellm_proxy.settings import Settings
from compacter.gateway.metrics import COUNTERS, SECONDS
from compacter.gateway.serve.app import GAUGES
from compacter.gateway.serve.board import OWN_COUNTERS, Board
from compacter.gateway.serve.config import read_config
from compacter.gateway.serve.targets import make_setup

FOLDER = Path(__file__).parents[2] / "examples" / "fleet"


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


def test_the_config_has_settings_that_the_plugin_takes() -> None:
    pytest.importorskip("redis")
    (config,) = documents("config.yaml")
    given = config["callback_settings"]["compacter"]
    assert given["memory"]["address"] == "os.environ/REDIS_URL"  # The proxy puts in the value.
    given["memory"]["address"] = "redis://:secret@redis:6379/0"
    settings = Settings(given)
    assert "compacter.gateway.litellm_proxy.compacter" in config["litellm_settings"]["callbacks"]
    assert settings.of("local", (None,), (None,))[1].options.compact_ratio == 0.6
    assert settings.of("chat", (None,), ("hash", "batch-jobs"))[0].enabled is False


def test_every_service_of_the_compose_file_can_be_started() -> None:
    (compose,) = documents("compose.yaml")
    services = compose["services"]
    assert set(services) == {"redis", "proxy", "front"}
    for service in services.values():
        assert "image" in service or (FOLDER / service["build"] / "Dockerfile").is_file()
        assert set(service.get("depends_on", ())) <= set(services)
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


RELEASES = pytest.mark.parametrize("release", chart.CHARTS)


def manifest(release: str) -> list[Any]:
    return documents(chart.CHARTS[release][1].name)


def pods(release: str) -> list[Any]:
    parts = manifest(release)
    return [part["spec"]["template"] for part in parts if part["kind"] == "Deployment"]


def pod_of(release: str, name: str = "") -> Any:
    labels = {"app": name or release}
    return next(pod for pod in pods(release) if pod["metadata"]["labels"] == labels)


@RELEASES
def test_the_manifest_is_the_chart_filled_in(release: str) -> None:
    folder, file = chart.CHARTS[release]
    filled = chart.rendered(folder, release).partition("apiVersion")[2]
    assert file.read_text().partition("apiVersion")[2] == filled, "python -m tests.gateway.chart"


def test_both_charts_have_the_same_redis() -> None:
    one, other = (
        (folder / "templates" / "redis.yaml").read_text() for folder, _ in chart.CHARTS.values()
    )
    assert one == other


@RELEASES
@pytest.mark.parametrize("version", ["1.29", "1.34"])
def test_every_part_of_the_chart_is_what_kubernetes_takes(release: str, version: str) -> None:
    validate = pytest.importorskip("kubernetes_validate").validate
    parts = list(yaml.safe_load_all(chart.rendered(chart.CHARTS[release][0], "another")))
    assert len(parts) == 7
    for part in parts:
        validate(part, version, strict=True)


HELM = shutil.which("helm") or ""


@RELEASES
@pytest.mark.skipif(not HELM, reason="helm is not installed")
def test_helm_fills_in_the_chart_as_the_tests_do(release: str) -> None:
    folder = chart.CHARTS[release][0]
    subprocess.run([HELM, "lint", "--strict", folder], check=True)
    command = [HELM, "template", release, str(folder)]
    filled = subprocess.run(command, check=True, capture_output=True).stdout

    def by_name(parts: Iterable[Any]) -> dict[tuple[str, str], Any]:
        return {(part["kind"], part["metadata"]["name"]): part for part in parts}

    assert by_name(yaml.safe_load_all(filled)) == by_name(manifest(release))


@RELEASES
def test_every_selector_of_the_manifest_selects_pods_that_there_are(release: str) -> None:
    parts = manifest(release)
    labels = {pod["metadata"]["labels"]["app"] for pod in pods(release)}
    services = {part["spec"]["selector"]["app"] for part in parts if part["kind"] == "Service"}
    budgets = {
        part["spec"]["selector"]["matchLabels"]["app"]
        for part in parts
        if part["kind"] == "PodDisruptionBudget"
    }
    (policy,) = [part["spec"] for part in parts if part["kind"] == "NetworkPolicy"]
    allowed = policy["ingress"][0]["from"][0]["podSelector"]["matchLabels"]["app"]
    assert services == labels == {release, f"{release}-redis"}
    assert {allowed, *budgets} == {release}
    assert policy["podSelector"]["matchLabels"]["app"] == f"{release}-redis"


@RELEASES
def test_a_pod_has_longer_to_end_than_it_waits_before_it_begins_to(release: str) -> None:
    pod = pod_of(release)["spec"]
    (container,) = pod["containers"]
    pause = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] >= pause + 120
    if "--drain" in container["args"]:
        drain = int(container["args"][container["args"].index("--drain") + 1])
        assert pod["terminationGracePeriodSeconds"] >= pause + drain


@RELEASES
def test_no_container_may_do_more_than_it_needs(release: str) -> None:
    for pod in pods(release):
        assert pod["spec"]["automountServiceAccountToken"] is False
        allowed = pod["spec"]["securityContext"]
        assert allowed["runAsNonRoot"] is True
        assert allowed["runAsUser"] > 0
        assert allowed["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["spec"]["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert {"requests", "limits"} <= container["resources"].keys()
            probes = [container[name] for name in ("readinessProbe", "livenessProbe")]
            assert all(probe["timeoutSeconds"] > 1 for probe in probes)  # One is Kubernetes' own.


@RELEASES
def test_prometheus_finds_the_page_of_metrics(release: str) -> None:
    pod = pod_of(release)
    told = pod["metadata"]["annotations"]
    (port,) = pod["spec"]["containers"][0]["ports"]
    assert told["prometheus.io/scrape"] == "true"
    assert told["prometheus.io/port"] == str(port["containerPort"])
    assert told["prometheus.io/path"].startswith("/metrics")


def test_no_password_stands_in_the_arguments_of_a_process() -> None:
    """Kubernetes puts values for ``$(NAME)``, compose for ``${NAME}``; a shell does for ``$NAME``,
    and its own arguments keep the name.
    """
    containers = [pod["spec"]["containers"][0] for name in chart.CHARTS for pod in pods(name)]
    (compose,) = documents("compose.yaml")
    for container in (*containers, *compose["services"].values()):
        words = [*container.get("command", ()), *container.get("args", ())]
        assert not [word for word in words if re.search(r"\$[({]\w*PASSWORD", word)]


REDIS = shutil.which("redis-server") or ""


@pytest.mark.skipif(not REDIS, reason="redis-server is not installed")
def test_redis_starts_as_the_chart_has_it_and_wants_the_password() -> None:
    redis = pytest.importorskip("redis")
    from redis.backoff import ConstantBackoff
    from redis.retry import Retry

    pod = pod_of("compacter-serve", "compacter-serve-redis")
    *shell, script = pod["spec"]["containers"][0]["command"]
    port = free_port()
    command = [*shell, script.replace("END\n", f"END\nport {port}\n", 1)]
    with subprocess.Popen(command, env={**os.environ, "REDIS_PASSWORD": "a b$c"}) as process:
        try:
            patience = Retry(ConstantBackoff(0.1), 300)
            client = redis.Redis(port=port, password="a b$c", retry=patience)
            assert client.ping()
            assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "allkeys-lru"}
            with pytest.raises(redis.AuthenticationError):
                redis.Redis(port=port).ping()
            arguments = Path(f"/proc/{process.pid}/cmdline").read_bytes()
            assert b"redis-server" in arguments
            assert b"a b$c" not in arguments
        finally:
            process.kill()


def test_the_example_of_serve_is_read() -> None:
    settings = read_config(str(FOLDER / "serve.toml"))
    setup = make_setup(Board(), {**settings, "memory": None})
    assert [target.upstream.name for target in setup.targets] == ["openai", "anthropic"]


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
    assert {"compacter_prepared_used_total", "compacter_records_reused_total"} <= asked
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
