"""Kinds of jobs: the specification, queue and results of each.

Two other modules belong to each kind. `worker/work/sample.py`, for example, contains the function
`sample`, which does the work of the kind `sample`. `service/routes/samples.py` contains the API
calls, and is named after the kind's attribute `collection`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self


class Queue(StrEnum):
    """Queue of jobs, by the resource that they need: `train` uses a GPU if there is one, `compute`
    the CPU."""

    TRAIN = "train"
    COMPUTE = "compute"


@dataclass(frozen=True)
class JobSpec:
    """Base class of job specifications, which the service writes and the worker reads.

    Attributes:
        internal: Names of fields that are hidden from users, such as store keys and long lists of
            rows.
        is_of_model: Whether the result belongs to the model, as a report does. A model keeps only
            the newest result of each such job kind, whatever its age. When the model is deleted,
            the result is deleted, too, and a job that is still making one is cancelled.
        contains_scores: Whether the result contains scores of rows; a model can be configured not
            to return scores.
        is_report: Whether webhooks receive a `report.ready` event when the job succeeds.
    """

    internal: ClassVar[tuple[str, ...]] = ()
    is_of_model: ClassVar[bool] = False
    contains_scores: ClassVar[bool] = False
    is_report: ClassVar[bool] = False

    def to_json(self) -> dict[str, Any]:
        """Returns the specification as a JSON object, as stored in a job's `spec`."""
        return asdict(self)

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Self:
        """Restores a specification from the JSON object in a job's `spec`."""
        return cls(**spec)


@dataclass(frozen=True)
class ShardSpec(JobSpec):
    """Specification of one shard of a job: rows from `first_row` up to, but excluding, `end_row`.

    The work to do on these rows is specified in the job to which the shard belongs.

    Attributes:
        number: Index of the shard, from 0.
        shards: Number of shards of the job.
    """

    number: int
    shards: int
    first_row: int
    end_row: int

    @property
    def rows(self) -> range:
        """Range of the row numbers in this shard."""
        return range(self.first_row, self.end_row)


@dataclass(frozen=True)
class TrainSpec(JobSpec):
    """Specification of a training job.

    Attributes:
        training: `preset`, `seed`, `device`, and any settings that override those of the preset.
    """

    training: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """Training settings that override those of the preset, by name."""
        others = ("preset", "seed", "device")
        return {name: value for name, value in self.training.items() if name not in others}

    @property
    def has_holdout(self) -> bool:
        """Whether training sets a share of the rows aside as the holdout of a report."""
        return bool(self.training.get("report_share"))

    @property
    def is_private(self) -> bool:
        """Whether the model is trained with differential privacy."""
        return bool(self.training.get("differential_privacy"))


@dataclass(frozen=True)
class SampleSpec(JobSpec):
    """Specification of a job that generates rows.

    Attributes:
        rows: Number of rows; None for a database.
        format: File format: csv, parquet, json or jsonl.
        given: Condition that every generated row must satisfy, by column name; None for none.
        distribution: Target shares of the levels (categories) of one column; None for none.
        given_rows: CSV table of known cells, one line for each generated row; None for none.
        escape_formulas: Whether to write ' before CSV strings that a spreadsheet would evaluate.
        scale: For a database, the number of rows of each table without a parent table, as a
            multiple of the number of rows of the real table; None for 1.
        parents: Number of rows of each table without a parent table, overriding `scale`; None to
            use `scale`.
        table: Name of the only table of a database to return; None for all tables.
    """

    internal = ("given_rows",)

    rows: int | None
    seed: int
    format: str
    given: dict[str, Any] | None = None
    distribution: dict[str, Any] | None = None
    given_rows: str | None = None
    escape_formulas: bool = False
    scale: float | None = None
    parents: int | None = None
    table: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Returns the specification as a JSON object, without `scale`, `parents` and `table` if
        they are None."""
        left_out = ("scale", "parents", "table")
        found = super().to_json().items()
        return {name: v for name, v in found if v is not None or name not in left_out}

    @property
    def is_conditional(self) -> bool:
        """Whether the generated rows are restricted by `given`, `distribution` or `given_rows`."""
        return (self.given, self.distribution, self.given_rows) != (None, None, None)


@dataclass(frozen=True)
class TableSpec(JobSpec):
    """Base class of specifications of jobs that read a stored table.

    Attributes:
        table_key: Store key of the table, which is a dataset or was uploaded as the job's input.
        table_sha256: Checksum of the table's bytes.
        table_format: File format, such as csv, parquet, or zip for a database.
        table_encoding: Python's name of a text file's encoding; None for UTF-8 and for Parquet.
    """

    internal = ("table_key",)

    table_key: str
    table_sha256: str
    table_format: str
    table_encoding: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ScoreSpec(TableSpec):
    """Specification of a job that computes a log-likelihood score for each row of a stored table.

    Attributes:
        format: Format of the scores: csv or json.
        draws: Number of latent vectors sampled for each row; None to continue until `tolerance` is
            reached.
        measure: What a number contributes to the score. `density` is its probability density,
            `rounding_cell` is the probability of all values that are rounded to it, and `pmf` is
            the probability of the bin between quantiles that contains it.
        score_missingness: Whether a missing cell contributes its probability of being missing.
        tolerance: Target standard error of a score, in nats; None for the default.
    """

    contains_scores = True

    seed: int
    format: str
    draws: int | None = None
    measure: str = "density"
    score_missingness: bool = False
    tolerance: float | None = None


@dataclass(frozen=True)
class ImputeSpec(TableSpec):
    """Specification of a job that fills the missing cells of a stored table.

    Attributes:
        draws: Number of imputations of each row.
        format: Format of the completed table: csv, parquet, json or jsonl.
        columns: Columns to fill; None for all except those in `keep_missing`.
        keep_missing: Columns whose missing cells are not filled, because absence has a meaning;
            None for those with `missing.is_value` in the schema.
    """

    draws: int
    seed: int
    format: str
    columns: list[str] | None = None
    keep_missing: list[str] | None = None


@dataclass(frozen=True)
class EncodeSpec(TableSpec):
    """Specification of a job that computes the latent vector of each row of a stored table.

    Attributes:
        format: Format of the encodings: csv or json.
    """

    format: str


@dataclass(frozen=True)
class ReportSpec(JobSpec):
    """Specification of a job that evaluates a model.

    Attributes:
        dataset_id: Dataset with the real rows: the model's training table, or a similar one.
        holdout_dataset_id: Dataset of rows that were not used in training; None to use the rows
            that training set aside, if any.
        columns: Columns that the report predicts to measure utility; None for all with enough rows.
    """

    is_of_model = True
    is_report = True

    dataset_id: str
    seed: int
    holdout_dataset_id: str | None = None
    columns: list[str] | None = None


SCORE_DRAWS = 8
"""Default number of sampled random effects for each scored household of a database."""


class JobKind(StrEnum):
    """Kind of a job, such as `sample`.

    The worker's module for the kind, and the module's main function, are named after it.
    """

    queue: Queue
    """Queue in which jobs of this kind wait."""
    collection: str
    """Name of the results in paths of the REST API."""
    id_prefix: str
    """Prefix of the ids of results."""
    spec: type[JobSpec]
    """Class of the job's specification."""

    def __new__(
        cls, name: str, queue: Queue, collection: str, id_prefix: str, spec: type[JobSpec]
    ) -> Self:
        kind = str.__new__(cls, name)
        kind._value_ = name
        kind.queue, kind.collection, kind.id_prefix, kind.spec = queue, collection, id_prefix, spec
        return kind

    TRAIN = "train", Queue.TRAIN, "models", "mdl", TrainSpec
    SAMPLE = "sample", Queue.COMPUTE, "samples", "smp", SampleSpec
    SCORE = "score", Queue.COMPUTE, "scores", "scr", ScoreSpec
    IMPUTE = "impute", Queue.COMPUTE, "imputations", "imp", ImputeSpec
    ENCODE = "encode", Queue.COMPUTE, "encodings", "enc", EncodeSpec
    REPORT = "report", Queue.COMPUTE, "reports", "rpt", ReportSpec


KINDS_OF_MODEL = [kind for kind in JobKind if kind.spec.is_of_model]
"""Kinds whose results belong to the model (`JobSpec.is_of_model`)."""
