"""Look-ahead to a column that others fix: the same distribution, and many more particles count."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gcvae.codec.region import Region
from gcvae.model.level_functions import LevelFunction
from gcvae.numerics.generators import generator_for
from gcvae.sampling import particles
from gcvae.sampling.lookahead_columns import lookahead_regions
from gcvae.sampling.particles import draw_particles, effective_size, log_mean
from tests.gcvae.model.test_level_functions import COLUMNS, ROWS, model_with

TWO = LevelFunction(
    1,
    (0, 2),
    np.array([[a, c, (a + c) % 3] for a in range(2) for c in range(4) if a + c != 1]),
    0.05,
)
"""Of two pairs of parents nothing is said."""
ONE = LevelFunction(1, (3,), np.array([[k, k % 3] for k in range(5)]), 0.0)
"""Demanded, and so after its parent, of whose last code nothing is said."""


def region_of(j: int, codes: list[int]) -> Region:
    log_share = torch.full((1, COLUMNS[j].n_codes), -torch.inf, dtype=torch.float64)
    log_share[:, codes] = 0.0
    end = torch.full((1, 1), torch.inf, dtype=torch.float64)
    return Region(log_share, -end, end)


@pytest.mark.parametrize("function", [TWO, ONE])
@pytest.mark.parametrize("own", [None, [0, 2]])
def test_foresight_leaves_the_probability_of_a_condition(
    function: LevelFunction, own: list[int] | None
) -> None:
    model = model_with(function).float()
    regions: list[Region | None] = [None] * len(COLUMNS)
    regions[1] = region_of(1, [2])
    parent = function.parents[-1]
    regions[parent] = None if own is None else region_of(parent, own)
    assert set(lookahead_regions(model, model.decoder.refinement.order, regions)) == set(
        function.parents
    )
    latent = model.prior.sample(40_000, generator_for(0, "latents"))
    with torch.no_grad():
        found = draw_particles(
            model, regions, latent, torch.zeros(len(latent)), generator_for(0, "noise")
        )
        is_in = (ROWS.codes[:, 1] == 2) & torch.isin(
            ROWS.codes[:, parent], torch.tensor(own or range(6), dtype=torch.int32)
        )
        exact = model.conditional(latent[:4000, None]).log_prob(ROWS, None).exp()[:, is_in]
    assert log_mean(found.log_weight).exp() == pytest.approx(float(exact.sum(-1).mean()), rel=0.03)
    shares = torch.zeros(COLUMNS[parent].n_codes, dtype=torch.float64)
    weight = torch.softmax(found.log_weight, -1)
    shares.index_add_(0, found.codes[:, parent].long(), weight)
    expected = torch.zeros_like(shares)
    mass = exact.mean(0).double() / exact.mean(0).sum()
    expected.index_add_(0, ROWS.codes[is_in, parent].long(), mass)
    torch.testing.assert_close(shares, expected, atol=0.01, rtol=0.0)


def test_more_particles_count(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_with(ONE).float()
    regions = [None, region_of(1, [2]), None, None]
    latent = model.prior.sample(2000, generator_for(0, "latents"))

    def size() -> float:
        noise = generator_for(0, "noise")
        with torch.no_grad():
            drawn = draw_particles(model, regions, latent, torch.zeros(len(latent)), noise)
        return float(effective_size(drawn.log_weight))

    ahead = size()
    monkeypatch.setattr(particles, "lookahead_regions", lambda *_: {})
    assert ahead > 1.5 * size()


def test_only_a_column_that_comes_later_is_looked_ahead_to() -> None:
    function = LevelFunction(1, (3,), ONE.pairs, 0.1)
    model = model_with(function)
    regions = [None, region_of(1, [2]), None, None]
    assert lookahead_regions(model, model.decoder.refinement.order, regions) == {}
    assert lookahead_regions(model_with(ONE), None, regions) == {}
