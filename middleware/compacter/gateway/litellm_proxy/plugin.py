"""The hooks that the LiteLLM proxy calls before and after each attempt.

A plug-in cannot repeat a call; the proxy's router does, by its rules for fallbacks. So each request
gets fallbacks to its own model group, and `async_pre_call_deployment_hook`, which the router calls
before every attempt, compacts what that attempt sends. For refusals that litellm recognises
(``ContextWindowExceededError``) these fallbacks are in ``context_window_fallbacks`` of the request
from the beginning; for others the failure hook adds them to ``fallbacks``, before the router reads
these. See https://docs.litellm.ai/docs/proxy/call_hooks and
https://docs.litellm.ai/docs/proxy/reliability.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import AsyncGenerator, Mapping, MutableMapping
from dataclasses import replace
from typing import Any

from cachetools import TTLCache
from litellm.integrations.custom_logger import CustomLogger

from compacter.call.state import State
from compacter.call.streams import close
from compacter.gateway.litellm_proxy.attempts import SteppedCall
from compacter.gateway.litellm_proxy.calls import (
    PROTOCOLS,
    ROUND,
    TOKEN,
    ProxyBinding,
    ProxyCall,
    group_of,
    is_plain,
    last_failure,
    metadata_of,
    name_of,
    of_group,
    read_until_content,
    setting,
    targets,
    text_of,
    with_own,
)
from compacter.gateway.litellm_proxy.settings import (
    CALLER,
    Caller,
    RouterSummarizer,
    Settings,
    Switches,
    check_settings,
    check_version,
    learn_windows,
)
from compacter.gateway.metrics import (
    MEMORY_OPEN,
    MEMORY_OPEN_TEXT,
    ORIGIN,
    CountingState,
    Metrics,
    Origin,
    default_registry,
    is_open,
    show,
)
from compacter.overflow import TokenLimit
from compacter.runtime.io import ASYNC

log = logging.getLogger("compacter")

# Calls under way that are remembered at once, so that calls without an end do not fill the memory.
_MOST_CALLS = 10_000
# Seconds after which a call without an end is forgotten.
_LONGEST_CALL = 1_800.0


class CompacterPlugin(CustomLogger):
    """The plug-in; one object in each worker of the proxy.

    Args:
        given: Value of ``callback_settings.compacter`` in the config file.
    """

    def __init__(self, given: object = None) -> None:
        super().__init__()
        registry = default_registry()
        self.metrics = Metrics(registry)
        self.settings = Settings(given, self.metrics)
        memory = self.settings.of("", (), ())[1]
        show(MEMORY_OPEN, MEMORY_OPEN_TEXT, lambda: is_open(memory), registry)
        calls: Any = TTLCache(maxsize=_MOST_CALLS, ttl=_LONGEST_CALL)
        self._calls: MutableMapping[str, ProxyCall] = calls

    # -- before the router -------------------------------------------------------------------------

    async def async_pre_call_hook(
        self,
        user_api_key_dict: Any,
        cache: Any,
        data: dict[str, Any],
        call_type: str,
    ) -> dict[str, Any]:
        """Give the request fallbacks to its own model group."""
        try:
            return self._register_call(user_api_key_dict, data, call_type)
        except Exception as error:  # noqa: BLE001 - the request is sent as without the plug-in
            log.warning("compacter: a request was left alone: %s", type(error).__name__)
            return data

    def _register_call(
        self, user_api_key_dict: Any, data: dict[str, Any], call_type: str
    ) -> dict[str, Any]:
        protocol = PROTOCOLS.get(call_type)
        group = data.get("model")
        metadata_name, metadata = metadata_of(data)
        metadata.pop(TOKEN, None)
        if (
            protocol is None
            or not isinstance(group, str)
            or not isinstance(data.get(protocol.messages_param), list)
        ):
            return data
        if (
            data.get("previous_response_id") or "," in group
        ):  # The provider stores the history; several models are called at once.
            return data
        team = (text_of(user_api_key_dict, "team_id"), text_of(user_api_key_dict, "team_alias"))
        key = (text_of(user_api_key_dict, "api_key"), text_of(user_api_key_dict, "key_alias"))
        switches, state = self.settings.of(group, team, key)
        if not switches.enabled:
            return data
        shared = team[0] if self.settings.memory_settings.share == "team" else None
        theirs = setting(data, "fallbacks")
        call = ProxyCall(
            protocol=protocol,
            auth=user_api_key_dict,
            metadata_name=metadata_name,
            tenant=f"team {shared}" if shared else f"key {key[0]}",
            team=team,
            key=key,
            given=frozenset((*data, metadata_name, "context_window_fallbacks", "fallbacks")),
            given_metadata=frozenset((*metadata, TOKEN)),
            context_fallbacks=[],
            fallbacks=[],
        )
        token = metadata[TOKEN] = secrets.token_hex(16)
        self._calls[token] = call
        if not switches.dry_run and not data.get("disable_fallbacks"):
            rounds = _most_rounds(state)
            call.fallbacks.extend(theirs)
            call.context_fallbacks.extend(
                with_own(setting(data, "context_window_fallbacks"), group, theirs, rounds)
            )
            data["context_window_fallbacks"] = call.context_fallbacks
            data["fallbacks"] = call.fallbacks
        return data

    # -- before and after every attempt ------------------------------------------------------------

    async def async_pre_call_deployment_hook(
        self, kwargs: dict[str, Any], call_type: Any
    ) -> dict[str, Any] | None:
        """Return the arguments of this attempt; ``None`` to leave them unchanged."""
        own_round = kwargs.pop(ROUND, 0)
        call = self._call_of(kwargs)
        if call is None or PROTOCOLS.get(name_of(call_type)) is None:
            return None
        if call.call_type is None:
            call.call_type = call_type
        if call.call_type != call_type or not isinstance(
            kwargs.get(call.protocol.messages_param), list
        ):
            return None
        metadata = kwargs.get(call.metadata_name) or {}
        group = group_of(call, kwargs)
        switches, state = self._of(call, group)
        if not switches.enabled or switches.dry_run:
            return None
        stepped = call.by_group.get(group)
        first = stepped is None
        if stepped is None:
            call.refused = None  # The refusal came from another group's model.
            stepped = call.by_group[group] = SteppedCall(state, self._binding(call, group, state))
            learn_windows(state, group, kwargs)
        refused = call.refused
        call.refused = None
        said = call.said
        call.said = last_failure(metadata)
        if refused is None and call.sent and not first and call.said is not said:
            # The attempt failed without a call of the failure hook: the refusal came inside a
            # stream.
            refused = self._refused_inside_stream(
                state, group, call.said, is_own=own_round > call.round
            )
        call.round = max(call.round, own_round)
        caller = CALLER.set(Caller(group, metadata, call.auth))
        began = time.monotonic()
        try:
            if first:
                made = await stepped.first(kwargs)
            elif refused is None:
                made = stepped.same(kwargs)
            else:
                made = await stepped.again(kwargs, *refused)
                self.metrics.observe("wait_seconds", time.monotonic() - began)
        finally:
            CALLER.reset(caller)
        call.sent = True
        return made

    async def async_post_call_failure_deployment_hook(
        self,
        request_data: Mapping[str, Any],
        exception: Exception,
        call_type: Any,
        fallback_depth: int | None = None,
    ) -> None:
        """Record why an attempt failed, before the router chooses a fallback."""
        call = self._call_of(request_data)
        if call is None:
            return
        group = group_of(call, request_data)
        switches, state = self._of(call, group)
        found = state.detect(exception)
        if found is None or not switches.enabled:
            call.refused = None
            call.sent = False
            return
        if call.refused is not None or (not call.sent and not switches.dry_run):
            return  # Already recorded by the nested call.
        state.count("refusals", group)
        if switches.dry_run:
            state.count("dry_runs", group)
            log.warning(
                "compacter: dry run: %s refused (limit %s, requested %s)",
                group,
                found.limit,
                found.requested,
            )
            return
        call.refused = (exception, found)
        call.sent = False
        if group not in call.prepared:
            call.prepared.add(group)
            own = targets(group, _most_rounds(state))
            if is_plain(call.fallbacks):
                call.fallbacks[:0] = own
            else:
                call.fallbacks.insert(0, {group: [*own, *of_group(call.fallbacks, group)]})

    async def async_post_call_streaming_iterator_hook(
        self,
        user_api_key_dict: Any,
        response: Any,
        request_data: dict[str, Any],
    ) -> AsyncGenerator[Any, None]:
        """Read a stream up to its first content, and repeat the call if it has a token limit."""
        from litellm.proxy import proxy_server

        call = self._call_of(request_data)
        group = str(request_data.get("model"))
        switches, state = self._of(call, group) if call else self.settings.of(group, (), ())
        if call is None or not switches.enabled or switches.dry_run:
            async for chunk in response:
                yield chunk
            return
        stream: Any = response
        while True:
            held, error, found = await read_until_content(stream, state.detect)
            if found is None:
                break
            state.count("refusals", group)
            call.refused = (
                error or RuntimeError("the stream states that the request is too long"),
                found,
            )
            method = getattr(proxy_server.llm_router, call.protocol.method)
            try:
                again = await method(**call.without_route(request_data))
            except Exception as failure:  # noqa: BLE001 - the client gets the refusal
                log.debug("compacter: no further attempt: %s", type(failure).__name__)
                break
            await close(ASYNC, stream)
            stream = again
        for chunk in held:
            yield chunk
        if error is not None:
            raise error
        async for chunk in stream:
            yield chunk

    # -- after the call ----------------------------------------------------------------------------

    async def async_post_call_success_deployment_hook(
        self, request_data: dict[str, Any], response: Any, call_type: Any
    ) -> Any:
        """Record a reply's usage."""
        call = self._call_of(request_data)
        if call is not None and call.call_type == call_type and not request_data.get("stream"):
            await self._note_answer(call, request_data, response)

    async def async_log_success_event(
        self,
        kwargs: dict[str, Any],
        response_obj: Any,
        start_time: Any,
        end_time: Any,
    ) -> None:
        """Record the usage of a stream that has ended, and release the messages of its call."""
        request = kwargs.get("litellm_params") or {}
        call = self._call_of(request)
        if call is not None:
            if kwargs.get("stream"):
                await self._note_answer(call, request, response_obj)
            call.end()

    async def async_post_call_failure_hook(
        self,
        request_data: dict[str, Any],
        original_exception: Exception,
        user_api_key_dict: Any,
        traceback_str: str | None = None,
    ) -> None:
        """Release the messages of a call that has failed finally."""
        call = self._call_of(request_data)
        if call is not None:
            call.end()

    # -- inside ------------------------------------------------------------------------------------

    async def _note_answer(
        self, call: ProxyCall, request: Mapping[str, Any], reply: object
    ) -> None:
        group = group_of(call, request)
        stepped = call.by_group.get(group)
        if stepped is None:
            return
        # This caller also pays for a compaction made ahead.
        metadata = request.get(call.metadata_name) or {}
        self._of(call, group)
        if stepped.tokens_saved:
            self.metrics.add("tokens_saved", stepped.tokens_saved)
        caller = CALLER.set(Caller(group, metadata, call.auth))
        try:
            await stepped.answered(reply)
        finally:
            CALLER.reset(caller)

    def _of(self, call: ProxyCall, group: str) -> tuple[Switches, CountingState]:
        """Return the settings for a call, and begin to count its figures."""
        switches, state = self.settings.of(group, call.team, call.key)
        ORIGIN.set(Origin("", group, state.tenant_class))
        return switches, state

    def _call_of(self, request: Mapping[str, Any]) -> ProxyCall | None:
        for name in ("litellm_metadata", "metadata"):
            metadata = request.get(name)
            token = metadata.get(TOKEN) if isinstance(metadata, Mapping) else None
            if isinstance(token, str):
                return self._calls.get(token)
        return None

    def _binding(self, call: ProxyCall, group: str, state: State) -> ProxyBinding:
        summarizer = state.options.summarizer
        writer = summarizer.group if isinstance(summarizer, RouterSummarizer) else summarizer
        return replace(
            call.protocol,
            group=group,
            place=f"litellm proxy, {call.tenant}, summaries by {writer}",
        )

    def _refused_inside_stream(
        self, state: State, group: str, said: object, *, is_own: bool
    ) -> tuple[Exception, TokenLimit] | None:
        from litellm.exceptions import ContextWindowExceededError

        text = str(said.get("exception_string", "")) if isinstance(said, Mapping) else ""
        found = state.detect(RuntimeError(text)) or (TokenLimit() if is_own else None)
        if found is None:
            return None
        state.count("refusals", group)
        return ContextWindowExceededError(message=text, model=group, llm_provider=""), found


def make() -> CompacterPlugin:
    """Return the plug-in, with the settings of the config file that the proxy has read.

    Raises:
        ConfigurationError: A setting is invalid, or the plug-in does not support this version of
            litellm.
    """
    import litellm

    check_version()
    given = (getattr(litellm, "callback_settings", None) or {}).get("compacter")
    plugin = CompacterPlugin(given)
    check_settings(plugin.settings)
    return plugin


def _most_rounds(state: State) -> int:
    retries = state.options.max_retries
    return retries if isinstance(retries, int) else 3
