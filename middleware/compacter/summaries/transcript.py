"""The conversation as one fenced text, in which content cannot pose as structure.

Every speaker line starts in column 0 and every further line of an entry is indented by one space, so no
content can begin a speaker line or close the fence. Chat-template control tokens (``<|im_end|>`` and the
like) are broken up as well: local servers read them wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compacter.messages.parts import Entry

OPEN, CLOSE = "<transcript>", "</transcript>"
FENCE_SIZE = len(OPEN) + len(CLOSE) + 2
"""Characters around the entries: both fence lines with their line breaks."""

_NAME_SIZE = 64
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Our own fences, and the control tokens of chat templates: ChatML, Llama 2 and 3, Gemma, Mistral, DeepSeek,
# Phi.
_FORGED = re.compile(
    r"<(?=\s*/?\s*(?:transcript|summary|start_of_turn|end_of_turn|bos|eos|s)\s*>|[|\uff5c])|\[(?=/?(?:INST|"
    r"SYS)\])|<(?=</?SYS>>)",
    re.IGNORECASE,
)


def render(entries: Iterable[Entry]) -> str:
    """Return the fenced transcript of ``entries``, each headed by its speaker."""
    lines = [OPEN]
    lines += [line(entry) for entry in entries]
    lines.append(CLOSE)
    return "\n".join(lines)


def line(entry: Entry) -> str:
    """Return one entry as it stands in the transcript: ``speaker: text``."""
    return f"{speaker(entry)}: {neutral(entry.text)}"


def speaker(entry: Entry) -> str:
    """Return who speaks, as one word or as ``call <tool>`` and ``result <tool>``."""
    if entry.kind == "summary":
        return "summary"
    if entry.kind in ("call", "result"):
        name = _BREAK.sub(" ", entry.name.replace(":", " ")).strip()[:_NAME_SIZE]
        return f"{entry.kind} {neutral(name)}" if name else entry.kind
    return entry.role


def neutral(text: str) -> str:
    """Return ``text`` so that it cannot end the fence, begin a speaker line or act as a control token."""
    return _BREAK.sub("\n ", _FORGED.sub(lambda match: match[0] + " ", text))
