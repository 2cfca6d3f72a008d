"""What a distribution brings with it, in the environment of whoever runs this: packages and
megabytes on the disk.

``python weigh.py llm-compacter`` prints a line of JSON. Counted are the files that the wheels list,
without the bytecode that is made of them later; followed are the requirements without extras of its own. A
second name is left out, with whatever nothing else needs.
"""

from __future__ import annotations

import json
import re
import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

OWN = Path(__file__).parents[2] / "middleware" / "compacter"


def needed(package: str, without: str = "") -> set[str]:
    """The distribution and all that it requires, by their normalised names."""
    found: set[str] = set()
    followed: set[tuple[str, str]] = set()
    pending = [(package, "")]
    while pending:
        wanted, extra = pending.pop()
        name = re.sub(r"[-_.]+", "-", wanted).lower()
        if (name, extra) in followed or name == without:
            continue
        followed.add((name, extra))
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # For another system, or optional in a way that metadata cannot say.
        found.add(name)
        for line in requires:
            one = Requirement(line)
            if one.marker is None or one.marker.evaluate({"extra": extra}):
                pending += [(one.name, named) for named in ("", *one.extras)]
    return found


def size(package: str) -> int:
    """Bytes. The project itself is installed from its sources here."""
    if package == "llm-compacter":
        return sum(
            path.stat().st_size
            for path in OWN.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        )
    files = metadata.files(package) or []
    paths = (Path(str(file.locate())) for file in files if file.suffix != ".pyc")
    return sum(path.stat().st_size for path in paths if path.is_file())


def main() -> None:
    """Print it."""
    names = needed(*sys.argv[1:])
    sizes = {name: size(name) for name in names}
    largest = max(sizes, key=lambda name: sizes[name])
    print(
        json.dumps(
            {
                "packages": len(names),
                "mb": sum(sizes.values()) / 1e6,
                "largest": [largest, sizes[largest] / 1e6],
            }
        )
    )


if __name__ == "__main__":
    main()
