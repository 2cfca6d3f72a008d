"""What hooks receive, and the totals of all calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Trigger = Literal["token_limit", "threshold", "manual"]
_SHOWN = 80
"""Characters of a text that a ``repr`` shows."""


class Event(BaseModel):
    """Base of every event."""

    # Not with ``defer_build``: pydantic builds under a lock, which a fork may copy locked.
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    model: str | None = None
    """The model that was called, where the call names one."""
    attempt: int = 0
    """The round inside this call, from 1; 0 outside a round."""
    conversation: str = ""
    """The conversation's name: the option ``conversation``, a ``History``'s own one, or a digest of the first three
    messages, which is the same for every call of one conversation."""

    @property
    def sentence(self) -> str:
        """What happened, in one line of words and numbers, without a message's text."""
        return ""

    def __str__(self) -> str:
        return f"{type(self).__name__}: {self.sentence}"

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        """What is not as it usually is; long texts are cut."""
        for name, value in super().__repr_args__():
            field = type(self).model_fields.get(str(name))
            if field is None or value != field.default:
                yield name, f"{value[:_SHOWN]}..." if isinstance(value, str) and len(value) > _SHOWN else value

    def model_dump_json(self, **options: Any) -> str:
        """The event as JSON text; ``options`` are those of pydantic's method.

        Half a surrogate pair, as a reply that was cut may end with, has no UTF-8 form: it becomes ``U+FFFD``.
        """
        try:
            return super().model_dump_json(**options)
        except ValueError:
            return BaseModel.model_dump_json(self.model_copy(update=_encodable(self.__dict__)), **options)


def _listed(*parts: str | None) -> str:
    """The parts that there are, as one list of words."""
    return ", ".join(part for part in parts if part)


def _stated(limit: int | None, requested: int | None) -> str:
    """What the provider said of its limit."""
    allowed = f"{limit:,} tokens allowed" if limit else ""
    return _listed(allowed, f"{requested:,} requested" if requested else "")


def _encodable(value: Any) -> Any:  # noqa: ANN401 - of any field
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {key: _encodable(one) for key, one in value.items()}
    return tuple(map(_encodable, value)) if isinstance(value, tuple) else value


class CompactionEvent(Event):
    """A compaction took place. Sizes are data sizes in characters."""

    original_data_size: int
    """Characters of the messages before."""
    compacted_data_size: int
    """Characters of the messages after, the summary included."""
    input_tokens: int = 0
    """Tokens the summarizer read, as its replies state them."""
    output_tokens: int = 0
    """Tokens the summarizer wrote, as its replies state them."""
    summary: str = ""
    """Text that replaces the head: a model's words, or the lines quoted from it; empty where a strategy makes none."""
    ledger: str = ""
    """What the summary message says besides: rules of the user, notes and quoted lines."""
    trigger: Trigger
    """``token_limit`` (the provider refused), ``threshold`` (``trigger_tokens``) or ``manual``."""
    strategy: str
    """Name of the strategy whose result is used; names joined by ``+`` where several took part."""
    fallback: bool = False
    """Whether the result is the fallback's, because no summary could be had."""
    ratio: float
    """Share of the compactable size that was folded."""
    messages_before: int
    """Number of messages before."""
    messages_after: int
    """Number of messages after, the summary message included."""
    original_tokens: int
    """Tokens before: an estimate, calibrated by what the provider said of earlier requests."""
    compacted_tokens: int
    """Tokens after: an estimate of the same kind."""
    limit: int | None = None
    """The provider's limit in tokens, as its error stated it."""
    requested: int | None = None
    """The size of the refused request in tokens, as its error stated it."""
    summarizer_calls: int = 0
    """Requests for a summary, refused ones included."""
    cost: float | None = None
    """USD for the summarizer's calls, or None where the price is not known."""
    duration: float = 0.0
    """Seconds from the decision to compact until the compacted list was ready."""
    unverified: tuple[str, ...] = ()
    """Lines of the summarizer's answer that were taken out, as the conversation does not bear them out."""
    discarded: tuple[Any, ...] = Field(default=(), exclude=True, repr=False)
    """The original messages that left the request, in order."""

    @property
    def sentence(self) -> str:
        """Such as "folded 38 of 52 messages, 9,752 to 2,605 characters, gpt-4o, 1.2 s"."""
        before, after = self.messages_before, self.messages_after
        verb, count = "folded", len(self.discarded) or before - after + 1
        if after == before and self.strategy not in ("summarize", "truncate"):
            verb, count = "shortened", len(self.discarded)
        return _listed(
            f"{verb} {count:,} of {before:,} messages",
            f"{self.original_data_size:,} to {self.compacted_data_size:,} characters",
            f"fallback: {self.strategy}" if self.fallback else None,
            self.model,
            f"{self.duration:.1f} s",
        )


class CompactionStarted(Event):
    """A compaction is about to begin."""

    trigger: Trigger
    """``token_limit``, ``threshold`` or ``manual``."""
    original_data_size: int
    """Characters of all messages."""
    head_size: int
    """Characters of the messages that are to be folded."""
    limit: int | None = None
    """The provider's limit in tokens, as its error stated it."""
    requested: int | None = None
    """The size of the refused request in tokens, as its error stated it."""

    @property
    def sentence(self) -> str:
        """Such as "about to fold 6,800 of 9,752 characters, gpt-4o, 900 tokens allowed, 2,432 requested"."""
        what = f"about to fold {self.head_size:,} of {self.original_data_size:,} characters"
        return _listed(what, self.model, _stated(self.limit, self.requested))


class CompactionFailed(Event):
    """A summary was refused or could not be had, or a strategy failed."""

    trigger: Trigger
    """``token_limit``, ``threshold`` or ``manual``."""
    reason: str
    """Why, in words; never a piece of a message."""
    error: str = ""
    """Type name of the exception, if one was raised."""
    input_tokens: int = 0
    """Tokens that the summarizer has read so far."""
    output_tokens: int = 0
    """Tokens that the summarizer has written so far."""
    cost: float | None = None
    """USD for that, or ``None`` where the price is not known."""
    cause: Exception | None = Field(default=None, exclude=True, repr=False)
    """The exception itself, which may quote messages; not serialised."""

    def __getstate__(self) -> dict[Any, Any]:
        # Many exceptions of SDKs cannot be unpickled.
        state = super().__getstate__()
        return {**state, "__dict__": {**state["__dict__"], "cause": None}}

    @property
    def sentence(self) -> str:
        """Such as "no summary: the summarizer raised AuthenticationError"."""
        raised = f" {self.error}" if self.error and self.error not in self.reason else ""
        return f"{'' if self.reason.startswith('strategy ') else 'no summary: '}{self.reason}{raised}"


class CompactionSkipped(Event):
    """A compaction was due and did not take place."""

    trigger: Trigger
    """``token_limit``, ``threshold`` or ``manual``."""
    reason: Literal[
        "nothing_to_fold",
        "vetoed",
        "cool_down",
        "no_progress",
        "unknown_window",
        "history_changed",
    ]
    """Nothing that may be folded; forbidden by ``before_compaction``; too soon after the last one; the last one did not
    help; a share of the window was asked for and no window is known; the ``History`` was changed meanwhile."""

    @property
    def sentence(self) -> str:
        """Such as "no compaction: nothing to fold"."""
        return f"no compaction: {self.reason.replace('_', ' ')}"


class CompactionReused(Event):
    """Another call had just made the same compaction; it is used, and nothing is summarised."""

    messages_before: int
    """Number of messages before."""
    messages_after: int
    """Number of messages after, the summary message included."""

    @property
    def sentence(self) -> str:
        """Such as "used a compaction that another call has made, 52 to 15 messages"."""
        counts = f"{self.messages_before:,} to {self.messages_after:,} messages"
        return _listed("used a compaction that another call has made", counts, self.model)


class PassagesRecalled(Event):
    """A request carries quotes of what was folded."""

    passages: int
    """Number of passages."""
    characters: int
    """Characters of the quotes, their frame included."""
    tokens: int
    """Estimate of what the quotes take, calibrated by what the provider said of earlier requests."""
    duration: float = 0.0
    """Seconds that it took to find them; hardly any where an earlier step of the turn has brought the same."""

    @property
    def sentence(self) -> str:
        """Such as "quoted 3 passages, 1,204 characters, 0.02 s"."""
        passages = f"{self.passages:,} passage{'s' if self.passages != 1 else ''}"
        return f"quoted {passages}, {self.characters:,} characters, {self.duration:.2f} s"


class MaxTokensAdjusted(Event):
    """The output limit was lowered instead of touching the history."""

    before: int
    """Output tokens that the caller asked for."""
    after: int
    """Output tokens that are asked for now."""
    limit: int | None = None
    """The provider's limit in tokens, as its error stated it."""

    @property
    def sentence(self) -> str:
        """Such as "lowered the output limit from 1,000 to 380 tokens"."""
        return _listed(f"lowered the output limit from {self.before:,} to {self.after:,} tokens", self.model)


class MessageShortened(Event):
    """Retrieved text in the last user message was shortened, as the option ``retrieved`` allows."""

    before: int
    """Characters of the message."""
    after: int
    """Characters of it that are sent."""
    limit: int | None = None
    """The provider's limit in tokens, as its error stated it."""

    @property
    def sentence(self) -> str:
        """Such as "shortened the last user message from 120,000 to 30,000 characters"."""
        return _listed(f"shortened the last user message from {self.before:,} to {self.after:,} characters", self.model)


class SilentTruncation(Event):
    """The reply's usage shows fewer prompt tokens than the request can have had: the server cut the prompt."""

    expected_tokens: int
    """Estimate of the tokens that were sent."""
    prompt_tokens: int
    """Tokens that the server has read, as its usage states them."""

    @property
    def sentence(self) -> str:
        """Such as "the server has cut the prompt: about 5,000 tokens sent, 2,048 read"."""
        sent = f"about {self.expected_tokens:,} tokens sent"
        return _listed(f"the server has cut the prompt: {sent}", f"{self.prompt_tokens:,} read", self.model)


class RetriesExhausted(Event):
    """The call is given up; the provider's own exception follows."""

    rounds: int
    """Rounds that were made."""
    reason: str
    """Why no further one is made, in words."""
    limit: int | None = None
    """The provider's limit in tokens, as its last error stated it."""
    requested: int | None = None
    """The size of the last refused request in tokens, as the error stated it."""

    @property
    def sentence(self) -> str:
        """Such as "gave up after 3 rounds: no rounds are left, 900 tokens allowed, 2,432 requested"."""
        rounds = f"{self.rounds} round{'' if self.rounds == 1 else 's'}"
        return _listed(f"gave up after {rounds}: {self.reason}", self.model, _stated(self.limit, self.requested))


@dataclass(frozen=True, slots=True)
class Totals:
    """Counts since the ``Compacter`` was made, as of one moment; tokens and cost are the summarizer's alone."""

    calls: int = 0
    """Wrapped calls that were made."""
    rounds: int = 0
    """Compactions that took place."""
    reused: int = 0
    """Calls that went on with an earlier compaction after a token limit."""
    recalled: int = 0
    """Requests that carried quotes of what was folded."""
    failures: int = 0
    """Summaries that were refused or could not be had."""
    given_up: int = 0
    """Calls that ended with the provider's own exception after a token limit."""
    adjusted: int = 0
    """Calls whose output limit was lowered."""
    summarizer_calls: int = 0
    """Requests for a summary."""
    input_tokens: int = 0
    """Tokens the summarizer read."""
    output_tokens: int = 0
    """Tokens the summarizer wrote."""
    cost: float | None = 0.0
    """USD; ``None`` once a summary was made whose price is not known."""
    characters_saved: int = 0
    """Characters before less characters after, of all compactions."""
