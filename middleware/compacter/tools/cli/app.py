"""The commands and their options. Each command is carried out by another module, imported on
demand.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Any

from compacter.tools.cli.terminal import put

_COMMANDS = """\
explain: Explain whether an error is a token limit, and why. Exit code 1: it is not. \
| explain "prompt is too long: 205668 tokens > 200000 maximum"
  TEXT: the error, or a file with it (standard input)
  --status STATUS: HTTP status, if the text lacks it (none)
  --code CODE: the provider's error code, if the text lacks it (none)
  -v --verbose: also the rows of the table that decided
  --json: print JSON
plan: Show what `compact` would replace. Changes nothing and calls no model. \
| plan chat.json --window 128000
  FILE: messages, or a request with them
  --window TOKENS: the model's context window (that of --model)
  --ratio SHARE: share of the size to compact, oldest first: more than 0, at most 1 (0.7)
  --model NAME: a model whose window is looked up (none)
  --conversation NUMBER: which conversation, from 1, if FILE has several (the only one)
  --json: print JSON
compact: Compact the oldest part, and write the result in the same format. Exit code 1: it \
does not fit. | compact chat.json -o shorter.json --budget 20000
  FILE: messages, or a request with them
  -o --output PATH: the file to write; - for standard output (-)
  --model NAME: a litellm model that writes the summary (none: sentences are quoted)
  --extractive: quote sentences, without a model, as by default; not with --model
  --budget CHARACTERS: largest size of the result (--window or --ratio decides)
  --window TOKENS: the model's context window, half of which stays free (that of --model)
  --ratio SHARE: share of the size to compact, oldest first: more than 0, at most 1 (0.7)
  --rule TEXT: a rule that the summary must have; may be repeated (none)
  --conversation NUMBER: which conversation, from 1, if FILE has several (the only one)
  --force: overwrite an existing file
  --json: print what was done as JSON; needs -o PATH
search: Show the passages that recall would quote for a question. Exit code 1: none. \
| search chat.json "which port did we choose?"
  FILE: messages, or a request with them
  QUERY: a question, or words to look for
  --limit NUMBER: largest number of passages (5)
  --conversation NUMBER: which conversation, from 1, if FILE has several (the only one)
  --json: print JSON
report: Write an HTML report on events: sizes, compactions, cost and failures of each \
conversation. | report events.jsonl -o report.html
  FILE: events as JSON lines
  -o --output PATH: the file to write; - for standard output (needed)
  --no-text: leave out the text of summaries
  --force: overwrite an existing file
doctor: Check versions, windows, prices, memories and addresses. Exit code 1: a check failed. \
| doctor --model gpt-4o --memory sqlite:compacter.db
  --model NAME: a model to look up; may be repeated (none)
  --memory ADDRESS: sqlite:PATH or redis://HOST:PORT/DB; may be repeated (none)
  --json: print JSON
serve: Run a server that passes requests on, and compacts those that are too long. | serve \
--upstream https://api.openai.com/v1
run: Run a program, such as an agent, behind that server. | run -- claude
"""
"""Commands, each with its help and an example; below, its arguments with their values (empty for a
switch), help and default."""
# Function of each command.
_FUNCTIONS = {
    "explain": "explain:run",
    "plan": "conversation:show_plan",
    "compact": "conversation:write_compacted",
    "search": "conversation:show_passages",
    "report": "events:report",
    "doctor": "doctor:run",
}


def _whole(least: int, most: int = sys.maxsize) -> Callable[[str], int]:
    """Return a reader of a whole number in this range."""

    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            bound = f"at least {least:,}" if value < least else f"at most {most:,}"
            raise argparse.ArgumentTypeError(f"must be {bound}")
        return value

    return number


_TAKES: dict[str, dict[str, Any]] = {
    "STATUS": {"type": _whole(100, 599)},
    "TOKENS": {"type": _whole(64)},
    "CHARACTERS": {"type": _whole(1)},
    "NUMBER": {"type": _whole(1)},
    "SHARE": {"type": float},
    "--json": {"dest": "as_json"},
}
_HOW: dict[str, dict[str, Any]] = {
    "explain TEXT": {"nargs": "?"},
    "compact --output": {"default": "-"},
    "compact --rule": {"action": "append"},
    "search --limit": {"default": 5},
    "report --output": {"required": True},
    "doctor --model": {"action": "append"},
    "doctor --memory": {"action": "append"},
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "compacter",
        description="A long conversation never dies of a context-window error. FILE may be - for "
        "standard input. COMMAND --help shows the options of a command.",
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    command = parser
    for line in _COMMANDS.splitlines():
        names, _, text = line.strip().partition(": ")
        if not line.startswith(" "):
            text, _, example = text.partition(" | ")
            epilog = f"Example: compacter {example}"
            command = commands.add_parser(names, help=text, description=text, epilog=epilog)
            continue
        *flags, takes = names.split()
        how: dict[str, Any] = {}
        if takes.startswith("-"):
            how["action"] = "store_true"
        elif flags:
            how["metavar"] = takes
        if takes.startswith("-") or not flags:
            flags.append(takes)
        key = f"{command.prog.split()[-1]} {flags[-1]}"
        command.add_argument(*flags, help=text, **how, **_TAKES.get(takes, {}), **_HOW.get(key, {}))
    return parser


def run(words: Sequence[str]) -> int:
    """Run a command, and return its exit code."""
    parser = _parser()
    given = vars(parser.parse_args(words))
    command = given.pop("command")
    if given.pop("version"):
        put(f"compacter {version('llm-compacter')}\n")
        return 0
    if command is None:
        parser.print_help(sys.stderr)
        return 2
    module, _, name = _FUNCTIONS[command].partition(":")
    function = getattr(import_module(f"compacter.tools.cli.{module}"), name)
    code: int = function(**{key.lower(): value for key, value in given.items()})
    return code
