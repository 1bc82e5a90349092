"""Reads the ids of datasets, models, jobs and results from arguments: an id or a JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Resource = str | Mapping[str, Any]

RESULTS = {
    "smp": "samples", "scr": "scores", "imp": "imputations", "enc": "encodings", "rpt": "reports",
}  # fmt: skip
"""Name of each collection of results in URLs, by the prefix of the results' ids."""

_COLLECTIONS = {
    "ds": "datasets", "mdl": "models", "con": "connections", "whk": "webhooks", "sch": "schedules",
} | RESULTS  # fmt: skip
_KINDS = {
    "ds": "dataset", "mdl": "model", "job": "job", "con": "connection", "whk": "webhook",
    "sch": "schedule",
} | dict.fromkeys(RESULTS, "result")  # fmt: skip


def dataset_id_of(dataset: Resource) -> str:
    """Returns the id of a dataset, which is given as its id or its JSON object.

    Raises:
        TypeError: The argument is neither an id nor a JSON object that contains one.
        ValueError: The id is that of a model, job or result.
    """
    return _id_of(dataset, "dataset")


def model_id_of(model: Resource) -> str:
    """Returns the id of a model.

    Args:
        model: The id or the JSON object of a model, or the JSON object of one of its jobs or
            results.

    Raises:
        TypeError: The argument is neither an id nor a JSON object that contains one.
        ValueError: The id is that of a dataset, job or result.
    """
    if isinstance(model, Mapping) and kind_of(model.get("id")) in ("job", "result"):
        model = model.get("model_id") or model
    return _id_of(model, "model")


def connection_id_of(connection: Resource) -> str:
    """Returns the id or name of a connection, which is given as such or as its JSON object.

    Raises:
        TypeError: The argument is neither a text nor a JSON object that contains an id.
        ValueError: The id is that of something else.
    """
    return _id_of(connection, "connection")


def webhook_id_of(webhook: Resource) -> str:
    """Returns the id of a webhook, which is given as its id or its JSON object.

    Raises:
        TypeError: The argument is neither an id nor a JSON object that contains one.
        ValueError: The id is that of something else.
    """
    return _id_of(webhook, "webhook")


def schedule_id_of(schedule: Resource) -> str:
    """Returns the id of a schedule, which is given as its id or its JSON object.

    Raises:
        TypeError: The argument is neither an id nor a JSON object that contains one.
        ValueError: The id is that of something else.
    """
    return _id_of(schedule, "schedule")


def any_id_of(resource: Resource) -> str:
    """Returns the id of anything but a job, given as its id or JSON object.

    Raises:
        TypeError: The argument is neither an id nor a JSON object that contains one.
        ValueError: The id is that of a job, or is unknown.
    """
    found = _own_id(resource, "dataset, model, connection, webhook, schedule or result")
    if kind_of(found) in (None, "job"):
        raise ValueError(f"{found!r} is not the id of a {', '.join(_COLLECTIONS.values())}")
    return found


def place_of(resource_id: str) -> str:
    """Returns the URL path of anything but a job with this id."""
    return f"/v1/{_COLLECTIONS[resource_id.split('_')[0]]}/{resource_id}"


def job_id_of(resource: Resource) -> str | None:
    """Returns the id of a job, which is given as its id or as a JSON object that names it.

    Returns None if only the service knows the job: for the id of a model or a result, and for a
    model without a job.

    Raises:
        TypeError: The argument is neither an id nor a JSON object that contains one.
        ValueError: The id is that of a dataset.
    """
    if isinstance(resource, Mapping) and "job_id" in resource:
        return None if resource["job_id"] is None else str(resource["job_id"])
    found = _own_id(resource, "job")
    if kind_of(found) in ("model", "result"):
        return None
    return _id_of(found, "job")


def _id_of(resource: Resource, kind: str) -> str:
    found = _own_id(resource, kind)
    other = kind_of(found)
    if other not in (None, kind):
        raise ValueError(f"{found!r} is the id of a {other}; that of a {kind} is needed")
    return found


def _own_id(resource: Resource, kind: str) -> str:
    needed = f"a {kind} is needed: its id or its document"
    if isinstance(resource, str):
        return resource
    if not isinstance(resource, Mapping):
        raise TypeError(f"{needed}; this is a {type(resource).__name__}")
    if not isinstance(resource.get("id"), str):
        members = ", ".join(map(repr, list(resource)[:8])) or "nothing at all"
        raise TypeError(f"{needed}; this document has no id, but {members}")
    return str(resource["id"])


def kind_of(resource_id: object) -> str | None:
    """Returns what an id belongs to: dataset, model, job or result; None for unknown ids."""
    return _KINDS.get(str(resource_id).split("_")[0])
