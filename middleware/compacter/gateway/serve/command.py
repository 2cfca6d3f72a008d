"""Start the server: ``compacter serve``."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from compacter.errors import CompacterError, ConfigurationError
from compacter.gateway import AHEAD
from compacter.gateway.memory_check import problem_of
from compacter.gateway.serve.parser import DRAIN, PORT, RATIO, parser
from compacter.memory import Memory
from compacter.memory.address import keys_from, memory_at

if TYPE_CHECKING:
    from compacter.gateway.serve.board import Board
    from compacter.gateway.serve.targets import Setup

_LIMITS = ("max_body", "header_timeout", "body_timeout", "max_summaries", "max_summaries_each")
# Settings that a running server keeps.
_FIXED = ("host", "port", "log", "show_text", "drain")


def run(
    *,
    upstream: str | Iterable[str],
    host: str = "127.0.0.1",
    port: int = PORT,
    summarizer: str | Callable[..., object] | None = None,
    ratio: float = RATIO,
    prepare: float = AHEAD,
    memory: str | Memory | None = None,
    memory_encryption: str | None = None,
    memory_quotes: bool = True,
    dry_run: bool = False,
    show_text: bool = False,
    drain: float = DRAIN,
    log: str = "text",
    caller_names: Iterable[str] = (),
    keyless: str = "connection",
    origins: Iterable[str] = (),
    aws_region: str | None = None,
    class_header: str = "",
    **options: Any,
) -> None:
    """Run the server until a signal ends it.

    Args:
        upstream: Base URL of the server to pass requests on to, such as
            ``https://api.openai.com/v1``; or several, each as ``NAME=URL``.
        host: Address to listen on. Anyone who can reach it can use the upstreams, with a key of
            their own.
        port: Port to listen on; 0 for a free one, which is printed.
        summarizer: Writer of summaries: ``None`` for the model that is called, the name of another
            model of the same upstream, ``"extractive"`` for no model, or a function as for the
            option ``summarizer``.
        ratio: The option ``compact_ratio``.
        prepare: The option ``prepare_tokens``, a share of the window; 0 makes nothing ahead.
        memory: Storage of compactions: ``sqlite:PATH``, ``redis://...``, ``rediss://...``,
            ``unix://...``, or a memory; ``None`` for this process only.
        memory_encryption: Keys with which an address in ``memory`` encrypts: ``file:PATH``, one a
            line, or ``env:NAME``. The first one encrypts, all decrypt.
        memory_quotes: Whether the lines that summaries quote are stored there too.
        dry_run: Whether only to report what would be compacted.
        show_text: Whether the page shows summaries, which quote messages, to anyone who can reach
            the address.
        drain: Seconds that requests in progress have to end after SIGTERM; new ones are refused.
        log: ``text`` or ``json``, one object a line, on standard error.
        caller_names: Names of further headers or query parameters that tell callers apart.
        keyless: What callers without a key share: ``connection`` for nothing beyond a connection,
            ``shared`` for all summaries, on a machine with one user.
        origins: Origins of other sites whose web pages may use the server.
        aws_region: Region for which Bedrock's requests are signed anew, with the credentials that
            boto3 finds; only on a loopback address. ``None`` passes signed requests on unread.
        class_header: Header whose value is the class that a caller's figures are counted for.
        **options: Limits (``max_body``, ``header_timeout``, ``body_timeout``, ``max_summaries``,
            ``max_summaries_each``), and further options of ``Compacter``.

    Raises:
        ConfigurationError: An argument is invalid, or the server cannot listen on the address.
        ImportError: The extra ``serve`` is not installed.
    """
    settings = {
        "upstream": tuple(upstream) if isinstance(upstream, Iterator) else upstream,
        "summarizer": summarizer,
        "ratio": ratio,
        "prepare": prepare,
        "memory": memory,
        "memory_encryption": memory_encryption,
        "memory_quotes": memory_quotes,
        "dry_run": dry_run,
        "caller_names": tuple(caller_names),
        "keyless": keyless,
        "origins": tuple(origins),
        "aws_region": aws_region,
        "class_header": class_header,
        **options,
    }
    _Service(settings, log=log, show_text=show_text).run(host, port, drain)


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
        from compacter.gateway import serve

        _ = serve.create_app  # Raises an error that names the extra, if it is not installed.
        from compacter.gateway.serve.app import make_setup
        from compacter.gateway.serve.board import Board

        if log not in ("text", "json"):
            raise ConfigurationError(f"log takes text or json, not {log!r}")
        self._make_setup = make_setup
        self._memories: dict[object, Memory] = {}
        self._reread = reread
        self._say = _say if log == "text" else _say_json
        self.board: Board = Board(say=self._say, texts=show_text)
        if log == "json":
            self.board.tell = _tell_json
        self.setup = self._setup(settings)
        self.gateway: Any = None

    def _setup(self, settings: dict[str, Any]) -> Setup:
        from compacter.gateway.serve.app import limits_of

        given = dict(settings)
        limits = {name: given.pop(name) for name in _LIMITS if name in given}
        given["compact_ratio"] = given.pop("ratio", RATIO)
        if "prepare" in given:
            given["prepare_tokens"] = given.pop("prepare") or None  # 0: none ahead.
        memory = given.pop("memory", None)
        source = given.pop("memory_encryption", None)
        quotes = given.pop("memory_quotes", True)
        keys = None if source is None else tuple(keys_from(source, "memory_encryption"))
        if keys is not None and not isinstance(memory, str):
            raise ConfigurationError("memory_encryption needs memory, an address to store at")
        if isinstance(memory, str):
            # The same memory again, so that one of this process keeps its records.
            place = (memory, keys, quotes)
            if place not in self._memories:
                opened = memory_at(memory, keys, quotes=quotes)
                problem = problem_of(opened, memory)
                if problem is not None:
                    self._say(problem)
                self._memories[place] = opened
            given["memory"] = self._memories[place]
        elif memory is not None:
            given["memory"] = memory
        return self._make_setup(
            self.board, given.pop("upstream"), limits=limits_of(limits), **given
        )

    def run(self, host: str, port: int, drain: float) -> None:
        from compacter.gateway.serve.app import app_of
        from compacter.gateway.serve.server import server
        from compacter.gateway.serve.upstream import is_loopback

        if not isinstance(host, str):
            raise ConfigurationError(f"host takes a name or an address, not {host!r}")
        if not _is_seconds(drain):
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
        except (CompacterError, ImportError, TypeError) as error:
            self._say(f"the configuration was not changed: {error}")
            return
        await self.gateway.replace(setup)
        self._say("the configuration was read again")


def main(argv: Sequence[str]) -> int:
    """Run the server with the arguments of a command line, and return the exit code: 2 for a
    mistake in them.
    """
    try:
        words = vars(parser().parse_args(argv))
        _start(words)
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


def _start(words: dict[str, Any]) -> None:
    from compacter.gateway.serve.config import read_config

    path = words.pop("config", None)

    def read() -> dict[str, Any]:
        given = {**(read_config(path) if path else {}), **words}
        if not given.get("upstream"):
            raise ConfigurationError("--upstream is needed, such as https://api.openai.com/v1")
        return given

    def changing() -> dict[str, Any]:
        return {name: value for name, value in read().items() if name not in _FIXED}

    fixed = {name: value for name, value in read().items() if name in _FIXED}
    service = _Service(
        changing(),
        log=fixed.get("log", "text"),
        show_text=fixed.get("show_text", False),
        reread=changing if path else None,
    )
    host = fixed.get("host", "127.0.0.1")
    service.run(host, fixed.get("port", PORT), fixed.get("drain", DRAIN))


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


def _is_seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and value >= 0


def _say(line: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {line}\n")
    sys.stderr.flush()


def _say_json(line: str) -> None:
    _tell_json("line", {"message": line})


def _tell_json(name: str, fields: dict[str, object]) -> None:
    told = {"time": round(time.time(), 3), "event": name, **fields}
    sys.stderr.write(f"{json.dumps(told, ensure_ascii=False)}\n")
    sys.stderr.flush()
