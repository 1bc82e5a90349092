"""Laws of the bounds and regularisers."""

from __future__ import annotations

import math

import pytest
import torch

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.bounds import (
    draw_elbo,
    elbo,
    iwae_bound,
    iwae_bounds,
    variance_of_mean,
)
from gcvae.model.priors import gaussian_kl
from gcvae.numerics.generators import generator_for
from gcvae.numerics.row_noise import RowNoise
from gcvae.paper.regularisers import locality_penalty, rank_penalty
from tests.gcvae.models import (
    latents,
    levels,
    number,
    number_or_missing,
    random_model,
    rows_of,
)

COLUMNS = [levels(3), number(), levels(2)]
ROWS = rows_of([[0, 0, 1], [2, 0, 0]], [[0, 0.3, 0], [0, -1.2, 0]])
MODELS = ["paper-vae", "paper-vae-roc", "paper-gcvae"]


def test_the_kl_is_that_of_torchs_normal_distributions() -> None:
    eta, log_tau = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 3, dtype=torch.float64)
    posterior = torch.distributions.Normal(eta, log_tau.exp())
    expected = torch.distributions.kl_divergence(posterior, torch.distributions.Normal(0.0, 1.0))
    torch.testing.assert_close(gaussian_kl(eta, log_tau), expected.sum(-1))


def noise_of(seed: int, purpose: str) -> RowNoise:
    return RowNoise.numbered(seed, purpose, range(10_000))


def repeated(n: int) -> EncodedTable:
    """Each of the two rows n times, side by side."""
    return ROWS.take(torch.arange(2).repeat(n))


@pytest.mark.parametrize("preset", MODELS)
def test_iwae_with_one_draw_is_the_elbo_in_expectation(preset: str) -> None:
    model, n = random_model(preset, COLUMNS), 5000
    one = iwae_bound(model, repeated(n), noise_of(0, "iwae"), n_draws=1).bound.view(n, 2)
    bound = elbo(model, repeated(n), generator_for(0, "elbo"), exact=True).view(n, 2)
    error = (one.var(0) + bound.var(0)).sqrt() / math.sqrt(n)
    assert bool(((one.mean(0) - bound.mean(0)).abs() < 4.0 * error).all())


def test_the_elbo_under_a_learned_prior_is_iwae_with_one_draw() -> None:
    model = random_model("paper-gcvae", COLUMNS, prior="autoregressive")
    rows = repeated(4000)
    single = iwae_bound(model, rows, noise_of(0, "a"), n_draws=1).bound.mean()
    bound = elbo(model, rows, generator_for(1, "b"), exact=True).mean()
    torch.testing.assert_close(single, bound, atol=0.15, rtol=0.0)


@pytest.mark.parametrize("preset", MODELS)
def test_more_draws_do_not_lower_the_bound(preset: str) -> None:
    model, n = random_model(preset, COLUMNS, strength=2.0), 300
    few, many = (
        iwae_bound(model, repeated(n), noise_of(0, "s"), n_draws=s).bound.view(n, 2)
        for s in (2, 100)
    )
    error = few.std(0) / math.sqrt(n)
    assert bool((many.mean(0) > few.mean(0) - 4.0 * error).all())


def test_the_iwae_bound_of_a_small_model_reaches_the_integral_over_z() -> None:
    """p(x) by a grid over the two latent dimensions."""
    model = random_model("paper-gcvae", COLUMNS, strength=2.0)
    axis = torch.linspace(-6.5, 6.5, 105, dtype=torch.float64)
    z = torch.cartesian_prod(axis, axis)
    log_joint = (
        model.conditional(z[:, None]).log_prob(ROWS, None) + model.prior.log_prob(z)[:, None]
    )
    log_p = log_joint.logsumexp(0) + 2.0 * math.log(float(axis[1] - axis[0]))
    estimate = iwae_bound(model, ROWS, noise_of(0, "s"), n_draws=20_000)
    assert bool(((estimate.bound - log_p).abs() < 5.0 * estimate.standard_error + 1e-6).all())
    assert bool((estimate.standard_error < 0.02).all())


def test_equal_weights_are_known_without_error_and_so_are_zero_weights() -> None:
    weights = torch.tensor([[2.0, -torch.inf], [2.0, -torch.inf]]).double()
    assert variance_of_mean(weights, weights[0]).tolist() == [0.0, 0.0]


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["paper-gcvae", "default"])
def test_many_short_estimates_have_the_mean_of_a_long_one(preset: str) -> None:
    """Means of weights are unbiased at any number of draws; those of the prior bound the weights of
    an encoder that was never trained.
    """
    model, n = random_model(preset, COLUMNS, strength=2.0), 3000
    blank = repeated(n)
    blank.observed[:, 0] = False
    for rows, numbers in ((repeated(n), (10, 24)), (blank, (5, 6, 12))):
        two = rows.take(torch.tensor([0, 1]))
        long = iwae_bound(model, two, noise_of(1, "long"), n_draws=40_000)
        for n_draws in numbers:
            short = iwae_bound(model, rows, noise_of(0, "short"), n_draws=n_draws)
            means = short.bound.double().exp().view(n, 2)
            error = means.std(0) / math.sqrt(n) + long.bound.exp() * long.standard_error
            assert bool(((means.mean(0) - long.bound.exp()).abs() < 4.0 * error).all()), n_draws


def test_strands_know_nothing_of_each_other_and_of_how_many_there_are() -> None:
    model, rows = random_model("default", COLUMNS, strength=2.0), repeated(500)
    one, other = noise_of(0, "one").take(torch.arange(1000)), noise_of(0, "other")
    both = iwae_bounds(model, rows, [one, other.take(torch.arange(1000))], n_draws=6)
    alone = iwae_bound(model, rows, one, n_draws=6)
    torch.testing.assert_close(both[0].bound, alone.bound)
    bounds = [found.bound.view(-1, 2) for found in both]
    off = [each - each.mean(0) for each in bounds]
    correlation = torch.corrcoef(torch.stack([off[0].flatten(), off[1].flatten()]))[0, 1]
    assert abs(correlation.item()) < 4.0 / math.sqrt(1000)


@pytest.mark.slow
def test_draws_that_lie_evenly_err_less_than_their_errors_say() -> None:
    model, n = random_model("paper-gcvae", COLUMNS, strength=2.0), 1500
    found = iwae_bound(model, repeated(n), noise_of(0, "s"), n_draws=32)
    spread = found.bound.view(n, 2).std(0)
    assert bool((spread < found.standard_error.view(n, 2).square().mean(0).sqrt()).all())


def test_mixed_estimates_are_the_mixture_of_their_means() -> None:
    model = random_model("paper-gcvae", COLUMNS)
    one, other = (iwae_bound(model, ROWS, noise_of(seed, "s"), n_draws=9) for seed in (0, 1))
    share = torch.tensor([0.25, 0.0], dtype=torch.float64)
    mixed = one.mixed(other, share)
    expected = (1.0 - share) * one.bound.exp() + share * other.bound.exp()
    torch.testing.assert_close(mixed.bound.exp(), expected)
    weights = (1.0 - share[0]) * one.bound[0].exp(), share[0] * other.bound[0].exp()
    parts = zip(weights, (one.variance[0], other.variance[0]), strict=True)
    variance = sum((weight.square() * part).item() for weight, part in parts)
    assert (mixed.variance[0] * mixed.bound[0].exp().square()).item() == pytest.approx(variance)
    torch.testing.assert_close(mixed.variance[1], one.variance[1])
    torch.testing.assert_close(mixed.terms.sum(1), mixed.bound)


@pytest.mark.parametrize("exact", [False, True])
def test_the_elbo_has_finite_gradients_in_every_parameter(exact: bool) -> None:
    model = random_model("paper-gcvae", COLUMNS).float()
    (-draw_elbo(model, ROWS, generator_for(0, "s"), exact=exact).elbo.mean()).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(torch.isfinite(parameter.grad).all()), name


@pytest.mark.parametrize(("p", "expected"), [(1, 49.0), (2, 25.0)])
def test_the_locality_penalty_is_the_squared_norm_of_the_direction(p: int, expected: float) -> None:
    assert locality_penalty(torch.tensor([[3.0, -4.0, 0.0]]), p).tolist() == [expected]


def test_the_rank_penalty_is_small_for_normal_draws_and_large_for_a_narrow_posterior() -> None:
    z = torch.randn(4000, 2, generator=generator_for(0, "z"))
    normal, narrow = (rank_penalty(s * z, generator_for(1, "u")).mean().item() for s in (1.0, 0.1))
    assert normal < 0.001 < 0.04 < narrow


@pytest.mark.parametrize("preset", MODELS)
def test_the_last_prefix_is_the_likelihood_and_blanks_and_unseen_levels_are_as_there(
    preset: str,
) -> None:
    columns = [levels(3), number(), number_or_missing(), levels(2), number()]
    rows = rows_of(
        [[0, 0, 1, 1, 0], [2, 0, 0, 0, 0], [-1, 0, 1, 1, 0]],
        [[0, 0.3, 1.0, 0, 2.0], [0, -1.2, 0, 0, -0.5], [0, 0.1, 0.2, 0, 0.3]],
    )
    rows.observed[1, 1] = rows.observed[0, 3] = False
    conditional = random_model(preset, columns, strength=2.0).conditional(latents(7)[:, None])
    prefixes = conditional.log_prefixes(rows)
    torch.testing.assert_close(prefixes[..., -1], conditional.log_prob(rows, None))
    torch.testing.assert_close(prefixes[:, 0, 3], prefixes[:, 0, 2])
    for j in range(1, 5):
        first = rows_of(rows.codes.tolist(), rows.values.tolist())
        first.observed[:] = rows.observed
        first.observed[:, j:] = False
        torch.testing.assert_close(prefixes[..., j - 1], conditional.log_prob(first, None))


@pytest.mark.parametrize("preset", MODELS)
def test_terms_add_up_and_the_first_is_the_log_likelihood_of_the_first_cell(preset: str) -> None:
    model = random_model(preset, COLUMNS, strength=2.0)
    estimate = iwae_bound(model, ROWS, noise_of(0, "s"), n_draws=5000)
    torch.testing.assert_close(estimate.terms.sum(1), estimate.bound)
    alone = EncodedTable(ROWS.codes, ROWS.values, torch.tensor([[True, False, False]] * 2))
    first = iwae_bound(model, alone, noise_of(1, "s"), n_draws=5000)
    torch.testing.assert_close(estimate.terms[:, 0], first.bound, atol=0.1, rtol=0.0)
    assert bool((first.terms[:, 1:] == 0.0).all())


@pytest.mark.parametrize("preset", MODELS)
def test_a_row_of_blanks_has_probability_one(preset: str) -> None:
    blank = EncodedTable(ROWS.codes, ROWS.values, torch.zeros(2, 3, dtype=torch.bool))
    estimate = iwae_bound(random_model(preset, COLUMNS), blank, noise_of(0, "s"), n_draws=2000)
    assert bool((estimate.bound.abs() < 4.0 * estimate.standard_error + 1e-6).all())
    assert bool((estimate.standard_error < 0.1).all())
