"""The loop that everybody writes first: catch the error, summarize the older part, try again. Kind
enough to cut at a user message, or where none follows before the model speaks again.
"""

from __future__ import annotations

from base import Native, Peer, as_text


class Adapter(Peer):
    package = ""
    formats = ("openai", "anthropic", "bedrock")  # Those whose messages have a role and a content.

    def cut(self, native: Native) -> tuple[Native, int]:
        system = [message for message in native if message["role"] == "system"]
        at = len(system) + int((len(native) - len(system)) * self.settings.ratio)
        places = range(at, len(native))
        asked = (place for place in places if native[place]["role"] == "user")
        whole = (place for place in places if native[place]["role"] == "assistant")
        # In the middle of an agent's turn no message of the user follows.
        return system, next(asked, next(whole, len(native)))

    def refused(self, native: Native, error: Exception) -> Native:
        system, cut = self.cut(native)
        if cut >= len(native):
            raise error
        summary = self.settings.summarize(PROMPT + as_text(native[len(system) : cut]))
        return [*system, {"role": "user", "content": SAID + summary}, *native[cut:]]

    async def arefused(self, native: Native, error: Exception) -> Native:
        system, cut = self.cut(native)
        if cut >= len(native):
            raise error
        summary = await self.settings.asummarize(PROMPT + as_text(native[len(system) : cut]))
        return [*system, {"role": "user", "content": SAID + summary}, *native[cut:]]

    def fold_as(self, wire_format: str, native: Native) -> Native:
        made = super().fold_as(wire_format, native)
        if wire_format == "bedrock":
            made = [
                {**one, "content": [{"text": one["content"]}]}
                if isinstance(one["content"], str)
                else one
                for one in made
            ]
        return made

    def detects(self, error: Exception, text: str) -> bool:
        return "context_length_exceeded" in text or "maximum context length" in text


PROMPT = "Summarise this conversation:\n"
SAID = "Summary of what was said before: "
