"""Recognise refusals that do not say what is wrong, or that a request has too many bytes, or none
of the user's messages.

None of them states a token limit, but a request that is too long may be the reason. Whether to try
a smaller one is decided by the call, which knows the conversation.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from compacter.overflow.detect import judge_error
from compacter.overflow.signals import reasons, signals_of
from compacter.overflow.table import default_table
from compacter.overflow.text import BREAK, normalise

Sign = Literal["", "bare", "bytes", "lost"]

_BAD_REQUEST: Final = 400
_TOO_LARGE: Final = 413
# Most words of a text that says nothing: "Provider returned error", "Bad Request".
_FEW_WORDS: Final = 3
# Also how OpenAI's SDK begins the text of an error.
_MARKUP: Final = re.compile(r"<[^<>]{0,200}>|\bError code: \d{3}\b|\b\w*(?:Error|Exception)\b")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_NUMBER: Final = re.compile(r"\d{4,}")


def sign_of(error: BaseException) -> Sign:
    """Return what an error may be a sign of: ``bare`` for status 400 without a reason, ``bytes``
    for a request with too many bytes, ``lost`` if the server has no message of the user's; empty
    for any other.
    """
    verdict = judge_error(error, default_table())
    if verdict.kind != "nothing":
        return ""
    for each in (error, *reasons(error)):
        signals = signals_of(each)
        if default_table().has(normalise(signals.text), "lost"):
            return "lost"
        if signals.status == _TOO_LARGE:
            return "bytes"
        if signals.status == _BAD_REQUEST:
            return _sign_of_text(signals.text, verdict.rule, verdict.statement)
    return ""


def _sign_of_text(text: str, rule: str, statement: str) -> Sign:
    # Representations of a body repeat what its members say.
    pieces = [piece for piece in text.split(BREAK) if "{" not in piece]
    if not rule and pieces and all(map(_says_little, pieces)):
        return "bare"
    has = default_table().has
    says_size = not rule and all(
        has(statement, meaning) for meaning in ("exceed", "request", "limit", "length")
    )
    return "bytes" if says_size and len(_NUMBER.findall(statement)) > 1 else ""


def _says_little(text: str) -> bool:
    words = set(_WORD.findall(_MARKUP.sub(" ", text).lower()))
    # Scripts without blanks have sentences of one word.
    return sum(1 if word.isascii() else len(word) for word in words) <= _FEW_WORDS
