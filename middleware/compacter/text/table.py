"""Results as rows of a name and a value: lines for ``print``, a table for a notebook."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


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
