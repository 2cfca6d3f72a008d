"""``compacter explain``: show whether an error is a token limit, which rule decided, and what a
call would do.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from compacter.manual import page
from compacter.overflow import TokenLimit, explain
from compacter.overflow.statements import Verdict
from compacter.tools.cli.terminal import (
    STDIN,
    MistakeError,
    print_json,
    print_table,
    read_text,
    results,
)

MANUAL = f"{page('detector')}, or python -m pydoc compacter.detect_token_limit"

_CHAINED = re.compile(
    r"\n\s*(?:The above exception was the direct cause of|"
    r"During handling of the above exception,)[^\n]{0,80}\n"
)
_RAISED = re.compile(r"(?:^|\n)([A-Za-z_][\w.]{0,200}): ?(?=\S)")
_FRAME = re.compile(r"\n[ \t]+[^\n]*")
_PATH = re.compile(r"(?!\w+://)(?:[^\s{<]*[\\/][^\s{<]*|[^\s{<]+\.[A-Za-z]\w{0,4})")
"""A single word that looks like a file name rather than an error."""
_LINKS = ("cause", "__cause__", "original_exception", "inner", "innerError", "lastError")
_LISTS = ("errors", "exceptions", "chain")
_STATUSES = ("http_status", "status_code", "statusCode", "status")
# Errors that are followed from one to its cause: a saved error may contain itself.
_DEEPEST = 20
# Characters of a statement that are shown.
_SHOWN = 240


def run(
    *, text: str | None, status: int | None, code: str | None, as_json: bool, verbose: bool
) -> int:
    """Explain an error and return the exit code: 0 for a token limit, otherwise 1.

    Args:
        text: The error's text, or the name of a file that contains it; ``-`` or ``None`` for
            standard input.
        status: The HTTP status, if it is known and the text does not state it.
        code: The provider's error code, if it is known and the text does not state it.
        as_json: Whether to print JSON instead of text.
        verbose: Whether to print also the rows of the table that decided.
    """
    given = _input_text(text)
    if not given.strip():
        raise MistakeError(
            "there is no text to explain; pass it in quotes, name a file, or pipe it in"
        )
    verdict = judge(given, status=status, code=code)
    if as_json:
        print_json(_as_data(verdict))
    else:
        _show(results(), verdict, verbose=verbose)
    return 0 if verdict.kind == "token limit" else 1


def _input_text(text: str | None) -> str:
    if text is None or text == STDIN:
        return read_text(STDIN)
    # An existing file is read. A string that cannot be a file name (too long, line breaks) is an
    # error's text.
    try:
        is_file = text != "" and "\n" not in text and Path(text).exists()
    except (OSError, ValueError):
        is_file = False
    return read_text(text) if is_file or _PATH.fullmatch(text) else text


def judge(text: str, *, status: int | None = None, code: str | None = None) -> Verdict:
    """Return the verdict on an error, given as its message, a JSON body, a serialised error or a
    traceback.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = None
    if isinstance(data, dict):
        verdict = explain(_read_serialised(data, status, code))
        if verdict.kind != "nothing" or isinstance(data.get("message"), str):
            return verdict
    if "Traceback (most recent call last)" in text or _CHAINED.search(text):
        verdict = explain(_traceback(text, status, code))
        if verdict.kind != "nothing":
            return verdict
    return explain(text, status=status, code=code)


def _error(name: str, text: str, **attributes: object) -> Exception:
    """Return an exception like an SDK's: its class has the name, and the given attributes are set
    on it.
    """
    module, _, bare = name.rpartition(".")
    kind = type(bare or "ProviderError", (Exception,), {"__module__": module or "provider"})
    return _with(kind(text), **attributes)


def _with(error: Exception, **attributes: object) -> Exception:
    for key, value in attributes.items():
        if value is not None:
            setattr(error, key, value)
    return error


def _read_serialised(
    data: dict[str, Any], status: int | None, code: str | None, depth: int = 0
) -> Exception:
    """Return the exception for an error that a logger or another language wrote as JSON, with its
    causes; of a list of errors the last one decides.
    """
    message = data.get("message")
    stated = next((data[name] for name in _STATUSES if isinstance(data.get(name), int)), None)
    error = _error(
        "",
        message if isinstance(message, str) else "",
        message=message,
        status_code=status if status is not None else stated,
        code=code or data.get("code"),
        body=data.get("body", data if depth == 0 and not isinstance(message, str) else None),
    )
    links = [data.get(name) for name in _LINKS]
    for name in _LISTS:
        links += data[name][-1:] if isinstance(data.get(name), list) else []
    for link in links:
        if isinstance(link, dict) and depth < _DEEPEST:
            error.__cause__ = _read_serialised(link, None, None, depth + 1)
    return error


def _traceback(text: str, status: int | None, code: str | None) -> Exception:
    """Return the last exception of a printed traceback; each earlier one is the cause of the one
    after it.
    """
    error: Exception | None = None
    for piece in _CHAINED.split(text):
        spoken = _FRAME.sub("", f"\n{piece}") if "Traceback (most" in piece else piece
        raised = (found for found in _RAISED.finditer(spoken) if found[1] != "Traceback")
        start = next(raised, None)
        name, words = (start[1], spoken[start.end() :]) if start else ("", spoken)
        later = _error(name, words.strip())
        later.__cause__ = error
        error = later
    return _with(error or _error("", text), status_code=status, code=code)


def _as_data(verdict: Verdict) -> dict[str, object]:
    limit = verdict.limit or TokenLimit()
    return {
        "token_limit": verdict.kind == "token limit",
        "verdict": verdict.kind,
        "rule": verdict.rule,
        "rows": list(verdict.rows),
        "limit": limit.limit,
        "requested": limit.requested,
        "is_bound": limit.is_bound,
        "counts": limit.kind if verdict.limit else None,
        "then": _then(verdict),
        "manual": MANUAL,
    }


def _reason(verdict: Verdict) -> str:
    """Return the rows of the table that decided, else the name of the rule."""
    return ", ".join(verdict.rows) or verdict.rule


def _then(verdict: Verdict) -> str:
    """Return what a wrapped call would do about the error, in words."""
    if verdict.kind == "other error":
        return (
            f"Nothing: the error is about something else ({_reason(verdict)}) and is raised "
            "unchanged. Compacting the history would not help."
        )
    limit = verdict.limit
    if verdict.kind == "nothing" or limit is None:
        reason = f"a veto ({_reason(verdict)})" if verdict.rule else "no rule"
        return (
            f"Nothing: {reason} matches this text, so the error is raised unchanged. If it "
            "means that the request is too "
            "long, pass detect= to Compacter: a function that gets the exception and returns True."
        )
    if limit.limit is None or limit.requested is None or limit.is_bound:
        return (
            "Compact the oldest share of the history (compact_ratio, 0.7 by default) into a "
            "summary, and call again."
        )
    over = limit.requested - limit.limit
    if limit.kind == "input_plus_output":
        return (
            f"Lower the output limit where the input alone fits; else compact at least "
            f"{over:,} tokens of the oldest "
            "history into a summary. Then call again."
        )
    return (
        f"Compact the oldest share of the history into a summary, at least the {over:,} tokens "
        f"({over / max(1, limit.requested):.0%}) that are too much, and call again."
    )


def _sentence(verdict: Verdict) -> str:
    """Return the verdict as one sentence, with the numbers that the error states."""
    if verdict.kind == "other error":
        return "This is not a token limit: it is about something else."
    limit = verdict.limit
    if verdict.kind == "nothing" or limit is None:
        if verdict.rule:
            return "This does not count as a token limit, as a veto excludes it."
        return "Nothing here says that a request is too long."
    counted = "messages and answer" if limit.kind == "input_plus_output" else "the request"
    about = ", as far as the server counted," if limit.is_bound else ""
    numbers = [
        f"{counted}{about} had {limit.requested:,} tokens" if limit.requested else "",
        f"{limit.limit:,} are allowed" if limit.limit else "",
    ]
    stated = ", and ".join(filter(None, numbers)) or "the error states no numbers"
    return f"This is a token limit: {stated}."


def _show(console: Console, verdict: Verdict, *, verbose: bool) -> None:
    color = "green" if verdict.kind == "token limit" else "yellow"
    console.print(Text(_sentence(verdict), f"bold {color}"))
    facts = {"compacter": _then(verdict)}
    if verbose:
        facts |= {
            "decided by": verdict.rule,
            "rows": ", ".join(verdict.rows),
            "in": verdict.statement[:_SHOWN],
        }
    facts["manual"] = MANUAL
    print_table(console, [(Text(name, "dim"), Text(said)) for name, said in facts.items() if said])
