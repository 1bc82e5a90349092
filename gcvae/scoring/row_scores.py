"""Scores of rows: how likely each is under a model, in the data's own measure, column by column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec
from gcvae.files.shards import SHARD_UNIT_ROWS
from gcvae.files.table_reader import CHUNK_ROWS, Rows, parsed_chunks
from gcvae.model.bounds import BoundEstimate, iwae_bound
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.generators import generator_for
from gcvae.progress import Report, report_to_nobody
from gcvae.sampling.constrained import Acceptance, ConstrainedModel
from gcvae.sampling.dependent_regions import regions_of_rows
from gcvae.schema.columns import TableSchema
from gcvae.scoring.blank_references import BlankRanks, BlankReferences, mid_ranks
from gcvae.scoring.score_measures import measured
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.score_stream import CONTRIBUTION

SCORE_BLOCK_ROWS = 64
"""Rows are scored in blocks of this many, each with a generator of (seed, block number)."""
assert CHUNK_ROWS % SCORE_BLOCK_ROWS == SHARD_UNIT_ROWS % SCORE_BLOCK_ROWS == 0
REFERENCE_ROWS = 500
"""Held-out rows that are scored after training, for the percentiles of later scores."""
_REFERENCE_DRAWS = 100
CONSTRAINTS = "(constraints)"
"""The contribution of the schema's constraints: -log(acceptance), or -inf."""

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RowScorer:
    """Scores rows of a table under a trained model.

    Attributes:
        reference: Sorted scores of held-out rows of training, by `reference_key`.
        of_blanks: Scores of the model's own rows with cells blanked.
    """

    schema: TableSchema
    constrained: ConstrainedModel
    reference: Mapping[str, list[float]]
    of_blanks: BlankReferences

    @property
    def codec(self) -> TableCodec:
        """The codec of the model's table."""
        return self.constrained.codec

    def names(self) -> list[str]:
        """What contributes: modelled columns and copies in the schema's order, constraints."""
        names = [column.name for column in self.schema if column.is_modelled]
        return [*names, *([self._constraints] if len(self.constrained.constraints) else [])]

    @property
    def _constraints(self) -> str:
        """What the constraints' contribution is called: CONSTRAINTS, if no column is called so."""
        name = CONSTRAINTS
        while name in self.schema:
            name = f"({name})"
        return name

    def blocks(
        self,
        rows: Rows,
        options: ScoreOptions,
        among: range | None = None,
    ) -> Iterator[pd.DataFrame]:
        """A line for each row, in order, block by block; memory does not grow with a file's rows.

        With `among` only lines of those rows that it names, the same as among all; it begins at a
        multiple of SCORE_BLOCK_ROWS, and of SHARD_UNIT_ROWS where there are many sets of blanks.

        Raises:
            TableError: the table has no modelled column, or a cell can not be read.
            SettingError: the model has no bins, and their mass is asked.
        """
        first_block = 0
        if among is not None:
            assert among.start % SCORE_BLOCK_ROWS == 0, "a run of rows begins with a block"
            first_block = among.start // SCORE_BLOCK_ROWS
        numbers = count(first_block)
        ranks = BlankRanks(self.of_blanks)
        for _, typed in parsed_chunks(rows, self.schema, among):
            if not len(typed):  # of a frame without rows
                return
            part = self.codec.encode(typed, blanks_unknown=not options.score_missingness)
            part = measured(self.codec, part, options.measure)
            if len(self.codec.reduction) and not options.score_missingness:
                order = self.constrained.model.order or ()
                per_unit = options.measure == "density"
                loose = regions_of_rows(
                    self.codec, typed, order, blanks_missing=True, are_scored=per_unit
                )
                part = replace(part, dependent=loose)
            impossible = self._impossible(typed)
            for index in torch.arange(len(part)).split(SCORE_BLOCK_ROWS):
                number = next(numbers)
                generator = generator_for(options.seed, "score", number)
                block = part.take(index)
                estimate = score(self.constrained.model, block, options, generator)
                ruled_out = {name: found[index.numpy()] for name, found in impossible.items()}
                lines = self._lines(estimate, block, ruled_out)
                first_row = number * SCORE_BLOCK_ROWS
                lines["percentile"] = self._percentiles(lines, block, options, ranks, first_row)
                yield lines

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
        owners = self.codec.reduction.owners
        names = (self.codec.columns[j].name for j in order)
        return list(dict.fromkeys(owners.get(name, name) for name in names))

    def _impossible(self, typed: pd.DataFrame) -> dict[str, npt.NDArray[np.bool_]]:
        """Which rows the copies and the constraints rule out. Shape: (n,) each."""
        found = self.codec.differing_copies(typed)
        if len(self.constrained.constraints):
            found[self._constraints] = ~self.constrained.allowed(typed)
        return found

    def _lines(
        self,
        estimate: BoundEstimate,
        rows: EncodedTable,
        impossible: Mapping[str, npt.NDArray[np.bool_]],
    ) -> pd.DataFrame:
        terms = (estimate.terms - self.codec.log_units_of_cells(rows)).numpy()
        by_name: dict[str, Numbers] = {}
        for j, codec in enumerate(self.codec.columns):
            owner = self.codec.reduction.owners.get(codec.name, codec.name)
            by_name[owner] = by_name.get(owner, 0.0) + terms[:, j]
        log_share = float(np.log(self.constrained.acceptance.share))
        for name, rules_out in impossible.items():
            term = -log_share if name == self._constraints else by_name.get(name, 0.0)
            by_name[name] = np.where(rules_out, -np.inf, term)
        bound = np.sum(list(by_name.values()), axis=0) if by_name else np.zeros(len(rows))
        error = np.where(np.isneginf(bound), 0.0, estimate.standard_error.numpy())
        columns = {
            "log_likelihood": bound,
            "standard_error": error,
            "percentile": np.nan,
        }
        columns |= {CONTRIBUTION + name: by_name[name] for name in self.names()}
        return pd.DataFrame(columns, dtype="float64")

    def _percentiles(
        self,
        lines: pd.DataFrame,
        rows: EncodedTable,
        options: ScoreOptions,
        ranks: BlankRanks,
        first_row: int,
    ) -> Numbers:
        """Of whole rows among held-out ones, of others among the model's with the same blanks."""
        bound = lines["log_likelihood"].to_numpy()
        if not options.has_percentiles:
            return np.full(len(bound), np.nan)
        reference = np.asarray(self.reference[reference_key(options)])
        are_blank = ~rows.observed.numpy()
        of_blanks = ranks.percentiles(bound, are_blank, first_row)
        return np.where(are_blank.any(axis=1), of_blanks, mid_ranks(reference, bound))


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
    model: GenerativeModel,
    codec: TableCodec,
    rows: EncodedTable,
    acceptance: Acceptance,
    seed: int,
    report: Report = report_to_nobody,
) -> dict[str, list[float]]:
    """Sorted scores of held-out rows, against which later scores are ranked, by `reference_key`.

    With blanks integrated out, only rows that have some are scored again.
    """
    blanks = codec.without_missing_level(rows)
    with_blanks = (~blanks.observed.all(1)).nonzero()[:, 0]
    scored, integrated = (
        ScoreOptions(_REFERENCE_DRAWS, seed, score_missingness=missing) for missing in (True, False)
    )
    n, n_all = len(rows), len(rows) + len(with_blanks)
    bounds = _bounds_in_units(model, codec, rows, scored, lambda done: report(done / n_all))
    again = _bounds_in_units(
        model, codec, blanks.take(with_blanks), integrated, lambda done: report((n + done) / n_all)
    )
    return {
        reference_key(options): sorted((found - float(np.log(acceptance.share))).tolist())
        for options, found in (
            (scored, bounds),
            (integrated, bounds.index_copy(0, with_blanks, again)),
        )
    }


def _bounds_in_units(
    model: GenerativeModel,
    codec: TableCodec,
    rows: EncodedTable,
    options: ScoreOptions,
    report: Callable[[int], None],
) -> Tensor:
    """Bounds of rows in the table's units, before any constraint. Shape: (n,).

    `report` takes how many rows are done.
    """
    bounds = [torch.zeros(0, dtype=torch.float64)]
    for i, index in enumerate(torch.arange(len(rows)).split(SCORE_BLOCK_ROWS)):
        if len(index):
            generator = generator_for(options.seed, "held-out scores", i)
            bounds.append(score(model, rows.take(index), options, generator).bound)
            report(int(index[-1]) + 1)
    return torch.cat(bounds) - codec.log_units(rows)
