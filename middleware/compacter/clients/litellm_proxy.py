"""The plug-in of the LiteLLM proxy, by the name that configurations have; it is in `gateway`."""

from __future__ import annotations

from compacter.gateway import litellm_proxy as _plugin


def __getattr__(name: str) -> object:
    return getattr(_plugin, name)
