"""The 10 × 10 manifold of UCI Auto, of the VAE and of the GCVAE with K = 2, on all its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from experiments.budgets import Budget
from experiments.uci import AUTO, PAPER_MODELS
from gcvae import Synthesizer

GRID_STEPS = 10
MODELS = ("VAE", "GCVAE")


def run(budget: Budget, folder: Path, pictures: Path) -> Iterator[dict[str, Any]]:
    """A line and a picture for each model."""
    frame = AUTO.read(folder)
    for name in MODELS:
        preset, settings = PAPER_MODELS[name]
        paper = {"d_latent": 2, "max_steps": budget.uci_steps}
        fitted = Synthesizer.fit(
            frame, schema=AUTO.schema(frame), preset=preset, seed=0, device="cpu",
            settings=AUTO.settings | paper | {"patience_steps": budget.patience_steps} | settings,
        )  # fmt: skip
        pictures.mkdir(parents=True, exist_ok=True)
        fitted.manifold(GRID_STEPS).draw(pictures / f"auto-manifold-{preset}.png")
        bound = fitted.training_record["bound_held_out"]
        yield {"model": name, "preset": preset, "bound_held_out": bound}
