"""The page: what it says, what it never says, and that it needs nothing besides itself."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from typing import TYPE_CHECKING, get_args

import pytest
from tests.report.conftest import line

from compacter import Compacter, CompactionEvent
from compacter.events import CompactionReused, Trigger, WindowFilling
from compacter.testing import ScriptedModel
from compacter.tools.report import page, read_lines, stories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.report.conftest import Lines


def made(lines: Sequence[str], *, with_text: bool = True) -> str:
    records, strange = read_lines(lines)
    return page(stories(records), with_text=with_text, unread=strange)


class Tags(HTMLParser):
    """Which elements are open, and that each is closed in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_html_is_well_formed_and_its_ids_are_its_own(lines: Lines) -> None:
    tags = Tags()
    tags.feed(made(lines()))
    assert tags.open == []
    assert len(tags.ids) == len(set(tags.ids))


def test_it_asks_for_nothing_from_elsewhere(lines: Lines) -> None:
    text = made(lines())
    assert re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(?!#)[^"'\s)>]+""", text) == []
    assert "http:" not in text
    assert "https:" not in text
    assert "default-src 'none'" in text


def test_the_summary_is_there_unless_it_is_left_out(lines: Lines) -> None:
    assert "register of lighthouses" in made(lines())
    without = made(lines(), with_text=False)
    assert "register of lighthouses" not in without
    assert "Answer in French" not in without
    assert "summarize" in without


def test_what_went_otherwise_is_told_with_its_reason(lines: Lines) -> None:
    text = made(lines())
    for words in (
        "no summary: no answer OSError",
        "no compaction: cool down",
        "lowered the output limit from 4,000 to 1,200 tokens",
        "no progress",
        "8,000 read",
    ):
        assert words in text


def test_events_that_differ_in_numbers_alone_are_one_row_with_the_last() -> None:
    filling = [
        WindowFilling(conversation="abc", share=share, tokens=tokens, window=8_000)
        for share, tokens in ((0.801, 6_409), (0.814, 6_512))
    ]
    html = shown(*(line(event, 9_000) for event in filling))
    assert "6,512 of 8,000 tokens</th><td>2</td>" in html
    assert "6,409" not in html


def test_the_card_counts_the_failures_that_the_table_counts(lines: Lines) -> None:
    told = lines(2)
    counted = re.findall(r'<span class="bad">(\d+)</span>', made(told))
    card = re.search(r"<dt>Failures</dt><dd>(\d+)<", made(told))
    assert card
    assert int(card[1]) == sum(map(int, counted))


def test_the_chart_says_what_lies_from_left_to_right(lines: Lines) -> None:
    labels = "<span>compactions, in order of time</span><span>compaction 8</span>"
    assert f"<span>first call</span>{labels}" in made(lines(1))


def test_text_from_events_is_never_markup() -> None:
    hostile = (
        "</pre></title></style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"
    )
    event = {
        "event": "CompactionEvent",
        **dict.fromkeys(
            ("model", "conversation", "summary", "ledger", "strategy", "trigger"), hostile
        ),
        "compacted_data_size": 10,
        "original_tokens": 100,
        "compacted_tokens": 10,
    }
    failed = {
        "event": "CompactionFailed",
        "conversation": hostile,
        "reason": hostile,
        "error": hostile,
    }
    text = made([json.dumps(event), json.dumps(failed)])
    assert text.count("<script") == 1
    assert text.count("<style") == 1
    assert "<img" not in text
    tags = Tags()
    tags.feed(text)
    assert tags.open == []


@pytest.mark.parametrize(
    "event",
    [
        {"event": "CompactionEvent"},
        {"event": "CompactionEvent", "original_tokens": 1, "compacted_tokens": -5, "limit": 3},
        {
            "event": "CompactionEvent",
            "original_tokens": 5,
            "compacted_tokens": 900_000,
            "summary": "x" * 99,
        },
        {"event": "CompactionEvent", "original_tokens": 10**14, "limit": 10**14, "time": 1e14},
        {"event": "SomethingNew", "time": -1e14},
        {"event": "CompactionFailed"},
    ],
)
def test_odd_numbers_make_a_page_all_the_same(event: dict[str, object]) -> None:
    text = made([json.dumps(event)])
    assert (
        "nan"
        not in re.sub(r"<style.*?</style>|<script.*?</script>", "", text, flags=re.DOTALL).lower()
    )
    assert "</html>" in text


def test_the_same_events_make_the_same_page(lines: Lines) -> None:
    assert made(lines()) == made(lines())


def test_one_conversation_needs_no_table_of_conversations(lines: Lines) -> None:
    assert "<h2>Conversations</h2>" not in made(lines(1))
    assert "<h2>Conversations</h2>" in made(lines(2))


def test_lines_that_could_not_be_read_are_told(lines: Lines) -> None:
    assert "1 line could not be read" in made([*lines(), "{broken"])


def event(**fields: object) -> str:
    known = {
        "event": "CompactionEvent",
        "conversation": "abc",
        "strategy": "summarize",
        "summarizer_calls": 1,
        "trigger": "token_limit",
        "original_data_size": 8_000,
        "compacted_data_size": 2_000,
        "original_tokens": 2_000,
        "compacted_tokens": 500,
        "messages_before": 40,
        "messages_after": 9,
        "duration": 1.5,
    }
    return json.dumps(known | fields)


def shown(*lines: str) -> str:
    return page(stories(read_lines(lines)[0]))


def test_a_summary_without_a_model_has_its_own_name() -> None:
    assert ">extractive</td>" in shown(event(summarizer_calls=0))
    assert ">summarize</td>" in shown(event())


@pytest.mark.parametrize(
    ("fields", "replaced"),
    [
        ({"first_removed": 2, "last_removed": 33}, "2 to 33 of 40"),
        ({"first_removed": 2, "last_removed": 2}, "2 of 40"),
        ({}, "32 of 40"),  # A line of an earlier version.
        ({"messages_before": 0, "messages_after": 0}, "–"),  # A server compacted its own history.
    ],
)
def test_each_compaction_tells_which_messages_it_replaced(
    fields: dict[str, int], replaced: str
) -> None:
    assert f'<th scope="row">1</th><td>{replaced}</td>' in shown(event(**fields))


@pytest.mark.parametrize("trigger", get_args(Trigger))
def test_each_compaction_tells_why_it_was_made(trigger: str) -> None:
    words = re.search(r"of 40</td><td class=l>([^<]+)</td>", shown(event(trigger=trigger)))
    assert words
    assert "_" not in words[1] or words[1] == "trigger_tokens"
    assert words[1] != trigger


def test_the_rows_are_those_of_real_compactions() -> None:
    """Two compactions of a growing conversation, from the hook to the page."""
    told: list[CompactionEvent] = []
    compacter = Compacter(summarizer="extractive", on_compaction=told.append)
    completion = compacter.wrap(ScriptedModel(window=300).completion)
    messages = [{"role": "system", "content": "You keep a register."}]
    for number in range(60):
        messages.append({"role": "user", "content": f"Entry {number}: lighthouse, {number} m."})
        messages.append(completion(model="m", messages=messages)["choices"][0]["message"])
    assert len(told) > 1
    html = shown(*(line(event, 1.0) for event in told))
    for compaction in told:
        gone = compaction.discarded
        first = compaction.first_removed
        last = compaction.last_removed
        assert last - first + 1 == len(gone)  # Nothing was pinned between.
        assert first == 2  # Behind the system message.
        assert f"<td>{first:,} to {last:,} of {compaction.messages_before:,}</td>" in html


def test_one_event_shows_no_card_of_nothing() -> None:
    html = shown(event())
    cards = html[html.index('class="cards"') : html.index("</dl>")]
    assert "<dd>0<" not in cards
    assert "Compactions" in cards
    assert "Failures" not in cards


def test_failures_come_first() -> None:
    failing = json.dumps({"event": "CompactionFailed", "conversation": "sad", "reason": "empty"})
    html = shown(event(conversation="glad"), failing)
    assert html.index(">sad<") < html.index(">glad<")
    assert html.index("<dt>Failures") < html.index("<dt>Compactions")


def test_from_a_hundred_conversations_on_there_is_a_filter() -> None:
    few = [event(conversation=f"talk {number}") for number in range(99)]
    assert 'type="search"' not in shown(*few)
    assert 'type="search"' in shown(*few, event(conversation="one more"))


def test_a_notebook_shows_the_page_in_a_frame_that_reaches_nothing_else() -> None:
    """The page keeps its styles and scripts apart from the notebook's."""
    shown_page = page(stories(read_lines([event()])[0]))
    frame = shown_page._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts"')
    assert unescape(frame).count(shown_page) == 1


def test_the_cards_say_what_calls_from_a_summary_did_not_send(lines: Lines) -> None:
    used = CompactionReused(
        messages_before=61, messages_after=20, began=True, tokens_saved=4_000, cost_saved=0.005
    )
    unpriced = used.model_copy(update={"cost_saved": None})
    html = made([*lines(), *(line(event, 9_000) for event in (used, used, unpriced))])
    cards = html[html.index('class="cards"') : html.index("</dl>")]
    assert "<dt>Calls from a summary</dt><dd>3<" in cards
    assert "<dt>Input tokens not sent</dt><dd>12,000<" in cards
    assert "<dt>Price of tokens not sent</dt><dd>$0.01<" in cards
