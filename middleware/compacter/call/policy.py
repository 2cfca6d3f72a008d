"""The options as the flows use them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tenacity import Retrying

from compacter.compaction.task import CompactionStrategy, Settings
from compacter.messages.format import Message
from compacter.overflow import TokenLimit, detect_token_limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything a flow decides by; no client, no clock."""

    ratio: float = 0.7
    retrying: Retrying
    """Decides stop and wait; copied for each call, because tenacity keeps a call's state in it."""
    strategies: tuple[CompactionStrategy, ...]
    settings: Settings = field(default_factory=Settings)
    keep_turns: int = 0
    pin: Callable[[Message], object] | None = None
    alternate: bool | None = None
    adjust_max_tokens: bool = True
    asks_plan: bool = False
    """Whether there is a ``before_compaction`` hook."""
    remembers: bool = True
    detect: Callable[[BaseException], TokenLimit | None] = detect_token_limit
    trigger: int | float | None = None
    min_calls_between: int = 3
    token_counter: Callable[[Sequence[Message]], int] | None = None


def detector(
    extra: Callable[[BaseException], TokenLimit | bool | None] | None,
) -> Callable[[BaseException], TokenLimit | None]:
    """``detect_token_limit`` with the user's own detector asked first; True means "yes, without numbers"."""
    if extra is None:
        return detect_token_limit

    def detect(error: BaseException) -> TokenLimit | None:
        try:
            answer = extra(error)
        except Exception:  # noqa: BLE001 - a broken detector must not hide the provider's error
            answer = None
        if isinstance(answer, TokenLimit):
            return answer
        if answer is True:
            return detect_token_limit(error) or TokenLimit(limit=None, requested=None, kind="input")
        if answer is False:
            return None
        return detect_token_limit(error)

    return detect


def never_sleep(_: float) -> None:
    """Tenacity never sleeps itself: the flow yields the wait."""
