"""What jobs on a model are asked: the service writes it, the worker reads it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Self

from catalog.records import Document


@dataclass(frozen=True)
class JobSpec:
    """What every job is asked."""

    def to_json(self) -> Document:
        """The job's `spec`."""
        return asdict(self)

    @classmethod
    def from_json(cls, spec: Document) -> Self:
        """The same, back."""
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
class SampleSpec(JobSpec):
    """Rows to be drawn. `format` is csv, parquet, json or jsonl.

    Attributes:
        given: Of every row.
        distribution: Target shares of one column's levels.
        given_rows: A CSV table of known cells, one row for each row to be drawn.
    """

    rows: int
    seed: int
    format: str
    given: Document | None = None
    distribution: Document | None = None
    given_rows: str | None = None


@dataclass(frozen=True)
class TableSpec(JobSpec):
    """A stored table that something is made of.

    Attributes:
        table_key: where the table lies in the store: a dataset's key, or under the job's
            `input_prefix`.
        table_sha256: of the bytes there.
        table_format: the table's, as a dataset's `format`.
    """

    table_key: str
    table_sha256: str
    table_format: str


@dataclass(frozen=True)
class ScoreSpec(TableSpec):
    """A stored table to be scored.

    Attributes:
        draws: of the latent z for each row.
        format: of the scores: csv or json.
        jitters, measure, score_missingness: as in `gcvae.score_options.ScoreOptions`.
    """

    draws: int
    seed: int
    format: str
    jitters: int = 0
    measure: str = "density"
    score_missingness: bool = False


@dataclass(frozen=True)
class ImputeSpec(TableSpec):
    """A stored table whose blanks are to be filled.

    Attributes:
        draws: completions of each row.
        format: of the completed table: csv, parquet, json or jsonl.
    """

    draws: int
    seed: int
    format: str


@dataclass(frozen=True)
class EncodeSpec(TableSpec):
    """A stored table to be encoded.

    Attributes:
        format: of the encodings: csv or json.
    """

    format: str
