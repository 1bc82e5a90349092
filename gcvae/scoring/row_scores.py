"""Scores of rows: the log-likelihood of each row under a model, in the units of the table, as a sum
of contributions of its columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from gcvae.sampling.known_cells import with_missing
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
from gcvae.scoring.partly_known_rows import blank_cells, partly_known, with_determined
from gcvae.scoring.score_measures import measured
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.score_stream import CONTRIBUTION
from gcvae.scoring.scoring_setting import FLAG, FULL, IS_RARE, RARE_PERCENTILE, require_plain

SCORE_BLOCK_ROWS = 64
"""Number of rows of a block of scores."""
_EVALUATIONS_BETWEEN_LOOKS = 1 << 17
"""Maximum number of rows times draws between two reports of progress: a few seconds of work."""
assert CHUNK_ROWS % SCORE_BLOCK_ROWS == SHARD_UNIT_ROWS % SCORE_BLOCK_ROWS == 0
REFERENCE_ROWS = 500
"""Number of held-out rows that are scored after training, for the percentiles of later scores."""
_REFERENCE_BLOCK_ROWS = 256
HARD_RULES = "(hard rules)"
"""Name of the contribution of the schema's hard rules: -log(acceptance), or -inf if violated."""
NO_ANOMALIES = "models of this preset have no anomalies; default and fast have"


@dataclass(frozen=True)
class RowScorer:
    """Computes log-likelihoods, percentiles and anomalies of rows of a table under a trained model.

    Attributes:
        schema: Schema of the table.
        constrained: Model with its hard rules.
        reference: Sorted scores of held-out rows of training, by kind of score; None if the model's
            file does not contain them.
        of_blanks: Scores of generated rows, among which rows with missing cells are ranked.
        scoring: What the model reveals: `full` for scores, `flag` for only whether a row is rare.
    """

    schema: TableSchema
    constrained: ConstrainedModel
    reference: Mapping[str, list[float]] | None
    of_blanks: BlankReferences
    scoring: str = FULL

    @property
    def codec(self) -> TableCodec:
        """Codec of the model's table."""
        return self.constrained.codec

    @property
    def has_anomalies(self) -> bool:
        """Whether the model is autoregressive, so that anomalies can be computed."""
        return self.constrained.model.is_autoregressive

    def names(self) -> list[str]:
        """Returns the names of the terms that add up to a score: columns in the schema's order,
        then the hard rules if there are any."""
        names = [column.name for column in self.schema if column.is_modelled]
        return [*names, *([self._hard_rules] if len(self.constrained.hard_rules) else [])]

    @property
    def _hard_rules(self) -> str:
        """Name of the summand of a score that stands for the hard rules; the other summands have
        the names of columns. The name is put in parentheses until no column has it."""
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
        """Yields a frame of scores for each block of rows, in order.

        Memory does not grow with the number of rows of a file.

        Args:
            rows: Cells as text or with the columns' dtypes.
            options: How to score.
            among: Range of the rows to score, with the same result as in a full pass; None scores
                all. It begins at a multiple of SCORE_BLOCK_ROWS, and of SHARD_UNIT_ROWS if rows
                have many different sets of missing columns.

        Raises:
            TableError: The table contains no modelled column, or a cell cannot be read.
            SettingError: The measure is the mass of bins and the model has none, or the model only
                reveals whether rows are rare and an option is not the default.
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
        """Returns the `anomaly` of each of n rows: a p-value that is small if a cell is unlikely
        given those before it. Equal rows have equal p-values.

        The anomalies of `blocks` use different random numbers for each row, and so differ a little
        between equal rows. Shape: (n,).

        Args:
            rows: Cells as text or with the columns' dtypes.

        Raises:
            TableError: The table contains no modelled column, or a cell cannot be read.
            SettingError: The model is not autoregressive.
        """
        if not self.has_anomalies:
            raise SettingError(NO_ANOMALIES)
        options = ScoreOptions(draws=1, seed=seed)  # one suffices to find impossible rows
        found = [np.zeros(0)]
        for _, typed in parsed_chunks(rows, self.schema):
            part, impossible = self._encoded(typed, options), self._impossible(typed, options)
            noise = RowNoise.numbered(seed, "score", [0] * len(typed))
            estimate = score(self.constrained.model, part, options, noise)
            lines = self._lines(estimate, part, impossible)
            tails = self._tails(typed, part, noise)
            found.append(self._anomalies(part, tails, lines)[ANOMALY].to_numpy())
        return np.concatenate(found)

    def log_likelihoods_given(
        self,
        typed: pd.DataFrame,
        context: Tensor | None,
        unknown: Collection[str],
        missing: Mapping[str, Mask],
        options: ScoreOptions,
    ) -> Numbers:
        """Returns log p(row | context) of each of n rows, in nats; densities are per unit of the
        table's columns. Shape: (n,).

        Args:
            typed: Rows with cells of the columns' dtypes; missing cells are integrated out.
            context: Encoded context of each row: C codes, then C values. None for a model without
                context. Shape: (n, 2 C).
            unknown: Names of columns whose cells are integrated out.
            missing: By column, the mask of the cells that are known to be missing, which count with
                their probability of being missing. Shape: (n,) each.
            options: How to score.
        """
        rows = replace(self._given(typed, unknown, missing), context=context)
        impossible = self._impossible(typed, options)
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
        contexts: Sequence[Tensor | None],
        unknown: Collection[str],
        missing: Mapping[str, Mask],
        seed: int,
        trained: pd.DataFrame | None = None,
        table: pd.DataFrame | None = None,
    ) -> tuple[Numbers, Numbers, list[str | None]]:
        """Returns, for each of n rows: the smallest tail probability among its cells, its number of
        known cells, and the name of the column with the smallest tail probability.

        The tail probability of a cell is the probability of outcomes no likelier than the cell,
        given the cells before it. All levels that no training row contains have the same one: their
        total probability. Shape: (n,), (n,), n.

        Args:
            typed: Rows with cells of the columns' dtypes; missing cells are integrated out.
            contexts: Possible contexts of the rows, over which tail probabilities are averaged:
                encoded, C codes, then C values; None without context. Shape: (n, 2 C) each.
            unknown: Names of columns whose cells are integrated out.
            missing: By column, the mask of the cells known to be missing. Shape: (n,) each.
            trained: Training rows. Levels that occur only in other rows of the table then count as
                new, although the codec contains them. None if the codec contains only levels of
                training rows.
            table: All rows from which the codec was fitted, if they contain the rows `typed`: each
                row is then judged as if the table did not contain it. None for other rows.

        Raises:
            SettingError: The model is not autoregressive.
        """
        rows = self._given(typed, unknown, missing)
        n_known, are_new = rows.observed.sum(dim=1).numpy(), self._new_levels(rows, typed, trained)
        noise = RowNoise.numbered(seed, "score", range(len(rows)))
        # The other cells of the row are judged as if a cell with a new level were unknown.
        known = replace(rows, observed=rows.observed & ~torch.from_numpy(are_new))
        counts = None if table is None else self.codec.encode(table).code_counts
        if not self.has_anomalies:
            raise SettingError(NO_ANOMALIES)
        tails = np.zeros(rows.codes.shape)
        for context in contexts:
            given = replace(known, context=context)
            of_context = cell_tails(self.constrained.model, given, noise, counts)
            assert of_context is not None, "the model is autoregressive"
            tails += of_context.numpy()
        masses = [getattr(column, "new_level_mass", 0.0) for column in self.codec.columns]
        found = np.where(are_new, masses, tails / len(contexts))
        cells = odd_cells(self.codec, found)
        for name, rules_out in self._impossible(typed, ScoreOptions(seed=seed)).items():
            found = np.where(rules_out[:, None], 0.0, found)
            cells = [name if out else cell for out, cell in zip(rules_out, cells, strict=True)]
        least = found.min(axis=1) if found.shape[1] else np.ones(len(found))
        return least, n_known, cells

    def _new_levels(
        self, rows: EncodedTable, typed: pd.DataFrame, trained: pd.DataFrame | None
    ) -> Mask:
        """Returns a mask of the cells whose level is new: the codec does not contain it, or no
        training row has it. `trained` contains the training rows; if it is None, only the codec is
        asked. Shape: (n, D)."""
        found = np.zeros(rows.codes.shape, dtype=bool)
        both = [self.codec.reduction.reduce(each) for each in (typed, trained) if each is not None]
        for j, column in enumerate(self.codec.columns):
            if isinstance(column, GroupedLevelCodec):
                found[:, j] = (rows.codes[:, j] < 0).numpy()
                for seen in both[1:]:
                    found[:, j] |= ~both[0][column.name].isin(seen[column.name]).to_numpy()
        return np.asarray(found & rows.observed.numpy())

    def _given(
        self, typed: pd.DataFrame, unknown: Collection[str], missing: Mapping[str, Mask]
    ) -> EncodedTable:
        """Encodes rows. Missing cells and those of the columns `unknown` are unobserved, except the
        cells that are known to be `missing`."""
        rows = with_missing(self.codec, partly_known(self.constrained, typed), missing)
        owners = self.codec.reduction.owners
        is_known = [owners.get(c.name, c.name) not in unknown for c in self.codec.columns]
        return replace(rows, observed=rows.observed & torch.tensor(is_known))

    def _encoded(self, typed: pd.DataFrame, options: ScoreOptions) -> EncodedTable:
        """Encodes rows for scoring by the measure of the options. Without `score_missingness`,
        missing cells count as unknown, and a known computed cell restricts the unknown cells from
        which it is computed to possible values."""
        if options.score_missingness:
            part = self.codec.encode(typed)
        else:
            per_unit = options.measure == "density"
            part = partly_known(self.constrained, typed, per_unit=per_unit)
        return measured(self.codec, part, options.measure)

    def heading(self, options: ScoreOptions) -> dict[str, Any]:
        """Returns the heading of a file of scores: the options, and what the scores mean."""
        return options.heading(
            self.order(), has_reference=self.reference is not None, scoring=self.scoring
        )

    def empty(self) -> pd.DataFrame:
        """Returns a frame with the columns of scores and no rows."""
        if self.scoring == FLAG:
            return pd.DataFrame({IS_RARE: pd.array([], dtype="boolean")})
        names = [CONTRIBUTION + name for name in self.names()]
        columns = ["log_likelihood", "standard_error", "percentile", ANOMALY, ODD_CELL, *names]
        return pd.DataFrame(columns=columns, dtype="float64").astype({ODD_CELL: object})

    def order(self) -> list[str]:
        """Returns the names of the modelled columns in the decoder's order."""
        order = self.constrained.model.order or range(len(self.codec.columns))
        owners = self.codec.reduction.owners
        names = (self.codec.columns[j].name for j in order)
        return list(dict.fromkeys(owners.get(name, name) for name in names))

    def _impossible(self, typed: pd.DataFrame, options: ScoreOptions) -> dict[str, Mask]:
        """Returns masks of the impossible rows, by the name of the score's summand that becomes
        -inf in these rows.

        The name is that of a column if its cell differs from a column that it equals in every
        training row. It is `_hard_rules` if the row violates a hard rule. Shape: (n,) each.
        """
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
        """Returns the tail probability of each known cell; None for models that are not
        autoregressive."""
        tails = cell_tails(self.constrained.model, rows, noise)
        partly = (~rows.observed).any(dim=1).nonzero()[:, 0]
        if tails is not None and len(partly):
            part = with_determined(self.codec, typed.iloc[partly.numpy()]), rows.take(partly)
            found = completed_tails(self.constrained, *part, noise.take(partly))
            assert found is not None, "the model has conditionals"
            tails[partly] = found
        return tails

    def _anomalies(
        self, rows: EncodedTable, tails: Tensor | None, lines: pd.DataFrame
    ) -> pd.DataFrame:
        """Returns a frame with the p-value of each row and the column of its least likely cell; all
        are missing if the model is not autoregressive. An impossible row has the p-value 0, and
        names the column that makes it impossible, if one does."""
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
        """Returns the percentile of each row's score; NaN for rows that cannot be ranked. Complete
        rows are ranked among held-out rows, others among generated rows with the same cells
        missing. `first_row` is the number in the table of the first of these rows."""
        bound = lines["log_likelihood"].to_numpy()
        if not options.has_percentiles:
            return np.full(len(bound), np.nan)
        of_blanks = ranks.percentiles(bound, are_blank, first_row)
        if self.reference is None:  # complete rows have no percentile then
            return of_blanks
        reference = np.asarray(self.reference[reference_key(options)])
        return np.where(are_blank.any(axis=1), of_blanks, mid_ranks(reference, bound))

    def _flags(
        self, lines: pd.DataFrame, are_blank: Mask, ranks: BlankRanks, first_row: int
    ) -> pd.DataFrame:
        """Returns a frame that tells whether each row is rare among generated rows with the same
        cells missing; missing if there are too many different sets of missing columns. No row of
        the training table is used for the comparison."""
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
    """Returns a lower bound on the log-likelihood of each encoded row, in nats; densities are per
    unit of the encoded numbers, not of the table's."""
    keep_freed_memory()
    with torch.no_grad():
        if options.draws is not None:
            return iwae_bound(model, rows, noise, n_draws=options.draws)
        assert options.tolerance is not None, "it rules where there are no draws"
        return bound_by_need(model, rows, noise, tolerance=options.tolerance)


def _rows_at_once(model: GenerativeModel, options: ScoreOptions) -> int:
    """Returns the number of rows to score between two reports of progress.

    It divides SHARD_UNIT_ROWS, within which percentiles of rows with missing cells may depend on
    each other. Without an autoregressive model, it is SCORE_BLOCK_ROWS, because the last digits of
    a copula's integrals depend on the other rows of a batch.
    """
    at_once = SHARD_UNIT_ROWS if model.is_autoregressive else SCORE_BLOCK_ROWS
    draws = options.typical_draws
    while at_once > SCORE_BLOCK_ROWS and at_once * draws > _EVALUATIONS_BETWEEN_LOOKS:
        at_once //= 2
    return at_once


def _runs(first_row: int, n_rows: int, at_once: int) -> Iterator[range]:
    """Yields ranges of row numbers from `first_row` on, which end at multiples of `at_once`."""
    end = first_row + n_rows
    while first_row < end:
        last = min(end, first_row - first_row % at_once + at_once)
        yield range(first_row, last)
        first_row = last


def reference_key(options: ScoreOptions) -> str:
    """Returns the key of the held-out scores (`RowScorer.reference`) that treat missing cells as
    scores of these options do."""
    return "missingness_scored" if options.score_missingness else "blanks_integrated"


def reference_scores(
    model: GenerativeModel,
    codec: TableCodec,
    rows: EncodedTable,
    acceptance: Acceptance,
    seed: int,
    report: Report = report_to_nobody,
    code_counts: Sequence[Tensor] | None = None,
) -> dict[str, list[float]]:
    """Returns sorted scores of held-out rows, among which later scores are ranked.

    The key `missingness_scored` has scores to which a missing cell contributes its probability of
    being missing; under `blanks_integrated`, it is integrated out. If the model is autoregressive,
    `anomaly` has the sorted anomaly statistics (`row_tails`).

    Args:
        rows: Held-out rows, encoded.
        acceptance: Measured share of generated rows that satisfy the hard rules.
        report: Receives the fraction that is done.
        code_counts: Number of rows of the training table with each integer code, for each column.
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
    noise = RowNoise.numbered(seed, "held-out anomalies", range(n))
    tails = cell_tails(model, rows, noise, code_counts)
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
    """Returns the bound on each row's log-likelihood in the table's units, without the hard rules'
    contribution. `report` receives the number of finished rows. Shape: (n,)."""
    bounds = [torch.zeros(0, dtype=torch.float64)]
    for index in torch.arange(len(rows)).split(_REFERENCE_BLOCK_ROWS):
        if len(index):
            noise = RowNoise.numbered(options.seed, "held-out scores", index.tolist())
            bounds.append(score(model, rows.take(index), options, noise).bound)
            report(int(index[-1]) + 1)
    return torch.cat(bounds) - codec.log_units(rows)
