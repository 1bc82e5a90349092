"""Checks requests to generate synthetic databases, and estimates their number of rows."""

from __future__ import annotations

from dataclasses import replace

from catalog.job_kinds import SampleSpec
from catalog.records import Document, Model
from gcvae.errors import Problem
from gcvae.schema.suggestions import unknown_name
from service.errors import NotOfferedError, RequestError

FORMATS = ("csv", "parquet")
"""File formats in which the tables of a synthetic database can be returned."""
_MOST_TIMES = 1_000_000


def checked_spec(model: Model, spec: SampleSpec) -> SampleSpec:
    """Checks a request to generate a database. Returns the request.

    A request states the size of the database in one of two ways. `scale` is a multiple of the size
    of the real database. `parents` is the number of rows of each table without a parent. If the
    request states neither, `scale` is set to 1.

    Raises:
        RequestError: The requested table is unknown, the size is invalid, or both `scale` and
            `parents` are stated.
        NotOfferedError: The request has conditions, or a format that databases do not support.
    """
    for name in ("given", "distribution", "given_rows"):
        if getattr(spec, name) is not None:
            problem = Problem(
                "conditions are not supported for databases", f"/{name}", expected="none"
            )
            raise NotOfferedError(problem, ("scale", "parents", "seed", "format"))
    if spec.rows is not None:
        expected = "scale (1.0 for as many rows as in the real tables) or parents"
        raise RequestError(Problem("a database has several tables", "/rows", expected=expected))
    if spec.scale is not None and spec.parents is not None:
        message = "scale and parents are both given"
        raise RequestError(Problem(message, "/parents", expected="only one of them"))
    if spec.scale is not None and not 0 < spec.scale < _MOST_TIMES:
        expected = f"a number above 0 and below {_MOST_TIMES:,}"
        raise RequestError(Problem(f"scale is {spec.scale}", "/scale", expected=expected))
    if spec.format not in FORMATS:
        message = f"format is {spec.format!r}; it is not supported for databases"
        problem = Problem(message, "/format", expected="csv or parquet")
        raise NotOfferedError(problem, FORMATS)
    names = [*drawn_tables(model)]
    if spec.table is not None and spec.table not in names:
        message = f"table is {spec.table!r}"
        raise RequestError(unknown_name(message, spec.table, names, pointer="?table"))
    is_open = spec.scale is None and spec.parents is None
    return replace(spec, scale=1.0) if is_open else spec


def drawn_tables(model: Model) -> dict[str, Document]:
    """Returns the training record of each table in a generated database, by table name.

    Internal tables are left out. The model has split them off from uploaded tables; each of their
    rows describes an entity, such as a customer, that several uploaded rows refer to.
    """
    record = model.record or {}
    made = {split["entities"] for split in record["splits"]}
    return {name: table for name, table in record["tables"].items() if name not in made}


def expected_rows(model: Model, spec: SampleSpec) -> int:
    """Returns the approximate number of rows in a generated database, summed over its tables."""
    tables = (model.record or {})["tables"]
    times: dict[str, float] = {}

    def of(name: str) -> float:
        table = tables[name]
        if table["is_copied"]:
            return 1.0
        if table["parent"] is not None:
            return times.get(table["parent"]) or of(table["parent"])
        if spec.parents is None:
            return 1.0 if spec.scale is None else spec.scale
        return spec.parents / max(int(table["rows"]), 1)

    for name in tables:
        times[name] = of(name)
    return round(sum(times[name] * int(table["rows"]) for name, table in tables.items()))
