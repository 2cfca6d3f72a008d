"""``compacter eval``: find the settings that keep most of what a user's own conversations needed
later.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from compacter.tools.cli.files import Transcript, read_transcripts, tell_skipped
from compacter.tools.cli.replay import Probe, Score, Setting, Trace, replay, traced
from compacter.tools.cli.terminal import (
    MistakeError,
    print_json,
    print_table,
    read_text,
    remarks,
    results,
)
from compacter.tools.report import plural

_SHOWN = 12
"""Settings that the table shows; ``--json`` has all."""
_SURE = 2.0
"""Standard errors from which a difference is called one: chance gives as much in 5 of 100."""


def run(
    paths: Sequence[str],
    settings: Sequence[Setting],
    *,
    window: int | None,
    cuts: int,
    probes: str | None,
    fail_under: float | None,
    as_json: bool,
) -> int:
    """Print the scores, best first, and return the exit code: 1 if the best keeps less than
    ``fail_under``.
    """
    files = [file for path in paths for file in read_transcripts(path)]
    for file in files:
        tell_skipped(file)
    asked = _probes(probes) if probes else {}
    traces, short = _traces(files, asked, window, cuts)
    console = remarks()
    if probes and not any(trace.probes for trace in traces):
        raise MistakeError(
            f'{probes}: no probe has the name of a conversation as its "conversation"'
        )
    if not traces:
        which = (
            "the conversation fits" if len(files) == 1 else (f"all {len(files)} conversations fit")
        )
        raise MistakeError(
            f"{which} into the window: there is nothing to compact. Pass a smaller --window"
        )
    if short:
        console.print(
            f"left out, as they fit into the window: {short} of {len(files)}", style="yellow"
        )
    scores = sorted(_play(console, traces, settings), key=lambda score: score.rank)
    if as_json:
        print_json(_as_data(scores, traces))
    else:
        _show(results(), scores, traces)
    best = scores[0].kept
    if fail_under is not None and (best is None or best < fail_under):
        words = (
            "nothing could be measured" if best is None else (f"the best setting keeps {best:.1%}")
        )
        console.print(f"{words}, less than {fail_under:.1%}", style="red")
        return 1
    return 0


def _tie(scores: Sequence[Score]) -> str:
    """Return why no setting is the best; empty if one is."""
    if scores[0].kept is None:
        return (
            "Nothing can be measured here: no identifier, path or number was used again, "
            "and there are no rules."
        )
    if len(scores) > 1 and scores[0].worth == scores[-1].worth:
        return "All settings keep the same share of these conversations."
    return ""


def _certainty(scores: Sequence[Score]) -> str:
    """Return how sure it is that the best setting is better than the next different one."""
    other = next((score for score in scores if score.worth != scores[0].worth), None)
    if other is None:
        return ""
    points = 100 * ((scores[0].kept or 0.0) - (other.kept or 0.0))
    doubt = 100 * scores[0].standard_error(other)
    if points <= _SURE * doubt:
        return (
            f"That is a tie: it keeps {points:.1f} points more than the next one, which may be "
            f"chance (plus or minus {_SURE * doubt:.1f} points)."
        )
    return (
        f"It keeps {points:.1f} points more than the next one, "
        f"plus or minus {_SURE * doubt:.1f} points."
    )


def _probes(path: str) -> dict[str, list[Probe]]:
    found: dict[str, list[Probe]] = defaultdict(list)
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            probe = _probe(line)
            if probe is None:
                shape = '{"conversation": "...", "question": "...", "answer": "..."}'
                raise MistakeError(f"{path}, line {number} is not a probe; expected {shape}")
            found[probe[0]].append(probe[1])
    return found


def _probe(line: str) -> tuple[str, Probe] | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("question"), str):
        return None
    answer = data.get("answer")
    given = answer if isinstance(answer, list) else [answer]
    answers = tuple(each for each in given if isinstance(each, str) and each.strip())
    if not answers or len(answers) < len(given):
        return None
    return str(data.get("conversation", "")), Probe(data["question"], answers)


def _traces(
    files: Sequence[Transcript], asked: dict[str, list[Probe]], window: int | None, cuts: int
) -> tuple[list[Trace], int]:
    """Return the conversations that exceed the window, and the number of those that fit."""
    found: list[Trace] = []
    for file in files:
        names = {file.id, file.name, Path(file.name).stem} - {""}
        # With a single conversation, a probe need not name it.
        probes = [probe for name in names for probe in asked.get(name, ())]
        probes += asked.get("", ()) if len(files) == 1 else ()
        trace = traced(file, window=window, cuts=cuts, probes=probes)
        if trace is not None:
            found.append(trace)
    return found, len(files) - len(found)


def _play(console: Console, traces: Sequence[Trace], settings: Sequence[Setting]) -> list[Score]:
    bars = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    scores = [Score(setting) for setting in settings]
    if not console.is_terminal:  # The bar is only drawn on one; nobody should wait without a word.
        counts = f"{plural(len(traces), 'conversation')}, {plural(len(scores), 'setting')}"
        console.print(f"replaying {counts}", markup=False)
    with Progress(*bars, console=console, transient=True) as progress:
        task = progress.add_task("replaying", total=len(traces) * len(scores))
        for score in scores:
            progress.update(task, description=score.setting.name)
            for trace in traces:
                replay(trace, score.setting, score)
                progress.advance(task)
    return scores


def _as_data(scores: Sequence[Score], traces: Sequence[Trace]) -> dict[str, object]:
    return {
        "conversations": [
            {
                "name": trace.name,
                "window": trace.window,
                "messages": len(trace.messages),
                "characters": trace.size,
                "calls": len(trace.calls),
                "cuts": [cut.at for cut in trace.cuts],
                "needles": [len(cut.needles) for cut in trace.cuts],
                "rules": [len(cut.rules) for cut in trace.cuts],
                "probes": len(trace.probes),
            }
            for trace in traces
        ],
        "best": None if _tie(scores) else _as_code(scores[0]),
        "settings": [
            {
                "strategy": score.setting.strategy,
                "ratio": score.setting.ratio,
                "recall": score.setting.recall or 0,
                "prompt": score.setting.prompt_name or None,
                "kept": None if score.kept is None else round(score.kept, 4),
                "used_later": score.used_later,
                "rules": score.rules_kept,
                "probes": score.answered,
                "size": score.size,
                "refusals": score.refusals,
                "lost": score.lost,
                "folds": score.folds,
                "failures": score.failures,
                "summarizer_tokens": score.tokens,
                "cost": score.cost,
            }
            for score in scores
        ],
    }


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.0%}"


def _show(console: Console, scores: Sequence[Score], traces: Sequence[Trace]) -> None:
    needles = sum(len(cut.needles) for trace in traces for cut in trace.cuts)
    counted = sum(len(trace.cuts) for trace in traces)
    console.print(
        f"{plural(len(traces), 'conversation')}, "
        f"{plural(sum(len(trace.calls) for trace in traces), 'call')} that do "
        f"not fit, {plural(counted, 'cut')} with {needles:,} identifiers, paths and "
        f"numbers that were used later"
    )
    columns: dict[str, Callable[[Score], str]] = {
        "strategy": lambda score: " ".join(
            filter(None, (score.setting.strategy, score.setting.prompt_name))
        ),
        "ratio": lambda score: f"{score.setting.ratio:g}",
        "recall": lambda score: f"{score.setting.recall or 0:g}",
        "kept": lambda score: "–" if score.kept is None else f"{score.kept:.1%}",
        "used later": lambda score: _share(score.used_later),
        "rules": lambda score: _share(score.rules_kept),
        "probes": lambda score: _share(score.answered),
        "size": lambda score: _share(score.size),
        "refusals": lambda score: f"{score.refusals:,}",
        "lost": lambda score: f"{score.lost:,}",
        "compactions": lambda score: f"{score.folds:,}",
        "tokens": lambda score: f"{score.tokens:,}",
        "USD": lambda score: "–" if score.cost is None else f"{score.cost:.4f}",
    }
    # Columns without any values are left out.
    empty = {"–", "0", "0.0000"}
    shown = {
        name: read
        for name, read in columns.items()
        if name == "recall" or {*map(read, scores)} - empty
    }
    tie = _tie(scores)
    print_table(
        console,
        list(shown),
        [[read(score) for read in shown.values()] for score in scores[:_SHOWN]],
        best=not tie,
    )
    if len(scores) > _SHOWN:
        console.print(f"and {len(scores) - _SHOWN} more; --json has them all", style="dim")
    if tie:
        probes = (
            ""
            if any(trace.probes for trace in traces)
            else (", or ask questions of your own with --probes")
        )
        console.print(
            f"{tie} Take longer conversations or a smaller --window{probes}.", style="yellow"
        )
        return
    same = sum(score.worth == scores[0].worth for score in scores) - 1
    also = f"  # {plural(same, 'other')} {'keeps' if same == 1 else 'keep'} as much" if same else ""
    console.print(f"Best: {_as_code(scores[0])}{also}", markup=False, soft_wrap=True)
    if certainty := _certainty(scores):
        console.print(certainty, markup=False, soft_wrap=True)


def _as_code(score: Score) -> str:
    setting = score.setting
    options = [f"compact_ratio={setting.ratio:g}", f"recall={setting.recall}"]
    match setting.strategy:
        case "truncate":
            options.append("strategy=Truncate()")
        case "clear":
            options.append('strategy=[ClearToolResults(), Summarize()], summarizer="extractive"')
        case "model":
            options.append(f"summarizer={setting.model!r}")
        case _:
            options.append('summarizer="extractive"')
    if setting.prompt_name:
        options.append(f"strategy=Summarize(prompt=...)  # {setting.prompt_name}")
    return f"Compacter({', '.join(options)})"
