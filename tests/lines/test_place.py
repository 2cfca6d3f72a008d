"""Quotes stand before the newest user message, or before the newest call, in all formats, and can
be taken out again.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.dialects import DIALECTS, Dialect, parts_of

from compacter.compaction.conversation import Conversation
from compacter.lines.asks import question
from compacter.lines.frame import STEP_NOTE, frame, is_quotes, place, strip
from compacter.lines.quotes import Quoter
from compacter.lines.talk import Talk
from compacter.messages.format import FORMATS, FormatName, get_format
from compacter.messages.parts import Part
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
    quoter = Quoter(Talk([Part("user", "text", "The heron nests by the weir.", "", 3)]), 1_000)
    quoter.answer(question([Part("user", "text", QUESTION, "", 9)]))
    found = quoter.quotation()
    assert found is not None
    return found.text


def content(message: Any) -> Any:
    return message["parts"] if "parts" in message else message["content"]


def with_quotes(
    messages: list[Any], name: FormatName, text: str, *, alternate: bool | None = None
) -> list[Any]:
    """The messages with quotes before the newest genuine user message, where there is one."""
    read = Conversation(messages, get_format(name))
    return messages if read.last_user is None else place(messages, read, text, alternate=alternate)


def history(name: FormatName) -> list[Any]:
    """A summary, an answer, the question, and the first step of the answer to it."""
    say = get_format(name).say
    return [
        say("user", compose("They met.")),
        say("assistant", "Yes."),
        copy.deepcopy(Q[name]),
        say("assistant", "Wait."),
    ]


@pytest.mark.parametrize("alternate", [None, True])
@pytest.mark.parametrize("name", FORMATS)
def test_quotes_are_the_first_text_of_the_message_only_where_roles_alternate(
    name: FormatName, quotes: str, *, alternate: bool | None
) -> None:
    before = history(name)

    placed = with_quotes(before, name, quotes, alternate=alternate)

    if alternate or name in ("anthropic", "gemini", "bedrock"):
        assert content(placed[2]) == [PARTS[name](quotes), PARTS[name](QUESTION)]
        assert [*placed[:2], *placed[3:]] == [*before[:2], *before[3:]]
    else:
        assert placed == [*before[:2], get_format(name).say("user", quotes), *before[2:]]


@pytest.mark.parametrize("name", FORMATS)
def test_the_list_that_came_in_is_not_changed(name: FormatName, quotes: str) -> None:
    before = history(name)

    with_quotes(before, name, quotes)

    assert before == history(name)


@pytest.mark.parametrize("name", FORMATS)
def test_quotes_are_known_again_and_taken_out(name: FormatName, quotes: str) -> None:
    before = history(name)
    format_ = get_format(name)

    taken = strip(with_quotes(before, name, quotes), format_)

    texts = [[entry.text for entry in parts_of(format_, message)] for message in taken]
    assert texts == [[entry.text for entry in parts_of(format_, message)] for message in before]


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

    (left,) = strip(with_quotes([copied], name, quotes), form)

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


# -- quotes for a step -----------------------------------------------------------------------------

FOR_STEP = frame("Tool look, message 3: valve torque 41 newton metres\n", STEP_NOTE)
CALL = ("c1", "look", {"at": "sky"})
RESULT = ("c1", "look", "blue")


def run(dialect: Dialect, *, steps: int = 2, thinks: tuple[int, ...] = ()) -> list[Any]:
    """A user's order, and steps of the model's; in some it thinks."""
    messages = [dialect.user("Read all of the pages.")]
    for number in range(steps):
        calls = dialect.calls([(f"c{number}", "look", {"at": str(number)})])
        if number in thinks:
            *thought, answer = dialect.thought("hm", "x")
            blocks = dialect.format.blocks(answer)[:1]
            key = "parts" if "parts" in calls[0] else "content"
            if dialect.name == "openai":
                calls = [calls[0] | {"reasoning_content": "hm"}]
            elif dialect.name != "responses":
                calls = [calls[0] | {key: [*blocks, *calls[0][key]]}]
            calls = [*thought, *calls]
        messages += [*calls, *dialect.results([(f"c{number}", "look", "blue")])]
    return messages


@pytest.mark.parametrize("name", FORMATS)
def test_quotes_for_a_step_stand_before_the_newest_call(name: FormatName) -> None:
    """The program's newest message stands last, untouched, and pairs of calls and results stay."""
    dialect = DIALECTS[name]
    messages = run(dialect)

    placed = with_quotes(messages, name, FOR_STEP)

    assert placed[-2:] == messages[-2:]
    before = placed[-3]
    assert is_quotes(parts_of(dialect.format, before)[-1].text)
    if name in ("openai", "responses"):
        assert placed == [*messages[:-2], dialect.format.say("user", FOR_STEP), *messages[-2:]]
    else:
        assert content(before)[:-1] == content(messages[-3])
        assert placed[:-3] == messages[:-3]
    assert not dialect.broken(placed)
    assert strip(placed, dialect.format) == messages


@pytest.mark.parametrize("name", FORMATS)
def test_quotes_for_question_and_step_are_taken_out_together(name: FormatName, quotes: str) -> None:
    dialect = DIALECTS[name]
    for steps in (1, 3):
        messages = run(dialect, steps=steps)

        placed = with_quotes(messages, name, f"{quotes}\n{FOR_STEP}")

        texts = [part.text for message in placed for part in parts_of(dialect.format, message)]
        assert texts.index(quotes) < texts.index("Read all of the pages.") < texts.index(FOR_STEP)
        assert strip(placed, dialect.format) == messages


@pytest.mark.parametrize("thinks", [(0, 1), (0,), (1,)])
@pytest.mark.parametrize("name", FORMATS)
def test_what_follows_quotes_for_a_step_begins_with_the_models_thinking(
    name: FormatName, thinks: tuple[int, ...]
) -> None:
    """With Anthropic, a text of the user's begins a turn, and that has to begin with thinking."""
    dialect = DIALECTS[name]
    messages = run(dialect, thinks=thinks)

    placed = with_quotes(messages, name, FOR_STEP)

    reads = dialect.format.parts_of_each(placed)
    at = next(
        at
        for at, read in enumerate(reads)
        if is_quotes(read.readable[-1].text if read.readable else "")
    )
    assert reads[at + 1].every[0].kind == "reasoning" or name == "openai"
    assert any(part.kind == "reasoning" for part in reads[at + 1].every)
    assert placed[-1] == messages[-1]
    assert strip(placed, dialect.format) == messages


@pytest.mark.parametrize("name", FORMATS)
def test_calls_of_one_answer_stay_together(name: FormatName) -> None:
    """A text of the model's and its calls, in one message or in two, are not parted."""
    dialect = DIALECTS[name]
    calls = [CALL, ("c2", "look", {"at": "sea"})]
    results = dialect.results([RESULT, ("c2", "look", "grey")])
    step = [dialect.answer("I look."), *dialect.calls(calls), *results]
    messages = [*run(dialect), *step]

    placed = with_quotes(messages, name, FOR_STEP)

    assert placed[-len(step) :] == step
    assert strip(placed, dialect.format) == messages


@pytest.mark.parametrize("name", FORMATS)
def test_a_user_who_sends_quotes_for_a_step_to_the_letter_keeps_them(name: FormatName) -> None:
    dialect = DIALECTS[name]
    copied = dialect.user(FOR_STEP)
    messages = [dialect.user("Look."), dialect.answer("Blue."), copied, dialect.answer("I see.")]

    assert strip(messages, dialect.format) == messages
    assert strip([*messages, copied], dialect.format) == [*messages, copied]
