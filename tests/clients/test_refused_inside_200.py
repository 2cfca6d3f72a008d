"""Every form of refusal inside HTTP 200, read in every way that the vendors' SDKs offer.

The forms are the table of ``tests/kit/refusals.py``. A call that gets one is recovered: the words
of the answer come, after one compaction.
"""

from __future__ import annotations

import inspect
from contextlib import AsyncExitStack, ExitStack
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


def read(vendor: Vendor, way: str, reply: Any, *, streamed: bool) -> str:
    thing = reply.parse() if way else reply
    return "".join(map(vendor.text_of, thing)) if streamed else vendor.words(thing)


async def aread(vendor: Vendor, way: str, reply: Any, *, streamed: bool) -> str:
    thing = reply.parse() if way else reply
    thing = await thing if inspect.isawaitable(thing) else thing
    if streamed:
        return "".join([vendor.text_of(event) async for event in thing])
    return vendor.words(thing)


@pytest.mark.parametrize("way", WAYS)
def test_sync_clients_recover_from_every_form(
    way: str, vendor: Vendor, compacter: Compacter
) -> None:
    lost = []
    with vendor.client() as bare:
        create = vendor.method(compacter.wrap(bare), f"{way}create")
        for refusal in forms(vendor, WAYS.index(way)):
            vendor.server.refuse = refusal
            rounds = compacter.totals.rounds
            try:
                with ExitStack() as stack:
                    stream: dict[str, Any] = {"stream": True} if refusal.streamed else {}
                    reply = create(**vendor.options(**stream))
                    reply = stack.enter_context(reply) if "streaming" in way else reply
                    text = read(vendor, way, reply, streamed=refusal.streamed)
            except Exception as error:  # noqa: BLE001 - told with the others
                text = repr(error)
            if text != WORDS or compacter.totals.rounds != rounds + 1:
                lost.append(f"{refusal}: {text:.80}")
    assert not lost, "\n".join(lost)


@pytest.mark.parametrize("way", WAYS)
async def test_async_clients_recover_from_every_form(
    way: str, vendor: Vendor, compacter: Compacter
) -> None:
    lost = []
    async with vendor.client(asynchronous=True) as bare:
        create = vendor.method(compacter.wrap(bare), f"{way}create")
        for refusal in forms(vendor, WAYS.index(way) + 3):
            vendor.server.refuse = refusal
            rounds = compacter.totals.rounds
            try:
                async with AsyncExitStack() as stack:
                    stream: dict[str, Any] = {"stream": True} if refusal.streamed else {}
                    reply = create(**vendor.options(**stream))
                    reply = await (
                        stack.enter_async_context(reply) if "streaming" in way else reply
                    )
                    text = await aread(vendor, way, reply, streamed=refusal.streamed)
            except Exception as error:  # noqa: BLE001 - told with the others
                text = repr(error)
            if text != WORDS or compacter.totals.rounds != rounds + 1:
                lost.append(f"{refusal}: {text:.80}")
    assert not lost, "\n".join(lost)
