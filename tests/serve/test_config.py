"""Options of a file count, whatever their name, and the command line wins over them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compacter.gateway.serve.server import Server
from compacter.serve import main, run

UPSTREAM = "http://127.0.0.1:9/v1"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The applications that would run."""
    applications: list[Any] = []
    monkeypatch.setattr(Server, "run", lambda self, sockets: applications.append(self.config.app))
    return applications


def option(begun: list[Any], name: str) -> object:
    return getattr(begun[-1].state.gateway.setup.targets[0].state.options, name)


@pytest.mark.parametrize(
    ("name", "short", "value", "default"),
    [("compact_ratio", "ratio", 0.9, 0.7), ("prepare_tokens", "prepare", 0.5, 0.7)],
)
def test_an_option_counts_under_both_of_its_names(
    begun: list[Any], tmp_path: Path, name: str, short: str, value: float, default: float
) -> None:
    file = tmp_path / "serve.toml"

    def started(start: Callable[[], object]) -> object:
        start()
        return option(begun, name)

    file.write_text(f'upstream = "{UPSTREAM}"\n[options]\n{name} = {value}\n')
    arguments = ["--config", str(file), "--port=0"]
    assert started(lambda: main(arguments)) == value
    assert started(lambda: main([*arguments, f"--{short}=0.3"])) == 0.3
    assert started(lambda: main(["--upstream", UPSTREAM, "--port=0"])) == default
    for keyword in (name, short):
        given: dict[str, Any] = {keyword: value}
        assert started(lambda: run(upstream=UPSTREAM, port=0, **given)) == value  # noqa: B023


def test_switches_and_names_come_from_the_command_line(begun: list[Any]) -> None:
    main(["--upstream", f"one={UPSTREAM}", "--port=0", "--dry-run", "--summarizer=extractive"])
    (target,) = begun[-1].state.gateway.setup.targets
    assert (target.upstream.name, target.dry_run) == ("one", True)
    assert target.state.options.summarizer == "extractive"
