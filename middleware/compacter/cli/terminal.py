"""How the commands speak: results to standard output, everything else to standard error, mistakes in one line."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from rich.console import Console

from compacter.errors import CompacterError, CompactionError

STDIN = "-"
"""The file name that stands for standard input or standard output."""


class MistakeError(Exception):
    """What the user can put right. Its text is all that is printed; the exit code is 2."""


def results() -> Console:
    """Where results go. ``NO_COLOR``, ``COLUMNS`` and a pipe are obeyed by rich."""
    return Console(highlight=False)


def remarks() -> Console:
    """Where progress and remarks go."""
    return Console(stderr=True, highlight=False)


@contextmanager
def leave_cleanly() -> Generator[None]:
    """Turn what a user can cause into one line and an exit code. A fault of the program keeps its traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A file or pipe on Windows would get another encoding, which cannot hold most texts.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    try:
        yield
    except CompactionError as error:
        _leave(3, f"{error}{_because(error)}")
    except (MistakeError, CompacterError) as error:
        _leave(2, str(error))
    except BrokenPipeError:
        # Whoever read has enough. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None
    except OSError as error:
        _leave(2, f"{error.filename or 'file'}: {error.strerror or error}")
    except KeyboardInterrupt:
        _leave(130, "interrupted")


def _because(error: BaseException) -> str:
    cause = error.__cause__
    return f" ({type(cause).__name__}: {cause})" if cause is not None else ""


def _leave(code: int, text: str) -> NoReturn:
    # Not by rich: a path or an error may hold brackets, and no line of it should be wrapped.
    sys.stderr.write(f"compacter: {text}\n")
    raise SystemExit(code) from None


def read_text(path: str) -> str:
    """The text of a file, or of standard input for ``-``. A byte order mark is dropped.

    Raises:
        MistakeError: There is no such file, it is a directory, or it is no UTF-8 text.
    """
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except FileNotFoundError:
        raise MistakeError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise MistakeError(f"{path} is a directory; name a file in it") from None
    except (OSError, ValueError) as error:
        raise MistakeError(f"{path} cannot be read: {error}") from None
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"", "utf-8-sig")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError as error:
                raise MistakeError(f"{path} is not {encoding.upper()} text: {error.reason}") from None
    raise AssertionError("unreachable: every text starts with nothing")


def check_writable(path: str, *, force: bool) -> None:
    """Refuse to write over a file, before any work is done.

    Raises:
        MistakeError: The file exists and ``force`` is not set, or its folder does not exist.
    """
    if path == STDIN:
        return
    target = Path(path)
    if target.is_dir():
        raise MistakeError(f"{path} is a directory; name a file in it")
    if target.exists() and not force:
        raise MistakeError(f"{path} exists; --force writes over it")
    if not target.parent.is_dir():
        raise MistakeError(f"{target.parent}: there is no such folder")


def write_text(path: str, text: str, *, force: bool) -> None:
    """Write a file, whole or not at all, or standard output for ``-``.

    Raises:
        MistakeError: As ``check_writable``, or the file cannot be written.
    """
    if path == STDIN:
        sys.stdout.write(text)
        return
    check_writable(path, force=force)
    target = Path(path)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        # Half a surrogate pair, as an answer that was cut may end with, has no UTF-8 form.
        part.write_bytes(text.encode("utf-8", "replace"))
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise MistakeError(f"{path} cannot be written: {error.strerror or error}") from None


def json_text(value: object, indent: int | None = None) -> str:
    """JSON in plain letters, escaped only where a text has no UTF-8 form."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def print_json(value: object) -> None:
    """One JSON document on standard output, readable by people and programs."""
    sys.stdout.write(json_text(value, indent=2) + "\n")


def bar(parts: list[tuple[int, str, str]], whole: int, width: int) -> str:
    """A bar as rich markup. Each part has a size, a character and a style; what is missing to ``whole`` stays empty."""
    drawn, used, position = "", 0, 0
    for size, character, style in parts:
        position += size
        cells = round(width * position / max(1, whole)) - used
        used += cells
        drawn += f"[{style}]{character * cells}[/]" if cells else ""
    return drawn + "[dim]" + "·" * max(0, width - used) + "[/]"
