"""A tool with which a model searches the earlier conversation, for a program's own list of
tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import maxsize
from typing import NamedTuple

from compacter.by_hand import check_messages
from compacter.compacter import Compacter
from compacter.errors import ConfigurationError, whole_number
from compacter.history import History
from compacter.lines.frame import line_of
from compacter.lines.tool import NAME, NO_QUERY, NOTHING, definition, name_of, query_of, result
from compacter.messages.fields import Json
from compacter.messages.format import FormatName, Message, get_format


class RecallTool(NamedTuple):
    """A tool ``recall(query)`` for a program's own list of tools, in the message format of one
    provider: its definition, and the function that answers the model's calls of it.
    """

    definition: dict[str, Json]
    """Entry of the list of tools: of ``tools=`` (OpenAI, Anthropic), of ``config["tools"]``
    (Gemini), of ``toolConfig["tools"]`` (Bedrock)."""
    answer: Callable[[Json], Json]
    """Answers a call: takes the model's call (a dict or an SDK object) and returns the message with
    its result. Also takes a query, and returns the text of the result. For a call without a query,
    the result reports that."""


def recall_tool(
    messages_or_history: Sequence[Message] | History,
    wire_format: FormatName = "openai",
    *,
    limit: int = 5,
) -> RecallTool:
    """Return a tool with which a model searches the whole conversation, compacted or not.

    Args:
        messages_or_history: The list in which the program keeps all messages, or a ``History``.
            Each call searches its present messages.
        wire_format: Format of the definition and the results: ``"openai"``, ``"responses"``,
            ``"anthropic"``, ``"gemini"`` or ``"bedrock"``.
        limit: Largest number of passages in a result.

    Raises:
        ConfigurationError: An argument is invalid; by ``answer``: a call is of another tool.
    """
    form = get_format(wire_format)
    check_messages(messages_or_history)
    whole_number("limit", limit, least=1, of="passages")

    def look_up(query: str) -> str:
        """Return one text with the passages that match ``query``, each after the name of its
        speaker.
        """
        if isinstance(messages_or_history, History):
            passages = messages_or_history.search(query, maxsize)
        else:
            search = Compacter(memory=None).search
            passages = search(messages_or_history, query, maxsize, wire_format=wire_format)
        # Do not quote the question that the model has just been asked, or results of earlier
        # searches.
        texts = map(form.plain_text, reversed(list(messages_or_history)[1:]))
        asked = next(filter(None, texts), "")
        earlier = [part for part in passages if part.name != NAME and part.text not in asked]
        return "".join(map(line_of, earlier[:limit])).strip() or NOTHING

    def answer(call: Json) -> Json:
        """Return the message that answers a call of the model; for a query, only the text of that
        answer.
        """
        if isinstance(call, str):
            return look_up(call)
        name = name_of(call)
        if name != NAME:
            raise ConfigurationError(
                f"answer takes a call of the tool {NAME!r}, not of {name!r}; look at the name first"
            )
        query = query_of(call)
        return result(call, look_up(query) if query else NO_QUERY, wire_format)

    return RecallTool(definition(wire_format), answer)
