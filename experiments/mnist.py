"""Experiments on MNIST (the paper's Table 2 and its figures): VAE-ROC, with rank regularisation,
and with two ℓ1 penalties on a."""

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
"""Share of the training set for validation, as in the paper: 10,000 of 60,000 images."""
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
"""Settings of each model: layer sizes and weights of the paper. It states no weight of the rank
regulariser and no layer size of the two ℓ1 models. The third model differs from the first only in
the rank regulariser."""
PAIR = ("VAE-ROC", "VAE-ROC (RR), λ = 0.1")
"""Models whose learning curves are drawn. The longest fit of the second provides the other
pictures."""
PAPER = {"paper, VAE-ROC": 292.0, "paper, VAE-ROC (RR)": 303.0}
_N_TANGENTS, _N_SHOWN = 9, 100


def run(budget: Budget, folder: Path, pictures: Path) -> Iterator[dict[str, Any]]:
    """Reads the digits from `folder` and yields the results of `run_on`."""
    return run_on(read(folder, budget.mnist_images), budget, pictures)


def run_on(images: Images, budget: Budget, pictures: Path) -> Iterator[dict[str, Any]]:
    """Fits all models to images and draws learning curves, tangent spaces, samples and latent
    vectors into the folder `pictures`.

    Yields:
        A result for training images in place of generated ones, then one for each fit.
    """
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
    """Reads the first `n_known` images of the training set, a sixth of them for validation, and the
    test set."""
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
    """Draws tangent spaces of the ℓ1 models; of the second model in `PAIR` also samples,
    directions, reconstructions and latent vectors."""
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
