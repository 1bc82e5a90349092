"""Experiments on UCI Auto and SPECT (the paper's Table 3): GCVAE, VAE, and the presets of the
library.

There are ten random splits of the paper's sizes, because its splits are not published. Numbers are
scored by density, as in the paper; `nats_of_cells` scores each value by the probability mass of the
interval that rounds to it, so that models of densities and models of masses can be compared.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.budgets import Budget
from experiments.kernel_estimators import KernelRows, estimate
from experiments.results import Line, is_among
from gcvae import Synthesizer


@dataclass(frozen=True)
class UciTable:
    """A UCI table of the paper, with its split and the settings of its networks.

    Attributes:
        file: Name of the CSV file.
        dropped: Columns that are not used.
        n_validation: Number of validation rows, which choose σ and h; training holds out as many
            rows.
        n_test: Number of test rows.
        levels: Columns that the paper codes as one-hot levels; None for all columns.
        settings: Settings of the paper's networks.
    """

    file: str
    dropped: tuple[str, ...]
    n_validation: int
    n_test: int
    levels: tuple[str, ...] | None
    settings: dict[str, object]

    def read(self, folder: Path) -> pd.DataFrame:
        """Reads the table from the folder, without the dropped columns."""
        return pd.read_csv(folder / self.file).drop(columns=list(self.dropped))

    def schema(self, frame: pd.DataFrame) -> dict[str, Any]:
        """Returns a schema in which each column has the kind that the paper gives it."""
        levels = list(frame) if self.levels is None else self.levels
        kinds = {name: "categorical" if name in levels else "continuous" for name in frame}
        return {"columns": [{"name": name, "kind": kind} for name, kind in kinds.items()]}


AUTO = UciTable("auto_mpg.csv", (), 39, 40, ("cylinders", "model_year", "origin"), {"d_hidden": 30})
SPECT = UciTable(
    "spect.csv", ("split",), 27, 27, None,
    {"d_hidden": 100, "n_hidden_layers": 2, "activation": "relu"},
)  # fmt: skip
PAPER_MODELS: dict[str, tuple[str, dict[str, object]]] = {
    "VAE": ("paper-vae", {}),
    "GCVAE": ("paper-gcvae", {}),
    "GCVAE, full gradient": ("paper-gcvae", {"score_gradient": True}),
    "GCVAE, exact": ("paper-gcvae", {"objective": "exact"}),
}
OWN_PRESETS = ("gcvae", "default")


def run(
    table: UciTable, budget: Budget, folder: Path, before: Sequence[Line] = ()
) -> Iterator[Line]:
    """Fits all models to all splits of a UCI table.

    Args:
        table: The table.
        budget: Budget of the fits.
        folder: Folder with the table's file.
        before: Results of an earlier run; their fits are skipped.

    Yields:
        A result for each fit: split, model, dimension K of z, and figures in nats per row.
    """
    frame = table.read(folder)
    for split, model, d_latent, preset, settings in _fits(budget, table):
        fitted = {"split": split, "model": model, "K": d_latent}
        if not is_among(before, **fitted):
            yield fitted | _measured(table, frame, split, preset, settings, budget)


def _fits(
    budget: Budget, table: UciTable
) -> Iterator[tuple[int, str, int | None, str, dict[str, object]]]:
    """Yields the split, model, dimension K of z, preset and settings of each fit; K varies slowest,
    then the split."""
    own: dict[str, object] = {"rare_level_rows": 1}  # all rows are told
    if budget.is_look:
        own["max_steps"] = budget.uci_steps
    for d_latent in budget.dimensions:
        of_paper = _paper_settings(budget, table, d_latent)
        for split in range(budget.splits):
            for name, (preset, settings) in PAPER_MODELS.items():
                yield split, name, d_latent, preset, of_paper | settings
            has_own = d_latent == budget.dimensions[0] and split < budget.preset_splits
            for preset in OWN_PRESETS if has_own else ():
                yield split, preset, None, preset, own


def _paper_settings(budget: Budget, table: UciTable, d_latent: int) -> dict[str, object]:
    return table.settings | {
        "d_latent": d_latent,
        "max_steps": budget.uci_steps,
        "patience_steps": budget.patience_steps,
        "batch_size": budget.batch_size,
        "learning_rate": budget.learning_rate,
    }


def _measured(
    table: UciTable,
    frame: pd.DataFrame,
    split: int,
    preset: str,
    settings: dict[str, object],
    budget: Budget,
) -> dict[str, Any]:
    """Fits one model to one split, and returns its scores."""
    shuffled = frame.sample(frac=1.0, random_state=split).reset_index(drop=True)
    test, rest = shuffled[: table.n_test], shuffled[table.n_test :]
    begun_at = time.process_time()
    fitted = Synthesizer.fit(
        rest,
        schema=table.schema(frame),
        preset=preset,
        settings=settings | {"held_out_share": table.n_validation / len(rest)},
        seed=split,
        device="cpu",
    )
    seconds = time.process_time() - begun_at
    scores = fitted.log_likelihood(test, draws=budget.score_draws)["log_likelihood"]
    cells = fitted.log_likelihood(test, draws=budget.score_draws, measure="rounding_cell")
    drawn = fitted.sample(budget.drawn_rows, seed=split)
    judged, chosen_by, centres = (
        _kernel_rows(table, part, rest) for part in (test, rest[: table.n_validation], drawn)
    )
    kernels = estimate(judged, chosen_by, centres)
    return {
        "steps": fitted.training_record["steps"],
        "cpu_seconds": round(seconds, 1),
        "nats": float(scores.mean()),
        "nats_of_cells": float(cells["log_likelihood"].mean()),
        "kernel_nats": kernels.mean,
        "kernel_sum": kernels.mean * len(test),
        "sigma": kernels.sigma,
        "h": kernels.mixing,
    }


def _kernel_rows(table: UciTable, rows: pd.DataFrame, scaled_by: pd.DataFrame) -> KernelRows:
    """Returns rows for kernels: numbers standardised with the training rows' mean and deviation,
    levels as codes."""
    levels = list(rows) if table.levels is None else list(table.levels)
    numbers = [name for name in rows if name not in levels]
    scaled = (rows[numbers] - scaled_by[numbers].mean()) / scaled_by[numbers].std()
    known = {name: sorted(scaled_by[name].unique()) for name in levels}
    codes = [_codes(rows[name], known[name]) for name in levels]
    return KernelRows(
        scaled.to_numpy(dtype=np.float64),
        np.column_stack(codes),
        tuple(len(known[name]) for name in levels),
    )


def _codes(cells: pd.Series[Any], known: list[Any]) -> Any:
    """Returns the integer codes of levels; a level that the training rows lack gets -1."""
    return pd.Categorical(cells.astype(type(known[0])), categories=known).codes.astype(np.int64)
