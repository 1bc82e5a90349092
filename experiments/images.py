"""Models of images as tables of grey levels: fitting, sampling, and scoring by kernels and
likelihoods.

A pixel is a column of numbers within [0, 1]; the setting `encoding: unit` leaves these unchanged,
and the decoder's means pass through a sigmoid, as in the paper.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from experiments.budgets import Budget
from experiments.kernel_estimators import parzen_windows
from gcvae import Synthesizer
from gcvae.numerics.generators import generator_for, normal
from gcvae.paper.principal_direction import PrincipalDirectionConditional
from gcvae.training.loop import split

Pixels = npt.NDArray[np.float32]

SORTS = ("x", "μ + a s", "μ")
"""Sorts of generated images: samples of p(x|z); samples without noise, on the tangent space; means.
All are clipped to [0, 1]."""
SIGMAS = tuple(float(sigma) for sigma in np.geomspace(0.02, 0.6, 18))
_CHOOSING_IMAGES = 1_000


@dataclass(frozen=True)
class Images:
    """Images of H × W pixels with grey levels in [0, 1], split into known images and test images.

    Attributes:
        known: Images for training and validation. Shape: (n, H W).
        test: Shape: (m, H W).
        n_validation: Number of known images that choose the weights and σ.
        height: H.
        labels: Labels of the known images; None without labels. Shape: (n,).
    """

    known: Pixels
    test: Pixels
    n_validation: int
    height: int
    labels: npt.NDArray[np.int64] | None = None

    def fit(self, preset: str, settings: Mapping[str, object], seed: int) -> Synthesizer:
        """Fits a model to the known images; a random part of them, of `n_validation` images, is
        held out to choose the weights."""
        table = self.table(self.known)
        columns = [
            {"name": name, "kind": "continuous", "minimum": 0, "maximum": 1} for name in table
        ]
        return Synthesizer.fit(
            table,
            schema={"columns": columns},
            preset=preset,
            settings={"encoding": "unit", "held_out_share": self._share, **settings},
            seed=seed,
            device="cpu",
        )

    def parts(self, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Returns the indices of the known images that a fit with this seed trains on, and of those
        that it holds out."""
        trained, held_out = split(len(self.known), self._share, seed)
        return trained.numpy(), held_out.numpy()

    def table(self, pixels: Pixels) -> pd.DataFrame:
        """Returns the images as a table with one row for each image and one column for each
        pixel."""
        width = pixels.shape[1] // self.height
        names = [f"r{i // width}c{i % width}" for i in range(pixels.shape[1])]
        return pd.DataFrame(pixels.astype(np.float64), columns=names)

    @property
    def _share(self) -> float:
        return self.n_validation / len(self.known)


@dataclass(frozen=True)
class Drawn:
    """Parameters of p(x | z) for n sampled z, from which images of H × W pixels are generated.

    Attributes:
        mean: Mean μ of p(x | z). Shape: (n, H W).
        direction: Principal direction a of the covariance; zero for a model without. Shape: (n, H
            W).
        omega: Variance ω of the noise. Shape: (n, 1) or (n, H W).
        seed: Seed of the noise.
    """

    mean: Pixels
    direction: Pixels
    omega: Pixels
    seed: int

    def of_sort(self, sort: str) -> Pixels:
        """Returns generated images of one of `SORTS`, clipped to [0, 1]."""
        s, noise = (
            normal(shape, generator_for(self.seed, f"images {name}")).numpy()
            for name, shape in (("s", (len(self.mean), 1)), ("noise", self.mean.shape))
        )
        images = self.mean if sort == "μ" else self.mean + self.direction * s
        if sort == "x":
            images = images + np.sqrt(self.omega) * noise
        return images.clip(0.0, 1.0).astype(np.float32)


def draw(fitted: Synthesizer, n: int, seed: int) -> Drawn:
    """Samples n latent vectors from the prior and returns the decoder's parameters at them."""
    z = fitted.model.prior.sample(n, generator_for(seed, "images"))
    return at(fitted, z, seed)


def at(fitted: Synthesizer, z: torch.Tensor, seed: int = 0) -> Drawn:
    """Returns the decoder's parameters at each latent vector z. Shape: (n, K) for n vectors of
    dimension K."""
    with torch.no_grad():
        parts = [_decoded(fitted, some) for some in z.float().split(1_000)]
    mean, direction, omega = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Drawn(mean, direction, omega, seed)


def _decoded(fitted: Synthesizer, z: torch.Tensor) -> tuple[Pixels, Pixels, Pixels]:
    conditional = fitted.model.conditional(z)
    if isinstance(conditional, PrincipalDirectionConditional):
        mean, omega = conditional.mean, conditional.noise[:, None]
        return mean.numpy(), conditional.direction.numpy(), omega.numpy()
    _, mean, log_sigma = (
        part[..., 0] for part in conditional.marginal_parameters.numbers.components
    )
    return mean.numpy(), torch.zeros_like(mean).numpy(), torch.exp(2.0 * log_sigma).numpy()


def posterior_means(fitted: Synthesizer, images: Images, pixels: Pixels) -> torch.Tensor:
    """Returns the mean η of q(z | image) for each image. Shape: (n, H W) -> (n, K)."""
    rows = fitted.codec.encode(images.table(pixels))
    with torch.no_grad():
        eta, _ = fitted.model.encoder(rows)
    found: torch.Tensor = eta
    return found


def measured(fitted: Synthesizer, images: Images, budget: Budget, seed: int) -> dict[str, Any]:
    """Scores a model by kernels on generated images of each sort, and by the likelihood of test
    images.

    Returns:
        A JSON object with nats per test image and standard errors, norm of a, and noise.
    """
    _, held_out = images.parts(seed)
    by = images.known[held_out[:_CHOOSING_IMAGES]]
    drawn = draw(fitted, budget.drawn_rows, seed)
    has_a = bool(drawn.direction.any())
    table = images.table(images.test[: budget.scored_images])
    scores = fitted.log_likelihood(table, draws=budget.image_draws)["log_likelihood"]
    return {
        "windows": {
            sort: windows_on(drawn.of_sort(sort), by, images.test)
            for sort in SORTS
            if has_a or sort != "μ + a s"
        },
        "nats": float(scores.mean()),
        "nats_error": float(scores.sem()),
        "scored_images": len(scores),
        "norm_of_a": float(np.linalg.norm(drawn.direction, axis=1).mean()),
        "noise": float(np.sqrt(drawn.omega).mean()),
    }


def best_window(figures: dict[str, Any]) -> float:
    """Returns nats per test image by kernels, for the sort of images with the best score on
    validation images."""
    best = max(figures["windows"].values(), key=lambda window: window["validation"])
    return float(best["nats"])


def windows_on(centres: Pixels, by: Pixels, test: Pixels) -> dict[str, float]:
    """Returns nats per test image by kernels (Parzen windows), with standard error.

    Args:
        centres: Images on which kernels are placed.
        by: Images that choose the width σ.
        test: Images to score.
    """
    chosen = parzen_windows(by, centres, SIGMAS).mean(1)
    sigma = SIGMAS[int(chosen.argmax())]
    found = parzen_windows(test, centres, (sigma,))[0]
    error = float(found.std() / np.sqrt(len(found)))
    return {
        "nats": float(found.mean()), "error": error, "sigma": sigma, "validation": chosen.max()
    }  # fmt: skip


def timed_fit(
    images: Images, preset: str, settings: Mapping[str, object], seed: int
) -> tuple[Synthesizer, dict[str, Any]]:
    """Fits a model and measures the cost.

    Returns:
        The model, and a JSON object with updates, CPU seconds, seed and held-out bound.
    """
    begun_at = time.process_time()
    fitted = images.fit(preset, settings, seed)
    seconds = round(time.process_time() - begun_at, 1)
    record = fitted.training_record
    cost = {"steps": record["steps"], "cpu_seconds": seconds, "seed": seed}
    return fitted, cost | {"bound_held_out": record["bound_held_out"]}
