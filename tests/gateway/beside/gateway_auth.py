"""Keys of a proxy without a database: ``custom_auth`` knows them by their names."""

from __future__ import annotations

from typing import Any

from litellm.proxy._types import UserAPIKeyAuth


async def user_api_key_auth(request: Any, api_key: str) -> UserAPIKeyAuth:
    """``sk-NAME`` is a key; ``sk-NAME-of-TEAM`` one of a team; ``sk-poor...`` has no access to the
    writer.
    """
    name, _, team = api_key.removeprefix("sk-").partition("-of-")
    models = ["plain"] if name.startswith("poor") else []
    return UserAPIKeyAuth(api_key=api_key, key_alias=name, team_id=team or None, models=models)
