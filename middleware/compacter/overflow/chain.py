"""What an exception amounts to together with those behind it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from compacter.overflow.causes import MAX_EXCEPTIONS, context, siblings, tries, wrapped
from compacter.overflow.evidence import gather
from compacter.overflow.judge import judge
from compacter.overflow.token_limit import TokenLimit

if TYPE_CHECKING:
    from compacter.overflow.judge import Verdict

_NETWORK_TYPE = re.compile(
    r"(?:Timeout|Connect(?:ion)?|Protocol|Read|Write|Network|SSL|DNS)(?:Error|Exception|Refused)?$|TimedOut"
)


def judge_chain(error: BaseException, seen: set[int]) -> Verdict:
    """The verdict on an exception; ``seen`` holds the ids of those already judged."""
    if id(error) in seen or len(seen) >= MAX_EXCEPTIONS or not isinstance(error, Exception):
        return None
    seen.add(id(error))
    own = judge(gather(error))
    if own == "other":
        return own
    if isinstance(own, TokenLimit) and own.limit is not None and own.requested is not None:
        return own
    behind = _behind(error, seen)
    if isinstance(own, TokenLimit):
        return _completed(own, behind)
    if behind is not None or not (old := context(error)) or _NETWORK_TYPE.search(type(error).__name__):
        return behind
    return judge_chain(old, seen)


def _behind(error: Exception, seen: set[int]) -> Verdict:
    """The verdict of what the exception names as its reason."""
    for reason in (*wrapped(error), *tries(error)):
        verdict = judge_chain(reason, seen)
        if verdict is not None:
            return verdict
    verdicts = [judge_chain(member, seen) for member in siblings(error)]
    limits = [verdict for verdict in verdicts if isinstance(verdict, TokenLimit)]
    if limits:
        return limits[-1]
    return "other" if "other" in verdicts else None


def _completed(own: TokenLimit, behind: Verdict) -> TokenLimit:
    """The numbers that a wrapper lost, taken from its reason where that does not disagree."""
    if not isinstance(behind, TokenLimit) or (own.limit is not None and behind.limit not in {None, own.limit}):
        return own
    if own.requested is not None and behind.requested not in {None, own.requested}:
        return own
    return replace(
        behind,
        limit=behind.limit if own.limit is None else own.limit,
        requested=behind.requested if own.requested is None else own.requested,
        source=own.source,
    )
