"""Start the server: ``compacter serve``."""

from __future__ import annotations

import argparse
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from compacter.errors import CompacterError, ConfigurationError
from compacter.memory import Memory
from compacter.settings import memory_at

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

PORT = 8484
RATIO = 0.7


def run(
    *,
    upstream: str | Iterable[str],
    host: str = "127.0.0.1",
    port: int = PORT,
    summarizer: str | Callable[..., object] | None = None,
    ratio: float = RATIO,
    memory: str | Memory | None = None,
    dry_run: bool = False,
    show_text: bool = False,
    **options: Any,
) -> None:
    """Run the server until a signal ends it.

    Args:
        upstream: Base URL of the server to pass requests on to, such as ``https://api.openai.com/v1``; or several, each
            as ``NAME=URL``.
        host: Address to listen on. Anyone who can reach it can use the upstreams, with a key of their own.
        port: Port to listen on; 0 for a free one, which is printed.
        summarizer: Writer of summaries: ``None`` for the model that is called, the name of another model of the same
            upstream, ``"extractive"`` for no model, or a function as for the option ``summarizer``.
        ratio: The option ``compact_ratio``.
        memory: Storage of compactions: ``sqlite:PATH``, ``redis://...``, ``rediss://...``, ``unix://...``, or a memory;
            ``None`` for this process only.
        dry_run: Whether only to report what would be folded.
        show_text: Whether the page shows summaries, which quote messages, to anyone who can reach the address.
        **options: Further options of ``Compacter``.

    Raises:
        ConfigurationError: An argument is invalid, or the server cannot listen on the address.
        ImportError: The extra ``serve`` is not installed.
    """
    from compacter.serve import create_app
    from compacter.serve.board import Board
    from compacter.serve.upstream import is_loopback, parse_upstreams

    if memory is not None:
        options["memory"] = memory_at(memory) if isinstance(memory, str) else memory
    if not isinstance(host, str):
        raise ConfigurationError(f"host takes a name or an address, not {host!r}")
    board = Board(say=_say, texts=show_text)
    upstream = tuple(upstream) if isinstance(upstream, Iterator) else upstream  # It is read twice.
    targets = parse_upstreams(upstream)
    local = is_loopback(host)
    # Names of this machine in other networks are unknown.
    hosts = is_loopback if local else lambda _: True
    app = create_app(
        upstream, summarizer=summarizer, dry_run=dry_run, board=board, hosts=hosts, compact_ratio=ratio, **options
    )
    listener = _listener(host, port)
    address, bound = listener.getsockname()[:2]
    origin = f"http://[{address}]:{bound}" if ":" in address else f"http://{address}:{bound}"
    for target in targets:
        _say(f"{origin}/{target.name} -> {target.base_url}" + (" (dry run)" if dry_run else ""))
    _say(f"report at {origin}/compacter")
    if not local:
        _say("anyone who can reach this address can use it, with a key of their own; there is no authentication")
    with listener:
        server(app).run(sockets=[listener])


def server(app: ASGIApp) -> uvicorn.Server:
    """Return a server for the application, which adds no headers to responses and logs no requests."""
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            app,
            http="h11",  # Other parsers drop the host of an absolute URL before it can be refused.
            ws="none",
            lifespan="on",
            log_level="warning",
            access_log=False,  # Some APIs accept keys in the query.
            server_header=False,
            date_header=False,
            proxy_headers=False,
            # uvicorn's default is 5 seconds, as is that of clients: both would close a connection at the same moment.
            timeout_keep_alive=75,
            timeout_graceful_shutdown=5,
        )
    )


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line; its options are named like the arguments of ``run``."""
    made = argparse.ArgumentParser(
        "compacter serve",
        allow_abbrev=False,
        description="A pass-through for the OpenAI (chat completions, responses) and Anthropic (messages) protocols. "
        "Where the upstream says that a request is too long, the oldest part of its history is folded into a summary, "
        "and it is sent again.",
        epilog="Example: compacter serve --upstream https://api.openai.com/v1 --memory sqlite:compacter.db",
    )

    def option(name: str, metavar: str, text: str, **how: Any) -> None:
        made.add_argument(name, metavar=metavar, help=text, **how)

    option(
        "--upstream", "URL", "where requests go, such as https://api.openai.com/v1; several, each NAME=URL, are "
        "reached under /NAME", action="append", required=True,
    )  # fmt: skip
    option("--host", "ADDRESS", "where to listen (%(default)s)", default="127.0.0.1")
    option("--port", "NUMBER", "the port (%(default)s); 0 takes a free one", type=int, default=PORT)
    option(
        "--summarizer", "MODEL", 'a model of the same upstream that writes summaries, or "extractive" for no model '
        "(the model that is called)",
    )  # fmt: skip
    option("--ratio", "SHARE", "share of the history that is folded (%(default)s)", type=float, default=RATIO)
    option(
        "--memory", "PLACE", "sqlite:PATH or redis://HOST:PORT/DB, where compactions outlive the server (this process)"
    )
    made.add_argument("--dry-run", action="store_true", help="change nothing, only report what would be folded")
    made.add_argument("--show-text", action="store_true", help="show the text of summaries on the page at /compacter")
    return made


def main(argv: Sequence[str]) -> int:
    """Run the server with the arguments of a command line, and return the exit code: 2 for a mistake in them."""
    try:
        run(**vars(parser().parse_args(argv)))
    except SystemExit as left:  # argparse has printed the help or an error.
        return int(left.code or 0)
    except ImportError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except CompacterError as error:
        text = str(error).replace("compact_ratio", "--ratio")  # The name of the option here.
        sys.stderr.write(f"compacter serve: {text}\nTry --help.\n")
        return 2
    except KeyboardInterrupt:
        pass
    return 0


def _listener(host: str, port: object) -> socket.socket:
    if not isinstance(port, int) or not 0 <= port <= 65_535:
        raise ConfigurationError(f"port takes a number from 0 to 65535, not {port!r}")
    host = host.strip("[]")
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not a host name"
        raise ConfigurationError(
            f"cannot listen on {host!r}, port {port}: {reason}; choose another --host or --port"
        ) from None


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()
