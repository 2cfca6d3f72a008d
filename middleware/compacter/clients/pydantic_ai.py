"""Second name of `compacter.frameworks.pydantic_ai`, for programs written for version 0.2."""

from __future__ import annotations

from compacter.frameworks.pydantic_ai import *  # noqa: F403 - all of its names
