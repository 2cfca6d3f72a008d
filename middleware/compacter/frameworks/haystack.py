"""Haystack: any chat generator (https://docs.haystack.deepset.ai/docs/generators)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from haystack import component
from haystack.core.errors import DeserializationError
from haystack.dataclasses import ChatMessage

from compacter.call.state import State
from compacter.clients.wrapping import wrap
from compacter.frameworks.own_types import (
    Adapter,
    back,
    completion,
    each,
    options_to_save,
    unwrap_copy,
)
from compacter.options import validated

# Packages whose classes a saved pipeline may name; Haystack's own list of trusted modules is not
# used here.
_TRUSTED = ("haystack", "haystack_integrations")


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


def _saving(kind: type[Any], state: State) -> Mapping[str, Any]:
    def to_dict(self: Any) -> dict[str, Any]:
        inner = kind.to_dict(unwrap_copy(self, kind))
        here = f"{Compacted.__module__}.{Compacted.__name__}"
        return {
            "type": here,
            "init_parameters": {"generator": inner, "options": options_to_save(state)},
        }

    return {"to_dict": to_dict}


def adapter_of(kind: type[Any]) -> Adapter:
    """Return the adapter of a class of chat generators, for pipelines and agents."""

    def silent(generator: Any) -> Any:
        plain = unwrap_copy(generator, kind)
        plain.streaming_callback = None
        return plain

    return Adapter(
        methods={"run": "run", "run_async": "run_async"},
        read=each(_read),
        write=back(_write),
        answer=_answer,
        left_out=frozenset({"streaming_callback", "tools_strict"}),
        output_param=None,
        bare=silent,
        saving=_saving,
    )


@component
class Compacted:
    """Placeholder of a wrapped generator in a saved pipeline. Loading it returns the generator,
    wrapped.
    """

    def run(self, messages: list[ChatMessage]) -> dict[str, list[ChatMessage]]:
        """Never called, as ``from_dict`` returns the generator."""
        raise NotImplementedError

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        """Return the generator, wrapped with the saved options."""
        inner = data["init_parameters"]["generator"]
        module, _, name = inner["type"].rpartition(".")
        if module.partition(".")[0] not in _TRUSTED:
            raise DeserializationError(
                f"compacter loads generators of {' and '.join(_TRUSTED)} only, and not "
                f"{inner['type']!r}: "
                "load that one yourself and wrap it"
            )
        generator = getattr(import_module(module), name).from_dict(inner)
        state = State(validated(data["init_parameters"]["options"]))
        return wrap(state, generator, messages_param=None, wire_format=None)
