"""LangChain: any chat model, and a middleware for its agents.

``compacter.wrap(ChatOpenAI(...))`` is a chat model of the same type, for chains, LangGraph and
agents. For an agent whose model is given by name, use `compaction_middleware`
(https://docs.langchain.com/oss/python/langchain/middleware/custom).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from compacter.frameworks.own_types import Adapter, back, completion, each

if TYPE_CHECKING:
    from compacter.compacter import Compacter


def _read(message: Any) -> Mapping[str, Any]:
    from langchain_core.messages import convert_to_openai_messages

    found: dict[str, Any] = convert_to_openai_messages(message)
    return found


def _write(message: Mapping[str, Any]) -> Any:
    from langchain_core.messages import convert_to_messages

    return convert_to_messages([dict(message)])[0]


def _answer(result: Any) -> Any:
    message = result.generations[0].message
    usage = message.usage_metadata or {}
    return completion(message.text, (usage.get("input_tokens", 0), usage.get("output_tokens", 0)))


def _quiet(chunk: Any) -> bool:
    message = chunk.message
    return not (message.content or message.tool_call_chunks or message.additional_kwargs)


_METHODS = {
    "_generate": "_generate",
    "_agenerate": "_agenerate",
    "_stream": "_generate",
    "_astream": "_agenerate",
}


def adapter_of(kind: type[Any]) -> Adapter:
    """Return the adapter of a class of chat models. It wraps their own methods, which the base
    class calls.
    """
    from langchain_core.language_models import BaseChatModel

    return Adapter(
        methods={
            name: other
            for name, other in _METHODS.items()
            if getattr(kind, name) is not getattr(BaseChatModel, name)
        },
        read=each(_read),
        write=back(_write),
        answer=_answer,
        left_out=frozenset({"run_manager"}),
        output_param="max_tokens" if "max_tokens" in kind.model_fields else None,
        quiet=_quiet,
    )


def compaction_middleware(compacter: Compacter) -> Any:
    """Return a middleware for ``langchain.agents.create_agent``, if the model is given by name or
    chosen elsewhere.

    Args:
        compacter: The ``Compacter`` for all models that the agent calls.

    Raises:
        ImportError: ``langchain`` is not installed.
    """
    try:
        from langchain.agents.middleware import AgentMiddleware
    except ImportError as error:
        raise ImportError(
            "compaction_middleware needs LangChain's agents: pip install langchain"
        ) from error

    class CompactionMiddleware(AgentMiddleware):
        def __init__(self) -> None:
            super().__init__()
            self._last: tuple[Any, Any] = (None, None)

        def _wrap_request(self, request: Any) -> Any:
            model, wrapped = self._last
            if model is not request.model:
                model = request.model
                wrapped = compacter.wrap(request.model)
                self._last = model, wrapped
            return request.override(model=wrapped)

        def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            return handler(self._wrap_request(request))

        async def awrap_model_call(
            self, request: Any, handler: Callable[[Any], Awaitable[Any]]
        ) -> Any:
            return await handler(self._wrap_request(request))

    return CompactionMiddleware()
