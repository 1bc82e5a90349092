"""The command `python -m benchmarks.quality`."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from itertools import product
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.quality.models import MODEL_NAMES, OTHERS, PRESET_NAMES, absent_package
from benchmarks.quality.page import render_page
from benchmarks.quality.results import MEASURES, Results, ResultsError, new_run
from benchmarks.quality.runs import (
    RunFailedError,
    RunOptions,
    measure_run,
    measure_table,
)
from benchmarks.quality.tables import (
    TABLE_NAMES,
    BenchmarkTable,
    NoTableError,
    data_folder,
    load_table,
)
from gcvae.errors import GcvaeError

_ROOT = Path(__file__).parents[2]


def main() -> int:
    """Runs the benchmark. Returns: 0 all runs done, 1 a run failed, 2 wrong usage."""
    given = _arguments()
    unknown = [name for name in given.models if name not in MODEL_NAMES]
    if unknown:
        return _refuse(f"unknown model {unknown[0]!r}; there are {', '.join(MODEL_NAMES)}")
    try:
        results = Results.open(given.output)
        extra = [Results.open(path) for path in given.merge]
        tables = [load_table(name, given.data) for name in given.tables]
    except (NoTableError, ResultsError) as error:
        return _refuse(str(error))
    importlib.import_module("sklearn.ensemble")  # a limit holds for the libraries that are loaded
    with threadpool_limits(1):  # other work on this machine shall not feel the measures
        n_failed = _run_all(results, extra, tables, given)
    for other in extra:
        results.merge(other)
    given.page.parent.mkdir(parents=True, exist_ok=True)
    given.page.write_text(render_page(results, command=_command()))
    _say(f"{given.output} and {given.page} are written")
    return 1 if n_failed else 0


def _run_all(
    results: Results, extra: list[Results], tables: list[BenchmarkTable], given: argparse.Namespace
) -> int:
    """Does every run that is not done. Returns: how many failed."""
    models = [name for name in given.models if _is_installed(name)]
    for table in tables:
        _measure_table_once(results, table, given.bootstraps)
    n_failed = 0
    # Seed by seed: after an interruption every model has its first figures.
    for seed, table, model in product(range(given.seeds), tables, models):
        settings = dict(given.set) if model in PRESET_NAMES else {}
        is_done = any(r.has(table.name, model, settings, seed) for r in (results, *extra))
        if given.again or not is_done:
            n_failed += not _run_once(results, table, model, seed, settings, given)
    return n_failed


def _measure_table_once(results: Results, table: BenchmarkTable, n_bootstraps: int) -> None:
    if table.name not in results.tables:
        _say(f"{table.name}: measuring floors and real test rows")
        about = measure_table(table, n_bootstraps)
        results.tables[table.name] = {"measures": MEASURES} | about
        results.save()


def _run_once(
    results: Results,
    table: BenchmarkTable,
    model: str,
    seed: int,
    settings: dict[str, Any],
    given: argparse.Namespace,
) -> bool:
    """Does a run and keeps it. Returns: whether its figures are there."""
    _say(f"{table.name} · {model} · seed {seed}")
    run = new_run(table.name, model, settings, seed)
    options = RunOptions(
        n_speed_rows=given.speed_rows,
        n_score_rows=given.score_rows,
        with_privacy=not given.without_privacy,
        time_limit_seconds=given.time_limit_seconds,
    )
    try:
        run |= measure_run(table, model, seed, settings, options)
        _say("  " + _summary(run))
    except (RunFailedError, GcvaeError) as error:  # a sample can also be no table of this schema
        run["failed"] = str(error)
        _say(f"  failed: {error}")
    results.add(run)
    return "failed" not in run


def _summary(run: dict[str, Any]) -> str:
    return (
        f"fit {run['cost']['fit']['cpu_seconds']:.0f} CPU s, shape {100 * run['shape']:.2f} %, "
        f"two-way TV {100 * run['two_way_tv']:.2f} %, C2ST {run['c2st']:.3f}"
    )


def _is_installed(model: str) -> bool:
    package = absent_package(model)
    if package is not None:
        _say(f"{model}: cannot run, the package {package} is not installed (extra `bench`)")
    return package is None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality", description=__doc__)
    add = parser.add_argument
    add("--tables", type=_names, default=list(TABLE_NAMES), metavar="A,B",
        help=f"of {', '.join(TABLE_NAMES)}, and files as path.csv:target")  # fmt: skip
    add("--models", type=_names, default=["default", *OTHERS],
        metavar="A,B", help=f"of {', '.join(MODEL_NAMES)}")  # fmt: skip
    add("--seeds", type=int, default=3, help="runs of each model: seeds 0, 1, ...")
    add("-o", "--output", type=Path, default=_ROOT / "benchmarks/results/quality.json",
        help="results; runs that stand in it are not done again")  # fmt: skip
    add("--merge", type=Path, nargs="*", default=[], metavar="FILE",
        help="further results to show on the page, such as dated ones of slow peers")  # fmt: skip
    add("--page", type=Path, default=_ROOT / "docs/quality.md", help="the rendered tables")
    add("--data", type=Path, default=data_folder(), help="folder of the tables (GCVAE_DATA_DIR)")
    add("--set", type=_setting, action="append", default=[], metavar="KEY=VALUE",
        help="a setting of gcvae's presets")  # fmt: skip
    add("--again", action="store_true", help="do runs again that are done")
    add("--without-privacy", action="store_true", help="leave out the fit on half of the rows")
    add("--bootstraps", type=int, default=20, help="of the floors")
    add("--speed-rows", type=int, default=RunOptions.n_speed_rows, help="of the timed sample")
    add("--score-rows", type=int, default=RunOptions.n_score_rows, help="test rows to score")
    add("--time-limit-seconds", type=float, default=RunOptions.time_limit_seconds,
        help="of each model's process")  # fmt: skip
    return parser.parse_args()


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _setting(text: str) -> tuple[str, Any]:
    key, _, value = text.partition("=")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def _command() -> str:
    return " ".join(["python -m benchmarks.quality", *sys.argv[1:]])


def _say(line: str) -> None:
    print(line, flush=True)


def _refuse(line: str) -> int:
    print(f"benchmarks.quality: {line}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
