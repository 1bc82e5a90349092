"""Calibration: margins of models without a refinement."""

from __future__ import annotations

import pytest
import torch

from gcvae.numerics.generators import generator_for
from gcvae.training.calibration import calibrate
from tests.gcvae.models import levels, number, random_model

SHARES = ([0.9, 0.1], [0.2, 0.3, 0.5], [0.7, 0.1, 0.1, 0.1])


@pytest.mark.parametrize("preset", ["gcvae", "paper-vae-roc"])
def test_calibration_gives_a_model_of_one_step_the_margins_of_the_table(preset: str) -> None:
    model = random_model(preset, [levels(2), levels(3), number(), levels(4)], strength=2.0).float()
    generator = generator_for(0, "codes")
    drawn = [torch.multinomial(torch.tensor(s), 5000, True, generator=generator) for s in SHARES]
    codes = torch.stack([*drawn[:2], torch.zeros(5000, dtype=torch.long), drawn[2]], 1)
    calibrate(model, [torch.bincount(column) for column in codes.T], seed=0)
    with torch.no_grad():
        sampled, _ = model.sample(50_000, generator_for(1, "draws"))
    for j in (0, 1, 3):
        wanted, present = (torch.bincount(c[:, j].long()) / len(c) for c in (codes, sampled))
        torch.testing.assert_close(present, wanted, atol=0.01, rtol=0.0)
