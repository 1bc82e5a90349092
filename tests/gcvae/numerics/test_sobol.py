"""Laws of evenly spread points under random shifts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gcvae.numerics.row_noise import RowNoise
from gcvae.numerics.sobol import sobol_points


def shifted(n: int, width: int, rows: int = 400) -> torch.Tensor:
    """Points of rows. Shape: (n, rows, width)."""
    noise = RowNoise.numbered(0, "sobol", range(rows))
    return noise.shifted(sobol_points(n, width)[:, None])


def test_every_stretch_of_every_dimension_has_its_points() -> None:
    points = shifted(16, 5)
    strata = (points * 16).long().sort(0).values
    assert bool((strata == torch.arange(16)[:, None, None]).all())


@pytest.mark.parametrize("n", [1, 6, 11])
def test_each_point_is_uniform(n: int) -> None:
    points = shifted(n, 3, rows=4000)
    assert bool(((points > 0) & (points < 1)).all())
    for threshold in (0.1, 0.5, 0.77):
        share = (points < threshold).double().mean(1)
        error = (threshold * (1 - threshold) / 4000) ** 0.5
        assert bool(((share - threshold).abs() < 5.0 * error).all())


def test_rows_have_shifts_of_their_own_and_nothing_has_no_points() -> None:
    first = shifted(1, 2)[0]
    assert len(np.unique(first.numpy(), axis=0)) == len(first)
    assert abs(float(torch.corrcoef(first.T)[0, 1])) < 0.2
    assert shifted(4, 0).shape == (4, 400, 0)
