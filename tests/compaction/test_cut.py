"""Where a history is cut, and what stays whatever the sizes are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compaction.conftest import plan, refused
from tests.conversations import history as turns_of
from tests.conversations import talk as talk_of

from compacter import Compacter, CompactionPlan, Shorten
from compacter.compaction.conversation import Conversation
from compacter.messages.format import FILLERS, get_format
from compacter.options import Options
from compacter.summary import message as summary_message
from compacter.testing import ScriptedModel

OPENAI = get_format("openai")


def message(letter: str, size: int = 400) -> dict[str, Any]:
    """``s``, ``u``, ``a`` speak; ``c`` calls, ``r`` is its result; ``p`` is a prior summary."""
    if letter == "c":
        function = {"name": "look", "arguments": "x" * size}
        call = {"id": "c", "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if letter == "r":
        return {"role": "tool", "tool_call_id": "c", "content": "r" * size}
    if letter == "p":
        return {"role": "user", "content": summary_message.compose("p" * size)}
    roles = {"s": "system", "u": "user", "a": "assistant"}
    return {"role": roles[letter], "content": letter * size}


def history(letters: str, size: int = 400) -> list[dict[str, Any]]:
    return [message(letter, size) for letter in letters]


def chat(*sizes: int) -> list[dict[str, Any]]:
    """Messages of these sizes, the user's first."""
    return [message("ua"[place % 2], size) for place, size in enumerate(sizes)]


def by_hand(letters: str, ratio: float = 0.7, **options: Any) -> CompactionPlan:
    budget = options.pop("budget", None)
    compacter = Compacter(compact_ratio=ratio, **options)
    return compacter.plan(history(letters), wire_format="openai", budget=budget)


def work(messages: list[Any], **facts: Any) -> CompactionPlan:
    return refused(Conversation(messages, OPENAI), **facts)


@pytest.mark.parametrize(
    ("letters", "pins", "stays"),
    [
        ("suaua", (), "10010"),
        ("ucrcr", (), "10000"),
        ("suaua", (2,), "10110"),
        ("ucrcru", (1,), "011001"),
        ("ucrcru", (4,), "000111"),
        ("scrcr", (), "10000"),
    ],
)
def test_protected(letters: str, pins: tuple[int, ...], stays: str) -> None:
    """System messages, the last user message and pins stay, pins with their tool partners."""
    read = Conversation(history(letters), OPENAI, pinned=pins)

    assert "".join("01"[protected] for protected in read.protected) == stays


@pytest.mark.parametrize(
    ("letters", "head"),
    [
        ("suauauauu", "suauau"),
        ("ucrcrcrcrcr", "ucrcrcrcr"),  # An agent's single turn shrinks too.
        ("u", ""),
        ("su", ""),
        ("s", ""),
        ("", ""),
        ("suc", ""),  # A call without its result.
        ("uauauauauauc", "uauauaua"),
    ],
)
def test_edges(letters: str, head: str) -> None:
    """An unanswered call is never compacted, nor is what has to stay."""
    assert letters[: by_hand(letters).cut] == head
    assert plan(Options(), work([], is_required=True)).cut == 0
    assert by_hand(letters, 1.0).cut <= len(letters) - letters.endswith("c")


@given(
    turns=st.lists(
        st.sampled_from(["ua", "ucra", "ucrcra", "ucrcrcr", "u"]), min_size=1, max_size=8
    ),
    ratio=st.sampled_from([0.1, 0.4, 0.7, 1.0]),
    system=st.booleans(),
)
def test_pairs_and_sums(turns: list[str], ratio: float, system: bool) -> None:
    """A cut never parts a call from its result, and head and tail are the whole."""
    letters = "s" * system + "".join(turns)
    made = by_hand(letters, ratio)
    read = Conversation(history(letters), OPENAI)

    assert made.cut in (*read.steps, len(letters))
    assert len(made.kept) > 0
    assert len(made.head) + len(made.kept) == len(letters)
    assert made.head_size + made.tail_size == made.original_data_size == read.size
    assert made.ratio == round(made.head_size / (read.free or 1), 4)
    assert read.last_user not in made.compacted


@pytest.mark.parametrize("ratio", [0.2, 0.6, 1.0])
@pytest.mark.parametrize("turns", [0, 2])
def test_results_beside_words(ratio: float, turns: int) -> None:
    """A user who answers a call and speaks in one message is not parted from the call."""
    talk: list[Any] = [message("u", 20)]
    for number in range(8):
        use = {"type": "tool_use", "id": f"c{number}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": "ship " * 60}
        talk += [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result, {"type": "text", "text": "Go on."}]},
        ]
    read = Conversation(talk, get_format("anthropic"))

    options = Options(compact_ratio=ratio, preserve_recent_turns=turns)

    assert 0 < plan(options, refused(read)).cut in read.steps


@pytest.mark.parametrize("count", [2, 300])
def test_without_a_user(count: int) -> None:
    """At least one message stays."""
    assert plan(Options(compact_ratio=1.0), work(history("a" * count, 9))).cut == count - 1


# -- turns -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sizes", "ratio", "cut"),
    [
        ((500, 500, 500, 40, 300, 300, 9), 0.7, 4),
        ((500, 500, 500, 140, 300, 300, 9), 0.65, 3),
        ((500, 500, 500, 100, 200, 200, 9), 0.7, 4),  # Exactly a twentieth of 2,000.
        ((500, 500, 500, 101, 200, 199, 9), 0.7, 3),
    ],
)
def test_end_of_a_turn(sizes: tuple[int, ...], ratio: float, cut: int) -> None:
    """The rest of a turn is compacted too, up to a twentieth of the compactable size."""
    assert plan(Options(compact_ratio=ratio), work(chat(*sizes))).cut == cut


def test_turns_that_leave_too_little() -> None:
    """Recent turns stay unless what is left to compact is smaller than a summary."""
    talk = chat(20, 20, 500, 500, 500, 500, 9)
    options = Options(preserve_recent_turns=3)

    assert plan(options, work(talk)).cut == 2
    assert plan(options, work(talk, is_required=True)).cut == 4
    assert by_hand("suauau", 1.0, preserve_recent_turns=9).cut == 0
    assert by_hand("suauau", 1.0, preserve_recent_turns=9, budget=1_300).cut > 0


def test_smallest_head() -> None:
    """A head is as large as a summary of forty characters at least."""
    made = plan(Options(compact_ratio=0.001), work(chat(*[1] * 600)))

    assert made.head_size in (summary_message.FRAME + 40, summary_message.FRAME + 41)


# -- a prior summary -------------------------------------------------------------------------------


@pytest.mark.parametrize("pinned", [(), (0,)])
def test_prior_is_no_part_of_the_share(pinned: tuple[int, ...]) -> None:
    """The size of a prior summary does not count towards the ratio, pinned or not."""
    talk = [message("au"[place % 2], 100) for place in range(10)]
    with_prior = Conversation([message("p", 2_000), *talk], OPENAI, pinned=pinned)
    options = Options(compact_ratio=0.5)

    assert plan(options, refused(with_prior)).cut - 1 == plan(options, work(talk)).cut


@pytest.mark.parametrize(("pins", "cut"), [((), 2), ((1,), 3), ((1, 2), 4), ((1, 2, 3, 4), 1)])
def test_prior_alone(pins: tuple[int, ...], cut: int) -> None:
    """A prior summary is compacted with the next step, if something has to be; else it alone."""
    talk = Conversation([message("p"), *chat(*[100] * 5)], OPENAI, pinned=pins)

    options = Options(preserve_recent_turns=3)

    assert plan(options, refused(talk, is_required=True)).cut == cut
    assert plan(options, refused(talk)).cut == 0


def test_prior_before_recent_turns() -> None:
    """Messages between a prior summary and the turns that stay are compacted."""
    talk = [message("p"), message("a", 300), *chat(100, 100, 100)]

    assert plan(Options(preserve_recent_turns=9), work(talk)).cut == 2
    roomy = work([message("p"), *chat(*[100] * 5)], trigger="threshold", target=10_000)
    assert plan(Options(preserve_recent_turns=3), roomy).cut == 0


@pytest.mark.parametrize(("pins", "prior"), [((), 0), ((0,), None)])
def test_prior_of_a_plan(pins: tuple[int, ...], prior: int | None) -> None:
    """A plan has the prior summary that it compacts."""
    read = Conversation([message("p"), *chat(*[100] * 5)], OPENAI, pinned=pins)

    assert plan(Options(), refused(read)).prior == prior
    assert plan(Options(), refused(read, is_chosen=True)).prior is None


FILLER = {"role": "assistant", "content": FILLERS["assistant"]}


@pytest.mark.parametrize(
    ("messages", "prior"),
    [
        ([message("p"), *turns_of(3)], 0),
        ([message("s"), FILLER, message("p"), *turns_of(3)], 2),
        ([*turns_of(1), message("p"), *turns_of(3)], None),
        *(
            ([{**message("p"), "role": role, "tool_call_id": "c"}, *turns_of(3)], None)
            for role in ("assistant", "system", "tool")
        ),
    ],
)
def test_place_of_a_prior(messages: list[Any], prior: int | None) -> None:
    """A prior summary is the user's message right behind what leads the conversation."""
    assert Conversation(messages, OPENAI).prior == prior


# -- a cut that a hook has chosen ------------------------------------------------------------------

STEPS = [
    message("u", 900),
    message("c", 20),
    message("r", 900),
    message("c", 20),
    message("r", 900),
    message("u", 10),
]


@pytest.mark.parametrize(
    ("messages", "wanted", "cut"),
    [
        (talk_of(), 7, 7),
        (turns_of(10), -3, 0),
        (turns_of(10), 0, 0),
        (turns_of(10), 20, 20),
        (turns_of(10), 99, 20),
        (STEPS, 4, 3),  # The beginning of its step.
        ([*turns_of(5), message("u", 20), message("c")], 12, 11),  # A call without its results.
        (talk_of(), "7", None),
    ],
)
def test_chosen_by_a_hook(messages: list[Any], wanted: Any, cut: int | None) -> None:
    """A hook's cut holds, at the beginning of its step; the plan's own, if it is not a number."""
    plans: list[CompactionPlan] = []

    def strategy(plan: CompactionPlan) -> Any:
        plans.append(plan)
        return plan.replace_head("Short.")

    def hook(plan: CompactionPlan) -> CompactionPlan:
        return replace(plan, cut=wanted)

    Compacter(before_compaction=hook, strategy=strategy).compact(messages)

    assert plans[0].cut == (Compacter().plan(messages).cut if cut is None else cut)


# -- budgets ---------------------------------------------------------------------------------------


def test_turns_give_way_to_a_budget() -> None:
    """A budget wins over recent turns."""
    compacter = Compacter(
        compact_ratio=0.1, preserve_recent_turns=9, summarizer=lambda prompt, **_: "Short."
    )

    assert compacter.compact([*turns_of(10, 400), message("u", 20)], budget=2_000).fits


@pytest.mark.parametrize("budget", [2_000, 8_000])
def test_a_budget_is_used(budget: int) -> None:
    """A budget by hand is filled, most of it with passages of the head."""
    said = "{} {} says that pier {} has {} boats. "
    messages = [
        {"role": role, "content": said.format(role.title(), n, n * 7, n + 11) * 3}
        for n in range(60)
        for role in ("user", "assistant")
    ]
    compacter = Compacter(summarizer="extractive")
    result = compacter.compact([*messages, message("u", 20)], budget=budget)
    size = sum(len(message["content"]) for message in result.messages)

    assert 0.8 * budget <= size <= budget
    assert len(result.messages[0]["content"]) >= 0.7 * budget


def test_by_hand_what_just_fits_is_enough() -> None:
    """The second of several strategies is not tried once the budget is kept."""
    talk = chat(*[100] * 20)
    made = Compacter(strategy=[lambda plan: plan.messages[1:]] * 3).compact(talk, budget=1_900)

    assert made.messages == talk[1:]


@pytest.mark.parametrize(("budget", "least", "most"), [(4_000, 3_900, 4_000), (None, 4_000, 5_000)])
def test_shorten(budget: int | None, least: int, most: int) -> None:
    """``Shorten`` takes no more than the budget wants; half, without a budget."""
    talk = [*chat(3_000, 3_000, 3_000, 3_000, 777)][: 5 if budget else 4]
    talk = talk if budget else chat(*[1_000] * 10)
    made = Compacter(strategy=Shorten(), compact_ratio=0.9).compact(talk, budget=budget)

    assert least <= Conversation(made.messages, OPENAI).size <= most


@pytest.mark.parametrize("length", [40, 200])
def test_room_for_rules(length: int) -> None:
    """One round leaves room for the rules that each summary carries."""
    rules = [f"Rule {number}: ".ljust(length, "r") for number in range(10)]
    model = ScriptedModel(window=2_000)
    compacter = Compacter(
        compact_ratio=0.05,
        summarizer=lambda prompt, **_: "Done.",
        rules=rules,
        max_summary_tokens=50,
        recall=None,
    )

    compacter.wrap(model.completion)("m", talk_of(40, 200))

    assert model.rejected == 1
    assert all(rule in str(model.requests[-1].messages[1]["content"]) for rule in rules)
