"""Summary requests: through the proxy's router, charged to the caller whose history is folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from compacter.models import window

MARK = "compacter"
"""Tag of summary requests in spend logs."""
_CARRIED = "user_api_key"
"""Prefix of the metadata keys in which the proxy stores the caller."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller whose history is folded."""

    group: str
    """Called model group."""
    metadata: Mapping[str, Any]
    """Metadata of the call, filled in by the proxy."""
    auth: Any
    """``UserAPIKeyAuth`` of the call."""


CALLER: ContextVar[Caller] = ContextVar("compacter_caller")
"""Caller of the attempt that is being prepared."""


class RouterSummarizer:
    """Summarizer that calls a model group of the proxy.

    Args:
        group: The model group; ``None`` for the group of the call.
    """

    def __init__(self, group: str | None = None) -> None:
        self.group = group

    @property
    def window(self) -> int | None:
        """Smallest window of the group's deployments, in tokens; ``None`` if unknown, or if no group is given."""
        from litellm.proxy import proxy_server

        router: Any = proxy_server.llm_router
        known = []
        for deployment in (router.get_model_list(model_name=self.group) if self.group else None) or ():
            stated = (deployment.get("model_info") or {}).get("max_input_tokens")
            found = stated if isinstance(stated, int) else window(deployment["litellm_params"].get("model"))
            known.extend([found] if found else [])
        return min(known, default=None)

    async def __call__(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> object:
        """Return the completion. Raises the router's exceptions, and the proxy's if the key may not use the group."""
        from litellm.proxy import proxy_server

        router: Any = proxy_server.llm_router
        caller = CALLER.get()
        group = self.group or caller.group
        if group != caller.group:
            await _check_access(group, caller.auth, router)
        metadata = {name: value for name, value in caller.metadata.items() if name.startswith(_CARRIED)}
        tags = [MARK]
        reply: object = await router.acompletion(
            model=group,
            messages=[dict(message) for message in messages],
            max_tokens=max_tokens,
            metadata={**metadata, "tags": tags, "spend_logs_metadata": {MARK: "summary", "model_group": caller.group}},
        )
        return reply


async def _check_access(group: str, auth: Any, router: Any) -> None:
    from litellm.proxy import proxy_server
    from litellm.proxy.auth.auth_checks import can_key_call_model

    await can_key_call_model(
        model=group, llm_model_list=proxy_server.llm_model_list, valid_token=auth, llm_router=router
    )
    models: list[str] = list(getattr(auth, "team_models", None) or ())
    if models and "all-proxy-models" not in models and group not in models:
        raise PermissionError(f"the key's team has no access to the model group {group!r}")
