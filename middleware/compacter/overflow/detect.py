"""Whether an exception means that the request is too long, and by how much."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, Literal

from compacter.overflow.causes import MAX_EXCEPTIONS, context, siblings, tries, wrapped
from compacter.overflow.evidence import Evidence, gather, gather_body
from compacter.overflow.roles import measure
from compacter.overflow.rules import CODE, DOUBT, TYPE, Finding, counts_output, read, speaks_of_tokens
from compacter.overflow.text import normalise
from compacter.overflow.token_limit import TokenLimit

_OTHER_STATUS: Final = frozenset((401, 402, 403, 404, 405, 407, 408, 409, 429, 502, 503, 504, 529))
"""Statuses that mean something else, whatever the text says ("too many tokens" with 429 is a rate limit)."""

_OTHER_CODE = re.compile(
    r"rate_?limit|quota|throttl|too_?many_?requests|authenti|authoriz|api_?key|permission|forbidden|expired|content_?(?:filter|policy)"
    r"|overloaded|billing|insufficient|not_?found|string_above|array_above|string_too_long|array_too_long|resource_?exhausted|unauthenticated|^429$|^401$|^403$"
)
_OTHER_TYPE = re.compile(
    r"ratelimit|throttl|toomanyrequests|quota|authentication|permissiondenied|unauthorized|forbidden|expiredtoken|contentpolicy|contentfilter|lengthfinishreason",
    re.IGNORECASE,
)
_NETWORK_TYPE = re.compile(
    r"(?:Timeout|Connect(?:ion)?|Protocol|Read|Write|Network|SSL|DNS)(?:Error|Exception|Refused)?$|TimedOut"
)

_Verdict = TokenLimit | Literal["other"] | None


def detect_token_limit(error: BaseException) -> TokenLimit | None:
    """What ``error`` says of a token limit, or None when it is about something else.

    Reads type, status, code, body and text of the exception, and of those behind it: ``__cause__``, exceptions
    it carries, the last of several tries, members of a group, and ``__context__`` where the outer one merely
    wraps it. Rate limits, quotas, a too large ``max_tokens``, expired tokens, overlong fields and counts of
    images or tools are no token limits, whatever class carries them. Pure, and never raises.
    """
    try:
        verdict = _detect(error, set())
    except Exception:  # noqa: BLE001 - a stranger's object must not turn a provider's error into ours
        return None
    return verdict if isinstance(verdict, TokenLimit) else None


def detect_text(text: str, *, status: int | None = None, code: str | None = None) -> TokenLimit | None:
    """The same for the text of an error, with HTTP status and code where they are known. Never raises."""
    try:
        verdict = judge(gather_body(text, status=status, code=code))
    except Exception:  # noqa: BLE001 - see above
        return None
    return verdict if isinstance(verdict, TokenLimit) else None


def judge(evidence: Evidence) -> _Verdict:
    """A token limit, another clear kind of error, or None where the evidence says neither."""
    code = next((code for code in sorted(evidence.codes) if CODE.fullmatch(code.replace("-", "_"))), None)
    text = normalise(evidence.text)
    if code is None:
        if evidence.status in _OTHER_STATUS or any(_OTHER_CODE.search(name) for name in evidence.codes):
            return "other"
        if any(_OTHER_TYPE.search(name.rpartition(".")[2]) for name in evidence.types):
            return "other"
    found = read(text)
    if isinstance(found, str) and code is None:
        return None if found.startswith(DOUBT) else "other"
    codes = evidence.codes | ({str(evidence.status)} if evidence.status is not None else frozenset[str]())
    if not isinstance(found, Finding):
        claimed = any(TYPE.search(name.rpartition(".")[2]) for name in evidence.types)
        if code is None and not claimed:
            return _stated_sizes(text, codes)
        found = Finding("code" if code is not None else "type", "soft")
    return measure(text, found.spans, codes, counted=counts_output(text), source=found.rule)


def _stated_sizes(text: str, codes: frozenset[str]) -> TokenLimit | None:
    """No rule knows the phrase, but its numbers speak: tokens sent, and fewer tokens allowed."""
    if not speaks_of_tokens(text):
        return None
    sizes = measure(text, (), codes, counted=counts_output(text), source="sizes stated", settle=False)
    if sizes.limit is None or sizes.requested is None or not 64 <= sizes.limit < sizes.requested:
        return None
    return sizes


def _detect(error: BaseException, seen: set[int]) -> _Verdict:
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
    return _detect(old, seen)


def _behind(error: Exception, seen: set[int]) -> _Verdict:
    """The verdict of what the exception names as its reason."""
    for reason in (*wrapped(error), *tries(error)):
        verdict = _detect(reason, seen)
        if verdict is not None:
            return verdict
    verdicts = [_detect(member, seen) for member in siblings(error)]
    limits = [verdict for verdict in verdicts if isinstance(verdict, TokenLimit)]
    if limits:
        return limits[-1]
    return "other" if "other" in verdicts else None


def _completed(own: TokenLimit, behind: _Verdict) -> TokenLimit:
    """The numbers that a wrapper lost, taken from its reason where that does not disagree."""
    if not isinstance(behind, TokenLimit) or (
        own.limit is not None and behind.limit not in {None, own.limit}
    ):
        return own
    if own.requested is not None and behind.requested not in {None, own.requested}:
        return own
    return replace(
        behind,
        limit=behind.limit if own.limit is None else own.limit,
        requested=behind.requested if own.requested is None else own.requested,
        source=own.source,
    )
