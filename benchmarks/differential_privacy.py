"""What a promise costs: the default model on Adult under differential privacy, beside real rows.

    python -m benchmarks.differential_privacy --epsilon 1 3 10 --output RESULTS.json
    python -m benchmarks.differential_privacy --page RESULTS.json

A table that is private needs a schema that nobody read from it. Here the bounds below are chosen by
hand (age has the table's own), and the levels, and which cells may be missing, are taken from the
schema of the training rows; the codebook published with the table lists the same levels. The test
rows judge utility alone. Each run is a line of the answer as soon as it is done.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.pages_of_results import replaced_part, table_of
from benchmarks.quality.measures import utility
from benchmarks.quality.results import peak_bytes, processor
from benchmarks.quality.tables import BenchmarkTable, data_folder, load_table
from gcvae import Synthesizer
from gcvae.cells.values import parse_table
from gcvae.evaluation.fidelity import classifier_two_sample_auc, shape_error, two_way_tv

DELTA = 1e-6
PAGE, PART = Path("docs") / "differential-privacy.md", "costs"
# Ages in years, money in dollars.
BOUNDS = {
    "age": (17, 90),
    "fnlwgt": (10_000, 1_500_000),
    "education_num": (1, 16),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 5_000),
    "hours_per_week": (1, 99),
}


def declared_adult(table: BenchmarkTable) -> dict[str, Any]:
    """Adult's schema with the bounds above, and the levels of the training rows."""
    columns = []
    for column in table.schema:
        bounds = BOUNDS.get(column.name)
        declared: dict[str, Any] = {"name": column.name, "kind": str(column.kind)}
        declared["missing"] = {"allowed": column.missing.allowed}
        if bounds is not None:
            declared |= {"minimum": bounds[0], "maximum": bounds[1]}
        else:
            declared["levels"] = list(column.levels or ())
        columns.append(declared)
    return {"columns": columns}


def run(table: BenchmarkTable, epsilon: float, seed: int) -> dict[str, Any]:
    """The figures of one fit."""
    promise = {"epsilon": epsilon, "delta": DELTA, "target": table.target}
    phases = _PhaseClock()
    started_at = time.process_time()
    synthesizer = Synthesizer.fit(
        table.train,
        schema=declared_adult(table),
        settings={"differential_privacy": promise},
        seed=seed,
        progress=phases,
    )
    cpu_seconds = time.process_time() - started_at
    drawn = synthesizer.sample(len(table.train), seed=seed)
    record = synthesizer.training_record["differential_privacy"]
    counted = [entry["what"] for entry in record["measured"]]
    return {
        "epsilon": epsilon,
        "delta": DELTA,
        "seed": seed,
        "cpu_seconds": round(cpu_seconds, 1),
        "cpu_seconds_until": phases.ends,
        "peak_bytes": peak_bytes(),
        "measured": {what: counted.count(what) for what in dict.fromkeys(counted)},
        "rho": record["rho"],
        "rows_estimated": record["rows_estimated"],
        "attack_ceilings": record["attack_ceilings"],
    } | figures(table, drawn)


class _PhaseClock:
    """The CPU seconds at which each phase was seen last."""

    def __init__(self) -> None:
        self._began_at = time.process_time()
        self.ends: dict[str, float] = {}

    def __call__(self, progress: Any) -> None:
        self.ends[progress.phase] = round(time.process_time() - self._began_at, 1)


def figures(table: BenchmarkTable, drawn: pd.DataFrame) -> dict[str, Any]:
    """How near drawn rows, as text, are to the training rows, and what they are good for."""
    train, test = (parse_table(rows, table.schema) for rows in (table.train, table.test))
    synthetic = parse_table(drawn, table.schema)
    assert table.target is not None
    found = utility(train, synthetic, test, table.schema, table.target)
    return {
        "shape_percent": 100 * shape_error(train, synthetic, table.schema).value,
        "two_way_tv_percent": 100 * two_way_tv(train, synthetic, table.schema).value,
        "c2st": classifier_two_sample_auc(train, synthetic, table.schema).value,
        "utility": found.value,
        "utility_of_real_rows": found.real,
    }


def _written(runs: list[Mapping[str, Any]], path: Path) -> None:
    found = {"table": "adult", "processor": processor(), "date": str(date.today()), "runs": runs}
    path.write_text(json.dumps(found, indent=1) + "\n")


_HEADS = (
    "ε",
    "runs",
    "two-way TV",
    "Shape",
    "C2ST",
    "utility; that of real rows",
    "CPU seconds",
)


def lines_of_page(document: Mapping[str, Any]) -> str:
    """The table of docs/differential-privacy.md: means of the runs of each epsilon, and ranges."""
    lines: list[list[str]] = []
    for epsilon in sorted({found["epsilon"] for found in document["runs"]}):
        runs = [found for found in document["runs"] if found["epsilon"] == epsilon]
        real = runs[0]["utility_of_real_rows"]
        lines.append(
            [
                f"{epsilon:g}",
                f"{len(runs)}",
                f"{_figure(runs, 'two_way_tv_percent', '.2f')} %",
                f"{_figure(runs, 'shape_percent', '.2f')} %",
                _figure(runs, "c2st", ".3f"),
                f"{_figure(runs, 'utility', '.3f')}; {real:.3f}",
                f"{_mean(runs, 'cpu_seconds'):.0f}",
            ]
        )
    return table_of(_HEADS, lines)


def _mean(runs: Sequence[Mapping[str, Any]], name: str) -> float:
    return sum(float(found[name]) for found in runs) / len(runs)


def _figure(runs: Sequence[Mapping[str, Any]], name: str, form: str) -> str:
    """The mean of the runs, with the lowest and the highest of several."""
    values = [float(found[name]) for found in runs]
    if len(values) == 1:
        return f"{values[0]:{form}}"
    return f"{_mean(runs, name):{form}} ({min(values):{form}}–{max(values):{form}})"


def main() -> None:
    """Runs what the command line asks for, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 10.0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--output", type=Path, default=None)
    parser.add_argument("--page", type=Path, help="results that docs/differential-privacy.md shows")
    arguments = parser.parse_args()
    if arguments.page is not None:
        document = json.loads(arguments.page.read_text())
        PAGE.write_text(replaced_part(PAGE.read_text(), PART, lines_of_page(document)))
        return
    table = load_table("adult", data_folder())
    runs: list[Mapping[str, Any]] = []
    for seed in range(arguments.seeds):
        for epsilon in arguments.epsilon:
            runs.append(run(table, epsilon, seed))
            sys.stdout.write(json.dumps(runs[-1]) + "\n")
            sys.stdout.flush()
            if arguments.output is not None:
                _written(runs, arguments.output)


if __name__ == "__main__":
    main()
