"""Fakes for tests of your own: a scripted chat model with a context window, and a summarizer that
can fail.

The model is a function, or a server on a loopback port. Pure Python, deterministic, no SDK. See
``docs/testing.md``.
"""

from __future__ import annotations

from compacter.testing.errors import (
    STYLES,
    InvalidRequestError,
    ProviderError,
    RateLimitError,
    Style,
    TokenLimitError,
    invalid_request_error,
    rate_limit_error,
    server_error,
    token_limit_error,
)
from compacter.testing.model import Completion, OverflowAt, Request, ScriptedModel
from compacter.testing.replies import (
    AsyncScriptedStream,
    Chunk,
    Interrupted,
    Replies,
    Reply,
    ScriptedStream,
    ScriptExhaustedError,
    Struct,
)
from compacter.testing.rules import CharacterCount, Check, Count, chat_fault
from compacter.testing.server import ScriptedServer
from compacter.testing.summarizer import Failure, Failures, ScriptedSummarizer

__all__ = [
    "STYLES",
    "AsyncScriptedStream",
    "CharacterCount",
    "Check",
    "Chunk",
    "Completion",
    "Count",
    "Failure",
    "Failures",
    "Interrupted",
    "InvalidRequestError",
    "OverflowAt",
    "ProviderError",
    "RateLimitError",
    "Replies",
    "Reply",
    "Request",
    "ScriptExhaustedError",
    "ScriptedModel",
    "ScriptedServer",
    "ScriptedStream",
    "ScriptedSummarizer",
    "Struct",
    "Style",
    "TokenLimitError",
    "chat_fault",
    "invalid_request_error",
    "rate_limit_error",
    "server_error",
    "token_limit_error",
]
