"""gollem's middleware/compacter (Go), ported from what it documents: no Go here.

https://github.com/m-mizutani/gollem: it acts on errors that the client tags as a token limit, folds the oldest
``compact_ratio`` (0.7) of the characters into one user message by the same model, and tries up to 3 times. It keeps
the compacted history. The cut moves on past tool results, so that none is orphaned, as its ``extractMessagesToCompact``
does. The errors it knows are those of OpenAI, Anthropic and Gemini.
"""

from __future__ import annotations

from base import Native, Peer, as_text


def size(message: dict) -> int:
    return len(str(message.get("content") or "")) + len(str(message.get("tool_calls") or ""))


class Adapter(Peer):
    package = ""
    most = 3

    def refused(self, native: Native, error: Exception) -> Native:
        system = [message for message in native if message["role"] == "system"]
        rest = native[len(system) :]
        target, total, cut = sum(map(size, rest)) * self.settings.ratio, 0, 0
        while cut < len(rest) and total < target:
            total += size(rest[cut])
            cut += 1
        while cut < len(rest) and rest[cut]["role"] == "tool":
            cut += 1
        if cut >= len(rest):
            raise error
        summary = self.settings.summarize(
            "Summarize the following conversation history concisely.\n" + as_text(rest[:cut])
        )
        if not summary:
            raise error
        return [*system, {"role": "user", "content": f"Conversation history summary:\n{summary}"}, *rest[cut:]]

    def detects(self, error: Exception, text: str) -> bool:
        return any(
            phrase in text
            for phrase in (
                "context_length_exceeded",
                "prompt is too long",
                "exceeds the maximum number of tokens allowed",
            )
        )
