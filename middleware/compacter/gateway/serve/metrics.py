"""The page ``/metrics``, in Prometheus' text format:
https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from compacter.gateway.counting import is_open
from compacter.gateway.figures import BUCKETS, COUNTERS, GAUGES, SECONDS, SECONDS_TEXT

if TYPE_CHECKING:
    from compacter.gateway.serve.board import Board
    from compacter.gateway.serve.gateway import Gateway

_OWN = {
    "requests": "Requests, those for the server's own pages left out",
    "passed_on": "Requests that were passed on unread",
    "unreachable": "Requests whose upstream could not be reached, or broke off its response",
}


def exposition(board: Board, gateway: Gateway) -> str:
    """Return all figures as text."""
    return "".join(f"{line}\n" for line in _lines(board, gateway))


def _lines(board: Board, gateway: Gateway) -> Iterator[str]:
    numbers = {
        "requests": board.requests,
        "passed_on": board.passed,
        "unreachable": board.unreachable,
    }
    for name, text in _OWN.items():
        yield from _head(f"compacter_{name}_total", text, "counter")
        yield f"compacter_{name}_total {numbers[name]}"
    with board.lock:
        counted = dict(board.counted)
        seconds = {labels: list(counts) for labels, counts in board.seconds.items()}
        spent = dict(board.spent)
    for name, text in COUNTERS.items():
        yield from _head(f"compacter_{name}_total", text, "counter")
        for (figure, *labels), amount in sorted(counted.items()):
            if figure == name:
                yield f"compacter_{name}_total{_labels(*labels)} {amount:.12g}"
    yield from _head(f"compacter_{SECONDS}", SECONDS_TEXT, "histogram")
    for (upstream, model), counts in sorted(seconds.items()):
        total = 0
        for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
            total += count
            yield f"compacter_{SECONDS}_bucket{_labels(upstream, model, le=bound)} {total}"
        sum_ = spent[upstream, model]
        yield f"compacter_{SECONDS}_sum{_labels(upstream, model)} {sum_:.6g}"
        yield f"compacter_{SECONDS}_count{_labels(upstream, model)} {total}"
    gauges = {
        "memory_open": int(any(is_open(target.state) for target in gateway.setup.targets)),
        "summaries_running": gateway.slots.taken,
        "summaries_waiting": gateway.slots.waiting,
    }
    for name, text in GAUGES.items():
        yield from _head(f"compacter_{name}", text, "gauge")
        yield f"compacter_{name} {gauges[name]}"
    yield from _head("compacter_requests_open", "Requests that are being handled", "gauge")
    yield f"compacter_requests_open {gateway.open}"
    yield from _head("compacter_draining", "1 while new requests are refused, else 0", "gauge")
    yield f"compacter_draining {int(gateway.draining)}"


def _head(name: str, text: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _labels(upstream: str, model: str, **more: str) -> str:
    pairs = {"upstream": upstream, "model_group": model, **more}
    return "{" + ",".join(f'{name}="{_escape(value)}"' for name, value in pairs.items()) + "}"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
