"""``python -m compacter.gateway.serve``."""

from __future__ import annotations

import sys

from compacter.gateway.serve import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
