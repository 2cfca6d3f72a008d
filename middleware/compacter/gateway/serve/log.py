"""Lines on standard error: lines for people, or one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time


def print_line(line: str) -> None:
    """Print a line for people."""
    _write(f"{time.strftime('%H:%M:%S')} {line}")


def print_object(line: str) -> None:
    """Print a line for programs."""
    log_object("line", {"message": line})


def log_object(name: str, fields: dict[str, object]) -> None:
    """Log an event for programs."""
    entry = {"time": round(time.time(), 3), "event": name, **fields}
    _write(json.dumps(entry, ensure_ascii=False, default=str))


def capture_others() -> None:
    """Log the entries of libraries, warnings and uncaught exceptions as objects too."""
    logging.basicConfig(handlers=[_Objects()], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)
    log = logging.getLogger("compacter")
    sys.excepthook = lambda *error: log.critical("the server ends", exc_info=error)
    threading.excepthook = lambda ended: log.error("a thread ended", exc_info=ended[:3])  # type: ignore[arg-type]


class _Objects(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, with its traceback."""
        level = record.levelname.lower()
        message = self.format(record)
        log_object("log", {"level": level, "logger": record.name, "message": message})


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
