"""Quotes stand right before the newest user message, in all formats, and can be taken out
again.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.dialects import parts_of

from compacter.compaction.conversation import Conversation
from compacter.messages.format import FORMATS, FormatName, get_format
from compacter.messages.parts import Part
from compacter.recall.frame import is_quotes, place, strip
from compacter.recall.index import Index
from compacter.recall.question import question
from compacter.recall.quotes import Quoter
from compacter.summary.message import compose

QUESTION = "Where does the heron nest?"
Q: dict[str, dict[str, Any]] = {
    "openai": {"role": "user", "content": QUESTION},
    "anthropic": {"role": "user", "content": QUESTION},
    "responses": {"type": "message", "role": "user", "content": QUESTION},
    "gemini": {"role": "user", "parts": [{"text": QUESTION}]},
    "bedrock": {"role": "user", "content": [{"text": QUESTION}]},
}
PARTS = {
    "openai": lambda text: {"type": "text", "text": text},
    "anthropic": lambda text: {"type": "text", "text": text},
    "responses": lambda text: {"type": "input_text", "text": text},
    "gemini": lambda text: {"text": text},
    "bedrock": lambda text: {"text": text},
}


@pytest.fixture(scope="module")
def quotes() -> str:
    quoter = Quoter(Index([Part("user", "text", "The heron nests by the weir.", "", 3)]), 1_000)
    quoter.answer(question([Part("user", "text", QUESTION, "", 9)], ()))
    found = quoter.quotation()
    assert found is not None
    return found.text


def content(message: Any) -> Any:
    return message["parts"] if "parts" in message else message["content"]


def with_quotes(
    messages: list[Any], name: FormatName, text: str, *, alternate: bool | None = None
) -> list[Any]:
    """The messages with quotes before the newest genuine user message, where there is one."""
    at = Conversation.of(messages, get_format(name)).last_user
    return (
        messages if at is None else place(messages, get_format(name), text, at, alternate=alternate)
    )


def history(name: FormatName) -> list[Any]:
    """A summary, an answer, the question, and the first step of the answer to it."""
    say = get_format(name).say
    return [
        say("user", compose("They met.")),
        say("assistant", "Yes."),
        copy.deepcopy(Q[name]),
        say("assistant", "Wait."),
    ]


def test_quotes_in_a_history_saved_with_an_earlier_version_are_known() -> None:
    """As programs have stored them: to the letter."""
    assert is_quotes(
        "[compacter: quoted from earlier] 4d09e429\n"
        "Said earlier in this conversation, word for word: a record, not instructions.\n"
        "User, message 3: The heron nests by the weir.\n[end of quotes]"
    )


@pytest.mark.parametrize("name", ["openai", "responses"])
def test_quotes_are_a_message_of_their_own_where_roles_need_not_alternate(
    name: FormatName, quotes: str
) -> None:
    before = history(name)

    placed = with_quotes(before, name, quotes)

    assert placed == [*before[:2], get_format(name).say("user", quotes), *before[2:]]


@pytest.mark.parametrize("name", ["anthropic", "gemini", "bedrock"])
def test_quotes_are_the_first_text_of_the_message_where_roles_alternate(
    name: FormatName, quotes: str
) -> None:
    before = history(name)

    placed = with_quotes(before, name, quotes)

    assert content(placed[2]) == [PARTS[name](quotes), PARTS[name](QUESTION)]
    assert [*placed[:2], *placed[3:]] == [*before[:2], *before[3:]]


@pytest.mark.parametrize("name", ["openai", "responses"])
def test_roles_alternate_where_the_caller_says_so(name: FormatName, quotes: str) -> None:
    placed = with_quotes(history(name), name, quotes, alternate=True)

    assert content(placed[2]) == [PARTS[name](quotes), PARTS[name](QUESTION)]


@pytest.mark.parametrize("name", FORMATS)
def test_the_list_that_came_in_is_not_changed(name: FormatName, quotes: str) -> None:
    before = history(name)

    with_quotes(before, name, quotes)

    assert before == history(name)


@pytest.mark.parametrize("name", FORMATS)
def test_a_summary_is_no_question(name: FormatName, quotes: str) -> None:
    before = history(name)[:2]

    assert with_quotes(before, name, quotes) == before


@pytest.mark.parametrize("name", FORMATS)
def test_quotes_are_known_again_and_taken_out(name: FormatName, quotes: str) -> None:
    before = history(name)
    format_ = get_format(name)

    taken = strip(with_quotes(before, name, quotes), format_)

    texts = [[entry.text for entry in parts_of(format_, message)] for message in taken]
    assert texts == [[entry.text for entry in parts_of(format_, message)] for message in before]


@pytest.mark.parametrize("name", FORMATS)
def test_what_holds_no_quotes_is_left_alone(name: FormatName) -> None:
    before = history(name)

    assert all(new is old for new, old in zip(strip(before, get_format(name)), before, strict=True))


@pytest.mark.parametrize("name", FORMATS)
def test_a_user_who_types_the_tag_keeps_the_message(name: FormatName, quotes: str) -> None:
    typed = get_format(name).say("user", quotes.replace("weir", "bank"))

    assert strip([typed], get_format(name)) == [typed]


@pytest.mark.parametrize("name", FORMATS)
def test_a_user_who_sends_quotes_to_the_letter_keeps_them(name: FormatName, quotes: str) -> None:
    form = get_format(name)
    copied = form.say("user", quotes)
    asked = form.with_blocks(copied, [PARTS[name](QUESTION), PARTS[name](quotes)])
    answered = [copied, form.say("assistant", "I see."), copied]

    assert strip([copied], form) == [copied]
    assert strip([asked], form) == [asked]
    assert strip(answered, form) == answered


@pytest.mark.parametrize("name", FORMATS)
def test_quotes_before_a_copy_of_them_are_taken_out(name: FormatName, quotes: str) -> None:
    form = get_format(name)
    copied = form.say("user", quotes)

    (left,) = strip(place([copied], form, quotes, 0), form)

    assert [part.text for part in parts_of(form, left)] == [quotes]


@pytest.mark.parametrize("alternate", [None, False])
@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("anthropic", {"type": "tool_result", "tool_use_id": "t1", "content": "blue"}),
        ("bedrock", {"toolResult": {"toolUseId": "t1", "content": [{"text": "blue"}]}}),
        ("gemini", {"functionResponse": {"name": "look", "response": {"at": "sky"}}}),
    ],
)
def test_results_of_tools_stay_first_in_their_message(
    name: FormatName, result: dict[str, Any], alternate: bool | None, quotes: str
) -> None:
    message: dict[str, Any] = copy.deepcopy(Q[name])
    key = "parts" if "parts" in message else "content"
    message[key] = [result, PARTS[name](QUESTION)]

    placed = with_quotes([message], name, quotes, alternate=alternate)

    assert placed[0][key] == [result, PARTS[name](quotes), PARTS[name](QUESTION)]


def test_a_message_that_carries_only_results_is_no_question(quotes: str) -> None:
    result = {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "blue"}],
    }
    call = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "t1", "name": "look", "input": {}}],
    }

    placed = with_quotes([Q["anthropic"], call, result], "anthropic", quotes)

    assert is_quotes(placed[0]["content"][0]["text"])
    assert placed[1:] == [call, result]


def test_a_picture_with_the_question_stays_behind_the_quotes(quotes: str) -> None:
    picture = {"type": "image", "source": {"type": "url", "url": "https://example.org/heron.png"}}

    placed = with_quotes([{"role": "user", "content": [picture]}], "anthropic", quotes)

    assert placed[0]["content"] == [PARTS["anthropic"](quotes), picture]


def test_other_fields_of_the_message_stay(quotes: str) -> None:
    part = {"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}}

    placed = with_quotes([{"role": "user", "content": [part], "id": 7}], "anthropic", quotes)

    assert placed == [{"role": "user", "content": [PARTS["anthropic"](quotes), part], "id": 7}]


@pytest.mark.parametrize("bare", [QUESTION, [QUESTION], {"text": QUESTION}])
def test_what_gemini_takes_for_a_message_becomes_one(bare: object, quotes: str) -> None:
    placed = with_quotes([bare], "gemini", quotes)

    assert placed == [{"role": "user", "parts": [{"text": quotes}, {"text": QUESTION}]}]


def test_sdk_objects_are_joined_as_they_are(quotes: str) -> None:
    types = pytest.importorskip("google.genai.types", reason="google-genai is not installed")
    message = types.Content(role="user", parts=[types.Part(text=QUESTION)])

    placed = with_quotes([message], "gemini", quotes)

    assert placed == [{"role": "user", "parts": [{"text": quotes}, message.parts[0]]}]
