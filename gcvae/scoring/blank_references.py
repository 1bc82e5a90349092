"""Scores of a model's own rows with some cells blanked: what a row with blanks is ranked among.

A row of which two cells are known is far likelier than whole rows are. Beside rows of the model
that have the same cells blank it is as likely or unlikely as it is.
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
"""Of the model, among which a flag ranks a row without blanks."""
_DRAWS = 16
"""Of z for each row."""
_MOST_KEPT = 256
"""References that are kept for later calls."""


@dataclass(frozen=True)
class BlankReferences:
    """Sorted scores of rows of a model, for each set of blank columns.

    They do not depend on what is scored, nor on its seed, and are kept.
    """

    constrained: ConstrainedModel
    _kept: dict[bytes, Numbers] = field(default_factory=dict)

    @cached_property
    def _rows(self) -> EncodedTable:
        """The model's rows."""
        generator = generator_for(0, "rows for blanks")
        return self.constrained.draw(_WHOLE_ROWS, _WHOLE_ROWS, generator)

    def scores(self, is_blank: Mask) -> Numbers:
        """Ascending scores of the model's rows with the cells blank that `blank_cells` names.

        Shape: (D + C,) -> (R,).
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
    """Percentiles of rows with blanks in one run over a table, for its first sets of blanks.

    Each set costs a reference. Of SHARD_UNIT_ROWS rows, a unit, those have percentiles whose set is
    among the first MOST_BLANK_SETS of the unit: so shards of a table say what the whole says.
    """

    def __init__(self, references: BlankReferences) -> None:
        """Nothing was seen yet."""
        self._references = references
        self._unit = -1
        self._seen: set[bytes] = set()

    def percentiles(self, scores: Numbers, are_blank: Mask, first_row: int) -> Numbers:
        """0 to 100 at rows with blanks; NaN at whole rows, and where there are too many sets.

        Args:
            scores: Shape: (n,).
            are_blank: As `blank_cells` has them. Shape: (n, D + C).
            first_row: The number of the first of them among all; all are of one unit.
        """
        if first_row // SHARD_UNIT_ROWS != self._unit:
            self._unit, self._seen = first_row // SHARD_UNIT_ROWS, set()
        found = np.full(len(scores), np.nan)
        for is_blank, at in _sets(are_blank):
            key = is_blank.tobytes()
            if is_blank.all():  # nothing is known: all scores are 0, but for the error of draws
                found[at] = 50.0
            elif key in self._seen or len(self._seen) < MOST_BLANK_SETS:
                self._seen.add(key)
                found[at] = mid_ranks(self._references.scores(is_blank), scores[at])
        return found


def mid_ranks(reference: Numbers, scores: Numbers) -> Numbers:
    """Percentiles among ascending scores; of equal ones half are below. (R,), (n,) -> (n,)."""
    below, not_above = (np.searchsorted(reference, scores, side) for side in ("left", "right"))
    percentiles: Numbers = 50.0 * (below + not_above) / len(reference)
    return percentiles


def _sets(are_blank: Mask) -> Iterator[tuple[Mask, npt.NDArray[np.intp]]]:
    """The different sets of blanks, in order of appearance, and the rows that have each."""
    places: dict[bytes, list[int]] = {}
    for i in np.flatnonzero(are_blank.any(axis=1)):
        places.setdefault(are_blank[i].tobytes(), []).append(int(i))
    for rows in places.values():
        yield are_blank[rows[0]], np.array(rows)
