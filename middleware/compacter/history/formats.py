"""The wire formats there are, by name. Each is imported when it is first asked for."""

from __future__ import annotations

from compacter.history.wire import WIRE_FORMATS, Wire


def wire(name: str) -> Wire:
    """The wire format of that name. Raises ``ValueError`` that lists the names there are."""
    if name == "openai":
        from compacter.history.openai import OPENAI

        return OPENAI
    if name == "anthropic":
        from compacter.history.anthropic import ANTHROPIC

        return ANTHROPIC
    if name == "responses":
        from compacter.history.responses import RESPONSES

        return RESPONSES
    if name == "gemini":
        from compacter.history.gemini import GEMINI

        return GEMINI
    if name == "bedrock":
        from compacter.history.bedrock import BEDROCK

        return BEDROCK
    raise ValueError(f"wire_format={name!r} is unknown; use one of {', '.join(map(repr, WIRE_FORMATS))}")
