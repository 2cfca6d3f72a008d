"""What looking a long history up costs, and storing it: 10,000 messages, in process, in SQLite, in
Redis on loopback.

Milliseconds of this process's own work and waiting, the best of several runs; Redis is left out
where it is not installed. "Cold" is another process's first look: nothing is recognised yet, and
every folded message is read (in process there is no other one: nothing is found).
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from compacter import RedisMemory, SQLiteMemory
from compacter.memory import InProcessMemory, Memory
from compacter.memory.match import Matcher
from compacter.messages.format import get_format
from compacter.runtime.io import run

MESSAGES = 10_000
FOLDED = 7_000
RUNS = 9
FORMAT = get_format("openai")


def talk() -> list[dict[str, Any]]:
    """A history of about five million characters, of new objects each time."""
    roles = ("user", "assistant")
    return [
        {
            "role": roles[number % 2],
            "content": (f"Message {number} about the harbour and its piers. ") * 11,
        }
        for number in range(MESSAGES)
    ]


def best(action: Callable[[], object]) -> float:
    """The shortest of several runs, in milliseconds."""
    times = []
    for _ in range(RUNS):
        began = time.perf_counter()
        action()
        times.append(time.perf_counter() - began)
    return min(times) * 1000


@contextlib.contextmanager
def redis(folder: Path) -> Generator[str | None]:
    """The URL of a Redis server on loopback; ``None`` where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    path = folder / "redis.sock"
    with subprocess.Popen(
        [program, "--port", "0", "--unixsocket", str(path), "--save", ""], stdout=subprocess.DEVNULL
    ) as server:
        while not path.exists():
            time.sleep(0.01)
        yield f"unix://{path}"
        server.terminate()


def measure(make: Callable[[], Memory]) -> list[float]:
    """Store, warm look-up of the same objects, of equal ones, cold look-up, and the operations of
    the memory alone.
    """
    history = talk()
    equal = talk()
    view = [{"role": "user", "content": "So far. " * 500}, *history[FOLDED:]]
    memory = make()
    matcher = Matcher(memory)
    store = best(lambda: run(matcher.remember("s", FORMAT, history, view)))
    warm = best(lambda: run(matcher.view("s", FORMAT, history)))
    other = best(lambda: run(matcher.view("s", FORMAT, equal)))
    found = run(matcher.view("s", FORMAT, history))
    assert found is not None
    assert found == view
    others = iter([make() for _ in range(RUNS)])
    cold = best(lambda: run(Matcher(next(others)).view("s", FORMAT, history)))
    (record,) = memory.find([found.record.partition(":")[0]])
    return [
        store,
        warm,
        other,
        cold,
        best(lambda: memory.save(record)),
        best(lambda: memory.find([record.key])),
    ]


def main() -> None:
    """Print one line for each memory."""
    print(f"{MESSAGES:,} messages, {FOLDED:,} of them folded; milliseconds")
    names = ("store", "same objects", "equal ones", "cold", "save alone", "find alone")
    print(f"{'':12}" + "".join(f"{name:>14}" for name in names))
    with tempfile.TemporaryDirectory(prefix="compacter-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        kinds: dict[str, Callable[[], Memory]] = {
            "in process": InProcessMemory,
            "SQLite": lambda: SQLiteMemory(folder / "memory.db"),
        }
        with redis(folder) as url:
            if url is not None:
                kinds["Redis"] = lambda: RedisMemory(url)
            for kind, make in kinds.items():
                print(f"{kind:12}" + "".join(f"{value:14.1f}" for value in measure(make)))


if __name__ == "__main__":
    main()
