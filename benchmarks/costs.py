"""How far the estimates of `gcvae.training.costs` are off, on five tables.

    python -m benchmarks.costs [--data FOLDER] [--rows 2000]

For each table and the presets fast and default it prints the CPU seconds of a fit, of 20,000
generated rows, of the scores of 300 rows and of a report, each beside its estimate, and the memory
of the fit. Each fit runs in a process of its own, on one thread.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from pathlib import Path

import pandas as pd
import torch

from benchmarks.quality.tables import NoTableError, data_folder, load_table
from gcvae import Synthesizer
from gcvae.scoring.score_options import ScoreOptions
from gcvae.training.costs import Computation, cost, passes_of
from gcvae.training.settings import configure, settle

_TABLES = ("auto", "shoppers", "magic", "flights", "adult")
_PRESETS = ("fast", "default")
_SAMPLED, _SCORED = 20_000, 300


def main() -> int:
    """Measures and prints. Returns: 0 done, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the tables")
    parser.add_argument("--rows", type=int, default=2_000, help="rows of each table at most")
    given = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for name in _TABLES:
        try:
            table = load_table(name, given.data).train.head(given.rows)
        except NoTableError as error:
            print(error, file=sys.stderr)
            return 2
        for preset in _PRESETS:
            child = context.Process(target=_measure, args=(name, table, preset))
            child.start()
            child.join()
            if child.exitcode:
                return child.exitcode
    return 0


def _measure(name: str, table: pd.DataFrame, preset: str) -> None:
    torch.set_num_threads(1)
    rows, columns = table.shape
    settled = settle(configure(preset), n_rows=rows, n_columns=columns)
    times = [time.process_time()]
    settings = {"report_share": 0.1}
    model = Synthesizer.fit(table, preset=preset, settings=settings, device="cpu", progress=False)
    times.append(time.process_time())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    model.sample(_SAMPLED, seed=1)
    times.append(time.process_time())
    model.log_likelihood(table.head(_SCORED))
    times.append(time.process_time())
    model.report(table)
    times.append(time.process_time())
    costs = {
        "fit": cost(Computation.TRAIN, rows, columns, passes_of(settled, rows)),
        "sample": cost(Computation.SAMPLE, _SAMPLED, columns),
        "score": cost(Computation.SCORE, _SCORED, columns, ScoreOptions().typical_draws),
        "report": cost(Computation.REPORT, rows, columns),
    }
    found = [
        f"{work} {end - start:.1f} s, estimate {costs[work].seconds:.1f} s"
        for work, start, end in zip(costs, times, times[1:], strict=False)
    ]
    estimate = costs["fit"].memory_bytes / 1e6
    found.append(f"memory of the fit {memory / 1e6:.0f} MB, estimate {estimate:.0f} MB")
    print(f"{name} ({rows} x {columns}), {preset}: {'; '.join(found)}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
