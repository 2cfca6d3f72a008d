"""Whether a text may stand for the conversation, and how much of what matters it kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from compacter.messages.parts import Entry
from compacter.summaries import scripts
from compacter.summaries.continuation import is_continuation
from compacter.summaries.echo import is_echo
from compacter.summaries.refusal import is_refusal
from compacter.summaries.words import words
from compacter.summary import rules

_CUT_OFF = frozenset(
    {
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
        "incomplete",
    }
)
_FILTERED = frozenset(
    {
        "content_filter",
        "safety",
        "refusal",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "guardrail_intervened",
        "content_filtered",
    }
)
_FEWEST_LETTERS = 80
_DOMINANT, _TRACE = 0.8, 0.05
_CARRIED = 0.8


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says about a summary."""

    accepted: bool
    reason: str = ""
    """Why it was refused; empty when accepted."""
    retention: float | None = None
    """Share of the rules found in prose or ledger; None without any."""
    repaired: tuple[str, ...] = ()
    """Those of them that the prose had lost and only the ledger keeps."""


def judge(
    text: str,
    *,
    finish: str | None = None,
    refused: bool = False,
    called_tool: bool = False,
    limit_chars: int,
    entries: Sequence[Entry],
    ledger: str = "",
) -> Verdict:
    """Return whether ``text`` may replace ``entries``.

    ``finish`` is the provider's finish or stop reason, ``limit_chars`` the size of what is replaced,
    ``ledger`` the ledger that will stand beside the prose.
    """
    if called_tool:
        reason = "the summarizer called a tool"
    elif refused:
        reason = "the summarizer refused"
    else:
        reason = _fault(text, (finish or "").lower(), limit_chars, entries)
    if reason:
        return Verdict(accepted=False, reason=reason)
    retention, repaired = _retention(text, ledger)
    return Verdict(accepted=True, retention=retention, repaired=repaired)


def _fault(text: str, finish: str, limit_chars: int, entries: Sequence[Entry]) -> str:
    if finish in _FILTERED:
        return "the summarizer refused"
    if not any(character.isalnum() for character in text):
        return "the summary is empty"
    if finish in _CUT_OFF:
        return "the summary was cut off by its token limit"
    if is_refusal(text):
        return "the summarizer refused"
    if is_echo(text):
        return "the answer says the request again"
    if is_continuation(text, entries):
        return "the answer continues the conversation instead of summarising it"
    if _language_switched(text, entries):
        return "the summary is in another language than the conversation"
    if len(text) >= limit_chars:
        return "the summary is not smaller than what it replaces"
    return ""


def _language_switched(text: str, entries: Sequence[Entry]) -> bool:
    """Whether the people write in one script and the summary hardly uses it."""
    theirs = scripts.count(
        "\n".join(
            entry.text[:2000] for entry in entries if entry.role in ("user", "assistant") and entry.kind == "text"
        )
    )
    ours = scripts.count(text)
    if sum(theirs.values()) < _FEWEST_LETTERS or sum(ours.values()) < _FEWEST_LETTERS:
        return False
    script, letters = theirs.most_common(1)[0]
    return letters >= _DOMINANT * sum(theirs.values()) and ours[script] < _TRACE * sum(ours.values())


def _retention(text: str, ledger: str) -> tuple[float | None, tuple[str, ...]]:
    wanted = [line.removeprefix(rules.RULE) for line in ledger.splitlines() if line.startswith(rules.RULE)]
    if not wanted:
        return None, ()
    in_prose, in_ledger = text.casefold(), ledger.casefold()
    said, kept = set(words(text)), set(words(ledger))
    held = 0
    repaired: list[str] = []
    for item in wanted:
        if _carries(item, in_prose, said):
            held += 1
        elif _carries(item, in_ledger, kept):
            held += 1
            repaired.append(item)
    return held / len(wanted), tuple(repaired)


def _carries(item: str, text: str, present: set[str]) -> bool:
    if item.casefold() in text:
        return True
    needed = set(words(item))
    return len(needed) > 2 and len(needed & present) >= _CARRIED * len(needed)
