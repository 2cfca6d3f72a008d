"""The report: events as JSON lines become one HTML page.

``events`` reads the lines, ``figures`` sorts them by conversation and adds up, ``chart`` draws, ``page`` writes.
"""

from __future__ import annotations

from compacter.report.events import Record, read_lines
from compacter.report.figures import Story, plural, stories
from compacter.report.page import page

__all__ = ["Record", "Story", "page", "plural", "read_lines", "stories"]
