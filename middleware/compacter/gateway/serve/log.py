"""What the server says on standard error: lines for people, or one JSON object a line."""

from __future__ import annotations

import json
import logging
import sys
import threading
import time


def say_line(line: str) -> None:
    """Say a line to people."""
    _write(f"{time.strftime('%H:%M:%S')} {line}")


def say_object(line: str) -> None:
    """Say a line to programs."""
    tell_object("line", {"message": line})


def tell_object(name: str, fields: dict[str, object]) -> None:
    """Tell an event to programs."""
    told = {"time": round(time.time(), 3), "event": name, **fields}
    _write(json.dumps(told, ensure_ascii=False, default=str))


def capture_others() -> None:
    """Write what the libraries, warnings and exceptions say as objects too."""
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
        tell_object("log", {"level": level, "logger": record.name, "message": message})


def _write(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
