"""A collector of OpenTelemetry traces that keeps what it is sent."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.servers.serving import SilentHandler, serving


@dataclass
class TraceCollector:
    """The spans that were sent so far."""

    endpoint: str
    spans: list[Any] = field(default_factory=list)

    def named(self, name: str) -> Any:
        """The one span of this name."""
        [span] = [span for span in self.spans if span.name == name]
        return span


@contextmanager
def trace_collector() -> Iterator[TraceCollector]:
    """A collector on a free port, until the block ends."""

    class Handler(SilentHandler, BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.read_body()
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    found.spans.extend(scope.spans)
            self.send_response(200)
            self.end_headers()

    server = HTTPServer(("127.0.0.1", 0), Handler)
    found = TraceCollector(f"http://127.0.0.1:{server.server_port}/v1/traces")
    with serving(server):
        yield found
