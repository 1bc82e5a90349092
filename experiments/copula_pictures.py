"""Pictures of the paper's appendix: samples of two columns from a Gaussian copula with the matrix Ψ
= ωI + aaᵀ, for several a and ω."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import ndtr

from gcvae.model.copula import RankOneCopula
from gcvae.numerics.generators import generator_for

N_POINTS = 600
CASES: dict[str, tuple[tuple[tuple[float, float], float], ...]] = {
    "direction": (((2.0, 2.0), 1.0), ((0.0, 0.0), 1.0), ((2.0, -2.0), 1.0)),
    "concordance": (((2.0, 2.0), 1.0), ((2.0, 8.0), 1.0), ((8.0, 2.0), 1.0)),
    "noise": (((1.0, 1.0), 0.1), ((1.0, 1.0), 1.0), ((1.0, 1.0), 10.0)),
    "norm": (((0.5, 0.5), 1.0), ((2.0, 2.0), 1.0), ((8.0, 8.0), 1.0)),
}


def run(pictures: Path) -> Iterator[dict[str, Any]]:
    """Draws samples of each copula in `CASES` into the picture copula.png.

    Yields:
        A result for each copula: its correlation by the formula, and that of the samples.
    """
    clouds = []
    for case, settings in CASES.items():
        for a, omega in settings:
            scores, correlation = draw_scores(a, omega, N_POINTS)
            clouds.append((f"{case}: a = ({a[0]:g}, {a[1]:g}), ω = {omega:g}", ndtr(scores)))
            drawn = float(np.corrcoef(scores.T)[0, 1])
            yield {"case": case, "a": list(a), "omega": omega, "rho": correlation, "drawn": drawn}
    _draw(clouds, pictures / "copula.png")


def draw_scores(
    a: tuple[float, float], omega: float, n: int
) -> tuple[npt.NDArray[np.float64], float]:
    """Draws n pairs of normal scores from the copula with the matrix ωI + aaᵀ.

    Returns:
        The scores, shape (n, 2), and their correlation by the formula.
    """
    loadings = torch.tensor(a).expand(n, 2)
    copula = RankOneCopula(loadings, torch.full((n,), omega))
    scores = copula.sample(generator_for(0, f"picture {a} {omega}"))
    return scores.double().numpy(), float(copula.correlation()[0, 0, 1])


def _draw(clouds: list[tuple[str, npt.NDArray[np.float64]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.6, 8.4), layout="constrained")
    for axes, (title, points) in zip(figure.subplots(len(CASES), 3).flat, clouds, strict=True):
        axes.plot(points[:, 0], points[:, 1], ".", color="#1f4e79", markersize=1.5)
        axes.set_title(title, fontsize=7)
        axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xticks=(0, 1), yticks=(0, 1))
        axes.tick_params(labelsize=6)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=90)
