"""``python -m compacter``: the command."""

from __future__ import annotations

from compacter.tools.cli import main

if __name__ == "__main__":
    main()
