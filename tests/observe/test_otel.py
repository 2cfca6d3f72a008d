"""Spans and metrics, as OpenTelemetry's own in-memory exporters receive them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from compacter import Compacter, observe
from compacter.testing import ScriptedModel, ScriptedSummarizer, TokenLimitError

sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="opentelemetry-sdk is not installed")

from opentelemetry.sdk.metrics import MeterProvider  # noqa: E402 - after the check
from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

from compacter.observe import OpenTelemetry  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from opentelemetry.sdk.trace import ReadableSpan

TALK = [{"role": "user", "content": f"Harbour {n} takes ships of {n} metres."} for n in range(60)]


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "compacter.tools.observe.otel")
    with pytest.raises(ImportError, match=r"pip install opentelemetry-api$"):
        observe.OpenTelemetry  # noqa: B018


class Collected:
    """Data that a program's providers have received."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.traces, self.meters = TracerProvider(), MeterProvider([self.reader])
        self.traces.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.hook = OpenTelemetry(tracer_provider=self.traces, meter_provider=self.meters)

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}

    def metrics(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        assert data is not None
        scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
        return {
            metric.name: list(metric.data.data_points)
            for scope in scopes
            for metric in scope.metrics
        }

    def sums(self) -> dict[str, float]:
        found = self.metrics()
        return {
            name.removeprefix("compacter."): sum(
                point.value for point in points if hasattr(point, "value")
            )
            for name, points in found.items()
        }


@pytest.fixture
def collected() -> Collected:
    return Collected()


def fold(collected: Collected, **options: Any) -> None:
    options.setdefault(
        "summarizer", ScriptedSummarizer("Harbours and ships.", returns="completion")
    )
    completion = Compacter(on_event=collected.hook, **options).wrap(
        ScriptedModel(window=300).completion
    )
    with collected.traces.get_tracer("app").start_as_current_span("answer a question"):
        completion("gpt-4o", TALK)


class TestSpans:
    def test_a_compaction_is_a_span_of_the_active_trace(self, collected: Collected) -> None:
        fold(collected)
        spans = collected.spans()
        compaction = spans["compact gpt-4o"]
        call = spans["answer a question"]
        assert compaction.parent is not None
        assert call.context is not None
        assert compaction.parent.span_id == call.context.span_id

    def test_it_lasts_as_long_as_the_compaction(self, collected: Collected) -> None:
        told: list[Any] = []
        fold(collected, on_compaction=told.append)
        span = collected.spans()["compact gpt-4o"]
        assert span.end_time is not None
        assert span.start_time is not None
        assert span.end_time - span.start_time == int(told[0].duration * 1e9)

    def test_its_attributes_have_the_names_of_the_conventions(self, collected: Collected) -> None:
        fold(collected)
        attributes = collected.spans()["compact gpt-4o"].attributes
        assert attributes is not None
        assert attributes["gen_ai.operation.name"] == "compact"
        assert attributes["gen_ai.request.model"] == "gpt-4o"
        assert attributes["gen_ai.conversation.id"]
        assert attributes["gen_ai.usage.input_tokens"]
        assert attributes["compacter.messages_before"] == 60
        assert attributes["compacter.trigger"] == "token_limit"

    def test_other_events_are_added_to_the_active_span(self, collected: Collected) -> None:
        fold(collected, summarizer=ScriptedSummarizer(fail="raises"))
        events = {
            event.name: event.attributes or {}
            for event in collected.spans()["answer a question"].events
        }
        names = ("CompactionStarted", "CompactionFailed")
        assert set(events) == {f"compacter.{name}" for name in names}
        assert events["compacter.CompactionFailed"]["error.type"]

    @pytest.mark.parametrize("fail", [None, "raises"])
    def test_no_text_of_a_message_is_in_them(self, collected: Collected, fail: Any) -> None:
        fold(collected, summarizer=ScriptedSummarizer("Harbours.", fail=fail))
        assert "Harbour" not in "".join(span.to_json() for span in collected.spans().values())

    async def test_in_an_async_program_too(self, collected: Collected) -> None:
        completion = Compacter(on_event=collected.hook, summarizer="extractive").wrap(
            ScriptedModel(window=300).acompletion
        )
        with collected.traces.get_tracer("app").start_as_current_span("answer a question") as call:
            await completion("gpt-4o", TALK)
        parent = collected.spans()["compact gpt-4o"].parent
        assert parent is not None
        assert parent.span_id == call.get_span_context().span_id


class TestMetrics:
    def test_what_happened_is_counted(self, collected: Collected) -> None:
        fold(collected)
        sums = collected.sums()
        assert (sums["refusals"], sums["compactions"]) == (1, 1)
        assert sums["tokens"] > 0
        assert "failures" not in sums

    def test_so_is_what_calls_from_a_summary_do_not_send(self, collected: Collected) -> None:
        completion = Compacter(on_event=collected.hook, summarizer="extractive").wrap(
            ScriptedModel(window=300).completion
        )
        for _ in range(3):
            completion("gpt-4o", TALK)
        sums = collected.sums()
        assert (sums["reuses"], sums["refusals"]) == (2, 1)
        assert sums["saved_tokens"] > 0
        assert sums["saved_cost"] > 0

    def test_so_is_what_failed(self, collected: Collected) -> None:
        fold(collected, summarizer=ScriptedSummarizer(fail="raises"))
        with pytest.raises(TokenLimitError):
            fold(collected, max_retries=0)
        sums = collected.sums()
        assert (sums["refusals"], sums["compactions"], sums["failures"], sums["give_ups"]) == (
            2,
            1,
            1,
            1,
        )

    def test_durations_and_sizes_are_histograms(self, collected: Collected) -> None:
        fold(collected)
        found = collected.metrics()
        (duration,) = found["compacter.compaction.duration"]
        assert duration.count == 1
        assert duration.attributes["gen_ai.request.model"] == "gpt-4o"
        sizes = {
            point.attributes["compacter.stage"]: point.sum
            for point in found["compacter.compaction.size"]
        }
        assert sizes["after"] < sizes["before"] == sum(len(message["content"]) for message in TALK)

    def test_no_metric_is_told_apart_by_conversation(self, collected: Collected) -> None:
        fold(collected)
        names = {
            name
            for points in collected.metrics().values()
            for point in points
            for name in point.attributes
        }
        assert "gen_ai.conversation.id" not in names


def test_where_the_package_is_missing_the_remedy_is_named(root: Path) -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\nfrom compacter.tools.observe "
        "import OpenTelemetry"
    )
    env = os.environ | {"PYTHONPATH": str(root / "middleware")}
    run = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert "pip install opentelemetry-api" in run.stderr
