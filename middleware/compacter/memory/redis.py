"""Memory in Redis, shared by the processes of many machines."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from compacter.errors import ConfigurationError, seconds
from compacter.io import in_thread
from compacter.memory.circuit import Circuit
from compacter.memory.protocol import (
    DEADLINE,
    LONGEST_CLAIM,
    PER_KEY,
    WEEK,
    Claim,
    HeldClaim,
    MemoryUnavailable,
)
from compacter.memory.record import Record
from compacter.memory.stored import Encryption, StoringMemory

if TYPE_CHECKING:
    from redis import Redis, RedisCluster

T = TypeVar("T")

_SCHEMES = ("redis", "rediss", "unix")
_METHODS = ("execute_command", "pipeline", "eval", "hgetall", "hdel")
# Most connections of a process; a thread waits for one, as the server answers within milliseconds.
_CONNECTIONS = 32
# Steps in which an answer is awaited. Each gives the thread that reads it a turn, however busy the
# interpreter is.
_STEPS = 10
# Deletes a claim if it is still its owner's.
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end"


class RedisMemory(StoringMemory):
    """Memory in a Redis server.

    Thread-safe, and safe among processes and machines. It connects at the first use. Errors raise
    ``redis.RedisError`` or ``MemoryUnavailable`` from a method; a call then continues without the
    memory, and after three failures in a row the server is not used for thirty seconds. Without
    ``encryption`` the server stores the text of summaries, and anyone who can write to it can
    change what models read.

    Args:
        url: ``redis://host:port/db``, ``rediss://...`` or ``unix:///path``; or a client of your
            own, with its pool, retries and time-outs: ``redis.Redis``, ``redis.RedisCluster`` or
            the result of ``Sentinel.master_for``. Your client is not closed. Async calls use
            either in a thread.
        ttl: Seconds after which an unused record is deleted.
        namespace: Prefix of all keys. Records of one namespace are not found in another one.
        deadline: Seconds that one operation may take, however slowly the server answers.
        encryption: A key of ``cryptography``'s ``Fernet.generate_key()``; several, of which the
            first one encrypts and all decrypt; or a ``Fernet`` or ``MultiFernet``. ``None`` stores
            plain text.
        quotes: Whether the lines that a summary quotes from the conversation are stored too. If
            not, only the process that made a summary has them, and a summary that consists of
            nothing else, as no model wrote it, is not stored.

    Raises:
        ImportError: The package ``redis`` is not installed, or ``cryptography`` if it is needed.
        ConfigurationError: An argument is invalid.
    """

    def __init__(
        self,
        url: str | Redis | RedisCluster,
        ttl: float = WEEK,
        namespace: str = "compacter",
        *,
        deadline: float = DEADLINE,
        encryption: Encryption = None,
        quotes: bool = True,
    ) -> None:
        try:
            import redis
        except ImportError as error:
            raise ImportError(
                'compacter\'s Redis memory needs: pip install "llm-compacter[redis]"'
            ) from error
        super().__init__()
        self.ttl = seconds("ttl", ttl)
        if not isinstance(namespace, str) or not namespace:  # type: ignore[redundant-expr]
            raise ConfigurationError(f"namespace takes a non-empty string, not {namespace!r}")
        self.namespace = namespace
        self.deadline = seconds("deadline", deadline)
        self._url = url if isinstance(url, str) else None
        self._client: Any = _connect(url, deadline) if isinstance(url, str) else _check_client(url)
        self._open_codec(encryption, quotes, _address(self._client))
        self._circuit = Circuit("the Redis server", _address(self._client), self._reports.append)
        self.circuits = (self._circuit,)
        self.failures = (MemoryUnavailable, redis.ConnectionError, redis.TimeoutError, OSError)
        self._refused = redis.ResponseError

    def __repr__(self) -> str:
        return f"RedisMemory(ttl={self.ttl}, namespace={self.namespace!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, uses the same server and keys by its own connections.
        made = partial(
            type(self), deadline=self.deadline, encryption=self._encryption, quotes=self._quotes
        )
        return made, (self._url or self._client, self.ttl, self.namespace)

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """Return all records under any of these ``keys``, without those that were altered since
        they were saved.
        """

        def work(client: Any) -> list[str | bytes]:  # noqa: ANN401 - one of redis-py's classes
            pipeline = client.pipeline(transaction=False)
            for key in keys:
                pipeline.hvals(self._name("records", key))
                pipeline.pexpire(self._name("records", key), _milliseconds(self.ttl))
            # A value of another type under one name must not hide the others.
            texts: list[str | bytes] = []
            for values in pipeline.execute(raise_on_error=False)[::2]:
                if not isinstance(values, Exception):
                    texts.extend(values)
                elif not isinstance(values, self._refused) or "WRONGTYPE" not in str(values):
                    raise values
            return texts

        return self._decode(keys, self._use(work))

    def save(self, record: Record) -> None:
        """Save ``record``; a record with the same ``id`` is replaced."""
        encoded = self._encode(record)
        if encoded is not None:
            self._use(partial(self._save, record, encoded))

    def claim(self, key: str, seconds: float) -> Claim | None:
        """Return the right to make the summary identified by ``key`` for ``seconds``, or ``None``
        while another process has it.
        """
        name = self._name("claims", key)
        owner = self.owner

        def take(client: Any) -> bool:  # noqa: ANN401 - as above
            pipeline = client.pipeline(transaction=False)
            pipeline.set(name, owner, px=_milliseconds(min(seconds, LONGEST_CLAIM)), nx=True)
            pipeline.get(name)
            granted, holder = pipeline.execute()
            return bool(granted) or _text(holder or "") == owner

        def give_back(client: Any) -> None:  # noqa: ANN401 - as above
            client.eval(_RELEASE, 1, name, owner)

        return HeldClaim(partial(self._use, give_back)) if self._use(take) else None

    def clear(self) -> None:
        """Delete all records of this namespace."""
        self._clear_own()
        prefix = self._name("records", "")

        def work(client: Any) -> None:  # noqa: ANN401 - as above
            for name in list(client.scan_iter(match=f"{_literal(prefix)}*", count=1_000)):
                # A namespace may be a prefix of another one.
                if ":" not in _text(name).removeprefix(prefix):
                    client.delete(name)

        work(self._client)

    def close(self) -> None:
        """Close the connections, unless the client is your own; the next use opens them again."""
        if self._url is not None:
            self._client.close()
        self._circuit.reset()

    def _save(self, record: Record, body: str, client: Any) -> None:  # noqa: ANN401 - as above
        name = self._name("records", record.key)
        pipeline = client.pipeline(transaction=False)
        pipeline.hset(name, record.id, body)
        pipeline.pexpire(name, _milliseconds(self.ttl))
        pipeline.hlen(name)
        if pipeline.execute()[-1] <= PER_KEY:
            return
        # Drop surplus records, the corrupt ones and the shortest first; never the one just saved.
        ranks: list[tuple[int, str]] = []
        for field, value in client.hgetall(name).items():
            if _text(field) != record.id:
                other = self._codec.decode(value)
                ranks.append((other.boundary if other else -1, _text(field)))
        surplus = [field for _, field in sorted(ranks)[: len(ranks) + 1 - PER_KEY]]
        if surplus:
            client.hdel(name, *surplus)

    def _use(self, work: Callable[[Any], T]) -> T:
        """Return the result of commands. Raises ``MemoryUnavailable`` after the deadline, or during
        a pause after several failures.

        The time-out of a socket begins anew with every byte, so the commands run in a thread, which
        is abandoned after the deadline.
        """
        with self._circuit.count(self.failures):
            answer = in_thread(partial(work, self._client))
            for _ in range(_STEPS):
                wait((answer,), self.deadline / _STEPS)
                if answer.done():
                    return answer.result()
            raise MemoryUnavailable(
                f"the Redis server did not answer within {self.deadline:g} seconds"
            )

    def _name(self, kind: str, key: str) -> str:
        """Return the name of a key; two namespaces never have the same, as ``key`` is without
        colons.
        """
        return f"{self.namespace}:{kind}:{key.replace('%', '%25').replace(':', '%3A')}"


def _connect(url: str, deadline: float) -> Redis:
    from redis import BlockingConnectionPool, Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    if urlsplit(url).scheme not in _SCHEMES:
        # The message does not repeat the URL, which may contain a password.
        raise ConfigurationError(
            "url takes redis://host:port/db, rediss://host:port/db or unix:///path"
        )
    try:
        pool = BlockingConnectionPool.from_url(
            url,
            max_connections=_CONNECTIONS,
            timeout=deadline,
            socket_timeout=deadline,
            socket_connect_timeout=deadline,
            # For a connection that the server has closed meanwhile.
            retry=Retry(NoBackoff(), 1),
        )
    except ValueError as error:
        raise ConfigurationError(f"url: {error}") from None
    return Redis.from_pool(pool)


def _check_client(client: object) -> object:
    if isinstance(client, type) or not all(
        callable(getattr(client, name, None)) for name in _METHODS
    ):
        raise ConfigurationError(
            f"url takes redis://host:port/db, rediss://host:port/db or unix:///path, or a "
            f"client, not {type(client)!r}"
        )
    if inspect.iscoroutinefunction(client.execute_command):  # type: ignore[attr-defined]
        raise ConfigurationError(
            "url takes no client of redis.asyncio, which works in one event loop alone: pass its "
            "URL, or a redis.Redis; async calls use either in a thread"
        )
    return client


def _address(client: Any) -> str:  # noqa: ANN401 - as above
    """Return where a client's server is, without credentials; empty if the client does not tell."""
    pool = getattr(client, "connection_pool", None)
    options = getattr(pool, "connection_kwargs", None)
    if not isinstance(options, dict):
        return ""
    if options.get("path"):
        return f"unix://{options['path']}"
    if not options.get("host"):
        return ""
    return f"redis://{options['host']}:{options.get('port', 6379)}/{options.get('db') or 0}"


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _literal(text: str) -> str:
    """Return a Redis pattern that matches only this text."""
    return "".join(f"\\{letter}" if letter in "*?[]\\^-" else letter for letter in text)


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
