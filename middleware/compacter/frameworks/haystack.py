"""Haystack: any chat generator (https://docs.haystack.deepset.ai/docs/generators)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from haystack.dataclasses import ChatMessage

from compacter.frameworks.own_types import Adapter, back, completion, each


def _read(message: ChatMessage) -> Mapping[str, Any]:
    found: dict[str, Any] = message.to_openai_dict_format(require_tool_call_ids=False)
    return found


def _write(message: Mapping[str, Any]) -> ChatMessage:
    return ChatMessage.from_openai_dict_format(dict(message))


def _answer(result: Any) -> Any:
    reply = result["replies"][0]
    usage = reply.meta.get("usage") or {}
    return completion(
        reply.text or "", (usage.get("prompt_tokens") or 0, usage.get("completion_tokens") or 0)
    )


def adapter_of(kind: type[Any]) -> Adapter:
    """Return the adapter of a class of chat generators, for pipelines and agents."""

    def silent(generator: Any) -> Any:
        """Return an unwrapped copy, of the original class, without its streaming callback."""
        plain = object.__new__(kind)
        plain.__dict__.update(vars(generator), streaming_callback=None)
        return plain

    return Adapter(
        methods={"run": "run", "run_async": "run_async"},
        read=each(_read),
        write=back(_write),
        answer=_answer,
        left_out=frozenset({"streaming_callback", "tools_strict"}),
        output_param=None,
        bare=silent,
    )
