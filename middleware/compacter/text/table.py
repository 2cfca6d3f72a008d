"""Results as rows of a name and a value, lines for ``print`` and a table for a notebook; counts and
prices as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# Smallest price that is shown as it is.
_LEAST_USD = 0.0001


class Table:
    """Base of a result that is shown as rows."""

    __slots__ = ()

    def _rows(self) -> Iterator[tuple[str, str]]:
        """Yield name and value of each row."""
        raise NotImplementedError

    def __str__(self) -> str:
        rows = list(self._rows())
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {value}" for name, value in rows)

    def _repr_html_(self) -> str:
        return as_html(self._rows())


def as_html(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table for a notebook, with a row for each name and value."""
    # Loads tables of entities, which only a notebook needs.
    from html import escape

    shown = (f"<tr><th>{escape(name)}<td>{escape(value)}" for name, value in rows)
    return f"<table>{''.join(shown)}</table>"


def plural(count: int, what: str) -> str:
    """Return a count and the noun for it, such as "2 compactions"."""
    many = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{count:,} {what if count == 1 else many}"


def usd(cost: float | None) -> str:
    """Return a price as text: cents from a dollar on, else four places; a dash if unknown."""
    if cost is None:
        return "–"
    if 0 < cost < _LEAST_USD:
        return f"under ${_LEAST_USD:.4f}"
    return f"${cost:,.2f}" if cost >= 1 or not cost else f"${cost:.4f}".rstrip("0")
