"""Experiments on the half circle with wedges (the paper's Table 1 and its figures), and the effect
of an ℓ2 penalty on a(z).

The paper adds three wedges of 100 points each and does not state their shape. In these experiments
they are filled triangles that stand on the half circle at 45°, 90° and 135°, 0.4 wide at the base
and 0.6 high, pointing outward. Validation and test points come from the same mixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.budgets import Budget
from experiments.half_circle import NOISE, Points, Sets, draw_points, restarts, truth

ANGLES = (0.25 * np.pi, 0.5 * np.pi, 0.75 * np.pi)
HALF_WIDTH, HEIGHT = 0.2, 0.6
N_CIRCLE, N_WEDGE = 280, 100
SHARES = (1.0, 0.2, 0.2)
"""Numbers of training, validation and test points, as multiples of the numbers above."""
GRID_STEPS = 25
MODELS: dict[str, tuple[str, dict[str, object]]] = {
    "VAE": ("paper-vae", {}),
    "VAE-ROC": ("paper-vae-roc", {}),
    "VAE-ROC, λ = 0.1": ("paper-vae-roc", {"locality_weight": 0.1}),
    "VAE-ROC, λ = 5": ("paper-vae-roc", {"locality_weight": 5.0}),
}


def draw_with_wedges(share: float, generator: np.random.Generator) -> Points:
    """Draws points of the half circle and its wedges. Shape: (share · (280 + 3 · 100), 2)."""
    parts = [draw_points(round(share * N_CIRCLE), generator)]
    parts += [_wedge(angle, round(share * N_WEDGE), generator) for angle in ANGLES]
    return np.concatenate(parts)


def _wedge(angle: float, n: int, generator: np.random.Generator) -> Points:
    """Draws n points that are uniform on a triangle, with the half circle's noise. Shape: (n,
    2)."""
    height = 1.0 - np.sqrt(generator.uniform(size=n))
    across = HALF_WIDTH * (1.0 - height) * generator.uniform(-1.0, 1.0, n)
    out = np.array([np.cos(angle), np.sin(angle)])
    along = np.array([-out[1], out[0]])
    points = (1.0 + HEIGHT * height)[:, None] * out + across[:, None] * along
    noisy: Points = points + NOISE * generator.normal(size=(n, 2))
    return noisy


def run(budget: Budget, pictures: Path) -> Iterator[dict[str, Any]]:
    """Fits all restarts of each model and draws the best one by validation.

    Yields:
        A result for each restart, and one for points of the true distribution.
    """
    generator = np.random.default_rng(0)
    budget = replace(budget, restarts=budget.wedge_restarts)
    sets = Sets(*(draw_with_wedges(share, generator) for share in SHARES))
    for name, (preset, settings) in MODELS.items():
        path = pictures / picture_of(name)
        yield from restarts(sets, budget, name, preset, settings, (path, GRID_STEPS))
    share = budget.drawn_rows / (N_CIRCLE + len(ANGLES) * N_WEDGE)
    yield truth(sets, draw_with_wedges(share, generator))


def picture_of(name: str) -> str:
    """Returns the file name of the picture of a model."""
    words = name.lower().replace("λ = ", "l2-").replace(".", "").replace(",", "").split()
    return f"half-circle-wedges-{'-'.join(words)}.png"
