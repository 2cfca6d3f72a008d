"""Whether an exception means that the request is too long, and by how much."""

from __future__ import annotations

from compacter.overflow.token_limit import TokenLimit


def detect_token_limit(error: BaseException) -> TokenLimit | None:
    """What ``error`` says of a token limit, or None when it is about something else.

    Reads type, status, code, body and text of the exception, and of those behind it: its cause, those that it
    carries, the last of several tries, members of a group, and ``__context__`` where the outer one merely
    wraps it. Rate limits, quotas, a too large ``max_tokens``, expired tokens, overlong fields and counts of
    images or tools are no token limits, whatever class carries them. Pure, and never raises.
    """
    from compacter.overflow.chain import (
        judge_chain,  # compiles the vocabulary, once and only when an error came
    )

    try:
        verdict = judge_chain(error, set())
    except Exception:  # noqa: BLE001 - a stranger's object must not turn a provider's error into ours
        return None
    return verdict if isinstance(verdict, TokenLimit) else None


def detect_text(text: str, *, status: int | None = None, code: str | None = None) -> TokenLimit | None:
    """The same for the text of an error, with HTTP status and code where they are known. Never raises."""
    from compacter.overflow.evidence import gather_body
    from compacter.overflow.judge import judge

    try:
        verdict = judge(gather_body(text, status=status, code=code))
    except Exception:  # noqa: BLE001 - see above
        return None
    return verdict if isinstance(verdict, TokenLimit) else None
