"""Second name of `compacter.frameworks.haystack`, for programs written for version 0.2."""

from __future__ import annotations

from compacter.frameworks.haystack import *  # noqa: F403 - all of its names
