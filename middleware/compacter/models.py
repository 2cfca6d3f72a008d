"""The one place that imports litellm, and only when it is asked to: models by name, their windows and prices."""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def completion(**options: Any) -> object:
    """``litellm.completion``."""
    import litellm

    return litellm.completion(**options)


async def acompletion(**options: Any) -> object:
    """``litellm.acompletion``."""
    import litellm

    reply: object = await litellm.acompletion(**options)
    return reply


def window(model: str | None) -> int | None:
    """The model's context window in tokens by litellm's table, or ``None`` for a model it does not know."""
    known = _facts(model)
    found = known.get("max_input_tokens") or (known.get("max_tokens") if "max_output_tokens" not in known else None)
    return found if isinstance(found, int) else None


def cost(model: str | None, input_tokens: int, output_tokens: int, reply: object = None) -> float | None:
    """USD of a reply: as litellm states it on the reply, else by its price table; ``None`` where no price is known."""
    hidden = getattr(reply, "_hidden_params", None)
    stated = hidden.get("response_cost") if isinstance(hidden, dict) else None
    if isinstance(stated, (int, float)):
        return float(stated)
    known = _facts(model)
    read, written = known.get("input_cost_per_token"), known.get("output_cost_per_token")
    if not isinstance(read, (int, float)) or not isinstance(written, (int, float)):
        return None
    return float(read * input_tokens + written * output_tokens)


def prices(model: str | None) -> tuple[float, float | None, float] | None:
    """USD for a token that is read, read from the prompt cache (``None``: not stated), and written; by litellm's table.

    ``None`` for a model whose prices it does not know.
    """
    known = _facts(model)
    read, cached, written = (
        known.get(name) for name in ("input_cost_per_token", "cache_read_input_token_cost", "output_cost_per_token")
    )
    if not isinstance(read, (int, float)) or not isinstance(written, (int, float)) or not read:
        return None
    return float(read), float(cached) if isinstance(cached, (int, float)) and cached else None, float(written)


def _facts(model: str | None) -> dict[str, Any]:
    if not model:
        return {}
    loaded = sys.modules.get("litellm")
    # A program that uses litellm may have registered models of its own; for the others importing it would cost seconds.
    table = getattr(loaded, "model_cost", None) or _shipped()
    for name in (model, model.split("/", 1)[-1], model.rsplit("/", 1)[-1]):
        known = table.get(name)
        if isinstance(known, dict):
            return known
    return {}


@cache
def _shipped() -> dict[str, Any]:
    """The price table that lies in the litellm package, read without importing the package."""
    try:
        spec = find_spec("litellm")
    except (ImportError, ValueError):
        return {}
    for folder in (spec.submodule_search_locations if spec else None) or ():
        table = Path(folder) / "model_prices_and_context_window_backup.json"
        if table.is_file():
            found = json.loads(table.read_text(encoding="utf-8"))
            return found if isinstance(found, dict) else {}
    return {}
