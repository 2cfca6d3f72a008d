"""Models of frameworks: one file each, found by the name of a model's class, so that no framework
is imported before its own program imports it. `own_types` has the code that they share.
"""

from __future__ import annotations
