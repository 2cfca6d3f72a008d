"""A plug-in of the LiteLLM proxy: every program behind the proxy survives its context window, unchanged.

In the proxy's config file::

    litellm_settings:
      callbacks: compacter.clients.litellm_proxy.compacter

``docs/gateway.md`` says what is covered. The chapters: `settings` reads the config; `plugin` has the hooks by which the
proxy asks what to send; `calls` is a request over all its attempts, `attempts` carries on the flow of one call from
each to the next; `summaries` asks for summaries, `metrics` counts.
"""

from __future__ import annotations

from functools import cache


@cache
def _plugin() -> object:
    from compacter.clients.litellm_proxy.plugin import make

    return make()


def __getattr__(name: str) -> object:
    # Made when the proxy asks for it, after it has read its config file; importing this needs no litellm.
    if name == "compacter":
        return _plugin()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
