"""Pydantic AI: a model around a model (https://ai.pydantic.dev/api/models/wrapper/).

Where the model takes a client of its vendor's SDK,
``OpenAIProvider(openai_client=compacter.wrap(AsyncOpenAI()))`` is enough. `CompactingModel` is for
all others, and for a model that is given by name.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    FilePart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel

from compacter.call.arguments import Args, CallFacts, Options
from compacter.call.wrap import wrap_function
from compacter.frameworks.own_types import (
    Adapter,
    Mirror,
    OwnTypes,
    Piece,
    back,
    completion,
    mixed,
    separate_media,
    tool_call,
)

if TYPE_CHECKING:
    from compacter.compacter import Compacter

# -- messages --------------------------------------------------------------------------------------
#
# A request has several parts, each a message in OpenAI's form. Kept parts are put back into their
# request.


def _read(messages: Sequence[Any]) -> list[Mirror]:
    found: list[Mirror] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            found.append(Mirror(_response(message), message))
        else:
            found += [
                Mirror(_part(part), Piece(message, part, len(message.parts)))
                for part in message.parts
            ]
    return found


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, UserPromptPart):
        return {"role": "user", "content": mixed(part.content, _data)}
    if isinstance(part, RetryPromptPart) and part.tool_name is None:
        return {"role": "user", "content": part.model_response()}
    if isinstance(part, (ToolReturnPart, RetryPromptPart)):
        is_retry = isinstance(part, RetryPromptPart)
        text = part.model_response() if is_retry else part.model_response_str()
        return {
            "role": "tool",
            "tool_call_id": part.tool_call_id,
            "name": part.tool_name,
            "content": mixed([text, *getattr(part, "files", ())], _data),
        }
    # System prompts and instructions; also unknown parts of later versions, which are then never
    # compacted.
    return {"role": "system", "content": str(getattr(part, "content", ""))}


def _data(medium: Any) -> dict[str, Any]:
    """Return the fields of a medium, of which some have private names and public properties."""
    return {name.lstrip("_"): value for name, value in vars(medium).items()}


def _response(message: ModelResponse) -> dict[str, Any]:
    texts = [
        part.content
        for part in message.parts
        if isinstance(getattr(part, "content", None), str) and not isinstance(part, ThinkingPart)
    ]
    files = [part.content for part in message.parts if isinstance(part, FilePart)]
    content = mixed(["\n".join(texts), *files], _data)
    found: dict[str, Any] = {"role": "assistant", "content": content}
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    if calls:
        found["tool_calls"] = [
            tool_call(call.tool_call_id, call.tool_name, call.args_as_json_str()) for call in calls
        ]
    return found


def _make_message(message: Mapping[str, Any]) -> ModelMessage:
    """Return a message written or shortened by compacter."""
    role = message["role"]
    content = separate_media(message.get("content"))
    if role == "assistant":
        calls = [
            ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"])
            for call in message.get("tool_calls") or ()
        ]
        said = content if isinstance(content, list) else [content] if content or not calls else []
        return ModelResponse(
            [*(TextPart(one) if isinstance(one, str) else FilePart(one) for one in said), *calls]
        )
    if role == "tool":
        return ModelRequest(
            [ToolReturnPart(str(message.get("name")), content, message["tool_call_id"])]
        )
    return ModelRequest(
        [SystemPromptPart(content) if role == "system" else UserPromptPart(content)]
    )


_write = back(_make_message, lambda message, parts: replace(message, parts=parts))

# -- calls -----------------------------------------------------------------------------------------


async def _request(
    model: Model, messages: list[ModelMessage], settings: Any, parameters: Any
) -> ModelResponse:
    return await model.request(messages, settings, parameters)


class _Events:
    """Iterator over the events of a streamed response, which can be read ahead."""

    def __init__(self, response: Any, stack: AsyncExitStack) -> None:
        self.response = response
        self._stack = stack
        self._events = response._get_event_iterator()  # noqa: SLF001 - the method that subclasses define

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        return await anext(self._events)

    async def aclose(self) -> None:
        await self._stack.aclose()


async def _open(
    model: Model,
    messages: list[ModelMessage],
    settings: Any,
    parameters: Any,
    context: Any,
    stack: AsyncExitStack,
) -> Any:
    own = await stack.enter_async_context(AsyncExitStack())
    response: Any = await own.enter_async_context(
        model.request_stream(messages, settings, parameters, context)
    )
    # If the stream was read already, it comes from a ``FallbackModel``, which reads ahead too.
    return response if response._event_iterator is not None else _Events(response, own)  # noqa: SLF001


async def _ask(
    model: Model,
    messages: list[ModelMessage],
    settings: Any,
    *_: Any,
    max_tokens: int | None = None,
    **__: Any,
) -> Any:
    """Return a summary request, without tools and output types and their settings."""
    kept = {
        name: value
        for name, value in (settings or {}).items()
        if name not in {"tool_choice", "stop_sequences"}
    }
    limited: Any = {**kept, "max_tokens": max_tokens} if max_tokens else kept
    response = await model.request(messages, limited, ModelRequestParameters())
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    return completion("\n".join(texts), (response.usage.input_tokens, response.usage.output_tokens))


@dataclass(frozen=True, slots=True)
class _Parameters(OwnTypes):
    """Binding that also reads the tools and instructions, which pydantic-ai passes in an object of
    their own.

    Without it, all tokens of a refused request would be counted as its messages', so that pieces of
    a conversation for the summarizer would be too short, and too many.
    """

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Read the arguments, and the tools and instructions among them."""
        facts = OwnTypes.read(self, args, kwargs)
        return replace(facts, beside=_beside(args[1], args[3]))


def _beside(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> list[Any]:
    """Return the instructions, and the tools in OpenAI's form."""
    requests = (message for message in reversed(messages) if isinstance(message, ModelRequest))
    instructions = next((request.instructions for request in requests), None)
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_json_schema,
            },
        }
        for tool in (*parameters.function_tools, *parameters.output_tools)
    ]
    return [value for value in (instructions, tools) if value]


class CompactingModel(WrapperModel):
    """Model that compacts the messages of a request that its provider refuses as too long.

    Args:
        wrapped: A model, or its name, such as ``openai:gpt-4o``.
        compacter: The ``Compacter``, preferably one for the whole program.
    """

    def __init__(self, wrapped: Model | str, compacter: Compacter) -> None:
        super().__init__(wrapped)
        binding = _Parameters(
            wire_format="openai",
            positional=("self", "messages", "settings", "parameters", "context", "stack"),
            accepts=frozenset({"max_tokens"}),
            summary_function=_ask,
            adapter=Adapter(read=_read, write=_write),
        )
        state = compacter._state  # noqa: SLF001 - same package
        self._requested = wrap_function(state, _request, binding)
        self._opened = wrap_function(state, _open, binding)

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Send a request with the wrapped model."""
        response: ModelResponse = await self._requested(
            self.wrapped, messages, model_settings, model_request_parameters
        )
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Stream a request with the wrapped model; its first event was read ahead."""
        async with AsyncExitStack() as stack:
            opened = await self._opened(
                self.wrapped, messages, model_settings, model_request_parameters, run_context, stack
            )
            if isinstance(opened, StreamedResponse):
                yield opened
            else:
                opened.response._get_event_iterator = lambda: opened  # noqa: SLF001 - called once, by its iterator
                yield opened.response
