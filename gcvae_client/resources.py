"""Returns ids and URL paths of resources, such as datasets and models, from ids or JSON objects."""

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


def id_of(resource: Resource, kind: str) -> str:
    """Returns the id of a resource of this kind.

    Args:
        resource: Id or JSON object of the resource; for a model also the JSON object of one of its
            jobs or results, and for a connection also its name.
        kind: `dataset`, `model`, `job`, `connection`, `webhook` or `schedule`.

    Raises:
        TypeError: The argument is neither an id nor a JSON object that contains one.
        ValueError: The id belongs to a resource of another kind.
    """
    found = _own_id(resource, kind)
    if kind == "model" and isinstance(resource, Mapping) and kind_of(found) in ("job", "result"):
        found = resource.get("model_id") or found
    other = kind_of(found)
    if other not in (None, kind):
        raise ValueError(f"{found!r} is the id of a {other}; that of a {kind} is needed")
    return found


def path_of(kind: str, resource: Resource, below: str = "") -> str:
    """Returns the URL path of a resource (see `id_of`), followed by `below`, such as `/schema`."""
    return f"/v1/{kind}s/{id_of(resource, kind)}{below}"


def any_path_of(resource: Resource) -> str:
    """Returns the URL path of a resource of any kind but `job`, given as its id or JSON object.

    Raises:
        TypeError: The argument is neither an id nor a JSON object that contains one.
        ValueError: The id is that of a job, or is unknown.
    """
    found = _own_id(resource, "dataset, model, connection, webhook, schedule or result")
    if kind_of(found) in (None, "job"):
        raise ValueError(f"{found!r} is not the id of a {', '.join(_COLLECTIONS.values())}")
    return path_of_id(found)


def path_of_id(resource_id: str) -> str:
    """Returns the URL path of the resource with this id, which may be of any kind but `job`."""
    return f"/v1/{_COLLECTIONS[resource_id.split('_')[0]]}/{resource_id}"


def job_id_of(resource: Resource) -> str | None:
    """Returns the id of a job, given as its id or as the JSON of the job, its model or result.

    Returns None for the id of a model or a result, whose job only the service knows, and for the
    JSON object of a model without a job.

    Raises:
        TypeError: The argument is neither an id nor a JSON object that contains one.
        ValueError: The id belongs to a resource without a job, such as a dataset.
    """
    if isinstance(resource, Mapping) and "job_id" in resource:
        return None if resource["job_id"] is None else str(resource["job_id"])
    found = _own_id(resource, "job")
    if kind_of(found) in ("model", "result"):
        return None
    return id_of(found, "job")


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
    """Returns the kind of resource of an id, such as `dataset` or `result`; None for unknown
    ids."""
    return _KINDS.get(str(resource_id).split("_")[0])
