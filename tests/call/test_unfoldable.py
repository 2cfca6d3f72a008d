"""Messages that may not be compacted and are too long: retrieved text is shortened where that is
allowed, else a note says why.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from tests.conversations import bot, user
from tests.dialects import DIALECTS, Dialect, parts_of

from compacter import Compacter
from compacter.call.incompressible import advice, shorten_last_message
from compacter.call.request import Request
from compacter.compaction.calibration import Calibration
from compacter.errors import ConfigurationError
from compacter.events import CompactionEvent, Event, MessageShortened
from compacter.messages.format import FORMATS, MessageFormat, get_format
from compacter.messages.parts import Part
from compacter.summary.message import FRAME
from compacter.testing import ScriptedModel, TokenLimitError, token_limit_error

OPENAI = get_format("openai")
OPENAI_DIALECT = DIALECTS["openai"]
MARKS = ("<context>", "</context>")
PAGES = "".join(f"Page {n} tells of harbour {n} and of its ships. " for n in range(400))
ASKED = f"Answer by this:\n<context>{PAGES}</context>\nWhich harbour is the oldest?"


def shorten_message(form: MessageFormat, message: Any, how: Any, excess: int) -> Any:
    """The only message of a request, which is too large by so many characters, as it is sent."""
    request = Request(format=form, original=[message], messages=[message])
    shorter = shorten_last_message(request, how, request.size - excess)
    return message if shorter is None else shorter.shortened


def talk(turns: int) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [
        {"role": roles[n % 2], "content": f"Message {n} says a little about the sea. " * 3}
        for n in range(turns)
    ]


def ask(
    asked: str = ASKED, turns: int = 0, window: int = 1_000, **options: Any
) -> tuple[ScriptedModel, list[Event], list[Any]]:
    model = ScriptedModel(window=window)
    told = list[Event]()
    history = [*talk(turns), user(asked)]
    options.setdefault("summarizer", "extractive")
    Compacter(on_event=told.append, **options).wrap(model.completion)("m", history)
    return model, told, history


class TestRetrievedText:
    def test_between_marks_is_shortened_with_a_receipt(self) -> None:
        model, told, history = ask(retrieved=MARKS)
        (sent,) = model.requests[-1].messages
        assert sent["content"].startswith("Answer by this:\n<context>Page 0 tells of harbour 0")
        assert sent["content"].endswith("</context>\nWhich harbour is the oldest?")
        assert "characters left out" in sent["content"]
        assert history[-1]["content"] == ASKED
        assert [type(event) for event in told] == [MessageShortened]
        assert model.rejected == 1
        assert model.requests[-1].tokens > 850
        event = told[0]
        assert isinstance(event, MessageShortened)
        assert (event.before, event.after) == (
            len(ASKED),
            len(model.requests[-1].messages[0]["content"]),
        )
        assert (event.limit, event.attempt, event.model) == (1_000, 1, "m")
        assert "from 19,044 to 3," in str(event)

    def test_by_a_function_of_ones_own(self) -> None:
        asked: list[int] = []

        def first(text: str, characters: int) -> str:
            asked.append(characters)
            return text[:characters]

        model, _, _ = ask(retrieved=first)
        (sent,) = model.requests[-1].messages
        assert len(sent["content"]) <= 4_000
        assert sent["content"].endswith(
            f"[shortened from {len(ASKED):,} to {asked[-1]:,} characters]"
        )

    def test_a_long_history_is_folded_too(self) -> None:
        model, told, _ = ask(turns=60, retrieved=MARKS)
        assert [type(event).__name__ for event in told] == [
            "MessageShortened",
            "CompactionStarted",
            "CompactionEvent",
        ]
        assert "What was said" not in model.requests[-1].messages[-1]["content"]
        assert model.rejected == 1
        assert isinstance(told[0], MessageShortened)
        assert (told[0].before, told[0].attempt) == (len(ASKED), 1)
        folded = told[-1]
        assert isinstance(folded, CompactionEvent)
        assert folded.messages_after > 2

    def test_a_short_last_message_beside_a_long_history_stays(self) -> None:
        model, told, history = ask(
            "<context>One harbour.</context> Which?", turns=60, retrieved=MARKS
        )
        assert model.requests[-1].messages[-1] == history[-1]
        assert "MessageShortened" not in [type(event).__name__ for event in told]

    def test_where_the_provider_says_no_numbers_it_is_halved(self) -> None:
        sizes: list[int] = []

        def completion(messages: list[Any]) -> str:
            sizes.append(len(messages[-1]["content"]))
            if sizes[-1] > 6_000:
                raise ValueError("This request is too long: context length exceeded")
            return "done"

        call = Compacter(summarizer="extractive", retrieved=MARKS).wrap(completion)
        assert call([user(ASKED)]) == "done"
        assert len(sizes) == 3
        assert sizes == sorted(sizes, reverse=True)

    @pytest.mark.parametrize(
        "asked", [PAGES, f"<context>{PAGES}", f"{PAGES}</context>", f"</context>{PAGES}<context>"]
    )
    def test_without_both_marks_nothing_is_changed(self, asked: str) -> None:
        with pytest.raises(TokenLimitError):
            ask(asked, retrieved=MARKS)

    @pytest.mark.parametrize("answer", [PAGES * 2, "", ASKED])
    def test_a_function_that_does_not_shorten_ends_soon(self, answer: str) -> None:
        if answer:
            with pytest.raises(TokenLimitError):
                ask(retrieved=lambda text, characters: answer)
        else:
            model, _, _ = ask(retrieved=lambda text, characters: answer)
            assert "[shortened from" in model.requests[-1].messages[0]["content"]

    @pytest.mark.parametrize("name", FORMATS)
    def test_in_every_format(self, name: str) -> None:
        form = get_format(name)
        message = form.say("user", ASKED)
        shorter = shorten_message(form, message, MARKS, 10_000)
        assert form.size(message) - form.size(shorter) == pytest.approx(10_000, abs=200)
        assert "oldest?" in str(shorter)

    def test_many_marks_take_linear_time(self) -> None:
        form = get_format("openai")
        hostile = "<context>" * 200_000
        assert shorten_message(form, form.say("user", hostile), MARKS, 1_000) == form.say(
            "user", hostile
        )

    @pytest.mark.parametrize("value", ["<context>", ("<a>",), ("", "</a>"), ("a", 3), 7, str])
    def test_what_is_neither_marks_nor_function_is_refused(self, value: Any) -> None:
        with pytest.raises(ConfigurationError, match=r"retrieved: takes two marks"):
            Compacter(retrieved=value)


MIXED = [dialect for dialect in DIALECTS.values() if dialect.mixed is not None]


@pytest.mark.parametrize("dialect", MIXED, ids=lambda dialect: dialect.name)
class TestAToolResultBesideTheUsersWords:
    """As agents send it: the results of a step and a reminder, in one message of the user."""

    REMINDER = "Remember: say which harbour is the oldest."

    def ask(
        self,
        dialect: Dialect,
        turns: int = 0,
        pages: str = PAGES,
        *,
        asked: str = REMINDER,
        numbers: bool = True,
        **options: Any,
    ) -> tuple[list[list[Part]], list[type[Event]]]:
        """Ask a model with a window of 1,000 tokens; return the parts of what was sent at last, and
        the events.
        """
        assert dialect.mixed is not None
        form = dialect.format
        said = [text["content"] for text in talk(turns)]
        history = [
            *((dialect.answer if n % 2 else dialect.user)(text) for n, text in enumerate(said)),
            dialect.user("Look at the pages."),
            *dialect.calls([("c1", "read", {"path": "pages"})]),
            dialect.mixed([("c1", "read", pages)], asked),
        ]
        before = json.dumps(history)
        requests = list[list[Any]]()
        told = list[Event]()

        def complete(model: str, messages: list[Any]) -> Any:
            requests.append(messages)
            tokens = sum(map(form.size, messages)) // 4
            if tokens > 1_000:
                raise token_limit_error(
                    "openai" if numbers else "bedrock", limit=1_000, input_tokens=tokens
                )
            return {"choices": [{"message": bot("ok"), "finish_reason": "stop"}]}

        options = {"summarizer": "extractive", "retrieved": MARKS, **options}
        compacter = Compacter(on_event=told.append, **options)
        try:
            compacter.wrap(complete, wire_format=dialect.name)("m", history)
        finally:
            assert json.dumps(history) == before
        assert not dialect.broken(requests[-1])
        return [list(parts_of(form, message)) for message in requests[-1]], [
            type(event) for event in told
        ]

    @pytest.mark.parametrize("turns", [0, 20])
    def test_is_shortened_where_it_is_too_long_by_itself(
        self, dialect: Dialect, turns: int
    ) -> None:
        sent, told = self.ask(dialect, turns)
        result, text = (part.text for part in sent[-1])
        assert result.startswith("Page 0 tells")
        assert "characters left out" in result
        assert "Page 399 tells" in result
        assert text == self.REMINDER
        assert MessageShortened in told
        assert 1_800 < len(result) < 4_000

    def test_is_shortened_too_where_the_provider_says_no_numbers(self, dialect: Dialect) -> None:
        sent, told = self.ask(dialect, pages=PAGES[:5_000], numbers=False)
        assert told == [MessageShortened]
        assert sent[-1][1].text == self.REMINDER

    # The last user message is sent unchanged, unless an option names the text that may be left out.
    def test_stays_whole_without_the_option(self, dialect: Dialect) -> None:
        with pytest.raises(TokenLimitError) as caught:
            self.ask(dialect, retrieved=None)
        assert "the results of tools in it may be shortened" in caught.value.__notes__[0]

    def test_stays_whole_in_a_pinned_message(self, dialect: Dialect) -> None:
        with pytest.raises(TokenLimitError):
            self.ask(dialect, pin=lambda message: self.REMINDER in str(message))

    def test_is_shortened_after_the_retrieved_text_beside_it(self, dialect: Dialect) -> None:
        sent, told = self.ask(dialect, asked=ASKED)
        assert all("characters left out" in part.text for part in sent[-1])
        assert sent[-1][1].text.endswith("</context>\nWhich harbour is the oldest?")
        assert told == [MessageShortened] * 2


LOOK = {"type": "function", "function": {"name": "look", "description": PAGES, "parameters": {}}}
READ = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    ],
}


class TestTheNoteOnGivingUp:
    def note(self, messages: list[Any], **options: Any) -> str:
        call = Compacter(summarizer="extractive", **options.pop("settings", {})).wrap(
            ScriptedModel(window=500).completion
        )
        with pytest.raises(TokenLimitError) as refused:
            call("m", messages, **options)
        return str(refused.value.__notes__[-1])

    def test_names_the_message_its_size_and_what_helps(self) -> None:
        note = self.note([*talk(8), user(ASKED)])
        assert ", the last user message: 19,044 " in note
        assert "characters, about 4," in note
        assert "tokens of 500 allowed" in note
        assert 'retrieved=("<context>", "</context>")' in note

    @pytest.mark.parametrize(
        ("messages", "options", "named"),
        [
            ([{"role": "system", "content": PAGES}, *talk(5)], {}, ["message 1 of ", "system"]),
            (
                [*talk(5), bot(PAGES), *talk(1)],
                {"settings": {"pin": lambda message: len(message["content"]) > 1_000}},
                ["remove its pin"],
            ),
            (talk(3), {"tools": [LOOK]}, ["send fewer tools"]),
            (
                [*talk(3), READ, {"role": "tool", "tool_call_id": "1", "content": PAGES}],
                {"settings": {"max_retries": 0}},
                ["message 5 of 5, a tool result: ", "have the tool return less"],
            ),
            (
                talk(61),
                {"settings": {"max_retries": 0}},
                [", which may be compacted: ", "a larger max_retries"],
            ),
        ],
        ids=["system prompt", "pin", "tools", "tool result", "rounds"],
    )
    def test_names_what_is_too_large(
        self, messages: list[Any], options: dict[str, Any], named: list[str]
    ) -> None:
        note = self.note(messages, **options)
        assert [text for text in named if text not in note] == []

    def test_no_text_of_a_message_is_in_it(self) -> None:
        assert "harbour" not in self.note([user(ASKED)])


def first(text: str, characters: int) -> str:
    """Shortens a retrieved text to its beginning."""
    return text[:characters]


def beside(others: int, size: int = 6_000, **asked: Any) -> Request:
    """A request with so many characters before a last user message of so many."""
    history = [
        {"role": "assistant", "content": "o" * others},
        {"role": "user", "content": "p" * size},
    ]
    return Request(format=OPENAI, original=history, messages=history, **asked)


class TestHowMuchIsKept:
    """Of a last user message of 6,000 characters that is one retrieved text."""

    @pytest.mark.parametrize(
        ("others", "target", "kept"),
        [
            (3_000, 8_000, 5_000),  # What the other messages leave of the target,
            (3_000, 4_000, 2_000),  # but half of it in any case.
            (9_000, 8_000, 4_000),
            (3_000, 8_999, 5_999),
            (3_000, 9_000, None),
            (1_000, 9_000, None),
            (3_000, None, 3_000),  # Half of it where no limit is known,
            (6_000, None, 3_000),
            (6_001, None, None),  # unless the others are more.
        ],
    )
    def test_is_what_the_other_messages_leave(
        self, others: int, target: int | None, kept: int | None
    ) -> None:
        shorter = shorten_last_message(beside(others), first, target)
        assert (shorter is None) is (kept is None)
        if shorter is not None and kept is not None:
            assert kept - 50 <= shorter.size - others <= kept
            assert shorter.shortened is not None
            assert shorter.size == others + OPENAI.size(shorter.shortened)

    def test_is_halved_again_where_no_limit_is_known_until_it_is_less_than_the_others(self) -> None:
        once = shorten_last_message(beside(2_000), first, None)
        assert once is not None
        twice = shorten_last_message(once, first, None)
        assert twice is not None
        assert 3_450 <= twice.size <= 3_500
        assert shorten_last_message(twice, first, None) is None

    @pytest.mark.parametrize("how", [MARKS, first])
    def test_is_all_of_a_tool_result_in_the_same_message(self, how: Any) -> None:
        retrieved = f"<context>{PAGES}</context>"
        result = {"type": "tool_result", "tool_use_id": "1", "content": retrieved}
        asked = {"role": "user", "content": [result, {"type": "text", "text": retrieved}]}
        short = shorten_message(get_format("anthropic"), asked, how, 10_000)["content"]
        assert short[0] == result
        assert len(retrieved) - 10_100 < len(short[1]["text"]) <= len(retrieved) - 10_000


class TestTheAdvice:
    """Of a request with 900 characters in the assistant's message and 200 in the user's."""

    @pytest.mark.parametrize(
        ("asked", "limit", "part", "size"),
        [
            ({}, 1_000, "message 1 of 2, which may be compacted", 900),
            ({"overhead": 900}, None, "message 1 of 2, which may be compacted", 900),
            ({"overhead": 901}, None, "tools and other options beside the messages", 901),
            ({"saved": 100}, None, "message 1 of 2, which may be compacted", 900),
        ],
    )
    def test_names_the_largest_part(
        self, asked: dict[str, int], limit: int | None, part: str, size: int
    ) -> None:
        said = advice(beside(900, 200, **asked), Calibration(), limit)
        allowed = " of 1,000 allowed" if limit else ""
        assert said.startswith(
            f" The largest part is {part}: {size} characters, about 225 tokens{allowed}. "
            f"What helps: "
        )
        assert said.endswith("; or a larger window.")

    @pytest.mark.parametrize(
        ("room", "named"),
        [(-FRAME, False), (1 - FRAME, True), (0, True), (6_006, True), (6_007, False)],
    )
    def test_names_the_rules_where_what_must_stay_leaves_room_but_not_for_them(
        self, room: int, named: bool
    ) -> None:
        """Room beside the frame of a summary; without rules the request would need neither."""
        asked = beside(900, 200, rules=("r" * 6_000,))  # 6,007 characters as a line of a summary.
        kept = asked.conversation.size - asked.conversation.free + FRAME
        said = advice(replace(asked, overhead=40_000 - kept - room), Calibration(), 10_000)
        assert said.startswith(" The declared rules take 6,007 characters, and") is named
        assert (f"there is room for {max(0, room):,}. " in said) is named
