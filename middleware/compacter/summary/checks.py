"""Check a model's answer: return the reason why it is plainly not a summary, if there is one.

Summaries have many forms and languages, so only six plain signs count. All of it is linear in the
text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compacter.messages.replies import Reply
from compacter.text.words import words

_CUT_OFF_WORDS = """
    length max_tokens max_output_tokens model_length model_context_window_exceeded incomplete
"""
_FILTERED_WORDS = """
    content_filter content_filtered safety refusal recitation blocklist prohibited_content spii
    guardrail_intervened
"""
_CUT_OFF = frozenset(_CUT_OFF_WORDS.split())
_FILTERED = frozenset(_FILTERED_WORDS.split())
"""Reasons of providers for the end of an answer."""
_EMPTY = "the summary is empty"
_TRUNCATED = "the summary was cut off by its token limit"
NEED_ROOM = frozenset((_EMPTY, _TRUNCATED))
"""Faults of an answer that has spent its tokens, for example on reasoning."""
# Fewest words of an answer that may repeat itself.
_FEWEST_WORDS = 24
# Largest share of runs of words that it has said before.
_REPEATED = 0.4
# Letters and digits of the shortest line that is looked for in the instruction: a heading may stand
# in both.
_SHORTEST_LINE = 16
# What models write below a heading that has no items.
_NOTHING = re.compile(r"(?:none|na|nothing)\Z")
_THOUGHTS = re.compile(r"(?is)\A\s*<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)")


def clean(text: str) -> str:
    """Return an answer without the thoughts that local models write before it."""
    return _THOUGHTS.sub("", text, count=1).strip()


def fault(reply: Reply, limit: int, instruction: str = "") -> str:
    """Return the fault of a summary, or an empty string.

    Args:
        reply: The answer, with its text after ``clean``.
        limit: Size in characters of the messages that the summary replaces.
        instruction: The request's own instruction, without the transcript.
    """
    finish = (reply.finish or "").lower()
    said = words(reply.text)
    if reply.called_tool:
        return "the summarizer called a tool"
    if reply.refused or finish in _FILTERED:
        return "the summarizer refused"
    if finish in _CUT_OFF:
        return _TRUNCATED
    if not said:
        return _EMPTY
    if _is_given_back(reply.text.splitlines(), instruction):
        return "the summary gives the instruction back"
    if len(reply.text) >= limit:
        return "the summary is not smaller than what it replaces"
    runs = list(zip(said, said[1:], said[2:], strict=False))
    repeats = len(runs) - len(set(runs)) > _REPEATED * len(runs)
    return "the summary repeats itself" if repeats and len(said) >= _FEWEST_WORDS else ""


def _is_given_back(lines: Iterable[str], instruction: str) -> bool:
    """Return whether most lines of an answer, headings and empty items aside, stand in the
    instruction.
    """
    asked = _bare(instruction)
    given = own = 0
    for line in map(_bare, lines):
        # "Decisions: None" is a heading, too.
        heading = _NOTHING.sub("", line)
        is_asked = heading in asked
        given += is_asked and len(line) >= _SHORTEST_LINE
        own += not is_asked
    return bool(instruction) and given >= own


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))
