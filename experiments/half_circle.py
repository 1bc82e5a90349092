"""Experiments on the half circle (the paper's Table 1 and its figures): many restarts of VAE and
VAE-ROC on 280 points.

Angles are uniform on (0, π), the radius is 1, and both coordinates have noise with standard
deviation 0.015. The paper does not state these values; with them, the entropy of the points is near
its best figures.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from gcvae.numerics.generators import generator_for

Points = npt.NDArray[np.float64]

NOISE = 0.015
SIZES = (280, 60, 60)
SIGMAS = tuple(np.geomspace(0.005, 0.3, 15))
MODELS = {"VAE": "paper-vae", "VAE-ROC": "paper-vae-roc"}
GRID_STEPS = 15
FALLING: dict[str, object] = {"learning_rate": 0.01, "annealing": 0.5, "averaging": 0.99}
"""Settings of a large learning rate that decays to zero over half as many updates again; `LEARNING`
compares it with others."""
LEARNING: dict[str, dict[str, object]] = {
    "steps of 0.003": {"learning_rate": 0.003, "activation": "tanh"},
    "steps of 0.01": {"learning_rate": 0.01, "activation": "tanh"},
    "falling steps": FALLING | {"activation": "tanh"},
    "falling steps, ReLU": FALLING | {"activation": "relu"},
}
"""Learning schedules that are compared on validation points; the last one makes the table."""


@dataclass(frozen=True)
class Sets:
    """Training, validation and test points, each of shape (n, 2). Validation points choose σ and
    the best restart."""

    train: Points
    validation: Points
    test: Points


def draw_points(n: int, generator: np.random.Generator) -> Points:
    """Draws n noisy points of the half circle. Shape: (n, 2)."""
    angle = generator.uniform(0.0, np.pi, n)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    return circle + NOISE * generator.normal(size=(n, 2))


def run(budget: Budget, pictures: Path) -> Iterator[dict[str, Any]]:
    """Compares the learning schedules, then fits all restarts of each model, and draws the best one
    by validation.

    The comparison shows how often the VAE-ROC reaches only a local optimum under each schedule.

    Yields:
        A result for each restart, and one for points of the true distribution.
    """
    generator = np.random.default_rng(0)
    sets = Sets(*(draw_points(n, generator) for n in SIZES))
    seeds = range(budget.learning_restarts)
    for learning, settings in LEARNING.items():
        for seed in seeds if learning != [*LEARNING][-1] else ():
            _, line = restart(sets, MODELS["VAE-ROC"], seed, budget, settings)
            yield {"learning": learning, "model": "VAE-ROC", **line}
    for name, preset in MODELS.items():
        path = pictures / f"half-circle-{preset}.png"
        yield from restarts(sets, budget, name, preset, {}, (path, GRID_STEPS))
    yield truth(sets, draw_points(budget.drawn_rows, generator))


def restarts(
    sets: Sets,
    budget: Budget,
    name: str,
    preset: str,
    settings: Mapping[str, object],
    picture: tuple[Path, int],
) -> Iterator[dict[str, Any]]:
    """Fits all restarts of a model and draws the best one by validation.

    Args:
        sets: The points.
        budget: Budget, with the number of restarts.
        name: Name of the model on the page.
        preset: Preset of the library.
        settings: Settings in addition to those of every restart.
        picture: Path of the picture, and number of steps of its grid on each axis.

    Yields:
        A result for each restart.
    """
    best: tuple[float, Synthesizer] | None = None
    for seed in range(budget.restarts):
        fitted, line = restart(sets, preset, seed, budget, {**[*LEARNING.values()][-1], **settings})
        yield {"model": name, **line}
        if best is None or line["validation"] > best[0]:
            best = line["validation"], fitted
    if best is not None:
        draw_contours(best[1], sets.train, *picture, title=name)


def restart(
    sets: Sets, preset: str, seed: int, budget: Budget, settings: Mapping[str, object]
) -> tuple[Synthesizer, dict[str, Any]]:
    """Fits one restart with full batches, as in the paper.

    Training holds out as many points as the validation set contains, to choose the weights.

    Returns:
        The model, and its result: scores, norm of a, and cost.
    """
    begun_at = time.process_time()
    points = np.concatenate([sets.train, sets.validation])
    whole: dict[str, object] = {
        "d_latent": 2, "d_hidden": 100, "batch_size": len(sets.train),
        "held_out_share": len(sets.validation) / len(points),
        "max_steps": budget.circle_steps, "patience_steps": budget.circle_steps,
    }  # fmt: skip
    frame = pd.DataFrame(points, columns=["x", "y"])
    kinds = {"columns": [{"name": name, "kind": "continuous"} for name in frame]}
    fitted = Synthesizer.fit(
        frame, schema=kinds, preset=preset, settings={**whole, **settings}, seed=seed, device="cpu"
    )
    seconds = round(time.process_time() - begun_at, 1)
    test = pd.DataFrame(sets.test, columns=["x", "y"])
    nats = fitted.log_likelihood(test, draws=budget.score_draws)["log_likelihood"]
    drawn = fitted.sample(budget.drawn_rows, seed=seed).to_numpy(dtype=np.float64)
    line = {"seed": seed, **_judged(sets, drawn), "nats": float(nats.mean())}
    line["norm_of_a"] = norm_of_a(fitted)
    return fitted, line | {"steps": fitted.training_record["steps"], "cpu_seconds": seconds}


def norm_of_a(fitted: Synthesizer) -> float:
    """Returns the mean norm of the principal direction a(z) under the prior, in standard deviations
    of the columns.

    A model without principal directions gives 0.
    """
    z = fitted.model.prior.sample(1_000, generator_for(0, "norm of a"))
    with torch.no_grad():
        loadings = fitted.model.conditional(z).loadings
    return 0.0 if loadings is None else float(loadings.norm(dim=-1).mean())


def truth(sets: Sets, points: Points) -> dict[str, Any]:
    """Returns the result of points that were drawn from the true distribution instead of a
    model."""
    return {"model": "the truth itself", "seed": 0, **_judged(sets, points)}


def _judged(sets: Sets, drawn: Points) -> dict[str, float]:
    """Returns the mean log densities of validation and test points under kernels (Parzen windows)
    on generated points."""
    by, centres = _rows(sets.validation), _rows(drawn)
    chosen = estimate(by, by, centres, SIGMAS)
    return {
        "validation": chosen.mean,
        "test": estimate(_rows(sets.test), by, centres, (chosen.sigma,)).mean,
    }


def _rows(points: Points) -> KernelRows:
    return KernelRows(points, np.empty((len(points), 0), dtype=np.int64))


def gaussians(fitted: Synthesizer, n_steps: int) -> tuple[Points, Points]:
    """Returns means and covariances of p(x | z) at the quantiles of the prior on a grid of S × S
    vectors z, where S is `n_steps`.

    Shape: (S², 2) and (S², 2, 2), in the table's units.
    """
    quantiles = norm.ppf((np.arange(n_steps) + 0.5) / n_steps)
    z = torch.tensor(np.stack(np.meshgrid(quantiles, quantiles), -1).reshape(-1, 2)).float()
    with torch.no_grad():
        conditional = fitted.model.conditional(z)
        numbers = conditional.marginal_parameters.numbers.double()
        _, mean, log_sigma = (part[..., 0].numpy() for part in numbers.components)
        loadings = conditional.loadings
    covariance = np.apply_along_axis(np.diag, -1, np.exp(2.0 * log_sigma))
    if loadings is not None and fitted.preset == "paper-vae-roc":
        a = loadings.double().numpy()
        covariance += a[:, :, None] * a[:, None, :] * ~np.eye(2, dtype=bool)
    codecs = [codec for codec in fitted.codec.columns if isinstance(codec, RealCodec)]
    scale = np.array([codec.scale for codec in codecs])
    offset = np.array([codec.offset for codec in codecs])
    return mean * scale + offset, covariance * scale[:, None] * scale[None, :]


def draw_contours(
    fitted: Synthesizer, points: Points, path: Path, n_steps: int, title: str
) -> None:
    """Draws the mean of p(x | z) and its contour of three standard deviations at each z of a
    grid."""
    from matplotlib.figure import Figure

    means, covariances = gaussians(fitted, n_steps)
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
    axes.set(title=title, **_limits(points), aspect="equal")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)


def _limits(points: Points) -> dict[str, Sequence[float]]:
    """Returns the limits of the axes, which leave space around the points."""
    top = max(1.5, float(points[:, 1].max()) + 0.3)
    side = max(1.5, float(np.abs(points[:, 0]).max()) + 0.3)
    return {"xlim": (-side, side), "ylim": (-0.5, top)}
