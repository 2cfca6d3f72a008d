"""Session files of coding agents: read the messages that the model would be sent next, and write
them again.

Each agent has a file: ``claude_code``, ``codex``, ``pi`` and ``opencode``. What the first three
share, as they write one JSON object a line, is in ``lines``. Messages that the agent itself has
compacted, and abandoned branches, are left out. A written file keeps the lines of unchanged
messages, and repairs the links between lines. Lines of a kind that is not known here are skipped,
and named in ``Session.skipped``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compacter.tools.cli.sessions import claude_code, codex, pi
from compacter.tools.cli.sessions.lines import Line, Session

_AGENTS: tuple[tuple[Callable[[Line], bool], Callable[[list[Line]], Session]], ...] = (
    (pi.is_sign, pi.read),
    (codex.is_sign, codex.read),
    (claude_code.is_sign, claude_code.read),
)

_RECOGNISED = 20
"""Lines that are looked at to recognise the agent: some write a few of no message first."""


def from_lines(values: Sequence[Any]) -> Session | None:
    """Return the session in these lines, or ``None`` if they are not from a known agent."""
    lines = [value for value in values if isinstance(value, dict)]
    for line in lines[:_RECOGNISED]:
        for is_sign, read in _AGENTS:
            if is_sign(line):
                return read(lines)
    return None
