"""Endpoints that make and read the quality report of a model."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import suppress
from functools import partial
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Body, Query, Request, Response
from fastapi.openapi.models import Example
from pydantic import Field

from catalog.errors import NotFoundError
from catalog.job_kinds import JobKind, ReportSpec
from catalog.records import DataKind, Dataset, Document, JobStatus, Model, ModelStatus, Result
from gcvae.errors import Problem, json_pointer
from gcvae.schema.columns import TableSchema
from gcvae.schema.suggestions import unknown_name, unknown_names
from gcvae.training.costs import Computation
from service.access import Workspace
from service.bodies import PRIORITY, Priority, RequestBody, ResultBody, Seed
from service.database_samples import drawn_tables
from service.errors import NoReportError, NotOfferedError, RequestError
from service.http.etags import tagged
from service.http.idempotency import IdempotencyKey, enqueue_once, fingerprint
from service.http.json_bodies import JsonRoute
from service.http.negotiation import choose_format
from service.inline.synthesizers import require_ready, schema_of
from service.resources import Resources, Shared
from service.routes.jobs import require_room
from service.routes.results import enqueue, estimate, find_queued, result_routes

MEDIA_TYPES = {"json": "application/json", "html": "text/html; charset=utf-8"}
"""Media types by response format."""

_MOST_CHARACTERS = 2_000  # of a text in a dossier
_PARTS = ("fidelity", "utility", "likelihood", "privacy")
_PART = {
    "type": "object",
    "required": ["verdict", "sentence"],
    "properties": {
        "verdict": {"type": "string", "enum": ["green", "amber", "red", "not_measured"]},
        "sentence": {"type": "string"},
    },
}
_REPORT = {
    "type": "object",
    "required": list(_PARTS),
    "properties": dict.fromkeys(_PARTS, _PART),
}
_EXAMPLES: dict[str, Example] = {
    "again": {"summary": "The same rows with another seed", "value": {"seed": 1}},
    "imported": {
        "summary": "An imported model, and a holdout of your own",
        "value": {"dataset_id": "ds_…", "holdout_dataset_id": "ds_…", "columns": ["income"]},
    },
}

router = APIRouter(tags=["reports"], route_class=JsonRoute)


class NewReportBody(RequestBody):
    """Tables that a quality report compares with the model, and options."""

    dataset_id: str | None = Field(
        None,
        description="the training table; required only if the model was imported or its dataset "
        "was deleted",
    )
    holdout_dataset_id: str | None = Field(
        None,
        description="rows that were not used in training, instead of those held out by "
        "`report_share`; with neither, parts of the report are not measured",
    )
    seed: Seed = 0
    columns: list[str] | None = Field(
        None,
        min_length=1,
        description="target columns of the utility part; default: all suitable columns",
    )
    priority: Priority = Field(0, description=PRIORITY)


@router.post(
    "/v1/models/{model_id}/report",
    status_code=202,
    response_model=ResultBody,
)
async def make_report(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    body: Annotated[NewReportBody | None, Body(openapi_examples=_EXAMPLES)] = None,
    key: IdempotencyKey = None,
) -> Response:
    """Make the quality report of a model. The response is 202, and its header `Location` is the
    path of the job. The new report replaces the previous one when it is ready."""
    options = NewReportBody() if body is None else body
    enqueue_one = partial(enqueue_report, resources, workspace, model_id, options)
    find = partial(find_queued, workspace)
    request_sha256 = fingerprint(request, options.model_dump(mode="json"))
    return await enqueue_once(workspace, key, request_sha256, enqueue_one, find)


@router.get(
    "/v1/models/{model_id}/report",
    response_class=Response,
    responses={
        200: {
            "content": {
                "application/json": {"schema": _REPORT},
                "text/html": {"schema": {"type": "string"}},
            }
        }
    },
)
def read_report(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    format: Annotated[str | None, Query(description="json or html; default: by Accept")] = None,
    table: Annotated[
        str | None, Query(description="of a database: the page of one of its tables")
    ] = None,
) -> Response:
    """Read the quality report of a model: fidelity, utility, likelihood and privacy, each with a
    verdict, as JSON or as one HTML page without external resources. 404 if there is no report, with
    the reason and the `job_id` of the job that makes it. The report of a database contains a report
    for each of its `tables` and figures for the `keys`; as HTML it is an index, and `table` selects
    a table's page."""
    response_format = choose_format(format, request.headers.get("Accept"), MEDIA_TYPES)
    model = workspace.models.get(model_id)
    report = newest_report(workspace, model)
    if report is None:
        raise no_report(workspace, model)
    content = resources.store.read(report.object_key, report.sha256)
    headers = {"Vary": "Accept"}
    document = json.loads(content)
    judged = document.get("tables")
    if table is not None and table not in (judged or ()):
        known = [*(judged or ())]
        raise RequestError(unknown_name(f"table is {table!r}", table, known, pointer="?table"))
    if table is not None:
        document = document["tables"][table]
        content = json.dumps(document, ensure_ascii=False).encode()
    if response_format == "html":
        made = report.created_at.date()
        from gcvae.evaluation.report.page import database_page, html_page  # imports pandas

        title = f"{table or model.name} ({model.id}), {made}"
        pages = {name: f"?format=html&table={quote(name, safe='')}" for name in judged or ()}
        is_first = judged is not None and table is None
        page = database_page(document, pages) if is_first else html_page(document, title)
        content = page.encode()
    return tagged(request, content, MEDIA_TYPES[response_format], headers)


@router.get(
    "/v1/models/{model_id}/dossier",
    response_class=Response,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
def read_dossier(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    purpose: Annotated[
        str,
        Query(
            min_length=1,
            max_length=_MOST_CHARACTERS,
            pattern=r"\S",
            description="what the synthetic rows or the model are released for",
        ),
    ],
    retention: Annotated[
        str | None,
        Query(max_length=_MOST_CHARACTERS, description="how long rows and model are kept"),
    ] = None,
) -> Response:
    """Read the dossier of a model: its quality report as one HTML page for the files of a data
    protection impact assessment, with purpose, retention, protections, the three questions of WP29
    Opinion 05/2014 and SHA-256 digests. Models of databases have no dossier."""
    model = workspace.models.get(model_id)
    if model.kind is DataKind.DATABASE:
        raise NotOfferedError(
            Problem("the model of a database has no dossier", expected="the model of one table"),
            ("report",),
        )
    report = newest_report(workspace, model)
    if report is None:
        raise no_report(workspace, model)
    from gcvae.evaluation.report.dossier import Release, dossier_page  # imports pandas

    document = json.loads(resources.store.read(report.object_key, report.sha256))
    made = {
        name: of for name, of in workspace.jobs.get(report.job_id).spec.items() if of is not None
    }
    tables = [made[name] for name in ("dataset_id", "holdout_dataset_id") if name in made]
    digests = {f"model {model.id}": str(model.artifact_sha256), "report": report.sha256}
    for dataset_id in tables:
        with suppress(NotFoundError):  # deleted since
            digests[f"dataset {dataset_id}"] = workspace.datasets.get(dataset_id).sha256
    release = Release(
        purpose,
        retention,
        model.schema or {"columns": []},
        model.record or {},
        model.scoring.value,
        digests,
        f"POST /v1/models/{model.id}/report {json.dumps(made, ensure_ascii=False)}",
        f"{model.name} ({model.id}), {report.created_at.date()}",
    )
    content = dossier_page(document, release).encode()
    return tagged(request, content, MEDIA_TYPES["html"], {})


result_routes(router, JobKind.REPORT)


def newest_report(workspace: Workspace, model: Model) -> Result | None:
    """Returns the newest quality report of a model; None if it has none."""
    return newest_reports(workspace, [model]).get(model.id)


def newest_reports(workspace: Workspace, models: list[Model]) -> dict[str, Result]:
    """Returns the newest quality report of each model that has one, by model id."""
    return workspace.results.of_models(JobKind.REPORT, [model.id for model in models])


def no_report(workspace: Workspace, model: Model) -> NoReportError:
    """Returns the error that says why a model has no quality report, and which job makes it."""
    if model.status is not ModelStatus.READY:
        why = f"model {model.id} is {model.status}"
        if model.status is ModelStatus.TRAINING:
            return NoReportError(f"{why}; its report follows", model.job_id, is_under_way=True)
        return NoReportError(f"{why}; only ready models have reports", model.job_id)
    jobs = workspace.jobs.list(limit=1, model_id=model.id, kind=JobKind.REPORT).items
    if not jobs:
        why = "the model was imported, and no report was requested"
        if model.job_id is not None:
            why = "no rows were kept unseen for it (report_share is 0), and no report was requested"
        return NoReportError(why, can_be_made=True)
    job = jobs[0]
    if not job.status.is_final:
        return NoReportError(
            f"job {job.id} makes it and is {job.status}", job.id, is_under_way=True
        )
    if job.status is JobStatus.SUCCEEDED:
        why = "it was deleted"
    else:
        message = "" if job.error is None else f": {job.error['message']}"
        why = f"job {job.id}, which should have made it, {_ENDED[job.status]}{message}"
    return NoReportError(why, job.id, can_be_made=True)


_ENDED = {JobStatus.FAILED: "failed", JobStatus.CANCELLED: "was cancelled"}


def enqueue_report(
    resources: Resources, workspace: Workspace, model_id: str, body: NewReportBody
) -> ResultBody:
    """Queues a job that makes the quality report of a model. Returns the response body.

    Raises:
        RequestError: The real table is missing, or the columns of a table do not fit the model.
        NotOfferedError: Target columns are requested for a model of a database.
    """
    model = workspace.models.get(model_id)
    require_ready(model)
    datasets, holdout = workspace.datasets, None
    real = datasets.get(_dataset_id(model, body))
    check_table(model, real, "/dataset_id")
    if body.holdout_dataset_id is not None:
        holdout = datasets.get(body.holdout_dataset_id)
        check_table(model, holdout, "/holdout_dataset_id")
    _check_columns(model, body)
    cost = None
    if model.kind is DataKind.TABLE:
        cost = estimate(model, Computation.REPORT, real.rows)
    require_room(resources, workspace)
    spec = ReportSpec(real.id, body.seed, body.holdout_dataset_id, body.columns)
    return enqueue(
        *(resources, workspace, JobKind.REPORT, model, spec),
        shards=(),
        priority=body.priority,
        estimate=cost,
        dataset_id=real.id,
    )


def _dataset_id(model: Model, body: NewReportBody) -> str:
    """Returns the id of the dataset with the real rows for a report."""
    dataset_id = model.dataset_id if body.dataset_id is None else body.dataset_id
    if dataset_id is None:
        why = "was imported" if model.job_id is None else "has no dataset, because it was deleted"
        message = f"the model {why}; a report needs a table of real rows"
        expected = "the id of a dataset: the table that the model was trained on"
        raise RequestError(Problem(message, "/dataset_id", expected=expected))
    if dataset_id == body.holdout_dataset_id:
        message = "the holdout is the training table itself"
        expected = "a dataset of rows that were not used in training"
        raise RequestError(Problem(message, "/holdout_dataset_id", expected=expected))
    return dataset_id


def check_table(model: Model, dataset: Dataset, pointer: str) -> None:
    """Checks that a dataset has all modelled columns, and only columns that the model knows.

    Args:
        pointer: JSON pointer to the dataset's id in the request, for errors.

    Raises:
        RequestError: A column is missing or unknown, or the dataset is a database and the model is
            not (or vice versa), or their tables have different names.
    """
    if dataset.kind is not model.kind:
        message = f"dataset {dataset.id} is a {dataset.kind.value}"
        raise RequestError(
            Problem(message, pointer, expected=f"a {model.kind.value}, as the model's")
        )
    if dataset.kind is DataKind.DATABASE:
        has = {table["name"] for table in dataset.tables or ()}
        tables = drawn_tables(model)
        for name in {*tables} ^ has:
            message = f"table {name!r} is in one of model and dataset {dataset.id} alone"
            raise RequestError(
                Problem(message, pointer, expected="a database of the model's tables")
            )
        for table in dataset.tables or ():
            known = tables[table["name"]].get("names")  # not in records of an earlier version
            if known is not None:
                what = f"table {table['name']!r} of dataset {dataset.id}"
                _check_names(what, table["schema"], known, known, pointer)
        return
    schema = schema_of(model)
    needed = [column.name for column in schema if column.is_modelled]
    _check_names(f"dataset {dataset.id}", dataset.schema, needed, schema.names, pointer)


def _check_names(
    table: str, schema: Document, needed: Collection[str], known: Collection[str], pointer: str
) -> None:
    """Raises RequestError unless a table has all `needed` columns and only `known` ones."""
    has = {column["name"] for column in schema["columns"]}
    lacks = [name for name in needed if name not in has]
    others = sorted(has.difference(known))
    problems = [
        Problem(f"{table} {what}", pointer, column=names[0], expected=expected)
        for what, names, expected in (
            (f"lacks {_listed(lacks)} of the model", lacks, "a table with the model's columns"),
            (
                f"has {_listed(others)} that the model does not have",
                others,
                "only columns of the model",
            ),
        )
        if names
    ]
    if problems:
        raise RequestError(*problems)


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    word = "column" if len(names) == 1 else "columns"
    return f"{word} {', '.join(map(repr, names[:3]))}{more}"


def _check_columns(model: Model, body: NewReportBody) -> None:
    """Checks that the requested target columns are modelled columns."""
    if model.kind is DataKind.DATABASE:
        if body.columns is not None:
            message = "columns are of reports of single tables"
            problem = Problem(message, "/columns", expected="none: every column of each table")
            raise NotOfferedError(problem, ("dataset_id", "holdout_dataset_id", "seed"))
        return
    schema: TableSchema = schema_of(model)
    modelled = [column.name for column in schema if column.is_modelled]
    places = [
        (name, {"pointer": json_pointer("columns", i), "column": name})
        for i, name in enumerate(body.columns or ())
        if name not in modelled
    ]
    if problems := unknown_names("the model has no such column", places, modelled):
        raise RequestError(*problems)
