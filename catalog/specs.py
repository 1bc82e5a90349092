"""What sample and score jobs are asked to do: written by the service, read by the worker."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Self

from catalog.records import Document


@dataclass(frozen=True)
class SampleSpec:
    """Rows to be drawn. `format` is csv, parquet, json or jsonl."""

    rows: int
    seed: int
    format: str
    given: Document | None = None

    def to_json(self) -> Document:
        """The job's `spec`."""
        return asdict(self)

    @classmethod
    def from_json(cls, spec: Document) -> Self:
        """The same, back."""
        return cls(**spec)


@dataclass(frozen=True)
class ScoreSpec:
    """A stored table to be scored.

    Attributes:
        table_key: where the table lies in the store: a dataset's key, or under the job's
            `input_prefix`.
        table_sha256: of the bytes there.
        table_format: the table's, as a dataset's `format`.
        draws: of the latent z for each row.
        format: of the scores: csv or json.
        jitters, measure, score_missingness: as in `gcvae.score_options.ScoreOptions`.
    """

    table_key: str
    table_sha256: str
    table_format: str
    draws: int
    seed: int
    format: str
    jitters: int = 0
    measure: str = "density"
    score_missingness: bool = False

    def to_json(self) -> Document:
        """The job's `spec`."""
        return asdict(self)

    @classmethod
    def from_json(cls, spec: Document) -> Self:
        """The same, back."""
        return cls(**spec)
