"""Which lines earn a place in a summary without a model, and which do not."""

from __future__ import annotations

import pytest

from compacter.messages.parts import Part
from compacter.summary.timeline import timeline


def user(text: str) -> Part:
    return Part("user", "text", text)


def assistant(text: str) -> Part:
    return Part("assistant", "text", text)


def bash(command: str, output: str) -> list[Part]:
    return [
        Part("assistant", "call", f'{{"command": "{command}"}}', "bash"),
        Part("tool", "result", output, "bash"),
    ]


COURTESIES = [
    "Hi!",
    "Thank you so much!",
    "Yeah, see ya!",
    "That sounds great!",
    "You're welcome!",
    "Have a great day!",
    "How can I help you?",
    "Oh wow, that is wonderful.",
    "Vielen Dank!",
    "Merci beaucoup!",
]


@pytest.mark.parametrize("said", COURTESIES)
@pytest.mark.parametrize("speak", [user, assistant])
def test_courtesy_earns_no_line_though_there_is_room(said: str, speak: object) -> None:
    talk = [user("The boiler in flat 7 leaks."), speak(said), assistant("A plumber comes at noon.")]  # type: ignore[operator]
    assert said not in timeline(talk, 1_000)


def test_statements_that_share_only_courtesy_are_not_about_the_same() -> None:
    talk = [
        user("Hello, thanks."),
        assistant("A plumber comes at noon."),
        user("Thanks, hello again."),
        assistant("Good."),
    ]
    assert timeline(talk, 1_000) == f"Assistant: {talk[1].text}"


def test_a_greeting_before_the_first_request_is_left_out() -> None:
    talk = [user("Hello there! The boiler in flat 7 leaks."), assistant("A plumber comes at noon.")]
    assert timeline(talk, 1_000).startswith("User: The boiler in flat 7 leaks.")


def test_an_answer_of_talk_stays_with_its_question() -> None:
    talk = [assistant("Shall I book the plumber for 90 euros?"), user("Yes, please do.")]
    told = timeline(talk, 1_000)
    assert told.splitlines() == [f"Assistant: {talk[0].text}", f"User: {talk[1].text}"]


def test_a_sentence_that_points_back_brings_the_sentence_it_points_at() -> None:
    talk = [
        assistant("The draft of the lease names the wrong tenant."),
        user("Redo it."),
        assistant("The gutter was cleaned by Holm and Sons in the first week of April."),
    ]
    told = timeline(talk, 80)
    assert ("Redo it." in told) == (talk[0].text in told)
    assert "Redo it." in timeline(talk, 1_000)


def test_a_name_beside_courtesy_is_no_topic_where_messages_begin_with_it() -> None:
    talk = [
        *(assistant(f"Vera: The {thing} is in order.") for thing in ("roof", "gate", "cellar")),
        user("Vera: Wow, thanks!"),
    ]
    assert "Wow" not in timeline(talk, 1_000)


def test_a_line_of_code_gives_way_to_one_that_names_a_file_or_defines_something() -> None:
    code = [f"self.total{n} = self.rows{n}.pop()" for n in range(9)]
    output = "\n".join([*code, "def read_meters(folder):", "lib/meters/reader.py is not tested"])
    told = timeline(bash("cat notes", output), 130)
    assert "def read_meters(folder):" in told
    assert "lib/meters/reader.py is not tested" in told


def test_rows_of_a_listing_that_name_nothing_are_not_quoted() -> None:
    rows = (
        "total 16",
        "drwxr-xr-x 3 ann staff 96 Mar  3 10:00 .",
        "drwxr-xr-x 9 ann staff 288 Mar  3 10:00 ..",
        "drwxr-xr-x 2 ann staff 64 Mar  3 10:00 invoices",
    )
    told = timeline(bash("ls -la", "\n".join(rows)), 1_000)
    assert [row in told for row in rows] == [False, False, False, True]


def test_what_is_announced_gives_way_to_what_was_seen() -> None:
    talk = [
        assistant("The meter in flat 3 runs backwards. Now I look at the cellar of the house."),
        *bash("ls", "cellar"),
    ]
    told = timeline(talk, 110)
    assert "runs backwards" in told
    assert "Now I look" not in told


def test_a_mere_announcement_earns_no_line() -> None:
    talk = [
        assistant("The meter in flat 3 runs backwards."),
        assistant("Let me look at the cellar first."),
        *bash("ls cellar", "boiler"),
    ]
    assert "Let me look" not in timeline(talk, 1_000)


def test_a_heading_comes_with_its_first_line() -> None:
    talk = [
        assistant("**Repairs still open this month:**\n- Holm mends the gutter of the north wing.")
    ]
    told = [timeline(talk, size) for size in range(40, 140)]
    assert any("gutter" in text for text in told)
    assert all("gutter" in text for text in told if "Repairs" in text)


def test_what_leads_to_code_earns_no_line_unless_it_is_the_users_request() -> None:
    talk = [
        user("Mend the leak in this drawing of the boiler:\n\n```\nvalve = 3\n```"),
        assistant("The changed drawing follows below:\n```\nvalve = 4\n```"),
    ]
    told = timeline(talk, 1_000)
    assert "Mend the leak" in told
    assert "The changed drawing" not in told


def test_a_users_heading_may_end_the_conversation_or_a_message() -> None:
    talk = [user("The boiler in flat 7 leaks, and so does the one in flat 9. My notes of today:")]
    assert timeline(talk, 1_000) == f"User: {talk[0].text}"
    talk.append(assistant("A plumber comes at noon."))
    assert timeline(talk, 90) == f"User: {talk[0].text}"


@pytest.mark.parametrize("before", ["", "User: The boiler in flat 7 leaks."])
def test_a_request_whose_last_line_ends_with_a_colon_is_quoted_though_nothing_follows(
    before: str,
) -> None:
    asked = "Please look at all of the boilers of the house, and mend them in the following order:"
    assert timeline([user(asked)], 1_000, before).endswith(asked)
