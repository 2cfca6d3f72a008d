"""Models by name, through litellm: calls, windows and prices. The only module that imports litellm,
and lazily.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from compacter.errors import ConfigurationError
from compacter.runtime.io import imported, in_thread


def completion(*, awaited: bool = False, **options: Any) -> Any:
    """Call ``litellm.completion``, or ``litellm.acompletion`` where it is awaited."""
    litellm = load()
    return (litellm.acompletion if awaited else litellm.completion)(**options)


_NO_MODEL = 'pass a function as summarizer, or summarizer="extractive", which needs no model'


def check_installed(asked: str, instead: str = _NO_MODEL) -> None:
    """Raise ``ConfigurationError`` if litellm is not installed; ``asked`` is the argument that
    needs it, ``instead`` is the remedy.
    """
    if _spec() is None and sys.modules.get("litellm") is None:
        raise ConfigurationError(
            f"{asked} names a model for litellm, which is not installed: pip install "
            f"litellm, or {instead}"
        )


def prepare(model: str) -> str:
    """Begin to import litellm in a thread, so that the first call with ``model`` does not wait
    seconds for it.

    Returns a warning about the model's name, or an empty string. Raises ``ConfigurationError`` if
    litellm is not installed.
    """
    check_installed(f"summarizer={model!r}")
    if "litellm" not in sys.modules:
        in_thread(load)  # The first call that needs it raises what fails here.
    if "/" in model or ":" in model or _facts(model):
        return ""  # With a provider, or known; a proxy's models may have any name.
    similar = get_close_matches(model, _read_shipped(), 1)
    hint = (
        f"did you mean {similar[0]!r}"
        if similar
        else ('name the provider too, as in "openai/my-model"')
    )
    return f"summarizer={model!r} is unknown to litellm; {hint}?"


def without_banner() -> None:
    """Stop an imported litellm from printing a banner to standard output at each error.

    Its own Router sets the same switch: https://github.com/BerriAI/litellm/issues/5942.
    """
    litellm = imported("litellm")
    if litellm is not None:
        litellm.suppress_debug_info = True


def load() -> Any:
    """Import litellm, which may take seconds, and return it. If this is the first import, turn its
    error banner off.
    """
    ours = "litellm" not in sys.modules
    import litellm

    if ours:
        litellm.suppress_debug_info = True
    return litellm


def window(model: str | None) -> int | None:
    """Return a model's context window in tokens by litellm's table; ``None`` if it is unknown."""
    known = _facts(model)
    found = known.get("max_input_tokens") or (
        known.get("max_tokens") if "max_output_tokens" not in known else None
    )
    return found if isinstance(found, int) else None


def cost(
    model: str | None, input_tokens: int, output_tokens: int, reply: object = None
) -> float | None:
    """Return the cost of a reply in USD: as litellm states it, else by its price table; ``None`` if
    unknown.
    """
    hidden = getattr(reply, "_hidden_params", None)
    stated = hidden.get("response_cost") if isinstance(hidden, dict) else None
    if isinstance(stated, (int, float)):
        return float(stated)
    rates = prices(model)
    return None if rates is None else rates[0] * input_tokens + rates[2] * output_tokens


def price(model: str | None, tokens: int, *, cached: bool) -> float | None:
    """Return the price of input tokens in USD, ``None`` if it is unknown.

    With ``cached`` as read from the provider's cache, if it has one.
    """
    rates = prices(model)
    if rates is None:
        return None
    usual, rate, _ = rates
    return round(tokens * (usual if rate is None or not cached else rate), 12)


def prices(model: str | None) -> tuple[float, float | None, float] | None:
    """Return the prices of an input token, a cached one (``None`` if not stated) and an output
    token, in USD.

    By litellm's table; ``None`` for a model without prices in it.
    """
    facts = _facts(model)
    names = ("input_cost_per_token", "cache_read_input_token_cost", "output_cost_per_token")
    read, cached, written = (
        float(stated) if isinstance(stated := facts.get(name), (int, float)) else None
        for name in names
    )
    return None if read is None or written is None else (read, cached or None, written)


def _facts(model: str | None) -> dict[str, Any]:
    names = (model, model.split("/", 1)[-1], model.rsplit("/", 1)[-1]) if model else ()
    return next((facts for facts in map(_table().get, names) if isinstance(facts, dict)), {})


def _table() -> dict[str, Any]:
    """Return litellm's table: its own, in which a program may have registered models, or the file,
    as importing it for other programs takes seconds.
    """
    return getattr(imported("litellm"), "model_cost", None) or _read_shipped()


def _spec() -> ModuleSpec | None:
    """Return where the litellm package is; ``None`` if it is not installed, or if a module of this
    name has no file.
    """
    with suppress(ValueError):  # Of a module made by hand.
        return find_spec("litellm")
    return None


@cache
def _read_shipped() -> dict[str, Any]:
    """Return the price table in the litellm package, read without importing the package."""
    spec = _spec()
    for folder in (spec and spec.submodule_search_locations) or ():
        with suppress(OSError, ValueError):  # Without a table nothing is known.
            file = Path(folder) / "model_prices_and_context_window_backup.json"
            return dict(json.loads(file.read_text(encoding="utf-8")))
    return {}
