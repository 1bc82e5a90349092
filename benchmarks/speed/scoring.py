"""Rows of Adult scored: by tolerance, with fixed draws, and the matrix products of those draws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchmarks.quality.tables import load_table
from benchmarks.speed.limits import ROWS_AT_ONCE, products_step
from benchmarks.speed.measures import Measure, Options, cpu_seconds_of
from benchmarks.speed.sampling import fitted
from gcvae import Synthesizer
from gcvae.arrays import Numbers

FIXED_DRAWS, MANY_DRAWS = 64, 1000
_COVERAGE_ROWS = 1000
_TIMED_FIXED_ROWS = 4096
_SCORED_BEFORE = 4096
"""Rows that are scored before the first is timed: references of blanks are made once."""
_Z = 1.96


def measure(options: Options) -> Iterator[Measure]:
    """Rows per CPU second of the test rows, in turns, and how far the standard errors hold."""
    synthesizer = fitted("default", options)
    rows = load_table("adult", options.data).test
    yield from _rates(synthesizer, rows, options.repeats)
    yield from _coverage(synthesizer, rows.iloc[:: max(1, len(rows) // _COVERAGE_ROWS)])


def _rates(synthesizer: Synthesizer, rows: pd.DataFrame, repeats: int) -> Iterator[Measure]:
    # What a cell adds to the running sum is the same at every draw of its row.
    products = {
        "products": products_step(synthesizer.model, left_out=("add",)),
        "oneDNN's products": products_step(synthesizer.model, ("add",), by_onednn=True),
    }
    some = rows.head(_TIMED_FIXED_ROWS)
    synthesizer.log_likelihood(rows.head(_SCORED_BEFORE), draws=2)
    found: dict[str, list[float]] = {what: [] for what in ("tolerance", "fixed", *products)}
    for seed in range(repeats):
        seconds = cpu_seconds_of(lambda: synthesizer.log_likelihood(rows, seed=seed))  # noqa: B023
        found["tolerance"].append(len(rows) / seconds)
        seconds = cpu_seconds_of(
            lambda: synthesizer.log_likelihood(some, draws=FIXED_DRAWS, seed=seed)  # noqa: B023
        )
        found["fixed"].append(len(some) / seconds)
        for what, step in products.items():
            step()
            seconds = cpu_seconds_of(lambda: [step() for _ in range(FIXED_DRAWS)])  # noqa: B023
            found[what].append(ROWS_AT_ONCE / seconds)
    for what, values in found.items():
        yield Measure("score", what, "rows/s", tuple(values))


def _coverage(synthesizer: Synthesizer, rows: pd.DataFrame) -> Iterator[Measure]:
    """Shares of rows whose score lies within 1.96 standard errors of many draws', by deciles."""
    many = synthesizer.log_likelihood(rows, draws=MANY_DRAWS, seed=1001)
    scores = synthesizer.log_likelihood(rows, seed=1)
    off = (scores["log_likelihood"] - many["log_likelihood"]).to_numpy()
    error = np.hypot(scores["standard_error"], many["standard_error"]).to_numpy()
    covered: Numbers = 100.0 * (np.abs(off) < _Z * error)
    ranks = many["log_likelihood"].rank(method="first").to_numpy()
    decile = np.minimum(((ranks - 1) * 10 / len(rows)).astype(int), 9)
    by_decile = tuple(float(covered[decile == k].mean()) for k in range(10))
    yield Measure("score", "mean difference", "nats", (float(off.mean()),))
    yield Measure("score", "mean error", "nats", (float(scores["standard_error"].mean()),))
    yield Measure("score", "coverage", "%", (float(covered.mean()),))
    yield Measure("score", "coverage by decile", "%", by_decile)
