"""How the scripted server of the tests reads a request, and writes an answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from compacter.testing.server import Body, Event


class Protocol:
    """Converts a request to chat completions, and the model's answer to its own JSON or events."""

    def __init__(self, numbers: Iterator[int] | None = None) -> None:
        self.numbers = numbers or itertools.count(1)
        """Numbers for the ids of answers: programs treat two answers with the same id as one."""

    def read(self, body: Body) -> Body:
        """Return the arguments of ``ScriptedModel.completion`` for a request."""
        raise NotImplementedError

    def whole(self, body: Body, completion: Body) -> Body:
        """Return the answer to a request without ``stream``."""
        raise NotImplementedError

    def events(self, body: Body, chunks: Iterable[Body]) -> Iterator[Event]:
        """Return the answer as a stream of events."""
        raise NotImplementedError

    def error(self, message: str, kind: str | None, code: object) -> Body:
        """Return the body of an error with an HTTP status."""
        return {"error": {"message": message, "type": kind, "param": None, "code": code}}

    def failed(self, body: Body, error: Body) -> Iterator[Event]:
        """Yield an error inside a stream that has begun with HTTP 200."""
        raise NotImplementedError
