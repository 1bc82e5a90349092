"""How far a row's score at a few draws lies from its score at many, in its own standard errors.

    python -m experiments.bound_coverage [--table adult] [--rows 80] [--seed 0] [--preset default]

Fits a table of the benchmark, scores rows of its test part at 10, 100, 1,000 and 10,000 importance
draws, and prints the mean scores, which must not fall, and the share of rows whose score at 10,000
draws lies within two standard errors of that at 1,000.
"""

from __future__ import annotations

import argparse

import numpy as np
import torch

from benchmarks.quality.tables import TABLE_NAMES, data_folder, load_table
from gcvae import Synthesizer

DRAWS = (10, 100, 1_000, 10_000)


def main() -> None:
    """Prints the means and the coverage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=TABLE_NAMES, default="adult")
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--preset", default="default")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    table = load_table(asked.table, data_folder())
    synthesizer = Synthesizer.fit(table.train, preset=asked.preset, seed=asked.seed)
    scores = {
        draws: synthesizer.log_likelihood(table.test[: asked.rows], draws=draws, seed=1 + i)
        for i, draws in enumerate(DRAWS)
    }
    for draws, found in scores.items():
        print(
            f"{draws:6d} draws: mean {found['log_likelihood'].mean():.4f}, "
            f"mean standard error {found['standard_error'].mean():.4f}",
            flush=True,
        )
    few, many = scores[DRAWS[-2]], scores[DRAWS[-1]]
    off = np.abs(few["log_likelihood"] - many["log_likelihood"])
    print(f"within 2 standard errors: {(off <= 2.0 * few['standard_error']).mean():.1%} of rows")


if __name__ == "__main__":
    main()
