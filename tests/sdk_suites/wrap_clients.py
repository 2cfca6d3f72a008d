"""A plug-in of pytest: the suites of the OpenAI and Anthropic SDKs run on wrapped clients.

``make sdk-suites`` runs them with it. Each client that a suite makes is wrapped as it is made, and
so are those that ``copy()`` and ``with_options()`` return.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from compacter import Compacter
from compacter.call.wrap import WRAPPED_BY

CLIENTS = {
    "openai": ("OpenAI", "AsyncOpenAI"),
    "anthropic": ("Anthropic", "AsyncAnthropic"),
}


def pytest_configure() -> None:
    """Wrap what is made of each client's class from now on."""
    compacter = Compacter()
    for module, names in CLIENTS.items():
        try:
            package = importlib.import_module(module)
        except ImportError:
            continue
        for name in names:
            _wrap_all(compacter, getattr(package, name))


def _wrap_all(compacter: Compacter, kind: Any) -> None:
    initialize = kind.__init__

    def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
        client = object.__new__(cls)
        client.__init__(*args, **kwargs)
        return compacter.wrap(client)

    @functools.wraps(initialize)
    def initialize_once(self: Any, *args: Any, **kwargs: Any) -> None:
        # Python calls this again for the copy that ``make`` returns.
        if WRAPPED_BY not in vars(self):
            initialize(self, *args, **kwargs)

    kind.__new__ = make
    kind.__init__ = initialize_once
