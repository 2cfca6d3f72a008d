"""Quotes for a request; the summarizer is asked for other words where a question finds none."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from compacter.effects import AskSummarizer, Quote
from compacter.text.words import clip

if TYPE_CHECKING:
    from compacter.call.perform import Performer
    from compacter.recall.frame import Quotation

# Limits of a request for other words, in tokens of output and in seconds, and of the words that are
# used, in characters: some fifteen words in any language.
_MOST_TOKENS = 200
_MOST_SECONDS = 5.0
_LONGEST_WORDS = 300


async def find_quotes(world: Performer, asked: Quote, *, slow: object) -> Quotation | None:
    """Return quotes, found in a thread where that may be ``slow``; ``None`` if there are none.

    For a question that finds nothing the summarizer is asked for other words if the option says so.
    A failure of that is logged, and changes nothing else.
    """
    find = partial(world.use_recall, "quotes", asked)
    quotation: Quotation | None = await world.io.thread(find) if slow else find()
    if quotation is None or not quotation.prompt:
        return quotation
    prompt = AskSummarizer([{"role": "user", "content": quotation.prompt}], _MOST_TOKENS)
    reply = await world.safely("reword", partial(world.request_reply, prompt, _MOST_SECONDS))
    words = clip(reply.text, _LONGEST_WORDS) if reply else ""
    return await find_quotes(world, replace(asked, words=words), slow=slow)
