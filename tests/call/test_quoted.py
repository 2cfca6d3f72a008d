"""A question for which there are quotes and no room: the compaction that makes room, and when none
is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from compacter.call.call import Call
from compacter.call.effects import Send
from compacter.call.policy import complete, recover
from compacter.call.request import ConversationState, Request
from compacter.compaction.calibration import Calibration
from compacter.effects import Ask, Quote
from compacter.events import CompactionEvent, CompactionFailed, CompactionSkipped
from compacter.messages.format import get_format
from compacter.messages.replies import Reply
from compacter.overflow import TokenLimit

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.call.conftest import Dialogue

    from compacter.options import Options

OPENAI = get_format("openai")
WINDOW = 1_000
ROOM = 150
"""Tokens that quotes may have: as a share of a small window they would be more."""
QUOTES = "User, message 0: The key hangs behind the kettle."
TOO_LONG = ValueError("too long")
FOUND = TokenLimit(limit=WINDOW, kind="input")


def messages_of(size: int, count: int = 21) -> list[dict[str, Any]]:
    """``count`` messages of equal size, the last one the user's."""
    return [
        {"role": "assistant" if at % 2 else "user", "content": f"{at}".ljust(size, "x")}
        for at in range(count)
    ]


@pytest.fixture
def policy(options: Callable[..., Options]) -> Callable[..., Call]:
    """The policy of a call in a conversation that was compacted before. Messages
    of 190 characters leave no room in its window.
    """

    def make(
        size: int = 190,
        *,
        messages: list[Any] | None = None,
        known: ConversationState | None = None,
        window: int | None = WINDOW,
        **settings: Any,
    ) -> Call:
        sent = messages or messages_of(size)
        request = Request(format=OPENAI, original=[{"role": "user", "content": "x"}], messages=sent)
        given = {"recall": ROOM, "detect": lambda error: FOUND, **settings}
        calibration = Calibration(window=window, learnt=True)
        return Call(options(**given), request, calibration, known or ConversationState())

    return make


def look(dialogue: Dialogue, text: str = QUOTES) -> None:
    """Answer the look for quotes that there is no room for."""
    effect = dialogue.expect(Quote)
    assert not effect.sent
    assert WINDOW * 0.14 < effect.room / 4 <= WINDOW * 0.15
    dialogue.answer(text)


def reasons(dialogue: Dialogue) -> list[tuple[str, str]]:
    skipped = [event for event in dialogue.events if isinstance(event, CompactionSkipped)]
    return [(event.trigger, event.reason) for event in skipped]


def sends_quotes(dialogue: Dialogue) -> bool:
    sent = dialogue.expect(Send).messages
    return any(message["content"] == QUOTES for message in sent)


def test_a_question_with_quotes_and_no_room_starts_the_compaction(
    policy: Any, begin: Any, summary: Reply
) -> None:
    dialogue = begin(complete(policy()))
    look(dialogue)
    dialogue.expect(Ask)
    dialogue.answer(summary)
    asked = dialogue.expect(Quote)
    assert asked.sent
    assert asked.room * asked.tokens_of_one > WINDOW * 0.14
    dialogue.answer(QUOTES)

    assert sends_quotes(dialogue)
    (event,) = [event for event in dialogue.events if isinstance(event, CompactionEvent)]
    assert event.trigger == "quotes"


def test_a_question_that_finds_nothing_costs_no_summary(policy: Any, begin: Any) -> None:
    dialogue = begin(complete(policy()))
    look(dialogue, "")
    assert not sends_quotes(dialogue)
    assert "Ask" not in dialogue.effects
    assert dialogue.events == []


def test_the_window_must_be_known(policy: Any, begin: Any) -> None:
    dialogue = begin(complete(policy(window=None, recall=0.15)))
    assert not sends_quotes(dialogue)
    assert "Quote" not in dialogue.effects


def test_where_nothing_can_be_compacted_an_event_says_so(policy: Any, begin: Any) -> None:
    dialogue = begin(complete(policy(messages=messages_of(3_900, 1))))
    look(dialogue)
    assert not sends_quotes(dialogue)
    assert reasons(dialogue) == [("quotes", "nothing_to_compact")]


def test_soon_after_another_compaction_an_event_says_so(policy: Any, begin: Any) -> None:
    known = ConversationState(calls=5, last_attempt_at_call=3)
    dialogue = begin(complete(policy(known=known)))
    look(dialogue)
    assert not sends_quotes(dialogue)
    assert reasons(dialogue) == [("quotes", "cool_down")]


def test_a_compaction_that_made_no_room_is_not_made_again_until_the_history_has_grown(
    policy: Any, begin: Any
) -> None:
    def ask(size: int) -> Dialogue:
        made = policy(
            size, known=known, min_calls_between=0, strategy=lambda task: task.messages[1:]
        )
        dialogue: Dialogue = begin(complete(made))
        look(dialogue)
        assert not sends_quotes(dialogue)
        return dialogue

    known = ConversationState()
    assert ask(220).told()[-2:] == ["CompactionEvent", "CompactionSkipped"]
    assert reasons(again := ask(220)) == [("quotes", "no_progress")]
    assert again.told() == ["CompactionSkipped"]
    assert "CompactionEvent" in ask(290).told()


def test_a_failing_summarizer_costs_the_quotes_alone(policy: Any, begin: Any) -> None:
    dialogue = begin(complete(policy(fallback=())))
    look(dialogue)
    while isinstance(effect := dialogue.expect((Ask, Send)), Ask):
        dialogue.fail(RuntimeError("down"))
    assert len(effect.messages) == 21
    failed = [event for event in dialogue.events if isinstance(event, CompactionFailed)]
    assert {event.trigger for event in failed} == {"quotes"}


def test_after_a_refusal_there_is_no_second_compaction_for_quotes(
    policy: Any, begin: Any, summary: Reply
) -> None:
    made = policy(strategy=lambda task: task.messages[1:])
    dialogue = begin(recover(made, Reply(token_limit=FOUND, error=TOO_LONG)))
    look(dialogue)
    assert not sends_quotes(dialogue)
    assert reasons(dialogue) == [("quotes", "cool_down")]
    assert dialogue.told().count("CompactionEvent") == 1


def test_a_refusal_after_it_gives_the_quotes_up_first(
    policy: Any, begin: Any, summary: Reply
) -> None:
    dialogue = begin(complete(policy()))
    look(dialogue)
    dialogue.expect(Ask)
    dialogue.answer(summary)
    dialogue.expect(Quote)
    dialogue.answer(QUOTES)
    assert sends_quotes(dialogue)
    dialogue.fail(TOO_LONG)
    assert not sends_quotes(dialogue)
    assert dialogue.effects.count("Ask") == 1
