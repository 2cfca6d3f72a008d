"""Input and output of the commands: results on standard output, all else on standard error,
mistakes in one line.
"""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from compacter.errors import CompacterError, CompactionError
from compacter.tools.visible import visible

STDIN = "-"
"""File name for standard input or standard output."""


class MistakeError(Exception):
    """An error that the user can correct. Only its text is printed; the exit code is 2."""


_UNWRAPPED = 100_000
"""Width in columns without a terminal: lines are not wrapped, for ``grep``."""


class _Results(Console):
    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """Render an object for the terminal, with control characters escaped, so that no text in it
        can control the terminal.
        """
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

    def on_broken_pipe(self) -> NoReturn:
        """Exit with 0. Rich would exit with 1, which here means a negative answer."""
        _exit_quietly()


def results() -> Console:
    """Return the console that prints results to standard output. Lines are not wrapped if the
    output goes to a pipe. Rich obeys ``NO_COLOR`` and ``COLUMNS``.
    """
    is_narrow = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    width = None if is_narrow else _UNWRAPPED
    return _Results(highlight=False, width=width)


def remarks() -> Console:
    """Return the console that prints progress and remarks to standard error."""
    return _Results(stderr=True, highlight=False)


@contextmanager
def leave_cleanly() -> Generator[None]:
    """Turn errors that a user can cause into one line and an exit code. Others keep their
    traceback.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # On Windows, the encoding of files and pipes would lack most characters.
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="replace")
    try:
        try:
            yield
        finally:
            sys.stdout.flush()  # This fails if the reader has left or the disk is full.
    except BrokenPipeError:
        _exit_quietly()
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    except CompactionError as error:
        _leave(3, str(error))
    except (MistakeError, CompacterError) as error:
        _leave(2, _by_flag(str(error)))
    except OSError as error:
        _leave(2, f"{error.filename or 'standard output'}: {error.strerror or error}")


def _exit_quietly() -> NoReturn:
    """Exit with 0 after the reader closed the pipe. Otherwise Python's flush at exit would print an
    error.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(0) from None


_FLAGS = {"compact_ratio": "--ratio", "rules": "--rule"}


def _by_flag(text: str) -> str:
    """Return the text of an error about an option of ``Compacter``, with the command's name for the
    option.
    """
    name, colon, rest = text.partition(": ")
    return f"{_FLAGS[name]}{colon}{rest}" if name in _FLAGS else text


def _leave(code: int, text: str) -> NoReturn:
    # Not printed by rich, which would interpret brackets and wrap lines.
    sys.stderr.write(f"compacter: {visible(text)}\n")
    raise SystemExit(code) from None


def read_text(path: str) -> str:
    """Return the text of a file, or of standard input for ``-``, without a byte order mark.

    Raises:
        MistakeError: The file cannot be read, or is not UTF-8 text (nor UTF-16 with a byte order
            mark).
    """
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except FileNotFoundError:
        raise MistakeError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise MistakeError(f"{path} is a directory; name a file in it") from None
    except (OSError, ValueError) as error:
        raise MistakeError(f"{path} cannot be read: {error}") from None
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        name = "standard input" if path == STDIN else path
        form = encoding.upper().removesuffix("-SIG")
        raise MistakeError(f"{name} is not {form} text: {error.reason}") from None


def check_writable(path: str, *, force: bool) -> None:
    """Check that a file may be written, before any work is done.

    Raises:
        MistakeError: The file exists and ``force`` is not set, it is a directory, or its folder
            does not exist.
    """
    if path == STDIN:
        return
    target = Path(path)
    if target.is_dir():
        raise MistakeError(f"{path} is a directory; name a file in it")
    if target.is_symlink() and not target.exists():
        # The link may lead anywhere, and the user has not seen where.
        raise MistakeError(f"{path} is a link to a file that does not exist; remove it first")
    if target.is_file() and not force:
        raise MistakeError(f"{path} exists; pass --force to overwrite it")
    if not target.parent.is_dir():
        raise MistakeError(f"{target.parent}: there is no such folder")


def write_text(path: str, text: str, *, force: bool) -> None:
    """Write a file, completely or not at all, or standard output for ``-``.

    An existing file keeps its permissions, also behind a link. It also writes to a device or a
    pipe.

    Raises:
        MistakeError: As ``check_writable``, or the file cannot be written.
    """
    if path == STDIN:
        # On a terminal the text is shown; in a pipe it is data, and JSON escapes most of it.
        put(visible(text) if sys.stdout.isatty() else text)
        return
    check_writable(path, force=force)
    # Half a surrogate pair, as at the end of a truncated answer, cannot be encoded in UTF-8.
    data = text.encode("utf-8", "replace")
    try:
        if Path(path).exists() and not Path(path).is_file():
            Path(path).write_bytes(data)
            return
        target = Path(os.path.realpath(path))
        part = target.with_name(f".compacter.{os.getpid()}.part")
        try:
            part.unlink(missing_ok=True)
            mode = target.stat().st_mode & 0o777 if target.exists() else 0o666
            part.touch(mode, exist_ok=False)  # Do not follow a link of that name.
            part.write_bytes(data)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise MistakeError(f"{path} cannot be written: {error.strerror or error}") from None


def json_text(value: object, indent: int | None = None) -> str:
    """Return JSON, in which characters are escaped only if a text cannot be encoded in UTF-8."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent)
    return text


def put(text: str) -> None:
    """Write to standard output; exit if its reader has closed it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        _exit_quietly()


def print_json(value: object) -> None:
    """Print an indented JSON document to standard output."""
    put(visible(json_text(value, indent=2)) + "\n")


def print_table(
    console: Console, rows: Sequence[Sequence[str | Text]], names: Sequence[str] = ()
) -> None:
    """Print rows in columns; if the terminal is too narrow, each row as a paragraph.

    Args:
        console: Console to print to.
        rows: Cells of each row.
        names: Column headers, of numbers after the first column; without them the last column is
            text.
    """
    grid = [names, *rows] if names else rows
    widths = [max(map(len, column)) for column in zip(*grid, strict=True)]
    if names and sum(widths) + 2 * len(widths) > console.width:
        for first, *numbers in rows:
            cells = (f"{name} {number}" for name, number in zip(names[1:], numbers, strict=True))
            console.print(first, *cells)
        return
    for row in grid:
        line = Text()
        for place, cell in enumerate(row):
            blanks = " " * (widths[place] - len(cell))
            pair = (blanks, cell) if names and place else (cell, blanks)
            line += Text.assemble(*pair, "  ")
        line.rstrip()
        console.print(line)
