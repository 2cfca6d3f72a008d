"""Records in Redis: the processes of many machines share them."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from compacter.errors import ConfigurationError
from compacter.fork import ForkAware
from compacter.memory.base import DEADLINE, LEASE, BaseMemory, Circuit, Lease, seconds
from compacter.memory.record import Record

if TYPE_CHECKING:
    from redis import Redis, RedisCluster

T = TypeVar("T")

_WEEK = 7 * 86_400.0
_PER_KEY = 32
"""Records under one key: the newest of one conversation count, its older ones only for forks."""
_SCHEMES = ("redis", "rediss", "unix")


class RedisMemory(BaseMemory, ForkAware):
    """Keeps records in a Redis server.

    Thread-safe, and safe among processes and machines. Nothing is connected before the first use. What goes wrong
    raises ``redis.RedisError`` or ``MemoryUnavailable`` from a method; a call then goes on without the memory, and the
    server is left alone for five seconds. The server holds the text of summaries: whoever can write to it can change
    what models read.

    Args:
        url: ``redis://host:port/db``, ``rediss://...`` or ``unix:///path``; or a client of your own, with its pool,
            retries and time-outs: ``redis.Redis``, ``redis.RedisCluster``, or what ``Sentinel.master_for`` returns. It
            is not closed here. Async calls use it from a thread, so it cannot be an asyncio client.
        ttl: Seconds after which a record that nobody used is forgotten.
        namespace: Text that all keys begin with.
        deadline: Seconds that one operation may take, however slowly the server answers.

    Raises:
        ImportError: The package ``redis`` is not installed.
        ConfigurationError: An argument is unusable.
    """

    def __init__(
        self,
        url: str | Redis | RedisCluster,
        ttl: float = _WEEK,
        namespace: str = "compacter",
        *,
        deadline: float = DEADLINE,
    ) -> None:
        try:
            import redis
            from redis.exceptions import LockError
        except ImportError as error:
            raise ImportError('compacter\'s Redis memory needs: pip install "llm-compacter[redis]"') from error
        BaseMemory.__init__(self)
        ForkAware.__init__(self)
        self.ttl = seconds("ttl", ttl)
        self.namespace = _text("namespace", namespace)
        self.deadline = seconds("deadline", deadline)
        self._url = url if isinstance(url, str) else None
        self._client: Any = _connected(url, self.deadline) if isinstance(url, str) else _checked(url)
        self._circuit = Circuit("the Redis server")
        self._away = (redis.ConnectionError, redis.TimeoutError, OSError)
        self._refused = redis.ResponseError
        self._lock_error = LockError
        self._inherited: list[object] = []

    def __repr__(self) -> str:
        return f"RedisMemory(ttl={self.ttl}, namespace={self.namespace!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # Copied or pickled, it uses the same server by connections of its own.
        made = partial(type(self), deadline=self.deadline)
        return made, (self._url if self._url is not None else self._client, self.ttl, self.namespace)

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """All records under any of these ``keys``; what was altered since it was saved is left out."""
        pipeline = self._client.pipeline(transaction=False)
        for key in keys:
            pipeline.hvals(self._records(key))
            pipeline.pexpire(self._records(key), self._lifetime())
        # A value of another type under one name must not hide the others.
        answers = self._run(lambda: pipeline.execute(raise_on_error=False))
        found: list[Record] = []
        for values in answers[::2]:
            if isinstance(values, Exception):
                if isinstance(values, self._refused) and str(values).startswith("WRONGTYPE"):
                    continue
                raise values
            found.extend(record for value in values if (record := Record.from_json(value)) is not None)
        return found

    def save(self, record: Record) -> None:
        """Keep ``record``; one with the same ``id`` is replaced."""
        name, body = self._records(record.key), record.to_json()
        self._run(lambda: self._save(name, record.id, body))

    def _save(self, name: str, own: str, body: str) -> None:
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hset(name, own, body)
        pipeline.pexpire(name, self._lifetime())
        pipeline.hlen(name)
        if pipeline.execute()[-1] <= _PER_KEY:
            return
        # Drop the corrupt ones and the shortest of too many; never the one just saved.
        ranks: list[tuple[int, str]] = []
        for field, value in self._client.hgetall(name).items():
            if _decoded(field) != own:
                other = Record.from_json(value)
                ranks.append((other.boundary if other else -1, _decoded(field)))
        surplus = [field for _, field in sorted(ranks)[: len(ranks) + 1 - _PER_KEY]]
        if surplus:
            self._client.hdel(name, *surplus)

    def claim(self, key: str, seconds: float) -> Lease | None:
        """The right to make the summary named by ``key``, or ``None`` while somebody else holds it.

        For ``seconds`` at most. It is renewed every half second; that of a process that has died runs out after two.
        """
        # Asked from several threads: the lock's token must not belong to one of them.
        lock = self._client.lock(
            f"{self.namespace}:claims:{_without_colons(key)}",
            timeout=max(0.001, min(seconds, LEASE)),
            blocking=False,
            thread_local=False,
        )
        if not self._run(lock.acquire):
            return None

        def give_back() -> None:
            with contextlib.suppress(self._lock_error):
                self._run(lock.release)

        return Lease(seconds, lambda: bool(self._run(lambda: lock.extend(LEASE, replace_ttl=True))), give_back)

    def clear(self) -> None:
        """Forget every record of this namespace."""
        prefix = self._records("")
        with contextlib.closing(self._client.scan_iter(match=f"{_literal(prefix)}*", count=1_000)) as names:
            for name in names:
                # A namespace may be the beginning of another one.
                if ":" not in _decoded(name).removeprefix(prefix):
                    self._client.delete(name)

    def close(self) -> None:
        """Close the connections, unless the client is your own; the next use opens them again."""
        if self._url is not None:
            self._client.close()
        self._circuit.reset()

    def after_fork_in_child(self) -> None:
        """Share no connection with the parent. redis-py sees to that for a client of the user's own."""
        self._circuit.reset()
        if self._url is not None:
            self._inherited.append(self._client)
            self._client = _connected(self._url, self.deadline)

    def _run(self, action: Callable[[], T]) -> T:
        """What it returns. Raises ``MemoryUnavailable`` after the deadline, and while the server is away."""
        self._circuit.check()
        try:
            # The time-out of a socket begins anew with every byte, so the operation runs beside this thread.
            result = self._circuit.within(self.deadline, action)
        except self._away:
            self._circuit.failed()
            raise
        self._circuit.succeeded()
        return result

    def _records(self, key: str) -> str:
        return f"{self.namespace}:records:{_without_colons(key)}"

    def _lifetime(self) -> int:
        return max(1, int(self.ttl * 1000))


def _connected(url: str, deadline: float) -> Any:  # noqa: ANN401 - as is a client of the user's own
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    if urlsplit(url).scheme not in _SCHEMES:
        # The URL itself is not repeated: it may hold a password.
        raise ConfigurationError("url takes redis://host:port/db, rediss://host:port/db or unix:///path")
    try:
        return redis.Redis.from_url(
            url,
            socket_timeout=deadline,
            socket_connect_timeout=deadline,
            # Once more, for a connection that the server has closed meanwhile.
            retry=Retry(NoBackoff(), 1),
        )
    except ValueError as error:
        raise ConfigurationError(f"url: {error}") from None


def _checked(client: object) -> Any:  # noqa: ANN401 - one of several classes
    if isinstance(client, type) or not all(callable(getattr(client, name, None)) for name in _METHODS):
        raise ConfigurationError(
            f"url takes redis://host:port/db, rediss://host:port/db or unix:///path, or a client, not {type(client)!r}"
        )
    if inspect.iscoroutinefunction(getattr(client, "execute_command", None)):
        raise ConfigurationError(
            "url takes no asyncio client: pass a redis.Redis, which async calls use from a thread, or the URL"
        )
    return client


_METHODS = ("execute_command", "pipeline", "lock", "hgetall", "hdel")


def _literal(text: str) -> str:
    """A text as a pattern of Redis that matches it alone."""
    return "".join(f"\\{letter}" if letter in "*?[]\\^-" else letter for letter in text)


def _without_colons(key: str) -> str:
    return key.replace("%", "%25").replace(":", "%3A")


def _decoded(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{name} takes a text that is not empty, not {value!r}")
    return value
