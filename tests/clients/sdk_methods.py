"""The methods of an SDK that may send a conversation."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

NAMES = frozenset({"messages", "input", "contents", "items", "requests"})
"""Names of parameters that may contain a conversation."""


def methods_of(resource: object, below: str, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the public methods of a client with a parameter that may contain a conversation.

    Args:
        resource: The client, or one of its resources.
        below: Package of the resources' classes.
        path: Attributes that lead from the client to ``resource``.
    """
    for name in dir(resource):
        if name.startswith(("_", "with_")) or name in ("parent_ref", "sdk_configuration"):
            continue
        try:
            member = getattr(resource, name)
        except Exception:  # noqa: BLE001, S112 - a property may need configuration
            continue
        if inspect.ismethod(member):
            if NAMES & set(inspect.signature(member).parameters):
                yield ".".join((*path, name))
        elif type(member).__module__.startswith(below) and len(path) < 4:
            yield from methods_of(member, below, (*path, name))
