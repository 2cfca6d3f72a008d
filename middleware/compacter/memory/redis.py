"""Memory in Redis, shared by the processes of many machines."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from compacter.errors import ConfigurationError, seconds
from compacter.io import ASYNC, IO, SYNC, run
from compacter.memory.circuit import Circuit
from compacter.memory.io_thread import IOThread
from compacter.memory.lease import LEASE, LEASE_OF_A_LOOP, AsyncLease, Lease
from compacter.memory.protocol import DEADLINE, PER_KEY, WEEK, MemoryUnavailable
from compacter.memory.record import Record
from compacter.memory.stored import Encryption, StoringMemory

if TYPE_CHECKING:
    from redis import Redis, RedisCluster
    from redis.asyncio import Redis as AsyncRedis
    from redis.asyncio import RedisCluster as AsyncRedisCluster

T = TypeVar("T")
L = TypeVar("L", Lease, AsyncLease)

_SCHEMES = ("redis", "rediss", "unix")


class RedisMemory(StoringMemory):
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
        quotes: Whether the lines that a summary quotes from the conversation are stored too. If
            not, only the process that made a summary has them, and a summary that consists of
            nothing else, as no model wrote it, is not stored.

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
        quotes: bool = True,
    ) -> None:
        try:
            import redis
            from redis.exceptions import LockError
        except ImportError as error:
            raise ImportError(
                'compacter\'s Redis memory needs: pip install "llm-compacter[redis]"'
            ) from error
        super().__init__()
        self.ttl = seconds("ttl", ttl)
        self.namespace = _text("namespace", namespace)
        self.deadline = seconds("deadline", deadline)
        self._url = url if isinstance(url, str) else None
        given = _connect(url) if isinstance(url, str) else _check_client(url)
        awaited = inspect.iscoroutinefunction(given.execute_command)
        self.asynchronous = awaited
        # With a URL: what talks to the server, so that a busy program does not.
        self._thread = None if self._url is None else IOThread(partial(_connect, self._url))
        self._client: Any = None if awaited else given
        self._async_client: Any = given if awaited and self._url is None else None
        self._circuit = Circuit("the Redis server", _address(given), self._reports.append)
        self.circuits = (self._circuit,)
        self._open_codec(encryption, quotes, _address(given))
        self._away = (redis.ConnectionError, redis.TimeoutError, OSError)
        self._refused = redis.ResponseError
        self._lock_error = LockError

    def __repr__(self) -> str:
        return f"RedisMemory(ttl={self.ttl}, namespace={self.namespace!r})"

    def __reduce__(self) -> tuple[object, ...]:
        # A copy, also a pickled one, uses the same server and keys by its own connections.
        made = partial(
            type(self), deadline=self.deadline, encryption=self._encryption, quotes=self._quotes
        )
        client = self._client or self._async_client
        return made, (client if self._url is None else self._url, self.ttl, self.namespace)

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """Return all records under any of these ``keys``, without those that were altered since
        they were saved.
        """
        return self._decode(keys, self._use(partial(self._find, keys)))

    async def afind(self, keys: Sequence[str]) -> Sequence[Record]:
        """As ``find``, but asynchronous."""
        return self._decode(keys, await self._ause(partial(self._find, keys)))

    def save(self, record: Record) -> None:
        """Save ``record``; a record with the same ``id`` is replaced."""
        encoded = self._encode(record)
        if encoded is not None:
            self._use(partial(self._save, *encoded))

    async def asave(self, record: Record) -> None:
        """As ``save``, but asynchronous."""
        encoded = self._encode(record)
        if encoded is not None:
            await self._ause(partial(self._save, *encoded))

    def claim(self, key: str, seconds: float) -> Lease | None:
        """Return the right to make the summary identified by ``key``, or ``None`` while another
        caller has it.

        Valid for ``seconds`` at most. It is renewed while its process lives, and expires two
        seconds after it has died.
        """
        if self._thread is not None:
            return self._use(partial(self._grant, Lease, self._use_in_sync, key, seconds))
        lock = self._use(partial(self._lock_claim, key, min(seconds, LEASE)))

        async def renew() -> bool:
            return self._use(partial(self._renew, lock, LEASE))

        async def give_back() -> None:
            self._use(partial(self._unlock, lock))

        return None if lock is None else Lease(seconds, renew, give_back)

    async def aclaim(self, key: str, seconds: float) -> AsyncLease | None:
        """As ``claim``, but asynchronous. With an asyncio client of your own, which only your event
        loop can use, the claim of a process that has died expires after ten seconds.
        """
        return await self._ause(partial(self._grant, AsyncLease, self._ause, key, seconds))

    def clear(self) -> None:
        """Delete all records of this namespace."""
        if self._own is not None:
            self._own.clear()
        if self._thread is not None:
            self._thread.wait_for(partial(self._clear, ASYNC))
        else:
            run(self._clear(SYNC, self._sync_client()))

    def close(self) -> None:
        """Close the connections, unless the client is your own; the next use opens them again."""
        if self._thread is not None:
            self._thread.close()
        self._circuit.reset()

    def reports(self, error: BaseException) -> bool:
        """Return whether the circuit counts such a failure.

        Args:
            error: What a method raised.
        """
        return isinstance(error, (MemoryUnavailable, *self._away))

    # -- commands to the server, over both kinds of client -----------------------------------------

    async def _find(self, keys: Sequence[str], io: IO, client: Any) -> list[str | bytes]:  # noqa: ANN401 - one of the classes
        pipeline = client.pipeline(transaction=False)
        for key in keys:
            pipeline.hvals(self._records(key))
            pipeline.pexpire(self._records(key), self._lifetime())
        # A value of another type under one name must not hide the others.
        answers = await io.call(pipeline.execute, raise_on_error=False)
        texts: list[str | bytes] = []
        for values in answers[::2]:
            if isinstance(values, Exception):
                if isinstance(values, self._refused) and str(values).startswith("WRONGTYPE"):
                    continue
                raise values
            texts.extend(values)
        return texts

    async def _save(self, record: Record, body: str, io: IO, client: Any) -> None:  # noqa: ANN401 - as above
        name = self._records(record.key)
        pipeline = client.pipeline(transaction=False)
        pipeline.hset(name, record.id, body)
        pipeline.pexpire(name, self._lifetime())
        pipeline.hlen(name)
        answers = await io.call(pipeline.execute)
        if answers[-1] <= PER_KEY:
            return
        # Drop surplus records, the corrupt ones and the shortest first; never the one just saved.
        ranks: list[tuple[int, str]] = []
        for field, value in (await io.call(client.hgetall, name)).items():
            if _decode(field) != record.id:
                other = self._codec.decode(value)
                ranks.append((other.boundary if other else -1, _decode(field)))
        surplus = [field for _, field in sorted(ranks)[: len(ranks) + 1 - PER_KEY]]
        if surplus:
            await io.call(client.hdel, name, *surplus)

    async def _lock_claim(self, key: str, seconds: float, io: IO, client: Any) -> Any:  # noqa: ANN401 - as above
        # Several threads use it, so the lock's token must not be thread-local.
        lock = client.lock(
            f"{self.namespace}:claims:{_without_colons(key)}",
            timeout=max(0.001, seconds),
            blocking=False,
            thread_local=False,
        )
        return lock if await io.call(lock.acquire) else None

    async def _grant(
        self,
        kind: Callable[..., L],
        use: Callable[[Callable[[IO, Any], Coroutine[Any, Any, None]]], Coroutine[Any, Any, None]],
        key: str,
        seconds: float,
        io: IO,
        client: Any,  # noqa: ANN401 - as above
    ) -> L | None:
        """Return the claim, or ``None``. It is renewed from here on, as a busy program may take it
        much later than it was granted.
        """
        lease = LEASE_OF_A_LOOP if self._thread is None else LEASE
        lock = await self._lock_claim(key, min(seconds, lease), io, client)
        if lock is None:
            return None

        async def give_back() -> None:
            await use(partial(self._unlock, lock))

        renew = partial(self._time_out, partial(self._renew, lock, lease))
        return kind(seconds, renew, give_back, ASYNC.beside, lease)

    async def _renew(self, lock: Any, seconds: float, io: IO, _: object) -> bool:  # noqa: ANN401 - as above
        return bool(await io.call(lock.extend, seconds, replace_ttl=True))

    async def _unlock(self, lock: Any, io: IO, _: object) -> None:  # noqa: ANN401 - as above
        with contextlib.suppress(self._lock_error):  # It has run out.
            await io.call(lock.release)

    async def _clear(self, io: IO, client: Any) -> None:  # noqa: ANN401 - as above
        prefix = self._records("")
        names = client.scan_iter(match=f"{_literal(prefix)}*", count=1_000)
        for name in [one async for one in names] if io.asynchronous else list(names):
            # A namespace may be a prefix of another one.
            if ":" not in _decode(name).removeprefix(prefix):
                await io.call(client.delete, name)

    # -- where they run ----------------------------------------------------------------------------

    def _use(self, work: Callable[[IO, Any], Coroutine[Any, Any, T]]) -> T:
        """Return the result of commands. Raises ``MemoryUnavailable`` after the deadline or several
        failures.
        """
        if self._thread is not None:
            self._circuit.check()
            return self._thread.wait_for(partial(self._time_out, work))
        client = self._sync_client()
        self._circuit.check()
        try:
            # The time-out of a socket restarts with every byte, so the operation runs in another
            # thread.
            result = self._circuit.within(self.deadline, lambda: run(work(SYNC, client)))
        except self._away as error:
            self._circuit.fail(error)
            raise
        self._circuit.succeed()
        return result

    async def _ause(self, work: Callable[[IO, Any], Coroutine[Any, Any, T]]) -> T:
        """As ``_use``, but asynchronous."""
        self._circuit.check()
        if self._thread is not None:
            return await self._thread.wait_async(partial(self._time_out, work))
        return await self._time_out(work, self._async_client)

    async def _time_out(
        self,
        work: Callable[[IO, Any], Coroutine[Any, Any, T]],
        client: Any = None,  # noqa: ANN401 - as above
    ) -> T:
        """Await the result of commands in the event loop of ``client``, and count how it went."""
        client = client or (self._thread.client if self._thread else self._async_client)
        try:
            result = await self._circuit.answer_within(self.deadline, work(ASYNC, client))
        except self._away as error:
            self._circuit.fail(error)
            raise
        self._circuit.succeed()
        return result

    async def _use_in_sync(self, work: Callable[[IO, Any], Coroutine[Any, Any, T]]) -> T:
        return self._use(work)

    def _sync_client(self) -> Any:  # noqa: ANN401 - as above
        if self._client is None:
            raise MemoryUnavailable(
                "a client of redis.asyncio works in async calls only: pass a URL or a redis.Redis"
            )
        return self._client

    def _records(self, key: str) -> str:
        return f"{self.namespace}:records:{_without_colons(key)}"

    def _lifetime(self) -> int:
        return max(1, int(self.ttl * 1000))


def _connect(url: str) -> Any:  # noqa: ANN401 - as above
    """Return a client for the event loop of ``IOThread``, which limits the time itself."""
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    if urlsplit(url).scheme not in _SCHEMES:
        # The message does not repeat the URL, which may contain a password.
        raise ConfigurationError(
            "url takes redis://host:port/db, rediss://host:port/db or unix:///path"
        )
    try:
        # One retry, for a connection that the server has closed meanwhile. The client's own
        # time-outs would count the time in which the machine was busy.
        return Redis.from_url(
            url,
            socket_timeout=None,
            socket_connect_timeout=None,
            retry=Retry(NoBackoff(), 1),
        )
    except ValueError as error:
        raise ConfigurationError(f"url: {error}") from None


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


def _check_client(client: object) -> Any:  # noqa: ANN401 - one of several classes
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


def _decode(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{name} takes a non-empty string, not {value!r}")
    return value
