"""Every form of refusal inside HTTP 200, read in every way that the vendors' SDKs offer.

The forms are the table of ``tests/kit/refusals.py``. A call that gets one is recovered: the words
of the answer come, after one compaction.
"""

from __future__ import annotations

import inspect
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest
from tests.clients import loopback
from tests.clients.loopback import WORDS
from tests.kit import Refusal, refusals

from compacter import Compacter

if TYPE_CHECKING:
    from tests.clients.conftest import Vendor

WAYS = ("", "with_raw_response.", "with_streaming_response.")
PROTOCOLS = {"chat.completions": "chat completions", "responses": "responses"}
NUMBERS = {"limit": loopback.WINDOW, "requested": loopback.WINDOW * 2}


def forms(vendor: Vendor, share: int) -> list[Refusal]:
    """A sixth of the vendor's forms, as each takes a conversation: another one for each of the
    three ways, sync and async, so that each form is read by one of them.

    ``test_watches.py`` reads all of them as bytes.
    """
    protocol = PROTOCOLS.get(vendor.path, "messages")
    return [each for each in refusals(**NUMBERS) if each.protocol == protocol][share::6]


@pytest.fixture
def compacter() -> Compacter:
    return Compacter(summarizer="extractive", memory=None, recall=None)


async def read(vendor: Vendor, way: str, reply: Any, *, streamed: bool) -> str:
    """Return the words of a reply or a stream, sync or async, raw or parsed."""
    thing = reply.parse() if way else reply
    thing = await thing if inspect.isawaitable(thing) else thing
    if not streamed:
        return vendor.words(thing)
    if hasattr(thing, "__aiter__"):
        return "".join([vendor.text_of(event) async for event in thing])
    return "".join(map(vendor.text_of, thing))


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("way", WAYS)
async def test_clients_recover_from_every_form(
    way: str, asynchronous: bool, vendor: Vendor, compacter: Compacter
) -> None:
    """Each form of a refusal inside HTTP 200 is followed by one compaction and the answer."""
    lost = []
    bare = vendor.client(asynchronous=asynchronous)
    create = vendor.method(compacter.wrap(bare), f"{way}create")
    for refusal in forms(vendor, WAYS.index(way) + 3 * asynchronous):
        vendor.server.refuse = refusal
        rounds = compacter.totals.rounds
        try:
            async with AsyncExitStack() as stack:
                stream: dict[str, Any] = {"stream": True} if refusal.streamed else {}
                reply = create(**vendor.options(**stream))
                if hasattr(reply, "__aenter__") and "streaming" in way:
                    reply = await stack.enter_async_context(reply)
                elif hasattr(reply, "__enter__") and "streaming" in way:
                    reply = stack.enter_context(reply)
                reply = await reply if inspect.isawaitable(reply) else reply
                text = await read(vendor, way, reply, streamed=refusal.streamed)
        except Exception as error:  # noqa: BLE001 - reported with the others
            text = repr(error)
        if text != WORDS or compacter.totals.rounds != rounds + 1:
            lost.append(f"{refusal}: {text:.80}")
    closed = bare.close()
    if asynchronous:
        await closed
    assert not lost, "\n".join(lost)
