"""Parts of a fake provider that only this repository's tests need: every form of refusal inside
HTTP 200, Anthropic's messages and OpenAI's responses over HTTP, and what few providers do.

What users test with is in ``compacter.testing``.
"""

from __future__ import annotations

from tests.kit.model import OddModel
from tests.kit.refusals import Refusal, refusals
from tests.kit.rules import strict_roles
from tests.kit.server import Server

__all__ = ["OddModel", "Refusal", "Server", "refusals", "strict_roles"]
