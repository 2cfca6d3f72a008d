"""The report as one self-contained HTML page, without network access, fonts or libraries."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from string import Template

from compacter.text.table import plural, usd
from compacter.tools.report.chart import sawtooth
from compacter.tools.report.figures import Compaction, Record, Story, short_key
from compacter.tools.visible import escape

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src '$style_hash'; \
script-src '$script_hash'; connect-src 'none'; base-uri 'none'; form-action 'none'">
<meta name="generator" content="compacter">
<title>Context report</title>
<style>$style</style>
</head>
<body>
<header>
<h1>Context report</h1>
<p class="soft">$span</p>
<dl class="cards">$cards</dl>
</header>
<main>
$overview
$stories
</main>
<footer>$foot</footer>
<script>$script</script>
</body>
</html>
""")


class Page(str):
    """HTML of a whole page, which a notebook shows in a frame."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 40em"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(self)}"></iframe>'


_ABOUT_SIZES = (
    "Sizes in tokens are estimates, calibrated by the provider's numbers; the "
    "window is the provider's number where it "
    "stated one."
)
_OPEN = 3
"""Number of conversations that are open at first."""


def page(
    stories: Sequence[Story],
    *,
    with_text: bool = True,
    unread: int = 0,
    notes: Iterable[str] = (),
) -> Page:
    """Return the HTML of the report.

    Args:
        stories: The conversations, in the order of the page.
        with_text: Whether to include the text of summaries.
        unread: Number of lines that could not be read, which the page mentions.
        notes: Further sentences for the footer.
    """
    resources = files("compacter.tools.report")
    heights = "".join(f".at{percent} {{ bottom: {percent}% }}\n" for percent in range(101))
    style = (resources / "page.css").read_text(encoding="utf-8") + heights
    script = (resources / "page.js").read_text(encoding="utf-8")
    # Readers look for failures first.
    stories = sorted(stories, key=lambda story: not story.failures)
    several = len(stories) > 1
    foot = [_ABOUT_SIZES, *map(escape, notes)]
    if unread:
        foot.append(f"{plural(unread, 'line')} could not be read, and left out.")
    text = _PAGE.substitute(
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        span=_span(stories),
        cards=_cards(stories),
        overview=_overview(stories) if several else "",
        stories="".join(
            _story(story, index, with_text=with_text, is_open=index <= _OPEN)
            for index, story in enumerate(stories, 1)
        ),
        foot="".join(f"<p>{note}</p>" for note in foot),
    )
    return Page(text)


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


# -- numbers as text -------------------------------------------------------------------------------


def _when(seconds: float | None) -> str:
    if seconds is None:
        return ""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
    except (ValueError, OverflowError, OSError):
        return ""


def _name(story: Story, index: int) -> str:
    return short_key(story.key) if story.key else f"conversation {index}"


# -- the head --------------------------------------------------------------------------------------


def _span(stories: Sequence[Story]) -> str:
    times = [time for story in stories for time in story.times]
    counted = sum(len(story.records) for story in stories)
    words = f"{plural(counted, 'event')} of {plural(len(stories), 'conversation')}"
    if times:
        words += f", {_when(min(times))} to {_when(max(times))} UTC"
    return words


def _cards(stories: Sequence[Story]) -> str:
    """Return the sums of all conversations, failures first; sums of 0 are left out."""
    costs = [story.cost for story in stories]
    cards = {
        "Failures": f"{sum(story.failures for story in stories):,}",
        "Compactions": f"{sum(len(story.compactions) for story in stories):,}",
        "Tokens taken out": f"{sum(story.saved for story in stories):,}",
        "Calls from a summary": f"{sum(len(story.of(_REUSED)) for story in stories):,}",
        "Input tokens not sent": f"{int(_sum(stories, 'tokens_saved')):,}",
        "Price of tokens not sent": usd(_sum(stories, "cost_saved")),
        "Spent on summaries": usd(None if None in costs else sum(filter(None, costs))),
    }
    return "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd></div>"
        for name, value in cards.items()
        if value not in ("0", "$0.00")
    )


_REUSED = "CompactionReused"


def _sum(stories: Sequence[Story], name: str) -> float:
    """Return the sum of a field over the calls that began from a summary, as far as it is known."""
    return sum(record.number(name) for story in stories for record in story.of(_REUSED))


def _table(
    label: str, names: Iterable[tuple[str, bool]], rows: Iterable[str], *, sortable: bool = False
) -> str:
    """Return a table; each column has a name, and a mark if it has numbers."""
    cells = "".join(
        f'<th scope="col"{"" if number else " class=l"}>'
        f"{f'<button>{name}</button>' if sortable else name}</th>"
        for name, number in names
    )
    kind = ' class="sortable"' if sortable else ""
    return (
        f'<div class="scroll" role="region" aria-label="{escape(label)}" tabindex="0">'
        f"<table{kind}><thead><tr>{cells}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>\n"
    )


_MANY = 100
"""Number of conversations from which the table has a filter and shows as many at a time."""
_FILTER = f"""<p class="filter"><label>Only conversations with <input type="search"></label>
<button type="button" data-more="{_MANY}" hidden>Show {_MANY} more</button></p>
"""


def _overview(stories: Sequence[Story]) -> str:
    rows = [
        f'<tr><th scope="row" class="l name">'
        f'<a href="#c{index}">{escape(_name(story, index))}</a></th>'
        f'<td class="l name">{escape(story.model) or "–"}</td>'
        + "".join(f'<td data-n="{number:.10g}">{shown}</td>' for shown, number in _sums(story))
        + "</tr>\n"
        for index, story in enumerate(stories, 1)
    ]
    names = [("Conversation", False), ("Model", False), *((name, True) for name in _SUMS)]
    search = _FILTER if len(stories) >= _MANY else ""
    table = _table("Conversations", names, rows, sortable=True)
    return f"<h2>Conversations</h2>\n{search}{table}"


_SUMS = ("Compactions", "Largest", "Window", "Saved", "Spent", "Failures", "Last")


def _sums(story: Story) -> list[tuple[str, float]]:
    """Return the figures of ``_SUMS``, each as text and as the number that it is sorted by."""
    failures = f'<span class="bad">{story.failures:,}</span>' if story.failures else "0"
    return [
        (f"{len(story.compactions):,}", len(story.compactions)),
        (f"{story.largest:,}", story.largest),
        (f"{story.window:,}" if story.window else "–", story.window or 0),
        (f"{story.saved:,}", story.saved),
        (usd(story.cost), -1 if story.cost is None else story.cost),
        (failures, story.failures),
        (_when(story.end) or "–", story.end or 0),
    ]


# -- one conversation ------------------------------------------------------------------------------


def _story(story: Story, index: int, *, with_text: bool, is_open: bool) -> str:
    facts = [story.model] if story.model else []
    facts += [plural(len(story.compactions), "compaction"), f"{story.saved:,} tokens saved"]
    if story.failures:
        facts.append(plural(story.failures, "failure"))
    name = escape(_name(story, index))
    place = f"conversation {index}"
    body = _others(story, place) + sawtooth(story, f"c{index}") + _compactions(story, place)
    if with_text:
        body += _texts(story)
    return (
        f'<details class="story" id="c{index}"{" open" if is_open else ""}><summary><h2>{name}</h2>'
        f"<span>{escape(', '.join(facts))}</span></summary><div>{body}</div></details>\n"
    )


_WORDS = ("Why", "By")
"""Columns of compactions that are not numbers."""
_REASONS = {
    "token_limit": "refused as too long",
    "threshold": "trigger_tokens",
    "quotes": "room for quotes",
    "manual": "by hand",
    "prepared": "made ahead",
}
"""Reasons of compactions by their triggers."""


def _compactions(story: Story, name: str) -> str:
    if not story.compactions:
        return ""
    names = [(column, column not in _WORDS) for column in _cells(story.compactions[0], 1)]
    rows = [_row(compaction, number) for number, compaction in enumerate(story.compactions, 1)]
    return f"<h3>Compactions</h3>{_table(f'Compactions of {name}', names, rows)}"


def _row(compaction: Compaction, number: int) -> str:
    first, *others = _cells(compaction, number).items()
    cells = "".join(
        f"<td{' class=l' if column in _WORDS else ''}>{cell}</td>" for column, cell in others
    )
    return f'<tr><th scope="row">{first[1]}</th>{cells}</tr>\n'


def _cells(compaction: Compaction, number: int) -> dict[str, str]:
    """Return the cells of a compaction by the headings of the columns."""
    record = compaction.record
    trigger = record.text("trigger")
    way = record.text("strategy")
    if way == "summarize" and not record.count("summarizer_calls"):
        way = "extractive"  # No model has written the summary.
    by = escape(way.replace("_", " "))
    by += ' <small class="bad">fallback</small>' if record.fields.get("fallback") else ""
    return {
        "No.": f"{number:,}",
        "Messages replaced": _replaced(record),
        "Why": escape(_REASONS.get(trigger, trigger)),
        "By": by,
        "Before": f"{compaction.before:,}",
        "After": f"{compaction.after:,}",
        "Summarizer": f"{record.count('input_tokens') + record.count('output_tokens'):,}",
        "Spent": usd(compaction.cost),
        "Seconds": f"{record.number('duration'):.1f}",
    }


def _replaced(record: Record) -> str:
    """Return which messages of the request were replaced, such as "2 to 40 of 61"."""
    count = record.count("messages_before")
    if not count:
        return "–"  # The history was kept by the server.
    first = record.count("first_removed")
    last = record.count("last_removed")
    if not first:  # A line of an earlier version.
        return f"{max(0, count - record.count('messages_after') + 1):,} of {count:,}"
    return f"{first:,} to {last:,} of {count:,}" if last > first else f"{first:,} of {count:,}"


_TOLD = frozenset(
    (
        *("CompactionFailed", "CompactionSkipped", "SilentTruncation", "RetriesExhausted"),
        *("MaxTokensAdjusted", "MessageShortened", "SealedContentRemoved", "PreparationFailed"),
        *("WindowFilling", "SpendingReached"),
    )
)
"""Events that are shown as sentences."""


def _others(story: Story, name: str) -> str:
    grouped: dict[str, list[Record]] = {}
    for record in story.records:
        if record.kind in _TOLD:
            # Sentences with other numbers are one row, which shows the last of them.
            grouped.setdefault(re.sub(r"[\d,.]+", "", record.sentence), []).append(record)
    if not grouped:
        return ""
    rows = (
        f'<tr><th scope="row" class="l wide">{escape(records[-1].sentence)}</th>'
        f"<td>{len(records):,}</td><td>{_when(records[-1].time) or '–'}</td></tr>\n"
        for records in grouped.values()
    )
    names = [("What", False), ("Times", True), ("Last", True)]
    return f"<h3>Other events</h3>{_table(f'Failures of {name}', names, rows)}"


def _texts(story: Story) -> str:
    found = []
    for number, compaction in enumerate(story.compactions, 1):
        record = compaction.record
        text = f"{record.text('summary')}\n\n{record.text('ledger')}".strip()
        if text:
            found.append(
                f'<details class="text"><summary>Summary {number}, {len(text):,} characters'
                "</summary>"
                f"<pre>{escape(text)}</pre></details>\n"
            )
    return f"<h3>Summaries</h3>{''.join(found)}" if found else ""
