"""The options of ``Compacter``, validated at construction."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from tenacity.stop import stop_base

from compacter.compaction.cut import CompactionPlan
from compacter.compaction.summarize import Summarize
from compacter.compaction.task import CompactionStrategy
from compacter.errors import ConfigurationError
from compacter.memory import InProcessMemory, Memory
from compacter.messages.format import Message
from compacter.overflow import TokenLimit
from compacter.redaction import redact_secrets

Summarizer = str | Callable[..., object] | None
PlanHook = Callable[[CompactionPlan], "CompactionPlan | bool | Awaitable[CompactionPlan | bool | None] | None"]
Fallback = Literal["extractive", "truncate"]
_FALLBACKS = ("extractive", "truncate")


def _hooks(value: object) -> tuple[Callable[..., object], ...]:
    if value is None:
        return ()
    hooks: list[Callable[..., object]] = []
    for hook in value if isinstance(value, Iterable) and not callable(value) else (value,):
        if not callable(hook):
            raise ValueError(f"takes a function or several, not {hook!r}")  # noqa: TRY004 - pydantic reads it
        hooks.append(hook)
    return tuple(hooks)


class Options(BaseModel):
    """Every option of ``Compacter`` (DESIGN 3.2). Sizes in characters, limits in tokens, times in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True, validate_default=True)

    compact_ratio: float = Field(default=0.7, gt=0, le=1)
    max_retries: Any = 3
    summarizer: Any = None
    summary_prompt: str | None = None
    max_summary_tokens: int = Field(default=4096, ge=16)
    strategy: Any = Field(default_factory=Summarize)
    fallback: Any = "truncate"
    preserve_recent_turns: int = Field(default=0, ge=0)
    pin: Callable[[Message], object] | None = None
    trigger_tokens: int | float | None = None
    min_calls_between: int = Field(default=3, ge=0)
    alternate_roles: bool | None = None
    adjust_max_tokens: bool = True
    memory: Any = Field(default_factory=InProcessMemory)
    timeout: float | None = Field(default=None, gt=0)
    detect: Callable[[BaseException], TokenLimit | bool | None] | None = None
    on_compaction: Any = ()
    on_event: Any = ()
    before_compaction: PlanHook | None = None
    redact: Any = None
    logger: Any = None
    ledger_share: float = Field(default=0.25, ge=0, le=0.5)
    extractors: Any = ()
    summary_request: Literal["transcript", "native"] = "transcript"
    token_counter: Callable[[Sequence[Message]], int] | None = None

    @field_validator("max_retries")
    @classmethod
    def _retries(cls, value: object) -> object:
        if isinstance(value, stop_base) or (callable(value) and not isinstance(value, type)):
            return value
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValueError("takes a whole number from 0 on, or a tenacity stop such as stop_after_delay(30)")
        return value

    @field_validator("summarizer")
    @classmethod
    def _summarizer(cls, value: object) -> object:
        if value is None or callable(value) or (isinstance(value, str) and value.strip()):
            return value
        raise ValueError('takes None, a litellm model name, "extractive", or a function of (messages, **options)')

    @field_validator("strategy")
    @classmethod
    def _strategy(cls, value: object) -> object:
        parts = tuple(value) if isinstance(value, (list, tuple)) else (value,)
        if not parts or not all(isinstance(part, CompactionStrategy) and not isinstance(part, type) for part in parts):
            raise ValueError(
                "takes a strategy such as Summarize(), or a sequence of them; one has a `name` and `compact(task)`"
            )
        return parts

    @field_validator("fallback")
    @classmethod
    def _fallback(cls, value: object) -> object:
        parts = (
            ()
            if value is None
            else (value,)
            if isinstance(value, str)
            else tuple(value)
            if isinstance(value, Iterable)
            else (value,)
        )
        if not all(part in _FALLBACKS for part in parts):
            raise ValueError('takes "truncate", "extractive", a sequence of these, or None')
        return ("extractive", "truncate") if parts == ("extractive",) else parts

    @field_validator("redact")
    @classmethod
    def _redact(cls, value: object) -> object:
        if value == "secrets":
            return redact_secrets
        if value is None or callable(value):
            return value
        raise ValueError('takes a function of a text that returns it redacted, "secrets", or None')

    @field_validator("trigger_tokens")
    @classmethod
    def _trigger(cls, value: object) -> object:
        if value is None:
            return value
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
            raise ValueError("takes a number of tokens (an int) or a share of the window such as 0.8")
        if isinstance(value, float) and value > 1:
            if value.is_integer():
                return int(value)
            raise ValueError(
                "as a float is a share of the window, so between 0 and 1; pass an int for a number of tokens"
            )
        return value

    @field_validator("memory")
    @classmethod
    def _memory(cls, value: object) -> object:
        if value is None or isinstance(value, Memory):
            return value
        raise ValueError(
            "takes InProcessMemory(), SQLiteMemory(path), RedisMemory(url), your own Memory, or None to turn it off"
        )

    @field_validator("logger")
    @classmethod
    def _logger(cls, value: object) -> object:
        if value is None or not isinstance(value, (bool, int, float, str, bytes, type)):
            return value
        raise ValueError("takes a structlog logger: an object with info, warning and debug")

    @field_validator("on_compaction", "on_event", "extractors")
    @classmethod
    def _several(cls, value: object) -> object:
        return _hooks(value)

    def settings(self) -> str:
        """What makes two summaries comparable: settings that share no memory record when they differ."""
        names = "+".join(
            f"{part.name}:{part!r}" if hasattr(part, "__dataclass_fields__") else part.name for part in self.strategy
        )
        return repr(
            (
                self.compact_ratio,
                _known_as(self.summarizer),
                self.summary_prompt,
                self.max_summary_tokens,
                names,
                self.preserve_recent_turns,
                _known_as(self.pin),
                self.alternate_roles,
                self.ledger_share,
                self.summary_request,
                _known_as(self.redact),
                [_known_as(extractor) for extractor in self.extractors],
            )
        )


def _known_as(value: object) -> str:
    """What a function, or an object that is called, is told from others by; the same after a restart."""
    if not callable(value):
        return repr(value)
    named = value if hasattr(value, "__qualname__") else type(value)
    line = getattr(getattr(value, "__code__", None), "co_firstlineno", 0)
    # Only a function without a name of its own is told by its line: the others may move.
    where = f":{line}" if "<lambda>" in named.__qualname__ else ""
    return f"{getattr(named, '__module__', '')}.{named.__qualname__}{where}"


def validated(options: dict[str, object]) -> Options:
    """Options from keyword arguments. Raises ``ConfigurationError`` that names each bad one and what it takes."""
    try:
        return Options(**options)  # type: ignore[arg-type]
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            name = ".".join(map(str, problem["loc"][:1]))
            if problem["type"] == "extra_forbidden":
                lines.append(f"unknown option {name!r}; there are: {', '.join(Options.model_fields)}")
            else:
                lines.append(f"{name}: {problem['msg'].removeprefix('Value error, ')} (got {problem['input']!r})")
        raise ConfigurationError("; ".join(lines)) from None


def default_logger() -> Any:  # noqa: ANN401 - whatever class the program has structlog make
    """The program's structlog where it has configured one, else the standard library's logger ``compacter``.

    Never structlog's own default, which prints to standard output.
    """
    import structlog  # With its console renderer it takes longer to import than the rest of the package.

    if structlog.is_configured():
        return structlog.get_logger("compacter")
    return structlog.wrap_logger(
        logging.getLogger("compacter"),
        processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
        wrapper_class=structlog.stdlib.BoundLogger,
    )
