"""``focus``: what a summary must not lose, in the caller's words: one more line of its prompt."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests import conversations
from tests.dialects import DIALECTS, retold

from compacter import Compacter, History
from compacter.errors import ConfigurationError
from compacter.summary import prompt
from compacter.testing import ScriptedModel, ScriptedSummarizer

FOCUS = "the decisions about the API"
LINE = f"\nAbove all, lose nothing about: {FOCUS}"


def asked(summarizer: ScriptedSummarizer) -> str:
    return str(summarizer.requests[-1].messages[-1]["content"])


def summarizer() -> ScriptedSummarizer:
    return ScriptedSummarizer("The API has versions.")


@pytest.mark.parametrize(
    "how",
    [
        {"short": True},
        {"prior": "An earlier one."},
        {"template": "Sum up {history} in French."},
        {"template": "Sum up."},
    ],
)
def test_it_is_the_last_line_of_every_prompt(how: dict[str, Any]) -> None:
    without = prompt.build(["user: Hello."], max_tokens=500, **how)
    with_focus = prompt.build(["user: Hello."], max_tokens=500, focus=FOCUS, **how)
    assert with_focus == without + LINE


def test_it_stays_one_line_whatever_is_in_it() -> None:
    text = prompt.build(None, max_tokens=500, focus="the {words}\n</transcript>\nof %s")
    assert text.endswith("\nAbove all, lose nothing about: the {words} </transcript> of %s")


@pytest.mark.parametrize("name", list(DIALECTS))
def test_it_reaches_the_summary_of_a_call_in_each_format(name: str) -> None:
    one = summarizer()
    talk = retold(name, conversations.talk())
    result = Compacter(summarizer=one, focus=FOCUS).compact(talk, wire_format=name)
    assert result.changed
    assert asked(one).endswith(LINE)


def test_the_wrapped_call_is_asked_with_it_too() -> None:
    model = ScriptedModel(window=700)
    chat = Compacter(focus=FOCUS).wrap(model.completion)
    chat(model="m", messages=conversations.talk())
    prompts = [str(request.messages[-1]["content"]) for request in model.requests]
    assert any(text.endswith(LINE) for text in prompts)


def test_one_of_a_compaction_wins_over_the_option() -> None:
    one = summarizer()
    compacter = Compacter(summarizer=one, focus="the weather")
    compacter.compact(conversations.talk(), focus=FOCUS)
    assert asked(one).endswith(LINE)
    asyncio.run(compacter.acompact(conversations.talk(), focus=FOCUS))
    assert asked(one).endswith(LINE)
    History(conversations.talk(), compacter=compacter).compact(focus=FOCUS)
    assert asked(one).endswith(LINE)
    compacter.compact(conversations.talk())
    assert asked(one).endswith("about: the weather")


def test_it_is_redacted_like_all_text_for_a_summarizer() -> None:
    one = summarizer()
    key = "sk-proj-" + "a1B2" * 10
    Compacter(summarizer=one, focus=f"the key {key}", redact="secrets").compact(
        conversations.talk()
    )
    assert "Above all, lose nothing about: the key" in asked(one)
    assert key not in asked(one)


def test_rules_stay_beside_it() -> None:
    compacter = Compacter(summarizer=summarizer(), rules=["Answer in French."])
    result = compacter.compact(conversations.talk(), focus=FOCUS)
    assert result.event
    assert "Rule: Answer in French." in str(result.messages[1])


def test_another_one_still_uses_the_summaries_of_before() -> None:
    model = ScriptedModel(window=700)
    compacter = Compacter()
    talk = conversations.talk()
    compacter.wrap(model.completion)(model="m", messages=talk)
    count = len(model.requests)
    compacter.replace(focus=FOCUS).wrap(model.completion)(model="m", messages=talk)
    assert len(model.requests) == count + 1


@pytest.mark.parametrize("bad", [3, ["a"]])
def test_only_a_text_is_taken(bad: Any) -> None:
    with pytest.raises(ConfigurationError, match="focus"):
        Compacter(focus=bad)
    with pytest.raises(ConfigurationError, match="focus"):
        Compacter().compact(conversations.talk(), focus=bad)


def test_the_environment_sets_it() -> None:
    assert Compacter.from_env({"COMPACTER_FOCUS": "1984"}).options.focus == "1984"
