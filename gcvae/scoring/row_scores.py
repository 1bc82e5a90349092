"""Scores of rows: how likely each is under a model, in the data's own measure, column by column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gcvae.arrays import Mask, Numbers
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.rare_levels import GroupedLevelCodec
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import SettingError
from gcvae.files.shards import SHARD_UNIT_ROWS
from gcvae.files.table_reader import CHUNK_ROWS, Rows, parsed_chunks
from gcvae.model.bounds import BoundEstimate, iwae_bound
from gcvae.model.decoders import GenerativeModel
from gcvae.numerics.freed_memory import keep_freed_memory
from gcvae.numerics.row_noise import RowNoise
from gcvae.progress import Report, report_to_nobody
from gcvae.sampling.constrained import Acceptance, ConstrainedModel
from gcvae.schema.columns import TableSchema
from gcvae.scoring.anomalies import (
    ANOMALY,
    ODD_CELL,
    cell_tails,
    completed_tails,
    odd_cells,
    p_values,
    row_tails,
)
from gcvae.scoring.blank_references import BlankRanks, BlankReferences, mid_ranks
from gcvae.scoring.draws_by_need import bound_by_need
from gcvae.scoring.partly_known_rows import blank_cells, partly_known
from gcvae.scoring.score_measures import measured
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.score_stream import CONTRIBUTION
from gcvae.scoring.served_scores import FLAG, FULL, IS_RARE, RARE_PERCENTILE, require_plain

SCORE_BLOCK_ROWS = 64
"""Lines come in blocks of this many."""
_EVALUATIONS_BETWEEN_LOOKS = 1 << 17
"""Rows times draws: seconds of work at most, after which progress is told."""
assert CHUNK_ROWS % SCORE_BLOCK_ROWS == SHARD_UNIT_ROWS % SCORE_BLOCK_ROWS == 0
REFERENCE_ROWS = 500
"""Held-out rows that are scored after training, for the percentiles of later scores."""
_REFERENCE_BLOCK_ROWS = 256
HARD_RULES = "(hard rules)"
"""The contribution of the schema's hard rules: -log(acceptance), or -inf."""
NO_ANOMALIES = "models of this preset have no anomalies; default and fast have"


@dataclass(frozen=True)
class RowScorer:
    """Scores rows of a table under a trained model.

    Attributes:
        reference: Sorted scores of held-out rows of training, by `reference_key`; None where they
            were left out of the model's file.
        of_blanks: Scores of the model's own rows with cells blanked.
        scoring: `full`, or `flag`: of each row only whether it is rare.
    """

    schema: TableSchema
    constrained: ConstrainedModel
    reference: Mapping[str, list[float]] | None
    of_blanks: BlankReferences
    scoring: str = FULL

    @property
    def codec(self) -> TableCodec:
        """The codec of the model's table."""
        return self.constrained.codec

    @property
    def has_anomalies(self) -> bool:
        """Whether the model has the conditionals that anomalies are tails of."""
        return self.constrained.model.is_autoregressive

    def names(self) -> list[str]:
        """What contributes: modelled columns and copies in the schema's order, hard rules."""
        names = [column.name for column in self.schema if column.is_modelled]
        return [*names, *([self._hard_rules] if len(self.constrained.hard_rules) else [])]

    @property
    def _hard_rules(self) -> str:
        """What the hard rules' contribution is called: HARD_RULES, if no column is called so."""
        name = HARD_RULES
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
            SettingError: the model has no bins, and their mass is asked; or an option is none that
                a flag has.
        """
        require_plain(self.scoring, options)
        first_row = 0 if among is None else among.start
        assert first_row % SCORE_BLOCK_ROWS == 0, "a run of rows begins with a block"
        ranks, at_once = BlankRanks(self.of_blanks), _rows_at_once(self.constrained.model, options)
        for _, typed in parsed_chunks(rows, self.schema, among):
            if not len(typed):  # of a frame without rows
                return
            part, impossible = self._encoded(typed, options), self._impossible(typed, options)
            are_blank = blank_cells(self.codec, typed, part)
            for run in _runs(first_row, len(typed), at_once):
                noise = RowNoise.numbered(options.seed, "score", run)
                at = torch.tensor(run) - first_row
                estimate = score(self.constrained.model, part.take(at), options, noise)
                ruled_out = {name: found[at.numpy()] for name, found in impossible.items()}
                lines = self._lines(estimate, part.take(at), ruled_out)
                if self.scoring != FLAG:
                    tails = self._tails(typed.iloc[at.numpy()], part.take(at), noise)
                    lines[[ANOMALY, ODD_CELL]] = self._anomalies(part.take(at), tails, lines)
                blank = are_blank[at.numpy()]
                if self.scoring == FLAG:
                    lines = self._flags(lines, blank, ranks, run.start)
                else:
                    percentiles = self._percentiles(lines, blank, options, ranks, run.start)
                    lines["percentile"] = percentiles
                for first in range(0, len(lines), SCORE_BLOCK_ROWS):
                    yield lines[first : first + SCORE_BLOCK_ROWS]
            first_row += len(typed)

    def anomalies(self, rows: Rows, seed: int = 0) -> Numbers:
        """`anomaly` of each row by its cells alone: wherever it stands, beside whichever rows.

        Those of `blocks` have noise of each row's own, and differ a little from row to row.

        Raises:
            TableError: The table has no modelled column, or a cell can not be read.
            SettingError: The model is not autoregressive.
        """
        if not self.has_anomalies:
            raise SettingError(NO_ANOMALIES)
        options = ScoreOptions(draws=1, seed=seed)  # one tells the rows that are impossible
        found = [np.zeros(0)]
        for _, typed in parsed_chunks(rows, self.schema):
            part, impossible = self._encoded(typed, options), self._impossible(typed, options)
            noise = RowNoise.numbered(seed, "score", [0] * len(typed))
            estimate = score(self.constrained.model, part, options, noise)
            lines = self._lines(estimate, part, impossible)
            tails = self._tails(typed, part, noise)
            found.append(self._anomalies(part, tails, lines)[ANOMALY].to_numpy())
        return np.concatenate(found)

    def given(
        self,
        typed: pd.DataFrame,
        context: Tensor | None,
        unknown: Collection[str],
        options: ScoreOptions,
    ) -> Numbers:
        """log p(row | context) of typed rows, in nats of the table's units. Shape: (n,).

        Args:
            typed: Rows; a blank counts with its probability of being missing.
            context: Encoded; None of a model without one. Shape: (n, 2 C).
            unknown: Names of columns whose cells are integrated out.
            options: Their draws and seed.
        """
        rows, impossible = self._given(typed, context, unknown), self._impossible(typed, options)
        found = np.zeros(len(typed))
        for run in _runs(0, len(typed), _rows_at_once(self.constrained.model, options)):
            at, noise = torch.tensor(run), RowNoise.numbered(options.seed, "score", run)
            estimate = score(self.constrained.model, rows.take(at), options, noise)
            ruled_out = {name: cells[at.numpy()] for name, cells in impossible.items()}
            found[at.numpy()] = self._lines(estimate, rows.take(at), ruled_out)["log_likelihood"]
        return found

    def tails_given(
        self,
        typed: pd.DataFrame,
        context: Tensor | None,
        unknown: Collection[str],
        seed: int,
        trained: pd.DataFrame | None = None,
    ) -> tuple[Numbers, Numbers, list[str | None]]:
        """(smallest tail of the cells of each row, how many are known, its column).

        Tails as in `anomalies`, but that of a level which training has not seen is the mass of such
        levels. Shape: (n,), (n,), n.

        Args:
            typed, context, unknown, seed: As of `given`.
            trained: The rows that training saw, where levels of others are in the codec.
        """
        rows = self._given(typed, context, unknown)
        n_known, are_new = rows.observed.sum(dim=1).numpy(), self._new_levels(rows, typed, trained)
        noise = RowNoise.numbered(seed, "score", range(len(rows)))
        # Beside a new level the other cells of its row are those of any level.
        known = replace(rows, observed=rows.observed & ~torch.from_numpy(are_new))
        tails = cell_tails(self.constrained.model, known, noise)
        if tails is None:
            raise SettingError(NO_ANOMALIES)
        masses = [getattr(column, "new_level_mass", 0.0) for column in self.codec.columns]
        found = np.where(are_new, masses, tails.numpy())
        cells = odd_cells(self.codec, found)
        for name, rules_out in self._impossible(typed, ScoreOptions(seed=seed)).items():
            found = np.where(rules_out[:, None], 0.0, found)
            cells = [name if out else cell for out, cell in zip(rules_out, cells, strict=True)]
        least = found.min(axis=1) if found.shape[1] else np.ones(len(found))
        return least, n_known, cells

    def _new_levels(
        self, rows: EncodedTable, typed: pd.DataFrame, trained: pd.DataFrame | None
    ) -> Mask:
        """Which cells have a level that training has not seen. Shape: (n, D)."""
        found = np.zeros(rows.codes.shape, dtype=bool)
        both = [self.codec.reduction.reduce(each) for each in (typed, trained) if each is not None]
        for j, column in enumerate(self.codec.columns):
            if isinstance(column, GroupedLevelCodec):
                found[:, j] = (rows.codes[:, j] < 0).numpy()
                for seen in both[1:]:
                    found[:, j] |= ~both[0][column.name].isin(seen[column.name]).to_numpy()
        return np.asarray(found & rows.observed.numpy())

    def _given(
        self, typed: pd.DataFrame, context: Tensor | None, unknown: Collection[str]
    ) -> EncodedTable:
        """The rows as the model has them, beside their context."""
        rows = self.codec.encode(typed)
        owners = self.codec.reduction.owners
        is_known = [owners.get(c.name, c.name) not in unknown for c in self.codec.columns]
        return replace(rows, observed=rows.observed & torch.tensor(is_known), context=context)

    def _encoded(self, typed: pd.DataFrame, options: ScoreOptions) -> EncodedTable:
        """The rows as the model has them, with what is known of their blanks."""
        if options.score_missingness:
            part = self.codec.encode(typed)
        else:
            per_unit = options.measure == "density"
            part = partly_known(self.constrained, typed, per_unit=per_unit)
        return measured(self.codec, part, options.measure)

    def heading(self, options: ScoreOptions) -> dict[str, Any]:
        """What stands before the lines: what they mean under this model."""
        return options.heading(
            self.order(), has_reference=self.reference is not None, scoring=self.scoring
        )

    def empty(self) -> pd.DataFrame:
        """The lines of no rows."""
        if self.scoring == FLAG:
            return pd.DataFrame({IS_RARE: pd.array([], dtype="boolean")})
        names = [CONTRIBUTION + name for name in self.names()]
        columns = ["log_likelihood", "standard_error", "percentile", ANOMALY, ODD_CELL, *names]
        return pd.DataFrame(columns=columns, dtype="float64").astype({ODD_CELL: object})

    def order(self) -> list[str]:
        """The names of the modelled columns in the order of the chain rule."""
        model = self.constrained.model
        with torch.no_grad():
            order = model.conditional(torch.zeros(1, model.prior.d_latent)).order
        owners = self.codec.reduction.owners
        names = (self.codec.columns[j].name for j in order)
        return list(dict.fromkeys(owners.get(name, name) for name in names))

    def _impossible(self, typed: pd.DataFrame, options: ScoreOptions) -> dict[str, Mask]:
        """Which rows the copies and the hard rules rule out. Shape: (n,) each."""
        found = self.codec.differing_copies(typed)
        if len(self.constrained.hard_rules):
            are_unknown = not options.score_missingness
            found[self._hard_rules] = ~self.constrained.allowed(typed, blanks_unknown=are_unknown)
        return found

    def _lines(
        self,
        estimate: BoundEstimate,
        rows: EncodedTable,
        impossible: Mapping[str, Mask],
    ) -> pd.DataFrame:
        terms = (estimate.terms - self.codec.log_units_of_cells(rows)).numpy()
        by_name: dict[str, Numbers] = {}
        for j, codec in enumerate(self.codec.columns):
            owner = self.codec.reduction.owners.get(codec.name, codec.name)
            by_name[owner] = by_name.get(owner, 0.0) + terms[:, j]
        log_share = float(np.log(self.constrained.acceptance.share))
        for name, rules_out in impossible.items():
            term = -log_share if name == self._hard_rules else by_name.get(name, 0.0)
            by_name[name] = np.where(rules_out, -np.inf, term)
        bound = np.sum(list(by_name.values()), axis=0) if by_name else np.zeros(len(rows))
        error = np.where(np.isneginf(bound), 0.0, estimate.standard_error.numpy())
        columns = {
            "log_likelihood": bound,
            "standard_error": error,
            "percentile": np.nan,
            ANOMALY: np.nan,
            ODD_CELL: None,
        }
        columns |= {CONTRIBUTION + name: by_name[name] for name in self.names()}
        return pd.DataFrame(columns)

    def _tails(self, typed: pd.DataFrame, rows: EncodedTable, noise: RowNoise) -> Tensor | None:
        """The tail probability of each known cell; None for models without conditionals."""
        tails = cell_tails(self.constrained.model, rows, noise)
        partly = (~rows.observed).any(dim=1).nonzero()[:, 0]
        if tails is not None and len(partly):
            part = typed.iloc[partly.numpy()].reset_index(drop=True), rows.take(partly)
            found = completed_tails(self.constrained, *part, noise.take(partly))
            assert found is not None, "the model has conditionals"
            tails[partly] = found
        return tails

    def _anomalies(
        self, rows: EncodedTable, tails: Tensor | None, lines: pd.DataFrame
    ) -> pd.DataFrame:
        """How odd each row is, and its oddest cell: of an impossible row, what makes it so."""
        if tails is None:
            return pd.DataFrame({ANOMALY: np.nan, ODD_CELL: [None] * len(rows)})
        found = tails.numpy()
        p = p_values(self.reference, row_tails(found, rows.observed.numpy()))
        cells = np.array(odd_cells(self.codec, found), dtype=object)
        p[np.isneginf(lines["log_likelihood"].to_numpy())] = 0.0
        for name in reversed(self.names()):
            is_ruled_out = np.isneginf(lines[CONTRIBUTION + name].to_numpy())
            if name != self._hard_rules:
                cells[is_ruled_out] = name
        return pd.DataFrame({ANOMALY: p, ODD_CELL: cells})

    def _percentiles(
        self,
        lines: pd.DataFrame,
        are_blank: Mask,
        options: ScoreOptions,
        ranks: BlankRanks,
        first_row: int,
    ) -> Numbers:
        """Of whole rows among held-out ones, of others among the model's with the same blanks."""
        bound = lines["log_likelihood"].to_numpy()
        if not options.has_percentiles:
            return np.full(len(bound), np.nan)
        of_blanks = ranks.percentiles(bound, are_blank, first_row)
        if self.reference is None:  # whole rows have none
            return of_blanks
        reference = np.asarray(self.reference[reference_key(options)])
        return np.where(are_blank.any(axis=1), of_blanks, mid_ranks(reference, bound))

    def _flags(
        self, lines: pd.DataFrame, are_blank: Mask, ranks: BlankRanks, first_row: int
    ) -> pd.DataFrame:
        """Which rows are rare among the model's own with the same blanks; those of training have no
        part in it. Nobody can say of rows with too many sets of blanks."""
        bound = lines["log_likelihood"].to_numpy()
        percentiles = ranks.percentiles(bound, are_blank, first_row)
        is_whole = ~are_blank.any(axis=1)
        if is_whole.any():
            whole = self.of_blanks.scores(np.zeros(are_blank.shape[1], dtype=bool))
            percentiles[is_whole] = mid_ranks(whole, bound[is_whole])
        is_rare = pd.array(percentiles < RARE_PERCENTILE, dtype="boolean")
        is_rare[np.isnan(percentiles)] = pd.NA
        return pd.DataFrame({IS_RARE: is_rare})


def score(
    model: GenerativeModel, rows: EncodedTable, options: ScoreOptions, noise: RowNoise
) -> BoundEstimate:
    """The bound of each row, in the codec's units."""
    keep_freed_memory()
    with torch.no_grad():
        if options.draws is not None:
            return iwae_bound(model, rows, noise, n_draws=options.draws, n_jitters=options.jitters)
        assert options.tolerance is not None, "it rules where there are no draws"
        return bound_by_need(
            model, rows, noise, tolerance=options.tolerance, n_jitters=options.jitters
        )


def _rows_at_once(model: GenerativeModel, options: ScoreOptions) -> int:
    """How many rows go through the networks between two looks at whoever waits for them.

    It divides the rows of a unit, of which a percentile of a row with blanks may depend. A copula's
    integrals are the same to the last digit in the same company alone: its rows come by blocks.
    """
    at_once = SHARD_UNIT_ROWS if model.is_autoregressive else SCORE_BLOCK_ROWS
    draws = options.typical_draws * max(1, options.jitters)
    while at_once > SCORE_BLOCK_ROWS and at_once * draws > _EVALUATIONS_BETWEEN_LOOKS:
        at_once //= 2
    return at_once


def _runs(first_row: int, n_rows: int, at_once: int) -> Iterator[range]:
    """The rows from the first on, in runs that end at multiples of `at_once`."""
    end = first_row + n_rows
    while first_row < end:
        last = min(end, first_row - first_row % at_once + at_once)
        yield range(first_row, last)
        first_row = last


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
        ScoreOptions(seed=seed, score_missingness=missing) for missing in (True, False)
    )
    n, n_all = len(rows), len(rows) + len(with_blanks)
    bounds = _bounds_in_units(model, codec, rows, scored, lambda done: report(done / n_all))
    again = _bounds_in_units(
        model, codec, blanks.take(with_blanks), integrated, lambda done: report((n + done) / n_all)
    )
    tails = cell_tails(model, rows, RowNoise.numbered(seed, "held-out anomalies", range(n)))
    odd = (
        {} if tails is None else {ANOMALY: np.sort(row_tails(tails.numpy(), rows.observed.numpy()))}
    )
    return {name: values.tolist() for name, values in odd.items()} | {
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
    """Bounds of rows in the table's units, before any hard rule. Shape: (n,).

    `report` takes how many rows are done.
    """
    bounds = [torch.zeros(0, dtype=torch.float64)]
    for index in torch.arange(len(rows)).split(_REFERENCE_BLOCK_ROWS):
        if len(index):
            noise = RowNoise.numbered(options.seed, "held-out scores", index.tolist())
            bounds.append(score(model, rows.take(index), options, noise).bound)
            report(int(index[-1]) + 1)
    return torch.cat(bounds) - codec.log_units(rows)
