"""The command `python -m benchmarks.imputation`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.imputation.baselines import iterative, most_frequent
from benchmarks.imputation.measures import BlankedTable, blank, judge, mean_of, point_estimate
from benchmarks.imputation.page import render_page
from benchmarks.quality.tables import NoTableError, data_folder, load_table
from gcvae import Synthesizer, parse_table
from gcvae.errors import GcvaeError

_ROOT = Path(__file__).parents[2]


def main() -> int:
    """Runs the benchmark. Returns: 0 done, 1 failed, 2 wrong usage."""
    given = _arguments()
    try:
        table = load_table("adult", given.data)
    except NoTableError as error:
        print(error, file=sys.stderr)
        return 2
    try:
        model = _model(given, table.train)
        test = table.test.head(given.rows) if given.rows else table.test
        test = test.reset_index(drop=True)
        blanked = blank(table.train, test, table.schema, given.share, given.seed)
        document = _measure(model, blanked, given)
    except GcvaeError as error:
        print(error, file=sys.stderr)
        return 1
    for path in (given.output, given.page):
        path.parent.mkdir(parents=True, exist_ok=True)
    given.output.write_text(json.dumps(document, indent=1) + "\n")
    given.page.write_text(render_page(document))
    return 0


def _model(given: argparse.Namespace, train: Any) -> Synthesizer:
    """The trained model of the command line, or a new one."""
    if given.model is not None:
        return Synthesizer.load(given.model)
    settings = {} if given.max_steps is None else {"max_steps": given.max_steps}
    return Synthesizer.fit(train, seed=given.seed, device="cpu", settings=settings)


def _measure(model: Synthesizer, table: BlankedTable, given: argparse.Namespace) -> dict[str, Any]:
    """The result document: figures of each imputer, column by column."""
    started = time.monotonic()
    parts = []
    for number, block in enumerate(
        model.impute_blocks(table.blanked, draws=given.draws, seed=given.seed)
    ):
        parts.append(parse_table(block.drop(columns="draw"), table.schema))
        print(f"block {number + 1}, {time.monotonic() - started:.0f} s", file=sys.stderr)
    draws = pd.concat(parts, ignore_index=True)
    figures = {
        "gcvae": judge(table, point_estimate(draws, given.draws, table.schema)),
        "gcvae, one draw": judge(table, draws.iloc[:: given.draws].reset_index(drop=True)),
    }
    seconds = time.monotonic() - started
    figures["IterativeImputer, most frequent"] = judge(table, iterative(table, given.seed))
    figures["mean or median, most frequent"] = judge(table, most_frequent(table))
    measures = ("accuracy", "error", "absolute_error")
    return {
        "benchmark": "imputation",
        "table": "adult",
        "rows": len(table.truth),
        "share_blanked": given.share,
        "cells_judged": int(table.taken.sum()),
        "seed": given.seed,
        "draws": given.draws,
        "preset": model.preset,
        "seconds": round(seconds, 1),
        "versions": {name: version(name) for name in ("gcvae", "scikit-learn", "torch")},
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "means": {
            name: {measure: mean_of(found, measure) for measure in measures}
            for name, found in figures.items()
        },
        "columns": figures,
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.imputation", description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the tables")
    parser.add_argument("--model", type=Path, help="a trained model of adult_train.csv; else train")
    parser.add_argument("--max-steps", type=int, help="of the training, for a quick look")
    parser.add_argument("--rows", type=int, default=0, help="of the test table; 0 for all")
    parser.add_argument("--share", type=float, default=0.2, help="of the cells that are blanked")
    parser.add_argument("--draws", type=int, default=30, help="imputations of each row")
    parser.add_argument("--seed", type=int, default=0)
    today = datetime.now(UTC).date().isoformat()
    results = _ROOT / "benchmarks" / "results" / f"imputation-{today}.json"
    parser.add_argument("--output", type=Path, default=results)
    parser.add_argument("--page", type=Path, default=_ROOT / "docs" / "imputation.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
