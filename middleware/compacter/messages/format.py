"""The base class of message formats, and the formats by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, ClassVar, Literal, TypeAlias, get_args

from compacter.errors import ConfigurationError
from compacter.messages.blocks import COMPACTION, Blocks
from compacter.messages.fields import (
    Json,
    Unencodable,
    faithful,
    field,
    members,
    text_of,
    word,
)
from compacter.messages.parts import (
    Kind,
    MessageParts,
    Outline,
    Part,
    Place,
    Speaker,
    Steps,
    Voice,
    pair_calls,
)

Message: TypeAlias = Any
"""A message in the provider's own form: a dict or an SDK object. It is never changed."""

FormatName = Literal["openai", "anthropic", "responses", "gemini", "bedrock"]
FORMATS: tuple[FormatName, ...] = get_args(FormatName)

_SPEAKERS: dict[Kind, Speaker] = {
    Kind.SYSTEM: "system",
    Kind.USER: "user",
    Kind.ASSISTANT: "assistant",
    Kind.RESULT: "tool",
}
# Roles that are not a system message in any format.
_NO_SYSTEM = ("user", "assistant", "tool", "model")
FILLERS: Mapping[Voice, str] = {
    "user": "[compacter] Continue.",
    "assistant": "[compacter] Understood.",
}
"""Short messages between two of one role, where roles must alternate. No user or model writes
them."""
_FILLER = FILLERS["user"]


# Packages whose objects are messages of one of the formats; lists may mix them with dicts.
_SDKS = (
    "openai.",
    "litellm.",
    "anthropic.",
    "google.genai.",
    "google.ai.",
    "google.generativeai.",
    "google.cloud.",
    "vertexai.",
    "proto.",
    "mistralai.",
    "groq.",
    "together.",
    "cohere.",
    "ollama.",
    "xai_sdk.",
    "cerebras.",
)
# The fields that an object of an unknown class may have to be read as a provider's message.
_FIELDS = frozenset(
    {
        "role",
        "content",
        "parts",
        "name",
        "tool_calls",
        "tool_call_id",
        "function_call",
        "refusal",
        "audio",
        "annotations",
        "reasoning_content",
        "reasoning",
        "thinking_blocks",
        "provider_specific_fields",
        "id",
        "type",
        "status",
        "phase",
        "call_id",
        "arguments",
        "output",
        "summary",
        "encrypted_content",
    }
)


class MessageFormat(Blocks):
    """Base class of the message formats. Messages are never changed.

    A format is a table of the types of blocks, and a few methods for rules that a table cannot
    express. Reading never raises: an unreadable message is of ``Kind.UNKNOWN``, which is never
    compacted.
    """

    name: ClassVar[FormatName]
    """Value for ``wire_format=``."""
    roles: ClassVar[Mapping[str, Kind]] = {
        "user": Kind.USER,
        "assistant": Kind.ASSISTANT,
        "system": Kind.SYSTEM,
        "developer": Kind.SYSTEM,
    }
    """Kind of message by role."""
    plain: ClassVar[Mapping[str, Kind]] = {}
    """Kind by role for a dict with only a role and a text; empty if the format has no such
    messages."""
    system_option: ClassVar[str] = ""
    """Call option for a system prompt, if that is not a message."""
    output_option: ClassVar[str] = "max_tokens"
    """Call option for the output limit; empty if that is nested in another."""
    telling: ClassVar[tuple[str, ...]] = ()
    """Types of blocks that only this format has, or members of its blocks without a type."""
    own: ClassVar[frozenset[str]] = frozenset()
    """Keys of data made by a tool or its caller; a digest leaves nothing out of such data."""

    # -- what a table cannot say -------------------------------------------------------------------

    def kind(self, message: Message) -> Kind:
        """Return the kind of a message by its role; ``Kind.UNKNOWN`` if it is not a message of this
        format.
        """
        role = word(message, "role")
        if not role or (type(message) is not dict and foreign(message)):
            return Kind.UNKNOWN
        return self.roles.get(role, Kind.OTHER)

    def _content(self, data: Json) -> Json:
        """Return the ``faithful`` data of a message, equal for all forms with one meaning: a single
        text block equals a string.
        """
        blocks = field(data, self.body)
        text = text_of(blocks) or ""
        if blocks == [self._text_block(text)]:
            data[self.body] = text
        return data

    def prompt(
        self, messages: Sequence[Mapping[str, str]]
    ) -> tuple[list[Message], dict[str, Json]]:
        """Convert a prompt of OpenAI-style ``role``/``content`` dicts.

        Returns the messages and the extra call options they need (such as ``{"system": "..."}`` for
        Anthropic).
        """
        if not self.system_option:
            return [dict(message) for message in messages], {}
        system = "\n\n".join(
            message["content"] for message in messages if message["role"] == "system"
        )
        said = [
            self.say(message["role"], message["content"])
            for message in messages
            if message["role"] != "system"
        ]
        return said, {self.system_option: self._body(system)} if system else {}

    def compacted(self, message: Message) -> str | None:
        """Return the summary of a compaction by the provider itself; empty if it is not readable.

        Returns ``None`` if the message contains no such compaction. Earlier messages are not in the
        model's context. A block without content is a failed compaction.
        """
        summaries = [
            row.read(block) or ""
            for row, block, _ in self._pieces(message)
            if row is COMPACTION and row.weigh(block)
        ]
        return summaries[-1] if summaries else None

    # -- common to all formats ---------------------------------------------------------------------

    def read(self, message: Message) -> Outline:
        """Return four facts about a message: its kind, its data size in characters, the ids of the
        calls in it, and the ids of the results in it. A user's message that has only tool results
        is of the kind ``RESULT``.
        """
        kind = self.kind(message)
        parts = self.all_parts(message, 0)
        size = 0
        calls = Counter[str]()
        results: list[str] = []
        for part in parts:
            size += part.size
            called = part.call_id
            if called is None:
                continue
            if part.kind == "call":
                calls[called] += 1
            elif part.kind == "answer" and calls[called]:
                # Some calls have their result in their own message.
                calls[called] -= 1
            elif part.kind == "answer":
                results.append(called)
        if kind is not Kind.USER and any(part.kind == "compaction" for part in parts):
            kind = Kind.COMPACTED
        elif kind is Kind.USER and results and all(part.role == "tool" for part in parts):
            kind = Kind.RESULT
        elif size == len(_FILLER) and self.plain_text(message) == _FILLER:
            kind = Kind.INSERTED
        return kind, size, tuple(calls.elements()), tuple(results)

    def bare_texts(self, messages: Sequence[Message]) -> list[str | None]:
        """Return the text of each message that is a dict with only a role and a text, the most
        common form, and ``None`` for any other message.
        """
        plain = self.plain
        return [
            message["content"]
            if type(message) is dict
            and len(message) == 2
            and type(role := message.get("role")) is str
            and role in plain
            and type(message.get("content")) is str
            else None
            for message in messages
        ]

    def outline(self, messages: Sequence[Message]) -> Steps:
        """Return the kinds, sizes and steps of a whole history."""
        outlines: list[Outline] = []
        plain = self.plain
        for message, text in zip(messages, self.bare_texts(messages), strict=True):
            # Fast path of the common form: a history is outlined at each call.
            if text is None or text == _FILLER:
                outlines.append(self.read(message))
            else:
                outlines.append((plain[message["role"]], len(text), (), ()))
        return pair_calls(outlines)

    def size(self, message: Message) -> int:
        """Return the data size of one message in characters. Each picture or file counts as a fixed
        number of characters (see ``media``).
        """
        return self.read(message)[1]

    def speaker(self, message: Message) -> str:
        """Return the role that counts for alternation: ``"user"``, ``"assistant"``, ``"system"`` or
        another.
        """
        kind = self.kind(message)
        return _SPEAKERS.get(kind) or word(message, "role") or "assistant"

    def systems(self, messages: Sequence[Message]) -> list[int]:
        """Return the indexes of the messages whose ``speaker`` is ``"system"``."""
        return [
            index
            for index, message in enumerate(messages)
            # Roles first: most messages need no further look.
            if (type(message) is not dict or message.get("role") not in _NO_SYSTEM)
            and self.speaker(message) == "system"
        ]

    def parts_of_each(self, messages: Sequence[Message]) -> list[MessageParts]:
        """Return the parts of each message. Their ``index`` is its position in ``messages``.

        A summarizer reads calls, texts and placeholders of media; empty texts and fillers are left
        out.
        """
        read: list[MessageParts] = []
        for index, message in enumerate(messages):
            every = tuple(self.all_parts(message, index))
            readable = tuple(
                part
                for part in every
                if part.kind == "call" or (part.text and part.text not in FILLERS.values())
            )
            read.append(MessageParts(message, every, readable))
        return read

    def all_parts(self, message: Message, index: int) -> Sequence[Part]:
        """Return all parts of a message, reasoning and empty results included."""
        (bare,) = self.bare_texts((message,))
        if bare is not None:
            # Fast path of the common form.
            return (Place(_SPEAKERS[self.plain[message["role"]]], index).text(bare),)
        try:
            role = _SPEAKERS.get(self.kind(message), "assistant")
            place = Place(role, index, word(message, "name"))
            return [part for found in self._pieces(message) for part in self._show(found, place)]
        except Exception:  # noqa: BLE001 - a foreign object may raise anything
            return [Place("assistant", index).text(f"[a message of type {type(message).__name__}]")]

    def plain_text(self, message: Message) -> str | None:
        """Return the text of a user message with nothing but text, such as a summary message, else
        ``None``.
        """
        if self.kind(message) is not Kind.USER:
            return None
        parts = self.all_parts(message, 0)
        if any(part.kind == "compaction" for part in parts):
            parts = parts[-1:]  # The provider's own stands before the text of a summary message.
        if any(part.kind != "text" for part in parts):
            return None
        return "".join(part.text for part in parts)

    def content(self, message: Message) -> Json:
        """Return a message as data for a digest, without cache marks.

        Two messages have equal content (by ``==``, and as JSON) only if they mean the same to the
        provider. Raises ``Unencodable``, and nothing else, if that cannot be determined.
        """
        try:
            return self._content(faithful(message, self.own))
        except Unencodable:
            raise
        except Exception as error:
            raise Unencodable(
                f"{type(message).__name__} cannot be read: {type(error).__name__}"
            ) from error

    def with_text(self, message: Message, text: str, *, last: bool = False) -> Message:
        """Return a copy of a user message with ``text`` added to it. The text stands after results
        of tools in the message, and before its other blocks; with ``last`` it stands at the end.
        The copy is a dict, even if the message is an object of an SDK.
        """
        blocks = self._blocks_of(message)
        # Results stand first.
        place = (
            len(blocks) if last else sum(self.find(block)[0].kind == "result" for block in blocks)
        )
        blocks.insert(place, self._text_block(text))
        return self.with_blocks(
            message if isinstance(message, Mapping) else {"role": "user"}, blocks
        )

    def is_signed(self, message: Message) -> bool:
        """Return whether a message has thinking with a seal, by which a provider may notice any
        change before it. The provider's own compaction does not count.
        """
        try:
            return bool(self.without_sealed((message,))[1]) and self.compacted(message) is None
        except Exception:  # noqa: BLE001 - a foreign object may raise anything
            return False

    def signed(self, messages: Sequence[Message]) -> list[bool]:
        """Return for each message whether it has thinking with a seal."""
        texts = self.bare_texts(messages)
        return [
            text is None and self.is_signed(message)
            for message, text in zip(messages, texts, strict=True)
        ]

    def without_thinking(self, messages: Sequence[Message]) -> list[Message]:
        """Return messages without thinking that has a seal. The others are the same objects."""
        return [
            self.without_sealed((message,))[0][0] if is_signed else message
            for message, is_signed in zip(messages, self.signed(messages), strict=True)
        ]

    def join(self, first: Message, second: Message) -> Message:
        """Return one user message that has the blocks of ``first`` and then the blocks of
        ``second``.
        """
        blocks = [*self._blocks_of(first), *self._blocks_of(second)]
        return self.with_blocks(second if isinstance(second, Mapping) else {"role": "user"}, blocks)

    def _blocks_of(self, message: Message) -> list[Json]:
        """Return the blocks of a user message; a text becomes one block, an empty text no block."""
        return [
            self._text_block(block) if isinstance(block, str) else block
            for block in self.blocks(message)
            if block != ""
        ]

    def filler(self, role: Voice) -> Message:
        """Return the filler message of this role."""
        return self.say(role, FILLERS[role])


def get_format(name: str) -> MessageFormat:
    """Return the message format of that name. Raises ``ConfigurationError`` with the valid
    names.
    """
    if name in FORMATS:
        # Imported only now, as the formats import this file.
        found: MessageFormat = getattr(import_module(f"compacter.messages.{name}"), name.upper())
        return found
    raise ConfigurationError(
        f"wire_format={name!r} is unknown; use one of {', '.join(map(repr, FORMATS))}"
    )


def foreign(message: Json) -> bool:
    """Return whether an object may be a message of a framework, and not of a provider's SDK."""
    if isinstance(message, Mapping):
        return False
    kind = type(message)
    if any(f"{ancestor.__module__}.".startswith(_SDKS) for ancestor in kind.__mro__):
        return False
    try:
        names = set(members(message))
    except Exception:  # noqa: BLE001 - a foreign class may raise anything
        return True
    return not names or not names <= _FIELDS
