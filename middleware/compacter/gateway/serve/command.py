"""Start the server: ``compacter serve``."""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Unpack

from compacter.errors import CompacterError, ConfigurationError
from compacter.gateway.serve.config import (
    RunOptions,
    parser,
    read_config,
    read_settings,
)


def load_app() -> Any:
    """Return the module of the server's app. Raises ``ImportError`` that names the extra."""
    try:
        import_module("uvicorn")  # The server is part of the extra.
        return import_module("compacter.gateway.serve.app")
    except ModuleNotFoundError as error:
        if str(error.name).startswith("compacter"):
            raise
        raise ImportError(
            "compacter serve needs: pip install httpx prometheus-client starlette uvicorn"
        ) from error


def run(*, upstream: str | Iterable[str], **options: Unpack[RunOptions]) -> None:
    """Run the server until a signal ends it.

    Args:
        upstream: Base URL of the server to pass requests on to, such as
            ``https://api.openai.com/v1``; or several, each as ``NAME=URL``.
        **options: Those of the command line under their names with underscores, and all of
            ``Compacter``. ``summarizer`` names a model of the same upstream; ``None`` is the model
            that is called, and the caller's key pays for both. ``memory`` also takes an address.

    Raises:
        ConfigurationError: An argument is invalid, or the server cannot listen on the address.
        ImportError: The extra ``serve`` is not installed.
    """
    _serve({"upstream": upstream, **options})


def _serve(given: dict[str, Any]) -> None:
    """Run the server with these settings."""
    load_app()
    from compacter.gateway.serve.app import app_of
    from compacter.gateway.serve.board import Board
    from compacter.gateway.serve.server import server
    from compacter.gateway.serve.targets import make_setup
    from compacter.gateway.serve.upstream import is_loopback

    settings, _ = read_settings(given)
    report: Callable[[str], object] = print_line
    log_event = None
    if settings.log == "json":
        capture_others()
        report = print_object
        log_event = log_object
    board = Board(report, log_event, texts=settings.show_text)
    setup = make_setup(board, given)
    local = is_loopback(settings.host)
    if not local and settings.aws_region is not None:
        raise ConfigurationError(
            f"--aws-region with --host {settings.host}: anyone who can reach this address would "
            "use this machine's AWS credentials"
        )
    # Names of this machine in other networks are unknown.
    app = app_of(setup, board, is_loopback if local else lambda _: True)

    with _listener(settings.host, settings.port) as listener:
        address, bound = listener.getsockname()[:2]
        origin = f"http://[{address}]:{bound}" if ":" in address else f"http://{address}:{bound}"
        for upstream in settings.upstream:
            dry = " (dry run)" if settings.dry_run else ""
            report(f"{origin}/{upstream.name} -> {upstream.base_url}{dry}")
        report(f"report at {origin}/compacter")
        if not local:
            report(
                "anyone who can reach this address can use it, with a key of their own; there "
                "is no authentication"
            )
        running = server(app, settings.drain)
        running.print_line = report
        running.run(sockets=[listener])


def main(argv: Sequence[str]) -> int:
    """Run the server with the arguments of a command line, and return the exit code: 2 for a
    mistake in them.
    """
    report: Callable[[str], object] = sys.stderr.write
    try:
        words = vars(parser().parse_args(argv))
        if words.get("log") == "json":
            report = print_object
        path = words.pop("config", None)
        _serve({**(read_config(path) if path else {}), **words})
    except SystemExit as left:  # argparse has printed the help or an error.
        return int(left.code or 0)
    except (CompacterError, ImportError) as error:
        text = str(error).replace("compact_ratio", "--ratio")  # The name of the option here.
        report(f"compacter serve: {text}\nTry --help.\n")
        return 2
    except KeyboardInterrupt:
        pass
    return 0


def _listener(host: str, port: int) -> socket.socket:
    host = host.strip("[]")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(
            f"cannot listen on {host!r}, port {port}: {error}; choose another --host or --port"
        ) from None


# -- lines on standard error: for people, or one JSON object a line --------------------------------


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
