"""Estimates the seconds of each step of a fit on one CPU core, from the table's size.

The coefficients were measured by `python -m benchmarks.progress`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gcvae.sampling.constrained import MEASURED_ROWS
from gcvae.scoring.row_scores import REFERENCE_ROWS
from gcvae.training.calibration import PRIOR_ROWS, rows_drawn
from gcvae.training.costs import coefficients_of
from gcvae.training.settings import SettledConfig

_STEP = {
    "default": (0.0085, 6.5e-6),
    "fast": (0.0085, 3.5e-6),
    "gcvae": (0.0125, 6.5e-6),
    "paper-gcvae": (0.003, 1.6e-6),
}
"""Seconds per update of the weights, and per cell of a minibatch."""
_DRAWING = {
    "default": (5.0e-6, 1.65e-5),
    "fast": (3.0e-6, 9.0e-6),
    "gcvae": (4.5e-6, 4.5e-6),
    "paper-gcvae": (1.0e-6, 1.0e-6),
}
"""Seconds per generated and calibrated cell: of columns of codes only, and of numbers."""
_SCORING = {"default": 1.2e-4, "fast": 8e-5, "gcvae": 1.0e-3, "paper-gcvae": 4.6e-4}
"""Seconds per scored cell."""
_PRIOR, _MAP = (0.1, 2e-5), 3e-9
"""Seconds to fit a prior, and per row to which it is fitted; seconds per pair of cells compared for
a dependency map."""
_MOST_PAIRS = 2e8


@dataclass(frozen=True)
class TableSize:
    """Size of a table.

    Attributes:
        rows: Number of rows.
        columns: Number of modelled columns.
        numbers: Number of columns of numbers that have a density, because not all of their numbers
            are frequent values.
    """

    rows: int
    columns: int
    numbers: int


def step_seconds(preset: str, settled: SettledConfig, table: TableSize) -> float:
    """Returns the estimated seconds of one update of the weights.

    Args:
        table: Size of the table.
    """
    by_step, by_cell = _STEP[coefficients_of(preset)]
    return by_step + by_cell * min(settled.batch_size, table.rows) * table.columns


def finishing_seconds(
    preset: str, settled: SettledConfig, table: TableSize, *, has_hard_rules: bool
) -> dict[str, float]:
    """Returns the estimated seconds of each step after training, by name in order.

    Steps that the settings omit take 0.

    Args:
        table: Size of the table.
        has_hard_rules: Whether the table has hard rules, whose acceptance is measured.
    """
    like, rows = coefficients_of(preset), table.rows
    n_drawn = rows_drawn(rows)
    n_held_out = min(max(1, round(settled.held_out_share * rows)), REFERENCE_ROWS)
    by_code, by_number = _DRAWING[like]
    drawn_row = by_code * (table.columns - table.numbers) + by_number * table.numbers
    parts: Mapping[str, tuple[bool, float]] = {
        "prior": (settled.prior == "mixture", _PRIOR[0] + _PRIOR[1] * min(rows, PRIOR_ROWS)),
        "calibration": (settled.calibration, n_drawn * drawn_row),
        "acceptance": (has_hard_rules, MEASURED_ROWS * drawn_row),
        "scores": (True, _SCORING[like] * n_held_out * table.columns),
        "map": (True, _MAP * min(0.5 * rows**2 * table.columns, _MOST_PAIRS)),
    }
    return {name: seconds if is_done else 0.0 for name, (is_done, seconds) in parts.items()}
