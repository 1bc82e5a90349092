"""Reference scores for rows with missing cells, from generated rows with the same cells missing.

A row with only two known cells has a far higher likelihood than a complete row, so it is ranked
only among generated rows with the same known cells.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from gcvae.arrays import Mask, Numbers
from gcvae.codec.encoded_table import EncodedTable
from gcvae.files.shards import SHARD_UNIT_ROWS
from gcvae.model.bounds import iwae_bound
from gcvae.numerics.generators import generator_for
from gcvae.numerics.row_noise import RowNoise
from gcvae.sampling.constrained import ConstrainedModel
from gcvae.scoring.partly_known_rows import with_blank_cells
from gcvae.scoring.score_options import BLANK_REFERENCE_ROWS, MOST_BLANK_SETS

_WHOLE_ROWS = 1_000
"""Number of generated rows among which a row without missing cells is ranked, if the model only
reveals whether a row is rare."""
_DRAWS = 16
"""Number of draws of z for each row."""
_MOST_KEPT = 256
"""Maximum number of sets of missing columns whose reference scores are cached."""


@dataclass(frozen=True)
class BlankReferences:
    """Computes and caches sorted scores of generated rows with given cells missing, among which
    rows with the same missing cells are ranked.

    The reference scores do not depend on the scored rows or their seed.

    Attributes:
        constrained: Model with its hard rules, which generates the rows.
    """

    constrained: ConstrainedModel
    _kept: dict[bytes, Numbers] = field(default_factory=dict)

    @cached_property
    def _rows(self) -> EncodedTable:
        generator = generator_for(0, "rows for blanks")
        return self.constrained.draw(_WHOLE_ROWS, _WHOLE_ROWS, generator)

    def scores(self, is_blank: Mask) -> Numbers:
        """Returns the ascending scores of R generated rows with given cells missing. Shape: (R,).

        Args:
            is_blank: Mask of the missing cells of a row: D entries for its encoded columns, then C
                entries for the table's columns. Shape: (D + C,).
        """
        key = is_blank.tobytes()
        if key not in self._kept:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[key] = self._scored(is_blank)
        return self._kept[key]

    def _scored(self, is_blank: Mask) -> Numbers:
        model, codec = self.constrained.model, self.constrained.codec
        own = self._rows
        if is_blank.any():
            own = own.take(torch.arange(BLANK_REFERENCE_ROWS))
        rows = with_blank_cells(self.constrained, own, is_blank)
        noise = RowNoise.numbered(0, "scores for blanks", range(len(rows)))
        with torch.no_grad():
            bounds = iwae_bound(model, rows, noise, n_draws=_DRAWS).bound
        in_units = bounds - codec.log_units(rows)
        log_share = float(np.log(self.constrained.acceptance.share))
        return np.sort(in_units.numpy() - log_share)


class BlankRanks:
    """Ranks rows with missing cells among generated rows, in one pass over a table.

    Each set of missing columns needs scores of its own generated rows, which takes time. The table
    is therefore divided into units of SHARD_UNIT_ROWS rows, and in each unit only rows with one of
    the first MOST_BLANK_SETS different sets get percentiles. Sets are counted by unit, so that a
    part of a table that consists of complete units gets the same percentiles as within the table.
    """

    def __init__(self, references: BlankReferences) -> None:
        """Prepares for the first row."""
        self._references = references
        self._unit = -1
        self._seen: set[bytes] = set()

    def percentiles(self, scores: Numbers, are_blank: Mask, first_row: int) -> Numbers:
        """Returns the percentile, from 0 to 100, of each row with missing cells.

        NaN for complete rows, and for rows whose set of missing columns is beyond the first
        MOST_BLANK_SETS sets of the unit.

        Args:
            scores: Scores of the rows, in nats. Shape: (n,).
            are_blank: Mask of the missing cells of each row: D entries for its encoded columns,
                then C entries for the table's columns. Shape: (n, D + C).
            first_row: Number of the first of these rows in the table. All rows must lie in one unit
                of SHARD_UNIT_ROWS rows.
        """
        if first_row // SHARD_UNIT_ROWS != self._unit:
            self._unit, self._seen = first_row // SHARD_UNIT_ROWS, set()
        found = np.full(len(scores), np.nan)
        for is_blank, at in _sets(are_blank):
            key = is_blank.tobytes()
            if is_blank.all():  # without known cells, all scores are 0 up to the error of draws
                found[at] = 50.0
            elif key in self._seen or len(self._seen) < MOST_BLANK_SETS:
                self._seen.add(key)
                found[at] = mid_ranks(self._references.scores(is_blank), scores[at])
        return found


def mid_ranks(reference: Numbers, scores: Numbers) -> Numbers:
    """Returns the percentile, from 0 to 100, of each score among reference scores; ties count half.

    Args:
        reference: Ascending reference scores. Shape: (R,).
        scores: Scores to rank. Shape: (n,).
    """
    below, not_above = (np.searchsorted(reference, scores, side) for side in ("left", "right"))
    percentiles: Numbers = 50.0 * (below + not_above) / len(reference)
    return percentiles


def _sets(are_blank: Mask) -> Iterator[tuple[Mask, npt.NDArray[np.intp]]]:
    """Yields (set of missing cells, indices of its rows) for each set, in order of appearance."""
    places: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(are_blank.any(axis=1)):
        places.setdefault(are_blank[i].tobytes(), []).append(int(i))
    for rows in places.values():
        yield are_blank[rows[0]], np.array(rows)
