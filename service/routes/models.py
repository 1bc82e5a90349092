"""Endpoints that train, list, read, download, change and delete models."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

from anyio import from_thread
from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from catalog.dispatch.celery import send_soon
from catalog.errors import LooserScoringError, NotFoundError
from catalog.job_kinds import TrainSpec
from catalog.pages import Order
from catalog.records import DataKind, Dataset, Document, Model, ModelStatus, Scoring
from gcvae.errors import SettingError
from gcvae.training.costs import Computation, Cost, cost, passes_of
from gcvae.training.settings import configure, settle
from service.access import Workspace
from service.bodies import (
    ChangedModelBody,
    ModelBody,
    NewModelBody,
    PageBody,
    TrainingBody,
    model_body,
)
from service.http.body_limits import ARTIFACT_TYPE
from service.http.downloads import Content, download, generated_file, stored_file
from service.http.etags import tagged_json
from service.http.idempotency import IdempotencyKey, enqueue_once, fingerprint
from service.http.json_bodies import JsonRoute
from service.http.pages import Cursor, Limit, Search, Sort, page_body
from service.inline.synthesizers import require_ready, unsupported_for_databases
from service.inline.work import export_model
from service.quotas import require_training_time
from service.reservations import collect_garbage
from service.resources import Resources, Shared
from service.routes.jobs import require_room
from service.routes.privacy_ledgers import privacy_request
from service.routes.reports import newest_report, newest_reports

REPORT_SHARE = 0.1
REPORTED_ROWS = 1_000
"""Minimum number of rows in a table for which, by default, `REPORT_SHARE` of the rows is held out
for the quality report."""

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=JsonRoute)


@router.post("", status_code=202, response_model=ModelBody)
async def train_model(
    body: NewModelBody,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    key: IdempotencyKey = None,
) -> Response:
    """Train a model on a dataset. The response header `Location` is the path of the job."""
    request_sha256 = fingerprint(request, body.model_dump(mode="json"))
    enqueue = partial(enqueue_model, resources, workspace, body)
    find = partial(find_trained, workspace)
    return await enqueue_once(workspace, key, request_sha256, enqueue, find)


@router.get("")
def list_models(
    workspace: Workspace,
    limit: Limit = 50,
    cursor: Cursor = None,
    dataset_id: str | None = None,
    status: ModelStatus | None = None,
    search: Search = None,
    sort: Sort = Order.NEWEST,
    brief: Annotated[bool, Query(description="omit `schema` and `record` (null)")] = False,
) -> PageBody[ModelBody]:
    """List the models of the workspace, by default newest first."""
    page = workspace.models.list(
        limit=limit,
        cursor=cursor,
        dataset_id=dataset_id,
        status=status,
        search=search,
        order=sort,
    )
    reports = newest_reports(workspace, page.items)

    def body(model: Model) -> ModelBody:
        if not brief:
            return model_body(with_schema(workspace, model), reports.get(model.id))
        whole = model_body(model, reports.get(model.id))
        return whole.model_copy(update={"table_schema": None, "record": None})

    return page_body(page, body)


@router.get("/{model_id}", response_model=ModelBody)
def read_model(model_id: str, request: Request, workspace: Workspace) -> Response:
    """Read a model: its schema, training record, held-out log-likelihood and report summary."""
    model = workspace.models.get(model_id)
    body = model_body(with_schema(workspace, model), newest_report(workspace, model))
    return tagged_json(request, body)


@router.get(
    "/{model_id}/artifact",
    response_class=Response,
    responses={
        200: {"content": {ARTIFACT_TYPE: {}}},
        206: {"content": {ARTIFACT_TYPE: {}}, "description": "the requested range"},
    },
)
def download_artifact(
    model_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    minimal: Annotated[
        bool,
        Query(
            description="without records of the training table: training record, scores of "
            "held-out rows, data map, checksum, counts"
        ),
    ] = False,
    scoring: Annotated[
        Scoring | None,
        Query(description="restrict the scoring of the downloaded model: full, flag or off"),
    ] = None,
) -> Response:
    """Download the model as a file, which the library and the command line can load."""
    model = workspace.models.get(model_id)
    require_ready(model)
    return download(
        request,
        _artifact(resources, model, minimal, scoring),
        media_type=ARTIFACT_TYPE,
        filename=f"{model.id}.gcvae",
    )


def _artifact(
    resources: Resources, model: Model, minimal: bool, scoring: Scoring | None
) -> Content:
    """Returns the stored model file, or a minimal or restricted file made from it."""
    if scoring is not None and scoring.is_looser_than(model.scoring):
        raise LooserScoringError(model.id, model.scoring, scoring)
    if minimal or {model.scoring, scoring} - {None, Scoring.FULL}:
        if model.kind is DataKind.DATABASE:
            pointer, expected = (
                "?minimal" if minimal else "?scoring",
                "the artifact without this option",
            )
            raise unsupported_for_databases(
                "this option is not available for models of databases", pointer, expected=expected
            )
        work = partial(export_model, model=model, minimal=minimal, scoring=scoring)
        return generated_file(from_thread.run(resources.inline.run, work))
    assert model.artifact_key is not None
    assert model.artifact_sha256 is not None
    assert model.artifact_bytes is not None
    stored = model.artifact_key, model.artifact_bytes, model.artifact_sha256
    return stored_file(resources.store, *stored)


@router.patch("/{model_id}", response_model=ModelBody)
def change_model(model_id: str, body: ChangedModelBody, workspace: Workspace) -> ModelBody:
    """Change the name of a model, or restrict its scoring: `flag` only reveals whether a row is
    rare, `off` nothing. The restriction also applies to existing results and cannot be undone."""
    if body.scoring is not None:
        _refuse_of_database(workspace.models.get(model_id), {}, body.scoring)
    model = workspace.models.change(model_id, scoring=body.scoring, name=body.name)
    return model_body(with_schema(workspace, model), newest_report(workspace, model))


@router.delete("/{model_id}", status_code=204)
async def delete_model(model_id: str, resources: Shared, workspace: Workspace) -> None:
    """Delete a model with its file and all its results, such as samples and scores."""
    prefixes = await run_in_threadpool(workspace.models.delete, model_id)
    resources.inline.forget(model_id)
    await run_in_threadpool(collect_garbage, resources, prefixes)


def enqueue_model(resources: Resources, workspace: Workspace, body: NewModelBody) -> ModelBody:
    """Creates the records of a model and its training job, and sends the job's id to the queue.

    Raises:
        SettingError: The preset or a setting is unknown, or a value is out of range.
        NotOfferedError: The dataset is a database, and an option is only for single tables.
        BudgetError: The models of the table would exceed a cap on their joint privacy loss.
    """
    stated = body.training.model_dump(mode="json")
    if TrainSpec(stated).is_private:
        _refuse_of_database(workspace.datasets.get(body.dataset_id), stated, body.scoring)
    training = checked_training(body.training)
    require_room(resources, workspace)
    require_training_time(resources, workspace)
    dataset = workspace.datasets.get(body.dataset_id)
    _refuse_of_database(dataset, training, body.scoring)
    if (share := _report_share(training, dataset)) is not None:
        training["report_share"] = share
    model, job = workspace.jobs.enqueue_training(
        dataset_id=dataset.id,
        name=dataset.name if body.name is None else body.name,
        training=training,
        priority=body.priority,
        estimate=training_estimate(training, dataset),
        scoring=body.scoring,
        privacy=privacy_request(resources, training),
    )
    send_soon(resources.dispatcher, job)
    return model_body(replace(model, schema=_known_schema(training, dataset)))


def find_trained(workspace: Workspace, job_id: str) -> ModelBody:
    """Returns the response body of the model that a job trains.

    Raises:
        NotFoundError: The model was deleted.
    """
    job = workspace.jobs.get(job_id)
    if job.model_id is None:
        raise NotFoundError("model of job", job_id)  # deleted since
    model = workspace.models.get(job.model_id)
    return model_body(with_schema(workspace, model))


def checked_training(training: TrainingBody) -> Document:
    """Returns the training options as a job stores them, in JSON, after checking them.

    Raises:
        SettingError: The preset or a setting is unknown, or a value is out of range.
    """
    document = training.model_dump(mode="json")
    if training.report_share is None:
        del document["report_share"]
    settings = TrainSpec(document).settings
    try:
        configure(training.preset, settings)
    except SettingError as error:
        problems = (replace(p, pointer=f"/training{p.pointer or ''}") for p in error.problems)
        raise SettingError(*problems) from None
    return document


def training_estimate(training: Document, dataset: Dataset) -> Document:
    """Returns the estimated time and memory of a training on the dataset.

    For a database, it is the sum of its tables' times and the maximum of its tables' memory.

    Args:
        training: Training options, as `checked_training` returns them.
    """
    config = configure(training["preset"], TrainSpec(training).settings)
    costs = []
    for table in dataset.tables or (vars(dataset),):
        rows, columns = table["rows"], table["columns"]
        settled = settle(config, n_rows=max(rows, 1), n_columns=columns)
        costs.append(cost(Computation.TRAIN, rows, columns, passes_of(settled, rows)))
    seconds = sum(each.seconds for each in costs)
    return Cost(seconds, max(each.memory_bytes for each in costs)).to_json()


def report_estimate(training: Document, dataset: Dataset) -> Document | None:
    """Returns the estimated cost of the quality report after a training; None without a report.

    Args:
        training: Training options, as `checked_training` returns them.
    """
    if not _report_share(training, dataset):
        return None
    return cost(Computation.REPORT, dataset.rows, dataset.columns).to_json()


def _report_share(training: Document, dataset: Dataset) -> float | None:
    """Returns the share of rows to hold out for the report; None to use the library's default."""
    if dataset.kind is DataKind.DATABASE:
        return None
    is_private = TrainSpec(training).is_private
    otherwise = REPORT_SHARE if dataset.rows >= REPORTED_ROWS and not is_private else None
    share: float | None = training.get("report_share", otherwise)
    return share


def with_schema(workspace: Workspace, model: Model) -> Model:
    """Returns the model or, if it has no schema yet, a copy with the schema of its dataset."""
    if model.schema is not None or model.dataset_id is None:
        return model
    try:
        dataset = workspace.datasets.get(model.dataset_id)
    except NotFoundError:  # deleted since the model was read
        return model
    return replace(model, schema=_known_schema(model.training, dataset))


def _refuse_of_database(asked_of: Dataset | Model, training: Document, scoring: Scoring) -> None:
    """Raises NotOfferedError if an option for single tables is used for a database's model."""
    if asked_of.kind is not DataKind.DATABASE:
        return
    options = {
        "/training/differential_privacy": TrainSpec(training).is_private,
        "/training/report_share": TrainSpec(training).has_holdout,
        "/scoring": scoring is not Scoring.FULL,
    }
    for pointer in (pointer for pointer, is_used in options.items() if is_used):
        what = pointer.rpartition("/")[2]
        raise unsupported_for_databases(
            f"{what} is not available for models of databases yet", pointer
        )


def _known_schema(training: Document, dataset: Dataset) -> Document:
    """Returns the schema to show before a model is trained. For a model with differential privacy
    it contains only what users have specified, because inferred members depend on the rows."""
    return dataset.given_schema if TrainSpec(training).is_private else dataset.schema
