"""The request of one call, the state of its conversation between calls, and calibration by the
numbers of refusals and replies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as member
from json import JSONEncoder
from math import inf
from typing import TYPE_CHECKING, Any

from compacter.compaction.calibration import Calibration
from compacter.compaction.check import join_users, origins_of
from compacter.compaction.conversation import Conversation
from compacter.compaction.plan import unfold
from compacter.lines.weight import tokens, tokens_each
from compacter.memory.record import UNBOUND, Bound
from compacter.messages.fields import json_text
from compacter.messages.format import Message, MessageFormat
from compacter.messages.refusals import SEALED
from compacter.spending import Spent
from compacter.summary.message import parse

if TYPE_CHECKING:
    from compacter.lines.archive import Archive
    from compacter.memory.match import View
    from compacter.overflow import TokenLimit

LEAST_CUT = 200
"""Fewest tokens to which a server truncates a prompt, as no window is smaller. A server that
reports fewer counts something else, such as the messages without the tools."""
FEWEST_QUOTED = 300
"""Least room for quotes, in characters with their frame; with less, none are sent."""
# Characters per token from which a stated size is accepted without checking it against the text.
_DENSE = 2.5
# Multiple of the estimate for its script that no text exceeds in tokens: a letter of random base64
# text takes three times those of a letter of prose; a mark, and a byte of any script, one token.
MOST_OF_ESTIMATE = 3.0
# A prompt counts as truncated if the server has read at most this share of the tokens that the
# calibration expects.
_CUT_SHARE = 0.6
# Fewest characters per token that a truncated prompt seems to have. English has 4 to 5.
MOST_CHARACTERS = 7.0
# Histories for which three integers are kept.
_MOST_MEASURED = 256
# Number of newest messages that decide the script of a conversation.
_SAMPLED = 16


@dataclass(frozen=True, kw_only=True)
class Request:
    """Request of one call of the wrapped function. Sizes in characters, limits in tokens."""

    format: MessageFormat
    original: Sequence[Message]
    """The caller's own messages."""
    messages: Sequence[Message]
    """Messages to send: the original ones, or a compacted view of them."""
    overhead: int = 0
    """Size of the tools, and of a system prompt outside the messages."""
    output_tokens: int | None = None
    """Output limit of the request."""
    output_option: str = "max_tokens"
    """Name of the option for the output limit."""
    options: Mapping[str, object] = member(default_factory=dict)
    """Options that replace the caller's."""
    model: str | None = None
    digest: str = ""
    """Digest of the conversation, equal in all of its calls."""
    openings: tuple[bytes, ...] | None = None
    """Digests of the first original messages, by which records are found."""
    find_pinned: Callable[[Sequence[Message]], tuple[int, ...]] = lambda _: ()
    """Returns the indexes of the pinned messages."""
    rules: tuple[str, ...] = ()
    """Rules of the option ``rules`` and of a ``History``."""
    read: Conversation | None = None
    """Conversation of ``messages``, once they have been read."""
    archive: Archive | None = None
    """Archive of the compacted messages of a ``History``."""
    alternate: bool | None = None
    """The option ``alternate_roles``."""
    quotes: str = ""
    """Text of the quotes, which ``messages`` does not contain."""
    shortened: Message | None = None
    """Message to send in place of the last user message; ``messages`` contains the whole one."""
    saved: int = 0
    """Characters saved by ``shortened``."""
    tools: tuple[Any, ...] = ()
    """The caller's tools, and ``recall`` behind them; empty if ``recall`` is not offered."""
    sealed: bool = True
    """Whether to send blocks that only the model that made them can read."""
    bound: Bound = UNBOUND
    """Which thinking is left out, as it is older than the view that ``messages`` are."""
    places: Mapping[str, int] = member(default_factory=dict)
    """Index of the message that each of the quotes stands at, ascending."""

    @property
    def conversation(self) -> Conversation:
        """The messages, read once."""
        read = self.read
        if read is None:
            # Not a ``functools.cached_property``: before Python 3.12 it has a lock, which a fork
            # may copy locked.
            pins = self.find_pinned(self.messages)
            read = Conversation(self.messages, self.format, pinned=pins, rules=self.rules)
            object.__setattr__(self, "read", read)
        return read

    def with_view(self, view: View | None) -> Request:
        """Return the request with a remembered view; the request itself without a view, or if the
        view lacks a message that was pinned since.
        """
        if view is None:
            return self
        present = set(map(id, view))
        if any(id(self.original[at]) not in present for at in self.find_pinned(self.original)):
            return self
        return replace(
            self,
            messages=tuple(view),
            read=None,
            quotes="",
            places={},
            bound=Bound(view.record, view.bound),
        )

    @property
    def is_compacted(self) -> bool:
        """Whether the request leaves out messages of the caller's list, because they were
        compacted.
        """
        return self.messages is not self.original or bool(self.archive)

    @property
    def alternates(self) -> bool:
        """Whether user and assistant must alternate."""
        return self.format.alternates if self.alternate is None else self.alternate

    @property
    def offers_recall(self) -> bool:
        """Whether the request is sent with compacter's own search tool ``recall``."""
        return bool(self.tools) and self.is_compacted

    @property
    def options_sent(self) -> Mapping[str, object]:
        """Options that replace the caller's, the tools with ``recall`` included."""
        return {**self.options, "tools": [*self.tools]} if self.offers_recall else self.options

    @property
    def size(self) -> int:
        """Size of the whole request in characters: its messages, its quotes, its tools and its
        system prompt.
        """
        return self.conversation.size + self.overhead + len(self.quotes) - self.saved

    @property
    def tokens_of_one(self) -> float:
        """Estimated number of tokens for one character of the request. Scripts differ in this: the
        newest texts of the request show which script it has.
        """
        return tokens_each(reversed(self.conversation.texts(_SAMPLED)))

    @property
    def sent(self) -> Sequence[Message]:
        """The messages to send: with the shortened message and the quotes in their places, and
        without sealed blocks. A history that needs no change is not read, as that takes long.
        """
        messages = self.messages
        if self.shortened is not None:
            at: Any = self.conversation.last_user
            messages = [*messages[:at], self.shortened, *messages[at + 1 :]]
        read = self.conversation if self.is_compacted or self.quotes else None
        same = self.messages
        places = self.places
        prior = None if read is None else read.prior
        if read is not None and prior is not None and self.format.blocks_before(same[prior]):
            messages = unfold(read, messages)
            same = unfold(read, same)
            known = {id(message): at for at, message in enumerate(same)}
            stood = {block: known.get(id(self.messages[at])) for block, at in places.items()}
            places = {block: at for block, at in stood.items() if at is not None}
            read = Conversation(messages, self.format)
            prior = None
        if self.quotes and read is not None:
            from compacter.lines.frame import place

            messages = place(messages, read, self.quotes, alternate=self.alternate, places=places)
        if self.is_compacted and self.alternates:
            # The changes above have made other objects.
            messages = join_users(self.format, messages, origins_of(self.original, same), prior)
        if not self.sealed:
            return self.format.without_sealed(messages)[0]
        return self._without_old_thinking(messages) if self.bound.older else messages

    def _without_old_thinking(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages to send without thinking that is older than the view."""
        older = set(map(id, self.messages[: self.bound.older]))
        end = next((at for at in range(len(messages), 0, -1) if id(messages[at - 1]) in older), 0)
        return [*self.format.without_thinking(messages[:end]), *messages[end:]]

    def output_that_counts(self, limit: TokenLimit) -> int:
        """Return the tokens of the output that a token limit counts with the input."""
        return self.output_tokens or 0 if limit.kind == "input_plus_output" else 0

    @property
    def named(self) -> dict[str, Any]:
        """The names of the model and of the conversation, as the fields ``model`` and
        ``conversation`` of an event.
        """
        return {"model": self.model, "conversation": self.digest}


@dataclass(slots=True)
class ConversationState:
    """Facts about one conversation that compacter keeps from one of its calls to the next."""

    calls: int = 0
    tokens: int = 0
    """Input tokens in the usage of the last reply; 0 if unknown."""
    characters: int = 0
    """Size of that request, in characters."""
    last_attempt_at_call: int = 0
    """Number, from 1, of the last call that tried to compact; 0 before the first."""
    stuck_size: int = 0
    """Size of a request, in characters, that a compaction before any refusal left above the
    threshold, or without room for quotes. It is compacted again once it has grown."""
    refused_size: int = 0
    """Size of the request, in characters, whose refusal without numbers ended the last call; 0 if
    the last call was answered."""
    incompressible_size: int = 0
    """Size of what had to stay, in characters, when a call was given up although its history was
    compacted; 0 if no call was. Another compaction would not help while it is as large."""
    refused_by: Calibration | None = None
    """Calibration of the model that refused these sizes."""
    doubted_size: int = 0
    """Size of the request, in characters, after which a smaller one was tried on a mere sign, and
    did not help. No sign is believed until a larger request has been answered."""
    left_out: tuple[str, int] = ("", 0)
    """``id`` of the record from which a call has begun last, and the characters that it left
    out."""
    spent: Spent = member(default_factory=Spent)
    """Tokens and money spent so far, for the option ``spending``."""
    fills: bool = False
    """Whether an event has said that its request fills the window."""
    late: TokenLimit | None = None
    """Token limit that ended the stream of the last call after its first content."""
    is_cached: bool = False
    """Whether the provider has a cache, and has answered the messages since the last compaction."""
    stood: dict[tuple[Bound, str], tuple[int, bytes]] = member(default_factory=dict)
    """Where quotes stood in requests that were answered: by their bound and text, the index of the
    message and its digest."""


def holds_secrets(
    request: Request, after: Sequence[Message], redact: Callable[[str], str] | None
) -> bool:
    """Return whether an edited message among ``after``, which would be stored itself, contains text
    that ``redact`` removes.

    Summaries are redacted already, and unchanged messages are stored as positions.
    """
    if redact is None:
        return False
    form = request.format
    verbatim = set(map(id, request.original))
    edited = (
        json_text(form.content(message))
        for message in after
        if id(message) not in verbatim and parse(form.plain_text(message) or "") is None
    )
    try:
        return any(redact(text) != text for text in edited)
    except Exception:  # noqa: BLE001 - a message that cannot be redacted is not stored
        return True


# -- the numbers of a token limit ------------------------------------------------------------------


def calibrate(request: Request, calibration: Calibration, limit: TokenLimit) -> TokenLimit:
    """Calibrate by the numbers of the error that refused a request, and return the token limit with
    its input tokens filled in.

    A stated size that is only a bound is ignored, and removed from the input tokens; so is a limit
    that cannot be.
    """
    if limit.source == SEALED:
        return limit  # It states no sizes.
    used = limit.input_tokens
    if limit.is_bound:
        used = None
    elif used is None and limit.requested:
        used = limit.requested - request.output_that_counts(limit)
    if limit.limit and not calibration.state_window(limit.limit):
        limit = replace(limit, limit=None)
    size = request.size
    if used:
        is_believed = size >= used * _DENSE
        if not is_believed:
            # A number larger than the texts can have in tokens also counts something else.
            texts = request.conversation.texts()
            words = "".join(texts).replace(" ", "")  # Blanks are part of the next word.
            beside = max(0, size - sum(map(len, texts)))
            is_believed = used <= MOST_OF_ESTIMATE * tokens(words) + beside
        if is_believed:
            calibration.learn(size, used, request.tokens_of_one)
    if not limit.limit:
        estimate = size * calibration.tokens_of_one(request.tokens_of_one)
        calibration.refuse(used or int(estimate))
    return replace(limit, input_tokens=used)


# -- the usage of a reply --------------------------------------------------------------------------


def expected_tokens(characters: int, tokens: int, calibration: Calibration) -> int | None:
    """Return the expected tokens of a request if the server read clearly fewer; ``None`` if it read
    all.
    """
    learnt = calibration.chars_per_token / _CUT_SHARE if calibration.learnt else 0.0
    return (
        calibration.tokens(characters)
        if characters > tokens * max(learnt, MOST_CHARACTERS)
        else None
    )


# Characters of JSON around the text of a message, at the least: `{"role": "user", "content": ""}`.
# Counted as text, they would make a chat of short lines look cut.
_FRAME = 31


def measure(
    messages: Sequence[Message],
    beside: Sequence[object],
    earlier: dict[int, tuple[int, int, int]],
) -> float:
    """Return the size in JSON of messages and of other arguments beside them, rather more than the
    characters that a model reads; infinite if that is not known.

    ``earlier`` keeps three integers of each history, by its first message, so that only the new
    messages of a longer history are measured.
    """
    count, last, most = earlier.get(id(messages[0]), (0, 0, 0))
    if count > len(messages) or id(messages[count - 1]) != last:
        count = most = 0
    try:
        most += len(_encode(messages[count:])) - _FRAME * len(messages[count:])
        overhead = len(_encode(beside))
    except Exception:  # noqa: BLE001 - of an object that is not like JSON
        return inf
    if len(earlier) >= _MOST_MEASURED:
        earlier.clear()
    earlier[id(messages[0])] = len(messages), id(messages[-1]), most
    return most + overhead


def _members(value: Any) -> dict[str, Any]:
    """Return the members of a reply's object, which programs put into their history unchanged."""
    return {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}


_encode = JSONEncoder(ensure_ascii=False, check_circular=False, default=_members).encode
