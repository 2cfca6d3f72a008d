"""A summary's own request: through the proxy's router, on the account of the caller whose history is folded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from compacter.models import window

MARK = "compacter"
"""Tag of a summary's request in spend logs."""
_CARRIED = "user_api_key"
"""What the names begin with under which the proxy keeps whose call it is."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Whose history is folded."""

    group: str
    """The model group that was called."""
    metadata: Mapping[str, Any]
    """The call's metadata, as the proxy has filled it in."""
    auth: Any
    """``UserAPIKeyAuth`` of the call."""


CALLER: ContextVar[Caller] = ContextVar("compacter_caller")
"""The caller of the attempt that is being prepared."""


class RouterSummarizer:
    """Asks a model group of the proxy for a summary.

    Args:
        group: The model group; ``None`` for the one that the call goes to.
    """

    def __init__(self, group: str | None = None) -> None:
        self.group = group

    @property
    def window(self) -> int | None:
        """The smallest window in tokens of the group's deployments; ``None`` where none is known, or no group named."""
        from litellm.proxy import proxy_server

        router: Any = proxy_server.llm_router
        known = []
        for deployment in (router.get_model_list(model_name=self.group) if self.group else None) or ():
            stated = (deployment.get("model_info") or {}).get("max_input_tokens")
            found = stated if isinstance(stated, int) else window(deployment["litellm_params"].get("model"))
            known.extend([found] if found else [])
        return min(known, default=None)

    async def __call__(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> object:
        """The completion. Raises what the router raises, and the proxy's own refusal where the key has no access."""
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
