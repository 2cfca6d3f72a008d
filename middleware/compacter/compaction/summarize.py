"""Summarize: the head becomes a summary, with a model or without one.

What reads and writes summaries is loaded at the first one: a program in which nothing is compacted
does not wait for it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from compacter.compaction.task import CompactionStrategy, CompactionTask, links_of
from compacter.effects import AskSummarizer, Effect, Emit
from compacter.errors import CompactionError, ConfigurationError
from compacter.events import CompactionFailed
from compacter.messages.format import Message
from compacter.messages.parts import Part
from compacter.messages.replies import Reply
from compacter.summary.message import FRAME, NoSummaryError, Summary, rule_lines

if TYPE_CHECKING:
    from compacter.options import Options
    from compacter.summary.head import Head
    from compacter.summary.write import Answer, Question, Sizes, Written

# A summary may take an eighth of the window (a 2,048-token model: 256 tokens): what can be fetched
# when it is needed is not carried everywhere.
_WINDOW_SHARE = 8
# Fewest tokens that a summary is given, however small the window or what it replaces.
_FEWEST_TOKENS = 48
# Kept lines take at most this part of what a summary replaces, or these characters; beside a
# model's words, where no window is known, the last part.
_HEAD_SHARE = 3
_LEAST_ROOM = 200
_LEAST_LINES = 800
_LINES_SHARE = 8
# Least number of tokens that may be set: of fewer no sentence can be made.
_SMALLEST_SUMMARY = 16
OPTION_OF: Final = {
    "summary_prompt": "prompt",
    "max_summary_tokens": "max_tokens",
    "summary_request": "request",
}
"""Arguments of ``Summarize`` by the older options of ``Compacter`` that say the same."""
Asking = Generator[Effect[Any], Any, Summary]


class RulesTooLongError(NoSummaryError):
    """The declared rules leave no summary that would be smaller than what it replaces. Internal."""


def summary_tokens(
    options: Options, window: int | None, head_size: int, chars_per_token: float
) -> int:
    """Tokens a summary may have: the option, capped to a fair share of a known window and to what
    it replaces.
    """
    most = options.max_summary_tokens
    if window:
        most = min(most, window // _WINDOW_SHARE)
    return max(_FEWEST_TOKENS, min(most, int(head_size / chars_per_token)))


def reserve(options: Options, window: int | None, head_size: int, chars_per_token: float) -> int:
    """Characters to leave for a summary message."""
    return (
        int(summary_tokens(options, window, head_size, chars_per_token) * chars_per_token) + FRAME
    )


def planned_reserve(
    options: Options, window: int | None, head_size: int, chars_per_token: float
) -> int:
    """Characters to leave for a summary message when a cut is chosen: those of the largest summary
    that a strategy of ``options`` may write.
    """
    settled = [
        link.settle(options) for link in links_of(options.strategy) if isinstance(link, Summarize)
    ]
    return max(reserve(each, window, head_size, chars_per_token) for each in settled or [options])


def room(task: CompactionTask) -> int:
    """Characters the text of a summary may have: less than it replaces, and within the target where
    there is one.

    A budget that is smaller than what must stay cannot be kept; a summary made by hand then gets
    three quarters of it, because losing everything would be worse (measured on agents' histories at
    a tenth of their size: .82 of what was needed later survived with a tenth of the head, .88 with
    this).
    """
    smaller = task.plan.head_size - FRAME - 1
    if task.target is None:
        return smaller
    left = task.target - task.plan.tail_size - FRAME - task.size_of_fillers()
    left -= min(task.job.reserved, max(left, 0) // 2)
    if left < 0 and task.plan.trigger == "manual":
        left = task.target * 3 // 4
    return min(smaller, left)


def summarize_without_model(task: CompactionTask) -> Summary | None:
    """Return the summary that the settings ask for, ``None`` if a model is to write it. Raises
    ``NoSummaryError``.

    Nothing is compacted where the declared rules do not fit: leaving one out would be worse.
    ``CompactionError`` where they alone exceed the window, else ``RulesTooLongError``.
    """
    _check_rules(task)
    if task.summary is not None:
        return _callers_summary(task, task.summary)
    # With nothing new to tell a model, the prior summary is only to be shorter.
    is_only_prior = not task.entries() and task.plan.prior is not None
    if task.options.summarizer == "extractive" or is_only_prior:
        return extract(task)
    return None


def _check_rules(task: CompactionTask) -> None:
    declared = task.conversation.rules
    if not declared:
        return
    size = sum(len(line) + 1 for line in rule_lines(declared))
    most = room(task)
    tokens = int(size / task.chars_per_token)
    if task.window is not None and tokens >= task.window:
        raise CompactionError(
            f"the option rules takes about {tokens} tokens, and the window has {task.window}"
        )
    if size > max(0, most):
        raise RulesTooLongError(
            f"rules: the declared rules take {size} characters, a summary may have {most}"
        )


def _callers_summary(task: CompactionTask, given: str) -> Summary:
    """The summary that the caller passed, if it is one."""
    from compacter.summary import checks

    fault = checks.fault(given, limit=room(task), entries=())
    if fault:
        raise NoSummaryError(f"the summary that was passed is refused: {fault}")
    redact = task.options.redact
    return Summary(redact(given.strip()) if redact else given.strip())


def _head(task: CompactionTask, parts: Sequence[Part]) -> Head:
    """What a summary of this head is made of."""
    from compacter.summary.head import Head

    kept = task.conversation.parts_of_each(task.plan.kept)
    stays = [part for read in kept for part in read.readable]
    retrieved = task.options.retrieved
    return Head(
        parts,
        task.prior(),
        declared=task.conversation.rules,
        stays=stays,
        marks=retrieved if isinstance(retrieved, tuple) else None,
    )


def ask_for_summary(task: CompactionTask) -> Asking:
    """Return the summary that the model writes. Raises ``NoSummaryError``."""
    from compacter.summary.write import Answer, write

    options = task.options
    # By hand there is no call to take the prefix of: then litellm is asked, which takes chat
    # messages only.
    has_prefix = task.plan.trigger != "manual" or task.plan.wire_format == "openai"
    is_native = options.summary_request == "native" and options.summarizer is None
    writing = write(
        _head(task, task.entries()),
        _sizes(task),
        template=options.summary_prompt,
        redact=options.redact,
        native=is_native and options.redact is None and has_prefix,
    )
    cause: Exception | None = None
    answer: Any = None
    while True:
        try:
            question = writing.send(answer)
        except StopIteration as end:
            written: Written = end.value
            task.tally.add(
                unverified=tuple(written.unsupported),
                unsupported_lines=len(written.unsupported),
                chunks=written.chunks,
                chunks_without_model=written.chunks_without_model,
            )
            return written.summary
        except NoSummaryError as error:
            raise NoSummaryError(str(error), error.cause or cause) from error
        try:
            answer = yield from _put_question(task, question)
        except Exception as error:  # noqa: BLE001 - the writer decides what becomes of the rest
            cause = error
            # Whatever a native request fails at, the transcript is another request.
            limit = options.detect(error)
            answer = Answer(
                raised="" if limit else type(error).__name__,
                is_too_long=limit is not None,
                limit=limit.limit if limit else None,
            )


def _put_question(task: CompactionTask, question: Question) -> Generator[Effect[Any], Any, Answer]:
    """The model's answer to one question; what it costs is added up."""
    from compacter.summary.write import Answer

    prefix: list[Message] | None = None
    if question.is_native:
        form = task.conversation.format
        prefix = list(task.messages[: task.plan.cut])
        if task.alternate and prefix and form.speaker(prefix[-1]) == "user":
            prefix.append(form.filler("assistant"))  # The instruction is a message of the user.
    tally = task.tally
    tally.add(summarizer_calls=1)
    reply: Reply = yield AskSummarizer(question.messages, question.max_tokens, prefix)
    tally.add(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens, cost=reply.cost)
    return Answer(reply.text, reply.finish, reply.refused, reply.called_tool)


def _sizes(task: CompactionTask) -> Sizes:
    """How large the model's summary may be."""
    from compacter.summary.write import Sizes

    head = task.plan.head_size
    most = _planned_room(task)
    return Sizes(
        head=head,
        # What stays may be too large by itself: then it is shortened, not the summary.
        room=max(most, _LEAST_ROOM),
        lines=most
        if _is_to_fill(task)
        # Of a small head at most half: its data size counts more than can be read of it.
        else max(
            head // (_HEAD_SHARE if task.window else _LINES_SHARE), min(_LEAST_LINES, head // 2)
        ),
        tokens=summary_tokens(task.options, task.window, head, task.chars_per_token),
        window=task.summarizer_window or task.window,
        chars_per_token=task.chars_per_token,
        fills=_is_to_fill(task),
    )


def _is_to_fill(task: CompactionTask) -> bool:
    """Return whether all of the room is to be used: a budget was given by hand."""
    return task.target is not None and task.plan.trigger == "manual"


def _planned_room(task: CompactionTask) -> int:
    """Return the characters that the text of a summary may have: the room for it, or less where
    nobody has asked to fill it.
    """
    if _is_to_fill(task):
        return room(task)
    head = task.plan.head_size
    return min(room(task), reserve(task.options, task.window, head, task.chars_per_token) - FRAME)


def extract(task: CompactionTask) -> Summary:
    """A summary without any model. Raises ``NoSummaryError`` when there is no room for one."""
    from compacter.summary.write import quote

    most = _planned_room(task)
    if not _is_to_fill(task):
        most = min(most, max(task.plan.head_size // _HEAD_SHARE, _LEAST_ROOM))
    return quote(_head(task, task.entries()), most)


def fall_back(task: CompactionTask) -> list[Message] | None:
    """The result of the first fallback that works, in their order; ``None`` where there is none."""
    from compacter.compaction.strategies import Truncate

    for fallback in task.options.fallback:
        if fallback == "truncate":
            prior = task.prior() or Summary()
            # A model that failed is no reason to lose the user's rules; what cannot be redacted is
            # not kept.
            with suppress(Exception):
                from compacter.summary.rules import rules

                prior = replace(prior, rules=rules(_head(task, task.entries()), room(task)))
            result = Truncate.noted(task, prior)
        else:
            try:
                summary = extract(task)
            except Exception:  # noqa: BLE001, S112 - no room, or a redaction that raised: the next one then
                continue
            result = task.fold(summary)
        task.tally.set(fallback=True)
        task.tally.names.append(fallback)
        return result
    return None


@dataclass(frozen=True, slots=True)
class Summarize:
    """Replaces the head by a summary of it; a prior summary is compacted too, never stacked.

    When no summary can be had, the fallbacks of ``Compacter`` take over, in their order.
    """

    name: str = "summarize"
    """Name that events carry."""
    prompt: str | None = field(default=None, kw_only=True)
    """Instruction in place of the built-in one; ``{history}`` or ``%s`` is replaced by the
    transcript, which is otherwise appended."""
    max_tokens: int | None = field(default=None, kw_only=True)
    """Largest size of a summary in tokens, at least 16; ``None`` for 4,096. Capped to an eighth
    of a known window, and to the size of the messages that it replaces."""
    request: Literal["transcript", "native"] | None = field(default=None, kw_only=True)
    """``"transcript"``, which ``None`` stands for, to send the messages as a fenced transcript.
    ``"native"`` to send the messages themselves, most of which the provider then reads from its
    prompt cache; with another ``summarizer`` or with ``redact`` it counts as ``"transcript"``."""

    def __post_init__(self) -> None:
        prompt: object = self.prompt
        if prompt is not None and (not isinstance(prompt, str) or not prompt):
            raise ConfigurationError(
                f"Summarize: prompt takes a text that is not empty, or None (got {prompt!r})"
            )
        tokens: Any = self.max_tokens
        is_number = isinstance(tokens, int) and not isinstance(tokens, bool)
        is_enough = is_number and tokens >= _SMALLEST_SUMMARY
        if tokens is not None and not is_enough:
            raise ConfigurationError(
                f"Summarize: max_tokens takes a whole number of tokens, at least "
                f"{_SMALLEST_SUMMARY}, or None (got {tokens!r})"
            )
        if self.request not in (None, "transcript", "native"):
            raise ConfigurationError(
                f'Summarize: request takes "transcript" or "native" (got {self.request!r})'
            )

    def settle(self, options: Options) -> Options:
        """Return the options with what this strategy sets in place of theirs.

        Args:
            options: Options of the ``Compacter``.
        """
        own = {
            option: value
            for option, argument in OPTION_OF.items()
            if (value := getattr(self, argument)) is not None
        }
        return options.model_copy(update=own) if own else options

    def compact(self, task: CompactionTask) -> Generator[Effect[Any], Any, list[Message]]:
        """The list of ``task`` with a summary message. Raises ``CompactionError`` where none can be
        had.
        """
        if not task.plan.folded:
            return list(task.messages)
        task = replace(task, options=self.settle(task.options))
        try:
            summary = summarize_without_model(task)
            if summary is None:
                summary = yield from ask_for_summary(task)
        except NoSummaryError as failure:
            yield Emit(
                CompactionFailed(
                    trigger=task.job.trigger,
                    reason=str(failure),
                    error=type(failure.cause).__name__ if failure.cause else "",
                    cause=failure.cause,
                    **task.tally.costs(),
                    **task.job.named,
                )
            )
            if isinstance(failure, RulesTooLongError) and task.options.fallback:
                return list(task.messages)
            if task.summary is not None or not task.options.fallback:
                cause = f": {failure.cause}" if failure.cause else ""
                raise CompactionError(
                    f"no summary could be had: {failure}{cause}"
                ) from failure.cause
            return fall_back(task) or list(task.messages)
        return task.fold(summary)


def check_settings(options: Options) -> None:
    """Raise ``ConfigurationError`` where an older option and ``Summarize`` say different things."""
    for link in links_of(options.strategy):
        if not isinstance(link, Summarize):
            continue
        for option, argument in OPTION_OF.items():
            older = getattr(options, option)
            newer = getattr(link, argument)
            is_set = older is not None and option in options.model_fields_set
            if not is_set or newer is None or older == newer:
                continue
            raise ConfigurationError(
                f"{option} and Summarize({argument}=...) say different things; give "
                f"Summarize({argument}=...) alone (got {older!r} and {newer!r})"
            )


def with_older_names(options: Options) -> Options:
    """Return the options with what their only ``Summarize`` sets under the older names, so that
    both ways of writing the same thing are equal.
    """
    if len(options.strategy) != 1 or type(options.strategy[0]) is not Summarize:
        return options
    link = options.strategy[0]
    plain: tuple[CompactionStrategy, ...] = (Summarize(link.name),)
    return link.settle(options).model_copy(update={"strategy": plain})
