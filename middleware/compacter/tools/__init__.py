"""Tools beside the library: the command, the report, and the exporters of events."""

from __future__ import annotations
