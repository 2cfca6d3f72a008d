"""Text that ``redact`` removes reaches nobody: no summarizer, no event, no log, no memory."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from compacter import Compacter, CompactionPlan, History, Shorten, SQLiteMemory, Summarize
from compacter.messages.format import FORMATS, get_format
from compacter.redaction import redact_secrets
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel, ScriptedSummarizer

KEY = "sk-proj-" + "Ab3dEf6hIj9k" * 3
SECRETS = (KEY, "hunter2-and-more", "ada@example.com", "4242 4242 4242 4242")


def said(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def talk(turns: int = 12) -> list[dict[str, Any]]:
    history: list[dict[str, Any]] = [{"role": "system", "content": "You keep accounts."}]
    for turn in range(turns):
        history.append(
            said((f"Part {turn}: always use the key {KEY}, the password is hunter2-and-more. ") * 2)
        )
        arguments = json.dumps({"mail": "ada@example.com", "card": "4242 4242 4242 4242"})
        function = {"name": "register", "arguments": arguments}
        call = {"id": f"c{turn}", "type": "function", "function": function}
        history.append({"role": "assistant", "content": None, "tool_calls": [call]})
        history.append(
            {
                "role": "tool",
                "tool_call_id": f"c{turn}",
                "content": (f"done for ada@example.com with {KEY}"),
            }
        )
        history.append(
            {"role": "assistant", "content": (f"Part {turn} is booked on 4242 4242 4242 4242.")}
        )
    return [*history, said("And the next?")]


def leaks(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


def stored(folder: Path) -> str:
    """All that stands in the files of a memory."""
    return b"".join(file.read_bytes() for file in folder.iterdir()).decode("latin-1")


class Parrot(ScriptedSummarizer):
    """Says everything again that it reads, and a secret that it read nowhere."""

    def __init__(self) -> None:
        super().__init__(
            lambda messages: (
                f"Summary of the entries. {KEY} " + str(messages[-1]["content"])[200:700]
            )
        )


@pytest.mark.parametrize("redact", ["secrets", redact_secrets], ids=["option", "function"])
@pytest.mark.parametrize("summarizer", ["model", "extractive", "failing"])
def test_nothing_redacted_reaches_summarizer_event_log_or_memory(
    summarizer: str, redact: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    parrot = Parrot()
    failing = ScriptedSummarizer("I'm sorry, but I can't help with that.")
    asked: Any = {"model": parrot, "extractive": "extractive", "failing": failing}[summarizer]
    told: list[Any] = []
    path = tmp_path / "memory.db"
    model = ScriptedModel(window=700)
    completion = Compacter(
        summarizer=asked,
        redact=redact,
        fallback="extractive",
        memory=SQLiteMemory(path),
        on_event=told.append,
    ).wrap(model.completion)

    completion("m", talk())
    completion("m", [*talk(), {"role": "assistant", "content": "Booked."}, *talk(8)[1:]])

    content = stored(tmp_path)
    assert "compacter: summary" in content
    assert not leaks(content)
    assert not leaks(str(parrot.requests) + str(failing.requests))
    assert not leaks("".join(event.model_dump_json() for event in told))
    assert not leaks("".join(map(repr, told)))
    assert not leaks("".join(str(record.__dict__) for record in caplog.records))
    assert any(event.__class__.__name__ == "CompactionEvent" for event in told)


@pytest.mark.parametrize("form", FORMATS)
def test_a_prior_summary_made_without_a_redaction_is_redacted(form: Any) -> None:
    shape = get_format(form)
    prior = shape.say(
        "user",
        summary_message.compose(
            summary_message.Summary(
                f"The key is {KEY}.",
                (f"Rule: Always use {KEY}.",),
                (),
                ("Tool crm: mail ada@example.com"),
            )
        ),
    )
    history = [prior]
    for turn in range(20):
        history.append(shape.say("assistant", f"Answer {turn}. " * 12))
        history.append(shape.say("user", f"Question {turn}? " * 12))
    parrot = Parrot()

    result = Compacter(summarizer=parrot, redact="secrets").compact(history, wire_format=form)

    assert parrot.requests
    assert not leaks(str(parrot.requests))
    assert result.event is not None
    assert not leaks(result.event.model_dump_json())
    assert not leaks(str(result.messages))


def test_a_summary_of_the_callers_own_is_redacted_too() -> None:
    result = Compacter(redact="secrets").compact(talk(), summary=f"They use {KEY}.")
    assert result.event is not None
    assert result.event.summary == "They use [API key]."


class Clip:
    """A strategy that cuts texts, whatever is in them."""

    name = "clip"
    edits = True

    def compact(self, task: CompactionPlan) -> list[Any]:
        return [
            {**message, "content": message["content"][:600]}
            if len(message["content"]) > 600
            else message
            for message in task.messages
        ]


ENTRIES = "An entry stands on each of its lines. " * 80


@pytest.mark.parametrize(
    ("strategy", "listing", "kept"),
    [
        (Shorten(min_size=200), f"This is the listing. {KEY} {ENTRIES}", "listing. [API key]"),
        (Clip(), f"This is the listing. {ENTRIES}", "This is the listing."),
        (Clip(), f"This is the listing. {KEY} {ENTRIES}", ""),
        *(
            (
                Shorten(min_size=200),
                f"{ENTRIES[:place]} password=hunter2-and-more. {ENTRIES[place:]}",
                "An entry",
            )
            for place in range(2_139, 2_160, 6)
        ),
    ],
)
def test_an_edited_message_goes_into_the_memory_without_its_secret(
    strategy: Any, listing: str, kept: str, tmp_path: Path
) -> None:
    """No secret reaches the memory, and no half of one; a strategy that leaves one in a message has
    that message left out.
    """
    history = [said("Look it up."), {"role": "assistant", "content": listing}, said("And?")]
    model = ScriptedModel(window=600)
    memory = SQLiteMemory(tmp_path / "memory.db")
    completion = Compacter(strategy=strategy, redact="secrets", memory=memory).wrap(
        model.completion
    )

    completion("m", history)

    content = stored(tmp_path)
    assert kept in content
    assert kept or "This is the listing." not in content
    assert not leaks(content)
    assert "-more" not in content
    assert len(model.requests[-1].messages) == len(history)


LISTING = "".join(f"Host {number}, password=hunter2-and-{number:04}. " for number in range(40))


@pytest.mark.parametrize("listing", [LISTING, json.dumps({"log": LISTING})], ids=["text", "json"])
@pytest.mark.parametrize("budget", range(900, 942, 6))
def test_no_cut_leaves_half_of_a_secret_that_is_not_recognised_later(
    budget: int, listing: str
) -> None:
    history = [said("Look it up."), {"role": "assistant", "content": listing}, said("And?")]
    compacter = Compacter(strategy=Shorten(min_size=200), redact="secrets", summarizer="extractive")
    cut = compacter.compact(history, budget=budget).messages
    later = [*cut, {"role": "assistant", "content": "Fine. " * 200}, said("More?")]

    event = compacter.replace(strategy=Summarize()).compact(later, budget=700).event

    assert len(cut) == len(history)
    assert event is not None
    assert "Host" in event.summary
    assert "and-0" not in event.model_dump_json()


def test_a_redaction_that_raises_keeps_nothing_of_a_prior_summary_in_the_event() -> None:
    def broken(text: str) -> str:
        raise ZeroDivisionError

    shape = get_format("openai")
    history = [shape.say("user", summary_message.compose(f"The key is {KEY}.")), *talk()[1:]]
    events: list[Any] = []
    model = ScriptedModel(window=700)
    wrapped = Compacter(summarizer=Parrot(), redact=broken, on_compaction=events.append).wrap(
        model.completion
    )

    wrapped("m", history)

    assert events
    assert not leaks(events[-1].model_dump_json())


def test_redact_takes_no_other_word() -> None:
    with pytest.raises(ValueError, match="redact: takes a function"):
        Compacter(redact="everything")  # type: ignore[arg-type]


@pytest.mark.parametrize("summarizer", ["model", "extractive"])
def test_names_keys_and_escaped_arguments_are_redacted_too(summarizer: str) -> None:
    history = talk(6)
    for message in history:
        for call in message.get("tool_calls", ()):
            call["function"]["name"] = KEY
            call["function"]["arguments"] = json.dumps(
                {KEY: "x", "密码": "hunter2-and-more", "пароль": "hunter2-and-more"}
            )
    parrot = Parrot()
    asked: Any = parrot if summarizer == "model" else "extractive"

    result = Compacter(summarizer=asked, redact="secrets").compact(history)

    assert result.event is not None
    assert not leaks(str(parrot.requests))
    assert not leaks(result.event.model_dump_json())
    head = [message for message in result.messages if message not in history]
    assert not leaks(str(head))


def test_names_of_tools_are_redacted_in_what_is_found() -> None:
    history = talk(3)
    for message in history:
        for call in message.get("tool_calls", ()):
            call["function"]["name"] = f"register_{KEY}"
    compacter = Compacter(redact="secrets")

    passages = compacter.search(history, "done booked mail card register", limit=20)

    assert passages
    assert not leaks("".join(passage.name + passage.text for passage in passages))


@pytest.mark.parametrize("through", ["option", "history"])
def test_declared_rules_are_redacted_in_events_memory_and_prompts(
    through: str, tmp_path: Path
) -> None:
    rule = f"Always deploy with {KEY} and write tests."
    parrot = Parrot()
    events: list[Any] = []
    messages: Any = talk(8)
    compacter = Compacter(
        summarizer=parrot,
        redact="secrets",
        rules=[rule] if through == "option" else [],
        memory=SQLiteMemory(tmp_path / "memory.db"),
        on_event=events.append,
    )
    if through == "history":
        messages = History(messages[:-1])
        messages.append(said(rule), rule=True)
        messages.append(said("And the next?"))
    model = ScriptedModel(window=700)

    compacter.wrap(model.completion)("m", messages)

    told = "".join(event.model_dump_json() for event in events)
    content = stored(tmp_path)
    sent = str(model.requests[-1].messages)
    assert "Rule: Always deploy with [API key] and write tests." in sent
    assert not leaks(told)
    assert not leaks(content)
    assert not leaks(str(parrot.requests))


def test_a_rule_that_cannot_be_redacted_is_left_out() -> None:
    def redact(text: str) -> str:
        if "second" in text:
            raise ValueError
        return text

    compacter = Compacter(summarizer="extractive", redact=redact, rules=["A first.", "A second."])

    result = compacter.compact(talk(6), budget=900)

    assert "A first." in str(result.messages)
    assert "A second." not in str(result.messages)
