"""Laws of drawing rows: the frequencies are the exact masses, whatever a logit's size."""

from __future__ import annotations

import itertools

import pytest
import torch
from scipy.stats import chisquare, kstest

from gcvae.model.autoregressive_decoder import AutoregressiveConditional, AutoregressiveDecoder
from gcvae.model.decoders import GenerativeModel
from gcvae.model.row_draws import _drawn
from gcvae.numerics.generators import generator_for
from tests.gcvae.model.test_autoregressive import AGES, autoregressive_model
from tests.gcvae.models import latents, levels, number_or_missing, rows_of

N = 100_000


def drawn_at_one_place(model: GenerativeModel, n: int = N) -> tuple[torch.Tensor, torch.Tensor]:
    z = latents(1).expand(n, 2)
    return model.decoder.row_draws()(z, generator_for(5, "draws"))


def test_codes_with_shaped_atoms_come_as_often_as_their_masses_say() -> None:
    model = autoregressive_model([levels(3), AGES, levels(2)])
    cells = list(itertools.product(range(3), range(AGES.n_codes - 1), range(2)))
    with torch.no_grad():
        mass = model.conditional(latents(1)[:, None]).log_prob(rows_of(cells), None)[0].exp()
    codes, _ = drawn_at_one_place(model)
    place = (codes.long() * torch.tensor([42, 2, 1])).sum(1)[codes[:, 1] < AGES.n_codes - 1]
    counts = torch.bincount(place, minlength=len(cells)).double()
    both = torch.cat([counts, N - counts.sum()[None]]), torch.cat([mass, 1.0 - mass.sum()[None]])
    assert chisquare(both[0], N * both[1]).pvalue > 1e-3


def test_numbers_are_uniform_under_their_distribution() -> None:
    model = autoregressive_model([levels(2), number_or_missing()])
    assert isinstance(model.decoder, AutoregressiveDecoder)
    transform = model.decoder.refinement.warps.column(0)
    transform.heights.copy_(transform.knots + 0.4 * torch.sin(transform.knots))
    codes, values = drawn_at_one_place(model)
    for level in range(2):
        conditional = model.conditional(latents(1))
        assert isinstance(conditional, AutoregressiveConditional)
        walk = conditional.walk()
        walk.step(0, torch.tensor([level]), torch.zeros(1, dtype=torch.float64))
        column = walk.column(1)
        assert column.marginal is not None
        numbers = values[(codes[:, 0] == level) & (codes[:, 1] == column.point_code), 1]
        u = column.marginal.cdf(column._forward(numbers)[0]).detach()
        assert len(u) > 1000
        assert kstest(u.numpy(), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("size", [1e2, 1e4])
def test_logits_of_any_size_give_the_codes_that_have_a_mass(size: float) -> None:
    model = autoregressive_model([levels(4)])
    assert isinstance(model.decoder, AutoregressiveDecoder)
    with torch.no_grad():
        model.decoder.refinement.shifts[0].add_(torch.tensor([-1.0, 1.0, 1.0, 0.0]) * size)
        mass = model.conditional(latents(1)[:, None]).log_prob(
            rows_of([[k] for k in range(4)]), None
        )
    codes, _ = drawn_at_one_place(model, 20_000)
    shares = torch.bincount(codes[:, 0].long(), minlength=4) / 20_000
    torch.testing.assert_close(shares.double(), mass[0].exp().double(), atol=0.02, rtol=0.0)
    assert shares[[0, 3]].sum() == 0


def test_no_code_without_mass_is_drawn_at_either_end_of_the_noise() -> None:
    masses = torch.tensor([[0.0, 0.3, 0.0, 0.1, 0.0]]).repeat(2, 1)
    ends = torch.tensor([2.0**-24, 1.0 - 2.0**-24])
    assert _drawn(masses, ends).tolist() == [1, 3]


def test_prepared_draws_and_the_conditional_give_the_same_rows() -> None:
    model = autoregressive_model([levels(3), levels(1), AGES, number_or_missing()])
    assert isinstance(model.decoder, AutoregressiveDecoder)
    z = latents(3000)
    first = model.decoder.row_draws()(z, generator_for(1, "draws"))
    again = model.conditional(z).sample(generator_for(1, "draws"))
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
