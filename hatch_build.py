"""What the package's page shows: the project's addresses, and the README with absolute links.

Run by hatchling at each build. The page of a package has no folder ``docs`` beside it, so a link or
a picture of the README needs the whole address. While the project has none
(``middleware/compacter/manual.py``), links become plain text and pictures are left out.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_PICTURE = re.compile(r"<picture>.*?</picture>\n*", re.DOTALL)
_IMAGE = re.compile(r"!\[([^\]]*)\]\((?!https?://)([^)\s]+)\)\n*")
_LINK = re.compile(r"(?<!!)\[((?:[^\[\]`]|`[^`]*`)*)\]\((?!https?://|#)([^)\s]+)\)")
_SOURCE = re.compile(r'(src|srcset)="(?!https?://)([^"]+)"')
_PAGES = {
    "Homepage": "",
    "Documentation": "/blob/{tag}/docs/index.md",
    "Changelog": "/blob/{tag}/CHANGELOG.md",
    "Source": "/tree/{tag}",
    "Issues": "/issues",
}


class ProjectPage(MetadataHookInterface):
    """Sets ``readme`` and ``urls``, which ``pyproject.toml`` names as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the two fields."""
        root = Path(self.root)
        address = address_in(root / "middleware" / "compacter" / "manual.py")
        tag = f"v{metadata['version']}"
        text = described((root / "README.md").read_text(encoding="utf-8"), address, tag)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = urls(address, tag)


def address_in(path: Path) -> str:
    """Return the constant ``ADDRESS`` of a file, without importing it."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "ADDRESS":
            return str(ast.literal_eval(node.value)).rstrip("/")
    raise ValueError(f"{path} has no ADDRESS")


def urls(address: str, tag: str) -> dict[str, str]:
    """Return the project's addresses by their labels; none without an address."""
    return {name: address + place.format(tag=tag) for name, place in _PAGES.items() if address}


def described(readme: str, address: str, tag: str) -> str:
    """Return the README as it is shown on the package's page."""
    if not address:
        return _LINK.sub(r"\1", _IMAGE.sub("", _PICTURE.sub("", readme)))
    absolute = _LINK.sub(rf"[\1]({address}/blob/{tag}/\2)", readme)
    absolute = _IMAGE.sub(rf"![\1]({address}/raw/{tag}/\2)\n\n", absolute)
    return _SOURCE.sub(rf'\1="{address}/raw/{tag}/\2"', absolute)
