"""``Quotes(tool=True)``: add the tool ``recall`` to a request, and answer the model's calls of
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compacter.call.effects import Send
from compacter.effects import Flow
from compacter.lines import tool
from compacter.messages.fields import first
from compacter.messages.format import Message

if TYPE_CHECKING:
    from compacter.call.arguments import Binding, CallFacts
    from compacter.call.call import Call
    from compacter.lines.passages import Quotes

_MOST_ROUNDS = 3
"""Most rounds of searches in one call. The caller waits for each, and if three queries find
nothing, the conversation seldom has it."""
# Formats whose replies are read.
_FORMATS = ("openai", "anthropic")
# Options that make the reply a stream or another form than the provider's usual one.
_UNREADABLE = ("stream", "extra_headers.X-Stainless-Raw-Response")
_UNABLE = (
    "Quotes(tool=True) is for chat completions and Anthropic's messages, and for functions that "
    "take tools= and return the whole reply: wrap this one with another Compacter, or add "
    "compacter.recall_tool to its tools"
)
_NOT_DONE = "Not carried out, as recall was called with it. Call it again if it is still needed."
_LAST = "\nThis was the last search: answer now."


def fault_of(recall: Quotes | None, binding: Binding) -> str:
    """Return the reason why the tool cannot be added to the calls of a function; empty if it can
    be, or is not wanted.
    """
    takes = binding.accepts is None or "tools" in binding.accepts
    is_able = takes and binding.wire_format in (None, *_FORMATS)
    return "" if is_able or recall is None or not recall.tool else _UNABLE


def with_recall(binding: Binding, facts: CallFacts, form: Any, name: str) -> tuple[Any, ...]:
    """Return the caller's tools and ``recall``; an empty tuple if the reply of a function of this
    name cannot be read, or the caller has a tool ``recall``.
    """
    tools = facts.named.get("tools") or ()
    if (
        form not in _FORMATS
        or binding.param_of(facts.named) not in facts.named  # In a body, as the reply is.
        or "parse" in name  # It accepts only tools of its own kind.
        or "stream" in name
        or first({**binding.declared, **facts.named}, _UNREADABLE)
        or not isinstance(tools, (list, tuple))
        or tool.NAME in map(tool.name_of, tools)
    ):
        return ()
    return (*tools, tool.definition(form))


def answer_recalls(
    call: Call, raw: object, exchanged: Sequence[Message] = (), left: int = _MOST_ROUNDS
) -> Flow[object]:
    """Answer the model's calls of ``recall`` with compacted passages, and return the first reply
    without such a call.

    Calls of other tools in such a reply do not reach the caller: the model is expected to repeat
    them with what it has found. If a round does not fit, or no round is ``left``, send the request
    once more without the tool and the messages ``exchanged``. Raises the exceptions of the
    provider.
    """
    request = call.request
    if not request.offers_recall:
        return raw
    form: Any = request.format.name
    message, calls = tool.calls_of(raw, form)
    if tool.NAME not in map(tool.name_of, calls):
        return raw
    if left:
        texts: list[str] = []
        for each in calls:
            text = yield from _search(call, each)
            texts.append(text + _LAST * (left == 1))
        exchanged = (*exchanged, message, *tool.results(calls, texts, form))
        reply = yield from Send([*request.sent, *exchanged], request.options_sent)
        if reply.token_limit is None:
            return (yield from answer_recalls(call, reply.raw, exchanged, left - 1))
    reply = yield from Send(request.sent, request.options)
    if reply.error is not None:
        raise reply.error
    return reply.raw


def _search(call: Call, each: object) -> Flow[str]:
    """Return the text of a call's result."""
    if tool.name_of(each) != tool.NAME:
        return _NOT_DONE
    query = tool.query_of(each)
    if not query:
        return tool.NO_QUERY
    return (yield from call.quote(0, query=query)) or tool.NOTHING
