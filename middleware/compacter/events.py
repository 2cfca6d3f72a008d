"""Events, which are passed to hooks; the totals of all calls are in ``totals.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Never

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer

from compacter.errors import UnknownFieldError
from compacter.totals import Totals as Totals  # noqa: PLC0414 - public here

Trigger = Literal["token_limit", "threshold", "quotes", "manual", "prepared"]
TEXTS = frozenset({"summary", "ledger", "unverified"})
"""Fields with text of messages: a file has them only on request."""
UNTOLD = TEXTS | {"discarded", "cause"}
"""Fields that no log entry, span or metric has."""


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, with which a reply that was cut off may end."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Text = Annotated[str, PlainSerializer(_encodable, when_used="json")]
"""In JSON a lone surrogate, which cannot be encoded, is ``U+FFFD``."""
MessageText = Annotated[Text, Field(repr=False)]
"""Text of messages, which no ``repr`` has."""


# Not with ``defer_build``: pydantic builds under a lock, which a fork may copy locked.
_CONFIG = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


class Event(BaseModel):
    """Base of every event."""

    # Template of its sentence, with fields of the event.
    _words: ClassVar[str] = ""

    model_config = _CONFIG

    model: Text | None = None
    """Name of the model that was called, if known."""
    attempt: int = 0
    """Number of the round in this call, from 1; 0 outside a round."""
    conversation: Text = ""
    """Name of the conversation: the option ``conversation``, that of a ``History``, or a digest of
    the first three messages, which all calls of one conversation share."""

    @property
    def sentence(self) -> str:
        """One line that describes the event, without the text of messages, such as "lowered the
        output limit from 1,000 to 380 tokens, gpt-4o, 1,400 tokens allowed".
        """
        fields = self.__dict__
        limit = fields.get("limit")
        requested = fields.get("requested")
        return _list(
            self._words.format_map(fields).rstrip(", "),
            self.model,
            f"{limit:,} tokens allowed" if limit else "",
            f"{requested:,} requested" if requested else "",
        )

    def __str__(self) -> str:
        return f"{type(self).__name__}: {self.sentence}"

    if not TYPE_CHECKING:  # Type checkers know the fields.

        def __getattr__(self, name: str) -> Never:
            kind = type(self)
            raise UnknownFieldError(
                f"AttributeError: {kind.__name__} has no {name!r}; it has sentence, "
                f"{', '.join(kind.model_fields)}"
            )


def _list(*parts: str | None) -> str:
    """Join the parts that are not empty, with commas."""
    return ", ".join(part for part in parts if part)


class CompactionEvent(Event):
    """Sent after a compaction. Sizes are data sizes in characters."""

    original_data_size: int
    """Size of the messages before, in characters."""
    compacted_data_size: int
    """Size of the messages after, in characters, the summary included."""
    input_tokens: int = 0
    """Input tokens of the summarizer, by the usage of its replies."""
    output_tokens: int = 0
    """Output tokens of the summarizer, by the usage of its replies."""
    summary: MessageText = ""
    """Text that replaces the head: a model's summary, or lines quoted from the head; empty if the
    strategy makes none."""
    ledger: MessageText = ""
    """Rest of the summary message: rules of the user, notes and quoted lines."""
    trigger: Trigger
    """``token_limit`` (the provider refused), ``threshold`` (``trigger_tokens``), ``quotes`` (a
    question had passages and no room for them), ``manual``, or ``prepared``
    (``prepare_tokens``)."""
    strategy: Text
    """Name of the strategy whose result is used; several are joined by ``+``."""
    fallback: bool = False
    """Whether the result is the fallback's, because there was no summary."""
    ratio: float
    """Share of the compactable size that was compacted."""
    messages_before: int
    """Number of messages before."""
    messages_after: int
    """Number of messages after, the summary message included."""
    first_removed: int = 0
    """Position of the first removed message in the request, from 1; 0 if a server compacted."""
    last_removed: int = 0
    """Position of the last removed message. Messages between the two may have stayed, such as
    pinned ones."""
    original_tokens: int
    """Estimated tokens before, calibrated by the provider's numbers for earlier requests."""
    compacted_tokens: int
    """Estimated tokens after."""
    limit: int | None = None
    """Limit in tokens, as the provider's error stated it."""
    requested: int | None = None
    """Size of the refused request in tokens, as the provider's error stated it."""
    summarizer_calls: int = 0
    """Requests for a summary, refused ones included."""
    cost: float | None = None
    """Cost of the summarizer's calls in USD; ``None`` if the price is unknown."""
    cached_tokens: int = 0
    """Part of ``input_tokens`` that the provider has read from its prompt cache, by its replies."""
    duration: float = 0.0
    """Seconds from the decision to compact until the compacted list was ready."""
    unverified: Annotated[tuple[Text, ...], Field(repr=False)] = ()
    """Identifiers, and numbers of three digits and more, in the model's text that the conversation
    does not have: reported, never acted upon."""
    chunks: int = 0
    """Pieces in which the messages were given to the summarizer; 0 without a model."""
    chunks_without_model: int = 0
    """Pieces without a summary, which are replaced by quoted lines."""
    discarded: tuple[Any, ...] = Field(default=(), exclude=True, repr=False)
    """Original messages that were removed from the request, in order; not serialised."""

    @property
    def sentence(self) -> str:
        """Such as "compacted 38 of 52 messages, 9,752 to 2,605 characters, gpt-4o, 1.2 s"."""
        before = self.messages_before
        after = self.messages_after
        is_cut = after == before and self.strategy not in ("summarize", "truncate")
        count = len(self.discarded) or before - after + 1
        what = [
            f"{'shortened' if is_cut else 'compacted'} {count:,} of {before:,} messages",
            f"{self.original_data_size:,} to {self.compacted_data_size:,} characters",
            f"fallback: {self.strategy}" if self.fallback else None,
        ]
        if not before:  # The history was kept by the server, which compacted it.
            what = [
                f"the server compacted its history ({self.strategy})",
                f"{self.original_tokens:,} to {self.compacted_tokens:,} tokens",
            ]
        return _list(*what, self.model, f"{self.duration:.1f} s")


class CompactionStarted(Event):
    """Sent before a compaction."""

    _words = "about to compact {head_size:,} of {original_data_size:,} characters"

    trigger: Trigger
    """``token_limit``, ``threshold``, ``quotes``, ``manual`` or ``prepared``."""
    original_data_size: int
    """Size of all messages, in characters."""
    head_size: int
    """Size of the messages to be compacted, in characters."""
    limit: int | None = None
    """Limit in tokens, as the provider's error stated it."""
    requested: int | None = None
    """Size of the refused request in tokens, as the provider's error stated it."""


class SummaryProgress(Event):
    """Sent after the summarizer has answered for one piece of a long history."""

    _words = "piece {piece:,} of {pieces:,} was summarized"

    trigger: Trigger
    """``token_limit``, ``threshold``, ``quotes``, ``manual`` or ``prepared``."""
    piece: int
    """Number of the piece, from 1."""
    pieces: int
    """Number of pieces. It grows if the summarizer refuses one as too long; an event whose share
    would be smaller than that of the one before is left out."""


class _Failure(BaseModel):
    """Fields of the events of a failure."""

    model_config = _CONFIG

    reason: Text
    """Reason as a phrase, without text of messages."""
    error: Text = ""
    """Type name of the exception, if one was raised."""
    cause: Exception | None = Field(default=None, exclude=True, repr=False)
    """The exception itself, which may quote messages; not serialised."""


class CompactionFailed(_Failure, Event):
    """Sent when a summary was refused, or when the summarizer or a strategy failed."""

    trigger: Trigger
    """``token_limit``, ``threshold``, ``quotes``, ``manual`` or ``prepared``."""
    input_tokens: int = 0
    """Input tokens of the summarizer so far."""
    output_tokens: int = 0
    """Output tokens of the summarizer so far."""
    cost: float | None = None
    """Their cost in USD; ``None`` if the price is unknown."""

    @property
    def sentence(self) -> str:
        """Such as "no summary: the summarizer raised AuthenticationError"."""
        raised = f" {self.error}" if self.error and self.error not in self.reason else ""
        named = self.reason.startswith(
            ("strategy ", "token_counter ", "trigger_tokens ", "retrieved ")
        )
        return f"{'' if named else 'no summary: '}{self.reason}{raised}"


class CompactionSkipped(Event):
    """Sent when a compaction was due, but was not made; ``reason`` says why."""

    trigger: Trigger
    """``token_limit``, ``threshold``, ``quotes``, ``manual`` or ``prepared``."""
    reason: Literal[
        "nothing_to_compact",
        "vetoed",
        "cool_down",
        "no_progress",
        "unknown_window",
        "history_changed",
    ]
    """In this order: no message may be compacted; vetoed by ``before_compaction``; too soon after
    the last compaction; the last one did not help; ``trigger_tokens`` is a share of an unknown
    window; the ``History`` was changed meanwhile."""

    @property
    def sentence(self) -> str:
        """Such as "no compaction: nothing to compact"."""
        what = (
            "no room for quotes, and no compaction" if self.trigger == "quotes" else "no compaction"
        )
        return f"{what}: {self.reason.replace('_', ' ')}"


class PreparationFailed(_Failure, Event):
    """Sent when a compaction could not be prepared in the background. The next call that needs a
    compaction makes it, and waits for its summary.
    """

    _words = "nothing was prepared: {reason}, {error}"


class CompactionReused(Event):
    """Sent with each call that uses a compaction which exists already. Either the call begins from
    the summary of that compaction, or it is refused first, and then uses a compaction that another
    call has just made or that was prepared in the background.
    """

    _words = (
        "used a compaction made before, {messages_before:,} to {messages_after:,} messages, "
        "{tokens_saved:,} input tokens not sent"
    )

    messages_before: int
    """Number of messages before."""
    messages_after: int
    """Number of messages after, the summary message included."""
    prepared: bool = False
    """Whether it was made ahead."""
    began: bool = False
    """Whether the call began from it, before any refusal."""
    tokens_saved: int = 0
    """Input tokens that the call does not send because of it, estimated."""
    cost_saved: float | None = None
    """Price of these tokens in USD, that of the provider's cache unless its last reply had read
    nothing from there; ``None`` if unknown."""


class PassagesRecalled(Event):
    """Sent when quotes of compacted messages were added to a request, or when the search tool of
    ``Quotes(tool=True)`` has returned results to the model.
    """

    _words = "quoted passages: {passages:,}, {characters:,} characters, {duration:.2f} s"

    passages: int
    """Number of passages."""
    characters: int
    """Size of the quotes, in characters with their frame."""
    tokens: int
    """Estimated tokens of the quotes, calibrated by the provider's numbers for earlier requests."""
    duration: float = 0.0
    """Seconds taken to find them; almost 0 if they are those of an earlier step of the turn."""


class MaxTokensAdjusted(Event):
    """Sent when the output limit was lowered, in place of a compaction."""

    _words = "lowered the output limit from {before:,} to {after:,} tokens"

    before: int
    """The caller's output limit, in tokens."""
    after: int
    """The lowered output limit, in tokens."""
    limit: int | None = None
    """Limit in tokens, as the provider's error stated it."""


class MessageShortened(Event):
    """Sent when retrieved text in the last user message was shortened, as the option ``retrieved``
    allows.
    """

    _words = "shortened the last user message from {before:,} to {after:,} characters"

    before: int
    """Size of the message, in characters."""
    after: int
    """Size of the shortened message, in characters."""
    limit: int | None = None
    """Limit in tokens, as the provider's error stated it."""


class SealedContentRemoved(Event):
    """Sent when the provider refuses blocks that only the model that made them can read, such as
    encrypted reasoning or signed thinking, and the request is sent again without them.
    """

    _words = "left out {removed:,} blocks that another model has sealed"

    removed: int
    """Number of blocks or items that were left out."""
    kinds: tuple[str, ...]
    """Their types, such as ``thinking``, ``reasoning`` or ``thought_signature``."""
    error: str
    """Type name of the provider's exception."""


class SilentTruncation(Event):
    """Sent when a reply states clearly fewer prompt tokens than its request must have had. The
    server has then probably truncated the prompt, without an error.
    """

    _words = (
        "the server has cut the prompt: about {expected_tokens:,} tokens sent, "
        "{prompt_tokens:,} read"
    )

    expected_tokens: int
    """Estimated tokens of the request."""
    prompt_tokens: int
    """Prompt tokens in the usage of the reply."""


class WindowFilling(Event):
    """Sent when a request of a conversation is larger than 80 % of a known window. It is sent once,
    and can be sent again after a compaction or after a smaller request.
    """

    _words = "the window is {share:.0%} full: {tokens:,} of {window:,} tokens"

    share: float
    """Part of the window that the request takes."""
    tokens: int
    """Input tokens of the request, by the usage of its reply; estimated without one."""
    window: int
    """The model's context window, in tokens."""


class SpendingReached(Event):
    """Sent once when a conversation has spent what the option ``spending`` allows."""

    _words = "the conversation has spent {tokens:,} tokens, {for_summaries:,} for summaries"

    tokens: int
    """Input and output tokens of its calls and summaries, by the usage of replies; the input of a
    reply without usage is estimated."""
    for_summaries: int
    """Part of these that summaries took."""
    dollars: float
    """Their price in USD, as far as it is known."""


class RetriesExhausted(Event):
    """Sent when a call is given up, before the provider's own exception is raised."""

    _words = "gave up after round {rounds}: {reason}"

    rounds: int
    """Number of rounds in this call."""
    reason: Text
    """Reason why there is not another round, as a phrase."""
    limit: int | None = None
    """Limit in tokens, as the provider's last error stated it."""
    requested: int | None = None
    """Size of the last refused request in tokens, as the provider's error stated it."""
