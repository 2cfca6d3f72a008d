"""``compacter eval``: settings compared on conversations whose use of what was said is known."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compacter import models
from compacter.tools.cli import evaluate
from compacter.tools.cli.files import read_transcript
from compacter.tools.cli.replay import Score, Setting, replay, settings, telling, traced
from compacter.tools.cli.terminal import MistakeError

if TYPE_CHECKING:
    from tests.cli.conftest import Line, Run

    Write = Callable[[str, Any], Path]

FILLER = "The crew talks about the weather, the tide and the price of rope for a while. " * 6


def session() -> list[Line]:
    """An agent learns a ticket and a path early, and uses both at the end."""
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "open", "arguments": '{"path": "logs/berth_9.txt"}'},
    }
    talk: list[Line] = [
        {"role": "system", "content": "You keep the harbour's books."},
        {
            "role": "user",
            "content": (
                "Always answer in knots. The ticket of the crane is KX-4471-B, mind "
                "logs/berth_9.txt."
            ),
        },
        {"role": "assistant", "content": "Noted."},
    ]
    for number in range(20):
        talk.append({"role": "user", "content": f"{FILLER} That was day {number}."})
        talk.append({"role": "assistant", "content": f"Day {number} is noted."})
    talk.append({"role": "user", "content": "Close the ticket of the crane, and open its log."})
    talk.append({"role": "assistant", "content": "Closing KX-4471-B.", "tool_calls": [call]})
    return talk


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see logs/berth_9.txt.", {"logs/berth_9.txt": "path"}),
        ("C:\\work\\plan.md", {"C:\\work\\plan.md": "path"}),
        ("main.py and https://x.test/a?b=1", {"main.py": "path", "https://x.test/a?b": "path"}),
        (
            "ticket KX-4471-B, order_id, userName",
            dict.fromkeys(("KX-4471-B", "order_id", "userName"), "identifier"),
        ),
        ("paid 1,240.50 for 12 at 250", {"1,240.50": "number", "250": "number"}),
        ("plain words, a well-kept one, and 7", {}),
    ],
)
def test_what_tells_is_found(text: str, found: dict[str, str]) -> None:
    assert telling(text) == found


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a_" * 100_000, "1." * 100_000, "/" * 200_000, "aA1-" * 50_000]
)
def test_hostile_texts_are_read_in_linear_time(text: str) -> None:
    telling(text)


def test_a_cut_knows_what_was_used_after_it_and_could_be_known(write: Write) -> None:
    write("s.json", session())
    trace = traced(read_transcript("s.json"), window=1_000, cuts=2)
    assert trace
    assert trace.cuts[-1].needles == ("KX-4471-B", "logs/berth_9.txt")
    assert trace.cuts[-1].rules == ("Always answer in knots.",)
    assert trace.calls[-1] == len(session()) - 1


def score(strategy: str, write: Write, **options: Any) -> Score:
    write("s.json", session())
    trace = traced(read_transcript("s.json"), window=1_000, cuts=2)
    assert trace
    (setting,) = settings(strategies=[strategy], ratios=[0.7], recalls=[0], **options)
    made = Score(setting)
    replay(trace, setting, made)
    return made


def test_a_summary_keeps_what_truncation_loses(write: Write) -> None:
    lost = score("truncate", write)
    kept = score("extractive", write)
    assert lost.used_later == 0
    assert kept.used_later == 1
    assert kept.rules_kept == 1
    assert kept.rank < lost.rank
    assert lost.folds >= 1
    assert lost.refusals >= lost.folds


def test_every_call_that_does_not_fit_is_made_and_none_is_lost(write: Write) -> None:
    made = score("extractive", write)
    assert made.lost == 0
    assert made.size is not None
    assert 0 < made.size < 1


def test_a_model_is_asked_and_paid_for(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def completion(**options: Any) -> dict[str, Any]:
        asked.append(options["messages"])
        said = {
            "role": "assistant",
            "content": ("The crane has the ticket KX-4471-B; its log is logs/berth_9.txt."),
        }
        usage = {"prompt_tokens": 500, "completion_tokens": 20}
        return {"choices": [{"message": said, "finish_reason": "stop"}], "usage": usage}

    monkeypatch.setattr(models, "completion", completion)
    write("short.txt", "In one sentence: {history}")
    made = score("model", write, model="gpt-4o", prompts=["short.txt"])
    assert made.setting.prompt_name == "short"
    assert "In one sentence" in json.dumps(asked[0])
    assert made.used_later == 1
    assert made.tokens == 520 * made.folds
    assert made.cost == pytest.approx(made.folds * (models.cost("gpt-4o", 500, 20) or 0))


def test_the_table_has_the_best_first_and_says_how_to_set_it(run: Run, write: Write) -> None:
    write("s.json", session())
    told = run("eval", "s.json", "--window", "1000")
    assert told.code == 0, told.err
    assert "Best: Compacter(compact_ratio=" in told.out
    assert "used later" in told.out
    data = run("eval", "s.json", "--window", "1000", "--json").data
    kept = [setting["kept"] for setting in data["settings"]]
    assert kept == sorted(kept, reverse=True)
    assert len(kept) == 12


def idle() -> list[Line]:
    """A conversation in which nothing is used again."""
    talk: list[Line] = []
    for _ in range(20):
        talk += [
            {"role": "user", "content": FILLER},
            {"role": "assistant", "content": "That is so."},
        ]
    return [*talk, {"role": "user", "content": "Thanks."}]


def test_where_nothing_can_be_measured_nothing_is_the_best(run: Run, write: Write) -> None:
    write("s.json", idle())
    told = run("eval", "s.json", "--window", "1000")
    assert "Best" not in told.out
    assert "Nothing can be measured" in told.out
    assert "--probes" in told.out
    assert "1 conversation, " in told.out
    data = run("eval", "s.json", "--window", "1000", "--json").data
    assert data["best"] is None
    assert {setting["kept"] for setting in data["settings"]} == {None}
    told = run("eval", "s.json", "--window", "1000", "--fail-under", "0")
    assert (told.code, "nothing could be measured" in told.err) == (1, True)


def test_where_all_settings_keep_the_same_none_is_the_best(run: Run, write: Write) -> None:
    write("s.json", session())
    told = run("eval", "s.json", "--window", "1000", "--strategy", "extractive")
    assert "All settings keep the same" in told.out
    assert "Best" not in told.out


def test_of_settings_that_tie_the_one_that_holds_more_comes_first(run: Run, write: Write) -> None:
    write("s.json", session())
    data = run("eval", "s.json", "--window", "1000", "--json").data
    tied = [
        setting for setting in data["settings"] if setting["kept"] == data["settings"][0]["kept"]
    ]
    sizes = [setting["size"] for setting in tied]
    assert len(tied) > 1
    assert sizes == sorted(sizes, reverse=True)
    assert f"{len(tied) - 1} others keep as much" in run("eval", "s.json", "--window", "1000").out


@pytest.mark.parametrize("width", [20, 40, 60])
def test_a_narrow_terminal_breaks_no_word(
    run: Run, write: Write, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("s.json", session())
    monkeypatch.setenv("COLUMNS", str(width))
    told = run("eval", "s.json", "--window", "1000")
    assert {"extractive", "truncate", "refusals", "kept"} <= set(re.findall(r"\w+", told.out))


def test_the_shell_completes_strategies() -> None:
    from compacter.tools.cli.app import _strategies

    assert _strategies("e") == ["extractive"]


def test_fail_under_is_for_continuous_integration(run: Run, write: Write) -> None:
    write("s.json", session())
    words = (
        "eval",
        "s.json",
        "--window",
        "1000",
        "--strategy",
        "truncate",
        "--ratio",
        "0.9",
        "--recall",
        "0",
    )
    assert run(*words, "--fail-under", "0.0").code == 0
    told = run(*words, "--fail-under", "0.9")
    assert told.code == 1
    assert "less than 90.0%" in told.err


def test_probes_ask_at_the_end(run: Run, write: Write) -> None:
    write("s.json", session())
    rows = [
        {"conversation": "s", "question": "Which ticket has the crane?", "answer": "KX-4471-B"},
        {
            "conversation": "s",
            "question": "What is the moon made of?",
            "answer": ["green", "cheese"],
        },
    ]
    write("probes.jsonl", rows)
    words = (
        "--window",
        "1000",
        "--strategy",
        "extractive",
        "--ratio",
        "0.7",
        "--recall",
        "0",
        "--json",
    )
    data = run("eval", "s.json", "--probes", "probes.jsonl", *words).data
    assert data["settings"][0]["probes"] == 0.5


def test_more_settings_than_fit_on_a_page_are_counted_and_written_as_code(
    run: Run, write: Write
) -> None:
    write("s.json", session())
    words = [word for ratio in ("0.5", "0.6", "0.7", "0.8", "0.9") for word in ("--ratio", ratio)]
    told = run(
        "eval",
        "s.json",
        "--window",
        "1000",
        "--strategy",
        "clear",
        "--strategy",
        "truncate",
        *words,
    )
    assert told.code == 0, told.err
    assert "and 8 more; --json has them all" in told.out
    assert "Best: Compacter(compact_ratio=" in told.out
    assert "strategy=[ClearToolResults(), Summarize()]" in told.out


def test_a_call_that_no_setting_saves_is_counted_as_lost(run: Run, write: Write) -> None:
    talk = session()
    talk[31] = {"role": "user", "content": FILLER * 40}
    write("s.json", talk)
    data = run("eval", "s.json", "--window", "1000", "--strategy", "extractive", "--json").data
    assert data["settings"][0]["lost"] == 1


def test_a_word_of_the_question_is_no_answer(run: Run, write: Write) -> None:
    write("s.json", session())
    write(
        "probes.jsonl", [{"question": "Is the harbour master called Zebulon?", "answer": "Zebulon"}]
    )
    words = (
        "--window",
        "1000",
        "--strategy",
        "extractive",
        "--ratio",
        "0.7",
        "--recall",
        "0",
        "--json",
    )
    assert (
        run("eval", "s.json", "--probes", "probes.jsonl", *words).data["settings"][0]["probes"] == 0
    )


def test_several_files_and_a_window_of_their_own(run: Run, write: Write) -> None:
    write("a.json", session())
    write("b.jsonl", [{"id": "x", "messages": session()}, {"id": "y", "messages": session()[:4]}])
    told = run("eval", "a.json", "b.jsonl", "--strategy", "truncate", "--json")
    assert [each["name"] for each in told.data["conversations"]][:2] == ["a.json", "x"]
    assert all(each["window"] < each["characters"] // 4 for each in told.data["conversations"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--window", "900000"), "the conversation fits into the window"),
        (("--strategy", "magic"), "--strategy magic"),
        (("--strategy", "model"), "needs --model"),
        (("--prompt", "p.txt"), "--prompt needs --model"),
        (("--ratio", "3"), "--ratio: "),
        (("--recall", "-1"), "--recall: "),
        (("--probes", "bad.jsonl"), "bad.jsonl, line 1"),
        (("--probes", "words.jsonl"), "words.jsonl, line 2"),
        (("--probes", "empty.jsonl"), "empty.jsonl, line 1"),
        (("--probes", "other.jsonl"), "no probe"),
    ],
)
def test_a_mistake_gets_one_line(run: Run, write: Write, words: tuple[str, ...], said: str) -> None:
    write("s.json", session())
    write("bad.jsonl", '{"question": 3}\n')
    write("words.jsonl", '{"question": "q", "answer": "a"}\nWhich ticket?\n')
    write("empty.jsonl", [{"question": "q", "answer": ["a", " "]}])
    write("other.jsonl", [{"conversation": "nobody", "question": "q", "answer": "a"}])
    told = run("eval", "s.json", *words)
    assert told.code == 2
    assert said in told.err


def test_the_settings_to_compare_know_their_strategies() -> None:
    with pytest.raises(MistakeError, match="unknown"):
        settings(strategies=["none"])
    assert len(settings(model="m")) == 16


def scores(*kept: list[float]) -> list[Score]:
    setting = Setting(strategy="truncate", ratio=0.7, recall=None)
    return [Score(setting, needles=list(needles)) for needles in kept]


def test_a_difference_that_may_be_chance_is_called_a_tie() -> None:
    close = scores([1.0, 0.0, 1.0, 0.2], [0.9, 0.1, 0.2, 0.9])
    assert "That is a tie" in evaluate._certainty(close)


def test_a_difference_at_each_cut_is_told_with_its_doubt() -> None:
    clear = scores([0.9, 0.8, 0.9, 0.8, 0.9], [0.4, 0.3, 0.4, 0.3, 0.5])
    told = evaluate._certainty(clear)
    assert "It keeps 48.0 points more than the next one, plus or minus" in told


def test_a_difference_at_two_cuts_says_nothing() -> None:
    assert "That is a tie" in evaluate._certainty(scores([1.0, 1.0], [0.0, 0.0]))
