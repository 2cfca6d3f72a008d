"""A History: snapshots, installation, streams."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, History
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError, token_limit_error

if TYPE_CHECKING:
    from tests.promises.conftest import MakeStage, SummariesIn, Talk


def compacter(**options: Any) -> Compacter:
    options.setdefault("summarizer", ScriptedSummarizer("Short."))
    return Compacter(**options)


def test_compaction_between_steps_of_a_loop(stage: MakeStage, talk: type[Talk]) -> None:
    scene = stage(window=700)
    history = talk.errand(0)
    record = talk.errand(0)[:0]
    steps: list[int] = []

    for number in range(12):
        scene.ask(history)
        steps.append(len(scene.told))
        step = [
            talk.calls(f"call_{number}"),
            talk.result(f"call_{number}", talk.text(f"result {number}", 300)),
        ]
        history += step
        record += step

    compacted = scene.kinds().index("CompactionEvent")
    assert steps[0] == 0
    assert any(earlier <= compacted < later for earlier, later in pairwise(steps))
    assert history[2:] == record


def test_persistent_overflow_leaves_the_history_as_it_was(talk: type[Talk]) -> None:
    refusal = token_limit_error("bedrock", limit=10, input_tokens=20)
    history = History(talk.turns(20))
    before = history.snapshot()

    with pytest.raises(TokenLimitError) as caught:
        compacter(compact_ratio=0.3).wrap(ScriptedModel(window=10**9, replies=refusal).completion)(
            "m", history
        )

    assert caught.value is refusal
    assert history.snapshot() == before


@pytest.mark.parametrize("is_read", [True, False])
def test_a_stream_installs_what_was_compacted(talk: type[Talk], *, is_read: bool) -> None:
    """Also one that is closed before its end: its request was answered."""
    model = ScriptedModel(window=600, replies="a long answer in many chunks", chunk_size=3)
    history = History(talk.turns(12))

    with compacter(recall=None).wrap(model.completion)("m", history, stream=True) as stream:
        assert list(stream) if is_read else next(stream)

    assert list(history) == list(model.requests[-1].messages)


def test_a_conversation_goes_on_after_a_restart(
    talk: type[Talk], summaries_in: SummariesIn
) -> None:
    before = History(talk.turns(12))
    compacter().wrap(ScriptedModel(window=600).completion)("m", before)
    stored = before.snapshot()

    model = ScriptedModel(window=600)
    after = History()
    after.restore(stored)
    completion = compacter().wrap(model.completion)
    for turn in talk.turns(20)[1:]:
        after.append(turn)
        if turn["role"] == "user":
            completion("m", after)

    assert model.invalid == 0
    assert model.rejected > 0
    assert len(summaries_in(list(after))) == 1
