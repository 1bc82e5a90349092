"""The half circle (Table 1, its figures): VAE and VAE-ROC on 280 points, many restarts.

Angles are uniform on (0, π), the radius is 1, the noise has the deviation 0.015 in both directions.
The paper does not give them; its entropy is near its best figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from scipy.stats import norm

from experiments.budgets import Budget
from experiments.kernel_estimators import KernelRows, estimate
from gcvae import Synthesizer
from gcvae.codec.column_codecs import RealCodec

Points = npt.NDArray[np.float64]

NOISE = 0.015
SIZES = (280, 60, 60)
SIGMAS = tuple(np.geomspace(0.005, 0.3, 15))
MODELS = {"VAE": "paper-vae", "VAE-ROC": "paper-vae-roc"}
GRID_STEPS = 15


def draw_points(n: int, generator: np.random.Generator) -> Points:
    """Points of the half circle. Shape: (n, 2)."""
    angle = generator.uniform(0.0, np.pi, n)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return circle + NOISE * generator.normal(size=(n, 2))


def run(budget: Budget, pictures: Path) -> Iterator[dict[str, Any]]:
    """A line for each restart, and a picture of each model's best by validation."""
    generator = np.random.default_rng(0)
    train, validation, test = (draw_points(n, generator) for n in SIZES)
    for name, preset in MODELS.items():
        best: tuple[float, Synthesizer] | None = None
        for seed in range(budget.restarts):
            begun_at = time.process_time()
            fitted = _fit(np.concatenate([train, validation]), preset, seed, budget)
            drawn = fitted.sample(budget.drawn_rows, seed=seed).to_numpy(dtype=np.float64)
            found = {
                kind: estimate(_rows(points), _rows(validation), _rows(drawn), SIGMAS).mean
                for kind, points in (("validation", validation), ("test", test))
            }
            yield {"model": name, "seed": seed, **found, **_cost(fitted, begun_at)}
            if best is None or found["validation"] > best[0]:
                best = found["validation"], fitted
        if best is not None:
            draw_contours(best[1], train, pictures / f"half-circle-{preset}.png", name)
    ideal = draw_points(budget.drawn_rows, generator)
    score = estimate(_rows(test), _rows(validation), _rows(ideal), SIGMAS)
    yield {"model": "the truth itself", "seed": 0, "validation": None, "test": score.mean}


def _fit(points: Points, preset: str, seed: int, budget: Budget) -> Synthesizer:
    """Whole batches, as in the paper; as many points as its validation has choose the weights."""
    settings = {
        "d_latent": 2, "d_hidden": 100, "batch_size": SIZES[0],
        "held_out_share": SIZES[1] / len(points),
        "max_steps": budget.circle_steps, "patience_steps": budget.circle_steps,
        "learning_rate": 0.003,
    }  # fmt: skip
    frame = pd.DataFrame(points, columns=["x", "y"])
    kinds = {"columns": [{"name": name, "kind": "continuous"} for name in frame]}
    return Synthesizer.fit(
        frame, schema=kinds, preset=preset, settings=settings, seed=seed, device="cpu"
    )


def _rows(points: Points) -> KernelRows:
    return KernelRows(points, np.empty((len(points), 0), dtype=np.int64))


def _cost(fitted: Synthesizer, begun_at: float) -> dict[str, Any]:
    seconds = round(time.process_time() - begun_at, 1)
    return {"steps": fitted.training_record["steps"], "cpu_seconds": seconds}


def gaussians(fitted: Synthesizer, n_steps: int) -> tuple[Points, Points]:
    """Means and covariances of the decoder on a grid of the prior's quantiles.

    Shape: (S², 2), (S², 2, 2), in the table's units.
    """
    quantiles = norm.ppf((np.arange(n_steps) + 0.5) / n_steps)
    z = torch.tensor(np.stack(np.meshgrid(quantiles, quantiles), -1).reshape(-1, 2)).float()
    with torch.no_grad():
        conditional = fitted.model.conditional(z)
        numbers = conditional.alone.numbers.double()
        _, mean, log_sigma = (part[..., 0].numpy() for part in numbers.components)
        loadings = conditional.loadings
    covariance = np.apply_along_axis(np.diag, -1, np.exp(2.0 * log_sigma))
    if loadings is not None and fitted.preset == "paper-vae-roc":
        a = loadings[..., 0].double().numpy()
        covariance += a[:, :, None] * a[:, None, :] * ~np.eye(2, dtype=bool)
    codecs = [codec for codec in fitted.codec.columns if isinstance(codec, RealCodec)]
    scale = np.array([codec.scale for codec in codecs])
    offset = np.array([codec.offset for codec in codecs])
    return mean * scale + offset, covariance * scale[:, None] * scale[None, :]


def draw_contours(fitted: Synthesizer, points: Points, path: Path, title: str) -> None:
    """The manifold: each grid point's mean and its contour of three deviations."""
    from matplotlib.figure import Figure

    means, covariances = gaussians(fitted, GRID_STEPS)
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(points[:, 0], points[:, 1], ".", color="#9db4c8", markersize=4, zorder=1)
    angle = np.linspace(0.0, 2.0 * np.pi, 60)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for mean, covariance in zip(means, covariances, strict=True):
        values, vectors = np.linalg.eigh(covariance)
        ring = mean[:, None] + 3.0 * vectors @ (np.sqrt(values.clip(0.0))[:, None] * circle)
        axes.plot(*ring, ":", color="#b5442e", linewidth=0.6, zorder=2)
    axes.plot(means[:, 0], means[:, 1], ".", color="black", markersize=2, zorder=3)
    axes.set(title=title, xlim=(-1.5, 1.5), ylim=(-0.5, 1.5), aspect="equal")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
