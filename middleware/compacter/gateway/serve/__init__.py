"""A local pass-through server that compacts, for programs in any language and for tools that cannot
be changed.

Start it with ``compacter serve --upstream https://api.openai.com/v1``, or ``python -m
compacter.serve``, and set a program's base URL to it. It needs the extra ``serve``. The manual's
page is ``docs/serve.md``.

The way of a request: ``server`` and ``guard`` take it in, ``gateway`` handles it and sends signs of
life, ``protocols`` recognises it, ``callers`` identifies its sender, ``exchange`` sends it as a
wrapped call, ``answers`` inspects the responses. Beside it: ``app`` has the own pages (``board``);
``command``, ``config`` and ``targets`` start the server, ``transport`` keeps connections to the
upstreams.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compacter.gateway.serve.command import load_app, main, run

if TYPE_CHECKING:
    from compacter.gateway.serve.app import create_app

__all__ = ["create_app", "main", "run"]


def __getattr__(name: str) -> object:
    if name != "create_app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return load_app().create_app
