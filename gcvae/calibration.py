"""Calibration of a refined model's one-way margins to those of the training table.

A model that is right column by column given what came before still drifts, a little with every
column, from the margins of the table. Here the drift is measured on rows of the model's own, and
taken out by a shift of each column's logits, in column order, so that later columns see calibrated
earlier ones.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gcvae.generators import generator_for, uniform
from gcvae.model import GenerativeModel
from gcvae.refinement import RefinedConditional, Walk

_N_ROWS = 20_000
_N_ROUNDS = 3
_PSEUDO_ROWS = 0.5
"""Added to the expected count of a code on both sides, so that rare codes are left alone."""


def calibrate(model: GenerativeModel, codes: Tensor, seed: int) -> None:
    """Shifts the refinement's logits in place until code shares are those of `codes`. (n, D)."""
    generator = generator_for(seed, "calibration")
    with torch.no_grad():
        conditional = model.conditional(model.prior.sample(_N_ROWS, generator))
        assert isinstance(conditional, RefinedConditional), "only a refinement is calibrated"
        walk = Walk(conditional)
        for j in range(codes.shape[1]):
            _calibrate_column(walk, j, codes[:, j])
            noise = uniform((_N_ROWS,), generator, torch.float64)
            walk.step(j, *walk.distribution(j).draw(noise))


def _calibrate_column(walk: Walk, j: int, codes: Tensor) -> None:
    """Moves the shift of column j by the log ratio of wanted and present shares, a few times."""
    g, at = walk.refinement.group_of(j)
    if g is None:
        return
    shift = walk.refinement.shifts[g][at]
    wanted = torch.bincount(codes.clamp(min=0), minlength=len(shift)) + _PSEUDO_ROWS
    for _ in range(_N_ROUNDS):
        present = walk.distribution(j).log_beta.exp().mean(0) * len(codes) + _PSEUDO_ROWS
        shift += (wanted / present).log()
