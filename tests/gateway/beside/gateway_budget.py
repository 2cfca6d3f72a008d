"""Budgets of a proxy without a database: litellm's own logger counts, and keys have a limit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from litellm.proxy._types import UserAPIKeyAuth, hash_token
from litellm.proxy.hooks.proxy_track_cost_callback import ProxyDBLogger

logger = ProxyDBLogger()


async def user_api_key_auth(request: Any, api_key: str) -> UserAPIKeyAuth:
    """``sk-NAME-upto-USD`` is a key with a budget. Writes down what it has spent before."""
    from litellm.proxy.proxy_server import spend_counter_cache

    name, _, budget = api_key.removeprefix("sk-").partition("-upto-")
    token = hash_token(name)
    spent = await spend_counter_cache.async_get_cache(key=f"spend:key:{token}")
    line = {"key": name, "spent": float(spent or 0)}
    with Path(os.environ["GATEWAY_RECORD"]).with_name("spent.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    return UserAPIKeyAuth(
        api_key=token, token=token, key_alias=name, max_budget=float(budget or 1_000), spend=0.0
    )
