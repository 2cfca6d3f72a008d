"""The command ``compacter``: explain an error, look at a conversation, compact it, picture what happened.

Typer and rich are needed (the extra ``cli``) and are imported when the command starts, never by ``import compacter``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

NEEDED = ("typer", "rich")


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command and leave with its exit code.

    0: done. 1: the answer is no (no token limit, nothing found, a bound not met). 2: a mistake of the user, or a file
    that cannot be read or written. 3: the model that was asked has failed. 130: interrupted.

    Args:
        argv: The words after the command's name; ``None`` for those of this process.

    Raises:
        SystemExit: Always, with the exit code.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["serve"]:  # Its extra is enough for it.
        from compacter.serve import main as serve

        raise SystemExit(serve(words[1:]))
    try:
        from compacter.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        sys.stderr.write('compacter: the command needs typer and rich: pip install "llm-compacter[cli]"\n')
        raise SystemExit(2) from None
    from compacter.cli.terminal import leave_cleanly

    with leave_cleanly():
        app(args=words, prog_name="compacter")
