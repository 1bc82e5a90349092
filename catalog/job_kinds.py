"""The kinds of jobs: what each is asked, where it waits, and what it makes.

The rest of a kind is found by its name: `worker/work/<kind>.py` has the function that does the
work, and `service/routes/<collection>.py` the calls that ask for it and for what it made.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, ClassVar, Self


class Queue(StrEnum):
    """What a job needs: `train` a GPU where there is one, `compute` none."""

    TRAIN = "train"
    COMPUTE = "compute"


@dataclass(frozen=True)
class JobSpec:
    """What a job is asked: the service writes it, the worker reads it.

    Attributes:
        internal: the members that users do not see: where bytes lie is nobody's business outside,
            and rows would be too long.
        is_of_model: what the job makes says something of its model and goes with it: the newest
            takes the place of the one before, age deletes none, and a model that is deleted does
            not wait for the job.
        tells_scores: what the job makes are scores of rows, which a model may cease to give.
    """

    internal: ClassVar[tuple[str, ...]] = ()
    is_of_model: ClassVar[bool] = False
    tells_scores: ClassVar[bool] = False

    def to_json(self) -> dict[str, Any]:
        """The job's `spec`."""
        return asdict(self)

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Self:
        """The spec that `to_json` wrote."""
        return cls(**spec)


@dataclass(frozen=True)
class ShardSpec(JobSpec):
    """Shard `number` of so many: rows from `first_row` up to, but without, `end_row`.

    What is asked for these rows stands in the job that the shard belongs to.
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
    """A model to be trained. `training` has preset, seed and device, and settings beside them."""

    training: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that take the place of the preset's own."""
        others = ("preset", "seed", "device")
        return {name: value for name, value in self.training.items() if name not in others}

    @property
    def holds_back(self) -> bool:
        """True where a share of the rows is held back for the model's report."""
        return bool(self.training.get("report_share"))

    @property
    def is_private(self) -> bool:
        """True where the model stands under differential privacy."""
        return bool(self.training.get("differential_privacy"))


@dataclass(frozen=True)
class SampleSpec(JobSpec):
    """Rows to be drawn. `format` is csv, parquet, json or jsonl.

    Attributes:
        rows: None of a database.
        given: what every row is to be, by column.
        distribution: target shares of one column's levels.
        given_rows: a CSV table of known cells, one row for each row to be drawn.
        escape_formulas: as in `gcvae.files.table_stream`.
        scale, parents: of a database, as `DatabaseSynthesizer.sample` has them.
        table: the one of a database that is kept; None for all.
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
        """The job's `spec`; of one table without what is of databases."""
        left_out = ("scale", "parents", "table")
        found = super().to_json().items()
        return {name: v for name, v in found if v is not None or name not in left_out}

    @property
    def is_conditional(self) -> bool:
        """True where rows are drawn under conditions."""
        return (self.given, self.distribution, self.given_rows) != (None, None, None)


@dataclass(frozen=True)
class TableSpec(JobSpec):
    """A stored table that something is made of.

    Attributes:
        table_key: where the table lies in the store: a dataset's key, or under the job's
            `input_prefix`.
        table_sha256: checksum of the bytes there.
        table_format: format of the table, as a dataset's `format`.
        table_encoding: encoding of its text, as a dataset's `encoding`.
    """

    internal = ("table_key",)

    table_key: str
    table_sha256: str
    table_format: str
    table_encoding: str | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ScoreSpec(TableSpec):
    """A stored table to be scored.

    Attributes:
        draws: draws of the latent z for each row; None leaves them to a tolerance.
        format: format of the scores: csv or json.
        tolerance, jitters, measure, score_missingness: as in
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
    """A stored table whose blanks are to be filled.

    Attributes:
        draws: completions of each row.
        format: format of the completed table: csv, parquet, json or jsonl.
        columns, keep_blanks: as in `gcvae.sampling.filled_columns`.
    """

    draws: int
    seed: int
    format: str
    columns: list[str] | None = None
    keep_blanks: list[str] | None = None


@dataclass(frozen=True)
class EncodeSpec(TableSpec):
    """A stored table to be encoded. `format` is that of the encodings: csv or json."""

    format: str


@dataclass(frozen=True)
class ReportSpec(JobSpec):
    """A model to be judged beside real rows.

    Attributes:
        dataset_id: the table that the model was trained on, or one like it.
        holdout_dataset_id: a table of rows that nothing in training saw, in place of those that
            training held back.
        columns: those that are predicted; None is every one that has the rows for it.
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
    """The queue that the jobs wait in."""
    collection: str
    """What the jobs make, as paths of the REST API call it."""
    id_prefix: str
    """What the ids of that begin with."""
    spec: type[JobSpec]
    """What a job is asked."""

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
