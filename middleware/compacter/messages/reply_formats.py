"""How each kind of API writes its replies and the chunks of its streams: a class for each."""

# ruff: noqa: D102 - the methods are documented in ReplyFormat

from __future__ import annotations

from collections.abc import Iterator, Mapping

from compacter.messages.fields import Json, field, listed


class ReplyFormat:
    """How one kind of API writes replies and chunks, which are dicts or objects of an SDK."""

    def fits(self, reply: object) -> bool:
        """Return whether a reply or a chunk is in this format."""
        raise NotImplementedError

    def parts(self, reply: object) -> Iterator[Json]:
        """Yield the parts of a reply or a chunk: texts, and objects such as tool calls. Reasoning
        is left out.
        """
        raise NotImplementedError

    def finish(self, reply: object) -> Json:
        """Return the finish reason; ``None`` if it is not finished."""
        raise NotImplementedError

    def has_content(self, chunk: object) -> bool:
        """Return whether a chunk has content that a user would see, or is the end."""
        return self.finish(chunk) is not None or any(map(_shows, self.parts(chunk)))


class ChatCompletions(ReplyFormat):
    """OpenAI's chat completions, and the many servers that answer like them."""

    # Members of a delta, beside the parts, that a program may show.
    _SHOWN = ("reasoning_content", "reasoning", "audio", "thinking_blocks", "images")

    def fits(self, reply: object) -> bool:
        return isinstance(field(reply, "choices"), (list, tuple))

    def parts(self, reply: object) -> Iterator[Json]:
        choices = field(reply, "choices")
        choice = choices[0] if choices else None
        message = self._message(choice)
        if message is None:
            yield from listed(field(choice, "text"))
            return
        yield from listed(field(message, "content"))
        if field(message, "refusal"):
            yield {"type": "refusal"}
        calls = field(message, "tool_calls") or field(message, "function_call")
        yield from ({"function_call": call} for call in listed(calls or None))

    def _message(self, choice: object) -> Json:
        delta = field(choice, "delta")
        return field(choice, "message") if delta is None else delta

    def finish(self, reply: object) -> Json:
        choices = field(reply, "choices")
        return field(choices[0], "finish_reason") if choices else None

    def has_content(self, chunk: object) -> bool:
        return any(self._says(choice) for choice in field(chunk, "choices"))

    def _says(self, choice: object) -> bool:
        message = self._message(choice)
        return (
            bool(field(choice, "finish_reason"))
            or any(map(_shows, self.parts({"choices": [choice]})))
            or any(field(message, name) for name in self._SHOWN)
        )


class Responses(ReplyFormat):
    """OpenAI's responses, whose events carry the response in progress."""

    _HOUSEKEEPING = frozenset(
        {
            "response.created",
            "response.in_progress",
            "response.queued",
            "response.output_item.added",
            "response.content_part.added",
            "keepalive",
        }
    )

    def fits(self, reply: object) -> bool:
        kind = field(reply, "type")
        is_event = isinstance(kind, str) and kind.startswith(("response.", "keepalive"))
        return is_event or isinstance(field(reply, "output"), (list, tuple))

    def parts(self, reply: object) -> Iterator[Json]:
        if str(field(reply, "type")).endswith("output_text.delta"):
            yield from listed(field(reply, "delta"))
        for item in listed(field(reply, "output")):
            if field(item, "type") in ("message", None):
                yield from listed(field(item, "content"))
            else:
                yield item

    def finish(self, reply: object) -> Json:
        response = field(reply, "response") or reply
        if field(response, "status") != "incomplete":
            return None
        return field(field(response, "incomplete_details"), "reason")

    def has_content(self, chunk: object) -> bool:
        return field(chunk, "type") not in self._HOUSEKEEPING


class Gemini(ReplyFormat):
    """Gemini's ``generateContent``, and the SDK's objects, whose names are in snake case."""

    def fits(self, reply: object) -> bool:
        return isinstance(field(reply, "candidates"), (list, tuple)) or (
            field(reply, "candidates") is None and bool(camel_field(reply, "usageMetadata"))
        )

    def parts(self, reply: object) -> Iterator[Json]:
        for candidate in listed(field(reply, "candidates"))[:1]:
            for part in listed(field(field(candidate, "content"), "parts")):
                if not field(part, "thought"):
                    yield part

    def finish(self, reply: object) -> Json:
        candidates = field(reply, "candidates")
        if not candidates:  # A prompt that was refused has no candidate.
            refused = candidates is not None or camel_field(reply, "promptFeedback")
            return "refusal" if refused else None
        reason = camel_field(candidates[0], "finishReason")
        return "length" if lower_word(reason) == "max_tokens" else reason

    def has_content(self, chunk: object) -> bool:
        if not field(chunk, "candidates"):
            return bool(camel_field(chunk, "promptFeedback"))
        return any(
            camel_field(candidate, "finishReason")
            or any(map(_shows, listed(field(field(candidate, "content"), "parts"))))
            for candidate in field(chunk, "candidates")
        )


class Bedrock(ReplyFormat):
    """Bedrock's Converse. An event is a dict with one member, named by its kind."""

    _EVENTS = ("messageStart", "contentBlockStart", "contentBlockDelta", "messageStop", "metadata")

    def fits(self, reply: object) -> bool:
        return isinstance(field(reply, "output"), Mapping) or (
            isinstance(reply, dict) and len(reply) == 1 and next(iter(reply)) in self._EVENTS
        )

    def parts(self, reply: object) -> Iterator[Json]:
        yield from listed(field(field(field(reply, "output"), "message"), "content"))
        delta = field(field(reply, "contentBlockDelta"), "delta")
        if delta is not None:
            yield delta

    def finish(self, reply: object) -> Json:
        return field(field(reply, "messageStop") or reply, "stopReason")

    def has_content(self, chunk: object) -> bool:
        return not (isinstance(chunk, dict) and set(chunk) <= {"messageStart", "contentBlockStart"})


class Anthropic(ReplyFormat):
    """Anthropic's messages."""

    _HOUSEKEEPING = frozenset({"message_start", "content_block_start", "ping"})

    def fits(self, reply: object) -> bool:
        return isinstance(field(reply, "type"), str) or isinstance(
            field(reply, "content"), (list, tuple)
        )

    def parts(self, reply: object) -> Iterator[Json]:
        yield from listed(field(reply, "content") or field(reply, "text") or None)
        delta = field(reply, "delta")
        if field(delta, "type") == "text_delta":
            yield delta

    def finish(self, reply: object) -> Json:
        return field(reply, "stop_reason") or field(field(reply, "delta"), "stop_reason")

    def has_content(self, chunk: object) -> bool:
        return field(chunk, "type") not in self._HOUSEKEEPING


class Ollama(ReplyFormat):
    """Ollama's ``/api/chat`` and ``/api/generate``, whose last chunk is marked ``done``."""

    def fits(self, reply: object) -> bool:
        return isinstance(field(reply, "done"), bool)

    def parts(self, reply: object) -> Iterator[Json]:
        message = field(reply, "message")
        yield from listed(field(message, "content") or field(reply, "response") or None)
        for call in listed(field(message, "tool_calls")):
            yield {"function_call": call}

    def finish(self, reply: object) -> Json:
        return (field(reply, "done_reason") or "stop") if field(reply, "done") else None

    def has_content(self, chunk: object) -> bool:
        thinking = field(field(chunk, "message"), "thinking") or field(chunk, "thinking")
        return bool(thinking) or super().has_content(chunk)


class Unknown(ReplyFormat):
    """A reply of any other shape: its ``content`` or ``text`` is read, and it is all content."""

    def fits(self, reply: object) -> bool:  # noqa: ARG002 - the last in the table
        return True

    def parts(self, reply: object) -> Iterator[Json]:
        yield from listed(field(reply, "content") or field(reply, "text") or None)

    def finish(self, reply: object) -> Json:
        return field(reply, "stop_reason")

    def has_content(self, chunk: object) -> bool:  # noqa: ARG002 - passed on at once
        return True


FORMATS: tuple[ReplyFormat, ...] = (
    ChatCompletions(),
    Ollama(),
    Gemini(),
    Responses(),
    Bedrock(),
    Anthropic(),
    Unknown(),
)
"""The formats, those with a telling member first."""


def format_of(reply: object) -> ReplyFormat:
    """Return the format of a reply or of a chunk."""
    return next(each for each in FORMATS if each.fits(reply))


def _shows(part: object) -> bool:
    """Return whether a part has content; an empty text has none."""
    if isinstance(part, str):
        return bool(part)
    text = field(part, "text")
    return bool(part) if text is None else text != ""


def camel_field(thing: object, name: str) -> Json:
    """Return a member by its name in camel case, or by the same in snake case."""
    value = field(thing, name)
    if value is not None:
        return value
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    return field(thing, snake)


def lower_word(value: Json) -> str | None:
    """Return a finish reason in lower case; that of an enum is its name."""
    if value is None:
        return None
    name = getattr(value, "name", None)
    return (name if isinstance(name, str) else str(value)).lower()
