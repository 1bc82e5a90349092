"""One run: a preset on a table with a seed, and all measures; and the checks of a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xgboost

from benchmarks.protocols.measures import (
    alpha_precision_and_beta_recall,
    detection,
    efficacy,
    held_out_detection,
    permuted,
    trend,
    weighted_nmi,
)
from benchmarks.quality.child import Task
from benchmarks.quality.runs import RunOptions, measure_privacy, run_child
from benchmarks.quality.tables import BenchmarkTable
from gcvae.cells.values import parse_table
from gcvae.evaluation.fidelity import shape_error, trend_error


def measure_table(table: BenchmarkTable) -> dict[str, Any]:
    """Returns what real and permuted rows score in place of a model's, and the table's size."""
    train, test = (parse_table(part, table.schema) for part in (table.train, table.test))
    order = np.random.default_rng(0).permutation(len(train))
    halves = [table.train.iloc[part] for part in np.array_split(order, 2)]
    n = min(len(part) for part in halves)
    return {
        "rows": len(train),
        "test_rows": len(test),
        "columns": len(table.schema),
        "halves": _fidelity(table, halves[0][:n], halves[1][:n]),
        "permuted": detection(table.train, permuted(table.train, 0), table.schema),
        "held_out_real": held_out_detection(test, train, table.schema, 0),
        "held_out_permuted": held_out_detection(test, permuted(train, 0), table.schema, 0),
        "efficacy": None if table.target is None else efficacy(train, test, *_goal(table)),
    }


def measure_run(
    table: BenchmarkTable, preset: str, seed: int, time_limit_seconds: float
) -> dict[str, Any]:
    """Returns the figures of one run.

    Raises:
        RunFailedError: The model's process failed or took too long.
    """
    schema = table.schema
    task = Task(preset, {}, seed, len(table.train), 0, schema.to_json())
    synthetic, cost = run_child(task, table.train, None, time_limit_seconds)
    train, test, made = (parse_table(t, schema) for t in (table.train, table.test, synthetic))
    marginals = permuted(test, seed + 1), permuted(made, seed + 2)
    options = RunOptions(time_limit_seconds=time_limit_seconds)
    return {
        "cost": cost,
        "versions": {"xgboost": xgboost.__version__},
        "held_out": held_out_detection(test, made, schema, seed),
        "held_out_marginals": held_out_detection(*marginals, schema, seed),
        "efficacy": None if table.target is None else efficacy(made, test, *_goal(table)),
        **_fidelity(table, table.train, synthetic),
        **measure_privacy(table, train, task, options),
    }


def _goal(table: BenchmarkTable) -> tuple[Any, str]:
    assert table.target is not None
    return table.schema, table.target


def _fidelity(
    table: BenchmarkTable, real: pd.DataFrame, synthetic: pd.DataFrame
) -> dict[str, float]:
    """Returns the measures of rows beside as many real ones; both with text cells."""
    schema = table.schema
    typed = parse_table(real, schema), parse_table(synthetic, schema)
    precision, recall = alpha_precision_and_beta_recall(real, synthetic, schema)
    return {
        "detection": detection(real, synthetic, schema),
        "shape": 1 - shape_error(*typed, schema).value,
        "trend": 1 - trend_error(*typed, schema).value,
        "trend_real_bins": trend(*typed, schema, "real"),
        "trend_pooled_bins": trend(*typed, schema, "pooled"),
        "weighted_nmi": weighted_nmi(*typed, schema),
        "alpha_precision": precision,
        "beta_recall": recall,
    }
