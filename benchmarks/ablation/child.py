"""The process of one run: `python -m benchmarks.ablation.child TASK.json OUTCOME.json`.

It fits a table with or without a mechanism and measures the model. The baseline keeps its trained
weights, and variants that differ after training begin with these.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from sklearn.metrics import roc_auc_score

from benchmarks.ablation.rules_kept import rules_of, share_of_broken_rows, shares_kept
from benchmarks.ablation.seams import switched_off, watched
from benchmarks.ablation.switches import SWITCHES, Stage
from benchmarks.quality.measures import utility
from benchmarks.quality.presets import GcvaePreset
from benchmarks.quality.tables import BenchmarkTable, load_table
from gcvae.cells.values import format_table, parse_table
from gcvae.codec.rare_levels import OTHER
from gcvae.evaluation.fidelity import classifier_two_sample_auc, two_way_tv
from gcvae.schema.columns import TableSchema
from gcvae.training import fitting, loop

BLANK_SHARE = 0.3
_PARTLY_SCORED = 12
"""Rows with blanks that are scored, which takes longer than to fill them."""


@dataclass(frozen=True)
class Task:
    """What the process is to do.

    Attributes:
        table: Its name.
        source: What `load_table` takes.
        switch: The mechanism that is off; "" for none.
        seed: Of the fit, the draws and the blanks.
        preset: Of the fit.
        rows: To learn from, at most.
        judged: Unseen rows to compare with, at most.
        scored: Unseen rows, and rows of training, that are scored.
        imputed: Unseen rows whose cells are blanked.
        cache: Folder of trained weights and of the baselines' schemas.
    """

    table: str
    source: str
    switch: str
    seed: int
    preset: str
    rows: int
    judged: int
    scored: int
    imputed: int
    cache: str


def run(task: Task, data: Path) -> dict[str, Any]:
    """The figures of the run, and the mechanisms that were in use or asked for."""
    whole = load_table(task.source, data)
    parts = whole.train[: task.rows], whole.test[: task.judged]
    train, test = (part.reset_index(drop=True) for part in parts)
    table = BenchmarkTable(task.table, train, test, whole.schema, whole.target)
    stage = SWITCHES[task.switch].stage if task.switch else None
    reuses = stage in (Stage.FINISHING, Stage.DRAWING, Stage.CONDITIONS)
    if task.switch:
        context = switched_off(SWITCHES[task.switch].seams)
    else:
        context = watched({name: switch.seams for name, switch in SWITCHES.items()})
    weights = None
    if reuses or not task.switch:
        weights = Path(task.cache) / f"{task.table}-{task.rows}-{task.seed}.weights"
    with context as names, patch.object(fitting, "train", _kept(loop.train, weights, reuses)):
        figures = _figures(task, table, stage)
    if task.switch:
        return figures | {"asked": sorted(names)}
    return figures | {"in_use": sorted(names), "watched": sorted(SWITCHES)}


def _kept(train: Callable[..., Any], path: Path | None, reuses: bool) -> Callable[..., Any]:
    """Training that keeps its result in a file, or takes it from there if it `reuses`."""
    if path is None:
        return train

    def trained(model: Any, rows: Any, *args: Any, **kwargs: Any) -> Any:
        if reuses and path.is_file():
            state, result = pickle.loads(path.read_bytes())
            model.load_state_dict(state)
            return result
        result = train(model, rows, *args, **kwargs)
        path.write_bytes(pickle.dumps((model.state_dict(), result)))
        return result

    return trained


def _timed(step: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    return step(), round(time.process_time() - started, 2)


def _figures(task: Task, table: BenchmarkTable, stage: Stage | None) -> dict[str, Any]:
    model = GcvaePreset(task.preset, task.seed, {})
    _, fit_seconds = _timed(lambda: model.fit(table.train, table.schema))
    schema = _baseline_schema(task, model._synthesizer.schema)
    judges = rules_of(schema, table.train)
    figures: dict[str, Any] = {"fit_seconds": fit_seconds}
    if stage is not Stage.CONDITIONS:
        drawn, figures["sample_seconds"] = _timed(lambda: model.sample(len(table.train), task.seed))
        found, figures["judge_seconds"] = _timed(lambda: _fidelity(table, drawn, schema))
        figures |= found
        kept = shares_kept(judges, drawn, schema)
        figures |= {"rules": kept, "rules_kept": float(np.mean([*kept.values()])) if kept else None}
    if stage in (None, Stage.TRAINING, Stage.FINISHING):
        figures |= _scores(model, table, task.scored)
    if task.seed == 0 and (not task.switch or SWITCHES[task.switch].has_conditions):
        figures |= _imputation(model, table, judges, schema, task)
    return figures


def _baseline_schema(task: Task, own: TableSchema) -> TableSchema:
    """The schema with whose rules all variants of a table are judged."""
    path = Path(task.cache) / f"{task.table}-{task.rows}.schema"
    if not task.switch and not path.is_file():
        path.write_bytes(pickle.dumps(own))
    found: TableSchema = pickle.loads(path.read_bytes())
    return found


def _with_other(cells: pd.DataFrame, schema: TableSchema) -> pd.DataFrame:
    """Real cells as a model has them that withholds most levels of a column: "(other)"."""
    found = cells.copy()
    for column in schema:
        levels = {str(level) for level in column.levels or ()}
        if OTHER in levels:
            own = cells[column.name].astype(str)
            found[column.name] = own.where(own.isin(levels) | (own == ""), OTHER)
    return found


def _fidelity(table: BenchmarkTable, drawn: pd.DataFrame, schema: TableSchema) -> dict[str, Any]:
    real = [_with_other(part, schema) for part in (table.train, table.test)]
    train, test, made = (parse_table(part, table.schema) for part in (*real, drawn))
    repeats = max(1, min(3, 500 // len(test)))
    figures: dict[str, Any] = {
        "c2st": classifier_two_sample_auc(test, made, table.schema, n_repeats=repeats).value,
        "two_way_tv": two_way_tv(train, made, table.schema).value,
    }
    if table.target is not None:
        figures["utility"] = utility(train, made, test, table.schema, table.target).value
    return figures


def _scores(model: GcvaePreset, table: BenchmarkTable, n_rows: int) -> dict[str, Any]:
    """Nats per unseen row, and how well scores tell rows of training from unseen ones."""
    parts = table.test[:n_rows], table.train[:n_rows]
    (unseen, seen), seconds = _timed(lambda: [model.log_masses(part) for part in parts])
    is_possible = np.isfinite(unseen)
    both = np.nan_to_num(np.concatenate([unseen, seen]), neginf=-1e9)
    labels = np.repeat([0, 1], [len(unseen), len(seen)])
    return {
        "unseen": float(unseen[is_possible].mean()),
        "impossible": float(1.0 - is_possible.mean()),
        "attack_auc": float(roc_auc_score(labels, both)),
        "score_seconds": seconds,
    }


def _imputation(
    model: GcvaePreset,
    table: BenchmarkTable,
    judges: Mapping[str, Any],
    schema: TableSchema,
    task: Task,
) -> dict[str, Any]:
    """Rows with cells taken away: filled, and scored by what is left."""
    rows = model._readable(table.test[: task.imputed]).reset_index(drop=True)
    modelled = [column.name for column in schema if column.is_modelled]
    is_taken = np.random.default_rng(0).random((len(rows), len(modelled))) < BLANK_SHARE
    blanked = rows.copy()
    blanked[modelled] = rows[modelled].mask(is_taken, "")
    synthesizer = model._synthesizer
    filled, seconds = _timed(lambda: synthesizer.impute(blanked, seed=task.seed))
    typed = parse_table(filled, synthesizer.schema)
    scores, score_seconds = _timed(lambda: synthesizer.log_likelihood(blanked[:_PARTLY_SCORED]))
    return {
        "imputed_broken": share_of_broken_rows(
            judges, rows, format_table(typed, synthesizer.schema), schema
        ),
        "partly_impossible": float(np.isneginf(scores["log_likelihood"]).mean()),
        "impute_seconds": seconds,
        "partly_score_seconds": score_seconds,
    }


def main() -> None:
    """Does the task of a file."""
    torch.set_num_threads(1)
    task = Task(**json.loads(Path(sys.argv[1]).read_text()))
    figures = run(task, Path(os.environ["GCVAE_DATA_DIR"]))
    Path(sys.argv[2]).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
