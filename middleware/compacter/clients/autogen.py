"""Second name of `compacter.frameworks.autogen`, for programs written for version 0.2."""

from __future__ import annotations

from compacter.frameworks.autogen import *  # noqa: F403 - all of its names
