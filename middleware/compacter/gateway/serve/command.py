"""Start the server: ``compacter serve``."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Unpack

from compacter.errors import CompacterError, ConfigurationError
from compacter.gateway.serve import log as logs
from compacter.gateway.serve.config import DRAIN, FIXED, PORT, SHORT, ServeOptions, read_config
from compacter.gateway.serve.parser import parser


def run(
    *,
    upstream: str | Iterable[str],
    host: str = "127.0.0.1",
    port: int = PORT,
    show_text: bool = False,
    drain: float = DRAIN,
    log: str = "text",
    **options: Unpack[ServeOptions],
) -> None:
    """Run the server until a signal ends it.

    Args:
        upstream: Base URL of the server to pass requests on to, such as
            ``https://api.openai.com/v1``; or several, each as ``NAME=URL``.
        host: Address to listen on. Anyone who can reach it can use the upstreams, with a key of
            their own.
        port: Port to listen on; 0 for a free one, which is printed.
        show_text: Whether the page shows summaries, which quote messages, to anyone who can reach
            the address.
        drain: Seconds that requests in progress have to end after SIGTERM; new ones are refused.
        log: ``text`` or ``json``, one object a line, on standard error.
        **options: Those of the command line under their names with underscores (``ratio``,
            ``prepare``, ``memory_encryption``, ``memory_quotes``, ``dry_run``, ``caller_names``,
            ``keyless``, ``origins``, ``aws_region``, ``class_header``, ``max_body``,
            ``header_timeout``, ``body_timeout``, ``max_summaries``, ``max_summaries_each``), and
            all of ``Compacter``. ``summarizer`` names a model of the same upstream; ``None`` is the
            model that is called, and the caller's key pays for both. ``memory`` also takes an
            address.

    Raises:
        ConfigurationError: An argument is invalid, or the server cannot listen on the address.
        ImportError: The extra ``serve`` is not installed.
    """
    given = {"upstream": upstream, **options}
    _Service(given, log=log, show_text=show_text).run(host, port, drain)


class _Service:
    """The running server: it makes its configuration, and makes it anew after SIGHUP.

    Args:
        settings: Settings that may change while it runs.
        reread: Function that returns them anew; ``None`` if there is no file.
    """

    def __init__(
        self,
        settings: dict[str, Any],
        *,
        log: str,
        show_text: bool,
        reread: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        # Raises an error that names the extra, if it is not installed.
        from compacter.gateway.serve import create_app  # noqa: F401 # pyright: ignore[reportUnusedImport]
        from compacter.gateway.serve.board import Board
        from compacter.gateway.serve.targets import make_setup

        if log not in ("text", "json"):
            raise ConfigurationError(f"log takes text or json, not {log!r}")
        self._reread = reread
        self._say: Callable[[str], object] = logs.say_line
        tell = None
        if log == "json":
            logs.capture_others()
            self._say = logs.say_object
            tell = logs.tell_object
        self.board = Board(self._say, tell, texts=show_text)
        self._setup = partial(make_setup, self.board, {})
        self.setup = self._setup(settings)
        self.gateway: Any = None

    def run(self, host: Any, port: Any, drain: Any) -> None:
        from compacter.gateway.serve.app import app_of
        from compacter.gateway.serve.server import server
        from compacter.gateway.serve.upstream import is_loopback

        if not isinstance(host, str):
            raise ConfigurationError(f"host takes a name or an address, not {host!r}")
        if not isinstance(drain, (int, float)) or drain < 0:
            raise ConfigurationError(f"drain takes a number of seconds, not {drain!r}")
        local = is_loopback(host)
        if not local and any(target.signer for target in self.setup.targets):
            raise ConfigurationError(
                f"--aws-region with --host {host}: anyone who can reach this address would use "
                "this machine's AWS credentials"
            )
        # Names of this machine in other networks are unknown.
        app = app_of(self.setup, self.board, is_loopback if local else lambda _: True)
        self.gateway = app.state.gateway
        listener = _listener(host, port)
        address, bound = listener.getsockname()[:2]
        origin = f"http://[{address}]:{bound}" if ":" in address else f"http://{address}:{bound}"
        for target in self.setup.targets:
            dry = " (dry run)" if self.setup.shown["dry_run"] else ""
            self._say(f"{origin}/{target.upstream.name} -> {target.upstream.base_url}{dry}")
        self._say(f"report at {origin}/compacter")
        if not local:
            self._say(
                "anyone who can reach this address can use it, with a key of their own; there "
                "is no authentication"
            )
        made = server(
            app,
            drain=drain,
            header_timeout=self.setup.limits.header_timeout,
            reload=None if self._reread is None else self.reload,
        )
        with listener:
            made.run(sockets=[listener])

    async def reload(self) -> None:
        """Read the configuration file again. If it is invalid, say so and keep the old one."""
        if self._reread is None:
            return
        try:
            setup = self._setup(self._reread())
        except Exception as error:  # noqa: BLE001 - a file, whatever is in it, must not end the server
            self._say(f"the configuration was not changed: {error}")
            return
        await self.gateway.replace(setup)
        self._say("the configuration was read again")


def main(argv: Sequence[str]) -> int:
    """Run the server with the arguments of a command line, and return the exit code: 2 for a
    mistake in them.
    """
    say: Callable[[str], object] = sys.stderr.write
    try:
        words = vars(parser().parse_args(argv))
        if words.get("log") == "json":
            say = logs.say_object
        _start(words)
    except SystemExit as left:  # argparse has printed the help or an error.
        return int(left.code or 0)
    except ImportError as error:
        say(f"{error}\n")
        return 2
    except CompacterError as error:
        text = str(error).replace("compact_ratio", "--ratio")  # The name of the option here.
        say(f"compacter serve: {text}\nTry --help.\n")
        return 2
    except KeyboardInterrupt:
        pass
    return 0


def _start(words: dict[str, Any]) -> None:
    path = words.pop("config", None)

    def read() -> dict[str, Any]:
        given = read_config(path) if path else {}
        for short in SHORT.keys() & words.keys():  # The command line wins.
            given.pop(SHORT[short], None)
        given |= words
        if not given.get("upstream"):
            raise ConfigurationError("--upstream is needed, such as https://api.openai.com/v1")
        return given

    def changing() -> dict[str, Any]:
        return {name: value for name, value in read().items() if name not in FIXED}

    fixed = {name: value for name, value in read().items() if name in FIXED}
    service = _Service(
        changing(),
        log=fixed.get("log", "text"),
        show_text=fixed.get("show_text", False),
        reread=changing if path else None,
    )
    service.run(fixed.get("host", "127.0.0.1"), fixed.get("port", PORT), fixed.get("drain", DRAIN))


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
