"""Microsoft's Agent Framework: any chat client
(https://learn.microsoft.com/en-us/agent-framework/).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from agent_framework import Content, Message, ResponseStream
from agent_framework.exceptions import ChatClientException

from compacter.call.state import State
from compacter.call.wrap import wrap_function
from compacter.frameworks.own_types import (
    Adapter,
    Mirror,
    OwnTypes,
    Piece,
    back,
    calls_of,
    completion,
    contents_of,
    mixed,
    separate_media,
    tool_call,
)
from compacter.messages.fields import field, json_text
from compacter.messages.refusals import detect_in_reply
from compacter.runtime.objects import with_special_methods

T = TypeVar("T")
# Options of the call that are kept in a summary request.
_CARRIED = ("model", "temperature", "top_p", "store", "user")


def _read(messages: Sequence[Any]) -> list[Mirror]:
    found: list[Mirror] = []
    for message in messages:
        results = [content for content in message.contents if content.type == "function_result"]
        if results and len(results) == len(message.contents):
            found += [
                Mirror(
                    {
                        "role": "tool",
                        "tool_call_id": one.call_id,
                        "content": _with_media(json_text(one.result), getattr(one, "items", None)),
                    },
                    Piece(message, one, len(results)),
                )
                for one in results
            ]
        else:
            found.append(Mirror(_whole(message), message))
    return found


def _whole(message: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "role": str(message.role),
        "content": _with_media(message.text, message.contents),
    }
    calls = [content for content in message.contents if content.type == "function_call"]
    if calls:
        found["tool_calls"] = [
            tool_call(call.call_id, call.name, json_text(call.arguments)) for call in calls
        ]
    return found


def _with_media(text: str, contents: Sequence[Any] | None) -> Any:
    media = [
        content for content in contents or () if content.type in {"data", "uri", "hosted_file"}
    ]
    return mixed([text, *media], lambda medium: medium.to_dict())


def _make_message(message: Mapping[str, Any]) -> Any:
    if message["role"] == "tool":
        result = separate_media(message.get("content"))
        return Message(
            "tool", [Content.from_function_result(message["tool_call_id"], result=result)]
        )
    calls = [
        Content.from_function_call(identity, name, arguments=arguments)
        for identity, name, arguments in calls_of(message)
    ]
    return Message(message["role"], [*contents_of(message), *calls])


_write = back(_make_message, lambda message, parts: Message(message.role, parts))


def _refuse(update: Any) -> None:
    """Raise the refusal in an update, which OpenAI's chat client would turn into an empty
    answer.
    """
    event = update.raw_representation
    if field(event, "type") == "response.failed" and detect_in_reply(event) is not None:
        raise ChatClientException(
            f"The provider has refused the request: {field(field(event, 'response'), 'error')}"
        )


def _server(client: Any) -> str:
    return str(getattr(getattr(client, "client", None), "base_url", ""))


def wrap_client(state: State, client: T) -> T:
    """Return a compacting copy of a chat client, for agents and workflows.

    Each request of a function-calling loop is one call.
    """
    inner: Any = type(client)._inner_get_response  # type: ignore[attr-defined]  # noqa: SLF001 - the method that clients define

    async def send(self: Any, *, stream: bool, **kwargs: Any) -> Any:
        reply = inner(self, stream=stream, **kwargs)
        return reply.with_transform_hook(_refuse) if stream else await reply

    async def ask(
        self: Any, *, messages: Sequence[Any], max_tokens: int, options: Any = None, **_: Any
    ) -> Any:
        kept = {
            name: options[name] for name in _CARRIED if options and options.get(name) is not None
        }
        response = await inner(
            self, messages=messages, stream=False, options={**kept, "max_tokens": max_tokens}
        )
        usage = response.usage_details or {}
        return completion(
            response.text,
            (usage.get("input_token_count") or 0, usage.get("output_token_count") or 0),
        )

    binding = OwnTypes(
        wire_format="openai",
        positional=("self",),
        accepts=frozenset({"max_tokens"}),
        summary_function=ask,
        quiet=lambda update: not update.contents,
        adapter=Adapter(read=_read, write=_write, server=_server),
    )
    sent = wrap_function(state, send, binding)

    def get(self: Any, *, stream: bool, **kwargs: Any) -> Any:
        reply = sent(self, stream=stream, **kwargs)
        return ResponseStream.from_awaitable(reply) if stream else reply

    return with_special_methods(copy.copy(client), {"_inner_get_response": get})
