"""The command line of ``compacter serve``. Its names are those of the configuration file."""

from __future__ import annotations

import argparse
from typing import Any

from compacter.gateway import AHEAD
from compacter.gateway.serve.config import DRAIN, PORT


def _takes(metavar: str, **how: Any) -> dict[str, Any]:
    return {"metavar": metavar, **how}


_FLAG: dict[str, Any] = {"action": "store_true"}
_OPTIONS: dict[str, list[tuple[str, dict[str, Any], str]]] = {
    "what it does": [
        (
            "upstream",
            _takes("URL", action="append"),
            (
                "where requests go, such as https://api.openai.com/v1; several, each NAME=URL, "
                "are reached under /NAME"
            ),
        ),
        ("config", _takes("FILE"), "a TOML file with these options; SIGHUP has it read again"),
        (
            "summarizer",
            _takes("MODEL"),
            (
                "a model of the same upstream that writes summaries, or "
                '"extractive" for no model (the model that is called)'
            ),
        ),
        (
            "ratio",
            _takes("SHARE", type=float),
            "share of the history that is compacted (0.7)",
        ),
        (
            "prepare",
            _takes("SHARE", type=float),
            (
                "share of the window from which the next summary is made in the background "
                f"({AHEAD}); 0 makes none ahead"
            ),
        ),
        (
            "memory",
            _takes("PLACE"),
            (
                "sqlite:PATH or redis://HOST:PORT/DB, where compactions outlive the server (this "
                "process)"
            ),
        ),
        (
            "memory-encryption",
            _takes("SOURCE"),
            (
                "keys that encrypt what is stored: file:PATH, one a line, the first one writes; "
                "or env:NAME (plain text)"
            ),
        ),
        (
            "no-memory-quotes",
            {"action": "store_false", "dest": "memory_quotes"},
            "store summaries without the lines that they quote",
        ),
        (
            "aws-region",
            _takes("REGION"),
            "sign Bedrock's requests anew, with this machine's AWS credentials (passed on unread)",
        ),
        ("dry-run", _FLAG, "change nothing, only report what would be compacted"),
    ],
    "where it listens, and to whom": [
        ("host", _takes("ADDRESS"), "where to listen (127.0.0.1)"),
        ("port", _takes("NUMBER", type=int), f"the port ({PORT}); 0 takes a free one"),
        (
            "caller-name",
            _takes("NAME", action="append", dest="caller_names"),
            "a further header or query parameter that tells callers apart",
        ),
        (
            "keyless",
            _takes("WHAT", choices=("connection", "shared")),
            (
                "what callers without a key share: the summaries of their connection, or, on a "
                "machine with one user, all (connection)"
            ),
        ),
        (
            "allow-origin",
            _takes("ORIGIN", action="append", dest="origins"),
            "another site whose web pages may use the server, such as https://chat.example.com",
        ),
    ],
    "limits": [
        ("max-body", _takes("BYTES", type=int), "largest body of a request (any)"),
        ("header-timeout", _takes("SECONDS", type=float), "time for a request's head (30)"),
        ("body-timeout", _takes("SECONDS", type=float), "time for a request's body (300)"),
        ("max-summaries", _takes("NUMBER", type=int), "summaries requested at once (64)"),
        ("max-summaries-each", _takes("NUMBER", type=int), "the same for one caller (8)"),
        (
            "drain",
            _takes("SECONDS", type=float),
            f"time for open requests after SIGTERM ({DRAIN:g})",
        ),
    ],
    "what it shows": [
        ("log", _takes("FORM", choices=("text", "json")), "text or json (text)"),
        (
            "class-header",
            _takes("NAME"),
            "a header whose value is the class that a caller's figures are counted for",
        ),
        ("show-text", _FLAG, "show the text of summaries on the page at /compacter"),
    ],
}


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; its options are named like the arguments of
    ``run``.
    """
    made = argparse.ArgumentParser(
        "compacter serve",
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
        description="A pass-through for the OpenAI (chat completions, responses), Anthropic "
        "(messages), Gemini, Ollama and Bedrock protocols. Where the upstream says that a request "
        "is too long, the oldest part of its history is compacted into a summary, and it is sent "
        "again.",
        epilog="Example: compacter serve --upstream https://api.openai.com/v1 --memory "
        "sqlite:compacter.db",
    )
    for group, options in _OPTIONS.items():
        place = made.add_argument_group(group)
        for name, how, text in options:
            place.add_argument(f"--{name}", help=text, **how)
    return made
