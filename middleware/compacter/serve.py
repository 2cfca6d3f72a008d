"""The pass-through server, by the name under which the manual has it; it is in `gateway.serve`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from compacter.gateway import serve as _serve

if TYPE_CHECKING:
    from compacter.gateway.serve import create_app, main, run

__all__ = ["create_app", "main", "run"]


def __getattr__(name: str) -> object:
    return getattr(_serve, name)


if __name__ == "__main__":  # ``python -m compacter.serve``
    sys.exit(_serve.main(sys.argv[1:]))
