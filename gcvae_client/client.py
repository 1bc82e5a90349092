"""The client: a data team's words for the calls of the service."""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import httpx

from gcvae_client.connection import Body, Call, Connection, save
from gcvae_client.errors import (
    Document,
    JobCancelledError,
    JobFailedError,
    ProblemError,
    UnreachableError,
    WaitTimeoutError,
)
from gcvae_client.events import read_events

Table = str | os.PathLike[str] | bytes
Rows = Table | Sequence[Mapping[str, Any]]

_FINAL = ("succeeded", "failed", "cancelled")
_PLACES = {
    "ds": "datasets",
    "mdl": "models",
    "smp": "samples",
    "scr": "scores",
    "imp": "imputations",
    "enc": "encodings",
}
_CHUNK_BYTES = 1 << 20
_PAGE_ITEMS = 200


class Client:
    """A connection to one service. Every answer is a plain document (dict) of the REST API.

    Args:
        base_url: where the service is.
        api_key: sent as a bearer token.
        timeout_seconds: longest silence of the service before a request counts as lost.
        retries: how often a request is sent again when the service does not answer or is busy.
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout_seconds: float = 300.0,
        retries: int = 3,
    ) -> None:
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
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

    def close(self) -> None:
        """Close every connection."""
        self._connection.http.close()

    # Datasets

    def upload(
        self, table: Table, *, name: str | None = None, schema: Document | None = None
    ) -> Document:
        """Upload a table (a path, or the bytes of CSV, gzipped CSV or Parquet); the dataset.

        Raises:
            InvalidError: it is no table, or the schema does not fit; `errors` name the places.
        """
        fields = {
            "name": _name_of(table) if name is None else name,
            "schema": None if schema is None else json.dumps(schema),
        }
        given = {key: value for key, value in fields.items() if value is not None}
        if schema is not None:  # too long for an address
            return self._json("POST", "/v1/datasets", body=_form(table, given), creates=True)
        body = _bare(table)
        return self._json("POST", "/v1/datasets", body=body, params=given, creates=True)

    def datasets(self) -> Iterator[Document]:
        """Every dataset, newest first."""
        return self._items("/v1/datasets")

    def dataset(self, dataset_id: str) -> Document:
        """A dataset."""
        return self._json("GET", f"/v1/datasets/{dataset_id}")

    def replace_schema(self, dataset_id: str, schema: Document) -> Document:
        """Replace a dataset's schema; the dataset."""
        path = f"/v1/datasets/{dataset_id}/schema"
        return self._json("PUT", path, body=lambda _: {"json": schema})

    def profile(self, dataset_id: str) -> Document:
        """What a dataset's columns hold."""
        return self._json("GET", f"/v1/datasets/{dataset_id}/profile")

    # Models

    def train(
        self,
        dataset_id: str,
        *,
        name: str | None = None,
        preset: str = "default",
        seed: int = 0,
        device: str = "auto",
        **settings: Any,
    ) -> Document:
        """Have a model trained; the model, whose job `wait` waits for.

        Args:
            settings: Settings in the place of the preset's own, such as `max_steps`.

        Raises:
            InvalidError: a preset or a setting is not known.
        """
        training = {"preset": preset, "seed": seed, "device": device, **settings}
        document = {"dataset_id": dataset_id, "training": training}
        if name is not None:
            document["name"] = name
        return self._json("POST", "/v1/models", body=lambda _: {"json": document}, creates=True)

    def models(self, dataset_id: str | None = None) -> Iterator[Document]:
        """Every model, newest first; of one dataset, where it is given."""
        return self._items("/v1/models", {} if dataset_id is None else {"dataset_id": dataset_id})

    def model(self, model_id: str) -> Document:
        """A model."""
        return self._json("GET", f"/v1/models/{model_id}")

    def download_model(self, model_id: str, path: str | os.PathLike[str]) -> Path:
        """Save a trained model as a file, which `gcvae.Synthesizer.load` reads."""
        return self._download(f"/v1/models/{model_id}/artifact", path)

    # Jobs

    def jobs(self, **filters: str) -> Iterator[Document]:
        """Every job, newest first; `status`, `kind` and `model_id` filter."""
        return self._items("/v1/jobs", filters)

    def job(self, job_id: str) -> Document:
        """A job."""
        return self._json("GET", f"/v1/jobs/{job_id}")

    def wait(
        self,
        job: str | Document,
        on_progress: Callable[[Document], None] | None = None,
        *,
        timeout_seconds: float | None = None,
    ) -> Document:
        """The job, once it succeeded.

        Args:
            job: its id, or a document that names it: a model, a sample, scores, or the job.
            on_progress: called with the job each time it has changed.

        Raises:
            JobFailedError: it failed.
            JobCancelledError: it was cancelled.
            WaitTimeoutError: it was not over in time; it goes on.
        """
        ends_at = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        tag, latest = "", {}
        while True:
            path, headers = f"/v1/jobs/{_job_id(job)}", {"If-None-Match": tag}
            response = self._connection.request(Call("GET", path, headers=headers))
            if response.status_code != httpx.codes.NOT_MODIFIED:
                tag, latest = response.headers["ETag"], response.json()
                if on_progress is not None:
                    on_progress(latest)
            if latest["status"] in _FINAL:
                return _require_success(latest)
            if ends_at is not None and time.monotonic() >= ends_at:
                raise WaitTimeoutError(f"job {latest['id']} is still {latest['status']}", latest)
            time.sleep(float(response.headers.get("Retry-After", 1)))

    def events(self, job: str | Document) -> Iterator[Document]:
        """The job each time it has changed, as it happens, until it is over."""
        return read_events(self._connection, _job_id(job))

    def cancel(self, job: str | Document) -> Document:
        """Cancel a job; the job."""
        return self._json("POST", f"/v1/jobs/{_job_id(job)}/cancel")

    def retry(self, job: str | Document) -> Document:
        """Queue a failed or cancelled job again; the job."""
        return self._json("POST", f"/v1/jobs/{_job_id(job)}/retry")

    # What models do

    def sample(
        self,
        model_id: str,
        rows: int | None = None,
        *,
        seed: int = 0,
        given: Mapping[str, Any] | None = None,
        given_rows: Sequence[Mapping[str, Any]] | None = None,
        distribution: Mapping[str, Mapping[str, float]] | None = None,
        format: str = "csv",
        to: str | os.PathLike[str] | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> bytes | Path:
        """Synthetic rows, as bytes, or in a file where `to` names one.

        Where they are too many for one answer, this waits for the job that draws them.

        Args:
            rows: How many; may be left out with `given_rows`, one row for each of which is drawn.
            given: By column what every row is to be: a value, a list of values,
                {"min": ..., "max": ...}, or None for a missing cell.
            given_rows: Known cells, None where a cell is not known.
            distribution: Target shares of one column's levels.

        Raises:
            InvalidError: a condition is malformed, or the model gives it too small a probability.
        """
        n_rows = len(given_rows) if rows is None and given_rows is not None else rows
        document: Document = {"rows": n_rows, "seed": seed, "format": format}
        conditions = {"given": given, "given_rows": given_rows, "distribution": distribution}
        document |= {name: asked for name, asked in conditions.items() if asked is not None}
        return self._table(
            f"/v1/models/{model_id}/samples", lambda _: {"json": document}, {}, to, on_progress
        )

    def score(
        self,
        model_id: str,
        rows: Rows,
        *,
        draws: int = 100,
        seed: int = 0,
        jitters: int = 0,
        measure: str = "density",
        score_missingness: bool = False,
        format: str = "json",
        to: str | os.PathLike[str] | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> bytes | Path:
        """Scores of rows (documents, a path, or the bytes of a table), as bytes or in a file.

        Where the rows are too many for one answer, this waits for the job that scores them.

        Args:
            draws: of z for each row.
            jitters: of a copula's discrete cells in each draw; 0 integrates exactly.
            measure: of continuous values: `density` per unit, mass of the `rounding_cell`, or of
                the quantile bin (`pmf`).
            score_missingness: blanks count with their probability; else they are integrated out.
        """
        params = {"draws": draws, "seed": seed, "jitters": jitters, "measure": measure}
        params |= {"score_missingness": score_missingness, "format": format}
        path = f"/v1/models/{model_id}/scores"
        return self._table(path, _rows_body(rows), params, to, on_progress)

    def impute(
        self,
        model_id: str,
        rows: Rows,
        *,
        draws: int = 1,
        seed: int = 0,
        format: str = "csv",
        to: str | os.PathLike[str] | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> bytes | Path:
        """Rows (documents, a path, or the bytes of a table) with their blanks filled.

        With more than one draw each row comes so many times, numbered in a first column `draw`.
        Where they are too many for one answer, this waits for the job that fills them.
        """
        params = {"draws": draws, "seed": seed, "format": format}
        path = f"/v1/models/{model_id}/imputations"
        return self._table(path, _rows_body(rows), params, to, on_progress)

    def dependencies(
        self,
        model_id: str,
        kind: str = "expected",
        *,
        row: Mapping[str, Any] | None = None,
        z: Sequence[float] | None = None,
        seed: int = 0,
        format: str = "json",
        to: str | os.PathLike[str] | None = None,
    ) -> Document | bytes | Path:
        """The dependency map: a document (`json`), or a picture's bytes (`png`, `svg`).

        Args:
            row: cells by column; the map is then the local one at the row, whatever `kind` says.
            z: a place in the latent space, for the local map there.
            to: a file to save it in; the answer is then its path.
        """
        path = f"/v1/models/{model_id}/dependencies"
        if row is None and z is None:
            params: dict[str, Any] = {"kind": kind, "seed": seed, "format": format}
            return self._drawn(Call("GET", path, params=params), format, to)
        given = {"row": None if row is None else dict(row), "z": z if z is None else list(z)}
        body = {"seed": seed} | {name: value for name, value in given.items() if value is not None}
        call = Call("POST", path, params={"format": format}, body=lambda _: {"json": body})
        return self._drawn(call, format, to)

    def encode(
        self,
        model_id: str,
        rows: Rows,
        *,
        format: str = "json",
        to: str | os.PathLike[str] | None = None,
        on_progress: Callable[[Document], None] | None = None,
    ) -> bytes | Path:
        """Posterior mean and standard deviation of z of rows, as bytes or in a file.

        Where the rows are too many for one answer, this waits for the job that encodes them.
        """
        path = f"/v1/models/{model_id}/encodings"
        return self._table(path, _rows_body(rows), {"format": format}, to, on_progress)

    def manifold(
        self,
        model_id: str,
        *,
        steps: int = 15,
        format: str = "json",
        to: str | os.PathLike[str] | None = None,
    ) -> Document | bytes | Path:
        """The decoder on a grid over a two-dimensional prior: a document, or a picture's bytes."""
        params = {"steps": steps, "format": format}
        return self._drawn(
            Call("GET", f"/v1/models/{model_id}/manifold", params=params), format, to
        )

    def delete(self, resource: str | Document) -> None:
        """Delete a dataset, a model, or what a job made, by id or by document."""
        resource_id = resource if isinstance(resource, str) else str(resource["id"])
        prefix = resource_id.split("_")[0]
        if prefix not in _PLACES:
            raise ValueError(f"{resource_id!r} is no id of a {', '.join(_PLACES.values())}")
        self._connection.request(Call("DELETE", f"/v1/{_PLACES[prefix]}/{resource_id}"))

    def is_ready(self) -> bool:
        """True where the service and everything that it stands on answer."""
        try:
            self._connection.request(Call("GET", "/readyz"))
        except (ProblemError, UnreachableError):
            return False
        return True

    def _json(self, method: str, path: str, **arguments: Any) -> Document:
        return _document(self._connection.request(Call(method, path, **arguments)))

    def _items(self, path: str, params: Mapping[str, str] | None = None) -> Iterator[Document]:
        query: dict[str, Any] = {"limit": _PAGE_ITEMS, **(params or {})}
        while True:
            page = self._json("GET", path, params=query)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            query["cursor"] = page["next_cursor"]

    def _download(
        self, path: str, to: str | os.PathLike[str], params: dict[str, Any] | None = None
    ) -> Path:
        with self._connection.stream(Call("GET", path, params=params)) as response:
            return save(response, to)

    def _drawn(
        self, call: Call, format: str, to: str | os.PathLike[str] | None
    ) -> Document | bytes | Path:
        if to is not None:
            with self._connection.stream(call) as response:
                return save(response, to)
        answer = self._connection.request(call)
        return _document(answer) if format == "json" else answer.content

    def _table(
        self,
        path: str,
        body: Body,
        params: dict[str, Any],
        to: str | os.PathLike[str] | None,
        on_progress: Callable[[Document], None] | None,
    ) -> bytes | Path:
        call = Call("POST", path, body=body, params=params, creates=True)
        with self._connection.stream(call) as response:
            if response.status_code != httpx.codes.ACCEPTED:
                return _taken(response, to)
            result = json.loads(response.read())
        self.wait(result, on_progress)
        place = _PLACES[str(result["id"]).split("_")[0]]
        call = Call("GET", f"/v1/{place}/{result['id']}/content")
        with self._connection.stream(call) as response:
            return _taken(response, to)


def _taken(response: httpx.Response, to: str | os.PathLike[str] | None) -> bytes | Path:
    return response.read() if to is None else save(response, to)


def _document(response: httpx.Response) -> Document:
    document = response.json()
    assert isinstance(document, dict)
    return document


def _job_id(job: str | Document) -> str:
    return job if isinstance(job, str) else str(job.get("job_id", job["id"]))


def _require_success(job: Document) -> Document:
    if job["status"] == "failed":
        error = job["error"] or {}
        raise JobFailedError(f"job {job['id']} failed: {error.get('message', 'unknown')}", job)
    if job["status"] == "cancelled":
        raise JobCancelledError(f"job {job['id']} was cancelled", job)
    return job


def _name_of(table: Table) -> str | None:
    if isinstance(table, bytes):
        return None
    name = Path(table).name
    for ending in (".gz", ".csv", ".parquet"):
        name = name.removesuffix(ending)
    return name


def _rows_body(rows: Rows) -> Body:
    if isinstance(rows, (str, os.PathLike, bytes)):
        return _bare(rows)
    listed = [dict(row) for row in rows]
    return lambda _: {"json": {"rows": listed}}


def _bare(table: Table) -> Body:
    """The bare bytes: three times faster than a form. What they are, the service sees itself."""
    headers = {"Content-Type": "application/octet-stream"}
    if isinstance(table, bytes):
        return lambda _: {"content": table, "headers": headers}
    path = Path(table)
    return lambda files: {"content": _blocks(_opened(path, files)), "headers": headers}


def _form(table: Table, fields: dict[str, str]) -> Body:
    def body(files: ExitStack) -> dict[str, Any]:
        file = io.BytesIO(table) if isinstance(table, bytes) else _opened(Path(table), files)
        return {"files": {"file": ("table", file)}, "data": fields}

    return body


def _opened(path: Path, files: ExitStack) -> BinaryIO:
    return files.enter_context(path.open("rb"))


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(_CHUNK_BYTES):
        yield block
