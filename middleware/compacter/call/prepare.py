"""Compactions made ahead: when the next one is made, and what it compacts.

Pure. A reply shows that a conversation has reached the size for it; `begin_ahead` then asks for the
next compaction, and `make_ahead` makes it while the program goes on (``call/ahead.py``). It is
stored like any other, in a scope of its own, and put in force only when one is due
(``smaller.enforce_prepared``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compacter.call.smaller import compact_history
from compacter.compaction.cut import is_agents
from compacter.compaction.plan import MARGIN, threshold

if TYPE_CHECKING:
    from compacter.call.call import Call

SCOPE = "\0prepared"
"""Added to the scope of a compaction that is not in force yet, so that no call takes it for one."""
_NOTED = 1 / 2
"""Share of the size for a preparation from which requests are noted: only one that continues the
request before begins a preparation."""
# Latest size to begin at, as a share of the size at which a compaction is due: the summary takes as
# long as several turns.
_BEFORE_LIMIT = 7 / 8
# Share of the window at which `prepare_tokens` is taken to be if the window is unknown: the value
# that the presets have.
_USUAL = 0.7
# Share of what is compacted that must be gone once the compaction is in force: with a larger
# summary the next one would be due after a few turns.
_GONE = 0.7
# Least size to compact to, as a share of the size at which a compaction is due: room for a summary
# if the conversation still has far to grow.
_LEAST_LEFT = 0.25
# Largest share of the compactable size that is compacted ahead, so that the newest step, which the
# model is working on, stays.
_MOST_COMPACTED = 0.97


async def begin_ahead(call: Call, tokens: int) -> None:
    """Have the next compaction made ahead if the request, which had so many input tokens, has
    reached the size for it; from half of that on, have the request noted.

    It compacts what would be compacted if the request had grown up to the size at which a
    compaction is due, at the trigger or where it would exceed the window: until it is in force, the
    conversation grows by the rest. Asked for are the share of the compactable size, 0 to note the
    request only, and the largest size of the messages afterwards, in characters.
    """
    options = call.options
    request = call.request
    calibration = call.calibration
    window = calibration.window
    begin = threshold(options.prepare_tokens or 0, window, request.output_tokens or 0)
    if begin is None:
        await call.skip_once("prepared")
        return
    tokens = (tokens or calibration.tokens(request.size)) - calibration.tokens(len(request.quotes))
    due = call.threshold() or int((window or 0) * MARGIN)
    if due:
        begin = max(1, min(begin, int(due * _BEFORE_LIMIT)))
    if tokens < begin:
        if tokens >= begin * _NOTED:
            await call.world.prepare(0.0, 1)
        return
    due = due or int(begin / _USUAL)
    # Of an agent's steps what comes until then is the tail: the room is divided as it would be at
    # that size.
    ratio = _MOST_COMPACTED
    left = 1.0
    if "compact_ratio" in options.model_fields_set or not is_agents(request.conversation):
        growth = max(1.0, due / tokens)
        ratio = max(options.compact_ratio, min(_MOST_COMPACTED, options.compact_ratio * growth))
        left = max(_LEAST_LEFT, 1 - options.compact_ratio * _GONE - (1 - 1 / growth))
    target = int(due * left * calibration.chars_per_token) - request.overhead
    await call.world.prepare(ratio, max(1, target))


async def make_ahead(call: Call, ratio: float, target: int) -> None:
    """Make a compaction and remember it.

    There is no fallback: a failing summarizer is asked again when the compaction is due. Raises
    ``CompactionError`` then.
    """
    # What is in the memory, or made ahead, was looked at before.
    update: dict[str, object] = {"prepare_tokens": None, "memory": None}
    update |= {"compact_ratio": ratio, "fallback": ()}
    if "summary_request" not in call.options.model_fields_set:
        # The provider's cache has what the program has just sent.
        update["summary_request"] = "native"
    call.options = call.options.model_copy(update=update)
    await compact_history(call, target, "prepared")
