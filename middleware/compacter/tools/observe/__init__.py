"""Hooks that export events to a file of JSON lines or to OpenTelemetry:
``Compacter(on_event=JsonLines(path))``.
"""

from __future__ import annotations

import json
import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compacter.errors import ConfigurationError
from compacter.events import TEXTS, Event
from compacter.runtime.locks import Lock

if TYPE_CHECKING:
    from compacter.tools.observe.otel import OpenTelemetry

__all__ = ["JsonLines", "OpenTelemetry"]


def __getattr__(name: str) -> object:
    if name != "OpenTelemetry":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from compacter.tools.observe.otel import OpenTelemetry  # It needs the extra ``otel``.

    return OpenTelemetry


def __dir__() -> list[str]:
    return list(__all__)


class JsonLines:
    """A hook that appends each event to a file, as one JSON object a line.

    A line is ``{"event": "CompactionEvent", "time": 1735689600.123, ...}``: the event's type, Unix
    time in seconds, and the event's fields. Safe among threads, and among processes of one machine
    (on Windows: one process). The file is created if it does not exist, readable by its owner only,
    and opened for each event, so that it can be renamed at any time.

    Args:
        path: The file.
        texts: Whether to write summaries too, which quote messages.

    Raises:
        ConfigurationError: An argument is invalid, or the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, texts: bool = False) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise ConfigurationError(f"path takes a file name, not {path!r}")
        self.path = Path(path).absolute()  # The program may change its working directory.
        self.texts = texts
        self._lock = Lock()
        try:
            os.close(self._open_file())
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"JsonLines cannot write {str(path)!r}: {error}") from error

    def __repr__(self) -> str:
        return f"JsonLines({str(self.path)!r}, texts={self.texts})"

    def __reduce__(self) -> tuple[object, ...]:
        return partial(JsonLines, texts=self.texts), (self.path,)

    def __call__(self, event: Event) -> None:
        """Append ``event``. Raises ``OSError`` if it cannot be written, which a
        ``Compacter`` logs.
        """
        fields = json.loads(event.model_dump_json(exclude=None if self.texts else set(TEXTS)))
        line = json.dumps({"event": type(event).__name__, "time": round(time.time(), 3), **fields})
        data = line.encode() + b"\n"
        with self._lock:
            file = self._open_file()
            try:
                # A line is appended by one write, between those of other processes. A nearly full
                # disk may accept only a part.
                while data:
                    data = data[os.write(file, data) :]
            finally:
                os.close(file)

    def _open_file(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
