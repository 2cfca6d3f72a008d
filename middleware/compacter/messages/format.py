"""The base class of message formats, and the recognition of a format from its messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import islice
from typing import Any, ClassVar, Literal, TypeAlias

from compacter.errors import ConfigurationError
from compacter.messages.fields import Json, Unencodable, characters, field, listed, replaced, text_field, word
from compacter.messages.parts import Kind, Outline, Part, Speaker, Steps, outlined, paired, spoken

Message: TypeAlias = Any
"""A message in the provider's own form: a dict or an SDK object. It is never changed."""

FormatName = Literal["openai", "anthropic", "responses", "gemini", "bedrock"]
FORMATS: tuple[FormatName, ...] = ("openai", "anthropic", "responses", "gemini", "bedrock")

Edit = Callable[[Literal["text", "result"], str, str], str]
"""``(kind, text, tool name) -> text``; returning the same text leaves it unchanged."""

_SPEAKERS: dict[Kind, Speaker] = {
    Kind.SYSTEM: "system",
    Kind.USER: "user",
    Kind.ASSISTANT: "assistant",
    Kind.RESULT: "tool",
}
_NO_SYSTEM = ("user", "assistant", "tool", "model")
"""Roles that are not a system message in any format."""
FILLERS: Mapping[Literal["user", "assistant"], str] = {
    "user": "[compacter] Continue.",
    "assistant": "[compacter] Understood.",
}
"""Short messages between two of the same role, where roles must alternate. No user or model writes them."""
_FILLER = FILLERS["user"]
_FILLERS = frozenset(FILLERS.values())


class UnknownFormatError(ConfigurationError):
    """A message has no known format; the error names the message and a remedy."""


class MessageFormat:
    """Base class of the five message formats. Messages are never changed.

    A subclass defines ``name``, ``alternates``, ``roles`` and the methods of the first section. Reading never raises:
    an unreadable message is of ``Kind.UNKNOWN``, which is never folded.
    """

    name: ClassVar[FormatName]
    """Value for ``wire_format=``."""
    alternates: ClassVar[bool] = False
    """Whether user and assistant must alternate strictly, beginning with the user."""
    roles: ClassVar[Mapping[str, Kind]] = {
        "user": Kind.USER,
        "assistant": Kind.ASSISTANT,
        "system": Kind.SYSTEM,
        "developer": Kind.SYSTEM,
    }
    """Kind of message by role."""
    plain: ClassVar[Mapping[str, Kind]] = {}
    """Kind by role for a dict with only a role and a text; empty if the format has no such messages."""

    # -- defined by each format ---------------------------------------------------------------------------------

    def kind(self, message: Message) -> Kind:
        """Return the kind of a message by its role; ``Kind.UNKNOWN`` if it is not a message of this format."""
        role = word(message, "role")
        if role is None or (type(message) is not dict and foreign(message)):
            return Kind.UNKNOWN
        return self.roles.get(role, Kind.OTHER)

    def _parts(self, message: Message, role: Speaker, index: int) -> Iterator[Part]:
        """Yield the parts of a message, reasoning included. ``role`` is its speaker."""
        raise NotImplementedError

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        """Return a new message with this text, which is never blank if the provider refuses that."""
        raise NotImplementedError

    def _content(self, message: Message) -> Json:
        """Return the content of a message as ``faithful`` data, the same for all forms with the same meaning."""
        raise NotImplementedError

    system_option: ClassVar[str] = ""
    """Call option for a system prompt, if that is not a message."""
    body: ClassVar[str] = "content"
    """Member of a message with its text or blocks."""
    text_type: ClassVar[str] = "text"
    """Type of a text block in a user message; empty if blocks have no type."""

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[Message], dict[str, Json]]:
        """Convert a prompt of OpenAI-style ``role``/``content`` dicts.

        Returns the messages and the extra call options they need (such as ``{"system": "..."}`` for Anthropic).
        """
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        said = [
            self.say("user" if message["role"] == "user" else "assistant", message["content"])
            for message in messages
            if message["role"] != "system"
        ]
        return said, {self.system_option: system} if system else {}

    def compacted(self, message: Message) -> str | None:  # noqa: ARG002 - most formats have none
        """Return the summary of a compaction by the provider itself; empty if it is not readable.

        Returns ``None`` if the message contains no such compaction. Earlier messages are not in the model's context.
        """
        return None

    def _rewrite(self, block: Message, edit: Edit) -> Message:
        """Return an edited copy of a block; the block itself if nothing changed."""
        raise NotImplementedError

    def _reworded(self, block: Message, text: str, edit: Edit) -> Message:
        """Edit a text block or a bare text. The result is never blank, as some providers refuse that."""
        new = edit("text", text, "")
        if new == text:
            return block
        return spoken(new) if isinstance(block, str) else replaced(block, text=spoken(new))

    @staticmethod
    def _with_results(item: Message, names: Sequence[str], edit: Edit, tool: str = "") -> Message:
        """Return a copy whose texts in these fields are edited as results; the item itself if nothing changed."""
        texts = {name: text for name in names if isinstance(text := field(item, name), str)}
        edited = {name: new for name, text in texts.items() if (new := edit("result", text, tool)) != text}
        return replaced(item, **edited) if edited else item

    # -- common to all formats ---------------------------------------------------------------------------------

    def read(self, message: Message) -> Outline:
        """Return kind, data size in characters, ids of calls, and ids of results."""
        try:
            kind = self.kind(message)
            outline = outlined(kind, self._parts(message, _SPEAKERS.get(kind, "assistant"), 0))
            if outline[1] == len(_FILLER) and self.plain_text(message) == _FILLER:
                return Kind.INSERTED, *outline[1:]
            if kind is Kind.ASSISTANT and self.compacted(message) is not None:
                return Kind.COMPACTED, *outline[1:]
            return outline
        except Exception:  # noqa: BLE001 - a foreign object may raise anything; it is not folded
            return Kind.UNKNOWN, _weight(message), (), ()

    def outline(self, messages: Sequence[Message]) -> Steps:
        """Return the kinds, sizes and steps of a whole history."""
        return paired(messages, self._reader(), self.plain, _FILLER)

    def _reader(self) -> Callable[[Message], Outline]:
        """Return the function that reads the messages of one history in order."""
        return self.read

    def size(self, message: Message) -> int:
        """Return the data size of one message in characters, media by their weight (see ``media``)."""
        return self.read(message)[1]

    def speaker(self, message: Message) -> str:
        """Return the role that counts for alternation: ``"user"``, ``"assistant"``, ``"system"`` or another."""
        kind = self.kind(message)
        return _SPEAKERS.get(kind) or text_field(message, "role") or "assistant"

    def systems(self, messages: Sequence[Message]) -> list[int]:
        """Return the indexes of the messages whose ``speaker`` is ``"system"``."""
        return [
            index
            for index, message in enumerate(messages)
            if (type(message) is not dict or message.get("role") not in _NO_SYSTEM)
            and self.speaker(message) == "system"
        ]

    def parts(self, message: Message, index: int) -> list[Part]:
        """Return the parts of a message that a summarizer reads: media as placeholders, no reasoning.

        Empty parts and fillers are left out, but never a call. ``index`` is the position of the message in the caller's
        list.
        """
        return [
            part
            for part in self._all_parts(message, index)
            if part.kind == "call" or (part.text and part.kind != "reasoning" and part.text not in _FILLERS)
        ]

    def _all_parts(self, message: Message, index: int) -> Sequence[Part]:
        if type(message) is dict and len(message) == 2:
            text, role = message.get("content"), message.get("role")
            if type(text) is str and type(role) is str and role in self.plain:
                return (Part.of_text(_SPEAKERS[self.plain[role]], text, index),)  # Fast path of the common form.
        try:
            return list(self._parts(message, _SPEAKERS.get(self.kind(message), "assistant"), index))
        except Exception:  # noqa: BLE001 - as in ``read``
            return [Part.of_text("assistant", f"[a message of type {type(message).__name__}]", index)]

    def plain_text(self, message: Message) -> str | None:
        """Return the text of a user message with nothing but text, such as a summary message, else ``None``."""
        if self.kind(message) is not Kind.USER:
            return None
        if self.plain and type(text := field(message, "content")) is str:
            return text
        try:
            parts = list(self._parts(message, "user", 0))
        except Exception:  # noqa: BLE001 - as in ``read``
            return None
        return "".join(part.text for part in parts) if all(part.kind == "text" for part in parts) else None

    def content(self, message: Message) -> Json:
        """Return a message as data for a digest, without cache marks.

        Two messages have equal content (by ``==``, and as JSON) only if they are the same to the provider. Raises
        ``Unencodable``, and nothing else, if that cannot be determined.
        """
        try:
            return self._content(message)
        except Unencodable:
            raise
        except Exception as error:
            raise Unencodable(f"{type(message).__name__} cannot be read: {type(error).__name__}") from error

    def tool_names(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Return the tool names of each message with tool results, by its index; an unknown name is empty."""
        called: dict[str, str] = {}
        found: dict[int, tuple[str, ...]] = {}
        for index, message in enumerate(messages):
            names: list[str] = []
            for part in self._all_parts(message, index):
                if part.call_id is not None and part.kind == "call":
                    called[part.call_id] = part.name
                elif part.call_id is not None:
                    names.append(part.name or called.get(part.call_id, ""))
            if names:
                found[index] = tuple(names)
        return found

    def rewrite(self, message: Message, edit: Edit) -> Message:
        """Return a copy with edited texts and results, but unchanged calls; the message itself if nothing changed.

        A list of text parts inside one result is edited as one text. Media are dropped from a result whose text was
        edited.
        """
        content = field(message, "content")
        blocks = listed(content)
        edited = [self._rewrite(block, edit) for block in blocks]
        if all(new is old for new, old in zip(edited, blocks, strict=True)):
            return message
        return replaced(message, content=edited if blocks is content else edited[0])

    def blocks(self, message: Message) -> list[Message]:
        """Return the blocks of a message as they are; a bare text is one."""
        return list(listed(field(message, self.body)))

    def with_blocks(self, message: Message, blocks: Sequence[Message]) -> Message:
        """Return a copy of a user message with other blocks; one that is no dict becomes one."""
        if isinstance(message, Mapping) and self.body in message:
            return {**message, self.body: list(blocks)}
        return {"role": "user", self.body: list(blocks)}

    def with_text(self, message: Message, text: str) -> Message:
        """Return a copy of a user message with this text before its own blocks, but behind results of tools."""
        own = [
            self._text_block(block) if isinstance(block, str) else block
            for block in self.blocks(message)
            if block != ""
        ]
        first = next(
            (at for at, block in enumerate(own) if not self.read(self.with_blocks(None, [block]))[3]), len(own)
        )
        return self.with_blocks(message, [*own[:first], self._text_block(text), *own[first:]])

    def _text_block(self, text: str) -> Message:
        return {"type": self.text_type, "text": text} if self.text_type else {"text": text}

    def filler(self, role: Literal["user", "assistant"]) -> Message:
        """Return the filler message of this role."""
        return self.say(role, FILLERS[role])


def _weight(message: Message) -> int:
    try:
        return characters(message)
    except Exception:  # noqa: BLE001 - as in ``read``
        return 0


def get_format(name: str) -> MessageFormat:
    """Return the message format of that name. Raises ``ConfigurationError`` with the valid names."""
    if name in FORMATS:
        found: MessageFormat = getattr(import_module(f"compacter.messages.{name}"), name.upper())
        return found
    raise ConfigurationError(f"wire_format={name!r} is unknown; use one of {', '.join(map(repr, FORMATS))}")


# -- recognising a format --------------------------------------------------------------------------------------

_LOOK_AT = 40
"""Number of messages that are read one by one before plain messages are skipped."""
_ROLES = frozenset({"system", "developer", "user", "assistant", "model", "tool", "function"})
_TYPES = frozenset(
    {"message", "reasoning", "item_reference", "compaction", "compaction_summary", "context_compaction", "program"}
)
_RESPONSES_PARTS = frozenset({"input_text", "output_text", "input_image", "input_file"})
_ANTHROPIC_PARTS = frozenset(
    {
        *("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document", "compaction"),
        *("search_result", "container_upload"),
    }
)
_BEDROCK_KEYS = frozenset({"toolUse", "toolResult", "reasoningContent", "cachePoint", "guardContent"})
_NOT_GEMINI = frozenset({"type", "kind", "part_kind"})
_SDKS = (
    *("openai.", "litellm.", "anthropic.", "google.genai.", "google.ai.", "google.generativeai.", "google.cloud."),
    *("vertexai.", "proto.", "mistralai.", "groq.", "together.", "cohere.", "ollama.", "xai_sdk.", "cerebras."),
)
"""Packages whose objects are messages of one of the five formats; lists may mix them with dicts."""
_FIELDS = frozenset(
    {
        *("role", "content", "parts", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio"),
        *("annotations", "reasoning_content", "reasoning", "thinking_blocks", "provider_specific_fields", "id"),
        *("type", "status", "phase", "call_id", "arguments", "output", "summary", "encrypted_content"),
    }
)
"""The fields that an object of an unknown class may have to be read as a provider's message."""


def recognise(messages: Sequence[Message], *, param: str = "", since: int = 0) -> FormatName:
    """Return the message format, recognised by features that only one format has.

    Messages with only role and content, which several formats share, are ``openai``; its summary messages are valid in
    all of them. ``param`` is the name of the argument with the messages: ``contents`` is Gemini's unless they have a
    ``content``, which Gemini refuses; ``input`` is the Responses API's. Messages before ``since`` are known not to
    change the result; only the first forty are read.

    Raises :class:`UnknownFormatError` for messages of frameworks, such as LangChain's or LlamaIndex's, and for lists
    without a user or assistant of any of the formats.
    """
    if param == "contents" and not any(type(one) is dict and "content" in one for one in messages[:_LOOK_AT]):
        return "gemini"
    others: Sequence[Message] = messages[since:]
    found = _first_telling(islice(messages, _LOOK_AT))
    if found is None:
        with suppress(LookupError):  # Skips plain messages quickly, as this runs on each call.
            others = [item for item in others if type(item) is not dict or type(item["content"]) is not str]
        found = _first_telling(others)
    if found != "gemini":
        _refuse_foreign(messages, set(map(type, others)) - {dict})
    if found is None:
        return "responses" if param == "input" else "openai"
    return found


def foreign(message: Message) -> bool:
    """Return whether an object may be a message of a framework, and not of a provider's SDK."""
    if isinstance(message, Mapping):
        return False
    kind = type(message)
    if any(f"{ancestor.__module__}.".startswith(_SDKS) for ancestor in kind.__mro__):
        return False
    try:
        names = {*getattr(message, "__dict__", ()), *(getattr(message, "__pydantic_extra__", None) or ())}
    except Exception:  # noqa: BLE001 - a foreign class may raise anything
        return True
    for ancestor in kind.__mro__:
        slots = vars(ancestor).get("__slots__", ())
        names.update((slots,) if isinstance(slots, str) else slots)
    names -= {"__dict__", "__weakref__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"}
    known = word(message, "role") in _ROLES if "role" in names else "type" in names and "content" not in names
    return not (known and names <= _FIELDS)


def _refuse_foreign(messages: Sequence[Message], classes: Iterable[type]) -> None:
    for made in classes:
        index = next(index for index, message in enumerate(messages) if type(message) is made)
        if foreign(messages[index]):
            raise UnknownFormatError(
                f"messages[{index}] is a {made.__module__}.{made.__qualname__}, which is not a message of any "
                f"provider's API; {_WANTED}{_CONVERTERS.get(made.__module__.partition('.')[0], '')}"
            )
    heads = list(islice(messages, _LOOK_AT))
    spoken = any(word(message, "role") in ("user", "assistant") for message in heads)
    for index, message in enumerate(heads):
        if field(message, "parts") is not None and field(message, "content") is None:
            what = "parts that are not Gemini's"
        elif spoken:
            continue
        elif (role := word(message, "role")) is not None:
            what = "" if role in _ROLES else f"the role {role!r}"
        else:
            what = "" if _is_item(kind := word(message, "type")) else f"the type {kind!r} and no role"
        if what:
            raise UnknownFormatError(f"messages[{index}] has {what}, which no provider's API knows; {_WANTED}")


_WANTED = 'pass messages as that API takes them, such as {"role": "user", "content": "..."}'
_CONVERTERS = {
    "langchain_core": " (LangChain: langchain_core.messages.convert_to_openai_messages(messages))",
    "llama_index": " (LlamaIndex: llama_index.llms.openai.utils.to_openai_message_dicts(messages))",
}


def _is_item(kind: object) -> bool:
    """Return whether a ``type`` is that of an item of the Responses API."""
    return isinstance(kind, str) and (
        kind in _TYPES or kind.endswith(("_call", "_output")) or kind.startswith(("mcp_", "additional_"))
    )


def _first_telling(messages: Iterable[Message]) -> FormatName | None:
    return next((found for message in messages if (found := _telling(message)) is not None), None)


def _telling(message: Message) -> FormatName | None:
    """Return the only format that this message can have, or ``None`` if it fits several."""
    if type(message) is not dict and foreign(message):
        return None
    parts = field(message, "parts")
    if isinstance(parts, (list, tuple)) and word(message, "role") in (None, "user", "model", "function", "tool"):
        return None if any(isinstance(part, dict) and not _NOT_GEMINI.isdisjoint(part) for part in parts) else "gemini"
    kind, role = word(message, "type"), word(message, "role")
    if role is None:
        return "responses" if _is_item(kind) else None
    if field(message, "tool_calls") or role in ("tool", "function"):
        return "openai"
    content = field(message, "content")
    if isinstance(content, (list, tuple)):
        for part in content:
            found = _telling_part(part)
            if found is not None:
                return found
    return "responses" if kind == "message" and isinstance(message, dict) else None


def _telling_part(part: Any) -> FormatName | None:
    kind = word(part, "type")
    if kind in _RESPONSES_PARTS:
        return "responses"
    if kind in _ANTHROPIC_PARTS:
        return "anthropic"
    if kind == "image" and field(part, "source") is not None:
        return "anthropic"
    if kind is None and isinstance(part, dict) and (not _BEDROCK_KEYS.isdisjoint(part) or set(part) == {"text"}):
        return "bedrock"
    return None
