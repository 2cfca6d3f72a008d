"""The last message of a request is the program's own newest one (the manual's promises), in all
formats, whatever was compacted and quoted.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects import DIALECTS, Dialect
from tests.effort import times

from compacter import Compacter
from compacter.lines.frame import STEP_NOTE, is_quotes
from compacter.messages.format import FORMATS, FormatName
from compacter.testing import token_limit_error

PLACES = ("weir", "quarry", "orchard", "jetty", "tannery", "belfry")
MESSAGES = {"gemini": "contents", "responses": "input"}
CLASSES = {
    "openai": ("openai.types.chat", "ChatCompletionMessage"),
    "responses": ("openai.types.responses", "ResponseFunctionToolCall"),
    "gemini": ("google.genai.types", "Content"),
}
FILLING = "They walked on along the towpath and spoke of the weather. " * 3

events = st.lists(
    st.tuples(
        st.sampled_from(["asks", "tells", "steps", "steps", "mixed"]), st.sampled_from(PLACES)
    ),
    min_size=1,
    max_size=12,
)


def turns(dialect: Dialect, event: tuple[str, str], number: int) -> list[Any]:
    """The messages of one event."""
    kind, place = event
    if kind == "asks":
        return [dialect.user(f"Where does the heron of the {place} nest?")]
    if kind == "tells":
        told = dialect.user(f"The heron of the {place} nests in alder-{number}. {FILLING}")
        return [told, dialect.answer(f"Noted. {FILLING}")]
    name = f"c{number}"
    calls = dialect.calls([(name, "look", {"at": f"mile {number}"})])
    result = (name, "look", f"{FILLING}\nnext: visit the heron of the {place}")
    if kind == "mixed" and dialect.mixed:
        return [*calls, dialect.mixed([result], f"And where is the heron of the {place}?")]
    return [*calls, *dialect.results([result])]


def as_object(message: Any, name: FormatName) -> Any:
    """An assistant message as its SDK returns it, where its class can be had."""
    if name not in CLASSES or message.get("role") in ("user", "tool") or "output" in message:
        return message
    module, kind = CLASSES[name]
    types = pytest.importorskip(module, reason="an SDK is not installed")
    if name == "responses" and message["type"] != "function_call":
        return message
    return getattr(types, kind).model_validate(message)


def send(name: FormatName, happens: list[tuple[str, str]], *, objects: bool) -> list[list[Any]]:
    """Play a conversation, and check each request that is sent; return them."""
    dialect = DIALECTS[name]
    form = dialect.format
    sent: list[Any] = []

    def completion(**given: Any) -> Any:
        messages = given[MESSAGES.get(name, "messages")]
        size = sum(map(form.size, messages)) // 4
        if size > 500:
            raise token_limit_error(limit=500, input_tokens=size)
        sent[:] = messages
        return {"choices": [{"message": {"role": "assistant", "content": "Going on."}}]}

    call = Compacter(summarizer="extractive").wrap(completion, wire_format=name)
    history: list[Any] = []
    requests: list[list[Any]] = []
    for number, event in enumerate(happens):
        new = turns(dialect, event, number)
        history += [as_object(message, name) for message in new] if objects else new
        before = copy.deepcopy(history)
        call(**{MESSAGES.get(name, "messages"): history})
        assert history == before
        assert not form.outline(sent).broken
        newest = history[-1]
        last = sent[-1]
        if last is not newest:
            # With our part at its beginning, behind results, and all of its own behind that.
            own = form.blocks(newest)
            left = [part for part in form.blocks(last) if not is_quotes(str(part.get("text")))]
            assert form.alternates
            assert form.speaker(newest) == "user"
            assert left == [part if isinstance(part, dict) else {"text": part} for part in own]
            assert not is_quotes(str(form.blocks(last)[-1].get("text")))
        requests.append(list(sent))
        if event[0] == "asks":
            history.append(dialect.answer(f"I do not know. {FILLING}"))
    return requests


@settings(max_examples=times(15, long=120), deadline=None)
@given(happens=events, name=st.sampled_from(FORMATS), objects=st.booleans())
def test_the_programs_newest_message_stands_last(
    happens: list[tuple[str, str]], name: FormatName, *, objects: bool
) -> None:
    """No message of ours follows the program's newest one."""
    send(name, happens, objects=objects)


@pytest.mark.parametrize("objects", [False, True])
@pytest.mark.parametrize("name", FORMATS)
def test_it_does_where_question_and_step_get_quotes(name: FormatName, *, objects: bool) -> None:
    """Some requests of this conversation have quotes for its question, and some for a step."""
    tells = [("tells", place) for place in PLACES]
    steps = [("steps", PLACES[0]), ("steps", PLACES[1])]
    requests = send(name, [*tells, ("asks", PLACES[0]), *tells, *steps], objects=objects)

    texts = [json.dumps(request, default=str) for request in requests]
    assert any("word for word" in text and STEP_NOTE not in text for text in texts)
    assert any(STEP_NOTE in text for text in texts)
