"""Kinds of jobs: their specification, queue and results.

The rest of a kind is found by its name: `worker/work/<kind>.py` has the function that does the
work, and `service/routes/<collection>.py` the API calls.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self


class Queue(StrEnum):
    """Resource that a job needs: `train` a GPU if there is one, `compute` none."""

    TRAIN = "train"
    COMPUTE = "compute"


@dataclass(frozen=True)
class JobSpec:
    """Specification of a job, written by the service and read by the worker.

    Attributes:
        internal: Members that users do not see, such as store keys and long lists of rows.
        is_of_model: Whether the result belongs to its model and is deleted with it: a new result
            replaces the earlier one, retention does not apply, and deleting the model does not wait
            for the job.
        tells_scores: Whether the result contains scores of rows, which a model may stop to give.
    """

    internal: ClassVar[tuple[str, ...]] = ()
    is_of_model: ClassVar[bool] = False
    tells_scores: ClassVar[bool] = False

    def to_json(self) -> dict[str, Any]:
        """Returns the job's `spec`."""
        return asdict(self)

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Self:
        """Restores the specification from a job's `spec`."""
        return cls(**spec)


@dataclass(frozen=True)
class ShardSpec(JobSpec):
    """One shard of a job: rows from `first_row` up to, but excluding, `end_row`.

    The specification of the work is in the job that the shard belongs to.
    """

    number: int
    shards: int
    first_row: int
    end_row: int

    @property
    def rows(self) -> range:
        """The rows of the shard."""
        return range(self.first_row, self.end_row)


@dataclass(frozen=True)
class TrainSpec(JobSpec):
    """Training of a model. `training` has preset, seed, device and settings."""

    training: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """Settings that override those of the preset."""
        others = ("preset", "seed", "device")
        return {name: value for name, value in self.training.items() if name not in others}

    @property
    def holds_back(self) -> bool:
        """Whether a share of the rows is set aside for the model's report."""
        return bool(self.training.get("report_share"))

    @property
    def is_private(self) -> bool:
        """Whether the model is trained with differential privacy."""
        return bool(self.training.get("differential_privacy"))


@dataclass(frozen=True)
class SampleSpec(JobSpec):
    """Generation of rows. `format` is csv, parquet, json or jsonl.

    Attributes:
        rows: Number of rows; None for a database.
        given: Condition on all rows, by column.
        distribution: Target shares of one column's levels.
        given_rows: CSV table of known cells, one row for each generated row.
        escape_formulas: As in `gcvae.files.table_stream`.
        scale, parents: For a database, as in `DatabaseSynthesizer.sample`.
        table: Table of a database that is returned; None for all.
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
        """Returns the job's `spec`, without members for databases if it is for one table."""
        left_out = ("scale", "parents", "table")
        found = super().to_json().items()
        return {name: v for name, v in found if v is not None or name not in left_out}

    @property
    def is_conditional(self) -> bool:
        """Whether rows are generated under conditions."""
        return (self.given, self.distribution, self.given_rows) != (None, None, None)


@dataclass(frozen=True)
class TableSpec(JobSpec):
    """Work on a stored table.

    Attributes:
        table_key: Store key of the table: a dataset's, or under the job's `input_prefix`.
        table_sha256: Checksum of its bytes.
        table_format: Format, as a dataset's `format`.
        table_encoding: Text encoding, as a dataset's `encoding`.
    """

    internal = ("table_key",)

    table_key: str
    table_sha256: str
    table_format: str
    table_encoding: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ScoreSpec(TableSpec):
    """Scores of a stored table.

    Attributes:
        draws: Samples of z for each row; None for an adaptive number.
        format: Format of the scores: csv or json.
        tolerance, jitters, measure, score_missingness: As in
            `gcvae.scoring.score_options.ScoreOptions`.
    """

    tells_scores = True

    seed: int
    format: str
    draws: int | None = None
    jitters: int = 0
    measure: str = "density"
    score_missingness: bool = False
    tolerance: float | None = None


@dataclass(frozen=True)
class ImputeSpec(TableSpec):
    """Imputation of a stored table.

    Attributes:
        draws: Number of imputations of each row.
        format: Format of the completed table: csv, parquet, json or jsonl.
        columns, keep_missing: As in `gcvae.sampling.filled_columns`.
    """

    draws: int
    seed: int
    format: str
    columns: list[str] | None = None
    keep_missing: list[str] | None = None


@dataclass(frozen=True)
class EncodeSpec(TableSpec):
    """Encodings of a stored table. `format` is csv or json."""

    format: str


@dataclass(frozen=True)
class ReportSpec(JobSpec):
    """Report on a model.

    Attributes:
        dataset_id: The model's training table, or a similar one.
        holdout_dataset_id: Rows that training did not see, in place of those set aside.
        columns: Columns to predict; None for all with enough rows.
    """

    is_of_model = True

    dataset_id: str
    seed: int
    holdout_dataset_id: str | None = None
    columns: list[str] | None = None


SCORE_DRAWS = 8
"""Draws of the random effects of each household of a database, where nothing is said."""


class JobKind(StrEnum):
    """What a job does."""

    queue: Queue
    """Queue of the jobs."""
    collection: str
    """Name of the results in paths of the REST API."""
    id_prefix: str
    """Prefix of the results' ids."""
    spec: type[JobSpec]
    """Class of the specification."""

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
