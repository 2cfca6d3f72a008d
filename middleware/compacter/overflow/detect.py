"""What the rest of the package, and its users, ask the detector.

The patterns take a tenth of a second to compile. They are imported when the first error is read, not before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from compacter.overflow.rules import Verdict

Kind = Literal["input", "input_plus_output"]


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """A token limit as the provider stated it; numbers are in tokens, ``None`` where the text states none."""

    limit: int | None = None
    """The most that the provider accepts."""
    requested: int | None = None
    """What was sent: the total where the text names one, the sum of its parts where it names only those."""
    kind: Kind = "input"
    """``input_plus_output`` when the room asked for the completion (``max_tokens``) is counted in."""
    input_tokens: int | None = None
    """The share of the messages, where the text breaks the total down."""
    output_tokens: int | None = None
    """The share reserved for the completion, where the text breaks the total down."""
    source: str = ""
    """The rule that matched; never a piece of the message."""


def detect_token_limit(error: BaseException) -> TokenLimit | None:
    """What an exception says of a token limit, or ``None`` when it is about something else. Never raises.

    Args:
        error: The exception, of whatever class.

    Reads type, status, code, body and text of the exception, and of those behind it: its cause, those that it carries,
    the last of several tries, members of a group, and ``__context__`` where the newer exception merely wraps it. Rate
    limits, quotas, a too large ``max_tokens``, expired tokens, overlong fields and counts of images or tools are no
    token limits, whatever their class.
    """
    return _judge(error).limit


def detect_text(text: str, *, status: int | None = None, code: str | None = None) -> TokenLimit | None:
    """The same for the text of an error. Never raises.

    Args:
        text: The text.
        status: The HTTP status that came with it, if it is known.
        code: The error code that came with it, if it is known.
    """
    return _judge(text, status=status, code=code).limit


def explain(error: BaseException | str, *, status: int | None = None, code: str | None = None) -> Verdict:
    """Why an exception, or the text of one, counts as a token limit or does not. Never raises.

    Args:
        error: an exception, or the text of an error.
        status: the HTTP status that came with a text, if it is known.
        code: the error code that came with a text, if it is known.
    """
    from compacter.overflow.rules import explained

    return explained(_judge(error, status=status, code=code))


def _judge(error: BaseException | str, *, status: int | None = None, code: str | None = None) -> Verdict:
    from compacter.overflow import rules
    from compacter.overflow.signals import signals_of_body

    try:
        if isinstance(error, BaseException):
            return rules.judge_error(error)
        return rules.judge(signals_of_body(error, status=status, code=code))
    except Exception:  # noqa: BLE001 - whatever an unknown object does must not hide the provider's error
        return rules.NOTHING
