"""The alternatives of a pattern, each with the pattern without it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

# The parser of the standard library: a pattern is changed as a tree, not as a text.
from re import _compiler, _parser  # type: ignore[attr-defined] # isort: skip

_NEVER = _parser.parse(r"(?!)")[0]


def _branches(tree: Any, *, exceptions: bool) -> Iterator[Any]:
    """Every alternative of a parsed pattern, at any depth, and what a look-ahead excludes, with its
    alternatives, if ``exceptions`` are wanted.
    """
    for operation, argument in tree:
        name = str(operation)
        if name == "BRANCH":
            for branch in argument[1]:
                yield branch
                yield from _branches(branch, exceptions=exceptions)
        elif name == "SUBPATTERN":
            yield from _branches(argument[3], exceptions=exceptions)
        elif name.endswith("REPEAT"):
            yield from _branches(argument[2], exceptions=exceptions)
        elif name == "ASSERT_NOT" and exceptions:
            yield argument[1]
            yield from _branches(argument[1], exceptions=exceptions)


def _text(tree: Any) -> str:
    """The parsed pattern in a form that tells a reader which alternative it is."""
    pieces = []
    for operation, argument in tree:
        name = str(operation)
        if name == "LITERAL":
            pieces.append(chr(argument))
        elif name == "BRANCH":
            pieces.append("|".join(map(_text, argument[1])))
        elif name == "SUBPATTERN":
            pieces.append(f"({_text(argument[3])})")
        elif name.endswith("REPEAT"):
            pieces.append(f"{_text(argument[2])}?")
        else:
            pieces.append("." if name in {"IN", "ANY"} else "")
    return "".join(pieces)


def without_each(
    pattern: str, *, exceptions: bool = False
) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Each alternative as a reader would know it, and the pattern without it."""
    for number in range(len(list(_branches(_parser.parse(pattern), exceptions=exceptions)))):
        tree = _parser.parse(pattern)
        branch = list(_branches(tree, exceptions=exceptions))[number]
        name = _text(branch)
        branch.data = [_NEVER]
        yield name, _compiler.compile(tree)
