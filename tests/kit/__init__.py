"""What only this repository's tests need of a fake provider: every form of refusal inside HTTP 200,
and OpenAI's responses over HTTP. What users test with is in ``compacter.testing``.
"""

from __future__ import annotations

from tests.kit.refusals import Refusal, refusals
from tests.kit.responses import Server

__all__ = ["Refusal", "Server", "refusals"]
