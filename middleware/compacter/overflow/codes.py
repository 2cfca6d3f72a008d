"""The table of the detector, continued: codes and class names of other errors.

A code is matched without the characters between its words, so that "rate_limit", "rate-limit" and
"RateLimit" are one. ``busy type`` and ``other type`` are classes of exceptions; see ``detect`` for
what wins over them.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Row

CODES: Final[tuple[Row, ...]] = (
    Row(
        "other code: rate limit",
        r"ratelimit|throttl|toomany(?:requests|connections)|[rt]pmlimit|tokensper|requestsper"
        r"|limitrequests|concurrency|frequency",
        "rate_limit_exceeded",
    ),
    Row(
        "other code: quota",
        r"quota|resourceexhausted|(?:usage|spend|spending|monthly|daily)limit|allocation",
        "insufficient_quota",
    ),
    Row(
        "other code: payment",
        r"billing|payment|arrear|overdue|balance|credits?(?:limit|exhausted|exceeded|required)"
        r"|insufficient(?:credit|fund)|subscription",
        "Arrearage",
    ),
    Row(
        "other code: not allowed",
        r"authenti|authori[sz]|apikey|permission|forbidden|accessdenied|deniedaccess|noaccess"
        r"|notallowed|signature|invalidtoken|expired|accountsuspended|accountdeactivated",
        "access_denied",
    ),
    Row(
        "other code: server",
        r"overload|unavailable|timeout|timedout|deadlineexceeded|badgateway|connection(?:error"
        r"|reset)"
        r"|enginebusy|serverbusy|atcapacity",
        "service_unavailable",
    ),
    Row(
        "other code: state",
        r"conflict|notfound|alreadyexists|aborted",
        "conflict",
    ),
    Row(
        "other code: content",
        r"content(?:filter|policy|management|moderation)|policyviolation|safety|moderation"
        r"|sensitive"
        r"|datainspection|guardrail|cyberpolicy",
        "content_filter",
    ),
    Row(
        "other code: field",
        r"(?:string|array)(?:above|too)",
        "string_above_max_length",
    ),
    Row(
        "busy type: busy",
        r"ratelimit|toomanyrequests|overloaded|unavailable|throttl",
        "RateLimitError",
    ),
    Row(
        "other type: refused caller",
        r"quota|authentication|permissiondenied|unauthorized|forbidden|expiredtoken|contentpolicy"
        r"|contentfilter|lengthfinishreason",
        "QuotaExceededError",
    ),
)
"""Rows of the meanings ``other code``, ``busy type`` and ``other type``."""
