"""Second name of `compacter.frameworks.langchain`, for programs written for version 0.2."""

from __future__ import annotations

from compacter.frameworks.langchain import *  # noqa: F403 - all of its names
