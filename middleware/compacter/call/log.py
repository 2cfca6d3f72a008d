"""What compacter writes to the program's log: sizes and counts, never a message's text.

The standard library's loggers get a line to be read, with the numbers as ``extra``; structlog's get an event's name
and the numbers. What an exception says may quote a message, so that it is known by its type, its HTTP status and
where it was raised.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import traceback
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from compacter.events import CompactionEvent, CompactionFailed, Event, MessageShortened, SilentTruncation
from compacter.options import Options

_NOT_LOGGED = frozenset({"summary", "ledger", "unverified", "discarded", "cause"})
"""Fields of events that are, or quote, text of messages."""
Level = Literal["debug", "info", "warning"]
_LEVELS: dict[Level, int] = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}
_STANDARD = (logging.Logger, logging.LoggerAdapter)
_PACKAGE = str(Path(__file__).parent.parent)
_FAILED = {
    "hook": "a hook raised {error}; the call goes on without it",
    "detect": "detect failed ({error}) and counts as without opinion; it takes an exception and returns a "
    "TokenLimit, True, False or None",
    "memory": "the memory failed ({error}); the call goes on without it",
    "recall": "quotes could not be found ({error}); requests go on without them",
}
_KEY = "give it a valid API key, such as OPENAI_API_KEY for openai/..."
_NO_KEY = re.compile(r"api[_ -]?key|missing credentials", re.IGNORECASE)
"""What SDKs say of a key that is not there, whatever they raise then."""
_REMEDIES: tuple[tuple[str, str], ...] = (
    ("Authentication|PermissionDenied|Credential", _KEY),
    ("NotFound|BadRequest|UnsupportedParams|Unprocessable", "check the model's name{model} and its provider"),
    ("ModuleNotFound|ImportError", "pip install litellm, or pass a function as summarizer"),
    ("TypeError", "a summarizer is called as summarizer(messages, **options) and returns text or a completion"),
    ("Timeout", "raise the option timeout, or name a faster model"),
    ("RateLimit|ServiceUnavailable|InternalServer|Connection", "name another model, or try again later"),
)
"""Pattern in the name of an exception's type -> what helps."""
_SOMEBODYS = re.compile(
    r"the summary was refused|rules: |strategy (?!(?:summarize|truncate|shorten|clear_tool_results|chain) )"
)
"""How a reason begins that somebody can do something about, where no exception was raised."""
_BAD_ANSWER = 'name a more capable model as summarizer, or set summarizer="extractive", which needs none'


class Log:
    """The log of one Compacter. Nothing that goes wrong here is raised."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._warned: set[str] = set()

    def event(self, event: Event) -> None:
        """A compaction at info level, the first failure of a kind as a warning, others at debug level."""
        level: Level = "info" if isinstance(event, (CompactionEvent, MessageShortened)) else "debug"
        if isinstance(event, (CompactionFailed, SilentTruncation)) and self._is_first(event):
            level = "warning"
        logger = self._logger(level)
        if logger is None:
            return
        # Not by ``model_dump``, which makes things on its first use that a child forked meanwhile waits for.
        facts = {name: value for name, value in event if name not in _NOT_LOGGED and value not in (None, "")}
        said = event.sentence
        if level == "warning" and isinstance(event, CompactionFailed):
            cause, remedy = self._explained(event)
            said = f"{cause}. What helps: {remedy}. More of this kind are logged at debug level"
            facts |= {"cause": cause, "remedy": remedy}
        name = re.sub("(?<!^)([A-Z])", r"_\1", type(event).__name__).lower()
        _write(logger, level, f"compacter.{name}", said, facts)

    def failed(self, what: str, error: BaseException) -> None:
        """Write that something failed of which no call may know; where, unless it is a memory that is away."""
        with contextlib.suppress(Exception):  # A logger that fails has nowhere to be reported to.
            kind = type(error).__name__
            said = _FAILED.get(what, what.replace("_", " ") + " failed ({error}); the call goes on").format(error=kind)
            facts: dict[str, object] = {"error": kind}
            if what != "memory":
                facts["traceback"] = _frames(error)
                said = f"{said}\n{facts['traceback']}"
            self.write("warning", f"compacter.{what}_failed", said, facts)

    def write(self, level: Level, name: str, said: str, facts: dict[str, object]) -> None:
        """Write one entry: ``said`` for a logger of the standard library, ``name`` for others."""
        logger = self._logger(level)
        if logger is not None:
            _write(logger, level, name, said, facts)

    def _logger(self, level: Level) -> Any:
        """Who takes an entry of this level; ``None``: nobody.

        The option ``logger``; else the program's structlog where it has configured one, else the standard library's
        logger ``compacter``. The program's structlog gets nothing below the level of that standard logger, if it was
        given one, nor below info, if it has no level itself and prints all that it gets.
        """
        logger, structlog = self._options.logger, sys.modules.get("structlog")
        if logger is None:
            logger = logging.getLogger("compacter")
            if structlog is not None and structlog.is_configured():
                unfiltered = structlog.get_config()["wrapper_class"] is structlog.make_filtering_bound_logger(0)
                least = logger.level or (min(logging.INFO, logger.getEffectiveLevel()) if unfiltered else 0)
                return structlog.get_logger("compacter") if _LEVELS[level] >= least else None
        return logger if not isinstance(logger, _STANDARD) or logger.isEnabledFor(_LEVELS[level]) else None

    def _is_first(self, event: CompactionFailed | SilentTruncation) -> bool:
        kind = type(event).__name__
        if isinstance(event, CompactionFailed):
            if not event.error and not _SOMEBODYS.match(event.reason):
                return False  # There is no room for a summary, or nothing to read: nobody's fault.
            kind = event.error or re.sub(r"[\d,.]+", "", event.reason)
        first = kind not in self._warned
        self._warned.add(kind)
        return first

    def _explained(self, event: CompactionFailed) -> tuple[str, str]:
        """Why there was no summary, and what helps."""
        summarizer = self._options.summarizer
        asked = summarizer if isinstance(summarizer, str) else event.model if summarizer is None else None
        helps = remedy(event.error, event.cause, asked)
        if event.reason.startswith("rules: "):
            helps = "declare fewer rules, or shorter ones"
        if event.reason.startswith("strategy "):
            helps = "mend that strategy; docs/strategies.md says what it may return"
        instead = " or ".join(map(repr, self._options.fallback))
        cause = f"{event.sentence}{_circumstances(event.cause)}"
        return f"{cause}; the fallback {instead} takes over" if instead else cause, helps


def remedy(error: str, cause: BaseException | None, model: str | None) -> str:
    """What helps against a summarizer's failure.

    Args:
        error: The name of the exception's type; empty where its answer was no summary.
        cause: The exception.
        model: The model that was asked, where it is known.
    """
    if cause is not None and _NO_KEY.search(str(cause)[:2_000]):
        return _KEY
    found = next((text for names, text in _REMEDIES if re.search(names, error)), "")
    if not found:
        return "mend the function that you passed as summarizer" if error else _BAD_ANSWER
    return found.format(model=f" {model!r}" if model else "")


def _write(logger: Any, level: Level, name: str, said: str, facts: dict[str, object]) -> None:
    with contextlib.suppress(Exception):  # A logger that fails has nowhere to be reported to.
        if isinstance(logger, _STANDARD):
            logger.log(_LEVELS[level], "compacter: %s", said, extra=facts)
        else:
            getattr(logger, level)(name, **facts)


def _circumstances(error: BaseException | None) -> str:
    """The HTTP status and the place of an exception, as far as it has them."""
    status = getattr(error, "status_code", None)
    found = [f"HTTP {status}"] if isinstance(status, int) else []
    outside = [frame for frame in traceback.extract_tb(_own(error)) if "site-packages" not in frame.filename]
    if outside:
        found.append(f"{Path(outside[-1].filename).name}, line {outside[-1].lineno}")
    return f" ({', '.join(found)})" if found else ""


def _frames(error: BaseException) -> str:
    """Where it was raised: files, lines and functions alone, as source lines and local variables may hold texts."""
    frames = traceback.extract_tb(_own(error) or error.__traceback__)
    lines = [f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}' for frame in frames]
    return "\n".join(["Traceback (most recent call last):", *lines, type(error).__qualname__])


def _own(error: BaseException | None) -> TracebackType | None:
    """Its traceback from the first frame on that is not one of this package."""
    trace = error.__traceback__ if error is not None else None
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        trace = trace.tb_next
    return trace
