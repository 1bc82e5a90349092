"""What columns, rows and levels cost: time and memory of fits and samples, each in a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import torch

from benchmarks.quality.results import peak_bytes
from benchmarks.speed.measures import Measure, Options, cpu_seconds_of
from gcvae import Synthesizer

COLUMNS = (10, 30, 100, 500)
_STEPS, DRAWN = 40, 10_000
"""Updates of the fits by columns, and their rows, which are as many as are drawn."""
LEVELS = (100, 100_000)
_ROWS_OF_LEVELS, _COLUMNS_OF_LEVELS = 600_000, 10


def measure(options: Options) -> Iterator[Measure]:
    """CPU seconds, and bytes of memory at the peak, of each process."""
    for kind, counts in (("columns", COLUMNS), ("levels", LEVELS)):
        for count in counts:
            for what, value in _in_a_process(kind, count).items():
                unit = "bytes" if what == "memory" else "s"
                yield Measure(f"growth {kind} {count}", what, unit, (value,))


def _in_a_process(kind: str, count: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.speed.growth", kind, str(count)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """The other process: fits, draws and prints."""
    kind, count = sys.argv[1], int(sys.argv[2])
    torch.set_num_threads(1)
    settings: dict[str, Any] = {}
    if kind == "columns":
        table = _of_columns(np.random.default_rng(0), DRAWN, count)
        settings = {"max_steps": _STEPS, "patience_steps": _STEPS}
    else:
        table = _of_levels(np.random.default_rng(0), count)
    fitted: list[Synthesizer] = []
    fit = cpu_seconds_of(
        lambda: fitted.append(Synthesizer.fit(table, settings=settings, seed=0, device="cpu"))
    )
    draw = cpu_seconds_of(lambda: fitted[0].sample(DRAWN, seed=1))
    print(json.dumps({"fit": fit, "draw": draw, "memory": peak_bytes()}))


def _of_columns(rng: np.random.Generator, rows: int, count: int) -> pd.DataFrame:
    """Half numbers, half levels, which depend on three hidden numbers."""
    scores = rng.normal(size=(rows, 3)) @ rng.normal(size=(3, count))
    scores += rng.normal(size=scores.shape)
    columns: dict[str, Any] = {f"number {j}": scores[:, j].round(2) for j in range(0, count, 2)}
    for j in range(1, count, 2):
        codes = np.digitize(scores[:, j], np.linspace(-3, 3, 3 + j % 9))
        columns[f"group {j}"] = np.array([f"level {k}" for k in range(20)], dtype=object)[codes]
    return pd.DataFrame(columns)


def _of_levels(rng: np.random.Generator, count: int) -> pd.DataFrame:
    """The first column has so many levels, of which each foretells a little of the others."""
    table = _of_columns(rng, _ROWS_OF_LEVELS, _COLUMNS_OF_LEVELS - 1)
    rank = table["number 0"].rank(pct=True).to_numpy()
    code = (count * rank + 0.1 * count * rng.normal(size=len(table))).astype(int) % count
    table.insert(0, "place", [f"place {k:06d}" for k in code])
    return table


if __name__ == "__main__":
    main()
