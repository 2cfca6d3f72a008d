"""The address of the project, and of the pages of its manual."""

from __future__ import annotations

ADDRESS = ""
"""Where the project lives, such as ``https://github.com/owner/name``; empty until that is known.

``hatch_build.py`` reads it for the package's page, and ``make release-check`` refuses to publish
without it."""


def page(name: str, anchor: str = "") -> str:
    """Return the address of a page of the manual; without an address, its place in the sources."""
    place = f"docs/{name}.md{f'#{anchor}' if anchor else ''}"
    return f"{ADDRESS}/blob/main/{place}" if ADDRESS else place
