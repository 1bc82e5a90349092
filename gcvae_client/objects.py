"""Datasets, models and jobs: JSON objects of the REST API with methods.

Each object is a dict with members such as `model["status"]`. Its methods call methods of the client
that returned the object, with the object as first argument:

    model = client.upload("table.csv").train().wait()
    frame = model.sample(1000)
"""

from __future__ import annotations

import html
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Self

from gcvae_client.errors import ClientError, Document
from gcvae_client.resources import kind_of

_OPEN = "in training: model.wait() returns once it is ready"


class Entity(dict[str, Any], ABC):
    """Dataset, model or job: a JSON object of the REST API, with the client that returned it."""

    def __init__(self, document: Mapping[str, Any], client: Any = None) -> None:
        super().__init__(document)
        self._client = client

    @property
    def id(self) -> str:
        """Id of the dataset, model or job."""
        return str(self["id"])

    @property
    def client(self) -> Any:
        """Client that returned the object.

        Raises:
            ClientError: The client is an `AsyncClient`, whose methods have to be awaited.
        """
        if self._client is None:
            kind = type(self).__name__.lower()
            raise ClientError(
                f"this {kind} belongs to an AsyncClient; "
                f"use `await client.…({kind}, …)` instead of `{kind}.…(…)`"
            )
        return self._client

    def __repr__(self) -> str:
        """Returns a one-line description."""
        return f"<{type(self).__name__} {self.id}: {', '.join(self._facts().values())}>"

    def _repr_html_(self) -> str:
        facts = {"id": self.id} | self._facts()
        rows = (
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(fact.removeprefix(f'{name} '))}</td></tr>"
            for name, fact in facts.items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{''.join(rows)}</table>"

    @abstractmethod
    def _facts(self) -> dict[str, str]:
        """Returns the main properties as short texts, by name."""


class ClientMethod:
    """Descriptor that gives datasets, models and jobs a method of their client: `model.sample(9)`
    calls `client.sample(model, 9)`.

    Args:
        call: Name of the client's method.
    """

    def __init__(self, call: str) -> None:
        self.call = call

    def __get__(self, entity: Entity | None, kind: type[Entity]) -> Any:
        """Returns the client's method with the object as first argument."""
        return self if entity is None else partial(getattr(entity.client, self.call), entity)


class Dataset(Entity):
    """Uploaded table or database: a JSON object with methods of `Client`."""

    train = ClientMethod("train")
    profile = ClientMethod("profile")
    first_rows = ClientMethod("first_rows")
    rename = ClientMethod("rename")
    rules = ClientMethod("rules")
    privacy = ClientMethod("privacy")
    cap_privacy = ClientMethod("cap_privacy")
    models = ClientMethod("models")
    replace_schema = ClientMethod("replace_schema")
    patch_schema = ClientMethod("patch_schema")
    refresh = ClientMethod("dataset")
    delete = ClientMethod("delete")

    def _facts(self) -> dict[str, str]:
        warnings = len(self.get("warnings", ()))
        table = f"{self['rows']:,} rows × {self['columns']} columns"
        if self["tables"] is not None:
            table = f"{len(self['tables'])} tables, {self['rows']:,} rows"
        facts = {"name": repr(self["name"]), "table": table}
        return facts | ({"notes": f"warnings: {warnings}"} if warnings else {})


class Model(Entity):
    """Model that is in training, ready, failed or cancelled: a JSON object with methods of
    `Client`."""

    sample = ClientMethod("sample")
    export_sample = ClientMethod("export_sample")
    score = ClientMethod("score")
    impute = ClientMethod("impute")
    encode = ClientMethod("encode")
    dependencies = ClientMethod("dependencies")
    manifold = ClientMethod("manifold")
    report = ClientMethod("report")
    make_report = ClientMethod("make_report")
    dossier = ClientMethod("dossier")
    download = ClientMethod("download_model")
    restrict_scoring = ClientMethod("restrict_scoring")
    rename = ClientMethod("rename")
    job = ClientMethod("job")
    cancel = ClientMethod("cancel")
    refresh = ClientMethod("model")
    delete = ClientMethod("delete")

    def wait(
        self,
        on_progress: Callable[[Document], None] | None = None,
        *,
        timeout_seconds: float | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Waits until the model is trained, and returns its new state.

        Args:
            on_progress: Function that is called with the job as JSON when the job has changed.
            timeout_seconds: Time limit; None for no limit.
            progress: Whether to show a progress bar. Default: only in terminals and notebooks, and
                only without `on_progress`.

        Raises:
            JobFailedError, JobCancelledError: The training failed or was cancelled.
            WaitTimeoutError: The training did not finish within the time limit; it continues.
        """
        self.client.wait(self, on_progress, timeout_seconds=timeout_seconds, progress=progress)
        return type(self)(self.client.model(self), self._client)

    def _facts(self) -> dict[str, str]:
        record = self["record"] or {}
        facts = {"name": repr(self["name"]), "status": str(self["status"])}
        if self["status"] == "training":
            facts["status"] = _OPEN
        if preset := self["training"].get("preset"):
            facts["preset"] = f"preset {preset}"
        rows = f"{record['rows']:,} rows × " if "rows" in record else ""
        if self["kind"] == "database":
            facts["table"] = f"{len(self['schema']['tables'])} tables"
        else:
            facts["table"] = f"{rows}{len(self['schema']['columns'])} columns"
        if (bound := self["bound_held_out"]) is not None:
            facts["held-out log-likelihood"] = f"{bound:.2f} nats per row"
        return facts | _verdicts(self["report"])


class Job(Entity):
    """Job of the service, such as a training: a JSON object with methods of `Client`."""

    wait = ClientMethod("wait")
    events = ClientMethod("events")
    cancel = ClientMethod("cancel")
    retry = ClientMethod("retry")
    refresh = ClientMethod("job")

    def _facts(self) -> dict[str, str]:
        facts = {"kind": str(self["kind"]), "status": str(self["status"])}
        fraction = (self["progress"] or {}).get("fraction")
        if fraction is not None and self["status"] == "running":
            facts["done"] = f"{fraction:.0%}"
        if self["error"]:
            facts["error"] = str(self["error"].get("message"))
        return facts


def _verdicts(report: Document | None) -> dict[str, str]:
    found = {} if report is None else report["verdicts"]
    words = [f"{part} {verdict.replace('_', ' ')}" for part, verdict in found.items()]
    return {"report": ", ".join(words)} if words else {}


_OBJECTS: dict[str, type[Entity]] = {"dataset": Dataset, "model": Model, "job": Job}


def bind(document: Document, client: Any) -> Document:
    """Returns a JSON object as a `Dataset`, `Model` or `Job`, according to its id.

    JSON objects of other kinds are returned unchanged.

    Args:
        document: JSON object of the REST API.
        client: Client that received the object; None for an `AsyncClient`.
    """
    kind = _OBJECTS.get(kind_of(document.get("id")) or "")
    return document if kind is None else kind(document, client)
