"""The usual twenty lines: catch the error, summarise the older part, try again. Kind enough to cut at a user message."""

from __future__ import annotations

from base import Native, Peer, as_text


class Adapter(Peer):
    package = ""

    def refused(self, native: Native, error: Exception) -> Native:
        system = [message for message in native if message["role"] == "system"]
        rest = native[len(system) :]
        cut = int(len(rest) * self.settings.ratio)
        while cut < len(rest) and rest[cut]["role"] != "user":
            cut += 1
        if cut >= len(rest):
            raise error
        summary = self.settings.summarize("Summarise this conversation:\n" + as_text(rest[:cut]))
        return [*system, {"role": "user", "content": f"Summary of what was said before: {summary}"}, *rest[cut:]]

    def detects(self, error: Exception, text: str) -> bool:
        return "context_length_exceeded" in text or "maximum context length" in text
