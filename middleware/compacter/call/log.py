"""Log entries: sizes and counts, never the text of a message.

structlog writes them: the event's name and its numbers, bound to the model and the conversation. It
renders them as a sentence, with the numbers as ``extra``, for a logger of the standard library; a
program that has configured structlog gets them as it says there. It is loaded at the first entry
that is logged. The text of an exception may quote a message, so only its type, HTTP status and
place are logged.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import traceback
from collections.abc import MutableMapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from compacter.compaction.strategies import BUILT_IN
from compacter.errors import FunctionError
from compacter.events import (
    UNTOLD,
    CompactionEvent,
    CompactionFailed,
    Event,
    MessageShortened,
    SilentTruncation,
)
from compacter.memory import BaseMemory
from compacter.options import Options

Level = Literal["debug", "info", "warning"]
_LEVELS: dict[Level, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
}
_STANDARD = (logging.Logger, logging.LoggerAdapter)
# Facts to which an entry is bound: several entries have them in common.
_CONTEXT = ("model", "conversation")
# Frames from a logger up to this file: three are structlog's.
_STRUCTLOG_FRAMES = 4
_PACKAGE = str(Path(__file__).parent.parent)
_FAILED = {
    "hook": "a hook raised {error}; the call goes on without it",
    "detect": "{error}; this counts as None",
    "pin": "{error}; its messages are kept",
    "memory": "the memory failed ({error}); the call goes on without it",
    "embed": "passages could not be compared by meaning ({error}); they are found by words alone",
    "recall": "quotes could not be found ({error}); requests go on without them",
}
# Failures that are logged once, as they may occur for every message.
_ONCE = ("pin", "recall", "embed")
_KEY = "give it a valid API key, such as OPENAI_API_KEY for openai/..."
# Texts of the SDKs' various exceptions for a missing key.
_NO_KEY = re.compile(r"api[_ -]?key|missing credentials", re.IGNORECASE)
# Pattern in the name of an exception's type -> remedy; the first that matches counts.
_REMEDIES: tuple[tuple[str, str], ...] = (
    ("Authentication|PermissionDenied|Credential", _KEY),
    ("ModuleNotFound|ImportError", "pip install litellm, or pass a function as summarizer"),
    (
        "NotFound|BadRequest|UnsupportedParams|Unprocessable",
        ("check the model's name{model} and its provider"),
    ),
    (
        "TypeError",
        (
            "a summarizer is called as summarizer(messages, **options) and returns text or "
            "a completion"
        ),
    ),
    ("Timeout", "raise the option timeout, or name a faster model"),
    (
        "RateLimit|ServiceUnavailable|InternalServer|Connection",
        ("name another model, or try again later"),
    ),
)
# Start of the reason of a failure without an exception that the user can remedy.
_AVOIDABLE = re.compile(f"the summary was refused|rules: |strategy (?!(?:{'|'.join(BUILT_IN)}) )")
_BAD_ANSWER = (
    'name a more capable model as summarizer, or set summarizer="extractive", which needs none'
)


class Log:
    """Log of one Compacter. An exception of the logger is ignored."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._warned: set[str] = set()

    def event(self, event: Event) -> None:
        """Log an event: a compaction at info level, the first failure of a kind as a warning,
        others at debug level.
        """
        level: Level = "info" if isinstance(event, (CompactionEvent, MessageShortened)) else "debug"
        if isinstance(event, (CompactionFailed, SilentTruncation)) and self._is_first(event):
            level = "warning"
        logger = self._logger(level)
        if logger is None:
            return
        # Not by ``model_dump``: a child forked during its first use would wait for it forever.
        facts = {
            name: value for name, value in event if name not in UNTOLD and value not in (None, "")
        }
        said = event.sentence
        if level == "warning" and isinstance(event, CompactionFailed):
            cause, remedy = self._explain(event)
            said = f"{cause}. What helps: {remedy}. More of this kind are logged at debug level"
            facts |= {"cause": cause, "remedy": remedy}
        name = re.sub("(?<!^)([A-Z])", r"_\1", type(event).__name__).lower()
        _write(logger, level, f"compacter.{name}", said, facts)

    def failed(self, what: str, error: BaseException) -> None:
        """Log a failure that must not break a call, with its traceback unless it is a memory's.

        A failure that a memory reports itself, once for many, is logged at debug level.
        """
        with contextlib.suppress(Exception):  # An exception of the logger cannot be logged.
            if what in _ONCE and what in self._warned:
                return
            self._warned.add(what)
            kind = str(error) if isinstance(error, FunctionError) else type(error).__name__
            said = _FAILED.get(
                what, what.replace("_", " ") + (" failed ({error}); the call goes on")
            ).format(error=kind)
            facts: dict[str, object] = {"error": kind}
            if what != "memory":
                facts["traceback"] = _frames(error)
                said = f"{said}\n{facts['traceback']}"
            memory = self._options.memory
            is_reported = (
                what == "memory"
                and isinstance(memory, BaseMemory)
                and isinstance(error, memory.failures)
            )
            level: Level = "debug" if is_reported else "warning"
            self.write(level, f"compacter.{what}_failed", said, facts)

    def write(self, level: Level, name: str, said: str, facts: dict[str, object]) -> None:
        """Write one entry: ``said`` to a logger of the standard library, ``name`` to others."""
        logger = self._logger(level)
        if logger is not None:
            _write(logger, level, name, said, facts)

    def _logger(self, level: Level) -> Any:
        """Return the logger for entries of this level, or ``None`` if there is none.

        It is the option ``logger``; else structlog, if the program has configured it; else the
        standard library's logger ``compacter``. The level of that logger, if it is set, also
        applies to structlog. If neither has a level, structlog gets nothing below info, or below
        that logger's effective level if that is lower.
        """
        logger = self._options.logger
        structlog = sys.modules.get("structlog")
        if logger is None:
            logger = logging.getLogger("compacter")
            if structlog is not None and structlog.is_configured():
                unfiltered = structlog.get_config()[
                    "wrapper_class"
                ] is structlog.make_filtering_bound_logger(0)
                least = logger.level or (
                    min(logging.INFO, logger.getEffectiveLevel()) if unfiltered else 0
                )
                return structlog.get_logger("compacter") if _LEVELS[level] >= least else None
        return (
            logger
            if not isinstance(logger, _STANDARD) or logger.isEnabledFor(_LEVELS[level])
            else None
        )

    def _is_first(self, event: CompactionFailed | SilentTruncation) -> bool:
        kind = type(event).__name__
        if isinstance(event, CompactionFailed):
            if event.trigger == "prepared":
                return (
                    False  # Told once a call needs it and fails too: it may be the program's end.
                )
            if isinstance(event.cause, FunctionError):
                kind = str(event.cause)
            elif not event.error and not _AVOIDABLE.match(event.reason):
                return False  # No room for a summary, or nothing to summarize.
            else:
                kind = event.error or re.sub(r"[\d,.]+", "", event.reason)
        first = kind not in self._warned
        self._warned.add(kind)
        return first

    def _explain(self, event: CompactionFailed) -> tuple[str, str]:
        """Return the cause of a failure, and its remedy."""
        if isinstance(event.cause, FunctionError):
            return f"{event.cause}{_circumstances(event.cause)}", "correct that function"
        summarizer = self._options.summarizer
        asked = (
            summarizer
            if isinstance(summarizer, str)
            else event.model
            if summarizer is None
            else None
        )
        helps = remedy(event.error, event.cause, asked)
        if callable(summarizer) and event.reason.endswith("the summary is empty"):
            helps = "the function that you passed as summarizer must return a text or a completion"
        instead = " or ".join(map(repr, self._options.fallback))
        if event.reason.startswith("rules: "):
            helps = "declare fewer rules (option rules), or shorter ones"
            instead = ""
        if event.reason.startswith("strategy "):
            helps = "fix that strategy; docs/strategies.md says what it may return"
            if event.reason.split()[1] in BUILT_IN:
                helps = (
                    "correct the function there, or report it as a fault of compacter if it "
                    "is none of yours"
                )
        cause = f"{event.sentence}{_circumstances(event.cause)}"
        return f"{cause}; the fallback {instead} takes over" if instead else cause, helps


def remedy(error: str, cause: BaseException | None, model: str | None) -> str:
    """Return the remedy for a summarizer's failure.

    Args:
        error: Name of the exception's type; empty if its reply was refused.
        cause: The exception.
        model: Name of the model, if known.
    """
    if _NO_KEY.search(str(cause)[:2_000]):
        return _KEY
    found = next((text for names, text in _REMEDIES if re.search(names, error)), "")
    if not found:
        return (
            "check the function that makes the summary, or pass another as summarizer"
            if error
            else _BAD_ANSWER
        )
    return found.format(model=f" {model!r}" if model else "")


def _write(logger: Any, level: Level, name: str, said: str, facts: dict[str, object]) -> None:
    with contextlib.suppress(Exception):  # As above.
        if isinstance(logger, _STANDARD):
            logger = _rendering(logger).bind(said=said)
        context = {key: facts[key] for key in _CONTEXT if key in facts}
        if context and hasattr(logger, "bind"):
            logger = logger.bind(**context)
            facts = {key: value for key, value in facts.items() if key not in context}
        getattr(logger, level)(name, **facts)


def _rendering(logger: Any) -> Any:
    """Return a structlog logger that writes to one of the standard library."""
    import structlog  # Here, as most calls log nothing.

    return structlog.wrap_logger(
        logger, processors=[_as_record], wrapper_class=structlog.stdlib.BoundLogger
    )


def _as_record(
    _: object, __: str, entry: MutableMapping[str, Any]
) -> tuple[tuple[str, object], dict[str, object]]:
    """Return what a logger of the standard library is called with: a processor of structlog."""
    facts = {key: value for key, value in entry.items() if key not in ("event", "said")}
    return ("compacter: %s", entry["said"]), {"extra": facts, "stacklevel": _STRUCTLOG_FRAMES}


def _circumstances(error: BaseException | None) -> str:
    """Return the HTTP status and the place of an exception, in parentheses; empty if it has
    neither.

    The place is the last one outside this package, or the last one if there is none outside.
    """
    status = getattr(error, "status_code", None)
    found = [f"HTTP {status}"] if isinstance(status, int) else []
    frames = traceback.extract_tb(_own(error) or getattr(error, "__traceback__", None))
    known = [frame for frame in frames if "site-packages" not in frame.filename]
    if known:
        found.append(f"{Path(known[-1].filename).name}, line {known[-1].lineno}")
    return f" ({', '.join(found)})" if found else ""


def _frames(error: BaseException) -> str:
    """Return the traceback with files, lines and functions only: source lines and variables may
    contain messages.
    """
    frames = traceback.extract_tb(_own(error) or error.__traceback__)
    lines = [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in frames]
    return "\n".join(["Traceback (most recent call last):", *lines, type(error).__qualname__])


def _own(error: BaseException | None) -> TracebackType | None:
    """Return the traceback of an exception from the first frame outside this package."""
    if isinstance(error, FunctionError):
        error = error.__cause__
    trace = error.__traceback__ if error is not None else None
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        trace = trace.tb_next
    return trace
