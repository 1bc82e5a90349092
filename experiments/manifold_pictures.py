"""Pictures of 10 × 10 manifolds of UCI Auto and SPECT: what VAE and GCVAE with K = 2 latent
dimensions generate on a grid of z.

For Auto, each column has a panel. For SPECT, whose columns are all binary, the picture is as in the
paper: a line of probabilities for each of the hundred z.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.stats import norm

from experiments.budgets import Budget
from experiments.uci import AUTO, PAPER_MODELS, SPECT, UciTable
from gcvae import Synthesizer

GRID_STEPS = 10
MODELS = ("VAE", "GCVAE")


def run_auto(budget: Budget, folder: Path, pictures: Path) -> Iterator[dict[str, Any]]:
    """Fits each model to UCI Auto and draws its manifold.

    Yields:
        A result for each model, with its held-out bound.
    """
    frame = AUTO.read(folder)
    for name in MODELS:
        preset, fitted = _fit(AUTO, frame, name, budget)
        pictures.mkdir(parents=True, exist_ok=True)
        fitted.manifold(GRID_STEPS).draw(pictures / f"auto-manifold-{preset}.png")
        bound = fitted.training_record["bound_held_out"]
        yield {"model": name, "preset": preset, "bound_held_out": bound}


def run_spect(budget: Budget, folder: Path, pictures: Path) -> Iterator[dict[str, Any]]:
    """Fits each model to UCI SPECT and draws the table beside the manifolds.

    Yields:
        A result for each model. `roughness` is the mean change of a probability between
        neighbouring z of the grid, and `reach` the mean range of a column's probabilities on
        the grid: a smooth manifold has many small changes.
    """
    frame = SPECT.read(folder)
    manifolds = {}
    for name in MODELS:
        preset, fitted = _fit(SPECT, frame, name, budget)
        manifolds[name] = found = probabilities(fitted, GRID_STEPS)
        changes = np.concatenate([np.diff(found, axis=axis).ravel() for axis in (0, 1)])
        yield {
            "model": name,
            "preset": preset,
            "bound_held_out": fitted.training_record["bound_held_out"],
            "roughness": float(np.abs(changes).mean()),
            "reach": float(np.ptp(found, axis=(0, 1)).mean()),
        }
    _draw_spect(frame, manifolds, pictures / "spect-manifold.png")


def probabilities(fitted: Synthesizer, n_steps: int) -> npt.NDArray[np.float64]:
    """Returns P(x_j = 1 | z) of each binary column j at the quantiles of the prior on a grid of S ×
    S vectors z. Shape: (S, S, D) for D columns."""
    quantiles = norm.ppf((np.arange(n_steps) + 0.5) / n_steps)
    z = torch.tensor(np.stack(np.meshgrid(quantiles, quantiles), -1).reshape(-1, 2)).float()
    ones = torch.ones(1, len(fitted.codec.columns), dtype=torch.int64)
    with torch.no_grad():
        alone = fitted.model.conditional(z).marginal_parameters
        log_prob = fitted.model.marginals.log_codes(alone, ones)
    found: npt.NDArray[np.float64] = log_prob.exp().double().numpy()
    return found.reshape(n_steps, n_steps, -1)


def _fit(
    table: UciTable, frame: pd.DataFrame, name: str, budget: Budget
) -> tuple[str, Synthesizer]:
    """Fits a model to all rows; returns (preset, model)."""
    preset, settings = PAPER_MODELS[name]
    paper = {"d_latent": 2, "max_steps": budget.uci_steps}
    return preset, Synthesizer.fit(
        frame, schema=table.schema(frame), preset=preset, seed=0, device="cpu",
        settings=table.settings | paper | {"patience_steps": budget.patience_steps} | settings,
    )  # fmt: skip


def _draw_spect(
    frame: pd.DataFrame, manifolds: dict[str, npt.NDArray[np.float64]], path: Path
) -> None:
    """Draws the rows of the table, and beside them the probabilities of each model, one line for
    each z: z₂ changes slowly from line to line, z₁ fast."""
    from matplotlib.figure import Figure

    order = np.lexsort([frame.sum(axis=1), frame.iloc[:, 0]])
    panels = {"table, 267 rows": frame.to_numpy(dtype=float)[order]}
    panels |= {name: found.reshape(-1, found.shape[-1]) for name, found in manifolds.items()}
    figure = Figure(figsize=(7.6, 5.4), layout="constrained")
    grid = figure.subplots(1, len(panels))
    for axes, (title, lines) in zip(grid, panels.items(), strict=True):
        shown = axes.imshow(lines, cmap="gray", vmin=0, vmax=1, aspect="auto", interpolation="none")
        axes.set_title(title, fontsize=9)
        axes.set(xlabel="column", xticks=(0, 11, 22))
        axes.tick_params(labelsize=7)
        if title in manifolds:
            axes.set_yticks(np.arange(0, 100, 10), [f"{i + 1}" for i in range(10)])
            axes.set_ylabel("z₂, step of the grid; within a step z₁", fontsize=8)
    figure.colorbar(shown, ax=grid, label="P(1 | z)", shrink=0.6)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
