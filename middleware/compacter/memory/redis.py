"""Memory in Redis, shared by the processes of many machines."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from concurrent.futures import wait
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from compacter.errors import ConfigurationError, seconds, with_hints
from compacter.memory.protocol import Claim, HeldClaim
from compacter.memory.record import Record
from compacter.memory.stored import (
    DEADLINE,
    PER_KEY,
    WEEK,
    Encryption,
    MemoryUnavailable,
    StoringMemory,
)
from compacter.runtime.io import in_thread

if TYPE_CHECKING:
    from redis import Redis, RedisCluster

T = TypeVar("T")

# Number of steps in which to wait for an answer. Each step gives the reading thread a turn, even if
# the interpreter is busy.
_STEPS = 10
# Delete a claim if it still belongs to its owner.
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then redis.call('del', KEYS[1]) end"


@with_hints
class RedisMemory(StoringMemory):
    """Memory in a Redis server.

    Thread-safe, and safe among processes and machines. It connects at the first use. Errors raise
    ``redis.RedisError`` or ``MemoryUnavailable`` from a method; a call then continues without the
    memory. Without ``encryption`` the server stores the text of summaries, and anyone who can write
    to it can change what models read.

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

    Raises:
        ImportError: The package ``redis`` is not installed, or ``cryptography`` if it is needed.
        ConfigurationError: An argument is invalid.
    """

    kind = "the Redis server"

    def __init__(
        self,
        url: str | Redis | RedisCluster,
        ttl: float = WEEK,
        namespace: str = "compacter",
        *,
        deadline: float = DEADLINE,
        encryption: Encryption = None,
    ) -> None:
        try:
            import redis
        except ImportError as error:
            raise ImportError("compacter's Redis memory needs: pip install redis") from error
        self._client: Any = _check_client(_connect(url, deadline))
        super().__init__(_address(self._client), deadline, encryption)
        self.ttl = seconds("ttl", ttl)
        name: Any = namespace
        if not isinstance(name, str) or not name:
            raise ConfigurationError(f"namespace takes a non-empty string, not {namespace!r}")
        self.namespace = namespace
        self._url = url if isinstance(url, str) else None
        self.failures = (MemoryUnavailable, redis.ConnectionError, redis.TimeoutError, OSError)

    def __repr__(self) -> str:
        return f"RedisMemory(ttl={self.ttl}, namespace={self.namespace!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, uses the same server and keys by its own connections.
        given = self._url or self._client, self.ttl, self.namespace
        return partial(type(self), **self._options), given

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """Return all records under any of these ``keys``, without those that were altered since
        they were saved.
        """

        def work() -> list[str | bytes]:
            pipeline = self._client.pipeline(transaction=False)
            for key in keys:
                pipeline.hvals(self._name("records", key))
                pipeline.pexpire(self._name("records", key), _milliseconds(self.ttl))
            return [text for texts in pipeline.execute()[::2] for text in texts]

        return self._decode(self._use(work))

    def save(self, record: Record) -> None:
        """Save ``record``; a record with the same ``id`` is replaced."""
        body = self._encode(record)
        name = self._name("records", record.key)

        def work() -> None:
            pipeline = self._client.pipeline(transaction=False)
            pipeline.hset(name, record.id, body)
            pipeline.pexpire(name, _milliseconds(self.ttl))
            pipeline.hkeys(name)
            others = set(map(_text, pipeline.execute()[-1])) - {record.id}
            if len(others) >= PER_KEY:
                # The one with the smallest boundary goes; never the one just saved.
                self._client.hdel(name, min(others, key=lambda other: (len(other), other)))

        self._use(work)

    def claim(self, key: str, seconds: float) -> Claim | None:
        """Return the right to make the summary identified by ``key`` for ``seconds``, or ``None``
        while another process has it.
        """
        name = self._name("claims", key)
        owner = self.owner

        def take() -> bool:
            is_new = self._client.set(name, owner, px=_milliseconds(seconds), nx=True)
            return bool(is_new) or _text(self._client.get(name) or "") == owner

        def give_back() -> None:
            self._client.eval(_RELEASE, 1, name, owner)

        return HeldClaim(partial(self._use, give_back)) if self._use(take) else None

    def clear(self) -> None:
        """Delete all records of this namespace."""
        prefix = self._name("records", "")
        pattern = re.sub(r"[*?\[\]\\]", "?", prefix)
        for name in list(self._client.scan_iter(match=f"{pattern}*", count=1_000)):
            # The pattern also matches other namespaces, and those that begin with this one.
            rest = _text(name).removeprefix(prefix)
            if rest != _text(name) and ":" not in rest:
                self._client.delete(name)

    def close(self) -> None:
        """Close the connections, unless the client is your own; the next use opens them again."""
        if self._url is not None:
            self._client.close()

    def _use(self, work: Callable[[], T]) -> T:
        """Return the result of commands. Raises ``MemoryUnavailable`` after the deadline.

        The time-out of a socket begins anew with every byte, so the commands run in a thread, which
        is abandoned after the deadline.
        """
        with self.watched():
            answer = in_thread(work)
            for _ in range(_STEPS):
                wait((answer,), self.deadline / _STEPS)
                if answer.done():
                    return answer.result()
            raise MemoryUnavailable(
                f"the Redis server did not answer within {self.deadline:g} seconds"
            )

    def _name(self, kind: str, key: str) -> str:
        """Return the name of a key; the names of two namespaces never collide, as ``key`` has no
        colons.
        """
        return f"{self.namespace}:{kind}:{key}"


def _connect(url: object, deadline: float) -> object:
    """Return a client for a URL; a client itself."""
    from redis import BlockingConnectionPool, Redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    if not isinstance(url, str):
        return url
    try:
        # A thread waits for a connection, as the server answers within milliseconds.
        pool = BlockingConnectionPool.from_url(
            url,
            timeout=deadline,
            # These time-outs end the thread, for which nobody waits after the deadline.
            socket_timeout=2 * deadline,
            socket_connect_timeout=2 * deadline,
            # For a connection that the server has closed meanwhile.
            retry=Retry(NoBackoff(), 1),
        )
    except ValueError as error:  # It does not repeat the URL, which may contain a password.
        raise ConfigurationError(f"url: {error}") from None
    return Redis.from_pool(pool)


def _check_client(client: object) -> object:
    command = None if isinstance(client, type) else getattr(client, "execute_command", None)
    if not callable(command) or inspect.iscoroutinefunction(command):
        raise ConfigurationError(
            "url takes redis://host:port/db, rediss://host:port/db or unix:///path, or a client "
            f"such as redis.Redis, not {type(client)!r}; one of redis.asyncio works in one event "
            "loop alone: pass its URL"
        )
    return client


def _address(client: Any) -> str:  # noqa: ANN401 - as above
    """Return the address of a client's server, without credentials; empty if unknown."""
    options = getattr(getattr(client, "connection_pool", None), "connection_kwargs", {})
    if "path" in options:
        return f"unix://{options['path']}"
    if "host" not in options:
        return ""
    return f"redis://{options['host']}:{options.get('port', 6379)}/{options.get('db') or 0}"


def _milliseconds(seconds: float) -> int:
    return max(1, int(seconds * 1000))


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")
