"""The command ``compacter``: explain errors, inspect and compact conversations, report on events.

Rich is imported when a command needs it, never by ``import compacter``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module

_OWN_PARSERS = {"serve": "compacter.gateway.serve", "run": "compacter.tools.cli.run"}
"""Commands with a command line of their own, which need only the extra ``serve``, and their
modules."""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and exit with its exit code.

    0: success. 1: a negative answer (not a token limit, nothing found, a threshold not met). 2: a
    usage error, or a file that cannot be read or written. 3: the summarizing model failed. 130:
    interrupted.

    Args:
        argv: Arguments after the command's name; ``None`` for those of this process.

    Raises:
        SystemExit: Always, with the exit code.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    for name, module in _OWN_PARSERS.items():
        if words[:1] == [name]:
            raise SystemExit(import_module(module).main(words[1:]))
    from compacter.tools.cli.app import run as run_command
    from compacter.tools.cli.terminal import leave_cleanly

    with leave_cleanly():
        raise SystemExit(run_command(words))
