"""Estimates the CPU seconds and the memory of work before it starts, from the table's size.

    cost = sum over features of coefficient x feature

Features are numbers of operations, such as cells read, updates, and cells per update. The
coefficients were measured by `python -m benchmarks.costs` on one core, for networks of the preset's
width. The module does not import torch, because the service imports it to estimate costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from gcvae.training.settings import SettledConfig

MOST_ROWS_IN_MEMORY = 100_000
BYTES_PER_ROW = 100
"""Bytes per row of a text column without repeated values, see benchmarks/results/scale-*.json."""
LEVELS_PER_COLUMN = 150
"""Number of levels that cost as much training time as one more column. Trainings of 6,000 orders
with 2,708 levels took 48 (fast) and 53 (default) CPU seconds; the estimates are 51 and 50, and
would be 35 and 41 without the levels."""
_CHUNK_ROWS = 4096
_MOST_REPORT_ROWS, _MOST_COMPARED, _MOST_ATTACKED, _REPORT_DRAWS = 20_000, 5_000, 2_500, 20
"""Sample sizes of a report. Equal to those in `training.reporting.model_report`, which needs
torch."""

Features = dict[str, list[float]]
"""Features for `seconds` and for `memory_bytes`, in the order of their coefficients."""


@dataclass(frozen=True)
class Cost:
    """Estimated cost of a training, a sample, a score or a report.

    Attributes:
        seconds: CPU seconds on one core; for training the maximum, because it may stop early.
        memory_bytes: Peak memory.
    """

    seconds: float
    memory_bytes: int

    def to_json(self) -> dict[str, Any]:
        """Returns a JSON-compatible dict with the attributes and a statement on their accuracy."""
        return asdict(self) | {"accuracy": ACCURACY}


def training_cost(
    preset: str, settled: SettledConfig, rows: int, columns: int, levels: int = 0
) -> Cost:
    """Returns the estimated cost of training on `rows` rows of `columns` columns, with a total
    number of `levels`."""
    width = columns + levels / LEVELS_PER_COLUMN
    found = _cost(f"train {coefficients_of(preset)}", training_features(settled, rows, width))
    return replace(found, memory_bytes=found.memory_bytes + BYTES_PER_ROW * rows)


def sampling_cost(preset: str, rows: int, columns: int) -> Cost:
    """Returns the estimated cost of generating `rows` rows without conditions."""
    return _cost(f"sample {coefficients_of(preset)}", sampling_features(rows, columns))


def scoring_cost(preset: str, rows: int, columns: int, draws: int) -> Cost:
    """Returns the estimated cost of scoring `rows` rows with `draws` latent vectors for each."""
    return _cost(f"score {coefficients_of(preset)}", scoring_features(rows, columns, draws))


def reporting_cost(preset: str, rows: int, columns: int, unseen: int) -> Cost:
    """Returns the estimated cost of a quality report on a model.

    Only the cost of generating and scoring rows depends on the preset. `unseen` is the number of
    real rows that were not used in training.
    """
    like = coefficients_of(preset)
    drawn = sampling_features(min(rows, _MOST_REPORT_ROWS), columns)["seconds"][1:]
    scored = scoring_features(2 * min(unseen, _MOST_ATTACKED), columns, _REPORT_DRAWS)["seconds"]
    by_model = (
        (COEFFICIENTS[f"sample {like}"]["seconds"][1:], drawn),
        (COEFFICIENTS[f"score {like}"]["seconds"][1:], scored[1:]),
    )
    used = sum(c * x for pair in by_model for c, x in zip(*pair, strict=True))
    found = _cost("report", reporting_features(rows, columns, unseen))
    return replace(found, seconds=round(found.seconds + used, 1))


def training_features(settled: SettledConfig, rows: int, columns: float) -> Features:
    """Returns the predictors (numbers of operations) of the cost of a training without early
    stopping. Memory grows with the rows up to `MOST_ROWS_IN_MEMORY`; larger tables are stored in
    files."""
    steps = math.ceil(settled.max_steps * (1.0 + settled.annealing))
    batch = min(settled.batch_size, rows) * columns
    return {
        "seconds": [1.0, rows * columns, steps, steps * batch],
        "memory_bytes": [1.0, min(rows, MOST_ROWS_IN_MEMORY) * columns, batch],
    }


def sampling_features(rows: int, columns: int) -> Features:
    """Returns the predictors of the cost of generating rows, which are written in blocks."""
    return {"seconds": [1.0, rows * columns], "memory_bytes": [1.0, columns]}


def scoring_features(rows: int, columns: int, draws: int) -> Features:
    """Returns the predictors of the cost of scoring rows, which are read in chunks."""
    return {
        "seconds": [1.0, rows * columns, rows * columns * draws],
        "memory_bytes": [1.0, min(rows, _CHUNK_ROWS) * columns, columns * draws],
    }


def reporting_features(rows: int, columns: int, unseen: int) -> Features:
    """Returns the predictors of the cost of a report, without generating and scoring rows."""
    taken = min(rows, _MOST_REPORT_ROWS) * columns
    compared = min(rows, _MOST_COMPARED) * columns
    attacked = min(unseen, _MOST_ATTACKED) * columns
    return {
        "seconds": [1.0, rows * columns, taken, compared, compared * columns, attacked],
        "memory_bytes": [1.0, taken, compared],
    }


def coefficients_of(preset: str) -> str:
    """Returns the preset whose measured coefficients apply to `preset`; those of the paper share
    one's."""
    return "paper-gcvae" if preset.startswith("paper-") else preset


def _cost(work: str, features: Features) -> Cost:
    def total(name: str) -> float:
        coefficients: Sequence[float] = COEFFICIENTS[work][name]
        return sum(c * x for c, x in zip(coefficients, features[name], strict=True))

    return Cost(round(total("seconds"), 1), round(total("memory_bytes")))


COEFFICIENTS: Mapping[str, Mapping[str, Sequence[float]]] = {
    "train default": {
        "seconds": (6.5, 2.49e-05, 0.0254, 2.82e-06),
        "memory_bytes": (712e6, 332.0, 0.0),
    },
    "train fast": {
        "seconds": (7.5, 6.18e-06, 0.00971, 8.63e-06),
        "memory_bytes": (613e6, 417.0, 0.0),
    },
    "train gcvae": {"seconds": (7.96, 5.86e-05, 0.0231, 0.0), "memory_bytes": (612e6, 294.0, 0.0)},
    "train paper-gcvae": {
        "seconds": (6.67, 1.14e-05, 0.00441, 2.22e-06),
        "memory_bytes": (514e6, 233.0, 0.0),
    },
    "sample default": {"seconds": (3.29, 3.38e-06), "memory_bytes": (434e6, 2360000.0)},
    "score default": {"seconds": (4.2, 0.0, 3.07e-06), "memory_bytes": (450e6, 545.0, 13800.0)},
    "sample fast": {"seconds": (3.32, 2.39e-06), "memory_bytes": (425e6, 1330000.0)},
    "score fast": {"seconds": (4.16, 8.52e-06, 1.64e-06), "memory_bytes": (447e6, 379.0, 8400.0)},
    "sample gcvae": {"seconds": (3.68, 5.51e-06), "memory_bytes": (429e6, 4720000.0)},
    "score gcvae": {"seconds": (4.43, 4.88e-06, 6.31e-06), "memory_bytes": (481e6, 0.0, 28400.0)},
    "sample paper-gcvae": {"seconds": (3.19, 7.33e-07), "memory_bytes": (407e6, 1210000.0)},
    "score paper-gcvae": {
        "seconds": (3.13, 5.29e-05, 3.31e-06),
        "memory_bytes": (423e6, 1450.0, 28400.0),
    },
    "report": {
        "seconds": (7.73, 5.52e-06, 0.0, 0.000137, 0.0, 0.00064),
        "memory_bytes": (493000000.0, 899.0, 0.0),
    },
}
"""Coefficients by work and preset, measured on parts of one table (Adult), see
benchmarks/results/costs-*.json."""
ACCURACY = (
    "measured on one machine and one table, of which the estimates are 0.75 to 1.16 times the CPU "
    "seconds and 0.84 to 1.08 times the memory; whole trainings of two other tables, which stopped "
    "early, took 0.4 to 0.9 times the estimated seconds, and a report of 200 columns half of them. "
    "Settings that widen the networks take "
    "more, and so does a busy or a slower machine."
)
"""Statement on the accuracy of estimates, for users."""
