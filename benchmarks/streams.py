"""The memory of one ``compacter serve`` with two thousand open streams.

Real processes on loopback: an upstream that says a word every few seconds, the server, and callers
that open another stream when one has ended. ``--minutes 10`` is the figure in ``docs/running.md``.
Every stream is counted to its end; one that lacks a word is broken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import re
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

# Seconds between two words of a stream.
PAUSE = 5.0
# Words of the shortest stream and of the longest one: half a minute to two and a half.
WORDS = (6, 30)
# Streams that are opened at the same moment, at the start: a burst is another question.
AT_ONCE = 50
# Connections of one server for one stream: the caller's and the upstream's; and what else it opens.
FILES = 3
KEYS = 50
_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
    b"Connection: close\r\n\r\n"
)


def main() -> None:
    """Print the server's memory as time passes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2_000)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--pause", type=float, default=PAUSE, help="seconds between two words")
    options = parser.parse_args()
    raise_file_limit(options.streams * FILES)
    print(json.dumps(measure(options.streams, options.minutes * 60, options.pause)))


def raise_file_limit(wanted: int) -> None:
    """Let this process and those that it starts open so many files. Raises ``ValueError`` if it may
    not.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(hard, wanted)))


def measure(streams: int, seconds: float, pause: float) -> dict[str, object]:
    """Return the server's megabytes by seconds, and what became of the streams."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    upstream = context.Process(target=_run_upstream, args=(theirs, pause), daemon=True)
    upstream.start()
    with serving(f"http://127.0.0.1:{ours.recv()}/v1") as (port, pid):
        empty = resident(pid)
        callers = context.Process(
            target=_run_callers, args=(theirs, port, streams, seconds), daemon=True
        )
        callers.start()
        ours.recv()  # All are open.
        megabytes = dict(_watch(pid, seconds))
        found: Counter[str] = ours.recv()
        callers.join()
        after = resident(pid)
    upstream.terminate()
    return {
        "streams": streams,
        "seconds": seconds,
        "empty_mb": empty,
        "mb": megabytes,
        "after_mb": after,
        "whole": found["whole"],
        "broken": found["broken"],
    }


def _watch(pid: int, seconds: float) -> Iterator[tuple[int, float]]:
    """Yield the memory ten times, evenly."""
    began = time.monotonic()
    for step in range(11):
        time.sleep(max(0.0, began + step * seconds / 10 - time.monotonic()))
        megabytes = resident(pid)
        print(f"{step * seconds / 10:6.0f} s {megabytes:7.1f} MB", file=sys.stderr, flush=True)
        yield round(step * seconds / 10), megabytes


def resident(pid: int) -> float:
    """Return the resident memory of a process, in megabytes."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return round(int(re.findall(r"VmRSS:\s+(\d+) kB", text)[0]) / 1000, 1)


@contextmanager
def serving(upstream: str) -> Generator[tuple[int, int]]:
    """The server as a program; yields its port and its process number."""
    command = [sys.executable, "-m", "compacter", "serve", "--upstream", upstream, "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r":(\d+)/ -> ", process.stderr.readline())
            assert found is not None, "the server did not start"
            # Why a stream is broken.
            told = threading.Thread(target=sys.stderr.writelines, args=(process.stderr,))
            told.daemon = True
            told.start()
            yield int(found[1]), process.pid
        finally:
            process.terminate()


# -- the upstream ----------------------------------------------------------------------------------


def _run_upstream(told: Connection, pause: float) -> None:
    asyncio.run(_upstream(told, pause))


async def _upstream(told: Connection, pause: float) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            writer.close()  # A connection that was opened for nothing.
            return
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        body = json.loads(await reader.readexactly(int(length[1]))) if length else {}
        writer.write(_HEAD + _event({"role": "assistant", "content": "word "}))
        for _ in range(body["max_tokens"] - 1):
            await asyncio.sleep(pause)
            writer.write(_event({"content": "word "}))
            await writer.drain()
        writer.write(_chunk(b"data: [DONE]\n\n") + _chunk(b""))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1_024)
    told.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _event(delta: dict[str, str]) -> bytes:
    event = {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    return _chunk(f"data: {json.dumps(event)}\n\n".encode())


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


# -- the callers -----------------------------------------------------------------------------------


def _run_callers(told: Connection, port: int, streams: int, seconds: float) -> None:
    told.send(asyncio.run(_callers(told, port, streams, seconds)))


async def _callers(told: Connection, port: int, streams: int, seconds: float) -> Counter[str]:
    found: Counter[str] = Counter()
    opening = asyncio.Semaphore(AT_ONCE)
    opened = asyncio.Semaphore(0)
    over = asyncio.Event()

    async def caller(number: int) -> None:
        turn = 0
        while not over.is_set():
            shortest, longest = WORDS
            words = shortest + (number * 7 + turn * 11) % (longest - shortest)
            got = await _stream(port, number, words, opening, opened)
            found["whole" if got else "broken"] += 1
            turn += 1

    callers = [asyncio.create_task(caller(number)) for number in range(streams)]
    for _ in callers:
        await opened.acquire()
    told.send("open")
    await asyncio.sleep(seconds)
    over.set()
    await asyncio.gather(*callers)
    return found


async def _stream(
    port: int, number: int, words: int, opening: asyncio.Semaphore, opened: asyncio.Semaphore
) -> bool:
    """Return whether a stream came whole."""
    messages = [{"role": "user", "content": f"Say {words} words to number {number}."}]
    asked = {"model": "m", "stream": True, "max_tokens": words, "messages": messages}
    body = json.dumps(asked).encode()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        f"Authorization: Bearer sk-{number % KEYS}\r\nConnection: close\r\n\r\n"
    )
    try:
        async with opening:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(head.encode() + body)
            text = await reader.readuntil(b"word ")
        opened.release()
        text += await reader.read()
        writer.close()
    except (OSError, asyncio.IncompleteReadError):
        opened.release()
        return False
    return text.count(b"word ") == words and b"[DONE]" in text


if __name__ == "__main__":
    main()
