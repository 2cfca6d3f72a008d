"""Signs of life in a stream that is held until its first content.

The beginning of a stream is not passed on at once, as a refusal may follow, and clients give up
after some silence. So a caller who has waited for a second gets the head of the response, and from
then on what clients of the protocol skip. A failure afterwards is sent inside the stream.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator

from starlette.types import Send

from compacter.gateway.serve.answers import Answer
from compacter.gateway.serve.bodies import read
from compacter.gateway.serve.protocols import Protocol

# Seconds of silence that a caller gets to see: clients allow two and more.
SILENCE = 1.0


class Lifeline:
    """The part of a response that is sent before its answer is known.

    Args:
        send: ASGI function.
    """

    def __init__(self, send: Send) -> None:
        self._protocol: Protocol | None = None
        self._send = send
        self._over = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self, held: Answer, protocol: Protocol) -> None:
        """Send signs of life from now on, if the protocol has any.

        Args:
            held: The beginning of a stream that the upstream has sent with a status of success.
            protocol: The protocol of the call.
        """
        if self._task is None and protocol.beat:
            self._task = asyncio.create_task(self._keep_alive(held, protocol))

    @property
    def has_begun(self) -> bool:
        """Whether the head of the response was sent."""
        return self._protocol is not None

    def chunks(self, answer: Answer) -> AsyncGenerator[bytes]:
        """Return the body of an answer; a failure is an event if the stream has begun."""
        if self._protocol is None or answer.status < 400:
            return answer.chunks()
        return _failure(answer, self._protocol.failure)

    async def end(self) -> None:
        """Send no more signs of life."""
        self._over.set()
        if self._task is not None:
            await self._task

    async def _keep_alive(self, held: Answer, protocol: Protocol) -> None:
        # Ended by an event, as a cancelled ``send`` may or may not have sent.
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), SILENCE)
                return
            if self._protocol is None:
                # The length of the upstream's stream is that of another one.
                headers = [pair for pair in held.headers if pair[0] != b"content-length"]
                start = {"type": "http.response.start", "status": held.status, "headers": headers}
                await self._send(start)
                self._protocol = protocol
            await self._send(
                {"type": "http.response.body", "body": protocol.beat, "more_body": True}
            )


async def _failure(answer: Answer, form: bytes) -> AsyncGenerator[bytes]:
    """Yield an error of the upstream, or of this server, as an event."""
    body = b"".join([chunk async for chunk in answer.chunks()])
    error = await read(body) or {"error": {"message": body.decode("utf-8", "replace")}}
    yield form % json.dumps(error).encode()
