"""The command ``compacter``: explain errors, inspect and compact conversations, report on events.

Rich is imported when a command needs it, never by ``import compacter``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


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
    if words[:1] == ["serve"]:  # It needs only the extra ``serve``.
        from compacter.gateway.serve import main as serve

        raise SystemExit(serve(words[1:]))
    if words[:1] == ["run"]:  # As above.
        from compacter.tools.cli.run import main as run

        raise SystemExit(run(words[1:]))
    from compacter.tools.cli.app import run as run_command
    from compacter.tools.cli.terminal import leave_cleanly

    with leave_cleanly():
        raise SystemExit(run_command(words))
