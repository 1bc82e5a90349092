"""MNIST (Table 2, its figures): VAE-ROC, with rank regularisation, and two ℓ1 penalties."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiments.budgets import Budget
from experiments.image_pictures import draw_codes, draw_curve, draw_sheet, draw_tangents
from experiments.images import (
    Images,
    Pixels,
    at,
    best_window,
    measured,
    posterior_means,
    timed_fit,
    windows_on,
)
from gcvae import Synthesizer
from gcvae.numerics.generators import generator_for

HEIGHT = 28
N_VALIDATION_SHARE = 1 / 6
"""10,000 of the 60,000 images; of fewer images the same share."""
NETWORK: dict[str, object] = {
    "d_latent": 5, "n_hidden_layers": 2, "activation": "relu", "batch_size": 128,
    "learning_rate": 0.001, "annealing": 0.3, "averaging": 0.99, "evaluate_every_steps": 200,
}  # fmt: skip
MODELS: dict[str, dict[str, object]] = {
    "VAE-ROC": {"d_hidden": 767, "locality_weight": 0.1},
    "VAE-ROC (RR)": {"d_hidden": 635, "locality_weight": 10.0, "rank_weight": 100.0},
    "VAE-ROC (RR), λ = 0.1": {"d_hidden": 767, "locality_weight": 0.1, "rank_weight": 100.0},
    "VAE-ROC, ℓ1 λ = 100": {"d_hidden": 635, "locality_weight": 100.0, "locality_norm": 1},
    "VAE-ROC, ℓ1 λ = 1000": {"d_hidden": 635, "locality_weight": 1000.0, "locality_norm": 1},
}
"""The paper's sizes and weights; it gives none for the rank, and no size for the ℓ1 pair. The third
differs from the first in nothing but the rank's weight, and has the pictures."""
PAIR = ("VAE-ROC", "VAE-ROC (RR), λ = 0.1")
"""Of which the curve is drawn; the longest fit of the second has the pictures."""
PAPER = {"paper, VAE-ROC": 292.0, "paper, VAE-ROC (RR)": 303.0}
_N_TANGENTS, _N_SHOWN = 9, 100


def run(budget: Budget, folder: Path, pictures: Path) -> Iterator[dict[str, Any]]:
    """A line for training images as samples, and for each fit; pictures of the whole ones."""
    return run_on(read(folder, budget.mnist_images), budget, pictures)


def run_on(images: Images, budget: Budget, pictures: Path) -> Iterator[dict[str, Any]]:
    """`run` on other images."""
    trained, held_out = images.parts(0)
    centres = images.known[trained[: budget.drawn_rows]]
    figures = windows_on(centres, images.known[held_out[:1_000]], images.test)
    yield {"model": "training images", "samples": len(centres), "windows": {"x": figures}}
    curves: dict[str, list[tuple[int, float]]] = {name: [] for name in PAIR}
    for name, settings in MODELS.items():
        for part in (*budget.image_parts, *budget.longer_digits) if name in PAIR else (1.0,):
            steps = round(part * budget.mnist_steps)
            whole = NETWORK | {"max_steps": steps, "patience_steps": steps} | settings
            fitted, cost = timed_fit(images, "paper-vae-roc", whole, seed=0)
            found = measured(fitted, images, budget, seed=0)
            yield {"model": name, "part": part, **cost, **found}
            if name in PAIR:
                curves[name].append((cost["steps"], best_window(found)))
        _draw(name, fitted, images, pictures)
    draw_curve(curves, PAPER, pictures / "mnist-curve.png")


def read(folder: Path, n_known: int) -> Images:
    """The first images of the training set, a sixth of them to choose by, and the test set."""
    known, test = (
        _idx(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, HEIGHT * HEIGHT)
        for part in ("train", "t10k")
    )
    labels = _idx(folder / "train-labels-idx1-ubyte.gz", 8)[:n_known].astype(np.int64)
    n_validation = round(n_known * N_VALIDATION_SHARE)
    return Images(_grey(known[:n_known]), _grey(test), n_validation, HEIGHT, labels)


def _idx(path: Path, header_bytes: int) -> Any:
    return np.frombuffer(gzip.decompress(path.read_bytes()), dtype=np.uint8, offset=header_bytes)


def _grey(pixels: Any) -> Pixels:
    grey: Pixels = (pixels / np.float32(255.0)).astype(np.float32)
    return grey


def _draw(name: str, fitted: Synthesizer, images: Images, pictures: Path) -> None:
    """Tangent spaces of the ℓ1 pair; samples, directions, reconstructions and codes of the RR."""
    generator = generator_for(0, "pictures")
    z = fitted.model.prior.sample(_N_SHOWN, generator)
    if "ℓ1" in name:
        path = pictures / f"mnist-tangents-l1-{name.split()[-1]}.png"
        draw_tangents(at(fitted, z[:_N_TANGENTS]), images.height, path)
    if name != PAIR[1]:
        return
    drawn = at(fitted, z)
    draw_tangents(at(fitted, z[:_N_TANGENTS]), images.height, pictures / "mnist-tangents-rr.png")
    _, held_out = images.parts(0)
    shown = images.known[held_out[:_N_SHOWN]]
    eta = posterior_means(fitted, images, shown)
    sizes = np.abs(drawn.direction).max(1, keepdims=True).clip(1e-9)
    panels = {
        "drawn: μ + a s": drawn.of_sort("μ + a s"),
        "their a, scaled": np.abs(drawn.direction) / sizes,
        "validation images": shown,
        "reconstructed: μ at η": at(fitted, eta).mean,
    }
    draw_sheet(panels, images.height, 10, pictures / "mnist-sheets.png")
    codes = posterior_means(fitted, images, images.known[held_out]).numpy()
    widest = np.argsort(-codes.std(0))[:3]
    assert images.labels is not None
    draw_codes(codes[:, np.sort(widest)], images.labels[held_out], pictures / "mnist-codes.png")
