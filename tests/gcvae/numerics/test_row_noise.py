"""Noise of rows: uniform and normal, each row's by itself, in any order and in any parts."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import kstest

from gcvae.errors import SettingError
from gcvae.numerics.row_noise import RowNoise
from tests.wordings import refuses


def noise(n: int = 200, seed: int = 0) -> RowNoise:
    return RowNoise.numbered(seed, "test", range(n))


def test_numbers_are_uniform_along_draws_rows_and_columns_and_normal_ones_normal() -> None:
    u = noise().uniform(100, 5)
    assert u.shape == (100, 200, 5)
    assert 0.0 < float(u.min()) < float(u.max()) < 1.0
    for one_way in (u[:, 3].flatten(), u[7].flatten(), u[..., 2].flatten()):
        assert kstest(one_way.numpy(), "uniform").pvalue > 1e-3
    eps = noise().normal(100, 5)
    assert kstest(eps.flatten().numpy(), "norm").pvalue > 1e-3
    neighbours = np.corrcoef(eps.permute(1, 0, 2).reshape(200, -1).numpy())
    assert np.abs(neighbours - np.eye(200)).max() < 5.5 / 500**0.5


def test_a_row_has_its_numbers_in_any_company_and_its_draws_in_any_parts() -> None:
    whole = noise().uniform(10, 3)
    some = torch.tensor([150, 3, 3])
    assert torch.equal(noise().take(some).uniform(10, 3), whole[:, some])
    parts = [noise().uniform(4, 3), noise().uniform(6, 3, first=4)]
    assert torch.equal(torch.cat(parts), whole)


def test_other_seeds_and_purposes_have_other_numbers() -> None:
    streams = [noise(), noise(seed=1), noise().of("z"), noise().of("prior")]
    u = torch.stack([stream.uniform(5, 2).flatten() for stream in streams])
    found = np.corrcoef(u.numpy())
    assert np.abs(found - np.eye(4)).max() < 5.0 / u.shape[1] ** 0.5
    with refuses(SettingError, "/seed"):
        noise(seed=-1)
