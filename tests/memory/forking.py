"""A program that forks children while its threads keep a memory busy; each child makes calls of its
own.

Arguments: the kind of memory, its place, a namespace, how many children. It ends with 0 if all
children came through.
"""

from __future__ import annotations

import faulthandler
import os
import sqlite3
import sys
import threading
import time
import traceback
from typing import Any

import structlog

from compacter import Compacter, History, InProcessMemory, RedisMemory, SQLiteMemory
from compacter.memory import Memory, MemoryUnavailable
from compacter.testing import token_limit_error

REPLY = {"choices": [{"message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}


def completion(model: str, messages: list[Any]) -> Any:
    """A model that refuses what is long. It has no lock of its own."""
    if sum(len(message["content"]) for message in messages) > 2_500:
        raise token_limit_error(limit=1_000, input_tokens=2_000)
    return REPLY


def talk(about: object) -> list[Any]:
    """A history that is too long."""
    roles = ("user", "assistant")
    said = [
        {"role": roles[n % 2], "content": f"{roles[n % 2]} says thing {n} about {about}. " * 4}
        for n in range(60)
    ]
    return [*said, {"role": "user", "content": "And now?"}]


def find(memory: Memory) -> None:
    """Use the memory itself, whose errors a call passes over: a file may be busy for a moment while
    others close it.
    """
    end = time.monotonic() + 100
    while True:
        try:
            list(memory.find(["k"]))
        except (sqlite3.OperationalError, MemoryUnavailable):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return


def main(kind: str, place: str, namespace: str, children: int) -> int:
    """How many of the children did not come through."""
    memory: Memory = InProcessMemory()
    if kind != "in process":
        # A busy machine may be slow; what is looked for is a child that waits for ever.
        sqlite = kind == "sqlite"
        memory = (
            SQLiteMemory(place, deadline=5)
            if sqlite
            else RedisMemory(place, namespace=namespace, deadline=5)
        )
    compacter = Compacter(
        memory=memory,
        summarizer=lambda messages, **_: "They spoke of things.",
        logger=structlog.get_logger(),
    )
    call = compacter.wrap(completion)
    ended = threading.Event()
    history = History(talk("history"))

    def work(number: int) -> None:
        turn = 0
        while not ended.is_set():
            turn += 1
            call("model", talk(f"{number} {turn % 7}"))
            history.append({"role": "user", "content": "More."})
            del history[-1:]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    started = []
    for number in range(children):
        child = os.fork()
        if child == 0:
            # A child that waits for what only its parent has tells where.
            faulthandler.dump_traceback_later(120, exit=True)
            try:
                for about in ("1 2", f"child {number}", "2 3"):
                    call("model", talk(about))
                history.append({"role": "user", "content": "From the child."})
                find(memory)
            except BaseException:  # noqa: BLE001 - the parent counts
                traceback.print_exc()
                sys.stderr.flush()
                os._exit(1)
            os._exit(0)
        started.append(child)
    failed = sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in started)
    ended.set()
    for thread in threads:
        thread.join()
    return failed


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
