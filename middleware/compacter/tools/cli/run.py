"""``compacter run -- claude ...``: a program behind a pass-through of its own.

`serve` runs on a free port of this machine for as long as the program does. The program finds it by
the variables from which the vendors' SDKs and agent programs read an address; requests go on to the
address that these named before.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

USAGE = """\
compacter run [OPTIONS of compacter serve] -- PROGRAM [ARGUMENTS]
Runs a program behind `compacter serve`, and prints at the end what was compacted.
Example: compacter run --memory sqlite:compacter.db -- claude
"""
# Name of an upstream -> the variables that name it (the first one set counts), its address if none
# is set, and the part of its path that these have too.
_UPSTREAMS = {
    "openai": ("OPENAI_BASE_URL OPENAI_API_BASE", "https://api.openai.com/v1", "/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL ANTHROPIC_API_BASE", "https://api.anthropic.com", ""),
    "gemini": (
        "GOOGLE_GEMINI_BASE_URL GEMINI_API_BASE",
        "https://generativelanguage.googleapis.com",
        "",
    ),
}


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

        options = vars(parser().parse_args(words[:at]))
        options.setdefault("upstream", list(map(_upstream, _UPSTREAMS)))
        board = Board(lines.append)
        running = server(create_app(board=board, **options))
    except (CompacterError, ImportError) as error:
        sys.stderr.write(f"compacter run: {error}\n")
        return 2
    if Path(command[0]).stem == "claude":
        # https://github.com/anthropics/claude-code/issues/91689
        sys.stderr.write(
            "compacter: behind an address that is not Anthropic's, Claude Code assumes "
            "200,000 tokens for its window, whatever the model has\n"
        )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=running.run, args=([listener],), daemon=True)
        thread.start()
        code = _run(command, url)
        running.should_exit = True
        thread.join(10)
    lines.append(
        "{calls:,} calls, {rounds:,} compactions, {characters_saved:,} characters saved".format(
            **board.numbers()
        )
    )
    sys.stderr.write("".join(f"compacter: {line}\n" for line in lines))
    return code


def _upstream(name: str) -> str:
    variables, usual, _ = _UPSTREAMS[name]
    given = filter(None, map(os.environ.get, variables.split()))
    return f"{name}={next(given, usual)}"


def _run(command: list[str], url: str) -> int:
    """Run a program with the server's address in its environment; Ctrl-C in the terminal goes to
    it.
    """
    environment = dict(os.environ)
    for name, (variables, _, path) in _UPSTREAMS.items():
        environment |= dict.fromkeys(variables.split(), f"{url}/{name}{path}")
    # Codex and opencode read a setting and a configuration of their own.
    addresses = {name: {"options": {"baseURL": f"{url}/{name}/v1"}} for name in _UPSTREAMS}
    del addresses["gemini"]
    environment["OPENCODE_CONFIG_CONTENT"] = json.dumps({"provider": addresses})
    if Path(command[0]).stem == "codex":
        command[1:1] = ["-c", f'openai_base_url="{url}/openai/v1"']
    # Not SIG_IGN, which the program would inherit.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        return subprocess.call(command, env=environment)  # noqa: S603 - the user's own command
    except OSError as error:
        sys.stderr.write(f"compacter run: {command[0]}: {error.strerror}\n")
        return 2
    finally:
        signal.signal(signal.SIGINT, before)
