"""Reads the server-sent events of a job, and resumes after interruptions."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import httpx

from gcvae_client.connection import Call, Connection
from gcvae_client.errors import Document, IncompleteError

_PAUSE_SECONDS = 1.0


def read_events(connection: Connection, job_id: str) -> Iterator[Document]:
    """Yields the job as JSON each time it has changed, until it is finished."""
    last_id = ""
    while True:
        try:
            call = Call("GET", f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": last_id})
            with connection.stream(call) as response:
                if response.status_code == httpx.codes.NO_CONTENT:
                    return
                for event_id, data in parse_events(response.iter_lines()):
                    last_id = event_id
                    yield json.loads(data)
        except IncompleteError:
            time.sleep(_PAUSE_SECONDS)


def parse_events(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    r"""Yields (id, data) of each server-sent event in a stream of lines.

    >>> list(parse_events(iter(["id: 7", "data: a", "data: b", "", ": ping", ""])))
    [('7', 'a\nb')]
    """
    event_id, data = "", []
    for line in lines:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "id":
            event_id = value
        elif field == "data":
            data.append(value)
        elif not line and data:
            yield event_id, "\n".join(data)
            data = []
