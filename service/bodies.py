"""The bodies of requests and answers, as the OpenAPI page shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictBool, model_validator

from catalog.records import Dataset, Job, JobKind, JobStatus, Model, ModelStatus, Queue, Result
from gcvae.schema import ColumnKind
from gcvae.seeds import MAX_SEED


def _whole(value: object) -> object:
    """Numbers pass, text and booleans do not: JSON has a type for each."""
    if isinstance(value, str | bool):
        raise ValueError("Input should be a whole number, not text or a boolean")
    return value


_INTERNAL = ("table_key", "given_rows")
"""Of a job's spec: where bytes lie is nobody's business outside, and rows would be too long."""

Whole = Annotated[int, BeforeValidator(_whole)]
Name = Annotated[str, Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Seed = Annotated[Whole, Field(ge=0, le=MAX_SEED)]
TableFormat = Literal["csv", "parquet", "json", "jsonl"]

ItemT = TypeVar("ItemT")


class PageBody(BaseModel, Generic[ItemT]):
    """A page of a list, newest first."""

    items: list[ItemT]
    next_cursor: str | None = Field(description="the next page's `cursor`; null at the end")


class DatasetBody(BaseModel):
    """An uploaded table."""

    id: str
    name: str
    rows: int
    columns: int
    table_schema: dict[str, Any] = Field(alias="schema")
    sha256: str = Field(description="checksum of the bytes as they were uploaded")
    size_bytes: int
    format: str
    created_at: datetime
    warnings: list[str]


class HistogramBody(BaseModel):
    """`counts[i]` values lie between `edges[i]` and `edges[i + 1]`."""

    edges: list[float] | list[str]
    counts: list[int]


class LevelBody(BaseModel):
    """How often a level comes."""

    level: str | int | float | bool
    count: int


class ColumnProfileBody(BaseModel):
    """What one column holds. What its kind does not have is null; dates are text."""

    name: str
    kind: ColumnKind
    missing_share: float
    distinct: int
    mean: float | None = None
    standard_deviation: float | None = None
    quantiles: dict[str, float] | dict[str, str] | None = None
    histogram: HistogramBody | None = None
    levels: list[LevelBody] | None = Field(None, description="the most frequent ones")
    other_count: int | None = Field(None, description="cells of all levels that are not listed")


class ProfileBody(BaseModel):
    """What a table holds, column by column."""

    dataset_id: str
    rows: int
    columns: list[ColumnProfileBody]


class ModelBody(BaseModel):
    """A model, ready or in the making."""

    id: str
    name: str
    dataset_id: str | None = Field(description="null once the dataset is deleted")
    status: ModelStatus
    job_id: str | None
    created_at: datetime
    training: dict[str, Any]
    table_schema: dict[str, Any] | None = Field(alias="schema")
    record: dict[str, Any] | None = Field(
        description="the training record; under constraints with `constraint_acceptance`, the "
        "share of the model's rows that satisfy them; null until ready"
    )
    bound_held_out: float | None = Field(description="nats per row, higher is better")
    artifact_sha256: str | None
    artifact_bytes: int | None


class ProgressBody(BaseModel):
    """How far a job is. What is not known, or does not apply, is null."""

    phase: str | None = None
    fraction: float | None = Field(None, description="from 0 to 1")
    epoch: int | None = None
    epochs: int | None = None
    bound_train: float | None = Field(None, description="nats per row")
    bound_held_out: float | None = Field(None, description="nats per row")
    rows_per_second: float | None = None
    seconds_left: float | None = None


class EstimateBody(BaseModel):
    """What a job is likely to take, known before it starts."""

    seconds: float = Field(description="on one core of the CPU; of training the most")
    memory_bytes: int = Field(description="at the peak")
    accuracy: str


class JobBody(BaseModel):
    """What a user asked for, and how far it is."""

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
        description="null where the rows are drawn under conditions: what these cost is not known"
    )
    model_id: str | None
    dataset_id: str | None
    result_id: str | None = Field(description="the sample or the scores, once the job succeeded")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class ResultBody(BaseModel):
    """The table that a job made, or will make."""

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
    content: str | None = Field(description="where the table is, once it is there")


class TrainingBody(BaseModel):
    """How to train. Further members are settings of the preset, such as `max_steps`."""

    model_config = ConfigDict(extra="allow")

    preset: str = "default"
    seed: Seed = 0
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="auto is a GPU where the job's worker has one; with cuda the job fails where it"
        " has none, which the service can not know before",
    )


Priority = Annotated[Whole, Field(ge=-100, le=100)]
PRIORITY = "among the waiting jobs of the workspace; higher is sooner, 0 is usual"


class NewModelBody(BaseModel):
    """A model to be trained."""

    model_config = ConfigDict(extra="forbid")

    dataset_id: str
    name: Name | None = None
    priority: Priority = Field(0, description=PRIORITY)
    training: TrainingBody = Field(default_factory=TrainingBody)


Cell = str | int | float | bool | None


def _rows_or_given_rows(schema: dict[str, Any]) -> None:
    """Either says how many rows; a schema made of the fields alone would ask for `rows`."""
    schema["required"].remove("rows")
    schema["anyOf"] = [{"required": ["rows"]}, {"required": ["given_rows"]}]


class NewSampleBody(BaseModel):
    """Rows to be drawn."""

    model_config = ConfigDict(extra="forbid", json_schema_extra=_rows_or_given_rows)

    rows: Annotated[Whole, Field(ge=1)]
    seed: Seed = 0
    format: TableFormat = "csv"
    priority: Priority = Field(0, description=f"{PRIORITY}; of no effect without a job")
    given: dict[str, Any] | None = Field(
        None,
        description="by column what every row is to be: a value, a list of values, "
        '`{"min": …, "max": …}`, or null for a missing cell',
    )
    distribution: dict[str, dict[str, float]] | None = Field(
        None, description='target shares of the levels of a column: `{"sex": {"Female": 0.5, …}}`'
    )
    given_rows: list[dict[str, Cell]] | None = Field(
        None,
        min_length=1,
        description="known cells, one row drawn around each; null or absent is not known",
    )

    @model_validator(mode="before")
    @classmethod
    def _count_given_rows(cls, data: Any) -> Any:
        """Rows may be left out where given_rows says how many."""
        if isinstance(data, dict) and "rows" not in data:
            known = data.get("given_rows")
            return data | {"rows": len(known)} if isinstance(known, list) and known else data
        return data


class RowsBody(BaseModel):
    """Rows in JSON. A blank cell is null."""

    model_config = ConfigDict(extra="forbid")

    rows: list[dict[str, Cell]] = Field(min_length=1)


class NewScoresBody(RowsBody):
    """Rows to be scored, in JSON. A blank cell is null, and integrated out."""

    draws: Whole = Field(100, ge=1, description="draws of z for each row")
    seed: Seed = 0
    jitters: Whole = Field(
        0, ge=0, description="draws of the continuous extension in each of z; 0 integrates exactly"
    )
    measure: Literal["density", "rounding_cell", "pmf"] = Field(
        "density",
        description="how continuous values count: density per original unit, mass of the rounding "
        "cell, or mass of the quantile bin",
    )
    score_missingness: StrictBool = Field(
        False, description="blanks count with their probability and are not integrated out"
    )


class NewImputationBody(RowsBody):
    """Rows whose blanks are to be filled, in JSON. A blank cell is null."""

    draws: Whole = Field(1, ge=1)
    seed: Seed = 0


class NewMapBody(BaseModel):
    """Where the local dependencies are asked: at a row, or at a z."""

    model_config = ConfigDict(extra="forbid")

    row: dict[str, Cell] | None = Field(
        None, description="cells by column; one that is null or not given is integrated out"
    )
    z: list[float] | None = Field(None, description="a place in the latent space, instead")
    seed: Seed = 0


class HealthBody(BaseModel):
    """The process is alive."""

    status: Literal["alive"] = "alive"


class ReadinessBody(BaseModel):
    """Each server behind the service answers."""

    status: Literal["ready"]
    checks: dict[str, str] = Field(description="`ok`, by name")


def dataset_body(dataset: Dataset) -> DatasetBody:
    """The answer's form of a dataset."""
    return DatasetBody(
        id=dataset.id,
        name=dataset.name,
        rows=dataset.rows,
        columns=dataset.columns,
        schema=dataset.schema,
        sha256=dataset.sha256,
        size_bytes=dataset.size_bytes,
        format=dataset.format,
        created_at=dataset.created_at,
        warnings=dataset.warnings,
    )


def model_body(model: Model) -> ModelBody:
    """The answer's form of a model."""
    return ModelBody(
        id=model.id,
        name=model.name,
        dataset_id=model.dataset_id,
        status=model.status,
        job_id=model.job_id,
        created_at=model.created_at,
        training=model.training,
        schema=model.schema,
        record=model.record,
        bound_held_out=(model.record or {}).get("bound_held_out"),
        artifact_sha256=model.artifact_sha256,
        artifact_bytes=model.artifact_bytes,
    )


def job_body(job: Job) -> JobBody:
    """The answer's form of a job."""
    return JobBody(
        id=job.id,
        kind=job.kind,
        status=job.status,
        attempt=job.attempt,
        progress=ProgressBody.model_validate(job.progress),
        error=job.error,
        cancel_requested=job.cancel_requested,
        queue=job.queue,
        priority=job.priority,
        estimate=None if job.estimate is None else EstimateBody.model_validate(job.estimate),
        model_id=job.model_id,
        dataset_id=job.dataset_id,
        result_id=job.result_id,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
    )


def result_body(job: Job, result: Result | None, content: str) -> ResultBody:
    """The answer's form of a result: of the job alone while there is none."""
    return ResultBody(
        id=str(job.result_id),
        model_id=job.model_id,
        status=job.status,
        job_id=job.id,
        request={name: value for name, value in job.spec.items() if name not in _INTERNAL},
        rows=None if result is None else result.rows,
        size_bytes=None if result is None else result.size_bytes,
        sha256=None if result is None else result.sha256,
        media_type=None if result is None else result.media_type,
        summary={} if result is None else result.summary,
        created_at=job.created_at,
        content=None if result is None else content,
    )
