"""No function of the user's takes what compacter inserted for a part of the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from tests.effort import times

from compacter import Compacter, History, Quotes
from compacter.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tests.promises.conftest import SummariesIn

    from compacter import CompactionPlan
    from compacter.lines.passages import Passage

Chat = dict[str, Any]

TURNS = times(40, long=90)
"""Several compactions."""
PINS: dict[str, Callable[[Any], bool]] = {
    "every user message": lambda message: message["role"] == "user",
    "a word": lambda message: "compacter" in str(message["content"]),
    "a word of the frame": lambda message: "word for word" in str(message["content"]),
    "a short message": lambda message: len(str(message["content"])) < 40,
    "a long message": lambda message: len(str(message["content"])) > 390,
    "all but the assistant's": lambda message: message["role"] != "assistant",
}


def play(compacter: Compacter, turns: int) -> list[list[Chat]]:
    """Talk for so many turns, in which the caller resends everything; the requests answered."""
    model = ScriptedModel(window=1_800)
    call = compacter.wrap(model.completion)
    history: list[Chat] = [{"role": "system", "content": "Be brief."}]
    accepted = []
    for turn in range(turns):
        history.append({"role": "user", "content": f"Next part {turn}."})
        call(model="scripted", messages=history)
        accepted.append(list(model.requests[-1].messages))
        history.append({"role": "assistant", "content": f"Part {turn}: ".ljust(300, "w")})
    return accepted


@pytest.mark.parametrize("alternate", [None, True])
@pytest.mark.parametrize("pin", PINS.values(), ids=PINS)
def test_a_pin_never_keeps_a_summary_or_a_filler(
    pin: Callable[[Any], bool], alternate: bool | None, summaries_in: SummariesIn
) -> None:
    compacter = Compacter(summarizer="extractive", pin=pin, alternate_roles=alternate)

    accepted = play(compacter, TURNS)

    assert len(accepted) == TURNS
    assert max(len(summaries_in(request)) for request in accepted) == 1
    last = [str(message["content"]) for message in accepted[-1]]
    fillers = sum(text.startswith("[compacter]") for text in last)
    own = len(last) - fillers - 1
    assert fillers <= own


@pytest.mark.parametrize("pin", PINS.values(), ids=PINS)
def test_a_history_keeps_one_summary(pin: Callable[[Any], bool], summaries_in: SummariesIn) -> None:
    compacter = Compacter(summarizer="extractive", pin=pin, alternate_roles=True)
    history = History(compacter=compacter, max_tokens=2_500)

    for turn in range(TURNS):
        history.append({"role": "user", "content": f"Next part {turn}."})
        history.append({"role": "assistant", "content": f"Part {turn}: ".ljust(300, "w")})
        history.compact_if_needed()

    assert len(summaries_in(list(history))) == 1
    assert history.tokens() < 2_500


def test_hooks_and_searches_see_only_what_was_said() -> None:
    seen: list[str] = []

    def search(question: str, passages: Sequence[Passage]) -> list[float]:
        seen.extend([question, *(passage.text for passage in passages)])
        return [1.0] * len(passages)

    def look(plan: CompactionPlan) -> CompactionPlan:
        seen.extend(str(message["content"]) for message in plan.head)
        return plan

    def shorten(text: str, size: int) -> str:
        seen.append(text)
        return text[:size]

    def pin(message: Chat) -> bool:
        seen.append(str(message["content"]))
        return False

    model = ScriptedModel(window=1_200)
    compacter = Compacter(
        summarizer="extractive",
        pin=pin,
        before_compaction=look,
        recall=Quotes(search=search),
        alternate_roles=True,
        retrieved=shorten,
    )
    call = compacter.wrap(model.completion)
    history: list[Chat] = []
    for turn in range(60):
        said = f"What did the harbour log say of ship number {turn // 2}?"
        history.append({"role": "user", "content": said})
        call(model="scripted", messages=history)
        text = f"The log of ship number {turn} says: {'cargo ' * 40}"
        history.append({"role": "assistant", "content": text})

    assert compacter.totals.rounds > 2
    assert not [text for text in seen if "[compacter" in text]


def test_redact_sees_a_rule_without_its_label(summaries_in: SummariesIn) -> None:
    compacter = Compacter(
        summarizer="extractive",
        redact=lambda text: text.replace("Rule: ", "").replace("ledger", "[secret]"),
        rules=("Never open the ledger on a Sunday.",),
    )
    history = [
        {"role": ("user", "assistant")[at % 2], "content": f"Word {at}: ".ljust(300, "w")}
        for at in range(20)
    ]

    result = compacter.compact(history)
    again = compacter.compact([*result.messages, *history[1:]])

    (text,) = summaries_in(again.messages)
    assert "Rule: Never open the [secret] on a Sunday." in text
