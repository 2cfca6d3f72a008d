"""``compacter run -- claude ...``: a program behind a pass-through of its own.

`serve` runs on a free port of this machine for as long as the program does. The program finds it by
the variables from which the vendors' SDKs and agent programs read an address; requests go on to the
address that these named before.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from compacter.gateway.serve.upstream import Upstream

USAGE = """\
compacter run [OPTIONS of compacter serve] -- PROGRAM [ARGUMENTS]
Runs a program behind `compacter serve`, and prints at the end what was compacted.
Example: compacter run --memory sqlite:compacter.db -- claude
"""
# Name of an upstream -> the variables that name it (the first one set counts), and its address if
# none is set.
_UPSTREAMS = {
    "openai": ("OPENAI_BASE_URL OPENAI_API_BASE", "https://api.openai.com/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL ANTHROPIC_API_BASE", "https://api.anthropic.com"),
    "gemini": (
        "GOOGLE_GEMINI_BASE_URL GEMINI_API_BASE",
        "https://generativelanguage.googleapis.com",
    ),
}
# Signals that ask a program to end, as far as the system has them.
_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
_HERE = "127.0.0.1,localhost"


def main(words: Sequence[str]) -> int:
    """Run the program, and return its exit code; 2 for a mistake in the arguments."""
    at = words.index("--") if "--" in words else len(words)
    command = list(words[at + 1 :])
    if not command:
        is_asked = "--help" in words
        (sys.stdout if is_asked else sys.stderr).write(USAGE)
        return 0 if is_asked else 2
    from compacter.errors import CompacterError

    lines: list[str] = []
    try:
        from compacter.gateway.serve import create_app
        from compacter.gateway.serve.board import Board
        from compacter.gateway.serve.config import parser
        from compacter.gateway.serve.server import server

        given = vars(parser().parse_args(words[:at]))
        options = {"upstream": list(map(_upstream, _UPSTREAMS)), **given}
        board = Board(lines.append)
        app = create_app(board=board, **options)
        running = server(app)
    except (CompacterError, ImportError) as error:
        _print(f"compacter run: {error}")
        return 2
    if Path(command[0]).stem == "claude":
        # https://github.com/anthropics/claude-code/issues/91689
        _print(
            "compacter: behind an address that is not Anthropic's, Claude Code assumes "
            "200,000 tokens for its window, whatever the model has"
        )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=running.run, args=([listener],), daemon=True)
        thread.start()
        bases = _bases(url, app.state.gateway.setup.settings.upstream, is_set="upstream" in given)
        code = _run(_with_settings(command, bases), _environment(bases))
        running.should_exit = True
        thread.join(10)
    lines.append(
        "{calls:,} calls, {rounds:,} compactions, {characters_saved:,} characters saved".format(
            **board.numbers()
        )
    )
    for line in lines:
        _print(f"compacter: {line}")
    return code


def _print(line: str) -> None:
    try:
        sys.stderr.write(f"{line}\n")
    except (OSError, AttributeError):
        # The terminal was closed, or there was none: the exit code is still the program's.
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _upstream(name: str) -> str:
    variables, usual = _UPSTREAMS[name]
    given = filter(None, map(os.environ.get, variables.split()))
    return f"{name}={next(given, usual)}"


def _bases(url: str, upstreams: Iterable[Upstream], *, is_set: bool) -> dict[str, str]:
    """Return the base URL that the SDKs of each vendor get; none for a vendor without an upstream.

    Its path is the path of the upstream, to which the SDKs append theirs. With ``--upstream``
    (``is_set``) it may have a version, which only OpenAI's SDKs expect there.
    """
    bases = {}
    for vendor in _UPSTREAMS:
        upstream = next((one for one in upstreams if one.name in (vendor, "")), None)
        if upstream is not None:
            has_path = vendor == "openai" or not is_set
            path = urlsplit(upstream.base_url).path if has_path else ""
            bases[vendor] = f"{url}/{upstream.name}".rstrip("/") + path
    return bases


def _environment(bases: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which a program finds this server."""
    changed = dict(os.environ)
    for vendor, base in bases.items():
        changed |= dict.fromkeys(_UPSTREAMS[vendor][0].split(), base)
    # opencode reads a configuration of its own; its base URLs have Anthropic's version too.
    versions = {"openai": "", "anthropic": "/v1"}
    providers = {
        vendor: {"options": {"baseURL": f"{bases[vendor]}{version}"}}
        for vendor, version in versions.items()
        if vendor in bases
    }
    changed["OPENCODE_CONFIG_CONTENT"] = json.dumps({"provider": providers})
    # Some programs read the one, some the other; some know an asterisk only where it stands alone.
    for name, other in (("NO_PROXY", "no_proxy"), ("no_proxy", "NO_PROXY")):
        direct = os.environ.get(name) or os.environ.get(other, "")
        changed[name] = direct if "*" in direct else f"{direct},{_HERE}".lstrip(",")
    return changed


def _with_settings(command: list[str], bases: Mapping[str, str]) -> list[str]:
    """Return the command with the setting from which Codex reads an address."""
    if Path(command[0]).stem != "codex" or "openai" not in bases:
        return command
    return [command[0], "-c", f'openai_base_url="{bases["openai"]}"', *command[1:]]


def _run(command: list[str], environment: dict[str, str]) -> int:
    """Run a program until it ends, and return its exit code, as a shell does: 128 and the number of
    the signal that ended it. Signals that ask this process to end are passed on.
    """
    program: subprocess.Popen[bytes] | None = None
    early: list[int] = []

    def pass_on(number: int, _: object) -> None:
        if program is None:
            early.append(number)
        elif number != signal.SIGINT or not _is_typed():
            with contextlib.suppress(OSError):  # It may belong to another user.
                program.send_signal(number)

    # What is ignored, as after ``nohup``, stays so in the program too.
    numbers = [getattr(signal, name) for name in _SIGNALS if hasattr(signal, name)]
    before = {
        number: signal.signal(number, pass_on)
        for number in numbers
        if signal.getsignal(number) != signal.SIG_IGN
    }
    try:
        program = subprocess.Popen(command, env=environment)  # noqa: S603 - the user's own command
        for number in early:
            pass_on(number, None)
        code = program.wait()
    except OSError as error:
        _print(f"compacter run: {command[0]}: {error.strerror}")
        return 2
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def _is_typed() -> bool:
    """Return whether Ctrl-C in a terminal has sent a signal, and so to the program too."""
    with contextlib.suppress(OSError, AttributeError), Path("/dev/tty").open() as terminal:
        return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    return False
