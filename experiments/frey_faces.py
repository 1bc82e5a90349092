"""Experiments on Frey faces (the paper's Table 1 and tangent spaces): VAE, and VAE-ROC without and
with rank regularisation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import norm

from experiments.budgets import Budget
from experiments.image_pictures import draw_curve, draw_tangents
from experiments.images import Images, at, best_window, measured, timed_fit
from gcvae import Synthesizer

SIZES = (1573, 196, 196)
HEIGHT = 28
NETWORK: dict[str, object] = {
    "d_latent": 2, "d_hidden": 100, "n_hidden_layers": 2, "activation": "relu", "batch_size": 100,
    "learning_rate": 0.002, "annealing": 0.3, "averaging": 0.99,
}  # fmt: skip
L2: dict[str, object] = {"locality_weight": 100.0}
"""ℓ2 penalty on a with the paper's weight λ, which it chose by validation."""
MODELS: dict[str, tuple[str, dict[str, object]]] = {
    "VAE": ("paper-vae", {}),
    "VAE-ROC": ("paper-vae-roc", {}),
    "VAE-ROC, λ = 100": ("paper-vae-roc", L2),
    "VAE-ROC (RR)": ("paper-vae-roc", {"rank_weight": 100.0}),
}
_TANGENTS = (0.3, 0.5, 0.7)
PAPER = {"paper, VAE": 722.4, "paper, VAE-ROC": 733.6, "paper, VAE-ROC (RR)": 774.4}


def run(budget: Budget, folder: Path, pictures: Path) -> Iterator[dict[str, Any]]:
    """Reads the faces from `folder` and yields the results of `run_on`."""
    return run_on(read(folder), budget, pictures)


def run_on(images: Images, budget: Budget, pictures: Path) -> Iterator[dict[str, Any]]:
    """Fits all models to images and draws tangent spaces and learning curves into the folder
    `pictures`.

    Yields:
        A result for each fit: model, fraction of the updates, cost and scores.
    """
    curves: dict[str, list[tuple[int, float]]] = {}
    for name, (preset, settings) in MODELS.items():
        longer = budget.longer_faces if name == "VAE-ROC" else ()
        for part in (*budget.image_parts, *longer):
            steps = round(part * budget.frey_steps)
            whole = NETWORK | {"max_steps": steps, "patience_steps": steps} | settings
            fitted, cost = timed_fit(images, preset, whole, seed=0)
            figures = measured(fitted, images, budget, seed=0)
            yield {"model": name, "part": part, **cost, **figures}
            curves.setdefault(name, []).append((cost["steps"], best_window(figures)))
        if preset == "paper-vae-roc":
            _draw(fitted, images, pictures / picture_of(name))
    draw_curve(curves, PAPER, pictures / "frey-curve.png")


def read(folder: Path) -> Images:
    """Reads the faces, shuffles them, and splits them by the paper's sizes."""
    faces = np.load(folder / "frey_faces.npz")["images"].reshape(sum(SIZES), -1)
    order = np.random.default_rng(0).permutation(len(faces))
    grey = (faces[order] / np.float32(255.0)).astype(np.float32)
    return Images(grey[SIZES[2] :], grey[: SIZES[2]], SIZES[1], HEIGHT)


def picture_of(name: str) -> str:
    """Returns the file name of the picture that shows a model's tangent spaces."""
    kind = "rr" if "RR" in name else "l2" if "λ" in name else "free"
    return f"frey-tangents-{kind}.png"


def _draw(fitted: Synthesizer, images: Images, path: Path) -> None:
    """Draws tangent spaces at quantiles of the prior, beside the nearest training images."""
    places = norm.ppf(_TANGENTS)
    z = torch.tensor(np.stack(np.meshgrid(places, places), -1).reshape(-1, 2))[::2]
    trained, _ = images.parts(0)
    draw_tangents(at(fitted, z), images.height, path, near=images.known[trained], cmap="gray")
