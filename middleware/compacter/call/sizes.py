"""Sizes of a request in tokens: what the numbers of errors and replies teach, and what fits.

Pure. A `Calibration` has what is known of a model; these functions read it for one `Request`, and
update it by the provider's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from json import JSONEncoder
from typing import TYPE_CHECKING, Any

from compacter.compaction.plan import MARGIN, MOST_RESERVED, Calibration, most_tokens
from compacter.messages.refusals import SEALED
from compacter.overflow import TokenLimit

if TYPE_CHECKING:
    from compacter.call.call import Call
    from compacter.recall.passages import Quotes

LEAST_CUT = 200
"""Fewest tokens to which a server truncates a prompt, as no window is smaller. A server that says
that it has read fewer counts something else, such as the messages without the tools."""
FEWEST_QUOTED = 300
"""Least room for quotes, in characters with their frame; with less, none are sent."""
# Characters per token from which a stated size is accepted without checking it against the text.
_DENSE = 2.5
# Largest share of its expected tokens, by the model's calibration, that a truncated prompt has.
_CUT_SHARE = 0.6
# Fewest characters per token that a truncated prompt seems to have. English has 4 to 5.
_MOST_CHARACTERS = 7.0
# Histories of which three integers are kept.
_MOST_MEASURED = 256
LEAST_SCALE = 0.8
"""Tokens of English by the estimate for its script. A smaller ratio, learnt from a script that is
estimated too high or from pictures, must not make English quotes seem lighter than they are."""
# Share of the limit up to which quotes may fill a request while no number of the provider is known:
# the tokenizers in use differ by a seventh on one text.
_UNSURE_MARGIN = 0.85
# Share of the smallest refused request up to which quotes may fill one if the window is unknown: it
# may have been far over the window.
_REFUSED_BEFORE = 0.5


# -- the numbers of a token limit ------------------------------------------------------------------


def calibrate(call: Call, limit: TokenLimit) -> TokenLimit:
    """Calibrate by the numbers of the error that refused a call's request, and return the token
    limit with its input tokens filled in.
    """
    if limit.source == SEALED:
        return limit  # It says nothing about sizes.
    request = call.request
    calibration = call.calibration
    used = limit.input_tokens
    if used is None and limit.requested:
        used = limit.requested - request.output_that_counts(limit)
    calibration.window = limit.limit or calibration.window
    size = request.size
    if not used:
        refused = int(size * call.tokens_of_one)
        calibration.refused = min(refused, calibration.refused or refused)
        return limit
    is_believed = size >= used * _DENSE
    if not is_believed:
        # A number larger than the texts can have in tokens also counts something else.
        texts = request.conversation.texts()
        is_believed = used <= most_tokens(texts) + max(0, size - sum(map(len, texts)))
    if is_believed:
        calibration.learn(size, used)
    return replace(limit, input_tokens=used)


# -- the usage of a reply --------------------------------------------------------------------------


def missing_tokens(call: Call, tokens: int) -> int | None:
    """Return the tokens of a call's request if a server that read ``tokens`` has truncated it, else
    ``None``.

    Checked again by its texts alone: sizes of media are estimates, and old reasoning is not always
    read.
    """
    request = call.request
    if expected_tokens(request.size, tokens, call.calibration) is None:
        return None
    words = sum(map(len, request.conversation.texts())) + request.overhead
    return expected_tokens(words, tokens, call.calibration)


def expected_tokens(characters: int, tokens: int, calibration: Calibration) -> int | None:
    """Return the expected tokens of a request if the server read clearly fewer; ``None`` if it read
    all.
    """
    learnt = calibration.chars_per_token / _CUT_SHARE if calibration.learnt else 0.0
    return (
        calibration.tokens(characters)
        if characters > tokens * max(learnt, _MOST_CHARACTERS)
        else None
    )


def may_be_cut(
    messages: object,
    tokens: int,
    beside: Iterable[object] = (),
    earlier: dict[int, tuple[int, int, int]] | None = None,
) -> bool:
    """Return whether a server that read ``tokens`` may have truncated a request with these messages
    and, beside them, other arguments.

    Decided by the size of their data, without reading the messages: true if `missing_tokens` has to
    look more closely. ``earlier`` keeps three integers of a history, by its first message, so that
    of one that has grown only the new messages are measured.
    """
    if not isinstance(messages, (list, tuple)) or not messages:
        return True
    earlier = {} if earlier is None else earlier
    count, last, most = earlier.get(id(messages[0]), (0, 0, 0))
    if not count or count > len(messages) or id(messages[count - 1]) != last:
        count = most = 0
    try:
        most += len(_encode(messages[count:]))
        overhead = len(_encode([*beside]))
    except Exception:  # noqa: BLE001 - of an object that is not like JSON
        return True
    if len(earlier) >= _MOST_MEASURED:
        earlier.clear()
    earlier[id(messages[0])] = len(messages), id(messages[-1]), most
    return most + overhead > tokens * _MOST_CHARACTERS


def _members(value: Any) -> dict[str, Any]:
    """Return the members of a reply's object, which programs put into their history as it is."""
    return {**vars(value), **(getattr(value, "__pydantic_extra__", None) or {})}


_encode = JSONEncoder(ensure_ascii=False, check_circular=False, default=_members).encode


# -- room for quotes -------------------------------------------------------------------------------


def room_for_quotes(call: Call, recall: Quotes, window: int | None) -> tuple[int, int]:
    """Return the largest size that quotes in a request may have, and the size that the request
    leaves free, less than 0 if it is too large: in characters as dear as its own.

    ``window`` is the context window in tokens; ``None`` if it is unknown. Then a request may grow
    up to half the size of one that was refused.
    """
    request = call.request
    calibration = call.calibration
    of_quotes = max(call.tokens_of_one, request.tokens_of_one * LEAST_SCALE)
    wanted = int(recall.room_in_tokens(window) / of_quotes)
    if window is not None:
        output = min(request.output_tokens or 0, int(window * MOST_RESERVED))
        limit = (window - output) * (MARGIN if calibration.learnt else _UNSURE_MARGIN)
    elif calibration.refused:
        limit = calibration.refused * _REFUSED_BEFORE
    else:
        return wanted, wanted
    return wanted, int((limit - request.size * call.tokens_of_one) / of_quotes)
