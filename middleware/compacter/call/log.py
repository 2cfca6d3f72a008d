"""Log entries: sizes and counts, never the text of a message.

A program that has configured structlog gets the event's name and its numbers; a logger of the
standard library a sentence, with the numbers as ``extra``. The text of an exception may quote a
message, so only its type, HTTP status and place are logged.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import logging
import os
import re
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from compacter.compaction.strategies import BUILT_IN
from compacter.errors import FunctionError, SummarizerNeededError
from compacter.events import (
    UNTOLD,
    CompactionEvent,
    CompactionFailed,
    Event,
    MessageShortened,
    SilentTruncation,
)
from compacter.manual import page
from compacter.options import Options
from compacter.runtime.io import imported

Level = Literal["debug", "info", "warning"]
_STANDARD = (logging.Logger, logging.LoggerAdapter)
# Folders of this package, and of the modules that re-raise the exceptions of its threads.
_FOLDERS = tuple(
    f"{Path(file).parent}{os.sep}" for file in (Path(__file__).parent, concurrent.futures.__file__)
)
# Failures that are logged once, as they may occur for every message.
_ONCE = ("pin", "recall", "search")
# The manual lists what helps by the name of the exception.
REMEDIES = page("troubleshooting", "the-log-warns-of-a-summarizer-that-failed")
# Beginning of the reason of a failure without an exception that the user can remedy.
_AVOIDABLE = re.compile(
    f"the summary was refused|rules: |summarizer=|(?!strategy (?:{'|'.join(BUILT_IN)}) )strategy "
)
_NUMBER = re.compile(r"[\d,.]+")


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
        is_new = _is_avoidable(event) and self._is_first(_NUMBER.sub("", event.sentence))
        if not is_new and self._logger(level) is None:
            return
        # Not by ``model_dump``: a child forked during its first use would wait for it forever.
        facts = {
            name: value for name, value in event if name not in UNTOLD and value not in (None, "")
        }
        sentence = event.sentence
        if is_new:
            level = "warning"
            if isinstance(event, CompactionFailed):
                cause = f"{sentence}{_circumstances(event.cause)}"
                sentence = f"{cause} (CompactionFailed). What helps: {REMEDIES}"
                facts |= {"cause": cause, "remedies": REMEDIES}
        name = re.sub("(?<!^)([A-Z])", r"_\1", type(event).__name__).lower()
        self.write(level, f"compacter.{name}", sentence, facts)

    def failed(self, what: str, error: BaseException) -> None:
        """Log a failure that must not break a call, with its traceback unless it is a memory's.

        A failure that a memory reports itself, once for many, is logged at debug level.
        """
        with contextlib.suppress(Exception):  # An exception of the logger cannot be logged.
            if what in _ONCE and not self._is_first(what):
                return
            kind = str(error) if isinstance(error, FunctionError) else type(error).__name__
            sentence = f"{what} failed ({kind}); the call goes on without it"
            facts: dict[str, object] = {"error": kind}
            level: Level = "warning"
            if what != "memory":
                facts["traceback"] = _traceback(error)
                sentence = f"{sentence}\n{facts['traceback']}"
            elif isinstance(error, getattr(self._options.memory, "failures", ())):
                level = "debug"
            self.write(level, f"compacter.{what}_failed", sentence, facts)

    def _is_first(self, kind: str) -> bool:
        """Return whether a failure is the first one of its kind, and note it."""
        is_first = kind not in self._warned
        self._warned.add(kind)
        return is_first

    def write(self, level: Level, name: str, sentence: str, facts: dict[str, object]) -> None:
        """Write one entry: ``sentence`` to a logger of the standard library, ``name`` to others. An
        exception of the logger is ignored.
        """
        with contextlib.suppress(Exception):
            logger = self._logger(level)
            if isinstance(logger, _STANDARD):
                getattr(logger, level)("compacter: %s", sentence, extra=facts)
            elif logger is not None:
                getattr(logger, level)(name, **facts)

    def _logger(self, level: Level) -> Any:
        """Return the logger for entries of this level, or ``None``.

        It is the option ``logger``; else structlog, if the program has configured it; else the
        standard library's logger ``compacter``. If that logger has a level, the level applies to
        structlog too; otherwise structlog gets entries from info on.
        """
        number = getattr(logging, level.upper())
        logger = self._options.logger
        structlog = imported("structlog")
        if logger is None:
            logger = logging.getLogger("compacter")
            if structlog is not None and structlog.is_configured():
                is_due = number >= (logger.level or logging.INFO)
                return structlog.get_logger("compacter") if is_due else None
        if isinstance(logger, _STANDARD) and not logger.isEnabledFor(number):
            return None
        return logger


def _is_avoidable(event: Event) -> bool:
    """Return whether the user can remedy what an event reports."""
    if isinstance(event, CompactionFailed) and event.trigger != "prepared":
        has_cause = event.error or isinstance(event.cause, FunctionError)
        # Else there is no room for a summary, or nothing to summarize.
        return bool(has_cause or _AVOIDABLE.match(event.reason))
    # A preparation may fail because the program ends; if a call needs the summary, it reports the
    # failure.
    return isinstance(event, SilentTruncation)


def _circumstances(error: BaseException | None) -> str:
    """Return the HTTP status and the place of an exception, in parentheses; empty if it has
    neither. If the summarizer is missing, return its text, which names the option.

    The place is the last one outside this package, or else the last one.
    """
    if isinstance(error, SummarizerNeededError):
        return f": {error}"
    status = getattr(error, "status_code", None)
    facts = [f"HTTP {status}"] if isinstance(status, int) else []
    frames = [frame for frame in _frames(error) if "site-packages" not in frame.filename]
    facts += [f"{Path(frame.filename).name}, line {frame.lineno}" for frame in frames[-1:]]
    return f" ({', '.join(facts)})" if facts else ""


def _traceback(error: BaseException) -> str:
    """Return the traceback with files, lines and functions only: source lines and variables may
    contain messages.
    """
    lines = [
        f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
        for frame in _frames(error)
    ]
    return "\n".join(["Traceback (most recent call last):", *lines, type(error).__qualname__])


def _frames(error: BaseException | None) -> traceback.StackSummary:
    """Return the frames of an exception from the first one outside this package on; all frames
    without one.
    """
    cause = error.__cause__ if isinstance(error, FunctionError) else error
    return traceback.extract_tb(outside(getattr(cause or error, "__traceback__", None)))


def outside(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the frames of this package at its beginning; all of it if it has
    no other frames.
    """
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename.startswith(_FOLDERS):
        inner = inner.tb_next
    return inner or trace
