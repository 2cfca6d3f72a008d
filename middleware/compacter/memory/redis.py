"""Memory in Redis, shared by the processes of many machines."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from compacter.errors import ConfigurationError
from compacter.locks import ForkAware
from compacter.memory.base import (
    DEADLINE,
    LEASE,
    PER_KEY,
    WEEK,
    AsyncLease,
    BaseMemory,
    Circuit,
    Lease,
    MemoryUnavailable,
    Steps,
    apump,
    pump,
    seconds,
)
from compacter.memory.record import Codec, Encryption, Record

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from redis import Redis, RedisCluster
    from redis.asyncio import Redis as AsyncRedis
    from redis.asyncio import RedisCluster as AsyncRedisCluster

T = TypeVar("T")

_SCHEMES = ("redis", "rediss", "unix")


class RedisMemory(BaseMemory, ForkAware):
    """Memory in a Redis server.

    Thread-safe, and safe among processes and machines. It connects at the first use. Errors raise
    ``redis.RedisError`` or ``MemoryUnavailable`` from a method; a call then continues without the
    memory, and the server is not used for five seconds. Without ``encryption`` the server stores
    the text of summaries, and anyone who can write to it can change what models read.

    Args:
        url: ``redis://host:port/db``, ``rediss://...`` or ``unix:///path``; or a client of your
            own, with its pool, retries and time-outs: ``redis.Redis``, ``redis.RedisCluster``, the
            result of ``Sentinel.master_for``, or one of their forms in ``redis.asyncio``. Your
            client is not closed. Calls under asyncio await with a URL or an asyncio client, which
            works in the event loop that uses it and not in sync calls; they run any other client in
            a thread.
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

    def __init__(
        self,
        url: str | Redis | RedisCluster | AsyncRedis | AsyncRedisCluster,
        ttl: float = WEEK,
        namespace: str = "compacter",
        *,
        deadline: float = DEADLINE,
        encryption: Encryption = None,
    ) -> None:
        try:
            import redis
            from redis.exceptions import LockError
        except ImportError as error:
            raise ImportError(
                'compacter\'s Redis memory needs: pip install "llm-compacter[redis]"'
            ) from error
        BaseMemory.__init__(self)
        ForkAware.__init__(self)
        self.ttl = seconds("ttl", ttl)
        self.namespace = _text("namespace", namespace)
        self.deadline = seconds("deadline", deadline)
        self._encryption = encryption
        self._codec = Codec(encryption)
        self._url = url if isinstance(url, str) else None
        given = _connected(url, self.deadline) if isinstance(url, str) else _checked(url)
        awaited = inspect.iscoroutinefunction(given.execute_command)
        self.asynchronous = awaited or self._url is not None
        self._client: Any = None if awaited else given
        self._async_client: Any = given if awaited else None
        self._by_loop: dict[AbstractEventLoop, tuple[Any, object]] = {}
        """With a URL: the client of each event loop, and a generator that closes it when the loop
        ends."""
        self._circuit = Circuit("the Redis server")
        self._away = (redis.ConnectionError, redis.TimeoutError, OSError)
        self._refused = redis.ResponseError
        self._lock_error = LockError
        self._inherited: list[object] = []

    def __repr__(self) -> str:
        return f"RedisMemory(ttl={self.ttl}, namespace={self.namespace!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, uses the same server and keys by its own connections.
        made = partial(type(self), deadline=self.deadline, encryption=self._encryption)
        client = self._client if self._async_client is None else self._async_client
        return made, (client if self._url is None else self._url, self.ttl, self.namespace)

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """Return all records under any of these ``keys``, without those that were altered since
        they were saved.
        """
        return self._run(lambda client: self._finding(client, keys))

    async def afind(self, keys: Sequence[str]) -> Sequence[Record]:
        """As ``find``, but asynchronous."""
        return await self._arun(lambda client: self._finding(client, keys))

    def save(self, record: Record) -> None:
        """Save ``record``; a record with the same ``id`` is replaced."""
        body = self._codec.encode(record)
        self._run(lambda client: self._saving(client, record, body))

    async def asave(self, record: Record) -> None:
        """As ``save``, but asynchronous."""
        body = self._codec.encode(record)
        await self._arun(lambda client: self._saving(client, record, body))

    def claim(self, key: str, seconds: float) -> Lease | None:
        """Return the right to make the summary identified by ``key``, or ``None`` while another
        caller has it.

        Valid for ``seconds`` at most. It is renewed while its process lives, and expires two
        seconds after it has died.
        """
        lock = self._run(lambda client: self._locking(client, key, seconds))
        renew = partial(self._renewing, lock)
        give_back = partial(self._unlocking, lock)
        return lock and Lease(seconds, lambda: self._run(renew), lambda: self._run(give_back))

    async def aclaim(self, key: str, seconds: float) -> AsyncLease | None:
        """As ``claim``, but asynchronous."""
        lock = await self._arun(lambda client: self._locking(client, key, seconds))
        renew = partial(self._renewing, lock)
        give_back = partial(self._unlocking, lock)
        return lock and AsyncLease(
            seconds, lambda: self._arun(renew), lambda: self._arun(give_back)
        )

    def clear(self) -> None:
        """Delete all records of this namespace."""
        prefix = self._records("")
        client = self._sync_client()
        with contextlib.closing(
            client.scan_iter(match=f"{_literal(prefix)}*", count=1_000)
        ) as names:
            for name in names:
                # A namespace may be a prefix of another one.
                if ":" not in _decoded(name).removeprefix(prefix):
                    client.delete(name)

    def close(self) -> None:
        """Close the connections, unless the client is your own; the next use opens them again.

        The connections of an event loop are closed when it ends.
        """
        if self._url is not None:
            self._client.close()
        self._circuit.reset()

    def after_fork_in_child(self) -> None:
        """Make new connections, not shared with the parent. For a client of the user's own redis-py
        does this.
        """
        self._circuit.reset()
        if self._url is not None:
            self._inherited += [self._client, self._by_loop]
            self._client = _connected(self._url, self.deadline)
            self._by_loop = {}

    # -- commands to the server, for sync and asyncio clients --------------------------------------

    def _finding(self, client: Any, keys: Sequence[str]) -> Steps[list[Record]]:  # noqa: ANN401 - one of the classes
        pipeline = client.pipeline(transaction=False)
        for key in keys:
            pipeline.hvals(self._records(key))
            pipeline.pexpire(self._records(key), self._lifetime())
        # A value of another type under one name must not hide the others.
        answers = yield pipeline.execute(raise_on_error=False)
        found: list[Record] = []
        for values in answers[::2]:
            if isinstance(values, Exception):
                if isinstance(values, self._refused) and str(values).startswith("WRONGTYPE"):
                    continue
                raise values
            found.extend(
                record for value in values if (record := self._codec.decode(value)) is not None
            )
        return found

    def _saving(self, client: Any, record: Record, body: str) -> Steps[None]:  # noqa: ANN401 - as above
        name = self._records(record.key)
        pipeline = client.pipeline(transaction=False)
        pipeline.hset(name, record.id, body)
        pipeline.pexpire(name, self._lifetime())
        pipeline.hlen(name)
        answers = yield pipeline.execute()
        if answers[-1] <= PER_KEY:
            return
        # Drop surplus records, the corrupt ones and the shortest first; never the one just saved.
        ranks: list[tuple[int, str]] = []
        for field, value in (yield client.hgetall(name)).items():
            if _decoded(field) != record.id:
                other = self._codec.decode(value)
                ranks.append((other.boundary if other else -1, _decoded(field)))
        surplus = [field for _, field in sorted(ranks)[: len(ranks) + 1 - PER_KEY]]
        if surplus:
            yield client.hdel(name, *surplus)

    def _locking(self, client: Any, key: str, seconds: float) -> Steps[Any]:  # noqa: ANN401 - as above
        # Several threads use it, so the lock's token must not be thread-local.
        lock = client.lock(
            f"{self.namespace}:claims:{_without_colons(key)}",
            timeout=max(0.001, min(seconds, LEASE)),
            blocking=False,
            thread_local=False,
        )
        return lock if (yield lock.acquire()) else None

    def _renewing(self, lock: Any, _: object) -> Steps[bool]:  # noqa: ANN401 - as above
        return bool((yield lock.extend(LEASE, replace_ttl=True)))

    def _unlocking(self, lock: Any, _: object) -> Steps[None]:  # noqa: ANN401 - as above
        with contextlib.suppress(self._lock_error):  # It has run out.
            yield lock.release()

    def _run(self, steps: Callable[[Any], Steps[T]]) -> T:
        """Run steps and return their result. Raises ``MemoryUnavailable`` after the deadline or a
        recent failure.
        """
        client = self._sync_client()
        self._circuit.check()
        try:
            # The time-out of a socket restarts with every byte, so the operation runs in another
            # thread.
            result = self._circuit.within(self.deadline, lambda: pump(steps(client)))
        except self._away:
            self._circuit.failed()
            raise
        self._circuit.succeeded()
        return result

    async def _arun(self, steps: Callable[[Any], Steps[T]]) -> T:
        """As ``_run``, but asynchronous."""
        import asyncio

        self._circuit.check()
        try:
            async with asyncio.timeout(self.deadline):
                result = await apump(steps(await self._loops_client()))
        except self._away as error:
            self._circuit.failed()
            if type(error) is TimeoutError:
                raise MemoryUnavailable(
                    f"the Redis server did not answer within {self.deadline:g} seconds"
                ) from None
            raise
        self._circuit.succeeded()
        return result

    def _sync_client(self) -> Any:  # noqa: ANN401 - as above
        if self._client is None:
            raise MemoryUnavailable(
                "a client of redis.asyncio works in async calls only: pass a URL or a redis.Redis"
            )
        return self._client

    async def _loops_client(self) -> Any:  # noqa: ANN401 - as above
        """Return the user's own client, or that of this event loop: connections belong to the loop
        that made them.
        """
        if self._async_client is not None:
            return self._async_client
        import asyncio

        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            for old in list(self._by_loop):
                if old.is_closed():
                    self._by_loop.pop(old, None)
            client = _connected(str(self._url), self.deadline, asynchronous=True)
            closing = _closing(client)
            self._by_loop[loop] = client, closing
            await anext(closing)
        return self._by_loop[loop][0]

    def _records(self, key: str) -> str:
        return f"{self.namespace}:records:{_without_colons(key)}"

    def _lifetime(self) -> int:
        return max(1, int(self.ttl * 1000))


async def _closing(client: Any) -> AsyncGenerator[None]:  # noqa: ANN401 - as above
    """Close the client when the event loop ends, as it then closes its asynchronous generators."""
    try:
        yield
    finally:
        await client.aclose()


def _connected(url: str, deadline: float, *, asynchronous: bool = False) -> Any:  # noqa: ANN401 - as above
    from redis.backoff import NoBackoff

    package = import_module("redis.asyncio" if asynchronous else "redis")
    retry = import_module(f"{package.__name__}.retry").Retry
    if urlsplit(url).scheme not in _SCHEMES:
        # The message does not repeat the URL, which may contain a password.
        raise ConfigurationError(
            "url takes redis://host:port/db, rediss://host:port/db or unix:///path"
        )
    try:
        return package.Redis.from_url(
            url,
            socket_timeout=deadline,
            socket_connect_timeout=deadline,
            # One retry, for a connection that the server has closed meanwhile.
            retry=retry(NoBackoff(), 1),
        )
    except ValueError as error:
        raise ConfigurationError(f"url: {error}") from None


def _checked(client: object) -> Any:  # noqa: ANN401 - one of several classes
    if isinstance(client, type) or not all(
        callable(getattr(client, name, None)) for name in _METHODS
    ):
        raise ConfigurationError(
            f"url takes redis://host:port/db, rediss://host:port/db or unix:///path, or a "
            f"client, not {type(client)!r}"
        )
    return client


_METHODS = ("execute_command", "pipeline", "lock", "hgetall", "hdel")


def _literal(text: str) -> str:
    """Return a Redis pattern that matches only this text."""
    return "".join(f"\\{letter}" if letter in "*?[]\\^-" else letter for letter in text)


def _without_colons(key: str) -> str:
    return key.replace("%", "%25").replace(":", "%3A")


def _decoded(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{name} takes a non-empty string, not {value!r}")
    return value
