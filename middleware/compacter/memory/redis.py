"""Records in Redis: the processes of many machines share them."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from compacter.errors import ConfigurationError
from compacter.fork import ForkAware
from compacter.memory.base import DEADLINE, LEASE, BaseMemory, Circuit, Lease, MemoryUnavailable, seconds
from compacter.memory.record import Record

if TYPE_CHECKING:
    from redis import Redis, RedisCluster
    from redis.asyncio import Redis as AsyncRedis
    from redis.asyncio import RedisCluster as AsyncRedisCluster

T = TypeVar("T")
Steps = Generator[Any, Any, T]
"""An operation, written once for both kinds of client: it yields what a method of the client has returned, and gets
back the answer. A sync client has returned the answer itself, an asyncio client something to await."""

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
            retries and time-outs: ``redis.Redis``, ``redis.RedisCluster``, what ``Sentinel.master_for`` returns, or
            their ``redis.asyncio`` counterparts. An asyncio client is awaited in its event loop, and serves async calls
            only. A client of your own is not closed here.
        ttl: Seconds after which a record that nobody used is forgotten.
        namespace: Text that all keys begin with.
        deadline: Seconds that one operation may take, however slowly the server answers.

    Raises:
        ImportError: The package ``redis`` is not installed.
        ConfigurationError: An argument is unusable.
    """

    def __init__(
        self,
        url: str | Redis | RedisCluster | AsyncRedis | AsyncRedisCluster,
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
        self.asynchronous = inspect.iscoroutinefunction(self._client.execute_command)
        self._circuit = Circuit("the Redis server")
        self._away = (redis.ConnectionError, redis.TimeoutError, OSError)
        self._refused = redis.ResponseError
        self._lock_error = LockError
        self._inherited: list[object] = []

    def __repr__(self) -> str:
        return f"RedisMemory(ttl={self.ttl}, namespace={self.namespace!r})"

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """All records under any of these ``keys``; what was altered since it was saved is left out."""
        return self._run(self._find(keys))

    async def afind(self, keys: Sequence[str]) -> Sequence[Record]:
        """As ``find``, with an asyncio client."""
        return await self._arun(self._find(keys))

    def save(self, record: Record) -> None:
        """Keep ``record``; one with the same ``id`` is replaced."""
        self._run(self._save(record, record.to_json()))

    async def asave(self, record: Record) -> None:
        """As ``save``, with an asyncio client."""
        await self._arun(self._save(record, record.to_json()))

    def claim(self, key: str, seconds: float) -> Lease | None:
        """The right to make the summary named by ``key``, or ``None`` while somebody else holds it.

        For ``seconds`` at most. It is renewed every half second; that of a process that has died runs out after two.
        """
        lock = self._lock_named(key, seconds)
        if not self._run(_step(lock.acquire)):
            return None

        def renew() -> bool:
            return bool(self._run(_step(lambda: lock.extend(LEASE, replace_ttl=True))))

        def give_back() -> None:
            with contextlib.suppress(self._lock_error):
                self._run(_step(lock.release))

        return Lease(seconds, renew, give_back)

    async def aclaim(self, key: str, seconds: float) -> AsyncLease | None:
        """As ``claim``, with an asyncio client."""
        lock = self._lock_named(key, seconds)
        if not await self._arun(_step(lock.acquire)):
            return None

        async def renew() -> bool:
            return bool(await self._arun(_step(lambda: lock.extend(LEASE, replace_ttl=True))))

        async def give_back() -> None:
            with contextlib.suppress(self._lock_error):
                await self._arun(_step(lock.release))

        return AsyncLease(seconds, renew, give_back)

    def clear(self) -> None:
        """Forget every record of this namespace; with a client that is not an asyncio client."""
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

    def _find(self, keys: Sequence[str]) -> Steps[list[Record]]:
        pipeline = self._client.pipeline(transaction=False)
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
            found.extend(record for value in values if (record := Record.from_json(value)) is not None)
        return found

    def _save(self, record: Record, body: str) -> Steps[None]:
        name = self._records(record.key)
        pipeline = self._client.pipeline(transaction=False)
        pipeline.hset(name, record.id, body)
        pipeline.pexpire(name, self._lifetime())
        pipeline.hlen(name)
        answers = yield pipeline.execute()
        if answers[-1] <= _PER_KEY:
            return
        # Drop the corrupt ones and the shortest of too many; never the one just saved.
        ranks: list[tuple[int, str]] = []
        values = yield self._client.hgetall(name)
        for field, value in values.items():
            if _decoded(field) != record.id:
                other = Record.from_json(value)
                ranks.append((other.boundary if other else -1, _decoded(field)))
        ranks.sort()
        surplus = [field for _, field in ranks[: len(ranks) + 1 - _PER_KEY]]
        if surplus:
            yield self._client.hdel(name, *surplus)

    def _run(self, steps: Steps[T]) -> T:
        """What an operation returns. Raises ``MemoryUnavailable`` after the deadline, and while the server is away."""
        if self.asynchronous:
            raise TypeError("a RedisMemory with an asyncio client serves async calls only")
        self._circuit.check()

        try:
            # The time-out of a socket begins anew with every byte, so the operation runs beside this thread.
            result = self._circuit.within(self.deadline, lambda: _answered(steps))
        except self._away:
            self._circuit.failed()
            raise
        self._circuit.succeeded()
        return result

    async def _arun(self, steps: Steps[T]) -> T:
        self._circuit.check()
        try:
            async with asyncio.timeout(self.deadline):
                result = await _awaited(steps)
        except TimeoutError:
            self._circuit.failed()
            raise MemoryUnavailable(f"the Redis server did not answer within {self.deadline:g} seconds") from None
        except self._away:
            self._circuit.failed()
            raise
        self._circuit.succeeded()
        return result

    def _lock_named(self, key: str, seconds: float) -> Any:  # noqa: ANN401 - of redis or of redis.asyncio
        # Asked from several threads: the lock's token must not belong to one of them.
        lease = max(0.001, min(seconds, LEASE))
        return self._client.lock(self._claims(key), timeout=lease, blocking=False, thread_local=False)

    def _records(self, key: str) -> str:
        return f"{self.namespace}:records:{_without_colons(key)}"

    def _claims(self, key: str) -> str:
        return f"{self.namespace}:claims:{_without_colons(key)}"

    def _lifetime(self) -> int:
        return max(1, int(self.ttl * 1000))


class AsyncLease:
    """As ``compacter.memory.base.Lease``, renewed by a task."""

    def __init__(self, seconds: float, renew: Callable[[], Any], give_back: Callable[[], Any]) -> None:
        self._give_back = give_back
        self._held = True
        self._task: asyncio.Task[None] | None = None
        if seconds > LEASE:
            self._task = asyncio.get_running_loop().create_task(_keep(renew, seconds))

    async def release(self) -> None:
        """Give the claim back, as ``Claim.release`` promises."""
        if self._held:
            self._held = False
            self._stop()
            await self._give_back()

    def __del__(self) -> None:
        self._stop()

    def _stop(self) -> None:
        if self._task is not None:
            # The loop may be closed already.
            with contextlib.suppress(RuntimeError):
                self._task.cancel()
            self._task = None


async def _keep(renew: Callable[[], Any], seconds: float) -> None:
    left = seconds
    while left > LEASE:
        await asyncio.sleep(LEASE / 4)
        left -= LEASE / 4
        with contextlib.suppress(Exception):
            if not await renew():
                return


def _answered(steps: Steps[T]) -> T:
    answer = None
    while True:
        try:
            answer = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result


async def _awaited(steps: Steps[T]) -> T:
    answer = None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result
        answer = await request


def _step(ask: Callable[[], Any]) -> Steps[Any]:
    """An operation of one step."""
    answer = yield ask()
    return answer


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


def _checked(client: object) -> Any:  # noqa: ANN401 - one of four classes
    if isinstance(client, type) or not all(callable(getattr(client, name, None)) for name in _METHODS):
        raise ConfigurationError(
            f"url takes redis://host:port/db, rediss://host:port/db or unix:///path, or a client, not {type(client)!r}"
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
