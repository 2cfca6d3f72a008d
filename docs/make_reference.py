"""Writes `reference/`: every public name, argument, attribute and event field, from the docstrings.

python docs/make_reference.py            write docs/reference/*.md
python docs/make_reference.py --check    exit with 1 where one is out of date
"""

from __future__ import annotations

import ast
import enum
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel

import compacter
from compacter import (
    errors,
    events,
    memory,
    options,
    overflow,
    redaction,
    search_tool,
    serve,
    spending,
    testing,
)
from compacter.by_hand import ByHand
from compacter.lines import passages
from compacter.options import Options

FOLDER = Path(__file__).parent / "reference"
HEAD = """\
# Reference

Every public name, made from the docstrings by `python docs/make_reference.py`. Sizes are in
characters, limits in tokens and times in seconds, unless a line says otherwise.
"""
TITLES = {
    "compacter": "Compacter and its options",
    "history": "History",
    "strategies": "Strategies, plans and results",
    "recall": "Recall",
    "memory": "Memories",
    "events": "Events and totals",
    "errors": "Errors",
    "detector": "The detector",
    "redaction": "Redaction",
    "serve": "Serve",
    "testing": "Testing",
}
_PLACES = {
    "decorator": "compacter",
    "search_tool": "recall",
    "options": "compacter",
    "spending": "compacter",
    "compaction": "strategies",
    "overflow": "detector",
}
"""Rooms of the package whose page has another name."""
_SECTIONS = ("Args:", "Raises:")
_ENTRY = re.compile(r" {4}(\*{0,2}[\w.]+): (\S.*)")
"""An argument or an exception, with what it is. Further lines of it are indented by more."""
_WIDTH = 88
"""Characters of a signature in one line; a longer one has a line for each argument."""
_TABLE = ["| | |", "|---|---|"]


def attributes(kind: type) -> dict[str, str]:
    """Names that a class and its bases in the package annotate, each with the text below it."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("compacter"):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0]
        statements = body.body if isinstance(body, ast.ClassDef) else []
        for statement, below in zip(statements, [*statements[1:], None], strict=True):
            if not isinstance(statement, ast.AnnAssign) or not isinstance(
                statement.target, ast.Name
            ):
                continue
            name = statement.target.id
            if name.startswith("_") or name == "model_config":
                continue
            text = found.get(name, "")
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                text = str(below.value.value)
            found[name] = " ".join(text.split())
    return found


def constructor(kind: type) -> Any | None:
    """A constructor that is written out; a dataclass and a model take the attributes that they
    list.
    """
    made = getattr(kind, "__init__" if "__init__" in vars(kind) else "__new__")
    written = inspect.unwrap(made)
    is_written = (
        inspect.isfunction(written)
        and not issubclass(kind, BaseModel)
        and (written.__code__.co_filename == inspect.getsourcefile(kind))
    )
    return made if is_written else None


def methods(kind: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class itself defines, in the order of the source; after
    those of the list that ``History`` is, and before those of ``Compacter`` on a list by hand.
    """
    own = dict(vars(kind))
    if issubclass(kind, ByHand):
        own.update(vars(ByHand))
    for name, member in own.items():
        if name.startswith("_") or isinstance(member, enum.Enum):
            continue
        inner = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if isinstance(inner, property) or inspect.isfunction(inner):
            yield name, inner


def _call(name: str, function: Any) -> list[str]:
    """How a function is called, as a block of code of its own; nothing for what is not called.

    A heading has the bare name: it is also a line of the navigation, and cut there.
    """
    if function is None:
        return []
    return ["```py", _signature(name, function), "```", ""]


def document(name: str, thing: Any) -> str:
    """The section of one public name."""
    shown = (
        thing
        if inspect.isfunction(thing)
        else constructor(thing)
        if inspect.isclass(thing)
        else None
    )
    lines = [f"## `{name}`", "", *_call(name, shown), _text(thing), ""]
    if not inspect.isclass(thing):
        return "\n".join(lines)
    made = constructor(thing)
    if made and made.__doc__:
        lines += [_text(made), ""]
    lines += _table(attributes(thing))
    for key, member in methods(thing):
        method = None if isinstance(member, property) else member
        lines += [f"### `{name}.{key}`", "", *_call(key, method), _text(member), ""]
    return "\n".join(lines)


def public() -> dict[str, dict[str, Any]]:
    """Everything that the manual answers for, by module: only what a module itself offers."""
    names = {name: getattr(compacter, name) for name in compacter.__all__ if name != "__version__"}
    modules = {
        "compacter": names,
        "compacter.errors": {
            "ConfigurationError": errors.ConfigurationError,
            "FunctionError": errors.FunctionError,
            "SpendingError": errors.SpendingError,
        },
        "compacter.events": {**_classes(events), "Totals": events.Totals},
        "compacter.options": {"TriggerFacts": options.TriggerFacts},
        "compacter.spending": {"Spending": spending.Spending},
        "compacter.lines.passages": {"Passage": passages.Passage},
        "compacter.search_tool": {"RecallTool": search_tool.RecallTool},
        "compacter.memory": {name: getattr(memory, name) for name in memory.__all__},
        "compacter.overflow": {"explain": overflow.explain},
        "compacter.redaction": {
            "redact_secrets": redaction.redact_secrets,
            "decode_escapes": redaction.decode_escapes,
        },
        "compacter.serve": {name: getattr(serve, name) for name in ("run", "create_app")},
        "compacter.testing": {
            name: getattr(testing, name) for name in ("ScriptedModel", "ScriptedSummarizer")
        },
    }
    known = set(names)
    return {
        module: {
            name: thing
            for name, thing in things.items()
            if module == "compacter" or name not in known
        }
        for module, things in modules.items()
    }


def page_of(module: str, thing: Any) -> str:
    """The page that a public name stands on, by the room that it comes from."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return "errors"
    place = module if module != "compacter" else str(thing.__module__)
    room = place.removeprefix("compacter.").split(".")[0]
    page = _PLACES.get(room, room)
    return page if page in TITLES else "compacter"


def reference() -> dict[str, str]:
    """The pages, by the names of their files."""
    sections: dict[str, list[str]] = {page: [] for page in TITLES}
    names: dict[str, list[str]] = {page: [] for page in TITLES}
    for module, things in public().items():
        for name, thing in things.items():
            page = page_of(module, thing)
            place = "" if module == "compacter" else f"From `{module}`.\n\n"
            text = document(name, thing)
            heading, _, rest = text.partition("\n\n")
            sections[page].append(f"{heading}\n\n{place}{rest}")
            names[page].append(f"[`{name}`]({page}.md#{name.lower()})")
    options = ["## Options", "", *_table(attributes(Options))]
    sections["compacter"].append("\n".join(options))
    rows = [
        f"| [{title}]({page}.md) | {', '.join(names[page])} |" for page, title in TITLES.items()
    ]
    pages = {"index.md": "\n".join([HEAD, *_TABLE, *rows]) + "\n"}
    for page, title in TITLES.items():
        pages[f"{page}.md"] = "\n".join([f"# {title}\n", *sections[page]]).rstrip() + "\n"
    return pages


def wrong_pages() -> list[str]:
    """Names of the files that are missing, out of date, or no page any more."""
    pages = reference()
    there = {file.name: file.read_text() for file in FOLDER.glob("*.md")}
    return sorted(name for name in {*pages, *there} if pages.get(name) != there.get(name))


def _classes(module: ModuleType) -> dict[str, Any]:
    return {
        name: kind
        for name, kind in vars(module).items()
        if inspect.isclass(kind)
        and kind.__module__ == module.__name__
        and not name.startswith(("_", "Running"))
    }


def _table(rows: dict[str, str]) -> list[str]:
    if not rows:
        return []
    cells = {key: text.replace("``", "`").replace("|", "\\|") for key, text in rows.items()}
    return [*_TABLE, *(f"| `{key}` | {text} |" for key, text in cells.items()), ""]


def _signature(name: str, function: Any) -> str:
    shown: list[str] = []
    starred = False
    for key, parameter in inspect.signature(function).parameters.items():
        if key in {"self", "cls"}:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            shown.append("*")
        starred = starred or parameter.kind in {parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL}
        mark = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
        mark = "*" if parameter.kind is parameter.VAR_POSITIONAL else mark
        value = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        shown.append(f"{mark}{key}{value}")
    line = f"{name}({', '.join(shown)})"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in shown), ")"])


def _default(value: object) -> str:
    """A default as it is written in a program; ``...`` if that is not a plain value."""
    if isinstance(value, tuple):
        items = [_default(item) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    if isinstance(value, compacter.Summarize) and value == compacter.Summarize():
        return "Summarize()"
    return repr(value) if isinstance(value, (bool, int, float, str, type(None))) else "..."


def _text(thing: Any) -> str:
    """A docstring as Markdown: each section of it is a list."""
    shown: list[str] = []
    is_list = False
    for line in (inspect.getdoc(thing) or "").splitlines():
        if line in _SECTIONS:
            is_list = True
            shown += ["", f"**{line.removesuffix(':')}**", ""]
        elif is_list and (entry := _ENTRY.fullmatch(line)):
            shown.append(f"- `{entry[1]}`: {entry[2]}")
        elif is_list and line.startswith(" " * 5):
            shown.append(f"  {line.strip()}")
        elif is_list and line:
            raise ValueError(f"{thing!r}: not an entry of a list: {line!r}")
        else:
            is_list = False
            shown.append(line)
    return "\n".join(shown).replace("``", "`").replace("\n\n\n", "\n\n").strip()


def main() -> int:
    """Write the pages, or compare them."""
    if "--check" in sys.argv:
        return int(bool(wrong_pages()))
    pages = reference()
    FOLDER.mkdir(exist_ok=True)
    for name in wrong_pages():
        if name in pages:
            (FOLDER / name).write_text(pages[name])
        else:
            (FOLDER / name).unlink()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
