"""DSPy: any language model (https://dspy.ai/api/models/LM/). Its messages are OpenAI's already."""

from __future__ import annotations

from typing import Any

from compacter.frameworks.own_types import Adapter, back, completion, each


def _answer(outputs: Any) -> Any:
    first = outputs[0] if outputs else ""
    return completion(first if isinstance(first, str) else str(first.get("text") or ""))


ADAPTER = Adapter(
    # Not ``forward``: DSPy treats a model that overrides it as a custom one.
    methods={"__call__": "__call__", "acall": "acall"},
    positional=("self", "prompt"),
    read=each(dict),
    write=back(dict),
    answer=_answer,
    server=lambda lm: str(lm.kwargs.get("api_base") or lm.kwargs.get("base_url") or ""),
)
"""Adapter of language models, for programs, optimizers and streams."""
