"""Scores of rows: how likely each is under a model, in the data's own measure, column by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from gcvae.bounds import BoundEstimate, iwae_bound
from gcvae.codec import EncodedTable, TableCodec
from gcvae.generators import generator_for
from gcvae.measures import measured
from gcvae.model import GenerativeModel
from gcvae.rejection import Acceptance, ConstrainedModel
from gcvae.schema import TableSchema
from gcvae.score_options import ScoreOptions
from gcvae.score_stream import CONTRIBUTION
from gcvae.table_reader import PART_ROWS, TableReader, parsed_parts

SCORE_BLOCK_ROWS = 64
"""Rows are scored in blocks of this many, each with a generator of (seed, block number)."""
assert PART_ROWS % SCORE_BLOCK_ROWS == 0, "a part ends with a block"
_REFERENCE_DRAWS = 100
CONSTRAINTS = "(constraints)"
"""The contribution of the schema's constraints: -log(acceptance), or -inf."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RowScorer:
    """Scores rows of a table under a trained model.

    Attributes:
        reference: Sorted scores of held-out rows of training, by `reference_key`.
    """

    schema: TableSchema
    constrained: ConstrainedModel
    reference: Mapping[str, list[float]]

    @property
    def codec(self) -> TableCodec:
        """Of the model's table."""
        return self.constrained.codec

    def names(self) -> list[str]:
        """Of what contributes: modelled columns and copies in the schema's order, constraints."""
        modelled = {codec.name for codec in self.codec.columns}
        known = modelled | set(self.codec.copies)
        names = [name for name in self.schema.names if name in known]
        return [*names, *([CONSTRAINTS] if len(self.constrained.constraints) else [])]

    def blocks(
        self,
        rows: pd.DataFrame | TableReader,
        options: ScoreOptions,
        among: range | None = None,
    ) -> Iterator[pd.DataFrame]:
        """A line for each row, in order, block by block; memory does not grow with a file's rows.

        With `among` only lines of those rows that it names, the same as among all; it begins at a
        multiple of SCORE_BLOCK_ROWS.

        Raises:
            TableError: the table lacks a modelled column, or a cell can not be read.
            SettingError: the model has no bins, and their mass is asked.
        """
        first_block = 0
        if among is not None:
            assert among.start % SCORE_BLOCK_ROWS == 0, "a run of rows begins with a block"
            first_block = among.start // SCORE_BLOCK_ROWS
        numbers = count(first_block)
        for _, typed in parsed_parts(rows, self.schema, among):
            part = self.codec.encode(typed, blanks_unknown=not options.score_missingness)
            part = measured(self.codec, part, options.measure)
            impossible = self._impossible(typed)
            for index in torch.arange(len(part)).split(SCORE_BLOCK_ROWS):
                generator = generator_for(options.seed, "score", next(numbers))
                block = part.take(index)
                estimate = score(self.constrained.model, block, options, generator)
                ruled_out = {name: found[index.numpy()] for name, found in impossible.items()}
                yield self._lines(estimate, block, ruled_out, options)

    def empty(self) -> pd.DataFrame:
        """The lines of no rows."""
        names = [CONTRIBUTION + name for name in self.names()]
        columns = ["log_likelihood", "standard_error", "percentile", *names]
        return pd.DataFrame(columns=columns, dtype="float64")

    def order(self) -> list[str]:
        """The names of the modelled columns in the order of the chain rule."""
        model = self.constrained.model
        with torch.no_grad():
            order = model.conditional(torch.zeros(1, model.prior.d_latent)).order
        return [self.codec.columns[j].name for j in order]

    def _impossible(self, typed: pd.DataFrame) -> dict[str, npt.NDArray[np.bool_]]:
        """Which rows the copies and the constraints rule out. Shape: (n,) each."""
        found = self.codec.differing_copies(typed)
        if len(self.constrained.constraints):
            found[CONSTRAINTS] = ~self.constrained.allowed(typed)
        return found

    def _lines(
        self,
        estimate: BoundEstimate,
        rows: EncodedTable,
        impossible: Mapping[str, npt.NDArray[np.bool_]],
        options: ScoreOptions,
    ) -> pd.DataFrame:
        terms = (estimate.terms - self.codec.log_units_of_cells(rows)).numpy()
        by_name = {codec.name: terms[:, j] for j, codec in enumerate(self.codec.columns)}
        log_share = float(np.log(self.constrained.acceptance.share))
        for name, rules_out in impossible.items():
            by_name[name] = np.where(rules_out, -np.inf, -log_share if name == CONSTRAINTS else 0.0)
        bound = np.sum(list(by_name.values()), axis=0) if by_name else np.zeros(len(rows))
        error = np.where(np.isneginf(bound), 0.0, estimate.standard_error.numpy())
        columns = {
            "log_likelihood": bound,
            "standard_error": error,
            "percentile": self._percentiles(bound, options),
        }
        columns |= {CONTRIBUTION + name: by_name[name] for name in self.names()}
        return pd.DataFrame(columns, dtype="float64")

    def _percentiles(self, bound: Numbers, options: ScoreOptions) -> Numbers:
        if not options.has_percentiles:
            return np.full(len(bound), np.nan)
        reference = np.asarray(self.reference[reference_key(options)])
        at: Numbers = 100.0 * np.searchsorted(reference, bound, side="right") / len(reference)
        return at


def score(
    model: GenerativeModel, rows: EncodedTable, options: ScoreOptions, generator: torch.Generator
) -> BoundEstimate:
    """The bound of each row, in the codec's units."""
    with torch.no_grad():
        return iwae_bound(model, rows, generator, n_draws=options.draws, n_jitters=options.jitters)


def reference_key(options: ScoreOptions) -> str:
    """Which of the held-out rows' scores are comparable."""
    return "missingness_scored" if options.score_missingness else "blanks_integrated"


def reference_scores(
    model: GenerativeModel, codec: TableCodec, rows: EncodedTable, acceptance: Acceptance, seed: int
) -> dict[str, list[float]]:
    """Sorted scores of held-out rows, against which later scores are ranked, by `reference_key`.

    With blanks integrated out, only rows that have some are scored again.
    """
    blanks = codec.without_missing_level(rows)
    with_blanks = (~blanks.observed.all(1)).nonzero()[:, 0]
    scored, integrated = (
        ScoreOptions(_REFERENCE_DRAWS, seed, score_missingness=missing) for missing in (True, False)
    )
    bounds = _bounds_in_units(model, codec, rows, scored)
    again = _bounds_in_units(model, codec, blanks.take(with_blanks), integrated)
    return {
        reference_key(options): sorted((found - float(np.log(acceptance.share))).tolist())
        for options, found in (
            (scored, bounds),
            (integrated, bounds.index_copy(0, with_blanks, again)),
        )
    }


def _bounds_in_units(
    model: GenerativeModel, codec: TableCodec, rows: EncodedTable, options: ScoreOptions
) -> Tensor:
    """Bounds of rows in the table's units, before any constraint. Shape: (n,)."""
    bounds = [torch.zeros(0, dtype=torch.float64)]
    for i, index in enumerate(torch.arange(len(rows)).split(SCORE_BLOCK_ROWS)):
        if len(index):
            generator = generator_for(options.seed, "held-out scores", i)
            bounds.append(score(model, rows.take(index), options, generator).bound)
    return torch.cat(bounds) - codec.log_units(rows)
