"""Endpoints for schedules: trainings that are repeated at certain times, and the log of runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool

from catalog.records import DataKind, Document, Run, RunStatus, Schedule, Scoring
from catalog.schedules.times import checked_times
from catalog.workspace import Workspace as OpenedWorkspace
from gcvae.errors import Problem
from service.access import Workspace
from service.bodies import SCORING, Name, PageBody, RequestBody, TrainingBody
from service.connections.use import SourceBody, TargetBody, check_target, checked_source
from service.errors import RequestError
from service.http.audit_trail import note_connection
from service.http.etags import tagged_json
from service.http.json_bodies import JsonRoute
from service.http.pages import Cursor, Limit, page_body
from service.resources import Resources, Shared
from service.routes.models import checked_training
from service.routes.samples import NewSampleBody, check_given_rows, check_rows

router = APIRouter(prefix="/v1/schedules", tags=["schedules"], route_class=JsonRoute)

_CRON = "minute, hour, day of month, month and day of week, as in cron"
_ZONE = "time zone of the cron expression, such as Europe/Berlin"
_EXAMPLE: dict[str, JsonValue] = {
    "name": "nightly",
    "cron": "0 3 * * MON-FRI",
    "time_zone": "Europe/Berlin",
    "source": {"connection": "warehouse", "table": "orders"},
    "training": {"preset": "fast"},
    "sample": {"rows": 10000, "format": "parquet"},
    "export": {"connection": "lab", "table": "synthetic_orders", "if_exists": "replace"},
}


class NewScheduleBody(RequestBody):
    """A request for a schedule, with the work of its runs: dataset, training, sample, export."""

    model_config = ConfigDict(json_schema_extra={"example": _EXAMPLE})

    name: Name
    cron: str = Field(min_length=1, max_length=100, description=_CRON)
    time_zone: str = Field("UTC", max_length=100, description=_ZONE)
    paused: StrictBool = Field(False, description="run only on request")
    source: SourceBody | None = Field(
        None, description="table of a connection, of which each run makes a dataset"
    )
    dataset_id: str | None = Field(None, description="an existing dataset, instead of a source")
    training: TrainingBody = Field(default_factory=TrainingBody)
    scoring: Scoring = Field(Scoring.FULL, description=SCORING)
    sample: NewSampleBody | None = Field(None, description="rows to generate after the training")
    export: TargetBody | None = Field(
        None, description="where to write the sample; `if_exists` is append or replace"
    )


class ChangedScheduleBody(RequestBody):
    """Changes of a schedule; omitted members do not change."""

    name: Name | None = None
    cron: str | None = Field(None, min_length=1, max_length=100, description=_CRON)
    time_zone: str | None = Field(None, min_length=1, max_length=100, description=_ZONE)
    paused: StrictBool | None = None
    columns: None = Field(
        None, description="null accepts other columns: the next run determines them anew"
    )


class ScheduleBody(BaseModel):
    """A schedule: a training that is repeated at certain times."""

    id: str
    name: str
    cron: str
    time_zone: str
    paused: bool
    next_at: datetime | None = Field(description="time of the next run; null while paused")
    source: dict[str, Any] | None = None
    dataset_id: str | None = None
    training: dict[str, Any]
    scoring: Scoring
    sample: dict[str, Any] | None
    export: dict[str, Any] | None
    columns: dict[str, str] | None = Field(
        description="type of each column of the source; null until the first run has read it"
    )
    created_at: datetime


class RunBody(BaseModel):
    """One run of a schedule."""

    id: str
    schedule_id: str
    due_at: datetime
    status: RunStatus = Field(
        description="skipped: an earlier run was still running when it was due"
    )
    missed: int = Field(
        description="due times before, at which no service was running; at most 10,000"
    )
    dataset_id: str | None
    training_job_id: str | None
    model_id: str | None
    sample_job_id: str | None
    sample_id: str | None
    error: dict[str, Any] | None = Field(
        description="why the run failed, or why its current step is repeated"
    )
    created_at: datetime
    finished_at: datetime | None


@router.post("", status_code=201)
def create_schedule(
    body: NewScheduleBody,
    request: Request,
    workspace: Workspace,
    resources: Shared,
    response: Response,
) -> ScheduleBody:
    """Create a schedule. Each run makes a dataset of the source, trains a model on it, generates a
    sample and writes it to a connection; sample and writing are optional."""
    times = checked_times(body.cron, body.time_zone)
    if body.source is not None:
        note_connection(request, body.source.connection)
    work = _checked_work(body, workspace, resources)
    made = workspace.schedules.create(body.name, times, work, paused=body.paused)
    response.headers["Location"] = f"/v1/schedules/{made.id}"
    return _schedule(made)


@router.get("")
def list_schedules(
    workspace: Workspace, limit: Limit = 50, cursor: Cursor = None
) -> PageBody[ScheduleBody]:
    """List the schedules of the workspace, newest first."""
    return page_body(workspace.schedules.list(limit=limit, cursor=cursor), _schedule)


@router.get("/{schedule_id}", response_model=ScheduleBody)
def read_schedule(schedule_id: str, request: Request, workspace: Workspace) -> Response:
    """Read a schedule."""
    return tagged_json(request, _schedule(workspace.schedules.get(schedule_id)))


@router.patch("/{schedule_id}")
def change_schedule(
    schedule_id: str, body: ChangedScheduleBody, workspace: Workspace
) -> ScheduleBody:
    """Pause or resume a schedule, change its name or times, or accept a source's new columns."""
    members = body.model_dump(exclude={"columns"})
    forget = "columns" in body.model_fields_set
    return _schedule(workspace.schedules.change(schedule_id, **members, forget_columns=forget))


@router.delete("/{schedule_id}", status_code=204)
def delete_schedule(schedule_id: str, workspace: Workspace) -> None:
    """Delete a schedule with the log of its runs. Their datasets, models and samples are kept."""
    workspace.schedules.delete(schedule_id)


@router.post("/{schedule_id}/runs", status_code=202)
def start_run(schedule_id: str, workspace: Workspace, response: Response) -> RunBody:
    """Start a run now, also of a paused schedule, unless one is still running."""
    run = workspace.schedules.run_now(schedule_id)
    response.headers["Location"] = f"/v1/schedules/{schedule_id}/runs/{run.id}"
    return _run(run)


@router.get("/{schedule_id}/runs")
def list_runs(
    schedule_id: str, workspace: Workspace, limit: Limit = 50, cursor: Cursor = None
) -> PageBody[RunBody]:
    """List the last 1,000 runs of a schedule, newest first."""
    return page_body(workspace.schedules.runs(schedule_id, limit=limit, cursor=cursor), _run)


@router.get("/{schedule_id}/runs/{run_id}", response_model=RunBody)
def read_run(schedule_id: str, run_id: str, request: Request, workspace: Workspace) -> Response:
    """Read a run: the ids of its dataset, model, jobs and sample. If it failed, also the reason."""
    return tagged_json(request, _run(workspace.schedules.get_run(schedule_id, run_id)))


def _checked_work(
    body: NewScheduleBody, workspace: OpenedWorkspace, resources: Resources
) -> Document:
    """Checks the steps of a schedule without reading its source. Returns them as they are
    stored."""
    is_archive = False
    if (body.source is None) == (body.dataset_id is None):
        raise _misfit("one of source and dataset_id is needed", "/source", "one of them")
    if body.source is not None:
        with _below("/source"):
            checked_source(resources, workspace, body.source)
        is_archive = body.source.key is not None  # a file may be a ZIP file of tables
    if body.dataset_id is not None:
        is_archive = workspace.datasets.get(body.dataset_id).kind is DataKind.DATABASE
    if body.sample is not None:
        with _below("/sample"):
            check_given_rows(body.sample)
        check_rows(body.sample.rows or 0, resources, "/sample/rows")
    if body.export is not None:
        if body.sample is None:
            raise _misfit("there is no sample to write", "/sample", "rows and format of a sample")
        if body.export.if_exists == "fail":
            pointer = "/export/if_exists"
            raise _misfit("the second run would fail", pointer, "append or replace")
        connection = workspace.connections.get(body.export.connection)
        with _below("/export"):
            format = body.sample.format
            check_target(resources, connection, body.export, format, is_archive=is_archive)
    members = {"source", "dataset_id"}
    source = body.model_dump(mode="json", by_alias=True, exclude_none=True, include=members)
    others = {"scoring", "sample", "export"}
    return (
        source
        | {"training": checked_training(body.training)}
        | body.model_dump(mode="json", by_alias=True, include=others)
    )


@contextmanager
def _below(pointer: str) -> Iterator[None]:
    """Puts `pointer` before the pointers of errors that are raised in the block."""
    try:
        yield
    except RequestError as error:
        problems = (replace(p, pointer=f"{pointer}{p.pointer or ''}") for p in error.problems)
        raise RequestError(*problems) from None


def _misfit(message: str, pointer: str, expected: str) -> RequestError:
    return RequestError(Problem(message, pointer, expected=expected))


def _schedule(schedule: Schedule) -> ScheduleBody:
    return ScheduleBody.model_validate(vars(schedule) | schedule.work)


def _run(run: Run) -> RunBody:
    return RunBody.model_validate(vars(run))
