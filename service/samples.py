"""Samples: synthetic rows, at once or by a job."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from catalog.dispatch import send_soon
from catalog.records import JobKind, Model
from catalog.specs import SampleSpec
from gcvae.errors import Problem
from service.access import Workspace
from service.bodies import NewSampleBody, ResultBody, result_body
from service.downloads import attachment
from service.errors import RequestError, TableLimitError
from service.estimates import estimate_sample
from service.idempotency import IdempotencyKey, enqueued_once, fingerprint
from service.inline_work import check_conditions, conditions_of, draw_sample, given_table
from service.jobs import require_room
from service.json_bodies import JsonRoute
from service.negotiation import TABLE_MEDIA_TYPES as MEDIA_TYPES
from service.resources import Resources, Shared
from service.results import content_path, find_queued, result_routes
from service.shards import cut_rows
from service.synthesizers import require_ready

router = APIRouter(tags=["samples"], route_class=JsonRoute)

_TABLE = {"schema": {"type": "string", "format": "binary"}}
_ROWS_ANSWER = {"content": dict.fromkeys(MEDIA_TYPES.values(), _TABLE)}


@router.post(
    "/v1/models/{model_id}/samples",
    response_class=Response,
    responses={200: _ROWS_ANSWER, 202: {"model": ResultBody}},
)
async def sample_model(
    model_id: str,
    body: NewSampleBody,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    key: IdempotencyKey = None,
) -> Response:
    """Draw rows: the answer is the table, streamed; above the inline limit it is 202 and a job."""
    check_rows(body.rows, resources)
    check_given_rows(body)
    model = await run_in_threadpool(resources.catalog.models.get, model_id, workspace=workspace)
    require_ready(model)
    if body.rows <= resources.settings.max_inline_sample_rows:
        return await answer_inline(resources, model, body)

    if conditions_of(body):  # what can not be drawn is told now, and not by a job that fails
        await resources.inline.run(partial(check_conditions, model=model, body=body))

    enqueue = partial(enqueue_sample, resources, model, body)
    asked = fingerprint(request, body.model_dump(mode="json"))
    find = partial(find_queued, resources, workspace)
    return await enqueued_once(resources, workspace, key, asked, enqueue, find)


result_routes(router, JobKind.SAMPLE)


async def answer_inline(resources: Resources, model: Model, body: NewSampleBody) -> Response:
    """The table itself, block by block; the first is drawn before the headers are sent.

    Raises:
        PoolFullError: too much inline work waits.
        ProcessDiedError: the process was killed at it.
    """
    opened = await resources.inline.open(partial(draw_sample, model=model, body=body))
    headers = {
        "Content-Disposition": attachment(f"{model.name}-synthetic.{body.format}"),
        "Gcvae-Seed": str(body.seed),
    }
    told = opened.summary.items()
    headers |= {f"Gcvae-{name.replace('_', '-').title()}": str(figure) for name, figure in told}
    return StreamingResponse(opened.blocks, headers=headers, media_type=MEDIA_TYPES[body.format])


def enqueue_sample(resources: Resources, model: Model, body: NewSampleBody) -> ResultBody:
    """A queued sample job; its id is on its way.

    Raises:
        QueueFullError: too many jobs wait.
        ModelNotReadyError: the model is not ready (any more).
    """
    require_room(resources, model.workspace)
    given_rows = None if body.given_rows is None else given_table(model, body).decode()
    spec = SampleSpec(body.rows, body.seed, body.format, body.given, body.distribution, given_rows)
    job = resources.catalog.jobs.enqueue(
        JobKind.SAMPLE,
        model_id=model.id,
        spec=spec.to_json(),
        shards=cut_rows(spec.rows, resources.settings.sample_shard_rows),
        priority=body.priority,
        estimate=estimate_sample(model, spec),
        workspace=model.workspace,
    )
    send_soon(resources.dispatcher, job)
    return result_body(job, None, content_path(job))


def check_given_rows(body: NewSampleBody) -> None:
    """Let requests pass that ask for one row around each row of known cells.

    Raises:
        RequestError: they ask for another number, or for another condition too.
    """
    if body.given_rows is not None and len(conditions_of(body)) > 1:
        message = "rows of known cells can not be joined with another condition"
        raise RequestError(Problem(message, "/given_rows", expected="one of them"))
    n_rows = body.rows if body.given_rows is None else len(body.given_rows)
    if body.rows != n_rows:
        message = f"rows is {body.rows}, and {n_rows} rows have known cells"
        raise RequestError(Problem(message, "/rows", expected=str(n_rows)))


def check_rows(rows: int, resources: Resources) -> None:
    """Let samples within the limit pass.

    Raises:
        TableLimitError: too many rows are asked.
    """
    limit = resources.settings.max_sample_rows
    if rows > limit:
        problem = Problem(f"rows is {rows}", pointer="/rows", expected=f"at most {limit}")
        raise TableLimitError(f"{rows} rows are asked", limit, "max_sample_rows", problem)
