"""Replay a conversation through a context window, and measure what was still in the requests when
it was needed.

Each call of the agent is repeated, with its messages, against a fake provider that refuses requests
that are too long. At some of the calls, the *cuts*, the accepted request is compared with the rest
of the conversation: which of the identifiers, file paths and numbers that the assistant used later
were in it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import stdev
from typing import Any

from compacter.compacter import Compacter
from compacter.compaction.strategies import ClearToolResults, Truncate
from compacter.compaction.summarize import Summarize
from compacter.events import CompactionEvent, CompactionFailed, Event
from compacter.messages.format import Message, MessageFormat, get_format
from compacter.messages.parts import Kind, Part
from compacter.summary.head import Head
from compacter.summary.kept import rules as rule_lines
from compacter.tools.cli.files import Transcript
from compacter.tools.cli.terminal import MistakeError, read_text

CHARS_PER_TOKEN = 4
STRATEGIES = ("extractive", "truncate", "clear", "model")
FEWEST_COMPARED = 4
"""Cuts and probes below which a difference between two settings says nothing."""


# -- settings --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Setting:
    """One combination of options to compare."""

    strategy: str
    """``extractive``, ``truncate``, ``clear`` (old tool results first) or ``model``."""
    ratio: float
    recall: float | None
    model: str | None = None
    prompt: str | None = field(default=None, repr=False)
    prompt_name: str = ""

    @property
    def name(self) -> str:
        """Name of the setting in a table."""
        what = f"{self.strategy}, {self.prompt_name}" if self.prompt_name else self.strategy
        return f"{what}, ratio {self.ratio:g}, recall {self.recall or 0:g}"

    def compacter(self, on_event: Callable[[Event], object]) -> Compacter:
        """Return a new ``Compacter`` with this setting."""
        strategies: dict[str, Any] = {
            "truncate": Truncate(),
            "clear": (ClearToolResults(), Summarize()),
        }
        options: dict[str, Any] = (
            {"strategy": strategies[self.strategy]} if self.strategy in strategies else {}
        )
        if self.prompt is not None:
            options["summary_prompt"] = self.prompt
        return Compacter(
            summarizer=self.model if self.strategy == "model" and self.model else "extractive",
            compact_ratio=self.ratio,
            recall=self.recall,
            on_event=on_event,
            **options,
        )


def settings(
    *,
    strategies: Sequence[str] | None = None,
    ratios: Sequence[float] | None = None,
    recalls: Sequence[float] | None = None,
    model: str | None = None,
    prompts: Sequence[str] | None = None,
) -> list[Setting]:
    """Return every combination of the given values; ``None`` for the default ones.

    Raises:
        MistakeError: A strategy is unknown, or needs a model that is not given.
    """
    chosen = list(strategies or ("extractive", "truncate", "clear", *(("model",) if model else ())))
    for name in chosen:
        if name not in STRATEGIES:
            raise MistakeError(f"--strategy {name} is unknown; use one of {', '.join(STRATEGIES)}")
        if name == "model" and not model:
            raise MistakeError("--strategy model needs --model")
    if prompts and "model" not in chosen:
        raise MistakeError("--prompt needs --model")
    texts: list[tuple[str, str | None]] = [
        (Path(path).stem, read_text(path)) for path in prompts or ()
    ]
    return [
        Setting(strategy, ratio, recall or None, model, text, name)
        for strategy in chosen
        for name, text in (texts if strategy == "model" and texts else [("", None)])
        for ratio in ratios or (0.5, 0.7)
        # Also for ``truncate``: passages can be quoted from messages that were dropped without a
        # summary.
        for recall in (recalls or (0.0, 0.15))
    ]


# -- what a conversation used later ----------------------------------------------------------------

_WORD = re.compile(r"(?:[^\s\"'`<>(){}\[\],;|=*]|(?<=\d),(?=\d)){3,160}")
_PATH = re.compile(r"(?:[A-Za-z]:)?[\w.~-]*[/\\][\w./\\~-]+|[\w-]+\.[A-Za-z]{1,5}$")
_NUMBER = re.compile(r"[$€£]?\d[\d.,:%-]*")
_IDENTIFIER = re.compile(
    r"(?=[^\d]*\d)(?=[^A-Za-z]*[A-Za-z])[\w.:#@+-]+|[A-Za-z]+_\w+|"
    r"[a-z]+[A-Z]\w+|[\w.+-]+@[\w.-]+"
)


def telling(text: str) -> dict[str, str]:
    """Return the identifiers, file paths and numbers of three digits or more in a text, each with
    its kind.
    """
    found: dict[str, str] = {}
    for word in _WORD.findall(text):
        value = word.strip(".,:;!?-")
        if _NUMBER.fullmatch(value):
            if sum(map(str.isdigit, value)) >= 3:
                found[value] = "number"
        elif "://" in value or _PATH.fullmatch(value):
            found[value] = "path"
        elif _IDENTIFIER.fullmatch(value):
            found[value] = "identifier"
    return found


@dataclass(frozen=True, slots=True)
class Cut:
    """A call whose request is examined."""

    at: int
    """Number of messages that the call had."""
    needles: tuple[str, ...] = field(repr=False)
    """Identifiers, paths and numbers that the assistant used later and that occur in messages that
    may be compacted."""
    rules: tuple[str, ...] = field(repr=False)
    """Lasting instructions of the user so far, as compacter recognises them."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A question asked at the end of a conversation, and the texts that its answer must contain."""

    question: str
    answers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A conversation prepared for a replay."""

    name: str
    wire: MessageFormat
    messages: list[Message] = field(repr=False)
    calls: tuple[int, ...] = field(repr=False)
    """Number of messages of each call, from the first that does not fit."""
    cuts: tuple[Cut, ...]
    probes: tuple[Probe, ...]
    window: int
    sizes: dict[int, int] = field(repr=False)
    """Characters of each message, by its ``id()``."""

    @property
    def size(self) -> int:
        """Characters of all messages."""
        return sum(self.sizes.values())

    def weigh(self, messages: Iterable[Message]) -> int:
        """Return the characters of messages; the sizes of the conversation's own are not computed
        again.
        """
        known = self.sizes
        read = self.wire.size
        return sum(known[id(each)] if id(each) in known else read(each) for each in messages)


def traced(
    file: Transcript, *, window: int | None, cuts: int, probes: Sequence[Probe] = ()
) -> Trace | None:
    """Return a conversation with its calls and cuts; ``None`` if all of it fits into the window.

    Args:
        file: The conversation.
        window: In tokens; ``None`` for the size of the system prompt and a third of the rest.
        cuts: Largest number of calls to examine.
        probes: Questions to ask at its end.
    """
    wire = get_format(file.format)
    read = wire.outline(file.messages)
    whole = sum(read.sizes)
    system = sum(
        size for size, kind in zip(read.sizes, read.kinds, strict=True) if kind is Kind.SYSTEM
    )
    held = (
        window
        if window is not None
        else max(64, (system + (whole - system) // 3) // CHARS_PER_TOKEN)
    )
    fits = held * CHARS_PER_TOKEN
    calls = []
    size = 0
    spoken = (Kind.USER, Kind.RESULT)
    for at, (kind, own) in enumerate(zip(read.kinds, read.sizes, strict=True)):
        if at and kind is Kind.ASSISTANT and read.kinds[at - 1] in spoken and size > fits:
            calls.append(at)
        size += own
    if whole <= fits or not (calls or probes):
        return None
    step = len(calls) / (cuts + 1)
    chosen = (
        sorted({calls[min(len(calls) - 1, int(step * place))] for place in range(1, cuts + 1)})
        if calls
        else []
    )
    parts = [list(wire.parts(message, at)) for at, message in enumerate(file.messages)]
    found = tuple(_cut(parts, read.kinds, at) for at in chosen)
    sizes = dict(zip(map(id, file.messages), read.sizes, strict=True))
    return Trace(
        file.id or file.name, wire, file.messages, tuple(calls), found, tuple(probes), held, sizes
    )


def _cut(parts: list[list[Part]], kinds: Sequence[Kind], at: int) -> Cut:
    last_user = max((index for index in range(at) if kinds[index] is Kind.USER), default=-1)
    known: set[str] = set()
    sure: set[str] = set()
    for index in range(at):
        words = telling(" ".join(part.text for part in parts[index]))
        # The system prompt and the last user message always stay, so they make no difference
        # between settings.
        (sure if kinds[index] is Kind.SYSTEM or index == last_user else known).update(words)
    used: dict[str, str] = {}
    for index in range(at, len(parts)):
        for part in parts[index]:
            if part.role == "assistant":
                used |= telling(part.text)
    said = [part for index in range(at) for part in parts[index]]
    rules = (
        line.partition(": ")[2]
        for line in rule_lines(Head(said), 300_000)
        if line.startswith("Rule: ")
    )
    return Cut(at, tuple(sorted(used.keys() & known - sure)), tuple(rules))


# -- the replay ------------------------------------------------------------------------------------


class TooLongError(Exception):
    """The fake provider's refusal of a request that does not fit."""

    status_code = 400
    code = "context_length_exceeded"


@dataclass(slots=True)
class Score:
    """Results of one setting. Shares are means over all cuts of all conversations."""

    setting: Setting
    refusals: int = 0
    lost: int = 0
    """Number of calls that were given up."""
    folds: int = 0
    failures: int = 0
    tokens: int = 0
    """Tokens read and written by the summarizer."""
    cost: float | None = 0.0
    needles: list[float] = field(default_factory=list)
    rules: list[float] = field(default_factory=list)
    probes: list[bool] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)
    """Sizes of accepted requests, as shares of the original ones."""

    @property
    def used_later(self) -> float | None:
        """Share of the identifiers, paths and numbers used later that were in the request."""
        return _mean(self.needles)

    @property
    def rules_kept(self) -> float | None:
        """Share of the user's rules that were in the request, word for word."""
        return _mean(self.rules)

    @property
    def answered(self) -> float | None:
        """Share of the probes whose answer was in the request."""
        return _mean(self.probes)

    @property
    def size(self) -> float | None:
        """Mean size of a request, as a share of the original one."""
        return _mean(self.sizes)

    @property
    def kept(self) -> float | None:
        """Mean of the measured shares, which settings are ranked by; ``None`` if nothing was
        measured.
        """
        return _mean(
            [
                share
                for share in (self.used_later, self.rules_kept, self.answered)
                if share is not None
            ]
        )

    def standard_error(self, other: Score) -> float:
        """Return the standard error of the difference between what this and another setting keep.

        It is that of the mean over cuts and probes, which both settings were measured at.
        """
        mine = [*self.needles, *self.rules, *map(float, self.probes)]
        theirs = [*other.needles, *other.rules, *map(float, other.probes)]
        if len(mine) != len(theirs) or len(mine) < FEWEST_COMPARED:
            return 1.0
        differences = [one - two for one, two in zip(mine, theirs, strict=True)]
        return stdev(differences) / math.sqrt(len(differences))

    @property
    def worth(self) -> tuple[float, int]:
        """Sort key, smaller is better: the share kept, then the number of lost calls."""
        return -round(self.kept or 0.0, 3), self.lost

    @property
    def rank(self) -> tuple[float, int, int, float]:
        """Sort key, smaller is better: ``worth``, then the summarizer's tokens, then larger
        requests first.

        What else a larger request contains may be needed another time.
        """
        return *self.worth, self.tokens, -(self.size or 0.0)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


class _Provider:
    """Fake provider that refuses requests that do not fit, and keeps the last accepted one."""

    def __init__(self, trace: Trace, score: Score) -> None:
        self._trace = trace
        self._score = score
        self.sent: list[Message] = []

    def completion(self, *, messages: list[Message], model: str) -> dict[str, Any]:  # noqa: ARG002 - compacter reads it
        tokens = -(-self._trace.weigh(messages) // CHARS_PER_TOKEN)
        if tokens > self._trace.window:
            self._score.refusals += 1
            raise TooLongError(
                f"This model's maximum context length is {self._trace.window} tokens. However, "
                f"your messages resulted "
                f"in {tokens} tokens."
            )
        self.sent = messages
        return {}

    def note(self, event: Event) -> None:
        score = self._score
        if isinstance(event, CompactionEvent):
            score.folds += 1
            score.tokens += event.input_tokens + event.output_tokens
            score.cost = (
                None if score.cost is None or event.cost is None else score.cost + event.cost
            )
        elif isinstance(event, CompactionFailed):
            score.failures += 1


def replay(trace: Trace, setting: Setting, score: Score) -> None:
    """Repeat the calls of a trace with one setting, and update its score."""
    wire = trace.wire
    provider = _Provider(trace, score)
    call = setting.compacter(provider.note).wrap(provider.completion, wire_format=wire.name)

    def make(messages: list[Message]) -> None:
        provider.sent = []
        try:
            call(messages=messages, model="replayed")
        except TooLongError:
            score.lost += 1
        else:
            score.sizes.append(trace.weigh(provider.sent) / max(1, trace.weigh(messages)))

    def accepted() -> str:
        return "\n".join(
            part.text
            for at, message in enumerate(provider.sent)
            for part in wire.parts(message, at)
        )

    cuts = {cut.at: cut for cut in trace.cuts}
    for at in trace.calls:
        make(trace.messages[:at])
        if at in cuts:
            _compare(accepted(), cuts[at], score)
    for probe in trace.probes:
        make([*trace.messages, wire.say("user", probe.question)])
        # The question itself is at the end of the request, and does not count.
        answered = _plain(accepted()).replace(_plain(probe.question), " ")
        score.probes.append(all(_plain(answer) in answered for answer in probe.answers))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _compare(text: str, cut: Cut, score: Score) -> None:
    if cut.needles:
        words = telling(text)
        # An identifier or a path may be part of a longer word (a line of a file), but a number may
        # not.
        there = [
            needle in words or (_NUMBER.fullmatch(needle) is None and needle in text)
            for needle in cut.needles
        ]
        score.needles.append(sum(there) / len(there))
    if cut.rules:
        plain = _plain(text)
        score.rules.append(sum(_plain(rule) in plain for rule in cut.rules) / len(cut.rules))
