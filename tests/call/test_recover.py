"""What happens after "too long", as a conversation with the flow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest
from tenacity import stop_never
from tests.call.conftest import Remember, Remembered, Send

from compacter import Truncate
from compacter.call.call import Call
from compacter.call.request import Request
from compacter.compaction.sizes import Calibration
from compacter.effects import AskSummarizer
from compacter.events import CompactionEvent, MaxTokensAdjusted, RetriesExhausted
from compacter.messages.format import get_format
from compacter.messages.replies import Reply
from compacter.options import Options
from compacter.overflow import TokenLimit
from compacter.summary import message as summary_message
from compacter.testing import token_limit_error

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
    begin: type[Dialogue], options: Callable[..., Options], talk: Callable[..., list[Chat]]
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
        return begin(policy.recover(first or refusal()))

    return make


def test_a_round_looks_folds_remembers_and_calls(
    recovery: Callable[..., Dialogue], summary: Reply
) -> None:
    dialogue = recovery()

    dialogue.expect(AskSummarizer)
    dialogue.answer(summary)
    call = dialogue.expect(Send)
    dialogue.answer(Reply(raw="the reply"))

    assert dialogue.end() == "the reply"
    made = summary_message.parse(call.messages[1]["content"])
    assert made is not None
    assert made.prose == summary.text
    assert dialogue.effects == ["Remembered", "Emit", "AskSummarizer", "Remember", "Emit", "Send"]
    assert dialogue.told() == ["CompactionStarted", "CompactionEvent"]


def test_the_event_counts_what_the_summarizer_said(
    recovery: Callable[..., Dialogue], summary: Reply
) -> None:
    dialogue = recovery(refusal(limit=450, requested=500), model="m")

    dialogue.expect(AskSummarizer)
    dialogue.answer(summary)
    dialogue.expect(Send)

    event = dialogue.events[-1]
    assert isinstance(event, CompactionEvent)
    assert event.summarizer_calls == dialogue.effects.count("AskSummarizer")
    assert event.input_tokens == 700 * event.summarizer_calls
    assert event.output_tokens == 6 * event.summarizer_calls
    assert (event.limit, event.requested, event.model, event.attempt) == (450, 500, "m", 1)
    assert (event.trigger, event.strategy, event.fallback) == ("token_limit", "summarize", False)


def test_the_view_is_remembered_for_the_callers_own_messages(
    recovery: Callable[..., Dialogue], talk: Callable[..., list[Chat]], summary: Reply
) -> None:
    history = talk()
    dialogue = recovery(messages=history)

    dialogue.expect(AskSummarizer)
    dialogue.answer(summary)
    remember = dialogue.expect(Remember)
    dialogue.answer()
    call = dialogue.expect(Send)

    assert list(remember.after) == list(call.messages)


def test_a_view_that_another_call_has_just_made_is_used(
    recovery: Callable[..., Dialogue], talk: Callable[..., list[Chat]]
) -> None:
    history = talk()
    dialogue = recovery(messages=history)

    remembered = dialogue.expect(Remembered)
    assert remembered.head
    view = [*history[:1], *history[-3:]]
    dialogue.answer(view)
    call = dialogue.expect(Send)
    dialogue.answer(Reply(raw="the reply"))

    assert list(call.messages) == view
    assert dialogue.end() == "the reply"
    assert dialogue.told() == ["CompactionReused"]


def test_a_view_that_is_no_smaller_is_of_no_use(
    recovery: Callable[..., Dialogue], talk: Callable[..., list[Chat]]
) -> None:
    history = talk()
    dialogue = recovery(messages=history)

    dialogue.expect(Remembered)
    dialogue.answer(history)
    dialogue.expect(AskSummarizer)


def test_the_second_round_works_on_what_the_first_one_left(
    recovery: Callable[..., Dialogue], summary: Reply
) -> None:
    dialogue = recovery(compact_ratio=0.5)

    dialogue.expect(AskSummarizer)
    dialogue.answer(summary)
    first = dialogue.expect(Send)
    dialogue.fail(TooLongError())
    prompt = dialogue.expect(AskSummarizer)
    dialogue.answer(summary)
    second = dialogue.expect(Send)

    assert summary.text in prompt.messages[0]["content"]
    assert "Question 0?" not in prompt.messages[0]["content"]
    assert len(second.messages) < len(first.messages)
    summaries = [
        message for message in second.messages if message["content"].startswith(summary_message.TAG)
    ]
    assert len(summaries) == 1
    assert [event.attempt for event in dialogue.events if isinstance(event, CompactionEvent)] == [
        1,
        2,
    ]


def test_another_error_of_the_retry_passes_through(
    recovery: Callable[..., Dialogue], summary: Reply
) -> None:
    dialogue = recovery()
    dialogue.expect(AskSummarizer)
    dialogue.answer(summary)
    dialogue.expect(Send)
    error = ConnectionError("reset")

    with pytest.raises(ConnectionError) as caught:
        dialogue.fail(error)

    assert caught.value is error
    assert not getattr(error, "__notes__", [])


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_the_rounds_are_counted_by_tenacity(
    attempts: int, recovery: Callable[..., Dialogue]
) -> None:
    dialogue = recovery(attempts=attempts, compact_ratio=0.3, strategy=(Truncate(),))
    errors = [TooLongError("again") for _ in range(attempts - 1)]

    def refuse_each() -> None:
        for error in errors:
            dialogue.expect(Send)
            dialogue.fail(error)
        dialogue.end()

    with pytest.raises(TooLongError) as caught:
        refuse_each()

    assert dialogue.effects.count("Send") == attempts - 1
    assert caught.value is errors[-1] if errors else caught.value.args == ("too long",)
    last = dialogue.events[-1]
    assert isinstance(last, RetriesExhausted)
    assert last.rounds == attempts - 1
    assert "gave up" in caught.value.__notes__[0]


def test_without_an_end_it_stops_where_nothing_can_be_reduced(
    recovery: Callable[..., Dialogue],
) -> None:
    dialogue = recovery(max_retries=stop_never, strategy=(Truncate(),))
    sent: list[list[Chat]] = []

    def refuse_for_ever() -> None:
        while True:
            sent.append(list(dialogue.expect(Send).messages))
            dialogue.fail(TooLongError())
            assert len(sent) < 50

    with pytest.raises(TooLongError):
        refuse_for_ever()

    assert all(one != other for index, one in enumerate(sent) for other in sent[:index])


def test_a_reply_that_says_too_long_is_answered_like_an_error(
    recovery: Callable[..., Dialogue], summary: Reply
) -> None:
    found = TokenLimit(limit=None, requested=None, kind="input")
    dialogue = recovery(Reply(token_limit=found, raw={"error": 1}), attempts=2)

    dialogue.expect(AskSummarizer)
    dialogue.answer(summary)
    dialogue.expect(Send)
    dialogue.answer(Reply(raw={"error": 2}, token_limit=found))

    assert dialogue.end() == {"error": 2}
    assert dialogue.told()[-1] == "RetriesExhausted"


class TestOutput:
    """Input and ``max_tokens`` together are too long: the output gives way where that helps."""

    def test_the_output_limit_is_lowered_and_the_history_left_alone(
        self, recovery: Callable[..., Dialogue], talk: Callable[..., list[Chat]]
    ) -> None:
        history = talk()
        dialogue = recovery(
            refusal(limit=1_000, requested=1_500, kind="input_plus_output"),
            messages=history,
            output_tokens=1_000,
        )

        call = dialogue.expect(Send)

        assert list(call.messages) == history
        assert 400 <= call.options["max_tokens"] < 500  # type: ignore[operator]
        (event,) = dialogue.events
        assert isinstance(event, MaxTokensAdjusted)
        assert (event.before, event.after, event.limit) == (
            1_000,
            call.options["max_tokens"],
            1_000,
        )

    def test_the_event_says_at_which_refusal_it_was(
        self, recovery: Callable[..., Dialogue]
    ) -> None:
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
        self, recovery: Callable[..., Dialogue], summary: Reply
    ) -> None:
        """No history fits beside it: it is lowered to half of the window, and what is too long for
        the other half is compacted in the same round.
        """
        dialogue = recovery(
            refusal(limit=1_000, requested=2_400, kind="input_plus_output"), output_tokens=1_000
        )

        dialogue.expect(AskSummarizer)
        dialogue.answer(summary)
        sent = dialogue.expect(Send)

        assert sent.options["max_tokens"] == 500
        assert dialogue.told()[0] == "MaxTokensAdjusted"
        assert "CompactionEvent" in dialogue.told()

    @pytest.mark.parametrize("limit", [550, 1_000])
    def test_beside_a_bound_it_is_lowered_once_at_most(
        self, limit: int, recovery: Callable[..., Dialogue]
    ) -> None:
        """A bound is no size: what the characters leave is tried once, then the history is
        compacted; at once if they leave nothing.
        """
        bound = refusal(limit, limit + 1, "input_plus_output", is_bound=True)
        dialogue = recovery(bound, output_tokens=limit // 2)
        if limit == 1_000:
            sent = dialogue.expect(Send)
            lowered: Any = sent.options["max_tokens"]
            assert lowered < limit // 2
            dialogue.answer(bound)

        dialogue.expect(AskSummarizer)

    @pytest.mark.parametrize(
        ("limit", "requested", "output", "adjust"),
        [
            (1_000, 1_100, 90, True),  # The input alone is too long.
            (1_000, 1_500, 510, True),  # What would be left is no answer.
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
        recovery: Callable[..., Dialogue],
    ) -> None:
        dialogue = recovery(
            refusal(limit=limit, requested=requested, kind="input_plus_output"),
            output_tokens=output,
            adjust_max_tokens=adjust,
        )

        dialogue.expect(AskSummarizer)

    def test_if_that_was_not_enough_the_history_is_folded_next(
        self, recovery: Callable[..., Dialogue]
    ) -> None:
        dialogue = recovery(
            refusal(limit=1_000, requested=1_500, kind="input_plus_output"), output_tokens=1_000
        )

        first = dialogue.expect(Send)
        dialogue.fail(TooLongError())
        dialogue.expect(AskSummarizer)

        assert "max_tokens" in first.options


class TestNumbers:
    def test_one_round_is_enough_where_the_error_states_both(
        self, recovery: Callable[..., Dialogue], talk: Callable[..., list[Chat]], summary: Reply
    ) -> None:
        # 2,000 characters in 1,000 tokens; 300 are allowed: far more than the ratio has to go.
        history = talk()
        size = sum(map(OPENAI.size, history))
        dialogue = recovery(
            refusal(limit=300, requested=1_000), messages=history, compact_ratio=0.1
        )

        dialogue.expect(AskSummarizer)
        dialogue.answer(summary)
        call = dialogue.expect(Send)

        assert sum(map(OPENAI.size, call.messages)) <= 300 * size / 1_000

    def test_characters_per_token_are_learnt_from_it(
        self, recovery: Callable[..., Dialogue], talk: Callable[..., list[Chat]]
    ) -> None:
        calibration = Calibration()
        history = talk()
        size = sum(map(OPENAI.size, history))
        dialogue = recovery(
            refusal(limit=600, requested=1_000),
            messages=history,
            calibration=calibration,
            overhead=500,
        )

        dialogue.expect(AskSummarizer)

        assert calibration.window == 600
        assert calibration.chars_per_token == pytest.approx((size + 500) / 1_000)

    @pytest.mark.parametrize("tokens", [2, 5])
    def test_more_tokens_than_the_texts_can_have_count_as_a_proportion_only(
        self,
        tokens: int,
        recovery: Callable[..., Dialogue],
        talk: Callable[..., list[Chat]],
        summary: Reply,
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

        dialogue.expect(AskSummarizer)
        dialogue.answer(summary)
        call = dialogue.expect(Send)

        assert not calibration.learnt
        assert sum(map(OPENAI.size, call.messages)) <= 0.3 * size

    def test_a_script_that_takes_a_token_a_byte_is_believed(
        self, recovery: Callable[..., Dialogue]
    ) -> None:
        calibration = Calibration()
        history = [
            {"role": "user" if turn % 2 == 0 else "assistant", "content": "\u1000\u1039\u1019" * 60}
            for turn in range(9)
        ]
        dialogue = recovery(
            refusal(limit=2_000, requested=4_000), messages=history, calibration=calibration
        )

        dialogue.expect(AskSummarizer)

        assert calibration.chars_per_token == pytest.approx(9 * 180 / 4_000)

    def test_numbers_that_contradict_the_refusal_are_not_trusted(
        self, recovery: Callable[..., Dialogue]
    ) -> None:
        # By these the request fits: the provider says that it does not, so the ratio decides.
        dialogue = recovery(refusal(limit=9_000, requested=None), compact_ratio=0.6)

        dialogue.expect(AskSummarizer)

    def test_a_size_without_a_limit_is_no_proportion(
        self, recovery: Callable[..., Dialogue]
    ) -> None:
        # The window is known from earlier, and by that the request fits: then, too, the ratio
        # decides.
        dialogue = recovery(
            refusal(limit=None, requested=500), calibration=Calibration(window=90_000)
        )

        dialogue.expect(AskSummarizer)


class TestTheUsersDetector:
    @pytest.mark.parametrize("answer", [True, TokenLimit(limit=10, requested=20, kind="input")])
    def test_it_is_asked_first(self, answer: Any) -> None:
        found = Options(detect=lambda error: answer).detect(ValueError("mine"))
        assert isinstance(found, TokenLimit)

    def test_its_no_is_final_and_its_none_asks_on(self) -> None:
        error = token_limit_error(limit=10, input_tokens=20)
        assert Options(detect=cast("Any", lambda error: False)).detect(error) is None
        assert Options(detect=lambda error: None).detect(error) is not None
        assert Options().detect(error) is not None

    def test_one_that_raises_is_passed_over(self) -> None:
        def broken(error: BaseException) -> Any:
            raise KeyError

        assert (
            Options(detect=broken).detect(token_limit_error(limit=10, input_tokens=20)) is not None
        )
        assert Options(detect=broken).detect(ValueError("no")) is None
