"""A plug-in of the LiteLLM proxy, which compacts requests that are too long. Programs behind it
need no change.

In the proxy's config file::

    litellm_settings:
      callbacks: compacter.gateway.litellm_proxy.compacter

``docs/gateway.md`` lists what is covered. The chapters: `settings` reads the config and requests
summaries; `plugin` has the hooks that the proxy calls; `calls` is a request with all its attempts,
`attempts` continues the flow of one call from each attempt to the next; `metrics` has the counters.
"""

from __future__ import annotations

from functools import cache


@cache
def _plugin() -> object:
    from compacter.gateway.litellm_proxy.plugin import make

    return make()


def __getattr__(name: str) -> object:
    # Created when the proxy imports it, after reading its config file; importing this module does
    # not need litellm.
    if name == "compacter":
        return _plugin()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
