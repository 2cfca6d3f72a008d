"""What one sees: each turn as a line, each compaction as a box, and below them the context window,
live.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from types import TracebackType

    from compacter import CompactionEvent

    from .conversation import Turn

STEPS = "▁▂▃▄▅▆▇█"


@dataclass(slots=True)
class Context:
    """The window as the server saw it last, and how it came to be. All sizes in tokens."""

    window: int
    turns: int
    turn: int = 0
    sent: int = 0
    folded: int = 0
    """How much of ``sent`` is the summary message, by its share of the characters."""
    refused: int | None = None
    """Size of the request that was refused a moment ago."""
    whole: int = 0
    """What the request would be if nothing had ever been compacted."""
    sizes: list[tuple[int, bool]] = field(default_factory=list)
    """Each turn's request, and whether it was folded first."""


class Picture:
    """The terminal. Where there is none, the same turns and boxes as plain lines, without the
    moving part.
    """

    def __init__(self, window: int, turns: int, console: Console | None = None) -> None:
        self.console = console or Console(highlight=False)
        self.context = Context(window, turns)
        self._doing = "starting"
        self._since = time.monotonic()
        self._bar = min(56, self.console.width - 40)
        self._spinner = Spinner("dots")
        # A callable is asked anew at each refresh: the seconds run while the model works.
        self._live = Live(
            console=self.console, get_renderable=self._render, refresh_per_second=8, transient=True
        )

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._live.stop()

    def doing(self, words: str) -> None:
        """What takes time from now on."""
        self._doing, self._since = words, time.monotonic()
        if not self.console.is_terminal:
            self.console.print(f"      … {words}", style="dim")

    def asked(self, number: int, turn: Turn) -> None:
        """A turn begins."""
        self.context.turn = number
        line = Text.assemble(
            (f"{number:>3}/{self.context.turns} ", "dim"), ("user   ", "bold cyan"), turn.user
        )
        self._line(line)
        for call in turn.calls:
            arguments = ", ".join(f"{name}={value}" for name, value in call.arguments.items())
            self._line(Text.assemble(("       tool   ", "yellow"), f"{call.tool}({arguments})"))
        self.doing("the model reads and answers")

    def refused(self, requested: int | None) -> None:
        """The provider said that the request is too long."""
        self.context.refused = requested
        size = f"{requested:,} tokens" if requested else "the request"
        self._line(
            Text(
                (f"       {size} do not fit into {self.context.window:,}: refused by the server"),
                "bold red",
            )
        )
        self.doing("the model summarizes the oldest part")

    def failed(self, reason: str) -> None:
        """The model's summary was not good enough."""
        self._line(Text(f"       {reason}: falling back", "yellow"))

    def folded(self, event: CompactionEvent) -> None:
        """A compaction took place."""
        context = self.context
        summary = len(event.summary) + len(event.ledger)
        share = min(1.0, summary / max(1, event.compacted_data_size))
        context.refused = None
        context.sent, context.folded = event.compacted_tokens, round(event.compacted_tokens * share)
        table = Table.grid(padding=(0, 2))
        table.add_row(
            "tokens",
            (f"{event.requested or event.original_tokens:,} → ~{event.compacted_tokens:,}"),
        )
        table.add_row("characters", f"{event.original_data_size:,} → {event.compacted_data_size:,}")
        table.add_row("messages", f"{event.messages_before} → {event.messages_after}")
        read = event.input_tokens
        written = event.output_tokens
        table.add_row(
            "summarizer", (f"{read:,} tokens read, {written:,} written, {event.duration:.1f} s")
        )
        table.add_row("summary", Text(excerpt(event.summary or "(none: dropped)", 300), "italic"))
        if event.ledger:
            table.add_row("verbatim", Text(excerpt(event.ledger, 300), "italic"))
        name = event.strategy + (" (fallback)" if event.fallback else "")
        title = f"turn {context.turn}: compacted by {name}, round {event.attempt}"
        self.console.print(Panel(table, title=title, border_style="magenta", title_align="left"))
        self.doing("the model reads the compacted history and answers")

    def answered(self, answer: str, prompt_tokens: int, whole: int, *, folded: bool) -> None:
        """A turn ends; ``prompt_tokens`` as the server counted them."""
        context = self.context
        context.sent = prompt_tokens
        context.whole = whole
        context.refused = None
        context.sizes.append((prompt_tokens, folded))
        self._line(Text.assemble(("       model  ", "bold green"), excerpt(answer, 400)))
        if not self.console.is_terminal:
            self._line(
                Text(
                    f"       window {prompt_tokens:,}/{context.window:,} tokens, all "
                    f"turns {whole:,}"
                )
            )

    def closing(self, rows: list[tuple[str, str]], known: str, answer: str, *, good: bool) -> None:
        """The totals, what stands for the compacted turns now, and the last answer."""
        table = Table.grid(padding=(0, 2))
        for name, value in rows:
            table.add_row(name, value)
        self.console.print(self._history())
        style = "green" if good else "red"
        self.console.print(Panel(table, title="totals", border_style=style, title_align="left"))
        if known:
            title = "what stands for the compacted turns in the last request"
            self.console.print(
                Panel(Text(known), title=title, border_style="magenta", title_align="left")
            )
        self.console.print(
            Panel(Text(answer), title="the last answer", border_style="cyan", title_align="left")
        )

    def _line(self, text: Text) -> None:
        text.overflow = "ellipsis"
        text.no_wrap = self.console.is_terminal
        self.console.print(text, soft_wrap=not self.console.is_terminal)

    def _render(self) -> RenderableType:
        context = self.context
        seconds = time.monotonic() - self._since
        self._spinner.update(text=Text(f" {self._doing} … {seconds:.0f} s", "dim"))
        return Panel(
            Group(
                self._window(),
                self._history(),
                self._spinner,
            ),
            title=f"context window, turn {context.turn} of {context.turns}",
            title_align="left",
        )

    def _window(self) -> Text:
        context = self.context
        if context.refused:
            return Text.assemble(
                "sent  ",
                ("█" * self._bar, "red"),
                ("▶", "bold red"),
                (f" {context.refused:,} > {context.window:,}", "bold red"),
            )
        cell = context.window / self._bar
        folded = round(min(context.folded, context.sent) / cell)
        verbatim = max(0, round(context.sent / cell) - folded)
        full = context.sent / context.window
        style = "green" if full < 0.7 else "yellow" if full < 0.9 else "red"
        return Text.assemble(
            "sent  ",
            ("▓" * folded, "magenta"),
            ("█" * verbatim, style),
            ("░" * (self._bar - folded - verbatim), "dim"),
            f"  {context.sent:,} of {context.window:,} tokens",
        )

    def _history(self) -> Group:
        """The whole conversation against the window, and the size of each turn's request: a saw."""
        context = self.context
        scale = max(context.whole, context.window) / self._bar
        used = round(context.whole / scale)
        edge = round(context.window / scale)
        whole = Text.assemble(
            "all   ",
            ("█" * min(used, edge), "cyan"),
            ("░" * (edge - used), "dim"),
            ("▌" if used > edge else "", "bold"),  # Here the window ends.
            ("█" * (used - edge - 1), "red"),
            f"  {context.whole:,} tokens without compaction",
        )
        saw = Text("turns ")
        for size, folded in context.sizes:
            step = min(len(STEPS) - 1, size * len(STEPS) // context.window)
            saw.append(STEPS[step] * 2, "magenta" if folded else "green")
        return Group(whole, saw)


def excerpt(text: str, size: int) -> str:
    """The text on one line, at most ``size`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= size else f"{line[: size - 1]}…"
