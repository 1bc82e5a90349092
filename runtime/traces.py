"""Traces: spans (timed pieces of work) from a request to its job, sent to a trace collector.

OpenTelemetry, which the extra `traces` installs, is imported only if a collector is configured.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from runtime.settings import RuntimeSettings, require_extra

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span as OtelSpan

_PACKAGES = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
_EXPORT_SECONDS = 3.0
_VERSION, _SAMPLED = "00", 1


class Span:
    """A piece of work with a beginning and an end, as part of a trace.

    Args:
        span: The span of OpenTelemetry; None if traces are disabled.
    """

    def __init__(self, span: OtelSpan | None) -> None:
        self._span = span

    @property
    def traceparent(self) -> str | None:
        """Reference to this span (W3C Trace Context) for other processes; None without traces."""
        if self._span is None:
            return None
        context = self._span.get_span_context()
        flags = int(context.trace_flags) & _SAMPLED
        return f"{_VERSION}-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"

    def rename(self, name: str) -> None:
        """Changes the name of the span."""
        if self._span is not None:
            self._span.update_name(name)

    def describe(self, **attributes: str | int) -> None:
        """Adds attributes to the span."""
        if self._span is not None:
            named = {f"gcvae.{name}": value for name, value in attributes.items()}
            self._span.set_attributes(named)

    def fail(self, reason: str) -> None:
        """Marks the span as failed for this reason."""
        if self._span is not None:
            from opentelemetry.trace import StatusCode

            self._span.set_status(StatusCode.ERROR, reason)


class Traces:
    """Creates spans and sends them to a trace collector; if it is unavailable, they are lost.

    Args:
        endpoint: URL of the collector (OTLP over HTTP); None to record and send nothing.
        share: Share of requests that are traced, 0 to 1.
        process: Name of this process in the traces: api or worker.
    """

    def __init__(
        self, endpoint: str | None = None, share: float = 1.0, process: str = "worker"
    ) -> None:
        self.endpoint = endpoint
        self._share = share
        self._process = process
        # Created with the first span: its sending thread must not exist when a process forks.
        self._provider: TracerProvider | None = None

    @contextmanager
    def span(self, name: str, parent: str | None = None) -> Iterator[Span]:
        """Context manager that measures its block as a span; `parent` is the `traceparent` of a
        span of another process, or None to start a new trace."""
        if self.endpoint is None:
            yield Span(None)
            return
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        carrier = {} if parent is None else {"traceparent": parent}
        context = TraceContextTextMapPropagator().extract(carrier)
        if self._provider is None:
            self._provider = self._make_provider(self.endpoint)
        tracer = self._provider.get_tracer("gcvae")
        span = tracer.start_span(name, context=context, kind=SpanKind.SERVER)
        try:
            yield Span(span)
        finally:
            span.end()

    def close(self) -> None:
        """Sends the spans that have not been sent, and gives up after three seconds."""
        if self._provider is not None:
            self._provider.force_flush(int(1000 * _EXPORT_SECONDS))
            self._provider.shutdown()
            self._provider = None

    def _make_provider(self, endpoint: str) -> TracerProvider:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBasedTraceIdRatio

        provider = TracerProvider(
            resource=Resource.create({"service.name": f"gcvae-{self._process}"}),
            sampler=ParentBasedTraceIdRatio(self._share),
            shutdown_on_exit=False,
        )
        exporter = OTLPSpanExporter(endpoint=endpoint, timeout=_EXPORT_SECONDS)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        return provider


def make_traces(settings: RuntimeSettings, process: str) -> Traces:
    """Returns an object that creates and sends spans as configured by the settings.

    Args:
        process: Name of this process in the traces: api or worker.

    Raises:
        MissingExtraError: Traces are configured, and OpenTelemetry is not installed.
    """
    if settings.traces_endpoint is not None:
        require_extra("traces_endpoint", "traces", "OpenTelemetry", *_PACKAGES)
    return Traces(settings.traces_endpoint, settings.traces_share, process)
