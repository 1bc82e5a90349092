"""Pydantic models of request and response bodies, from which the OpenAPI document is generated."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from catalog.job_kinds import JobKind, Queue
from catalog.records import DataKind, Dataset, Job, JobStatus, Model, ModelStatus, Result, Scoring
from gcvae.errors import Problem
from gcvae.numerics.seeds import MAX_SEED
from gcvae.schema.kinds import ColumnKind
from gcvae.schema.suggestions import unknown_name
from gcvae.training.settings import meant_setting

EXPLAINED = "explained"
"""Type of pydantic errors whose message `RequestBody` has replaced by a clearer one."""
_NO_OBJECT = ("model_type", "model_attributes_type", "dict_type")


def _whole(value: object) -> object:
    """Refuses text and booleans, which pydantic would convert to numbers."""
    if isinstance(value, str | bool):
        raise ValueError("Input should be a whole number, not text or a boolean")
    return value


Whole = Annotated[int, BeforeValidator(_whole)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Seed = Annotated[Whole, Field(ge=0, le=MAX_SEED)]
TableFormat = Literal["csv", "parquet", "json", "jsonl"]

ItemT = TypeVar("ItemT")


class RequestBody(BaseModel):
    """Base class of request bodies. It refuses unknown members and suggests similar known names.

    Attributes:
        needed: Description of the expected value, for errors about a missing member; None to show
            the member's example from the OpenAPI document instead.
    """

    needed: ClassVar[str | None] = None
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _explain(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(data)
        except ValidationError as error:
            found = [cls._explained(InitErrorDetails(**item)) for item in error.errors()]  # type: ignore[typeddict-unknown-key]
            raise ValidationError.from_exception_data(cls.__name__, found) from None

    @classmethod
    def _explained(cls, found: InitErrorDetails) -> InitErrorDetails:
        """Returns a pydantic error with a clearer message if a member is unknown or missing, a
        value is not an object, or a list is too short. Other errors are returned unchanged."""
        kind, (*_, name) = found["type"], ("", *found["loc"])
        if kind == EXPLAINED:  # a nested body has replaced the message
            return found | {"type": PydanticCustomError(EXPLAINED, "{message}", found["ctx"])}
        field = cls.model_fields.get(str(name)) if len(found["loc"]) == 1 else None
        examples = (field and field.examples) or []
        expected = next((f"an object such as {json.dumps(one)}" for one in examples), None)
        if kind == "extra_forbidden":
            problem = cls.unknown_member(str(name))
        elif kind == "missing":
            problem = Problem("the member is missing", expected=cls.needed or expected)
        elif kind in _NO_OBJECT:
            problem = Problem("the value is not a JSON object", expected=expected)
        elif kind == "too_short":
            least, given = found["ctx"]["min_length"], found["ctx"]["actual_length"]
            problem = Problem(f"the list has {given} items", expected=f"at least {least}")
        else:
            return found
        details = {name: getattr(problem, name) for name in ("message", "suggestion", "expected")}
        return found | {"type": PydanticCustomError(EXPLAINED, "{message}", details)}

    @classmethod
    def unknown_member(cls, name: str) -> Problem:
        """Returns the problem to report if the body has the unknown member `name`."""
        return unknown_name(f"unknown member {name!r}", name, cls.model_fields)


class PageBody(BaseModel, Generic[ItemT]):
    """One page of a list of records."""

    items: list[ItemT]
    next_cursor: str | None = Field(description="the next page's `cursor`; null at the end")


class PrivacyCapBody(RequestBody):
    """A cap on the joint privacy loss (epsilon at delta) of all models of a table."""

    epsilon: float = Field(gt=0, le=1e6)
    delta: float = Field(gt=0, lt=1)


class NewPrivacyCapBody(RequestBody):
    """A new cap on the joint privacy loss of a dataset's models; null removes the cap."""

    cap: PrivacyCapBody | None


class EffectiveCapBody(BaseModel):
    """The privacy cap in force: a limit on the joint epsilon of the models at `delta`."""

    epsilon: float
    delta: float


class PrivacyBody(BaseModel):
    """The privacy budget (differential privacy) that all models of a table have spent together."""

    rho_spent: float = Field(0.0, description="spent rho, as in zero-concentrated privacy (zCDP)")
    rho_set_aside: float = Field(0.0, description="rho reserved by trainings that have not started")
    epsilon: float | None = Field(
        0.0,
        description="joint epsilon of all spent budget at `delta`; null if thresholds used all of "
        "delta or if there are models without differential privacy, which have no bound",
    )
    delta: float | None = None
    cap: EffectiveCapBody | None = Field(
        None,
        description=(
            "the strictest cap of all datasets with the same content; it applies to each of them"
        ),
    )
    cap_of: str | None = Field(None, description="the dataset that `cap` was put on")
    models_without_privacy: int = Field(
        0, description="models of the table without differential privacy, including deleted ones"
    )
    note: str | None = Field(None, description="limits of these figures")


class SpendingBody(BaseModel):
    """The privacy budget that one training has spent or reserved."""

    model_id: str
    job_id: str
    epsilon: float
    delta: float
    rho: float
    begun_at: datetime | None = Field(description="null while the budget is only reserved")
    created_at: datetime


class PrivacyLedgerBody(PrivacyBody):
    """All privacy budget spent or reserved for a table, also by deleted or failed models."""

    dataset_id: str
    spendings: list[SpendingBody]


class LinkedTableBody(BaseModel):
    """One table of a database."""

    name: str
    format: str
    rows: int
    columns: int
    table_schema: dict[str, Any] = Field(
        alias="schema", description="columns; keys are in the schema of the database"
    )


class DatasetBody(BaseModel):
    """An uploaded table, or an uploaded database of several tables."""

    id: str
    name: str
    kind: DataKind
    rows: int = Field(description="number of rows; for a database the sum over its tables")
    columns: int
    tables: list[LinkedTableBody] | None = Field(
        description="tables of a database; null for a single table"
    )
    table_schema: dict[str, Any] = Field(
        alias="schema",
        description="for a table its columns; for a database `tables`, with their `primary_key`, "
        "`foreign_keys` and `order`, and `invalid_references`, the treatment of rows whose foreign "
        "key does not exist",
    )
    given_schema: dict[str, Any] = Field(
        description=(
            "the members of `schema` that users have set; the others are inferred from the table"
        )
    )
    sha256: str = Field(
        description="checksum of the upload; of several files that of a ZIP file of them"
    )
    size_bytes: int
    format: str
    encoding: str | None = Field(description="text encoding; null for UTF-8, and for Parquet")
    source: dict[str, Any] | None = Field(
        description="connection, and table, query or key that the dataset was made of; else null"
    )
    created_at: datetime
    warnings: list[str]
    privacy: PrivacyBody | None = Field(
        None,
        description=(
            "budget spent by its private models; null without such models and without a cap"
        ),
    )


class ChangeBody(BaseModel):
    """The old and new value of a schema member; null if the schema does not contain the member.

    Of a list, such as levels (categories), only the first five elements and the number of further
    ones are shown.
    """

    before: Any = None
    after: Any = None


class RuleChangesBody(BaseModel):
    """Rules (expressions over columns) that a request added to the schema or removed from it."""

    added: list[dict[str, Any]]
    lost: list[dict[str, Any]]


class SchemaChangesBody(BaseModel):
    """Differences between the schema before and after a request."""

    columns: dict[str, dict[str, ChangeBody]] = Field(
        description="changed members by column; of a newly dropped column only `drop`"
    )
    rules: RuleChangesBody
    summary: list[str] = Field(description="the same in words, a line for each column")


class ChangedDatasetBody(DatasetBody):
    """A dataset after a change of its schema, with a list of the changes."""

    changes: SchemaChangesBody


class HistogramBody(BaseModel):
    """A histogram: `counts[i]` is the number of values between `edges[i]` and `edges[i + 1]`."""

    edges: list[float] | list[str]
    counts: list[int]


class LevelBody(BaseModel):
    """A level (category) of a column and the number of cells with this level."""

    level: str | int | float | bool
    count: int


class ColumnProfileBody(BaseModel):
    """Summary of one column of a table; dates are text. Members that do not apply to the column's
    kind, or to a column that is dropped, are null."""

    name: str
    drop: bool = Field(False, description="excluded from the model and not profiled")
    kind: ColumnKind | None = None
    missing_share: float | None = None
    distinct: int | None = None
    mean: float | None = None
    standard_deviation: float | None = None
    quantiles: dict[str, float] | dict[str, str] | None = None
    histogram: HistogramBody | None = None
    levels: list[LevelBody] | None = Field(None, description="the most frequent ones")
    other_count: int | None = Field(None, description="cells with other levels")


class RuleExceptionBody(BaseModel):
    """A row of the uploaded table that violates a rule."""

    row: int = Field(description="number of the row in the table, counted from 0")
    line: int | None = Field(description="line in the file; null if the format has no lines")


class RuleBody(BaseModel):
    """A rule (an expression over columns) that most rows of a table satisfy."""

    rule: dict[str, Any] = Field(description="the rule's members in the schema")
    columns: list[str] = Field(description="columns of the rule, the dependent column first")
    formula: str = Field(description="the rule in words")
    rows: int = Field(description="rows that the rule applies to")
    kept: int = Field(description="rows that satisfy the rule")
    exceptions: list[RuleExceptionBody] = Field(description="first ten rows that violate the rule")


class ProfileBody(BaseModel):
    """A summary of each column of a table, and the rules that most of its rows satisfy."""

    dataset_id: str
    rows: int
    columns: list[ColumnProfileBody]
    rules: list[RuleBody]


class RulesBody(BaseModel):
    """The rules (expressions over columns) that most rows of a table satisfy."""

    dataset_id: str
    rules: list[RuleBody]


class FirstRowsBody(BaseModel):
    """The first rows of an uploaded table."""

    dataset_id: str
    columns: list[str]
    rows: list[list[str | None]] = Field(
        description=(
            "cells as text, in the order of `columns`; null for missing cells of Parquet files"
        )
    )


SCORING = "scoring of rows: full scores (full), only whether each row is rare (flag), or none (off)"


class ReportSummaryBody(BaseModel):
    """Summary of a model's quality report."""

    id: str
    job_id: str
    created_at: datetime
    decisions: dict[str, str] = Field(
        {},
        description="verdicts on sharing the `rows` and the `model`: green, amber, red or "
        "not_measured; empty for reports of older versions",
    )
    verdicts: dict[str, str] = Field(
        description="verdicts of fidelity, utility, likelihood and privacy: green, amber, red or "
        "not_measured"
    )
    sentences: dict[str, str] = Field(description="the finding of each part, in a sentence")


class ModelBody(BaseModel):
    """A model, which is ready, in training, or failed."""

    id: str
    name: str
    kind: DataKind
    dataset_id: str | None = Field(
        description="null if the dataset was deleted or the model was imported"
    )
    status: ModelStatus
    job_id: str | None = Field(description="training job; null for imported models")
    created_at: datetime
    training: dict[str, Any]
    table_schema: dict[str, Any] | None = Field(alias="schema")
    record: dict[str, Any] | None = Field(
        description="training record; with hard rules it contains `hard_rule_acceptance`, the "
        "share of proposed rows that satisfy them; for a database, the `plan` by which each of "
        "its `tables` is generated; null until the model is ready"
    )
    bound_held_out: float | None = Field(
        description="held-out log-likelihood: a lower bound, in nats per row; higher is better"
    )
    report: ReportSummaryBody | None = Field(
        description="summary of the newest report; null without one"
    )
    artifact_sha256: str | None
    artifact_bytes: int | None
    scoring: Scoring = Field(description=SCORING)


class ProgressBody(BaseModel):
    """Progress of a job. Members that are unknown or do not apply are null."""

    phase: str | None = None
    table: str | None = Field(None, description="of a database: the table in training")
    fraction: float | None = Field(
        None,
        description="completed share of the job over all phases and attempts; it never decreases "
        "and is 1 only once the result is published",
    )
    epoch: int | None = None
    epochs: int | None = None
    bound_train: float | None = Field(
        None, description="log-likelihood of training rows (lower bound), nats per row"
    )
    bound_held_out: float | None = Field(
        None, description="log-likelihood of held-out rows (lower bound), nats per row"
    )
    rows_per_second: float | None = None
    seconds_left: float | None = Field(
        None,
        description="estimate for the whole job; training may stop earlier",
    )


class EstimateBody(BaseModel):
    """Estimated time and memory of a job, made before it starts."""

    seconds: float = Field(
        description="on one CPU core; right within a factor of three, unless training stops earlier"
    )
    memory_bytes: int = Field(description="peak memory")


class JobBody(BaseModel):
    """A job and its progress."""

    id: str
    kind: JobKind
    status: JobStatus
    attempt: int
    progress: ProgressBody
    error: dict[str, Any] | None
    cancel_requested: bool
    queue: Queue
    priority: int
    estimate: EstimateBody | None = Field(
        description="null if the cost cannot be estimated: generation under conditions, "
        "imputation, encoding"
    )
    model_id: str | None
    model_name: str | None = Field(description="null if the model was deleted")
    dataset_id: str | None
    dataset_name: str | None = Field(description="for trainings and reports")
    result_id: str | None = Field(description="the result, once the job has succeeded")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ResultBody(BaseModel):
    """The result of a job, or, before it exists, the state of the job that makes it."""

    id: str
    model_id: str | None
    status: JobStatus
    job_id: str
    request: dict[str, Any]
    rows: int | None
    size_bytes: int | None
    sha256: str | None
    media_type: str | None
    summary: dict[str, Any]
    created_at: datetime
    content: str | None = Field(description="path of the result, once it exists")


class TrainingBody(BaseModel):
    """Training options. Additional members override settings of the preset, such as `max_steps`."""

    model_config = ConfigDict(extra="allow")

    preset: str = "default"
    seed: Seed = 0
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="auto uses a GPU if the worker of the job has one; cuda fails if it has none",
    )
    report_share: float | None = Field(
        None,
        description="share of rows (at most 20,000) that is held out of training for the report; "
        "default: 0.1 for tables of 1,000 rows or more, else 0, which makes no report",
    )


Priority = Annotated[Whole, Field(ge=-100, le=100)]
PRIORITY = "order among the waiting jobs of the workspace; higher is earlier, 0 by default"


class NewModelBody(RequestBody):
    """A request to train a model on a dataset."""

    dataset_id: str
    name: Name | None = None
    priority: Priority = Field(0, description=PRIORITY)
    training: TrainingBody = Field(default_factory=TrainingBody, examples=[{"preset": "fast"}])
    scoring: Scoring = Field(Scoring.FULL, description=SCORING)

    @classmethod
    def unknown_member(cls, name: str) -> Problem:
        """Returns the problem to report if the body has the unknown member `name`.

        If the name is a training setting, the problem says that it belongs in `training`.
        """
        problem = super().unknown_member(name)
        setting = meant_setting(name)
        if setting is None or (problem.suggestion is not None and setting != name):
            return problem
        message = "a training setting belongs in `training`"
        return Problem(message, expected=f'"training": {{"{setting}": …}}')


class ChangedModelBody(RequestBody):
    """A new name of a model, or a restriction of the scores it gives; omitted members are kept."""

    scoring: Scoring | None = Field(
        None, description=f"{SCORING}; it can only become more restrictive"
    )
    name: Name | None = None


class ChangedNameBody(RequestBody):
    """A request to change the name of a dataset."""

    name: Name


Cell = str | int | float | bool | None


class RowsBody(RequestBody):
    """Rows as JSON objects by column name. A missing cell is null."""

    rows: list[dict[str, Cell]] = Field(min_length=1)


class NewMapBody(RequestBody):
    """Either the row or the latent vector for which a local dependency map is computed."""

    row: dict[str, Cell] | None = Field(
        None, description="known cells by column; missing ones are integrated out"
    )
    z: list[float] | None = Field(None, description="a latent vector, instead of a row")
    seed: Seed = 0


class HealthBody(BaseModel):
    """Response of the liveness check: the process is running."""

    status: Literal["alive"] = "alive"


class ReadinessBody(BaseModel):
    """Response of the readiness check if all servers that the service depends on respond."""

    status: Literal["ready"]
    checks: dict[str, str] = Field(description="`ok`, by name")


def dataset_body(dataset: Dataset, privacy: PrivacyBody | None = None) -> DatasetBody:
    """Returns the response body of a dataset.

    Args:
        privacy: Spent privacy budget; None if nothing was spent and there is no cap.
    """
    return DatasetBody.model_validate(vars(dataset) | {"privacy": privacy})


def model_body(model: Model, report: Result | None = None) -> ModelBody:
    """Returns the response body of a model.

    If the scoring of the model is restricted, the scores of held-out rows are left out.

    Args:
        report: The model's newest quality report, which is summarised; None if there is none.
    """
    record = model.record
    bound = (record or {}).get("bound_held_out")
    if record is not None and model.scoring != Scoring.FULL:
        record = {name: value for name, value in record.items() if name != "held_out_scores"}
    found = None if report is None else {**vars(report), **report.summary}
    return ModelBody.model_validate(
        {**vars(model), "record": record, "bound_held_out": bound, "report": found}
    )


def job_body(job: Job) -> JobBody:
    """Returns the response body that describes a job and its progress."""
    return JobBody.model_validate(vars(job))


def result_body(job: Job, result: Result | None, content: str) -> ResultBody:
    """Returns the response body of a job's result.

    Args:
        result: The result; None if the job has not finished.
        content: URL path from which the result can be downloaded.
    """
    internal = job.kind.spec.internal
    found = {} if result is None else vars(result)
    return ResultBody(
        id=str(job.result_id),
        model_id=job.model_id,
        status=job.status,
        job_id=job.id,
        request={name: value for name, value in job.spec.items() if name not in internal},
        rows=found.get("rows"),
        size_bytes=found.get("size_bytes"),
        sha256=found.get("sha256"),
        media_type=found.get("media_type"),
        summary=found.get("summary", {}),
        created_at=job.created_at,
        content=None if result is None else content,
    )
