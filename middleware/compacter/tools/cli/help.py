"""The help of a command: what each argument and option takes, in words, and its default.

Typer's own names a Python type behind each argument (``FILE <str>``) and writes a range as
``0<=x<=1``.
"""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand

_TYPE = re.compile(r" <[^<>]*>$")
_BETWEEN = re.compile(r"([\d.]+)<=x<=([\d.]+)")
_AT_LEAST = re.compile(r"x>=([\d.]+)")
_DEFAULT_IN_WORDS = re.compile(r"default: \((.*?)\)(?=[;\]])")
_SECTIONS = {"argument": "Arguments", "option": "Options"}


class Command(TyperCommand):
    """A command whose help names no type."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options, each with its default."""
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in _SECTIONS.values()}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None:
                row = _TYPE.sub("", record[0]), _say_plainly(record[1])
                sections[_SECTIONS[parameter.param_type_name]].append(row)
        for title, rows in sections.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _say_plainly(text: str) -> str:
    text = _BETWEEN.sub(r"\1 to \2", text)
    text = _AT_LEAST.sub(r"at least \1", text)
    return _DEFAULT_IN_WORDS.sub(r"default: \1", text)
