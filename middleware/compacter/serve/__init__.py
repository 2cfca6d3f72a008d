"""A local pass-through server that compacts, for programs in any language and for tools that cannot be changed.

Start it with ``compacter serve --upstream https://api.openai.com/v1``, or ``python -m compacter.serve``, and set a
program's base URL to it. It needs the extra ``serve``. The manual's page is ``docs/serve.md``.

``upstream`` parses the targets, ``exchange`` carries out one call, ``gateway`` is the ASGI application, ``board`` keeps
its counts and events, and ``command`` starts it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compacter.serve.command import main, run
    from compacter.serve.gateway import create_app

__all__ = ["create_app", "main", "run"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name != "create_app":
        from compacter.serve import command

        return getattr(command, name)
    try:
        import_module("uvicorn")  # The server is part of the extra.
        from compacter.serve.gateway import create_app
    except ModuleNotFoundError as error:
        if str(error.name).startswith("compacter"):
            raise
        raise ImportError('compacter serve needs: pip install "llm-compacter[serve]"') from error
    return create_app
