"""Estimates the CPU time and the memory of a computation in advance, from the table's size.

    seconds = a + b · passes · rows · columns        memory = 450 MB + 700 bytes · rows · columns

The constants a and b depend on the kind of computation (`Computation`). A pass is one pass over all
rows in training, and one draw of the latent vector of each row in scoring. `python -m
benchmarks.costs` compares the estimates with measurements on one core, for 300 to 4,000 rows of
Auto, Shoppers, Magic, flights and Adult, and the presets fast and default. Measured seconds were
0.6 to 2.5 times the estimate for a fit, 0.8 to 1.7 times for a report, 0.2 to 0.7 times for
generated rows and 0.2 to 1.7 times for scores. The memory of a fit was 0.9 to 1.4 times the
estimate. A fit to all 32,561 rows of Adult took half the estimated seconds, because training
stopped early. Columns of many levels take longer, and the presets of the paper take about a third
of the estimate.

The module does not import torch, because the service imports it to estimate costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from gcvae.training.settings import SettledConfig


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
        """Returns a JSON-compatible dict with the attributes."""
        return {"seconds": round(self.seconds, 1), "memory_bytes": self.memory_bytes}


class Computation(Enum):
    """Kinds of computation, each with its constants a (seconds) and b (seconds per cell and pass),
    and the maximum number of rows in memory."""

    TRAIN = 4.0, 9e-6, 100_000
    SAMPLE = 1.0, 3e-6, 4_096
    SCORE = 1.0, 1e-5, 4_096
    REPORT = 1.0, 1.3e-4, 20_000


def cost(computation: Computation, rows: int, columns: int, passes: float = 1.0) -> Cost:
    """Returns the estimated cost of a computation on `rows` rows of `columns` columns."""
    base, by_cell, rows_in_memory = computation.value
    if computation is Computation.REPORT:
        rows = min(rows, rows_in_memory)  # of a larger table, a report reads a sample
    memory = 450_000_000 + 700 * min(rows, rows_in_memory) * columns
    return Cost(base + by_cell * passes * rows * columns, memory)


def passes_of(settled: SettledConfig, rows: int) -> float:
    """Returns the number of passes over the rows of a training that does not stop early."""
    steps = settled.max_steps * (1.0 + settled.annealing)
    return steps * min(settled.batch_size, rows) / max(rows, 1)
