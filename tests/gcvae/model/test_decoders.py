"""Laws of p(x|z): the three models of the paper, in float64."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.copula import RankOneCopula
from gcvae.model.decoders import CopulaConditional, CopulaDecoder
from gcvae.numerics.generators import generator_for, uniform
from gcvae.paper.principal_direction import PrincipalDirectionDecoder
from tests.gcvae.models import latents, levels, number, number_or_missing, random_model, rows_of

DISCRETE = [levels(2), levels(3), levels(4), levels(2)]
MIXED = [number(), levels(3), number_or_missing(), levels(2), number()]
MODELS = ["paper-vae", "paper-vae-roc", "paper-gcvae"]


def mixed_rows(n: int = 6) -> EncodedTable:
    generator = generator_for(1, "rows")
    codes = torch.stack([torch.randint(0, c.n_codes, (n,), generator=generator) for c in MIXED], 1)
    values = torch.randn(n, len(MIXED), generator=generator, dtype=torch.float64)
    return EncodedTable(codes.int(), values, torch.ones_like(codes, dtype=torch.bool))


def all_rows(columns: list[object] = DISCRETE) -> EncodedTable:
    return rows_of(list(itertools.product(*(range(c.n_codes) for c in columns))))  # type: ignore[attr-defined]


@pytest.mark.parametrize("preset", MODELS)
@pytest.mark.parametrize("strength", [0.0, 1.0, 5.0])
def test_the_masses_of_all_rows_of_a_discrete_table_sum_to_one(
    preset: str, strength: float
) -> None:
    model = random_model(preset, DISCRETE, strength=strength)
    z = latents(3)[:, None]
    log_mass = model.conditional(z).log_prob(all_rows(), None)
    torch.testing.assert_close(log_mass.exp().sum(-1), torch.ones(3).double(), atol=1e-7, rtol=0.0)


def test_exact_masses_agree_with_the_mean_over_jitters() -> None:
    model = random_model("paper-gcvae", DISCRETE, strength=2.0)
    conditional, rows = model.conditional(latents(1)[:, None]), all_rows()
    generator = generator_for(2, "jitter")
    shape = (20_000, *rows.codes.shape)
    jittered = conditional.log_prob(rows, uniform(shape, generator).double()).exp()
    error = jittered.std(0) / len(jittered) ** 0.5
    difference = (jittered.mean(0) - conditional.log_prob(rows, None)[0].exp()).abs()
    assert bool((difference < 4.5 * error + 1e-9).all())


@pytest.mark.parametrize("column", [number(), number_or_missing()])
@pytest.mark.parametrize("preset", MODELS)
def test_the_density_of_one_column_integrates_to_one(preset: str, column: object) -> None:
    model = random_model(preset, [column], strength=2.0)  # type: ignore[list-item]
    grid = torch.linspace(-30.0, 30.0, 20_001, dtype=torch.float64)
    point = column.point_code  # type: ignore[attr-defined]
    codes = torch.full((len(grid), 1), point, dtype=torch.int32)
    rows = EncodedTable(codes, grid[:, None], torch.ones_like(codes, dtype=torch.bool))
    conditional = model.conditional(latents(1)[:, None])
    total = torch.trapezoid(conditional.log_prob(rows, None).exp(), grid).item()
    if point == 1:
        total += conditional.log_prob(rows_of([[0]]), None).exp().item()
    assert total == pytest.approx(1.0, abs=1e-9)


def test_a_gcvae_with_zero_loadings_is_the_vae() -> None:
    gcvae, vae = random_model("paper-gcvae", MIXED), random_model("paper-vae", MIXED)
    vae.load_state_dict(gcvae.state_dict(), strict=False)
    assert isinstance(gcvae.decoder, CopulaDecoder)
    assert gcvae.decoder.loadings is not None
    torch.nn.init.zeros_(gcvae.decoder.loadings.weight)
    torch.nn.init.zeros_(gcvae.decoder.loadings.bias)
    z, rows = latents(6), mixed_rows()
    jitter = uniform((6, len(MIXED)), generator_for(0, "jitter")).double()
    independent = vae.conditional(z).log_prob(rows, None)
    torch.testing.assert_close(
        gcvae.conditional(z).log_prob(rows, None), independent, atol=1e-9, rtol=0
    )
    torch.testing.assert_close(
        gcvae.conditional(z).log_prob(rows, jitter), independent, atol=1e-12, rtol=0
    )


def roc_and_its_gcvae(n_columns: int, z: Tensor) -> tuple[object, CopulaConditional]:
    """A VAE-ROC's p(x|z), and the GCVAE with sigma_i^2 = omega + a_i^2 and b = a / sqrt(omega)."""
    columns = [number(str(j)) for j in range(n_columns)]
    roc = random_model("paper-vae-roc", columns, strength=2.0)
    assert isinstance(roc.decoder, PrincipalDirectionDecoder)
    given = roc.decoder(z)
    marginals = roc.decoder.marginals
    copula = RankOneCopula(given.direction, given.noise)
    return given, CopulaConditional(
        marginals, given.marginal_parameters, copula, score_gradient=True
    )


def test_vae_roc_is_the_gcvae_whose_gaussian_marginals_have_variance_omega_plus_a_squared() -> None:
    z = latents(5)
    roc, gcvae = roc_and_its_gcvae(4, z)
    values = torch.randn(5, 4, generator=generator_for(0, "x"), dtype=torch.float64)
    rows = rows_of([[0] * 4] * 5, values.tolist())
    torch.testing.assert_close(
        roc.log_prob(rows, None),
        gcvae.log_prob(rows, None),
        atol=1e-9,
        rtol=0.0,  # type: ignore[attr-defined]
    )
    torch.testing.assert_close(
        roc.correlation(),
        gcvae.correlation(),
        atol=1e-12,
        rtol=0.0,  # type: ignore[attr-defined]
    )


def test_vae_roc_is_the_dense_multivariate_normal() -> None:
    z = latents(5)
    roc, _ = roc_and_its_gcvae(4, z)
    values = torch.randn(5, 4, generator=generator_for(0, "x"), dtype=torch.float64)
    a, omega = roc.direction, roc.noise  # type: ignore[attr-defined]
    cov = omega[:, None, None] * torch.eye(4).double() + a[:, :, None] * a[:, None, :]
    dense = torch.distributions.MultivariateNormal(roc.mean, cov).log_prob(values)  # type: ignore[attr-defined]
    got = roc.log_prob(rows_of([[0] * 4] * 5, values.tolist()), None)  # type: ignore[attr-defined]
    torch.testing.assert_close(got, dense, atol=1e-10, rtol=0.0)


@pytest.mark.parametrize("preset", MODELS)
def test_a_blank_cell_is_the_sum_over_its_outcomes(preset: str) -> None:
    """Leaving a discrete column out equals adding its levels up."""
    model = random_model(preset, DISCRETE, strength=2.0)
    conditional = model.conditional(latents(2)[:, None])
    rows = rows_of([[1, k, 2, 0] for k in range(3)])
    blank = replace(rows, observed=torch.tensor([[True, False, True, True]] * 3))
    summed = conditional.log_prob(rows, None).logsumexp(-1)
    torch.testing.assert_close(conditional.log_prob(blank, None)[:, 0], summed, atol=1e-7, rtol=0.0)


@pytest.mark.parametrize("preset", MODELS)
def test_a_level_that_the_table_never_had_scores_minus_infinity(preset: str) -> None:
    model = random_model(preset, DISCRETE)
    log_mass = model.conditional(latents(2)).log_prob(rows_of([[0, -1, 0, 0], [0, 1, 0, 0]]), None)
    assert log_mass[0] == -torch.inf
    assert bool(torch.isfinite(log_mass[1]))


@pytest.mark.parametrize("preset", MODELS)
def test_the_quantile_of_the_cdf_is_the_cell(preset: str) -> None:
    model = random_model(preset, MIXED)
    rows, z = mixed_rows(), latents(6)
    decoder = model.decoder
    marginals = decoder.marginals  # type: ignore[union-attr]
    parameters = marginals(decoder.trunk(z))  # type: ignore[operator, union-attr]
    cells = marginals.cells(parameters, rows)  # type: ignore[operator]
    scores = cells.jittered_scores(uniform((6, len(MIXED)), generator_for(0, "v")).double())
    codes, values = marginals.quantile(parameters, scores)  # type: ignore[operator]
    assert torch.equal(codes, rows.codes)
    point = cells.is_point
    torch.testing.assert_close(values[point], rows.values[point], atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("preset", MODELS)
def test_drawn_rows_have_the_probabilities_of_the_exact_masses(preset: str) -> None:
    model = random_model(preset, DISCRETE, strength=2.0)
    z = latents(1).expand(100_000, 2)
    codes, _ = model.conditional(z).sample(generator_for(5, "draws"))
    rows = all_rows()
    expected = model.conditional(latents(1)[:, None]).log_prob(rows, None)[0].exp()
    base = torch.tensor([24, 8, 2, 1])
    counts = torch.bincount((codes.long() * base).sum(1), minlength=len(rows.codes)) / len(codes)
    torch.testing.assert_close(counts.double(), expected.detach(), atol=0.006, rtol=0.0)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("size", [1.0, 12.0, 1e4])
def test_gradients_are_finite_for_values_many_sigmas_out(size: float, exact: bool) -> None:
    """Phi^-1(Phi(t)) is infinite in float32 from 5.4 sigma on; the analytic score is not."""
    model = random_model("paper-gcvae", MIXED, strength=3.0, score_gradient=True).float()
    rows = mixed_rows()
    rows = replace(rows, values=rows.values * size)
    jitter = None if exact else uniform((6, len(MIXED)), generator_for(0, "v"))
    model.conditional(latents(6).float()).log_prob(rows, jitter).sum().backward()
    gradients = [p.grad for p in model.decoder.parameters() if p.grad is not None]
    assert gradients
    assert all(bool(torch.isfinite(g).all()) for g in gradients)


def test_constant_scores_give_the_marginals_no_gradient_from_the_copula() -> None:
    held, free = (
        random_model("paper-gcvae", MIXED, strength=2.0, score_gradient=g) for g in (False, True)
    )
    vae = random_model("paper-vae", MIXED, strength=2.0)
    vae.load_state_dict(held.state_dict(), strict=False)
    jitter = uniform((6, len(MIXED)), generator_for(0, "v")).double()
    for model in (held, free, vae):
        model.conditional(latents(6)).log_prob(mixed_rows(), jitter).sum().backward()
    of_logits = [m.decoder.marginals.groups[0].logits.weight.grad for m in (held, free, vae)]  # type: ignore[union-attr]
    assert torch.equal(of_logits[0], of_logits[2])
    assert not torch.allclose(of_logits[1], of_logits[2])


@pytest.mark.parametrize("preset", MODELS)
def test_on_the_unit_interval_no_mean_is_outside(preset: str) -> None:
    columns = [number(), levels(3), number()]
    free, inside = (
        random_model(preset, columns, strength=9.0, encoding=encoding)
        for encoding in ("standardised", "unit")
    )
    z = latents(400)
    means = [
        model.conditional(z).marginal_parameters.numbers.components[1] for model in (free, inside)
    ]
    assert means[0].abs().max() > 1.0
    torch.testing.assert_close(means[1], means[0].sigmoid())
