"""The command `python -m benchmarks.protocols`."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from itertools import product
from pathlib import Path

from threadpoolctl import threadpool_limits

from benchmarks.protocols.page import render_page
from benchmarks.quality.models import PRESET_NAMES
from benchmarks.quality.results import MEASURES, Results, ResultsError, new_run
from benchmarks.quality.runs import RunFailedError, RunOptions
from benchmarks.quality.tables import (
    PROTOCOL_TABLES,
    BenchmarkTable,
    NoTableError,
    data_folder,
    load_protocol_table,
)
from gcvae.errors import GcvaeError

_ROOT = Path(__file__).parents[2]


def main() -> int:
    """Runs the benchmark. Returns: 0 all runs done, 1 a run failed, 2 wrong usage."""
    given = _arguments()
    if find_spec("xgboost") is None:
        return _refuse("XGBoost is not installed; `make bench-protocols` or the extra `protocols`")
    try:
        results = Results.open(given.output)
        extra = [Results.open(path) for path in given.merge]
        tables = [load_protocol_table(name, given.data) for name in given.tables]
    except (NoTableError, ResultsError) as error:
        return _refuse(str(error))
    with threadpool_limits(1):
        n_failed = _run_all(results, extra, tables, given)
    for other in extra:
        results.merge(other)
    command = " ".join(["python -m benchmarks.protocols", *sys.argv[1:]])
    given.page.write_text(render_page(results, command))
    print(f"{given.output} and {given.page} are written", flush=True)
    return 1 if n_failed else 0


def _run_all(
    results: Results, extra: list[Results], tables: list[BenchmarkTable], given: argparse.Namespace
) -> int:
    """Does every run that is not done, seed by seed. Returns: how many failed."""
    from benchmarks.protocols.runs import measure_run, measure_table  # they import XGBoost

    n_failed = 0
    for seed, table in product(range(given.seeds), tables):
        if table.name not in results.tables:
            results.tables[table.name] = {"measures": MEASURES} | measure_table(table)
            results.save()
        if any(done.has(table.name, given.preset, {}, seed) for done in (results, *extra)):
            continue
        run = new_run(table.name, given.preset, {}, seed)
        try:
            figures = measure_run(table, given.preset, seed, given.time_limit_seconds)
            versions = run["versions"] | figures.pop("versions")
            run |= figures | {"versions": versions}
            found = f"{run['detection']:.3f}, held-out {run['held_out']:.3f}"
        except (RunFailedError, GcvaeError) as error:
            run["failed"] = found = str(error)
            n_failed += 1
        print(f"{table.name}, {given.preset}, seed {seed}: {found}", flush=True)
        results.add(run)
    return n_failed


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.protocols", description=__doc__)
    add = parser.add_argument
    add("--tables", type=lambda text: text.split(","), default=list(PROTOCOL_TABLES),
        metavar="A,B",
        help=f"of {', '.join(PROTOCOL_TABLES)}, and files as path.csv:target")  # fmt: skip
    add("--seeds", type=int, default=1, help="runs of each table: seeds 0, 1, ...")
    add("--preset", choices=PRESET_NAMES, default="default")
    add("-o", "--output", type=Path, default=_ROOT / "benchmarks/results/protocols.json",
        help="results; runs that stand in it are not done again")  # fmt: skip
    add("--merge", type=Path, nargs="*", default=[], metavar="FILE", help="further results to show")
    add("--page", type=Path, default=_ROOT / "docs/protocols.md", help="the rendered tables")
    add("--data", type=Path, default=data_folder(), help="folder of the tables (GCVAE_DATA_DIR)")
    add("--time-limit-seconds", type=float, default=RunOptions.time_limit_seconds,
        help="of each model's process")  # fmt: skip
    return parser.parse_args()


def _refuse(line: str) -> int:
    print(f"benchmarks.protocols: {line}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
