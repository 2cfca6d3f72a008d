"""What ``OpenTelemetry`` sends, as a real collector writes it down: Rotel, which comes as
a wheel.
"""

from __future__ import annotations

import contextlib
import importlib.util
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.clients import loopback

from compacter import Compacter
from compacter.testing import ScriptedModel, ScriptedSummarizer

pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.http",
    reason=("the exporter for collectors is not installed"),
)
FOUND = importlib.util.find_spec("rotel")
if FOUND is None or FOUND.origin is None:
    pytest.skip("rotel, a collector, is not installed", allow_module_level=True)

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: E402 - after the check
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: E402
from opentelemetry.sdk.metrics import MeterProvider  # noqa: E402
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: E402

from compacter.observe import OpenTelemetry  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Generator

AGENT = Path(FOUND.origin).with_name("rotel-agent")
TALK = [{"role": "user", "content": f"Harbour {n} takes ships of {n} metres."} for n in range(60)]


@contextlib.contextmanager
def collector(folder: Path) -> Generator[tuple[str, Path]]:
    """Its address, and the file in which it writes all that it receives; it is whole once the
    collector has ended.
    """
    grpc, http = (f"127.0.0.1:{loopback.free_port()}" for _ in range(2))
    received = folder / "received.txt"
    command: list[str | Path] = [
        AGENT,
        "start",
        "--exporter",
        "blackhole",
        "--debug-log-verbosity",
        "detailed",
    ]
    command += [
        "--otlp-grpc-endpoint",
        grpc,
        "--otlp-http-endpoint",
        http,
        "--pid-file",
        folder / "pid",
    ]
    command += ["--debug-log", "traces", "--debug-log", "metrics"]
    with (
        received.open("wb") as file,
        subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT) as process,
    ):
        try:
            wait_for(http, process)
            yield f"http://{http}", received
        finally:
            process.terminate()


def wait_for(address: str, process: subprocess.Popen[bytes]) -> None:
    host, _, port = address.partition(":")
    for _ in range(1_200):
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection((host, int(port)), timeout=5),
        ):
            return
        if process.poll() == 127:
            pytest.skip("the collector wants Python as a shared library, which this one has not")
        assert process.poll() is None, "the collector ended"
        time.sleep(0.05)
    pytest.fail("the collector does not listen")


def test_a_collector_receives_the_span_and_the_metrics_and_no_text(tmp_path: Path) -> None:
    with collector(tmp_path) as (address, received):
        traces = TracerProvider()
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{address}/v1/metrics"))
        traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{address}/v1/traces")))
        meters = MeterProvider([reader])
        hook = OpenTelemetry(tracer_provider=traces, meter_provider=meters)
        summarizer = ScriptedSummarizer("Harbours and ships.", returns="completion")
        completion = Compacter(on_event=hook, summarizer=summarizer).wrap(
            ScriptedModel(window=300).completion
        )
        with traces.get_tracer("app").start_as_current_span("answer a question"):
            completion("gpt-4o", TALK)
        traces.shutdown()
        meters.shutdown()

    text = received.read_text()
    spans = dict(re.findall(r"Parent ID +: (\w*)\n.*\n +Name +: (.+)", text))
    identity = re.findall(r"ID +: (\w{16})\n +Name +: answer a question", text)
    assert spans == {"": "answer a question", identity[0]: "compact gpt-4o"}
    assert "gen_ai.request.model: Str(gpt-4o)" in text
    assert set(re.findall(r"-> Name: (compacter\.[\w.]+)", text)) == {
        # An event of the program's own span; all others are metrics.
        "compacter.CompactionStarted",
        "compacter.compaction.duration",
        "compacter.compaction.size",
        "compacter.compactions",
        "compacter.cost",
        "compacter.refusals",
        "compacter.tokens",
    }
    assert "Harbour" not in text
