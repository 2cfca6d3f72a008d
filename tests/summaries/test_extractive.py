from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compacter.messages.parts import Entry
from compacter.summaries import extractive, tag
from compacter.summaries.shorten import shorten

PLACES = ("Lisbon", "Oslo", "Quito", "Tartu", "Accra", "Perth", "Hanoi", "Turin", "Malmö", "Cusco")
VERBS = ("visited", "painted", "sold", "described", "repaired", "photographed", "measured", "drew")
THINGS = ("lighthouse", "cello", "harbour", "orchard", "telescope", "bakery", "glacier", "mural")


def story(sentences: int, seed: int = 1) -> list[Entry]:
    rng = random.Random(seed)
    entries = []
    for number in range(sentences):
        text = (
            f"Well, it was really nice, you know. Last year I {rng.choice(VERBS)} "
            f"the {rng.choice(THINGS)} in {rng.choice(PLACES)} "
            f"with number {rng.randrange(10_000)}. That is great!"
        )
        entries.append(Entry("user" if number % 2 else "assistant", "text", text, index=number))
    return entries


def work(steps: int) -> list[Entry]:
    entries = [Entry("user", "text", "Find why orders fail. Never restart the database.")]
    for number in range(steps):
        entries.append(
            Entry("assistant", "call", f'{{"path": "src/orders/step_{number}.py", "limit": 200}}', "read_file")
        )
        body = "\n".join(f"{line}\tvalue_{number}_{line} = load_table('orders_{line}')" for line in range(30))
        entries.append(Entry("tool", "result", body, "read_file"))
    return entries


@pytest.mark.parametrize("entries", [story(400), work(40), [*story(100), *work(10)]])
@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.5])
def test_the_budget_is_kept_and_used(entries: list[Entry], share: float) -> None:
    budget = int(sum(len(entry.text) for entry in entries) * share)
    text = extractive.extract(entries, budget=budget)
    assert 0.97 * budget <= len(text) <= budget


ANYTHING = st.lists(
    st.builds(
        Entry,
        st.sampled_from(["system", "user", "assistant", "tool"]),
        st.sampled_from(["text", "call", "result", "media", "summary"]),
        st.text(max_size=120) | st.sampled_from(['{"a": [1, {"b": null}]}', "[" * 60, "Never push. " * 5, tag.HEADING]),
        st.text(max_size=8),
    ),
    max_size=12,
)


@settings(max_examples=200)
@given(ANYTHING, st.integers(0, 600), st.one_of(st.none(), st.text(max_size=80)))
def test_the_budget_holds_whatever_comes(entries: list[Entry], budget: int, prior: str | None) -> None:
    drafted = extractive.draft(entries, budget=budget, prior=prior)
    assert len(tag.join(drafted.prose, drafted.ledger)) <= budget
    assert (
        len(drafted.ledger) <= budget / 3 + 1
        or drafted == tag.divide(prior or "")
        or not entries
        or _folded_alone(entries)
    )


def _folded_alone(entries: list[Entry]) -> bool:
    return all(entry.kind == "summary" for entry in entries)


def test_the_ledger_takes_at_most_a_third() -> None:
    drafted = extractive.draft(work(40), budget=6000)
    assert 0 < len(drafted.ledger) <= 2000


def test_without_a_ledger_all_is_prose() -> None:
    drafted = extractive.draft(work(40), budget=6000, ledger=False)
    assert drafted.ledger == ""
    assert len(drafted.prose) >= 5800


def test_rare_facts_are_chosen_over_chatter() -> None:
    entries = [Entry("assistant", "text", "That is really great, thank you so much! How are you?") for _ in range(60)]
    fact = Entry("user", "text", "My sister Ingrid moved to Trondheim in 2019 to restore church organs.")
    entries.insert(30, fact)
    text = extractive.extract(entries, budget=200)
    assert "Ingrid moved to Trondheim in 2019" in text


def test_near_identical_outputs_are_told_once() -> None:
    log = "connect to db-7\nquery took 120 ms\nconnection closed by peer 10.0.0.9"
    entries = [Entry("tool", "result", log, "run", index) for index in range(50)]
    text = extractive.extract([*entries, Entry("assistant", "text", "The peer 10.0.0.9 drops us.")], budget=400)
    assert text.count("The peer 10.0.0.9") + text.count("peer 10.0.0.9 drops") >= 1


def test_json_is_flattened() -> None:
    record = '{"order": {"id": "ORD-5512", "lines": [{"sku": "KX-1", "count": 3}], "paid": true}}'
    text = extractive.extract([Entry("tool", "result", record, "get_order")], budget=300, ledger=False)
    assert "order: id: ORD-5512, paid: true" in text
    assert "lines: sku: KX-1, count: 3" in text


def test_code_is_not_shortened_word_by_word() -> None:
    code = "if value is not None and it is a list:\n    return [x for x in value if x]"
    assert "if value is not None and it is a list:" in extractive.extract([Entry("tool", "result", code)], budget=300)


@pytest.mark.parametrize(
    ("sentence", "short"),
    [
        (
            "The server was not restarted and we could not reach Oslo.",
            "server not restarted and we could not reach Oslo.",
        ),
        ("It is really great, I think it's a bug.", "great, think bug."),
        ("Never do that!", "Never"),
        ("Das ist ein Test für Köln.", "Das ist ein Test für Köln."),
    ],
)
def test_shortening_leaves_out_fillers_and_keeps_negations(sentence: str, short: str) -> None:
    assert shorten(sentence) == short


def test_sentences_are_shortened_only_where_space_is_short() -> None:
    entries = [Entry("user", "text", "I moved to Oslo."), Entry("user", "text", "I was a baker in Turin.")]
    assert extractive.extract(entries, budget=400, ledger=False) == "U: I moved to Oslo.\nU: I was a baker in Turin."
    assert extractive.extract(entries, budget=36, ledger=False) == "U: moved Oslo.\nU: baker in Turin."


def test_speakers_are_told_apart() -> None:
    text = extractive.extract(
        [
            Entry("user", "text", "My dog Rex swallowed a key."),
            Entry("assistant", "text", "Call the clinic in Malmö."),
            Entry("assistant", "call", '{"city": "Malmö"}', "find_clinic"),
            Entry("tool", "result", "Djurklinik 040-123", "find_clinic"),
        ],
        budget=500,
        ledger=False,
    )
    assert text.splitlines() == [
        "U: My dog Rex swallowed a key.",
        "A: Call the clinic in Malmö.",
        "find_clinic: city: Malmö",
        "→ Djurklinik 040-123",
    ]


def test_a_summary_alone_that_fits_stays_as_it_is() -> None:
    first = extractive.draft(work(20), budget=2000)
    again = extractive.draft([], budget=2000, prior=tag.compose(first.prose, first.ledger))
    as_entry = extractive.draft([Entry("assistant", "summary", tag.compose(first.prose, first.ledger))], budget=2000)
    assert again == as_entry == first


def test_folding_keeps_what_the_prior_summary_knew() -> None:
    prior = tag.compose(
        "U: My sister Ingrid lives in Trondheim.",
        "Rule: Never restart the database.\nTask: Find why orders fail.",
    )
    drafted = extractive.draft(story(30), budget=1500, prior=prior)
    assert "Ingrid lives in Trondheim" in drafted.prose
    assert "Rule: Never restart the database." in drafted.ledger.splitlines()
    assert "Task: Find why orders fail." in drafted.ledger.splitlines()


def test_many_folds_keep_rules_and_size() -> None:
    prior = None
    entries = [Entry("user", "text", "Sort the archive. Never delete an original."), *story(10)]
    for number in range(12):
        drafted = extractive.draft(entries, budget=1200, prior=prior)
        prior = tag.compose(drafted.prose, drafted.ledger)
        entries = story(10, seed=number + 2)
        assert len(tag.join(drafted.prose, drafted.ledger)) <= 1200
    assert "Rule: Never delete an original." in (prior or "").splitlines()


def test_a_value_that_changed_is_not_told_any_more() -> None:
    entries = [
        Entry("user", "text", "The venue for the concert costs 4200 euros."),
        *story(10),
        Entry("user", "text", "The venue for the concert costs 3900 euros."),
    ]
    text = extractive.extract(entries, budget=1200, ledger=False)
    assert "3900" in text
    assert "4200" not in text


@pytest.mark.parametrize("budget", [0, 1, 10, 40])
def test_a_tiny_budget_is_no_error(budget: int) -> None:
    assert len(extractive.extract(work(3), budget=budget)) <= budget


@pytest.mark.parametrize(
    "make", [lambda size: story(size // 130), lambda size: work(size // 1500)], ids=["talk", "tools"]
)
def test_time_grows_linearly(make: object) -> None:
    def seconds(size: int) -> float:
        entries = make(size)  # type: ignore[operator]
        best = 9.0
        for _ in range(2):
            started = time.process_time()
            extractive.extract(entries, budget=size // 5)
            best = min(best, time.process_time() - started)
        return best

    assert seconds(400_000) < 10 * seconds(100_000)
