"""The report: one HTML page made from events as JSON lines.

``figures`` reads the lines and adds up each conversation, ``chart`` draws, and ``page`` writes the
HTML.
"""

from __future__ import annotations

from compacter.text.table import plural
from compacter.tools.report.figures import Record, Story, read_lines, stories
from compacter.tools.report.page import page

__all__ = ["Record", "Story", "page", "plural", "read_lines", "stories"]
