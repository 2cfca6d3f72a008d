from __future__ import annotations

import pytest

from compacter.summaries.supersede import stale


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        # Said again with another value.
        ("The hall costs 4200 euros.", "The hall costs 3900 euros."),
        ("The workshop starts on 2027-03-01.", "The workshop starts on 2027-04-12."),
        ("Deploy host is api-7.example.org for staging.", "Deploy host is api-9.example.org for staging."),
        # Said in other words.
        ("The catering budget is $900.", "Update: keep catering costs below 700 dollars."),
        ("Spend at most 300 euros on the flights.", "The ceiling for flights changed: 450 euros."),
        ("The deadline for the brochure is 3 May.", "The brochure is now due on 17 May."),
        ("The project is called HERON-2.", "New codename for the project: EGRET-5."),
        ("Write all times in UTC.", "Please show clocks in Pacific time."),
        ("Ana Lopes has pager duty this week.", "The pager now belongs to Tom Birk."),
        ("We work on branch feature/login-12.", "We switched to branch feature/login-19."),
        ("The gate code is kolibri-77.", "The gate code was changed to merle-31."),
        ("Keep your answers terse.", "Please make the replies warm and chatty."),
        ("Use metric units in answers.", "Give answers in imperial units."),
    ],
)
def test_a_later_value_replaces_the_earlier_one(older: str, newer: str) -> None:
    assert stale([older, "Thanks, that is fine.", newer]) == {older}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("The travel budget is $400.", "The new hardware budget is $900."),
        ("The brochure is due on 3 May.", "The website is now due on 17 May."),
        ("The gate code is kolibri-77.", "The new locker code is merle-31."),
        ("Keep your answers short.", "Keep your answers formal."),
        ("Never force-push to branch release/2.0-lts.", "We switched to branch feature/login-19."),
        ("My flight lands at time 10:00 UTC.", "My train leaves at time 7:30 CET."),
        ("I paid 20 euros for lunch.", "The new lamp was 80 euros."),
        ("The primary region is eu-north-3.", "The backup region is us-west-2."),
        ("Never delete logs.", "Never delete backups."),
    ],
)
def test_what_is_about_something_else_stays(first: str, second: str) -> None:
    assert stale([first, second]) == set()


def test_what_is_said_again_holds_again() -> None:
    assert stale(["The hall costs 4200 euros.", "The hall costs 3900 euros.", "The hall costs 4200 euros."]) == {
        "The hall costs 3900 euros."
    }
