"""Load in the background what the first compaction needs.

The detector's patterns take a fifth of a second to compile, the modules of recall and litellm's
price table nearly as long. A person notices that delay if the summary was made ahead, and it would
block an event loop for far too long.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from functools import cache
from importlib import import_module

from compacter.runtime.io import IO, in_thread


def warm_up() -> Future[None]:
    """Start loading in a thread, once per process, and return its future."""
    return _begin(os.getpid())


@cache
def _begin(process: int) -> Future[None]:  # noqa: ARG001 - a forked child begins again
    # If an import fails here, it raises where the module is used.
    return in_thread(_load)


async def wait_until_warm(io: IO) -> None:
    """Wait until all is loaded, so that an async program does not load it in its event loop."""
    if io.asynchronous and not (future := warm_up()).done():
        await io.wait(future, None)


def _load() -> None:
    from compacter.overflow.table import default_table
    from compacter.runtime.models import window

    window(None)
    for name in ("lines.turns", "compaction.run", "summary.write"):
        import_module(f"compacter.{name}")
    default_table()
