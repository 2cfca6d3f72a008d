"""Hold the conversation through ``Compacter(...).wrap(litellm.completion)`` and show what happens.

Exit status 0 only if every turn got an answer.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import structlog

from compacter import Compacter, CompactionEvent
from compacter.events import CompactionFailed, CompactionStarted
from embedded_model import WINDOW, EmbeddedModel, embedded_model, why_unavailable

from .conversation import SYSTEM, TURNS, Turn
from .picture import Picture

if TYPE_CHECKING:
    from compacter.events import Event

PROMPT = (
    "{history}\n\nSummarize the transcript above in a few short sentences. Keep "
    "names, numbers, dates and rules."
)


class Demo:
    """One run: the conversation so far, what was folded, and the picture of both."""

    def __init__(self, model: EmbeddedModel, picture: Picture, turns: tuple[Turn, ...]) -> None:
        import litellm

        litellm.suppress_debug_info = True
        self.model = model
        self.picture = picture
        self.turns = turns
        self.folds: list[CompactionEvent] = []
        self.answers: list[str] = []
        self.prompt_tokens = 0
        # The whole wiring. A window of 2,048 tokens leaves little room for a summary, and a model
        # of this size writes a poor one: half of the room goes to the rules and facts that are kept
        # word for word.
        self.compacter = Compacter(
            summary_prompt=PROMPT,
            max_summary_tokens=300,
            fallback="extractive",
            on_event=self.saw,
        )
        self.completion = self.compacter.wrap(litellm.completion)

    def saw(self, event: Event) -> None:
        """Show an event of the compacter."""
        if isinstance(event, CompactionStarted):
            self.picture.refused(event.requested)
        elif isinstance(event, CompactionFailed):
            self.picture.failed(event.reason)
        elif isinstance(event, CompactionEvent):
            self.folds.append(event)
            self.picture.folded(event)

    def run(self) -> None:
        """Every turn, sending the full history each time: it is compacted underneath."""
        history: list[dict[str, Any]] = [SYSTEM]
        for number, turn in enumerate(self.turns, 1):
            history += turn.messages(number)
            self.picture.asked(number, turn)
            before = len(self.folds)
            reply: Any = self.completion(
                model=f"openai/{self.model.name}",
                api_base=self.model.api_base,
                api_key="none",
                messages=history,
                max_tokens=64,
                temperature=0.3,
                timeout=600,
            )
            answer = (reply.choices[0].message.content or "").strip()
            history.append({"role": "assistant", "content": answer})
            self.prompt_tokens += reply.usage.prompt_tokens
            self.answers.append(answer)
            self.picture.answered(
                answer,
                reply.usage.prompt_tokens,
                self.model.count_tokens(history),
                folded=len(self.folds) > before,
            )

    def close(self, seconds: float) -> bool:
        """Show the totals; whether every turn got an answer."""
        answered = sum(1 for answer in self.answers if answer)
        read = sum(event.input_tokens for event in self.folds)
        written = sum(event.output_tokens for event in self.folds)
        good = answered == len(self.turns)
        rows = [
            ("turns answered", f"{answered} of {len(self.turns)}"),
            (
                "compactions",
                f"{len(self.folds)}, {sum(event.duration for event in self.folds):.0f} s of them",
            ),
            (
                "whole conversation",
                (f"{self.picture.context.whole:,} tokens, window {self.model.window:,}"),
            ),
            ("tokens of answered requests", f"{self.prompt_tokens:,}"),
            ("tokens for summaries", f"{read:,} read, {written:,} written"),
            ("time", f"{seconds:.0f} s"),
        ]
        last = self.folds[-1] if self.folds else None
        known = "\n\n".join(part for part in (last.summary, last.ledger) if part) if last else ""
        self.picture.closing(rows, known, self.answers[-1] if self.answers else "(none)", good=good)
        return good


def main() -> int:
    """Run the demo; the exit status."""
    options = argparse.ArgumentParser(prog="demo_model", description=__doc__)
    options.add_argument(
        "--turns", type=int, default=len(TURNS), help=("how many turns of the conversation")
    )
    options.add_argument("--window", type=int, default=WINDOW, help="tokens of the model's window")
    chosen = options.parse_args()
    turns = TURNS[: chosen.turns]
    if reason := why_unavailable():
        print(f"the demo cannot run: {reason}", file=sys.stderr)
        return 2
    # The picture tells what happens; log lines would tear it apart.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    started = time.monotonic()
    with Picture(window=chosen.window, turns=len(turns)) as picture:
        picture.doing("starting the model server")
        with embedded_model(chosen.window) as model:
            picture.context.window = model.window
            picture.doing("loading litellm")
            demo = Demo(model, picture, turns)
            try:
                demo.run()
            finally:
                good = demo.close(time.monotonic() - started)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
