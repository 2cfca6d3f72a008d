"""DSPy: any language model (https://dspy.ai/api/models/LM/). Its messages are OpenAI's already."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compacter.clients.own_types import Adapter, completion, each, each_back


def _read(message: Any) -> Mapping[str, Any]:
    return dict(message)


def _write(message: Mapping[str, Any]) -> Any:
    return dict(message)


def _answer(outputs: Any) -> Any:
    first = outputs[0] if outputs else ""
    return completion(first if isinstance(first, str) else str(first.get("text") or ""))


_ADAPTER = Adapter(
    # Not ``forward``, which DSPy takes for a model of somebody else's where it is overridden.
    methods={"__call__": "__call__", "acall": "acall"},
    positional=("self", "prompt"),
    read=each(_read),
    write=each_back(_write),
    answer=_answer,
    model=lambda lm: str(lm.model),
    server=lambda lm: str(lm.kwargs.get("api_base") or lm.kwargs.get("base_url") or ""),
)


def adapter_of(kind: type[Any]) -> Adapter:  # noqa: ARG001 - one for all
    """The adapter for a language model; programs, optimizers and streams that use it compact."""
    return _ADAPTER
