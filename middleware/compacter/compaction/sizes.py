"""Sizes that requests, summaries and quotes may have, and the numbers that decide them.

`Sizes` computes the sizes of one request and its compaction. They are data sizes in characters
unless tokens are named.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from compacter.compaction.calibration import CHARS_PER_TOKEN, Calibration
from compacter.compaction.settings import Settings
from compacter.summary.message import FRAME

# -- the numbers, each with what set it ------------------------------------------------------------

MARGIN = 0.97
"""Share of a limit to aim at, as sizes in tokens are estimates. On agents with made-up tasks .94
had .98 of the needs in the request, .97 had .99, and .99 had .96 and four more refused requests."""
MOST_RESERVED = 0.5
"""Largest share of the window that is reserved for the output: many programs set the output limit
to the whole window, which would leave no room for any input."""
TARGET_SHARE = 0.9
"""Size to compact to, as a share of the threshold, so that the next message does not trigger again.
Between .8 and .97 it changes nothing on agents with made-up tasks."""
GROWN = 1.25
"""Growth after which a history that stayed above the threshold is compacted again, as a multiple of
its size: each try costs a summary, and what must stay has not become smaller."""
FILLING = 0.8
"""Share of a known window from which an event says that a conversation fills it."""
# Part of the window that a model's text may take, and its share with the lines beside it. On agents
# with made-up tasks an eighth had 1.00 of the needs in the request, a quarter .96, a twelfth .99;
# on real runs a quarter had .868 of the names, an eighth .836.
_SUMMARY_PART = 8
_WITH_LINES = 1.5
# Parts of what a summary replaces: of a summary without a model, and of lines beside a model's
# text. Times .6 and 1.5 they change neither made-up tasks nor real runs.
_EXTRACT_PART = 3
_LINES_PART = 6
LEAST_TEXT = 300
"""Smallest text of a summary: two or three sentences. Times .6 and 1.5 it changes nothing either.
"""
LEAST_SUMMARY = FRAME + LEAST_TEXT
"""Smallest size of a summary message, without the declared rules."""
# Share of a budget given by hand that a summary without a model gets: passages chosen from the head
# are needed later more often than a tail. On real conversations at a fifth of their size: facts .55
# with half of it, .62 with .85, .68 with all.
_OF_BUDGET = 0.92
CAREFUL_MARGIN = 0.9
"""Share of a limit to aim at where a refusal is not worth it: the newest messages may cost more
tokens a character than those that were counted. With quotes 12 requests of agents with made-up
tasks are refused with .9 and .93, and 14 with .97."""
# Latest size to begin a preparation at, as a share of the size at which a compaction is due: the
# summary takes as long as several turns. On agents with made-up tasks .75 costs 3 % more tokens,
# and .95 changes nothing.
_BEFORE_LIMIT = 7 / 8
# Compactions that are made ahead, or for quotes, and count as one after which a window is tried
# again. On agents with made-up tasks, 1 leaves a need out in 90, and refuses two requests more.
_RARELY = 8


# -- one request -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sizes:
    """Calculates the sizes that one request, its summary and its quotes may have, from the options
    and from what is known of the model. Sizes are in characters, unless a name says tokens.
    """

    options: Settings
    """The ``Options`` of the ``Compacter``."""
    calibration: Calibration = field(default_factory=Calibration)
    overhead: int = 0
    """Size of the tools, and of a system prompt outside the messages."""
    output_tokens: int = 0
    """Output limit of the request; 0 without one."""

    def target(
        self, limit: int | None, output_tokens: int, chars_per_token: float = 0.0
    ) -> int | None:
        """Return the largest size of the messages with which the request fits; ``None`` if no limit
        is known.

        Args:
            limit: The limit of a refusal, in tokens, in place of the window.
            output_tokens: Tokens of the output that the limit counts too.
            chars_per_token: Characters per token, in place of the calibration's.
        """
        window = limit or self.calibration.window
        if not window:
            return None
        room = (window - output_tokens) * MARGIN
        room *= chars_per_token or self.calibration.chars_per_token
        return max(0, int(room) - self.overhead)

    # -- before any refusal ------------------------------------------------------------------------

    @property
    def tries_window(self) -> bool:
        """Whether requests may grow past the window, until one is answered or refused.

        A server may take more than it once did, and no request would show it if each was compacted
        below the window. So one of these compactions is left to a refusal: after one of them, after
        two more, after four more. It takes more of them if they are made ahead, as then no call
        should wait, or for quotes, as the request that is tried has none.
        """
        learnt = self.calibration
        options = self.options
        often = options.trigger_tokens is not None and options.prepare_tokens is None
        patience = learnt.patience * (1 if often else _RARELY)
        return (learnt.is_stated or learnt.is_bracketed) and learnt.compactions >= patience

    def threshold(self, trigger: float) -> int | None:
        """Return the input tokens from which a compaction is due, with room for the output.

        ``None`` for a share of an unknown window.

        Args:
            trigger: Tokens, or as a ``float`` a share of the window.
        """
        window = self.calibration.window
        is_share = not isinstance(trigger, int)
        if window is None:
            return None if is_share else int(trigger)
        wanted = int(trigger * window if is_share else trigger)
        return max(1, min(wanted, self._for_input(window)))

    def _for_input(self, window: int) -> int:
        """Return the tokens of a window that are left for the input."""
        return window - min(self.output_tokens, int(window * MOST_RESERVED))

    @property
    def trigger(self) -> int | None:
        """The input tokens from which the option ``trigger_tokens`` compacts. ``None`` without it,
        and for a function, which is called before each request.
        """
        trigger = self.options.trigger_tokens
        if trigger is None or callable(trigger):
            return None
        if self.tries_window:
            return trigger if isinstance(trigger, int) else None
        return self.threshold(trigger)

    @property
    def room(self) -> int | None:
        """The largest number of input tokens that a request is to have: the window, or the
        threshold of ``trigger_tokens`` while no window is known. ``None`` if there is neither.
        """
        return self.calibration.window or self.trigger

    def below(self, limit: int, size: int, tokens: int, size_above: int = 0) -> int | None:
        """Return the size, in characters, that the whole request should have after a compaction;
        ``None`` if no compaction is due.

        Args:
            limit: The threshold, in tokens.
            size: Size of all that is sent.
            tokens: Size of all that is sent, in tokens.
            size_above: Size of a history that stayed above the threshold although it was compacted,
                or 0. It must have grown before the next try.
        """
        if tokens < limit or size <= size_above * GROWN:
            return None
        return max(1, int(size * limit * TARGET_SHARE / tokens))

    def bounds_ahead(self) -> tuple[int, int] | None:
        """Return the input tokens from which a compaction is made ahead, and those from which it is
        due; ``None`` for a share of an unknown window.
        """
        begin = self.threshold(self.options.prepare_tokens or 0)
        if begin is None:
            return None
        limit = self.trigger or int((self.calibration.window or 0) * MARGIN)
        limit = limit or int(begin / _BEFORE_LIMIT)
        return max(1, min(begin, int(limit * _BEFORE_LIMIT))), limit

    def ahead(self, tokens: int) -> tuple[float, int] | None:
        """Return the share of the compactable size to compact ahead, and the largest size of the
        messages afterwards; a share of 0 if that is not due yet. ``None`` for a share of an unknown
        window.

        It leaves as much as a compaction at the threshold would, because the conversation grows
        until this one is used.

        Args:
            tokens: Input tokens of the request.
        """
        bounds = self.bounds_ahead()
        if bounds is None:
            return None
        begin, limit = bounds
        if tokens < begin:
            return 0.0, 1
        growth = max(0.0, 1 - tokens / limit)
        target = int(limit * self.calibration.chars_per_token) - self.overhead
        return min(1.0, self.options.compact_ratio + growth), max(1, target)

    # -- quotes ------------------------------------------------------------------------------------

    def quotes(self, size: int, script: float) -> tuple[int, int]:
        """Return the largest size that quotes in a request may have, and the size that the request
        leaves free (negative if it is too large), in characters of the request's script.

        If the window is unknown, a request may grow up to half the size of one that was refused.

        Args:
            size: Size of the request.
            script: Estimated tokens of one of its characters.
        """
        recall = self.options.recall
        if recall is None:
            return 0, 0
        calibration = self.calibration
        window = self.room
        # Pictures, or a script that is estimated too high, make the scale smaller. That must not
        # make English quotes seem smaller than they are.
        of_quotes = script * max(calibration.scale, 1.0)
        wanted = int(recall.room_in_tokens(window) / of_quotes)
        if window is not None:
            limit = self._for_input(window) * CAREFUL_MARGIN
        elif calibration.refused:
            # The refused request may have been far over the window.
            limit = calibration.refused / 2
        else:
            return wanted, wanted
        return wanted, int((limit - size * calibration.tokens_of_one(script)) / of_quotes)

    def quotes_in(self, room: int) -> int:
        """Return the part of a room, in characters, to leave free for quotes."""
        recall = self.options.recall
        if recall is None:
            return 0
        calibration = self.calibration
        tokens = recall.room_in_tokens(calibration.tokens(max(0, room)))
        return int(tokens * calibration.chars_per_token)

    # -- a compaction ------------------------------------------------------------------------------

    def largest_tail(self, room: int, free: int, reserved: int, budget: int) -> int:
        """Return the largest size of the compactable messages that stay: ``1 - compact_ratio`` of
        what fits, less if summary and quotes leave less.

        Args:
            room: Size that fits beside the messages that must stay and the declared rules.
            free: Size of the messages that may be compacted.
            reserved: Size to leave free for quotes, half of the room at most.
            budget: A target given by hand, all of which is to be used; 0 without one.
        """
        left = _beside(room, reserved)
        summary = min(self.summary(free), max(left // 2, FRAME))
        if budget and self.options.summarizer == "extractive":
            summary = int(left * _OF_BUDGET)
        return min(left - summary, room - int(room * self.options.compact_ratio))

    def longest_tail(self, room: int) -> int:
        """Return the size of the compactable messages that may stay if ``compact_ratio`` is
        ignored: the room without the shortest summary.
        """
        return room - LEAST_SUMMARY

    def longest_text(self, replaced: int, left: int, reserved: int, budget: int) -> int:
        """Return the largest size of a summary's text: less than what it replaces, and within the
        target.

        A budget that is smaller than what must stay cannot be kept; the summary then gets a share
        of it, because losing everything would be worse.

        Args:
            replaced: Size of the messages that it replaces, less that of the declared rules.
            left: Size that fits beside the messages that stay and the rules.
            reserved: Size to leave free for quotes, at most half of ``left``.
            budget: A target given by hand; 0 without one.
        """
        left = _beside(left - FRAME, reserved)
        if left < 0 and budget:
            left = int(budget * _OF_BUDGET)
        return min(replaced - FRAME - 1, left)

    def text(self, replaced: int, *, by_model: bool) -> int:
        """Return the size of a summary's text that replaces ``replaced`` characters: a model's text
        with the lines beside it, or a text that is made without a model.
        """
        tokens = self.summary_tokens(replaced)
        size = int(tokens * _WITH_LINES * self.calibration.text_per_token)
        if by_model:
            return size
        most = int(self.options.max_summary_tokens * self.calibration.chars_per_token)
        return min(size, most, max(replaced // _EXTRACT_PART, LEAST_TEXT))

    def insisted(self, text: int, longest: int) -> int:
        """Return the largest size of a model's text that is not cut, although the model was asked
        for less: twice ``text``, but not above the option and not above ``longest``.
        """
        option = int(
            self.options.max_summary_tokens * _WITH_LINES * self.calibration.text_per_token
        )
        return max(text, min(longest, 2 * text, option))

    def summary(self, replaced: int) -> int:
        """Return the size to leave for a summary message that replaces ``replaced`` characters."""
        return self.text(replaced, by_model=self.options.summarizer != "extractive") + FRAME

    def summary_tokens(self, replaced: int) -> int:
        """Return the tokens that a model's text may have if it replaces ``replaced`` characters:
        the option, capped to a share of a known window and to what it replaces.
        """
        share = int(replaced / self.calibration.text_per_token)
        if self.calibration.window:
            share = min(share, self.calibration.window // _SUMMARY_PART)
        most: int = self.options.max_summary_tokens
        return min(most, max(int(LEAST_TEXT / CHARS_PER_TOKEN), share))

    def lines(self, text: int, replaced: int) -> int:
        """Return the part of a summary's text that is for lines beside the model's."""
        return min(text // 3, replaced // _LINES_PART)


def _beside(room: int, reserved: int) -> int:
    """Return the room without the reserved part, at least half of the room."""
    return room - min(reserved, max(room, 0) // 2)
