"""Servers between programs and a provider: the plug-in of the LiteLLM proxy, and `serve`, a
pass-through server.
"""

from __future__ import annotations

AHEAD = 0.7
"""Default of the option ``prepare_tokens`` in a gateway, as a share of the window: its clients wait
for each summary that is not made ahead."""
