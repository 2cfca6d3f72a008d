"""A scripted summarizer, which can fail in every way."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from compacter.errors import with_hints
from compacter.messages.format import Message
from compacter.testing.errors import Style, server_error, token_limit_error
from compacter.testing.model import Completion, Request, ScriptedModel, check_word
from compacter.testing.replies import Reply
from compacter.testing.rules import CharacterCount

Returns = Literal["text", "completion"]
Failure = Literal[
    "nothing",
    "empty",
    "blank",
    "refusal",
    "filtered",
    "tool_call",
    "length",
    "too_large",
    "raises",
    "overflows",
]
"""How a summarizer fails: it returns None, an empty or a blank text; declines in prose, or by a
content filter; calls a tool; is cut by its token limit; returns more than it was given; raises a
server error, or a token-limit error."""

Failures: TypeAlias = Failure | BaseException | Sequence[Failure | BaseException | None] | None
"""One failure for all calls, or one per call (None: no failure); later calls succeed. An exception
is raised."""

Summary: TypeAlias = Any
"""Return value of a summarizer: text, a completion, or (a failure) None."""

_BOUNDLESS = 10**12
# Characters of the conversation in a summary whose text is not scripted.
_BEGINNING = 60
_CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
# The finish reason is always stated, so that ``max_tokens`` never cuts a scripted text.
_BAD_ANSWERS: Mapping[str, Reply] = {
    "nothing": {"content": None, "finish_reason": "stop"},
    "empty": {"content": "", "finish_reason": "stop"},
    "blank": {"content": " \n\t ", "finish_reason": "stop"},
    "refusal": {"content": "I'm sorry, but I can't help with that.", "finish_reason": "stop"},
    "filtered": {
        "content": None,
        "refusal": "The content was filtered.",
        "finish_reason": "content_filter",
    },
    "tool_call": {"content": None, "tool_calls": [_CALL], "finish_reason": "tool_calls"},
    "length": {"content": "So far the user has asked for", "finish_reason": "length"},
}


@with_hints
class ScriptedSummarizer:
    """Fake summarizer for ``Compacter(summarizer=...)``; pass its ``acall`` for an asynchronous
    one.

    It records its requests as `ScriptedModel` does.
    """

    def __init__(
        self,
        text: str | Callable[[tuple[Message, ...]], str] | None = None,
        *,
        fail: Failures = None,
        returns: Returns = "text",
        window: int | None = None,
        style: str | Style = "openai",
        **options: Any,
    ) -> None:
        """Create a summarizer with a scripted summary.

        Args:
            text: The summary, or a function of the prompt's messages that returns it; None for the
                beginning of what is to be summarized. A text with nothing of the conversation is
                refused.
            fail: The failures of its calls; see `Failures`.
            returns: "text" for bare text, without usage, or "completion".
            window: Largest prompt, in tokens; None for any size. A longer one is refused in the
                form of `style`.
            style: As for `ScriptedModel`.
            **options: `usage`, `reply_type`, `chars_per_token` and `count`, as for `ScriptedModel`.

        Raises:
            ValueError: A failure, a style or another word is unknown.
        """
        self._text = _begin if text is None else text
        is_one = fail is None or isinstance(fail, (str, BaseException))
        failures = cast("Sequence[Failure | BaseException | None]", (fail,) if is_one else fail)
        for failure in failures:
            if isinstance(failure, str):
                check_word("fail", failure, Failure)
        self._failures = itertools.repeat(failures[0]) if is_one else iter(failures)
        check_word("returns", returns, Returns)
        self._returns = returns
        self._style = style
        self._model = ScriptedModel(
            window=_BOUNDLESS if window is None else window,
            style=style,
            replies=self._reply,
            **options,
        )

    @property
    def requests(self) -> tuple[Request, ...]:
        """All calls so far, including refused ones."""
        return self._model.requests

    @property
    def prompts(self) -> tuple[str, ...]:
        """Text of each prompt, its messages joined by blank lines."""
        return tuple("\n\n".join(map(_text_of, request.messages)) for request in self.requests)

    @property
    def tokens(self) -> int:
        """Input tokens of all prompts."""
        return self._model.tokens_sent

    def __call__(self, messages: Sequence[Message], **options: Any) -> Summary:
        """Return the summary, or fail as scripted."""
        model = options.pop("model", None) or "summarizer"
        return self._return_text(self._model.completion(model, messages, **options))

    async def acall(self, messages: Sequence[Message], **options: Any) -> Summary:
        """Like ``summarizer(messages)``, but awaited."""
        model = options.pop("model", None) or "summarizer"
        return self._return_text(await self._model.acompletion(model, messages, **options))

    def _reply(self, messages: tuple[Message, ...]) -> Reply:
        failure = next(self._failures, None)
        if failure is None:
            text = self._text if isinstance(self._text, str) else self._text(messages)
            return {"content": text, "finish_reason": "stop"}
        if isinstance(failure, BaseException):
            return failure
        if failure == "raises":
            return server_error()
        if failure == "overflows":
            tokens = self._model.count(messages, {})
            return token_limit_error(self._style, limit=max(1, tokens // 2), input_tokens=tokens)
        if failure == "too_large":
            characters = CharacterCount(1)(messages, {})
            return {"content": "and then, " * (characters // 10 + 1), "finish_reason": "stop"}
        return _BAD_ANSWERS[failure]

    def _return_text(self, completion: Completion) -> Summary:
        """Return the text of a completion; the completion itself if that was requested, or if it
        did not end normally.
        """
        choice = completion["choices"][0] if isinstance(completion, dict) else completion.choices[0]
        read = choice if isinstance(choice, dict) else choice.model_dump()
        if self._returns == "completion" or read["finish_reason"] != "stop":
            return completion
        content: str | None = read["message"]["content"]
        return content


def _begin(messages: tuple[Message, ...]) -> str:
    """Return a summary with words of the conversation: one without them is refused."""
    said = _text_of(messages[0]).partition("\nuser: ")[2]
    return f"SUMMARY: {said[:_BEGINNING]}"


def _text_of(message: Message) -> str:
    content = message.get("content") if isinstance(message, Mapping) else message.content
    return content if isinstance(content, str) else "" if content is None else str(content)
