"""A history that is read once: what stays together, what must stay, and what the provider has
compacted itself.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from tests.compaction.conftest import plan, refused
from tests.conversations import bot, user
from tests.dialects import DIALECTS

from compacter import Compacter
from compacter.compaction.calibration import Calibration
from compacter.compaction.conversation import Conversation, find_pinned
from compacter.messages.format import FILLERS, FORMATS, get_format
from compacter.messages.parts import Kind
from compacter.options import Options
from compacter.summary import message as summary_message

SUMMARY = "They counted the ships."


def block(name: str, text: str | None = "They sailed.", **more: Any) -> dict[str, Any]:
    """The provider's own compaction in the format of that name."""
    readable = {"type": "compaction", "content": text, **more}
    blocks: dict[str, dict[str, Any]] = {
        "anthropic": {"role": "assistant", "content": [readable, {"type": "text", "text": "Aye."}]},
        "openai": {
            "role": "assistant",
            "content": "Aye.",
            "provider_specific_fields": {"compaction_blocks": [readable]},
        },
        "responses": {"type": "compaction", "encrypted_content": json.dumps(readable)},
        "sealed": {"type": "compaction", "encrypted_content": "c2VhbGVk" * 10},
    }
    return blocks[name]


def talk(name: str, turns: int, said: str = "word ") -> list[dict[str, Any]]:
    form = get_format(name)
    return [
        form.say(role, f"{role} {turn} {said * 40}")
        for turn in range(turns)
        for role in ("user", "assistant")
    ]


def block_with_call(text: str = "They sailed.") -> tuple[dict[str, Any], dict[str, Any]]:
    """Anthropic's own compaction in a message that calls a tool, and the result."""
    native = block("anthropic", text)
    native["content"].append({"type": "tool_use", "id": "c", "name": "look", "input": {}})
    result = {"type": "tool_result", "tool_use_id": "c", "content": "Seven."}
    return native, {"role": "user", "content": [result]}


NATIVE = ["anthropic", "openai", "responses"]


@pytest.mark.parametrize("name", NATIVE)
def test_the_context_begins_at_the_providers_newest_compaction(name: str) -> None:
    form = get_format(name)
    before = talk(name, 4)
    after = talk(name, 3)
    found = Conversation([*before, block(name), *before, block(name, "They landed."), *after], form)

    assert found.start == 17
    assert found.kinds[17] is Kind.COMPACTED
    assert found.sizes[:17] == (0,) * 17
    assert found.size == sum(map(form.size, after)) + form.size(found.messages[17])
    assert all(found.protected[:18])


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_compaction_that_failed_is_none(name: str) -> None:
    found = Conversation([*talk(name, 2), block(name, None), *talk(name, 2)], get_format(name))

    assert (found.start, found.kinds[4]) == (0, Kind.ASSISTANT)


@pytest.mark.parametrize("name", NATIVE)
def test_the_block_and_what_stands_before_it_stay_as_they_are(name: str) -> None:
    """A second compaction takes the summary behind the block for its prior one."""
    compacter = Compacter(summarizer=lambda messages, **_: SUMMARY)
    messages = [
        *talk(name, 6),
        block(name),
        *talk(name, 12),
        get_format(name).say("user", "And now?"),
    ]
    made = compacter.compact(messages, wire_format=name)

    assert made.changed
    assert all(one is other for one, other in zip(made.messages[:13], messages[:13], strict=True))
    assert summary_message.parse(get_format(name).plain_text(made.messages[13]) or "") is not None
    assert made.messages[-1] is messages[-1]
    assert made.event is not None
    assert made.event.original_data_size == Conversation(messages, get_format(name)).size
    again = compacter.compact([*made.messages, *talk(name, 12)], wire_format=name).messages
    texts = [get_format(name).plain_text(message) or "" for message in again]
    assert sum(summary_message.parse(text) is not None for text in texts) == 1


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_readable_block_is_the_prior_summary_when_all_must_go(name: str) -> None:
    asked: list[str] = []

    def summarizer(messages: list[dict[str, str]], **_: object) -> str:
        asked.append(messages[-1]["content"])
        return SUMMARY

    old = talk(name, 6, "old ")
    new = talk(name, 2)
    messages = [
        *old,
        block(name, "They sailed. " * 200),
        *new,
        get_format(name).say("user", "And now?"),
    ]
    made = Compacter(summarizer=summarizer).compact(messages, wire_format=name, budget=900)

    assert made.fits
    assert "They sailed." in asked[0]
    assert "Aye." in asked[0]  # What else the message says is folded like any other.
    assert "old old" not in asked[0]  # What stood before the block was not in the context.
    assert made.messages[-1] is messages[-1]
    assert not any(message in old for message in made.messages)
    assert summary_message.parse(get_format(name).plain_text(made.messages[0]) or "") is not None


@pytest.mark.parametrize(("room", "folded"), [(0, False), (-1, True)])
def test_a_readable_block_is_folded_where_what_stays_leaves_no_room_for_a_summary(
    room: int, folded: bool
) -> None:
    messages = [
        block("anthropic", "They sailed. " * 40),
        *talk("anthropic", 6),
        get_format("anthropic").say("user", "?"),
    ]
    found = Conversation(messages, get_format("anthropic"))
    stays = found.sizes[0] + found.sizes[-1] + summary_message.FRAME
    work = refused(
        conversation=found,
        trigger="token_limit",
        calibration=Calibration(),
        is_required=True,
        target=stays + room,
    )

    assert (plan(Options(), work).prior == 0) is folded


def test_the_summary_of_a_folded_block_stands_behind_the_system_prompt() -> None:
    system = {"role": "system", "content": "You are terse."}
    messages = [
        system,
        *talk("openai", 2),
        block("openai", "They sailed. " * 200),
        *talk("openai", 2),
    ]
    made = Compacter(summarizer=lambda messages, **_: SUMMARY).compact(messages, budget=900)

    assert made.messages[0] is system
    assert summary_message.parse(made.messages[1]["content"]) is not None


def test_a_readable_block_is_folded_where_there_is_nothing_else() -> None:
    form = get_format("anthropic")
    messages = [
        *talk("anthropic", 1),
        block("anthropic", "They sailed. " * 40),
        form.say("user", "?"),
    ]
    found = Conversation(messages, form)
    plans = [
        plan(
            Options(),
            refused(
                conversation=found,
                trigger="token_limit",
                calibration=Calibration(),
                is_required=must,
            ),
        )
        for must in (True, False)
    ]

    assert [(made.prior, made.cut) for made in plans] == [(2, 3), (None, 0)]


@pytest.mark.parametrize("opened", [True, False])
def test_a_summary_behind_a_block_and_the_result_of_its_call_is_parted_from_both(
    opened: bool,
) -> None:
    form = get_format("anthropic")
    opening = [form.say("user", "Go.")] * opened
    native, seen = block_with_call()
    messages = [
        *opening,
        native,
        seen,
        form.say("assistant", "Aye."),
        *talk("anthropic", 12),
        form.say("user", "And now?"),
    ]
    made = Compacter(summarizer=lambda messages, **_: SUMMARY).compact(
        messages, wire_format="anthropic"
    )
    roles = [form.speaker(message) for message in made.messages]

    assert made.changed
    assert made.messages[: len(opening) + 2] == messages[: len(opening) + 2]
    assert all(one != other for one, other in pairwise(roles))


def test_a_note_in_place_of_a_folded_block_leaves_no_result_of_its_call() -> None:
    form = get_format("anthropic")
    native, seen = block_with_call("They sailed. " * 200)
    messages = [native, seen, *talk("anthropic", 4), form.say("user", "And now?")]
    made = Compacter(
        strategy=lambda task: task.keep([len(task.messages) - 1], "Left out.")
    ).compact(messages, wire_format="anthropic", budget=900)

    assert "They sailed." in (form.plain_text(made.messages[0]) or "")
    assert made.messages[-1] is messages[-1]
    assert not any(message in made.messages for message in (native, seen))


def test_an_unreadable_block_is_never_folded() -> None:
    found = Conversation([block("sealed"), *talk("responses", 6)], get_format("responses"))
    work = refused(
        conversation=found,
        trigger="token_limit",
        calibration=Calibration(),
        is_required=True,
        target=10,
    )
    assert 0 not in plan(Options(), work).compacted

    messages = [
        *talk("responses", 6),
        block("sealed"),
        get_format("responses").say("user", "And now?"),
    ]
    made = Compacter(summarizer=lambda messages, **_: SUMMARY).compact(
        messages, wire_format="responses", budget=10
    )

    assert messages[12] in made.messages
    assert not made.changed


# What compacter puts in is known again.


@pytest.mark.parametrize("name", FORMATS)
def test_a_filler_is_no_users_message(name: str) -> None:
    form = get_format(name)
    summary = form.say("user", summary_message.compose("They went."))
    inserted = [form.say("assistant", "Aye."), form.filler("user"), form.say("assistant", "Done.")]

    found = Conversation([summary, *inserted], form)

    assert found.kinds[2] is Kind.INSERTED
    assert not found.protected[2]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("after", [0, 1])
def test_a_filler_where_compacter_puts_none_is_the_users(name: str, after: int) -> None:
    form = get_format(name)
    typed = [form.say("user", "Go."), form.say("assistant", "Aye."), form.filler("user")]

    found = Conversation([*typed, form.say("assistant", "Done.")][: 3 + after], form)

    assert found.last_user == 2
    assert found.protected[2]


@pytest.mark.parametrize("name", FORMATS)
def test_a_summary_that_is_the_last_message_is_the_users(name: str) -> None:
    form = get_format(name)

    found = Conversation([form.say("user", summary_message.compose("They went."))], form)

    assert found.prior is None
    assert found.last_user == 0


def test_a_pin_keeps_nothing_that_compacter_wrote_unless_it_stands_last() -> None:
    form = get_format("openai")
    summary = user(summary_message.compose("They went."))
    written = [summary, form.filler("assistant"), user("Hello."), bot("Yes."), summary]

    assert find_pinned(lambda message: True, written, form) == (2, 3, 4)


@pytest.mark.parametrize("turns", [0, 1])
def test_a_fillers_text_in_the_last_message_is_the_users(turns: int) -> None:
    summary = user(summary_message.compose("They went."))
    talk = [summary, *[bot("Yes.")] * (turns + 1), user(FILLERS["user"])]

    assert Conversation(talk, get_format("openai")).kinds[-1] is Kind.USER


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
def test_texts_are_words_calls_and_results(dialect: Any) -> None:
    step = [*dialect.calls([("c", "look", {})]), *dialect.results([("c", "look", "Seven.")])]

    assert Conversation([dialect.user("Look."), *step], dialect.format).texts() == [
        *("Look.", "{}", "Seven.")
    ]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("rounds", [2, 4])
def test_the_last_user_message_stays_through_rounds_that_put_fillers_in(
    name: str, rounds: int
) -> None:
    form = get_format(name)
    task = form.say("user", "Count the ships.")
    messages = [form.say("user", "Hello. " * 60), task]
    messages += [form.say("assistant", f"Step {number}. " * 60) for number in range(12)]
    pinned = messages[6]
    compacter = Compacter(
        summarizer=lambda messages, **_: SUMMARY,
        alternate_roles=True,
        pin=lambda message: message is pinned or message == pinned,
    )
    for _ in range(rounds):
        made = compacter.compact(messages, wire_format=name)
        assert any(message is task for message in made.messages)
        roles = [form.speaker(message) for message in made.messages]
        assert roles[0] == "user"
        messages = [*made.messages, form.say("assistant", "More. " * 60)]


# Messages of nobody.


def test_where_the_summary_is_all_that_a_user_said_no_message_is_the_last_of_the_user() -> None:
    form = get_format("openai")
    found = Conversation(
        [form.say("user", summary_message.compose("x")), form.say("assistant", "Aye.")], form
    )

    assert (found.prior, found.last_user, found.protected) == (0, None, (False, False))
    asked = [form.say("user", "Go."), block("openai"), *found.messages]
    assert (Conversation(asked, form).prior, Conversation(asked, form).last_user) == (2, 0)


def test_other_roles_are_relied_on_where_one_message_is_a_users() -> None:
    found = Conversation(
        [{"role": "user", "content": "u"}, {"role": "narrator", "content": "n"}],
        get_format("openai"),
    )

    assert found.kinds == (Kind.USER, Kind.OTHER)


def test_an_item_without_a_speaker_may_be_folded_though_no_user_spoke() -> None:
    call = {"call_id": "c", "name": "look", "arguments": "{}"}
    result = {"call_id": "c", "output": "Seven."}
    items = [
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", **call},
        {"type": "function_call_output", **result},
    ]

    assert Conversation(items, get_format("responses")).protected == (False, False, False)


def test_messages_in_roles_of_nobody_stay_though_a_summary_speaks_as_the_user() -> None:
    form = get_format("openai")
    summary = {"role": "user", "content": summary_message.compose("They spoke.")}
    found = Conversation(
        [summary, {"role": "human", "content": "h"}, {"role": "ai", "content": "a"}], form
    )

    assert found.prior == 0
    assert found.kinds[1:] == (Kind.UNKNOWN, Kind.UNKNOWN)
