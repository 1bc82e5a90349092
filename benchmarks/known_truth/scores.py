"""Scores against a truth that is known.

Tables of `benchmarks.known_truth.tables` have the exact log density of every row. A model is
trained on rows of one and scores fresh rows: `python -m benchmarks.known_truth.scores
[--table NAME] [--rows 50000] [--fresh 10000]`. It prints the mean score, the mean truth, and the
rank correlation of both.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

from benchmarks.known_truth.tables import SCHEMA, TABLES, KnownTable
from gcvae import Synthesizer


@dataclass(frozen=True)
class Agreement:
    """How scores compare with true log densities, in nats per row.

    Attributes:
        mean_score: Over the fresh rows.
        mean_truth: Over the same rows.
        gap_error: Standard error of the difference of the two means.
        rank_correlation: Spearman's.
        mean_standard_error: Of the scores' own.
    """

    mean_score: float
    mean_truth: float
    gap_error: float
    rank_correlation: float
    mean_standard_error: float

    def __str__(self) -> str:
        gap = self.mean_score - self.mean_truth
        return (
            f"score {self.mean_score:.3f}, truth {self.mean_truth:.3f}, gap {gap:+.3f} "
            f"({self.gap_error:.3f}), rank correlation {self.rank_correlation:.4f}, "
            f"standard error per row {self.mean_standard_error:.3f}"
        )


def agreement(
    table: KnownTable,
    *,
    rows: int,
    fresh_rows: int,
    preset: str,
    settings: Mapping[str, object],
    draws: int,
    seed: int,
) -> Agreement:
    """Trains on rows of a known table and scores fresh ones."""
    fitted = Synthesizer.fit(
        table.draw(rows, seed), schema=SCHEMA, preset=preset, settings=settings, seed=seed
    )
    fresh = table.draw(fresh_rows, seed + 1_000_000)
    truth = table.log_density(fresh)
    scores = fitted.log_likelihood(fresh, draws=draws, seed=seed)
    score = scores["log_likelihood"].to_numpy()
    return Agreement(
        mean_score=float(score.mean()),
        mean_truth=float(truth.mean()),
        gap_error=float((score - truth).std() / np.sqrt(len(truth))),
        rank_correlation=float(stats.spearmanr(score, truth).statistic),
        mean_standard_error=float(scores["standard_error"].mean()),
    )


def main() -> None:
    """Prints one line for each table and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", choices=list(TABLES), action="append")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--fresh", type=int, default=10_000)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.table or TABLES:
        for seed in range(given.seeds):
            found = agreement(
                TABLES[name],
                rows=given.rows,
                fresh_rows=given.fresh,
                preset=given.preset,
                settings={},
                draws=given.draws,
                seed=seed,
            )
            print(f"{name}, {given.preset}, {given.rows} rows, seed {seed}: {found}", flush=True)


if __name__ == "__main__":
    main()
