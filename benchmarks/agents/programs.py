"""How each agent program is started: for one task, without a person, on a server of one's own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from model import ASKED

# An environment of their own, beside that of the tests: `make agents`.
_HOME = Path(f"{sys.prefix}-agents")
_BIN = _HOME / "node_modules" / ".bin"
# Name of a model whose window none of the programs knows.
_MODEL = "pretend"


@dataclass(frozen=True)
class Start:
    """A command line, and what it finds around it."""

    command: list[str | Path]
    environment: dict[str, str]


@dataclass(frozen=True)
class Program:
    """An agent program."""

    name: str
    protocol: str
    executable: Path
    start: Callable[[Path, str, Path], Start]
    """Function of the executable, a server's URL and an empty folder."""

    @property
    def installed(self) -> bool:
        """Whether it is there."""
        return self.executable.exists()


def _write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))


def _codex(program: Path, url: str, home: Path) -> Start:
    settings = {
        "model_provider": '"p"',
        "model_providers.p.name": '"p"',
        "model_providers.p.base_url": f'"{url}/v1"',
        "model_providers.p.wire_api": '"responses"',
        "model_providers.p.env_key": '"KEY"',
    }
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    flags = ["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", _MODEL]
    return Start(
        [program, "exec", *flags, *options, ASKED], {"CODEX_HOME": str(home), "KEY": "sk-agent"}
    )


def _claude(program: Path, url: str, home: Path) -> Start:
    environment = {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-agent",
        "CLAUDE_CONFIG_DIR": str(home / "claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    flags = ["--model", "claude-sonnet-4-5", "--allowedTools", "Bash"]
    return Start([program, "-p", ASKED, *flags], environment)


def _continue(program: Path, url: str, home: Path) -> Start:
    config = home / "config.yaml"
    model = {
        "name": "p",
        "provider": "openai",
        "model": _MODEL,
        "apiBase": f"{url}/v1",
        "apiKey": "sk-agent",
        "capabilities": ["tool_use"],
        "roles": ["chat"],
    }
    _write(config, {"name": "p", "version": "1.0.0", "schema": "v1", "models": [model]})
    environment = {"CONTINUE_GLOBAL_DIR": str(home / "continue"), "CONTINUE_TELEMETRY_ENABLED": "0"}
    return Start([program, "--config", config, "--auto", "-p", ASKED], environment)


def _pi(program: Path, url: str, home: Path) -> Start:
    model = {
        "id": _MODEL,
        "name": "p",
        "reasoning": False,
        "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": 128_000,
        "maxTokens": 4_096,
    }
    provider = {
        "baseUrl": f"{url}/v1",
        "apiKey": "sk-agent",
        "api": "openai-completions",
        "models": [model],
    }
    _write(home / ".pi" / "agent" / "models.json", {"providers": {"p": provider}})
    flags = ["--provider", "p", "--model", _MODEL]
    return Start([program, *flags, "-p", ASKED], {"PI_SKIP_VERSION_CHECK": "1", "PI_OFFLINE": "1"})


def _llm(program: Path, url: str, home: Path) -> Start:
    model = {
        "model_id": _MODEL,
        "model_name": _MODEL,
        "api_base": f"{url}/v1",
        "supports_tools": True,
    }
    _write(home / "extra-openai-models.yaml", [model])
    tool = (
        "import subprocess\n"
        "def bash(command: str) -> str:\n"
        '    "Run a command."\n'
        "    return subprocess.run(command, shell=True, capture_output=True, text=True).stdout\n"
    )
    flags = ["-m", _MODEL, "--functions", tool, "--chain-limit", "0"]
    environment = {"LLM_USER_PATH": str(home), "OPENAI_API_KEY": "sk-agent"}
    return Start([program, *flags, ASKED], environment)


def _opencode(program: Path, url: str, home: Path) -> Start:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "sk-agent"},
        "models": {_MODEL: {"name": "p", "tool_call": True}},
    }
    config = {"provider": {"p": provider}, "autoupdate": False, "share": "disabled"}
    _write(home / "opencode.json", config)
    environment = {
        "OPENCODE_CONFIG": str(home / "opencode.json"),
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }
    return Start([program, "run", "-m", f"p/{_MODEL}", ASKED], environment)


def _qwen(program: Path, url: str, home: Path) -> Start:
    environment = {
        "OPENAI_API_KEY": "sk-agent",
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_MODEL": _MODEL,
    }
    _write(
        home / ".qwen" / "settings.json",
        {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}},
    )
    return Start([program, "--auth-type", "openai", "--yolo", "-p", ASKED], environment)


def _gemini(program: Path, url: str, home: Path) -> Start:
    environment = {
        "GEMINI_API_KEY": "sk-agent",
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    _write(home / ".gemini" / "settings.json", settings)
    return Start([program, "-m", "gemini-2.5-flash", "--yolo", "-p", ASKED], environment)


PROGRAMS = (
    Program("Codex", "responses", _BIN / "codex", _codex),
    Program("Claude Code", "messages", _BIN / "claude", _claude),
    Program("Continue", "chat", _BIN / "cn", _continue),
    Program("pi", "chat", _BIN / "pi", _pi),
    Program("llm", "chat", _HOME / "bin" / "llm", _llm),
    Program("opencode", "chat", _BIN / "opencode", _opencode),
    Program("qwen-code", "chat", _BIN / "qwen", _qwen),
    Program("gemini-cli", "Gemini", _BIN / "gemini", _gemini),
)


def clean_environment(home: Path, start: Start) -> dict[str, str]:
    """Return the environment of a run: nothing of the user's, no keys."""
    kept = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "HOME": str(home)}
    if sys.platform == "win32":
        kept["SYSTEMROOT"] = os.environ["SYSTEMROOT"]
    return {**kept, "NO_COLOR": "1", **start.environment}
