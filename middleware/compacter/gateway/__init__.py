"""What stands between programs and a provider: the plug-in of the LiteLLM proxy, and `serve`, a
pass-through server.
"""

from __future__ import annotations
