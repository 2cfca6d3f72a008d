"""Records in Redis: the processes of many machines share them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from compacter.errors import ConfigurationError
from compacter.memory.base import Tokens, seconds
from compacter.memory.record import Record

if TYPE_CHECKING:
    from redis import Redis

T = TypeVar("T")

_WEEK = 7 * 86_400.0
_TIMEOUT = 1.0
"""Seconds that a call waits for the server."""
_PAUSE = 5.0
"""Seconds for which a server that was not there is not asked again."""
_PER_KEY = 32
"""Records under one key: the newest of one conversation count, its older ones only for forks."""
_SCHEMES = ("redis", "rediss", "unix")
_RELEASE = "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0"
"""Delete a claim if it is still this owner's: looking and deleting must be one step."""


class RedisMemory:
    """Keeps records in the Redis at ``url``, under keys that begin with ``namespace``.

    ``url`` is ``redis://host:port/db``, ``rediss://...`` or ``unix:///path``. A record that nobody used for
    ``ttl`` seconds is forgotten. Thread-safe, and safe among processes and machines. Nothing is connected
    before the first use. A server that does not answer within a second raises ``redis.RedisError``, which
    costs a call nothing but the memory; it is left alone for the next five seconds.

    Raises ``ImportError`` without the ``redis`` package, ``ConfigurationError`` for a bad argument. The
    server holds the text of summaries: whoever can write to it can change what models are told.
    """

    blocking = True

    def __init__(self, url: str, ttl: float = _WEEK, namespace: str = "compacter") -> None:
        try:
            import redis
            from redis.backoff import NoBackoff
            from redis.retry import Retry
        except ImportError as error:
            raise ImportError('compacter\'s Redis memory needs: pip install "llm-compacter[redis]"') from error
        _check_url(url)
        self.ttl = seconds("ttl", ttl)
        self.namespace = _text("namespace", namespace)
        self._errors = (redis.ConnectionError, redis.TimeoutError)
        self._refused = redis.ResponseError
        try:
            self._client: Redis = redis.Redis.from_url(
                url,
                socket_timeout=_TIMEOUT,
                socket_connect_timeout=_TIMEOUT,
                # Once more, for a connection that the server has closed meanwhile.
                retry=Retry(NoBackoff(), 1),
            )
        except ValueError as error:
            raise ConfigurationError(f"url: {error}") from None
        self._tokens = Tokens()
        self._away_until = 0.0
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"RedisMemory(ttl={self.ttl}, namespace={self.namespace!r})"

    def find(self, keys: Sequence[str]) -> Sequence[Record]:
        """All records under any of these keys; corrupt ones are left out."""
        names = [self._records(key) for key in keys]

        def ask() -> list[Any]:
            pipeline = self._client.pipeline(transaction=False)
            for name in names:
                pipeline.hvals(name)
                pipeline.pexpire(name, self._lifetime())
            # A value of another type under one name must not hide the others.
            return pipeline.execute(raise_on_error=False)

        found: list[Record] = []
        for values in self._asked(ask)[::2]:
            if isinstance(values, Exception):
                if isinstance(values, self._refused) and str(values).startswith("WRONGTYPE"):
                    continue
                raise values
            for value in values:
                record = Record.from_json(value)
                if record is not None:
                    found.append(record)
        return found

    def save(self, record: Record) -> None:
        """Keep a record; one with the same ``id`` is replaced."""
        name, body = self._records(record.key), record.to_json()

        def ask() -> int:
            pipeline = self._client.pipeline(transaction=True)
            pipeline.hset(name, record.id, body)
            pipeline.pexpire(name, self._lifetime())
            pipeline.hlen(name)
            return int(pipeline.execute()[-1])

        if self._asked(ask) > _PER_KEY:
            self._asked(lambda: self._trim(name, record.id))

    def claim(self, key: str, seconds: float) -> bool:
        """Whether this caller may do the work, for ``seconds`` at most."""
        token = self._tokens.new()
        granted = self._asked(
            lambda: self._client.set(self._claims(key), token, nx=True, px=max(1, int(seconds * 1000)))
        )
        if granted:
            self._tokens.hold(key, token)
        return bool(granted)

    def release(self, key: str) -> None:
        """Give a claim back, if it is still this caller's."""
        token = self._tokens.give_back(key)
        if token is not None:
            self._asked(lambda: self._client.eval(_RELEASE, 1, self._claims(key), token))

    def clear(self) -> None:
        """Forget every record of this namespace."""

        def ask() -> None:
            for name in self._client.scan_iter(match=f"{_literal(self._records(''))}*", count=1_000):
                self._client.delete(name)

        self._asked(ask)

    def close(self) -> None:
        """Close the connections; the next use opens them again."""
        self._client.close()

    def _asked(self, ask: Callable[[], T]) -> T:
        """What the server answers.

        Raises at once while it is known to be away, so that calls do not wait for it one by one.
        """
        with self._lock:
            if time.monotonic() < self._away_until:
                raise self._errors[0]("the server did not answer a moment ago")
        try:
            return ask()
        except self._errors:
            with self._lock:
                self._away_until = time.monotonic() + _PAUSE
            raise

    def _trim(self, name: str, newest: str) -> None:
        """Drop the shortest of too many records, and the corrupt ones; never the one just saved."""
        ranks: list[tuple[int, str]] = []
        for field, value in self._client.hgetall(name).items():
            known = field if isinstance(field, str) else field.decode("utf-8", "replace")
            record = Record.from_json(value)
            if known != newest:
                ranks.append((record.boundary if record else -1, known))
        ranks.sort()
        surplus = [known for _, known in ranks[: len(ranks) + 1 - _PER_KEY]]
        if surplus:
            self._client.hdel(name, *surplus)

    def _records(self, key: str) -> str:
        return f"{self.namespace}:records:{key}"

    def _claims(self, key: str) -> str:
        return f"{self.namespace}:claims:{key}"

    def _lifetime(self) -> int:
        return max(1, int(self.ttl * 1000))


def _literal(text: str) -> str:
    """A text as a pattern of Redis that matches it alone."""
    return "".join(f"\\{letter}" if letter in "*?[]\\^-" else letter for letter in text)


def _check_url(url: object) -> None:
    if not isinstance(url, str) or urlsplit(url).scheme not in _SCHEMES:
        # The URL itself is not repeated: it may hold a password.
        raise ConfigurationError("url takes redis://host:port/db, rediss://host:port/db or unix:///path")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigurationError(f"{name} takes a text that is not empty, not {value!r}")
    return value
