"""Executes the runs of schedules: imports a table, trains a model, generates and exports a sample.

Each API process looks for due runs. Each step of a run calls the same function as the corresponding
API endpoint. Between steps, the run waits for its jobs.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from http import HTTPStatus

from sqlalchemy.exc import SQLAlchemyError

from catalog.errors import LeaseLostError
from catalog.jobs.jobs import RequestContext, in_request
from catalog.records import AuditedAction, Failed, Job, JobStatus, Run, Schedule, Scoring
from catalog.schedules.runs import Step
from gcvae.errors import Problem, SchemaError
from gcvae.numerics.seeds import fresh_seed
from service.bodies import NewModelBody, TrainingBody
from service.column_types import column_types, differences
from service.connections.use import SourceBody, TargetBody
from service.database_samples import expected_rows
from service.http.problems import KINDS, kind_of, stated
from service.resources import Resources
from service.routes.connections import export_result
from service.routes.datasets import import_table
from service.routes.models import enqueue_model
from service.routes.samples import NewSampleBody, check_rows, enqueue_sample, sample_spec

_AT_ONCE = 2
_LEASE_SECONDS = 60.0
_PASSING = (429, 503)
"""HTTP statuses of temporary errors, after which a step is tried again."""

log = logging.getLogger("service")


class _FailedRunError(Exception):
    """An error of a step that would recur if the step were repeated, so that the run fails.

    Args:
        code: Name of the kind of error.
        differences: Columns of the source that have changed; None for other errors.
    """

    def __init__(self, code: str, message: str, differences: list[Problem] | None = None) -> None:
        super().__init__(message)
        self.document = Failed(code, message, tuple(map(stated, differences or ()))).to_json()
        if differences is not None:
            self.document["differences"] = [str(problem) for problem in differences]


class ScheduleRunner:
    """Starts the due runs of all workspaces and executes their steps."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._runs = resources.catalog.runs
        self._steps: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Executes due steps until cancelled; continues if the database does not respond."""
        while True:
            try:
                await asyncio.to_thread(self._runs.fire)
                free = _AT_ONCE - len(self._steps)
                for step in await asyncio.to_thread(self._runs.take, _LEASE_SECONDS, free):
                    task = asyncio.create_task(self._do(step))
                    self._steps.add(task)
                    task.add_done_callback(self._steps.discard)
            except SQLAlchemyError:
                log.warning("the records of schedules do not answer")
            except Exception:  # an error of one schedule must not stop the others
                log.exception("due schedules cannot be begun")
            await asyncio.sleep(self._resources.settings.schedule_interval_seconds)

    async def _do(self, step: Step) -> None:
        """Executes a step and records its outcome; if the database fails, the step is repeated."""
        run, keeping = step.run, asyncio.create_task(self._keep(step.run))
        try:
            with in_request(RequestContext(request_id=run.id)):
                await self._attempt(step.schedule, run)
        except LeaseLostError:
            log.warning("a step of run %s was taken by another process", run.id)
        except SQLAlchemyError as error:
            log.warning("run %s goes on later: %s", run.id, error)
        finally:
            keeping.cancel()

    async def _attempt(self, schedule: Schedule, run: Run) -> None:
        """Executes the next step of a run, or records the error that prevents it."""
        try:
            if run.dataset_id is None:
                await self._import(schedule, run)
            elif run.training_job_id is None:
                await asyncio.to_thread(self._train, schedule, run)
            elif run.sample_job_id is None:
                await asyncio.to_thread(self._sample, schedule, run)
            else:
                await self._export(schedule, run)
        except (LeaseLostError, SQLAlchemyError):
            raise
        except _FailedRunError as error:
            await asyncio.to_thread(self._runs.close, run, error.document)
        except tuple(KINDS) as error:
            problems = tuple(map(stated, getattr(error, "problems", ())))
            document = Failed(kind_of(error).name, str(error), problems).to_json()
            passes = kind_of(error).status in _PASSING
            record = self._runs.try_again if passes else self._runs.close
            await asyncio.to_thread(record, run, document)
        except Exception:
            log.exception("run %s failed", run.id)
            why = Failed("internal-error", f"the log has the reason under {run.id}")
            await asyncio.to_thread(self._runs.close, run, why.to_json())

    async def _keep(self, run: Run) -> None:
        """Extends the lease, the right of this process to execute the step, until cancelled."""
        while True:
            await asyncio.sleep(_LEASE_SECONDS / 3)
            with suppress(SQLAlchemyError):
                await asyncio.to_thread(self._runs.keep, run, _LEASE_SECONDS)

    async def _import(self, schedule: Schedule, run: Run) -> None:
        """Creates a dataset from the schedule's source, a table of a connection."""
        body = SourceBody.model_validate(schedule.work["source"])
        workspace = self._resources.catalog.workspace(schedule.workspace)
        try:
            with self._runs.recording_id(run, "dataset_id"):
                dataset = await import_table(self._resources, workspace, body)
        except SchemaError as error:
            if schedule.columns is None:
                raise
            # Differences only name columns, because the messages of the problems may quote cells.
            names = dict.fromkeys(p.column for p in error.problems if p.column is not None)
            misfit = [Problem("the column does not fit the schema", column=name) for name in names]
            changed = _FailedRunError("schema-changed", f"the source has changed: {error}", misfit)
            changed.document["problems"] = [stated(problem) for problem in error.problems]
            raise changed from None
        made = f"/v1/datasets/{dataset.id}"
        await asyncio.to_thread(self._done, schedule, run, "POST /v1/datasets", made)

    def _train(self, schedule: Schedule, run: Run) -> None:
        """Queues the training. The first run records the types of the source's columns. A later
        run raises _FailedRunError if its source has other columns or types."""
        workspace = self._resources.catalog.workspace(schedule.workspace)
        dataset = workspace.datasets.get(str(run.dataset_id))
        if "source" in schedule.work:
            found = column_types(dataset)
            if schedule.columns is None:
                self._runs.store_columns(run, found)
            elif different := differences(schedule.columns, found):
                message = "the source has changed: " + "; ".join(map(str, different))
                raise _FailedRunError("schema-changed", message, different)
        body = NewModelBody(
            dataset_id=dataset.id,
            name=schedule.name,
            training=TrainingBody.model_validate(schedule.work["training"]),
            scoring=Scoring(schedule.work["scoring"]),
        )
        with self._runs.recording_id(run, "training_job_id"):
            model = enqueue_model(self._resources, workspace, body)
        self._done(schedule, run, "POST /v1/models", f"/v1/jobs/{model.job_id}")

    def _sample(self, schedule: Schedule, run: Run) -> None:
        """Queues the generation of a sample; ends the run if the schedule has no sample."""
        workspace = self._resources.catalog.workspace(schedule.workspace)
        job = _succeeded(workspace.jobs.get(str(run.training_job_id)), "training")
        if schedule.work["sample"] is None:
            self._runs.close(run, None)
            return
        body = NewSampleBody.model_validate(schedule.work["sample"])
        model = workspace.models.get(str(job.model_id))
        spec = sample_spec(model, body, fresh_seed() if body.seed is None else body.seed)
        check_rows(spec.rows or expected_rows(model, spec), self._resources, "/sample/rows")
        with self._runs.recording_id(run, "sample_job_id"):
            made = enqueue_sample(self._resources, workspace, model, spec, body.priority)
        action = "POST /v1/models/{model_id}/samples"
        self._done(schedule, run, action, f"/v1/jobs/{made.job_id}")

    async def _export(self, schedule: Schedule, run: Run) -> None:
        """Writes the sample to a connection if the schedule has an export, and ends the run."""
        workspace = self._resources.catalog.workspace(schedule.workspace)
        job_id = str(run.sample_job_id)
        job = _succeeded(await asyncio.to_thread(workspace.jobs.get, job_id), "sample")
        if schedule.work["export"] is not None:
            body = TargetBody.model_validate(schedule.work["export"])
            if run.export_begun and body.if_exists != "replace":
                reason = "the service stopped while rows were written; check the target"
                raise _FailedRunError("export-interrupted", reason)

            def export() -> None:
                self._runs.begin_export(run)
                export_result(str(job.result_id), body, workspace, self._resources)

            await self._resources.connections.run(export)
            action = "POST /v1/samples/{result_id}/export"
            await asyncio.to_thread(self._note, schedule, run, action, None)
        await asyncio.to_thread(self._runs.close, run, None)

    def _done(self, schedule: Schedule, run: Run, action: str, made: str) -> None:
        self._note(schedule, run, action, made)
        self._runs.done(run)

    def _note(self, schedule: Schedule, run: Run, action: str, made: str | None) -> None:
        """Appends a line about a step to the audit log. `action` is the API request (method and
        route) that does the same, and `made` is the URL path of what the step has created."""
        self._resources.catalog.audit.append(
            AuditedAction(
                workspace=schedule.workspace,
                actor=schedule.id,
                action=action,
                subject=f"/v1/schedules/{schedule.id}/runs/{run.id}",
                made=made,
                status=HTTPStatus.CREATED,
                request_id=run.id,
            )
        )


def _succeeded(job: Job, what: str) -> Job:
    if job.status is not JobStatus.SUCCEEDED:
        error = job.error or {"code": job.status.value, "message": f"job {job.id} was cancelled"}
        raise _FailedRunError(error["code"], f"the {what} failed: {error['message']}")
    return job
