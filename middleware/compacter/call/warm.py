"""Load what the first compaction needs, before it is needed.

The detector's patterns take a fifth of a second to compile, the modules of recall and litellm's
price table nearly as long. A person notices that delay if the summary was made ahead, and it would
block an event loop for far too long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module

from compacter.overflow import TokenLimit
from compacter.runtime.io import IO


@cache
def load() -> None:
    """Import the modules, load litellm's price table and compile the patterns that a token limit
    needs. A second call does nothing.
    """
    from compacter.overflow.table import default_table
    from compacter.runtime.models import window

    window(None)
    for name in ("lines.turns", "compaction.run", "summary.write"):
        import_module(f"compacter.{name}")
    default_table()


async def detected(
    io: IO, detect: Callable[[BaseException], TokenLimit | None], error: Exception
) -> TokenLimit | None:
    """Return the token limit that an exception states; ``None`` for any other exception. In an
    async program the detector runs in a thread, and the modules that handle a token limit are
    imported in the same thread, so that the event loop does not wait for either.
    """

    def find() -> TokenLimit | None:
        if io.asynchronous:
            load()
        return detect(error)

    return await io.thread(find)
