"""Exporters of events, by the name that the manual shows; they are in `tools.observe`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compacter.tools import observe as _observe

if TYPE_CHECKING:
    from compacter.tools.observe import JsonLines, OpenTelemetry

__all__ = ["JsonLines", "OpenTelemetry"]


def __getattr__(name: str) -> object:  # Load on demand: the second needs a package.
    return getattr(_observe, name)
