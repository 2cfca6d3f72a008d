"""gollem's middleware/compacter (Go), ported from its documented behaviour: there is no Go here.

https://github.com/m-mizutani/gollem: when a client tags an error as a token limit, the first
messages that make up ``compact_ratio`` (0.7) of the characters of text become one user message,
written by the same model, and the request is sent again, up to three times. Tool calls and results
weigh nothing, pairs are not looked at, at least one message stays, and the compacted history
replaces the old one. The system prompt is not part of its history.
"""

from __future__ import annotations

from base import Native, Peer, as_text


class Adapter(Peer):
    package = ""

    def parts(self, native: Native, error: Exception) -> tuple[Native, Native, Native]:
        system = [message for message in native if message["role"] == "system"]
        rest = [message for message in native if message["role"] != "system"]
        sizes = [
            0 if message["role"] == "tool" else len(message.get("content") or "")
            for message in rest
        ]
        target = int(sum(sizes) * self.settings.ratio)
        reached = 0
        cut = 0
        for number, size in enumerate(sizes):
            reached += size
            if reached >= target:
                cut = min(number + 1, len(rest) - 1)
                break
        if cut == 0:
            raise error
        return system, rest[:cut], rest[cut:]

    def refused(self, native: Native, error: Exception) -> Native:
        system, head, tail = self.parts(native, error)
        return [*system, {"role": "user", "content": self.settings.summarize(as_text(head))}, *tail]

    async def arefused(self, native: Native, error: Exception) -> Native:
        system, head, tail = self.parts(native, error)
        return [
            *system,
            {"role": "user", "content": await self.settings.asummarize(as_text(head))},
            *tail,
        ]
