"""Hooks that export events to a file of JSON lines or to OpenTelemetry:
``Compacter(on_event=JsonLines(path))``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from compacter.errors import ConfigurationError, whole_number
from compacter.events import TEXTS, Event
from compacter.runtime.locks import Lock

if sys.platform != "win32":
    import fcntl

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
    (on Windows: one process). The file is created if it does not exist, readable by its owner only.

    Args:
        path: The file. Full ones are renamed to ``path.1`` (the newest), ``path.2`` and so on.
        max_bytes: Largest size of a file, in bytes. A longer single event has a file of its own.
        backups: Number of full files to keep; 0 for none.
        texts: Whether to write summaries too, which quote messages.

    Raises:
        ConfigurationError: An argument is invalid, or the file cannot be opened.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_bytes: int = 10_000_000,
        backups: int = 3,
        texts: bool = False,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):
            raise ConfigurationError(f"path takes a file name, not {path!r}")
        whole_number("max_bytes", max_bytes, least=1, of="bytes")
        whole_number("backups", backups, least=0, of="files")
        self.path = Path(path).absolute()  # The program may change its working directory.
        self.max_bytes = max_bytes
        self.backups = backups
        self.texts = texts
        self._lock = Lock()
        try:
            os.close(self._open_file())
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"JsonLines cannot write {str(path)!r}: {error}") from error

    def __repr__(self) -> str:
        return (
            f"JsonLines({str(self.path)!r}, max_bytes={self.max_bytes}, "
            f"backups={self.backups}, texts={self.texts})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        made = partial(JsonLines, max_bytes=self.max_bytes, backups=self.backups, texts=self.texts)
        return made, (self.path,)

    def __call__(self, event: Event) -> None:
        """Append ``event``. Raises ``OSError`` if it cannot be written, which a
        ``Compacter`` logs.
        """
        fields = json.loads(event.model_dump_json(exclude=None if self.texts else set(TEXTS)))
        line = json.dumps({"event": type(event).__name__, "time": round(time.time(), 3), **fields})
        data = line.encode() + b"\n"
        with self._lock, self._exclusive():
            file = self._open_file()
            try:
                if 0 < os.fstat(file).st_size > self.max_bytes - len(data):
                    os.close(file)
                    self._rotate()
                    file = self._open_file()
                while data:  # A nearly full disk may accept only a part.
                    data = data[os.write(file, data) :]
            finally:
                os.close(file)

    def _open_file(self) -> int:
        # Not kept open: another process may have renamed it.
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @contextlib.contextmanager
    def _exclusive(self) -> Generator[None]:
        """Exclude other processes, by a lock on a separate file because the event file is
        renamed.
        """
        # A pipe, such as ``/dev/stdout``, is never renamed. Windows has no ``flock``: only one
        # process may write.
        if sys.platform == "win32" or (self.path.exists() and not self.path.is_file()):
            yield
            return
        file = os.open(f"{self.path}.lock", os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)  # This releases the lock, too.

    def _rotate(self) -> None:
        names = [
            self.path,
            *(Path(f"{self.path}.{number}") for number in range(1, self.backups + 1)),
        ]
        for older, newer in zip(reversed(names[1:]), reversed(names[:-1]), strict=True):
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)
        if not self.backups:
            self.path.unlink(missing_ok=True)
