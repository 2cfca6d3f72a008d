"""Hooks that export events to a file of JSON lines or to OpenTelemetry: ``Compacter(on_event=JsonLines(path))``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compacter.observe.jsonl import JsonLines
    from compacter.observe.otel import OpenTelemetry

__all__ = ["JsonLines", "OpenTelemetry"]
_HOMES = {"JsonLines": "compacter.observe.jsonl", "OpenTelemetry": "compacter.observe.otel"}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - one of several classes
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return list(__all__)
