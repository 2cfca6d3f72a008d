"""What a message format has to know, which formats there are, and how one is recognised."""

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
"""One provider-native item, a dict or an SDK object; read, never changed."""

FormatName = Literal["openai", "anthropic", "responses", "gemini", "bedrock"]
FORMATS: tuple[FormatName, ...] = ("openai", "anthropic", "responses", "gemini", "bedrock")

Edit = Callable[[Literal["text", "result"], str, str], str]
"""``(kind, text, tool name) -> text``; the text it was given means: leave this as it is."""

_SPEAKERS: dict[Kind, Speaker] = {
    Kind.SYSTEM: "system",
    Kind.USER: "user",
    Kind.ASSISTANT: "assistant",
    Kind.RESULT: "tool",
}
_NO_SYSTEM = ("user", "assistant", "tool", "model")
"""Roles of a dict that is surely no system message, in every format."""
FILLERS: Mapping[Literal["user", "assistant"], str] = {
    "user": "[compacter] Continue.",
    "assistant": "[compacter] Understood.",
}
"""Short messages that stand between two of one role where turns must alternate; no user or model writes them."""
_FILLER = FILLERS["user"]
_FILLERS = frozenset(FILLERS.values())


class UnknownFormatError(ConfigurationError):
    """A message is surely of no known format; the error says which one, and what to do."""


class MessageFormat:
    """What the five formats have in common. Messages are read, never changed.

    A format says what is special about it: ``name``, ``alternates``, ``roles``, and the methods that begin "What this
    format". Reading raises nothing: what cannot be read is a message of its own that is never folded.
    """

    name: ClassVar[FormatName]
    """The name that ``wire_format=`` takes."""
    alternates: ClassVar[bool] = False
    """Whether user and assistant must take turns strictly, the user first."""
    roles: ClassVar[Mapping[str, Kind]] = {
        "user": Kind.USER,
        "assistant": Kind.ASSISTANT,
        "system": Kind.SYSTEM,
        "developer": Kind.SYSTEM,
    }
    """What each role means."""
    plain: ClassVar[Mapping[str, Kind]] = {}
    """What each role means in a message of a role and a text alone; empty where such messages are not usual."""

    # -- what is special about a format ------------------------------------------------------------------------

    def kind(self, message: Message) -> Kind:
        """What this format takes a message for by its role. ``Kind.UNKNOWN``: not a message of this format."""
        role = word(message, "role")
        if type(role) is not str or (type(message) is not dict and foreign(message)):
            return Kind.UNKNOWN
        return self.roles.get(role, Kind.OTHER)

    def _parts(self, message: Message, role: Speaker, index: int) -> Iterator[Part]:
        """What this format has in a message, reasoning included. ``role`` is whose message it is."""
        raise NotImplementedError

    def say(self, role: Literal["user", "assistant"], text: str) -> Message:
        """What this format makes of a text: a new message, never blank where the provider refuses that."""
        raise NotImplementedError

    def _content(self, message: Message) -> Json:
        """What this format sends of a message, as ``faithful`` data, in one form where several mean the same."""
        raise NotImplementedError

    system_option: ClassVar[str] = ""
    """The call option that takes a system prompt, where that is no message."""

    def prompt(self, messages: Sequence[Mapping[str, str]]) -> tuple[list[Message], dict[str, Json]]:
        """What this format makes of a ready prompt (OpenAI-style ``role``/``content`` dicts).

        Returns the messages and the extra call options it needs (such as ``{"system": "..."}`` for Anthropic).
        """
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        said = [
            self.say("user" if message["role"] == "user" else "assistant", message["content"])
            for message in messages
            if message["role"] != "system"
        ]
        return said, {self.system_option: system} if system else {}

    def compacted(self, message: Message) -> str | None:  # noqa: ARG002 - most formats have none
        """What this format has of a compaction by the provider itself: its summary, empty where it is unreadable.

        ``None`` where the message carries no such thing. Whatever stands before it is not in the model's context.
        """
        return None

    def _rewrite(self, block: Message, edit: Edit) -> Message:
        """What this format makes of an edited block; the block itself if nothing changed."""
        raise NotImplementedError

    def _reworded(self, block: Message, text: str, edit: Edit) -> Message:
        """A block of text, or a bare text, with its text edited; never blank, which some providers refuse."""
        new = edit("text", text, "")
        if new == text:
            return block
        return spoken(new) if isinstance(block, str) else replaced(block, text=spoken(new))

    # -- what follows from it ----------------------------------------------------------------------------------

    def read(self, message: Message) -> Outline:
        """Kind, data size in characters, ids of calls, ids of results."""
        try:
            kind = self.kind(message)
            outline = outlined(kind, self._parts(message, _SPEAKERS.get(kind, "assistant"), 0))
            if kind is Kind.USER and outline[1] == len(_FILLER) and self.plain_text(message) == _FILLER:
                return Kind.INSERTED, *outline[1:]
            if kind is Kind.ASSISTANT and self.compacted(message) is not None:
                return Kind.COMPACTED, *outline[1:]
            return outline
        except Exception:  # noqa: BLE001 - somebody else's object: whatever it raises, it is not folded
            return Kind.UNKNOWN, _weight(message), (), ()

    def outline(self, messages: Sequence[Message]) -> Steps:
        """Kinds, sizes and steps of a whole history."""
        return paired(messages, self._reader(), self.plain, _FILLER)

    def _reader(self) -> Callable[[Message], Outline]:
        """What reads the messages of one history, one after another."""
        return self.read

    def size(self, message: Message) -> int:
        """Data size of one message in characters; media by their weight (see ``media``)."""
        return self.read(message)[1]

    def speaker(self, message: Message) -> str:
        """Whose turn it takes where turns must alternate: ``"user"``, ``"assistant"``, ``"system"``, or another."""
        kind = self.kind(message)
        return _SPEAKERS.get(kind) or text_field(message, "role") or "assistant"

    def systems(self, messages: Sequence[Message]) -> list[int]:
        """Indexes of the system's messages: those whose ``speaker`` is ``"system"``."""
        return [
            index
            for index, message in enumerate(messages)
            if (type(message) is not dict or message.get("role") not in _NO_SYSTEM)
            and self.speaker(message) == "system"
        ]

    def parts(self, message: Message, index: int) -> list[Part]:
        """What a summarizer reads of it: no reasoning, media as placeholders, calls and results as text.

        Empty parts and fillers, which nobody has said, are left out, a call never is. ``index`` is the message's
        position in the caller's list.
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
                return (Part.of_text(_SPEAKERS[self.plain[role]], text, index),)  # The common case, kept short.
        try:
            return list(self._parts(message, _SPEAKERS.get(self.kind(message), "assistant"), index))
        except Exception:  # noqa: BLE001 - as in ``read``
            return [Part.of_text("assistant", f"[a message of type {type(message).__name__}]", index)]

    def plain_text(self, message: Message) -> str | None:
        """The words of a user message that holds nothing but text (to recognise a summary message), else ``None``."""
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
        """A message as data to make a digest of, without marks that are no content.

        Two messages have equal content (by ``==``, and as JSON) only if they are the same to the provider. Raises
        ``Unencodable``, and nothing else, where that cannot be known.
        """
        try:
            return self._content(message)
        except Unencodable:
            raise
        except Exception as error:
            raise Unencodable(f"{type(message).__name__} cannot be read: {type(error).__name__}") from error

    def tool_names(self, messages: Sequence[Message]) -> dict[int, tuple[str, ...]]:
        """Index of each message that carries tool results -> the tools' names in order; "" where none is known."""
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
        """A copy with edited texts and results, calls excepted; itself if nothing changed.

        A list of text parts inside one result is edited as one text. Media inside a result whose text was edited are
        dropped.
        """
        content = field(message, "content")
        blocks = listed(content)
        edited = [self._rewrite(block, edit) for block in blocks]
        if all(new is old for new, old in zip(edited, blocks, strict=True)):
            return message
        alone = blocks is not content and len(edited) == 1
        return replaced(message, content=edited[0] if alone else edited)

    def filler(self, role: Literal["user", "assistant"]) -> Message:
        """The short message that stands between two of one role where turns must alternate."""
        return self.say(role, FILLERS[role])


def _weight(message: Message) -> int:
    try:
        return characters(message)
    except Exception:  # noqa: BLE001 - as in ``read``
        return 0


def get_format(name: str) -> MessageFormat:
    """The message format of that name. Raises ``ValueError`` that lists the names there are."""
    if name in FORMATS:
        found: MessageFormat = getattr(import_module(f"compacter.messages.{name}"), name.upper())
        return found
    raise ValueError(f"wire_format={name!r} is unknown; use one of {', '.join(map(repr, FORMATS))}")


# -- recognising a format --------------------------------------------------------------------------------------

_LOOK_AT = 40
"""Messages that are looked at one by one before those of a plain chat are passed over."""
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
"""Packages whose objects are messages of one of the five formats, and stand beside dicts in one list."""
_FIELDS = frozenset(
    {
        *("role", "content", "parts", "name", "tool_calls", "tool_call_id", "function_call", "refusal", "audio"),
        *("annotations", "reasoning_content", "reasoning", "thinking_blocks", "provider_specific_fields", "id"),
        *("type", "status", "phase", "call_id", "arguments", "output", "summary", "encrypted_content"),
    }
)
"""All the fields that a message of somebody's own class may have, to be taken for a message like the provider's."""


def recognise(messages: Sequence[Message], *, param: str = "", since: int = 0) -> FormatName:
    """The message format, by what only one format has.

    What several share, plain role and content, is ``openai``: what is put into such a list is valid in all of them.
    ``param`` is the name of the argument the messages came in: ``contents`` is Gemini's, ``input`` the Responses API's.
    Of those before ``since`` only the first forty are looked at: the others are known to say nothing else.

    Raises :class:`UnknownFormatError` for the messages of frameworks, such as LangChain's or LlamaIndex's, and for
    lists without a user or assistant of any of the formats.
    """
    if param == "contents":
        return "gemini"
    others: Sequence[Message] = messages[since:]
    found = _first_telling(islice(messages, _LOOK_AT))
    if found is None:
        with suppress(LookupError):  # As a rule the rest of a chat is plain: this is asked of each call's history.
            others = [item for item in others if type(item) is not dict or type(item["content"]) is not str]
        found = _first_telling(others)
    if found != "gemini":
        _refuse_foreign(messages, set(map(type, others)) - {dict})
    if found is None:
        return "responses" if param == "input" else "openai"
    return found


def foreign(message: Message) -> bool:
    """Whether an object is surely, or perhaps, a message of some framework and not of a provider's SDK."""
    if isinstance(message, Mapping):
        return False
    kind = type(message)
    if any(f"{ancestor.__module__}.".startswith(_SDKS) for ancestor in kind.__mro__):
        return False
    try:
        names = {*getattr(message, "__dict__", ()), *(getattr(message, "__pydantic_extra__", None) or ())}
    except Exception:  # noqa: BLE001 - a class that refuses to be looked at
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
    """Whether a ``type`` is that of an item of the Responses API."""
    return isinstance(kind, str) and (
        kind in _TYPES or kind.endswith(("_call", "_output")) or kind.startswith(("mcp_", "additional_"))
    )


def _first_telling(messages: Iterable[Message]) -> FormatName | None:
    return next((found for message in messages if (found := _telling(message)) is not None), None)


def _telling(message: Message) -> FormatName | None:
    """The format that this message can only be of, if there is one."""
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
