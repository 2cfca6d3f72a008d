"""A scripted model with what only some providers do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from compacter.testing import ScriptedModel, TokenLimitError
from compacter.testing.errors import error_body
from compacter.testing.replies import shaped


class OddModel(ScriptedModel):
    """It refuses inside a reply with HTTP 200, or begins streams with chunks without choices."""

    def __init__(
        self, *, overflow_in_reply: bool = False, housekeeping: int = 0, **options: Any
    ) -> None:
        super().__init__(**options)
        self._overflow_in_reply = overflow_in_reply
        self._housekeeping = housekeeping

    def completion(self, model: str, messages: Any, **options: Any) -> Any:
        try:
            return super().completion(model, messages, **options)
        except TokenLimitError as error:
            return self._reply(error, streaming=bool(options.get("stream")))

    async def acompletion(self, model: str, messages: Any, **options: Any) -> Any:
        try:
            return await super().acompletion(model, messages, **options)
        except TokenLimitError as error:
            return self._reply(error, streaming=bool(options.get("stream")))

    __call__ = completion

    def _reply(self, error: TokenLimitError, *, streaming: bool) -> Any:
        if streaming or not self._overflow_in_reply:
            raise error
        return shaped({"id": "odd", "choices": [], "error": error_body(error)}, self._reply_type)

    def _refusing(self, refusal: Any, frame: Any) -> Iterator[dict[str, Any]]:
        if self._overflow_at != "first_event":
            yield from (frame.housekeeping() for _ in range(self._housekeeping))
        yield from super()._refusing(refusal, frame)

    def _chunks(self, answer: Any, request: Any, frame: Any) -> Iterator[dict[str, Any]]:
        yield from (frame.housekeeping() for _ in range(self._housekeeping))
        yield from super()._chunks(answer, request, frame)
