"""What one piece of evidence amounts to: a token limit, another kind of error, or nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from compacter.overflow.roles import measure
from compacter.overflow.rules import CODE, DOUBT, TYPE, Finding, counts_output, read, speaks_of_tokens
from compacter.overflow.text import normalise
from compacter.overflow.token_limit import TokenLimit

if TYPE_CHECKING:
    from compacter.overflow.evidence import Evidence

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

Verdict: TypeAlias = TokenLimit | Literal["other"] | None
"""``other`` is a clear error of another kind; None says neither."""


def judge(evidence: Evidence) -> Verdict:
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
