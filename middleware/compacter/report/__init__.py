"""The report: events as JSON lines become one HTML page.

``figures`` reads the lines, sorts them by conversation and adds up, ``chart`` draws, ``page`` writes.
"""

from __future__ import annotations

from compacter.report.figures import Record, Story, plural, read_lines, stories
from compacter.report.page import page

__all__ = ["Record", "Story", "page", "plural", "read_lines", "stories"]
