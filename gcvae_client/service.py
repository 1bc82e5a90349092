"""Methods of the client for its connection and for the service's jobs."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from gcvae_client.connection import Call, Connection, whole_file
from gcvae_client.errors import (
    Document,
    IncompleteError,
    JobCancelledError,
    JobFailedError,
    ProblemError,
    UnreachableError,
    WaitTimeoutError,
)
from gcvae_client.objects import Job, bind
from gcvae_client.progress_bar import bar
from gcvae_client.resources import Resource, any_path_of, job_id_of

FilePath = str | os.PathLike[str]
_FINAL = ("succeeded", "failed", "cancelled")
_PAGE_ITEMS = 200
_PAUSE_SECONDS = 1.0
_FIRST_POLL_SECONDS = 0.1


class Service:
    """Base class of `Client` that holds the connection and has the methods for jobs."""

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout_seconds: float = 300.0,
        retries: int = 3,
    ) -> None:
        if not base_url.startswith(("http://", "https://")):
            raise ValueError(f"{base_url} is not a URL; it must begin with http:// or https://")
        headers = {} if api_key is None else {"Authorization": f"Bearer {_checked(api_key)}"}
        http = httpx.Client(
            base_url=base_url,
            headers=headers,
            timeout=httpx.Timeout(timeout_seconds, connect=10.0),
            transport=httpx.HTTPTransport(retries=retries),
        )
        self._connection = Connection(http, retries)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        """Returns the service's address, without the key."""
        return f"Client({str(self._connection.http.base_url)!r})"

    def close(self) -> None:
        """Closes all connections to the service."""
        self._connection.http.close()

    def jobs(self, /, **filters: str) -> Iterator[Job]:
        """Yields all jobs, the newest first.

        Args:
            filters: Values of `status`, `kind` or `model_id` that the jobs must have.
        """
        return self._items("/v1/jobs", filters)

    def job(self, job: Resource) -> Job:
        """Returns the current state of a job.

        Args:
            job: Id or JSON object of a job, or of the model or result that the job makes.
        """
        return self._json("GET", f"/v1/jobs/{self._job_id(job)}")

    def wait(
        self,
        job: Resource,
        on_progress: Callable[[Document], None] | None = None,
        *,
        timeout_seconds: float | None = None,
        progress: bool | None = None,
    ) -> Document:
        """Waits until a job has succeeded and returns it.

        An imported model, which has no job, is returned at once.

        Args:
            job: Id or JSON object of a job, or of the model or result that the job makes.
            on_progress: Function that is called with the job as JSON when the job has changed.
            timeout_seconds: Time limit; None for no limit.
            progress: Whether to show a progress bar. Default: only in terminals and notebooks, and
                only without `on_progress`.

        Raises:
            JobFailedError: The job failed.
            JobCancelledError: The job was cancelled.
            WaitTimeoutError: The job did not finish within the time limit; the job continues.
        """
        ends_at = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        job_id = job_id_of(job)
        if job_id is None:
            found = self._model_or_result(job)
            if found["job_id"] is None:
                return found
            job_id = str(found["job_id"])
        shown = on_progress is None if progress is None else progress
        with bar(shown, always=bool(progress)) as show:
            for latest in self._polled(job_id, ends_at):
                show(latest)
                if on_progress is not None:
                    on_progress(latest)
        return self._bound(_require_success(latest))

    def _polled(self, job_id: str, ends_at: float | None) -> Iterator[Document]:
        """Yields a job as JSON each time it has changed, until it is finished. Pauses between polls
        are short at first, so that the end of a short job is noticed soon, and double up to the
        pause that the service recommends."""
        tag, latest, pause = "", {}, _FIRST_POLL_SECONDS
        while True:
            path, headers = f"/v1/jobs/{job_id}", {"If-None-Match": tag}
            response = self._connection.request(Call("GET", path, headers=headers))
            if response.status_code != httpx.codes.NOT_MODIFIED:
                tag, latest = response.headers["ETag"], response.json()
                yield latest
            if latest["status"] in _FINAL:
                return
            if ends_at is not None and time.monotonic() >= ends_at:
                raise WaitTimeoutError(f"job {latest['id']} is still {latest['status']}", latest)
            time.sleep(min(pause, float(response.headers.get("Retry-After", 1))))
            pause *= 2

    def events(self, job: Resource) -> Iterator[Document]:
        """Yields a job as JSON each time it has changed, until it is finished.

        Changes are received as server-sent events.

        Args:
            job: Id or JSON object of a job, or of the model or result that the job makes.
        """
        return self._events(self._job_id(job))

    def cancel(self, job: Resource) -> Job:
        """Cancels a job and returns its new state.

        Args:
            job: Id or JSON object of a job, or of the model or result that the job makes.
        """
        return self._json("POST", f"/v1/jobs/{self._job_id(job)}/cancel")

    def retry(self, job: Resource) -> Job:
        """Queues a failed or cancelled job again and returns its new state.

        Args:
            job: Id or JSON object of a job, or of the model or result that the job makes.
        """
        return self._json("POST", f"/v1/jobs/{self._job_id(job)}/retry")

    def is_ready(self) -> bool:
        """Returns whether the service is ready: it and its database, queue and store respond."""
        try:
            self._connection.request(Call("GET", "/readyz"))
        except (ProblemError, UnreachableError):
            return False
        return True

    def _events(self, job_id: str) -> Iterator[Document]:
        last_id = ""
        while True:
            try:
                call = Call("GET", f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": last_id})
                with self._connection.stream(call) as response:
                    if response.status_code == httpx.codes.NO_CONTENT:
                        return
                    for event_id, data in parse_events(response.iter_lines()):
                        last_id = event_id
                        yield json.loads(data)
            except IncompleteError:
                time.sleep(_PAUSE_SECONDS)

    def _json(self, method: str, path: str, **arguments: Any) -> Any:
        return self._bound(document_of(self._connection.request(Call(method, path, **arguments))))

    def _bound(self, document: Document) -> Any:
        return bind(document, self)

    def _items(self, path: str, params: Mapping[str, Any] | None = None) -> Iterator[Any]:
        query: dict[str, Any] = {"limit": _PAGE_ITEMS, **(params or {})}
        while True:
            page = self._json("GET", path, params=query)
            yield from map(self._bound, page["items"])
            if page["next_cursor"] is None:
                return
            query["cursor"] = page["next_cursor"]

    def _download(self, call: Call, to: FilePath) -> Path:
        with whole_file(to) as file:
            self._connection.download(call, file)
        return Path(to)

    def _job_id(self, job: Resource) -> str:
        found = job_id_of(job)
        if found is None and (found := self._model_or_result(job)["job_id"]) is None:
            raise ValueError("the model was imported and has no training job")
        return str(found)

    def _model_or_result(self, resource: Resource) -> Document:
        return self._json("GET", any_path_of(resource))


def _checked(api_key: str) -> str:
    """Returns an API key without surrounding white space. Raises a ValueError, whose message does
    not contain the key, if the text cannot be one."""
    key = api_key.strip()
    if re.fullmatch(r"[\x21-\x7e]+", key) is None:
        raise ValueError("api_key is not an API key; a key begins with gcv_ and has no spaces")
    return key


def document_of(response: httpx.Response) -> Document:
    """Returns the JSON object in a response."""
    document = response.json()
    assert isinstance(document, dict)
    return document


def _require_success(job: Document) -> Document:
    if job["status"] == "failed":
        error = job["error"] or {}
        raise JobFailedError(f"job {job['id']} failed: {error.get('message', 'unknown')}", job)
    if job["status"] == "cancelled":
        raise JobCancelledError(f"job {job['id']} was cancelled", job)
    return job


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
