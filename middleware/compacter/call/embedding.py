"""Vectors of passages and questions: the calls of the user's embedder, and what it has returned.

Passages are embedded in a thread of their own, each text once. A question waits for its own vectors
for a second at most, and for no others. After a failure the embedder is left alone for a minute.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from hashlib import blake2b
from typing import Any

from cachetools import LRUCache

from compacter.errors import FunctionError
from compacter.recall.index import Index
from compacter.recall.vectors import ELSEWHERE, Embed, closeness, read_vectors
from compacter.runtime import models
from compacter.runtime.io import in_thread, resolve
from compacter.runtime.locks import ForkAware, Lock

_DEADLINE = 1.0
"""Longest time in seconds that a turn waits for the vectors of its question."""
_PAUSE = 60.0
"""Seconds for which an embedder that failed is not called."""
_BATCH = 64
"""Texts in one call: providers take from 96 to 2,048."""
_MOST_BYTES = 64_000_000
"""Size limit of the vectors that are kept: some 40,000 of 384 numbers."""


class Embeddings(ForkAware):
    """Vectors of one embedder's. Thread-safe; empty in a forked child.

    Args:
        embed: The function, or the name of an embedding model for litellm.
        failed: Called with the exception when the embedder fails.
    """

    def __init__(self, embed: Embed | str, failed: Callable[[Exception], object]) -> None:
        super().__init__()
        self._embed: Embed = partial(models.embedding, embed) if isinstance(embed, str) else embed
        self._report_failure = failed
        self._lock = Lock()
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Begin again: the threads are the parent's."""
        self._vectors: LRUCache[bytes, array[float]] = LRUCache(
            _MOST_BYTES, getsizeof=lambda vector: vector.itemsize * len(vector)
        )
        self._waiting: dict[str, None] = {}
        self._running: Future[None] | None = None
        self._rests_until = 0.0

    def add(self, passages: Sequence[str]) -> Future[None] | None:
        """Begin to embed the passages that have no vectors, in the background; return what is under
        way, if anything.
        """
        with self._lock:
            if passages:
                texts = (*ELSEWHERE, *passages)
                self._waiting |= dict.fromkeys(
                    text for text in texts if _key(text) not in self._vectors
                )
            if self._waiting and self._running is None and self._is_ready():
                self._running = in_thread(self._work)
            return self._running

    def near(self, index: Index, questions: Sequence[str]) -> Mapping[str, Mapping[int, float]]:
        """Return how close each passage of an index is to each of the questions: for those whose
        vectors there are; see ``closeness``.
        """
        passages = index.passages()
        self.add(passages)
        unknown = [text for text in questions if _key(text) not in self._vectors]
        if unknown and self._is_ready():
            try:
                in_thread(partial(self._ask, unknown)).result(_DEADLINE)
            except TimeoutError:
                why = f"embed took longer than {_DEADLINE:g} s for a question"
                self._rest(FunctionError(why))
        usual = [vector for vector in self._find(ELSEWHERE) if vector is not None]
        if len(usual) < len(ELSEWHERE):
            return {}
        held = self._find(passages)
        return {
            question: closeness(held, usual, vector)
            for question, vector in zip(questions, self._find(questions), strict=True)
            if vector is not None
        }

    def _find(self, texts: Sequence[str]) -> list[array[float] | None]:
        with self._lock:
            return [self._vectors.get(_key(text)) for text in texts]

    def _work(self) -> None:
        """Embed what is waiting, until nothing is or the embedder fails."""
        while True:
            with self._lock:
                batch = list(self._waiting)[:_BATCH]
                if not batch or not self._is_ready():
                    self._running = None
                    return
            self._ask(batch)

    def _ask(self, texts: Sequence[str]) -> None:
        """Have some texts embedded, and keep their vectors."""
        why = "embed raised {}"
        try:
            result: Any = resolve(self._embed, list(texts))
            # Not the exception's own text, which may quote a message.
            why = "embed did not return one vector of finite numbers, not all zero, for each text"
            vectors = read_vectors(result, len(texts))
        except Exception as error:  # noqa: BLE001 - the user's function, or its provider
            failure = FunctionError(why.format(type(error).__name__))
            failure.__cause__ = error
            self._rest(failure)
            return
        with self._lock:
            self._vectors.update(zip(map(_key, texts), vectors, strict=True))
            for text in texts:
                self._waiting.pop(text, None)

    def _is_ready(self) -> bool:
        return time.monotonic() >= self._rests_until

    def _rest(self, failure: FunctionError) -> None:
        self._rests_until = time.monotonic() + _PAUSE
        self._report_failure(failure)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
