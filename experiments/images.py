"""Images as tables of grey levels: fits, drawn images of three sorts, Parzen windows, bounds.

A pixel is a column of numbers within [0, 1]; the setting `numbers: unit` leaves them as they are,
and gives the marginals means by a sigmoid, as the paper has them.
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
from gcvae.model.decoders import PrincipalDirectionConditional
from gcvae.numerics.generators import generator_for, normal
from gcvae.training.loop import split

Pixels = npt.NDArray[np.float32]

SORTS = ("x", "μ + a s", "μ")
"""Sorts of drawn images: x ~ p(x|z) within [0, 1]; the tangent space alone; means alone."""
SIGMAS = tuple(float(sigma) for sigma in np.geomspace(0.02, 0.6, 18))
_CHOOSING_IMAGES = 1_000


@dataclass(frozen=True)
class Images:
    """Images with grey levels in [0, 1]. Shape: known (n, H W), test (m, H W).

    Attributes:
        known: To train on and to choose by.
        n_validation: How many of those choose the weights and σ.
        height: Rows of an image.
        labels: Of the known images, where they have some. Shape: (n,).
    """

    known: Pixels
    test: Pixels
    n_validation: int
    height: int
    labels: npt.NDArray[np.int64] | None = None

    def fit(self, preset: str, settings: Mapping[str, object], seed: int) -> Synthesizer:
        """The model of the known images but those that choose its weights."""
        table = self.table(self.known)
        columns = [
            {"name": name, "kind": "continuous", "minimum": 0, "maximum": 1} for name in table
        ]
        return Synthesizer.fit(
            table,
            schema={"columns": columns},
            preset=preset,
            settings={"numbers": "unit", "held_out_share": self._share, **settings},
            seed=seed,
            device="cpu",
        )

    def parts(self, seed: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(images that a fit with this seed trains on, those that it holds out): their numbers."""
        trained, held_out = split(len(self.known), self._share, seed)
        return trained.numpy(), held_out.numpy()

    def table(self, pixels: Pixels) -> pd.DataFrame:
        """The images as a table: a column for each pixel."""
        width = pixels.shape[1] // self.height
        names = [f"r{i // width}c{i % width}" for i in range(pixels.shape[1])]
        return pd.DataFrame(pixels.astype(np.float64), columns=names)

    @property
    def _share(self) -> float:
        return self.n_validation / len(self.known)


@dataclass(frozen=True)
class Drawn:
    """Images drawn from a model. Shape: mean, direction (n, H W); omega (n,) or (n, H W).

    Attributes:
        direction: a, zero for a model without.
        omega: The variance of the noise.
    """

    mean: Pixels
    direction: Pixels
    omega: Pixels
    seed: int

    def of_sort(self, sort: str) -> Pixels:
        """The images as one of `SORTS` says, within [0, 1]."""
        s, noise = (
            normal(shape, generator_for(self.seed, f"images {name}")).numpy()
            for name, shape in (("s", (len(self.mean), 1)), ("noise", self.mean.shape))
        )
        images = self.mean if sort == "μ" else self.mean + self.direction * s
        if sort == "x":
            images = images + np.sqrt(self.omega) * noise
        return images.clip(0.0, 1.0).astype(np.float32)


def draw(fitted: Synthesizer, n: int, seed: int) -> Drawn:
    """n images of the model, z ~ p(z)."""
    z = fitted.model.prior.sample(n, generator_for(seed, "images"))
    return at(fitted, z, seed)


def at(fitted: Synthesizer, z: torch.Tensor, seed: int = 0) -> Drawn:
    """What the decoder makes of each z. Shape: (n, K)."""
    with torch.no_grad():
        parts = [_decoded(fitted, some) for some in z.float().split(1_000)]
    mean, direction, omega = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Drawn(mean, direction, omega, seed)


def _decoded(fitted: Synthesizer, z: torch.Tensor) -> tuple[Pixels, Pixels, Pixels]:
    conditional = fitted.model.conditional(z)
    if isinstance(conditional, PrincipalDirectionConditional):
        mean, omega = conditional.mean, conditional.noise[:, None]
        return mean.numpy(), conditional.direction.numpy(), omega.numpy()
    _, mean, log_sigma = (part[..., 0] for part in conditional.alone.numbers.components)
    return mean.numpy(), torch.zeros_like(mean).numpy(), torch.exp(2.0 * log_sigma).numpy()


def posterior_means(fitted: Synthesizer, images: Images, pixels: Pixels) -> torch.Tensor:
    """η of each image. Shape: (n, H W) -> (n, K)."""
    rows = fitted.codec.encode(images.table(pixels))
    with torch.no_grad():
        eta, _ = fitted.model.encoder(rows)
    found: torch.Tensor = eta
    return found


def measured(fitted: Synthesizer, images: Images, budget: Budget, seed: int) -> dict[str, Any]:
    """Parzen windows of each sort with their standard errors, and nats of test images."""
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
    """The figure of the sort that suits the validation images best."""
    best = max(figures["windows"].values(), key=lambda window: window["validation"])
    return float(best["nats"])


def windows_on(centres: Pixels, by: Pixels, test: Pixels) -> dict[str, float]:
    """Nats per test image by Parzen windows on images, σ chosen by others."""
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
    """(the model, what it cost)."""
    begun_at = time.process_time()
    fitted = images.fit(preset, settings, seed)
    seconds = round(time.process_time() - begun_at, 1)
    record = fitted.training_record
    cost = {"steps": record["steps"], "cpu_seconds": seconds, "seed": seed}
    return fitted, cost | {"bound_held_out": record["bound_held_out"]}
