"""``Quotes(tool=True)``: add the tool ``recall`` to a request, and answer the model's calls of
it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from compacter.call import streams
from compacter.call.effects import Send
from compacter.call.pump import pump
from compacter.effects import Flow
from compacter.lines import tool
from compacter.lines.tool_stream import Seam, has_call, reply_of, text_beside
from compacter.messages.fields import dig, first, word
from compacter.messages.format import Message
from compacter.messages.replies import Reply
from compacter.runtime.io import IO, Stopped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compacter.call.arguments import Binding, CallFacts, Options
    from compacter.call.call import Call
    from compacter.call.handlers import Handlers
    from compacter.lines.passages import Quotes

_MOST_ROUNDS = 3
"""Most rounds of searches in one call. The caller waits for each, and if three queries find
nothing, the conversation seldom has it."""
# Formats whose replies are read.
_FORMATS = ("openai", "anthropic", "responses", "gemini")
# Options with which a reply has another form than the provider's usual one, or is not there yet.
_UNREADABLE = ("extra_headers.X-Stainless-Raw-Response", "background")
# Options of Gemini with which it refuses another tool.
_ALONE = ("cached_content", "response_mime_type", "response_schema", "response_json_schema")
# A response that OpenAI does not store can be continued only with its reasoning.
_SEALED = "reasoning.encrypted_content"
_UNABLE = (
    "Quotes(tool=True) is for chat completions, Anthropic's messages, OpenAI's responses and "
    "Gemini's contents, and for functions that take tools= and return the provider's reply or "
    "stream: wrap this one with another Compacter, or add compacter.recall_tool to its tools"
)
# Calls that a text can answer; their other types have results of their own.
_TEXTUAL = ("function_call", "custom_tool_call")
_NOT_DONE = "Not carried out, as recall was called with it. Call it again if it is still needed."
_LAST = "\nThis was the last search: answer now."


def fault_of(recall: Quotes | None, binding: Binding) -> str:
    """Return the reason why the tool cannot be added to the calls of a function; empty if it can
    be, or is not wanted.
    """
    takes = binding.accepts is None or "tools" in binding.accepts
    is_able = takes and binding.wire_format in (None, *_FORMATS)
    return "" if is_able or recall is None or not recall.tool else _UNABLE


def with_recall(
    recall: Quotes | None, binding: Binding, facts: CallFacts, form: Any, name: str
) -> tuple[Any, ...]:
    """Return the caller's tools and ``recall``; an empty tuple if that is not wanted, the reply of
    a function of this name cannot be read, or the caller has a tool ``recall``.
    """
    if recall is None or not recall.tool or fault_of(recall, binding):
        return ()
    options = binding.options(facts.named)
    tools = options.get("tools") or ()
    count = first(options, ("n", "candidate_count"))
    if (
        form not in _FORMATS
        or binding.param_of(facts.named) not in facts.named  # In a body, as the reply is.
        or "parse" in name  # It accepts only tools of its own kind.
        or first({**binding.declared, **options}, _UNREADABLE)
        or (type(count) is int and count > 1)
        or not isinstance(tools, (list, tuple))
        or tool.NAME in tool.names_of(tools)
        or (options.get("store") is False and _SEALED not in (options.get("include") or ()))
        or (form == "gemini" and not _fits_gemini(binding, options, tools))
    ):
        return ()
    return (*tools, tool.definition(form))


def _fits_gemini(binding: Binding, options: Options, tools: Sequence[object]) -> bool:
    """Return whether Gemini takes another tool beside these options, and a user's function takes it
    in ``tools``; Gemini's own are in ``config``.
    """
    is_taken = binding.vendors or "tools" in {**binding.declared, **options}
    functions = (callable(each) or dig(each, "function_declarations") for each in tools)
    return is_taken and not first(options, _ALONE) and all(functions)


@dataclass(eq=False)
class Recalls:
    """Answers the model's calls of ``recall`` with compacted passages, in one call.

    Calls of other tools in such a reply do not reach the caller: the model is expected to repeat
    them with what it has found.
    """

    call: Call
    left: int = _MOST_ROUNDS
    """Rounds of searches that are left; below 0, the tool is not offered any more."""
    exchanged: tuple[Message, ...] = ()
    """The model's calls so far, and their results."""

    def follow(self, raw: object) -> Flow[Reply | None]:
        """Return the next reply after one that calls ``recall``; ``None`` after any other.

        If a round does not fit, or no round is ``left``, send the request once more without the
        tool and the messages ``exchanged``. Raises the exceptions of the provider.
        """
        request = self.call.request
        if self.left < 0:
            return None
        form: Any = request.format.name
        messages, calls = tool.calls_of(raw, form)
        if tool.NAME not in map(tool.name_of, calls):
            return None
        if self.left and (
            form != "responses" or all(word(each, "type") in _TEXTUAL for each in calls)
        ):
            self.left -= 1
            texts: list[str] = []
            for each in calls:
                text = yield from _search(self.call, each)
                texts.append(text + _LAST * (self.left == 0))
            results = tool.results(calls, texts, form)
            self.exchanged = (*self.exchanged, *messages, *results)
            reply = yield from Send([*request.sent, *self.exchanged], request.options_sent)
            if reply.token_limit is None:
                return reply
        self.left = -1
        reply = yield from Send(request.sent, request.options)
        if reply.error is not None:
            raise reply.error
        return reply


async def answered(handlers: Handlers, raw: Any) -> Any:
    """Return the first reply that does not call ``recall``, or a stream in which no call of it is
    left.
    """
    if handlers.io.asynchronous and streams.shapes(type(raw)) == ("__await__",):
        raw = await raw
    if not handlers.call.request.offers_recall:
        return raw
    recalls = Recalls(handlers.call)
    while (reply := await pump(recalls.follow(raw), handlers)) is not None:
        raw = reply.raw
    return joined(handlers, raw)


def joined(handlers: Handlers, raw: Any) -> Any:
    """Return the vendor's stream so that the model's calls of ``recall`` are answered inside it;
    any other reply unchanged.
    """
    offers = handlers.call.request.offers_recall
    if not offers or handlers.io.iterates not in streams.shapes(type(raw)):
        return raw
    return streams.join(raw, _Joined(handlers))


class _Joined:
    """Reads the streams of one call as one. Once a reply has called a tool, its chunks are held
    until it ends, as it may call ``recall`` too.
    """

    def __init__(self, handlers: Handlers) -> None:
        self.recalls = Recalls(handlers.call)
        self.handlers = handlers
        self.form = handlers.call.request.format.name
        self.seam = Seam()
        self.chunks: list[Any] = []
        """Chunks of the present reply."""
        self.held: list[Any] = []
        """Those of them that wait for its end."""
        self.ready: deque[Any] = deque()
        """Chunks for the caller."""

    def begin(self, stream: Any, reader: streams.Replay) -> None:
        """Begin with a vendor's stream, and what has read it so far."""
        self.stream = self.source = stream
        self.reader = reader

    async def step(self, io: IO, stream: Any) -> Any:
        """Return the next chunk for the caller, or ``END``."""
        while not self.ready and self.source is not None:
            try:
                if self.source is stream:
                    chunk = await self.reader.step(io, stream)
                else:
                    chunk = await io.call(io.step, self.source)
            except (Stopped, StopAsyncIteration):
                chunk = streams.END
            if chunk is streams.END:
                await self._end()
            else:
                self._take(chunk)
        return self.ready.popleft() if self.ready else streams.END

    def _take(self, chunk: Any) -> None:
        self.chunks.append(chunk)
        if self.held or (self.recalls.left >= 0 and has_call(chunk)):
            self.held.append(chunk)
        else:
            self._pass_on(chunk)

    async def _end(self) -> None:
        """Pass on what was held, and turn to the stream that follows, if any does. ``close`` then
        closes that one.
        """
        raw = reply_of(self.chunks, self.form) if self.held else None
        reply = await pump(self.recalls.follow(raw), self.handlers)
        for chunk in self.held:
            self._pass_on(chunk if reply is None else text_beside(chunk))
        self.chunks = []
        self.held = []
        self.seam.begin()
        self.source = None if reply is None else streams.core(reply.raw)
        for name in ("close", "aclose"):
            if hasattr(self.source, name):
                self.stream.__dict__[name] = getattr(self.source, name)

    def _pass_on(self, chunk: Any) -> None:
        fitting = None if chunk is None else self.seam.fit(chunk)
        if fitting is not None:
            self.ready.append(fitting)


def _search(call: Call, each: object) -> Flow[str]:
    """Return the text of a call's result."""
    if tool.name_of(each) != tool.NAME:
        return _NOT_DONE
    query = tool.query_of(each)
    if not query:
        return tool.NO_QUERY
    return (yield from call.quote(0, query=query)) or tool.NOTHING
