"""The steps of the flow after "too long", answered one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter.call.call import Call
from compacter.call.effects import Send
from compacter.call.policy import recover
from compacter.call.request import Request
from compacter.compaction.calibration import Calibration
from compacter.effects import Ask
from compacter.events import MaxTokensAdjusted
from compacter.messages.format import get_format
from compacter.messages.replies import Reply
from compacter.options import Options
from compacter.overflow import TokenLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.call.conftest import Dialogue
    from tests.conversations import Chat


OPENAI = get_format("openai")


class TooLongError(Exception):
    """A provider's refusal that says no numbers."""


def refusal(
    limit: int | None = None,
    requested: int | None = None,
    kind: Any = "input",
    *,
    is_bound: bool = False,
) -> Reply:
    return Reply(
        token_limit=TokenLimit(limit, requested, kind, is_bound=is_bound),
        error=TooLongError("too long"),
    )


def told(error: BaseException) -> TokenLimit | None:
    return (
        TokenLimit(limit=None, requested=None, kind="input")
        if isinstance(error, TooLongError)
        else None
    )


@pytest.fixture
def recovery(
    begin: type[Dialogue], options: Callable[..., Options], talk: Any
) -> Callable[..., Dialogue]:
    """A dialogue with a recovery: first the refusal, then options of the Compacter and the
    request.
    """

    def make(
        first: Reply | None = None,
        *,
        messages: list[Chat] | None = None,
        calibration: Calibration | None = None,
        **settings: Any,
    ) -> Dialogue:
        names = ("overhead", "output_tokens", "options", "model")
        asked = {name: settings.pop(name) for name in names if name in settings}
        settings.setdefault("detect", told)
        history = talk() if messages is None else messages
        request = Request(format=OPENAI, original=history, messages=history, **asked)
        policy = Call(options(**settings), request, calibration or Calibration())
        return begin(recover(policy, first or refusal()))

    return make


def test_another_error_of_the_retry_passes_through(recovery: Any, summary: Reply) -> None:
    dialogue = recovery()
    dialogue.expect(Ask)
    dialogue.answer(summary)
    dialogue.expect(Send)
    error = ConnectionError("reset")

    with pytest.raises(ConnectionError) as caught:
        dialogue.fail(error)

    assert caught.value is error
    assert not getattr(error, "__notes__", [])


def test_a_reply_that_says_too_long_is_answered_like_an_error(
    recovery: Any, summary: Reply
) -> None:
    found = TokenLimit(limit=None, requested=None, kind="input")
    dialogue = recovery(Reply(token_limit=found, raw={"error": 1}), attempts=2)

    dialogue.expect(Ask)
    dialogue.answer(summary)
    dialogue.expect(Send)
    dialogue.answer(Reply(raw={"error": 2}, token_limit=found))

    assert dialogue.end() == {"error": 2}
    assert dialogue.told()[-1] == "RetriesExhausted"
    # A later call begins with all messages again.
    assert dialogue.effects[-1] == "Forget"


class TestOutput:
    """Input and ``max_tokens`` together are too long: the output gives way where that helps."""

    def test_the_event_says_at_which_refusal_it_was(self, recovery: Any) -> None:
        dialogue = recovery(
            refusal(limit=1_000, requested=1_500, kind="input_plus_output"), output_tokens=1_000
        )

        dialogue.expect(Send)
        dialogue.answer(refusal(limit=800, requested=900, kind="input_plus_output"))
        dialogue.expect(Send)

        assert [(type(event), event.attempt) for event in dialogue.events] == [
            (MaxTokensAdjusted, 1),
            (MaxTokensAdjusted, 2),
        ]

    def test_an_output_of_most_of_the_window_gives_way_before_the_history(
        self, recovery: Any, summary: Reply
    ) -> None:
        """No history fits beside it: it is lowered to half of the window, and what is too long for
        the other half is compacted in the same round.
        """
        dialogue = recovery(
            refusal(limit=1_000, requested=2_400, kind="input_plus_output"), output_tokens=1_000
        )

        dialogue.expect(Ask)
        dialogue.answer(summary)
        sent = dialogue.expect(Send)

        assert sent.options["max_tokens"] == 500
        assert dialogue.told()[0] == "MaxTokensAdjusted"
        assert "CompactionEvent" in dialogue.told()

    @pytest.mark.parametrize("limit", [550, 1_000])
    def test_beside_a_bound_it_is_lowered_once_at_most(self, limit: int, recovery: Any) -> None:
        """A bound is not a size: what the characters leave is tried once, then the history is
        compacted; at once if they leave nothing.
        """
        bound = refusal(limit, limit + 1, "input_plus_output", is_bound=True)
        dialogue = recovery(bound, output_tokens=limit // 2)
        if limit == 1_000:
            sent = dialogue.expect(Send)
            lowered: Any = sent.options["max_tokens"]
            assert lowered < limit // 2
            dialogue.answer(bound)

        dialogue.expect(Ask)

    @pytest.mark.parametrize(
        ("limit", "requested", "output", "adjust"),
        [
            (1_000, 1_100, 90, True),  # The input alone is too long.
            (1_000, 1_500, 510, True),  # The rest would be too little for an answer.
            (1_000, 1_500, 1_000, False),  # It is switched off.
            (None, 1_500, 1_000, True),  # Nobody said how much is allowed,
            (1_000, None, 1_000, True),  # or how much was sent.
            (1_000, 1_500, None, True),  # No output limit was set.
        ],
    )
    def test_otherwise_the_history_is_folded(
        self,
        limit: int | None,
        requested: int | None,
        output: int | None,
        adjust: bool,
        recovery: Any,
    ) -> None:
        dialogue = recovery(
            refusal(limit=limit, requested=requested, kind="input_plus_output"),
            output_tokens=output,
            adjust_max_tokens=adjust,
        )

        dialogue.expect(Ask)


class TestNumbers:
    def test_one_round_is_enough_where_the_error_states_both(
        self, recovery: Any, talk: Any, summary: Reply
    ) -> None:
        # 2,000 characters in 1,000 tokens; 300 are allowed: far more than the ratio has to go.
        history = talk()
        size = sum(map(OPENAI.size, history))
        dialogue = recovery(
            refusal(limit=300, requested=1_000), messages=history, compact_ratio=0.1
        )

        dialogue.expect(Ask)
        dialogue.answer(summary)
        call = dialogue.expect(Send)

        assert sum(map(OPENAI.size, call.messages)) <= 300 * size / 1_000

    @pytest.mark.parametrize("tokens", [2, 5])
    def test_more_tokens_than_the_texts_can_have_count_as_a_proportion_only(
        self, tokens: int, recovery: Any, talk: Callable[..., list[Chat]], summary: Reply
    ) -> None:
        # So many tokens a character count something that is not in the messages.
        calibration = Calibration()
        history = talk()
        size = sum(map(OPENAI.size, history))
        dialogue = recovery(
            refusal(limit=tokens * 3 * size // 10, requested=tokens * size),
            messages=history,
            calibration=calibration,
            compact_ratio=0.1,
        )

        dialogue.expect(Ask)
        dialogue.answer(summary)
        call = dialogue.expect(Send)

        assert not calibration.learnt
        assert sum(map(OPENAI.size, call.messages)) <= 0.3 * size

    def test_a_script_that_takes_a_token_a_byte_is_believed(self, recovery: Any) -> None:
        calibration = Calibration()
        history = [
            {"role": "user" if turn % 2 == 0 else "assistant", "content": "\u1000\u1039\u1019" * 60}
            for turn in range(9)
        ]
        dialogue = recovery(
            refusal(limit=2_000, requested=4_000), messages=history, calibration=calibration
        )

        dialogue.expect(Ask)

        assert calibration.chars_per_token == pytest.approx(9 * 180 / 4_000)
