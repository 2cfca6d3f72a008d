"""What a program's first compaction would have to wait for, loaded while nobody waits.

The detector's patterns take a fifth of a second to compile, the modules of recall and litellm's
price table nearly as long: as much as a person notices, beside a summary that was made ahead.
"""

from __future__ import annotations

from concurrent.futures import Future
from functools import cache
from importlib import import_module

from compacter.io import in_thread


@cache
def warm_up() -> Future[None]:
    """Begin to load it in a thread, once in a process. Returns at once what is under way.

    A process that forks meanwhile loads it in the child when it is needed.
    """
    # What cannot be loaded is told where it is used.
    return in_thread(_load)


def _load() -> None:
    from compacter.models import known
    from compacter.overflow.table import default_table

    known()
    for name in ("recall.quotes", "compaction.run", "summary.write"):
        import_module(f"compacter.{name}")
    default_table()
