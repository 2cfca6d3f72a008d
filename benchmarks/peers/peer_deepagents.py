"""deepagents' ``SummarizationMiddleware``, which wraps the model's call
(https://docs.langchain.com/oss/python/deepagents).

Triggered at 80 % of the window that the model's profile states, keeping the newest share by tokens;
what is summarised is not trimmed, as its factory has it. Messages that leave are written to files,
which is part of its times. Its state keeps every message and, beside them, the summary and the cut:
a caller who keeps one list keeps that state, one who resends a history begins a new one. It also
reacts to a refusal.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from typing import Any

from base import ASend, Message, Native, Send, Settings
from deepagents.backends import FilesystemBackend
from deepagents.middleware.summarization import SummarizationMiddleware, _is_context_overflow
from langchain.agents.middleware import ModelRequest
from peer_langchain import Adapter as LangChain
from peer_langchain import Model


class State(list):  # type: ignore[type-arg]
    private: Any = ()


class Adapter(LangChain):
    package = "deepagents"
    imports = "from deepagents.middleware.summarization import SummarizationMiddleware"
    formats = ("openai",)

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        profile: Any = {"max_input_tokens": settings.window}
        self.model = Model(
            summarize=settings.summarize, asummarize=settings.asummarize, profile=profile
        )
        backend = FilesystemBackend(root_dir=tempfile.mkdtemp(prefix="peers-"), virtual_mode=True)
        self.own = SummarizationMiddleware(
            self.model,
            backend=backend,
            trigger=("fraction", 0.8),
            keep=("fraction", max(0.01, 0.8 * (1 - settings.ratio))),
            trim_tokens_to_summarize=None,
        )

    def more(self, native: Native, messages: list[Message]) -> Native:
        return _with(native, [*native, *self.read(messages)])

    def without_last(self, native: Native) -> Native:
        return _with(native, native[:-1])

    def request(self, native: Native) -> ModelRequest:
        state: Any = {"messages": native, **dict(getattr(native, "private", ()))}
        return ModelRequest(model=self.model, messages=list(native), state=state)

    def bound(self, send: Send, **options: Any) -> Callable[[Native], tuple[Native, Any]]:
        def call(native: Native) -> tuple[Native, Any]:
            return _kept(
                native,
                self.own.wrap_model_call(self.request(native), lambda one: send(one.messages)),
            )

        return call

    def abound(self, send: ASend) -> Callable[[Native], Awaitable[tuple[Native, Any]]]:
        async def call(native: Native) -> tuple[Native, Any]:
            return _kept(
                native,
                await self.own.awrap_model_call(
                    self.request(native), lambda one: send(one.messages)
                ),
            )

        return call

    def fold(self, native: Native) -> Native:
        return self.own.wrap_model_call(
            self.request(native), lambda one: one.messages
        ).model_response

    def detects(self, error: Exception, text: str) -> bool:
        return _is_context_overflow(error)


def _with(native: Native, messages: Native) -> Native:
    state = State(messages)
    state.private = getattr(native, "private", ())
    return state


def _kept(native: Native, reply: Any) -> tuple[Native, Any]:
    if not hasattr(reply, "command"):
        return native, reply
    kept = _with(native, native)
    kept.private = {
        name: value for name, value in reply.command.update.items() if name != "messages"
    }  # type: ignore[attr-defined]
    return kept, reply.model_response
