"""Sizes and limits that a call computes: the room for quotes, when and how far to fold ahead, what
usage tells.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.dialects import DIALECTS, Dialect

from compacter.call.call import Call
from compacter.call.effects import Send
from compacter.call.policy import complete
from compacter.call.reduce import plan_of
from compacter.call.request import (
    MOST_CHARACTERS,
    ConversationState,
    Request,
    calibrate,
    measure,
)
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import find_pinned
from compacter.effects import Ask, Quote
from compacter.events import CompactionSkipped, SilentTruncation
from compacter.messages.format import get_format
from compacter.messages.replies import Reply
from compacter.overflow import TokenLimit
from compacter.runtime.io import is_large

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.call.conftest import Dialogue

    from compacter import CompactionPlan
    from compacter.options import Options

OPENAI = get_format("openai")
PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
TABLE = "         |" * 800


def messages_of(size: int, count: int = 10) -> list[dict[str, Any]]:
    """So many messages of together so many characters, the last one the user's."""
    found = [
        {"role": "user" if (count - at) % 2 else "assistant", "content": "x" * (size // count)}
        for at in range(count)
    ]
    found[0]["content"] += "y" * (size - sum(map(OPENAI.size, found)))
    return found


@pytest.fixture
def policy(options: Callable[..., Options]) -> Callable[..., Call]:
    """The policy of a call: what was learnt of the model and of the conversation, the request, and
    the options.
    """

    def make(
        size: int,
        *,
        known: ConversationState | None = None,
        chars_per_token: float = 4.0,
        window: int | None = None,
        overhead: int = 0,
        output: int | None = None,
        folded: bool = False,
        learnt: bool = True,
        **settings: Any,
    ) -> Call:
        messages = messages_of(size)
        request = Request(
            format=OPENAI,
            original=list(messages) if folded else messages,
            messages=messages,
            overhead=overhead,
            output_tokens=output,
            find_pinned=partial(find_pinned, settings.get("pin"), format=OPENAI),
        )
        calibration = Calibration(chars_per_token=chars_per_token, window=window, learnt=learnt)
        return Call(options(**settings), request, calibration, known or ConversationState())

    return make


class TestTheRoomForQuotes:
    """They may have their share of the window, and only what the request leaves free of 90
    % of it.
    """

    @pytest.mark.parametrize(
        ("window", "output", "overhead", "room"),
        [
            (10_000, None, 500, 6_000),  # The share: 15 % of the window, four characters a token.
            (1_100, None, 500, 1_320),  # Of a small window 30 %, as less holds no passage.
            (785, None, 500, 326),  # What the messages and the tools leave free.
            (1_000, 200, 500, 380),
            (1_000, 215, 500, 326),  # The answer's room is kept free too,
            (1_570, 1_400, 500, 326),  # but never more than half of the window for it.
            (1_000, 250, 0, 700),
            (777, None, 500, None),  # Fewer than 300 characters say nothing.
            (778, None, 500, 300),
            (500, None, 500, None),
        ],
    )
    def test_is_their_share_of_the_window_or_what_is_free(
        self,
        policy: Any,
        begin: Any,
        window: int,
        output: int | None,
        overhead: int,
        room: int | None,
    ) -> None:
        made = policy(
            2_000, window=window, output=output, overhead=overhead, folded=True, recall=0.15
        )
        assert self.room(begin(complete(made))) == room

    def test_is_none_once_a_request_with_quotes_was_refused(self, policy: Any, begin: Any) -> None:
        found = TokenLimit(limit=10_000, kind="input")
        made = policy(2_000, window=10_000, folded=True, recall=0.15, detect=lambda error: found)
        dialogue = begin(complete(made))
        dialogue.expect(Quote)
        dialogue.answer("User, message 0: yes")
        assert len(dialogue.expect(Send).messages) == 11
        dialogue.fail(ValueError("too long"))
        assert len(dialogue.expect(Send).messages) == 10
        assert dialogue.effects[-3:] == ["Quote", "Send", "Send"]

    @pytest.mark.parametrize(
        ("limit", "attempts", "folded"),
        [(2_500, 2, False), (2_499, 4, True), (None, 4, False), (None, 2, True)],
    )
    def test_is_all_that_is_taken_back_where_the_rest_fits_or_no_number_says_and_a_try_is_left(
        self, policy: Any, begin: Any, limit: int | None, attempts: int, folded: bool
    ) -> None:
        found = TokenLimit(limit=limit, kind="input")  # 97 % of 2,500 tokens are 9,700 characters.
        made = policy(
            9_700, folded=True, recall=2_000, attempts=attempts, detect=lambda error: found
        )
        dialogue = begin(complete(made))
        dialogue.expect(Quote)
        dialogue.answer("User, message 0: yes")
        dialogue.expect(Send)
        dialogue.fail(ValueError("too long"))
        dialogue.expect((Ask, Send))
        assert dialogue.effects[-1] == ("Ask" if folded else "Send")

    @pytest.mark.parametrize(
        ("target", "reserved"),
        [
            (4_000, 960),  # 800 are the question's own: 30 % of the other 3,200.
            (1_800, 300),
            (1_700, 0),
            (100, 0),
        ],
    )
    def test_is_reserved_where_a_refusal_makes_the_history_smaller(
        self, policy: Any, target: int, reserved: int
    ) -> None:
        made = policy(8_000, recall=0.15)
        made.limit = TokenLimit(limit=target // 4, kind="input")
        assert plan_of(made, target, "token_limit").reserved == reserved
        assert plan_of(made, target, "threshold").reserved == 0

    @pytest.mark.parametrize(("trigger", "reserved"), [("threshold", 0), ("quotes", 6_000)])
    def test_is_reserved_where_they_are_what_a_compaction_is_for(
        self, policy: Any, trigger: Any, reserved: int
    ) -> None:
        made = policy(8_000, recall=0.15, window=10_000)
        assert plan_of(made, 7_000, trigger).reserved == reserved

    def room(self, dialogue: Dialogue) -> int | None:
        """The room for which the call requests quotes; ``None`` if it requests no quotes."""
        effect: Any = dialogue.expect((Quote, Send))  # type: ignore[arg-type]
        return effect.room if isinstance(effect, Quote) and effect.sent else None


class TestTheTrigger:
    """The threshold is 1,000 tokens; a request of 8,000 characters and 2,000 beside them
    has 2,500.
    """

    def ahead(
        self, policy: Any, begin: Any, *, size: int = 8_000, overhead: int = 2_000, **settings: Any
    ) -> Dialogue:
        """The dialogue of a call, at its first request for a summary or at its call."""
        dialogue: Dialogue = begin(
            complete(policy(size, overhead=overhead, trigger_tokens=1_000, **settings))
        )
        dialogue.expect((Ask, Send))  # type: ignore[arg-type]
        return dialogue

    def fires(self, dialogue: Dialogue) -> bool:
        return dialogue.effects[-1] == "Ask"

    @pytest.mark.parametrize(
        ("tokens", "characters", "fires"),
        [
            (999, 10_000, False),
            (1_000, 10_000, True),
            (899, 9_600, False),  # 400 characters more than then are 100 tokens more.
            (900, 9_600, True),
            (999, 10_001, True),  # The history is another one: what the usage said is not of it.
        ],
    )
    def test_goes_by_the_last_usage_and_what_was_added_since(
        self, policy: Any, begin: Any, tokens: int, characters: int, fires: bool
    ) -> None:
        known = ConversationState(calls=4, tokens=tokens, characters=characters)
        assert self.fires(self.ahead(policy, begin, known=known)) is fires

    @pytest.mark.parametrize(("stuck", "fires"), [(8_000, False), (7_999, True), (0, True)])
    def test_waits_until_a_history_that_could_not_shrink_has_grown_by_a_quarter(
        self, policy: Any, begin: Any, stuck: int, fires: bool
    ) -> None:
        dialogue = self.ahead(policy, begin, known=ConversationState(calls=4, stuck_size=stuck))
        assert self.fires(dialogue) is fires
        assert not [event for event in dialogue.events if isinstance(event, CompactionSkipped)]

    def test_aims_at_nine_tenths_of_the_threshold_with_all_that_is_sent(
        self, policy: Any, begin: Any
    ) -> None:
        targets: list[int | None] = []

        def watching(task: CompactionPlan) -> Any:
            targets.append(task.target)
            return task.keep(range(8, 10))

        known = ConversationState(calls=4, tokens=2_000, characters=10_000)
        made = policy(8_000, overhead=2_000, trigger_tokens=1_000, known=known, strategy=watching)
        begin(complete(made)).expect(Send)
        # 10,000 characters are 2,000 tokens: 900 tokens are 4,500, 2,000 of them taken.
        assert targets == [2_500]
        assert (known.last_attempt_at_call, known.stuck_size, known.tokens) == (5, 0, 0)


class TestUsage:
    def ask(self, made: Call, begin: Any, tokens: int) -> Dialogue:
        dialogue: Dialogue = begin(complete(made))
        dialogue.expect(Send)
        dialogue.answer(Reply(raw={"usage": {"prompt_tokens": tokens}}))
        return dialogue

    def test_is_learnt_of_the_whole_request(self, policy: Any, begin: Any) -> None:
        made = policy(8_000, overhead=2_000, learnt=False)
        self.ask(made, begin, 2_000).end()
        assert (made.calibration.chars_per_token, made.calibration.learnt) == (5.0, True)
        assert (made.state.tokens, made.state.characters) == (2_000, 10_000)

    def test_of_an_answer_ends_what_the_refusal_before_it_said(
        self, policy: Any, begin: Any
    ) -> None:
        """The next refusal is a first one again."""
        made = policy(8_000, known=ConversationState(refused_size=9_000))
        self.ask(made, begin, 2_000).end()
        assert made.state.refused_size == 0

    def test_is_noted_without_the_quotes(self, policy: Any, begin: Any) -> None:
        """The next request may have others, or none."""
        text = "User, message 0: yes"
        made = policy(8_000, folded=True, recall=2_000)
        dialogue = begin(complete(made))
        dialogue.expect(Quote)
        dialogue.answer(text)
        dialogue.expect(Send)
        dialogue.answer(Reply(raw={"usage": {"prompt_tokens": 2_000}}))
        dialogue.end()
        assert 2_000 - made.state.tokens == made.calibration.tokens(len(text)) > 0
        assert made.state.characters == 8_000

    @pytest.mark.parametrize(
        ("chars_per_token", "learnt", "tokens", "cut"),
        [
            (4.0, False, 1_428, True),  # Seven characters a token are more than any text has.
            (4.0, False, 1_429, False),
            # Known to have six: a server that read less than 60 % has cut it.
            (6.0, True, 999, True),
            (6.0, True, 1_000, False),
        ],
    )
    def test_that_is_far_too_small_says_that_the_prompt_was_cut(
        self, policy: Any, begin: Any, chars_per_token: float, learnt: bool, tokens: int, cut: bool
    ) -> None:
        made = policy(
            8_000,
            overhead=2_000,
            chars_per_token=chars_per_token,
            learnt=learnt,
            trigger_tokens=10**6,
        )
        dialogue = self.ask(made, begin, tokens)
        dialogue.end()
        told = [event for event in dialogue.events if isinstance(event, SilentTruncation)]
        assert [(event.expected_tokens, event.prompt_tokens) for event in told] == (
            [(round(10_000 / chars_per_token), tokens)] if cut else []
        )
        assert bool(made.state.tokens) is not cut


class TestARefusal:
    """Calibration by a provider's numbers, and the size that messages may then have."""

    @pytest.mark.parametrize(
        ("found", "used", "chars_per_token"),
        [
            (TokenLimit(1_000, requested=2_500, kind="input", source="window"), 2_500, 4.0),
            (TokenLimit(limit=1_000, requested=2_500, kind="input_plus_output"), 2_000, 5.0),
            (
                TokenLimit(
                    limit=1_000, requested=9_000, input_tokens=2_000, kind="input_plus_output"
                ),
                2_000,
                5.0,
            ),
            (TokenLimit(limit=1_000, kind="input"), None, 3.0),
            (TokenLimit(limit=1_000, requested=500, kind="input_plus_output"), 0, 3.0),
        ],
    )
    def test_tells_the_tokens_of_the_input(
        self, policy: Any, found: TokenLimit, used: int | None, chars_per_token: float
    ) -> None:
        made = policy(8_000, overhead=2_000, output=500, chars_per_token=3.0)
        assert (calibrate(made.request, made.calibration, found).input_tokens or 0) == (used or 0)
        assert (made.calibration.window, made.calibration.chars_per_token) == (
            1_000,
            chars_per_token,
        )

    @pytest.mark.parametrize("kind", ["input", "input_plus_output"])
    def test_with_a_bound_teaches_no_size(self, policy: Any, kind: Any) -> None:
        """A size that is only a bound says nothing of the characters of a token."""
        made = policy(8_000, overhead=2_000, output=500)
        made.calibration.learnt = False
        bound = TokenLimit(1_000, 1_001, kind, 501, 500, is_bound=True)

        assert calibrate(made.request, made.calibration, bound).input_tokens is None
        assert made.calibration.window == 1_000
        assert not made.calibration.learnt

    @pytest.mark.parametrize(
        ("content", "used", "learnt"),
        [
            ([{"type": "text", "text": "What is this? " * 200}, PICTURE], 5_600, True),
            ([{"type": "text", "text": "What is this? " * 200}, PICTURE], 6_000, False),
            *((TABLE, used, used <= 3_200) for used in (2_000, 3_200, 3_201)),
        ],
    )
    def test_is_believed_by_the_words_beside_an_image_and_of_blanks_from_two_and_a_half_a_token(
        self, options: Any, content: Any, used: int, learnt: bool
    ) -> None:
        messages: list[Any] = [{"role": "user", "content": content}]
        request = Request(format=OPENAI, original=messages, messages=messages)
        asked = Call(options(), request, Calibration())
        found = TokenLimit(limit=1_000, input_tokens=used, kind="input")
        calibrate(asked.request, asked.calibration, found)
        assert asked.calibration.learnt is learnt

    @pytest.mark.parametrize(
        ("limit", "kind", "target"),
        [
            (1_000, "input", 1_880),  # 97 % of 4,000 characters, 2,000 of them taken.
            (1_000, "input_plus_output", 0),
            (2_000, "input_plus_output", 3_820),
            (None, "input", 9_640),
        ],
    )
    def test_tells_what_the_messages_may_weigh(
        self, policy: Any, limit: int | None, kind: Any, target: int
    ) -> None:
        made = policy(8_000, overhead=2_000, output=500, window=3_000)
        made.limit = TokenLimit(limit=limit, kind=kind)
        assert made.target() == target

    @pytest.mark.parametrize(
        ("found", "target"),
        [
            (TokenLimit(limit=8_000, input_tokens=10_000, kind="input"), 5_760),
            (TokenLimit(limit=8_500, input_tokens=10_000, kind="input_plus_output"), 5_760),
            (TokenLimit(limit=8_000, kind="input"), None),
            (TokenLimit(input_tokens=10_000, kind="input"), None),
            # Less than what is beside them.
            (TokenLimit(limit=1_000, input_tokens=10_000, kind="input"), None),
            # By its numbers it fits.
            (TokenLimit(limit=20_000, input_tokens=10_000, kind="input"), None),
        ],
    )
    def test_by_whose_characters_it_fits_tells_the_proportion(
        self, policy: Any, found: TokenLimit, target: int | None
    ) -> None:
        made = policy(8_000, overhead=2_000, output=500)
        made.limit = found
        assert plan_of(made, 8_000, "token_limit").target == target


@pytest.mark.parametrize(
    ("size", "count", "large"),
    [(20_000, 10, True), (19_990, 10, False), (400, 400, True), (399, 399, False)],
)
def test_a_history_is_large_by_its_characters_or_its_messages(
    size: int, count: int, *, large: bool
) -> None:
    messages = [{"content": "x" * (size // count)}] * count
    assert is_large(messages) is large


class TestWhetherAPromptMayHaveBeenCut:
    """Decided without reading the messages, and never "no" where reading them would say "yes"."""

    @pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
    @pytest.mark.parametrize("repeats", [1, 40])
    def test_no_text_of_any_format_is_overlooked(self, dialect: Dialect, repeats: int) -> None:
        call = ("c1", "look", {"at": 'the "sky"\n' * 30})
        said = "A sentence that a user may say. " * 3
        messages = [
            *[dialect.user(said), dialect.answer(said)] * repeats,
            *dialect.calls([call]),
            *dialect.results([("c1", "look", said * 9)]),
        ]
        request = Request(format=dialect.format, original=messages, messages=messages)
        texts = sum(map(len, request.conversation.texts()))
        earlier: dict[int, tuple[int, int, int]] = {}
        assert texts < measure(messages, (), earlier) < texts * MOST_CHARACTERS
        assert measure(messages[:1], (), earlier) < texts  # The program drops the rest.
