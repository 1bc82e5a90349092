"""Laws of the autoregressive decoder: it starts at the marginals, and its masses sum to one."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.autoregressive import column_order
from gcvae.model.autoregressive_decoder import AutoregressiveConditional, AutoregressiveDecoder
from gcvae.model.change_points import ChangePoints
from gcvae.model.decoders import GenerativeModel
from gcvae.model.networks import ColumnShape
from gcvae.numerics.generators import generator_for, uniform
from gcvae.training.assembly import build_model
from gcvae.training.calibration import calibrate
from gcvae.training.settings import configure, settle
from tests.gcvae.models import latents, levels, number_or_missing, rows_of

DISCRETE = [levels(2), levels(3), levels(4), levels(2)]
AMOUNT = ColumnShape("amount", n_codes=3, point_code=2, code_scores=(-2.0, -0.5, 0.0))
AGES = ColumnShape(
    "age",
    n_codes=22,
    point_code=21,
    code_scores=(-2.5, *(0.2 * k - 2.0 for k in range(20)), 0.0),
    discrete_codes=range(1, 21),
)
MIXED = [levels(3), AMOUNT, AGES, number_or_missing(), levels(2)]


def change_points(column: int, points: list[float], parent: int) -> ChangePoints:
    """Change points with random log ratios, as the last ones of a table's counts would be."""
    random = np.random.default_rng(column)
    shape = MIXED[parent].n_codes, len(points) + 1
    return ChangePoints(column, np.array(points), parent, random.normal(size=shape))


CHANGE_POINTS = [
    change_points(1, [-1.1, 0.3], parent=0),
    change_points(2, [4.0, 9.0, 15.0], parent=4),
    change_points(3, [0.7], parent=2),
]
"""Of MIXED."""


def autoregressive_model(columns: list[ColumnShape], strength: float = 0.5) -> GenerativeModel:
    """An autoregressive decoder with random weights in the layers that start at zero, float64."""
    settings = {"d_latent": 2, "d_hidden": 8, "d_sum": 8, "d_column": 6, "n_components": 3}
    config = settle(configure("default", settings), n_rows=100, n_columns=len(columns))
    found = CHANGE_POINTS if columns is MIXED and strength else []
    model = build_model(config, columns, seed=0, change_points=found).double()
    assert isinstance(model.decoder, AutoregressiveDecoder)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.decoder.refinement.parameters():
            parameter.add_(strength * torch.randn_like(parameter))
    return model


def mixed_rows(n: int = 40) -> EncodedTable:
    generator = generator_for(1, "rows")
    codes = torch.stack([torch.randint(0, c.n_codes, (n,), generator=generator) for c in MIXED], 1)
    values = torch.randn(n, len(MIXED), generator=generator, dtype=torch.float64)
    return EncodedTable(codes.int(), values, torch.ones_like(codes, dtype=torch.bool))


def all_rows() -> EncodedTable:
    return rows_of(list(itertools.product(*(range(c.n_codes) for c in DISCRETE))))


def test_an_untrained_network_leaves_the_marginals_without_copula() -> None:
    model = autoregressive_model(MIXED, strength=0.0)
    conditional = model.conditional(latents(40))
    assert isinstance(conditional, AutoregressiveConditional)
    cells = conditional.marginals.cells(
        conditional.marginals.parameters_of(conditional.outputs), mixed_rows()
    )
    got = conditional.log_prob(mixed_rows(), None)
    torch.testing.assert_close(got, cells.log_prob.sum(-1), atol=1e-6, rtol=0.0)


def test_the_masses_of_all_rows_sum_to_one() -> None:
    log_mass = (
        autoregressive_model(DISCRETE).conditional(latents(3)[:, None]).log_prob(all_rows(), None)
    )
    torch.testing.assert_close(log_mass.exp().sum(-1), torch.ones(3).double(), atol=1e-9, rtol=0)


def walked(model: GenerativeModel, rows: EncodedTable, z: Tensor, noise: Tensor) -> Tensor:
    """Probability of each row at its z; noise fills the blanks. Shape: (n,)."""
    return model.decoder.row_likelihoods()(rows, z[None], noise[None])[0, :, -1].exp()


def test_walking_column_by_column_gives_the_same_probability() -> None:
    model, rows = autoregressive_model(MIXED), mixed_rows()
    noise = uniform((1, 40, len(MIXED)), generator_for(0, "noise"), torch.float64)
    walked = model.decoder.row_likelihoods()(rows, latents(40)[None], noise)[0]
    expected = model.conditional(latents(40)).log_prefixes(rows)
    torch.testing.assert_close(walked.float(), expected.float(), atol=1e-6, rtol=0)


def test_a_column_does_not_see_those_after_it() -> None:
    """Changing the last column, that of most codes, changes the probability of its cell only."""
    model = autoregressive_model(DISCRETE)
    rows = rows_of([[1, 2, k, 0] for k in range(4)])
    both = model.conditional(latents(1)).log_prob(rows, None).exp().sum()
    blank = replace(rows, observed=torch.tensor([[True, True, False, True]] * 4))
    noise = torch.full((2, 4), 0.5, dtype=torch.float64)
    without = walked(model, blank.take(torch.tensor([0])), latents(1), noise[:1])
    torch.testing.assert_close(both, without[0])


def test_columns_come_in_the_order_of_their_codes_and_numbers_last() -> None:
    assert column_order([AMOUNT, levels(3), AGES, levels(2), levels(3)]) == [3, 1, 4, 2, 0]


def test_a_density_on_a_transformed_axis_integrates_to_one() -> None:
    model = autoregressive_model([AMOUNT, levels(2)])
    assert isinstance(model.decoder, AutoregressiveDecoder)
    transform = model.decoder.refinement.warps.column(0)
    transform.heights.copy_(transform.knots + 0.4 * torch.sin(transform.knots))
    grid = torch.linspace(-30.0, 30.0, 60_001, dtype=torch.float64)
    cells = EncodedTable(
        torch.tensor([[2, 0]], dtype=torch.int32).expand(60_001, 2),
        torch.stack([grid, 0 * grid], 1),
        torch.tensor([[True, True]]).expand(60_001, 2),
    )
    codes = rows_of([[0, 0], [0, 1], [1, 0], [1, 1]])
    total = model.conditional(latents(1)).log_prob(codes, None).exp().sum()
    for level in range(2):
        at_level = replace(cells, codes=torch.tensor([[2, level]]).int().expand(60_001, 2))
        density = model.conditional(latents(1)).log_prob(at_level, None).exp()
        total = total + torch.trapezoid(density, grid)
    assert total.item() == pytest.approx(1.0, abs=1e-4)


def test_blanks_are_integrated_out_in_the_mean() -> None:
    """Sequential importance sampling: the mean weight is the sum over the blank's outcomes."""
    model, n = autoregressive_model(DISCRETE), 20_000
    rows = rows_of([[1, k, 2, 0] for k in range(3)])
    exact = model.conditional(latents(1)).log_prob(rows, None).exp().sum()
    blank = replace(rows, observed=torch.tensor([[True, False, True, True]] * 3))
    noise = uniform((n, 4), generator_for(0, "noise"), torch.float64)
    repeated = blank.take(torch.zeros(n, dtype=torch.long))
    weights = walked(model, repeated, latents(1).expand(n, 2), noise)
    assert abs(weights.mean() - exact) < 4.0 * weights.std() / n**0.5


def test_drawn_rows_have_the_probabilities_of_the_exact_masses() -> None:
    model, n = autoregressive_model(DISCRETE), 100_000
    codes, _ = model.conditional(latents(1).expand(n, 2)).sample(generator_for(5, "draws"))
    expected = model.conditional(latents(1)[:, None]).log_prob(all_rows(), None)[0].exp()
    counts = torch.bincount((codes.long() * torch.tensor([24, 8, 2, 1])).sum(1), minlength=48) / n
    torch.testing.assert_close(counts.double(), expected.detach(), atol=0.006, rtol=0.0)


def test_drawn_numbers_have_the_mean_of_their_density() -> None:
    model, n = autoregressive_model([AMOUNT, number_or_missing()]), 60_000
    z = latents(1)
    codes, values = model.conditional(z.expand(n, 2)).sample(generator_for(5, "draws"))
    grid = torch.linspace(-15.0, 15.0, 3001, dtype=torch.float64)
    cells = EncodedTable(
        torch.full((3001, 2), 2, dtype=torch.int32),
        torch.stack([grid, grid], 1),
        torch.tensor([[True, False]]).expand(3001, 2),
    )
    noise = torch.full((3001, 2), 0.5, dtype=torch.float64)
    density = walked(model, cells, z.expand(3001, 2), noise)
    share = torch.trapezoid(density, grid)
    drawn = codes[:, 0] == 2
    assert drawn.double().mean().item() == pytest.approx(share.item(), abs=0.01)
    mean = torch.trapezoid(density * grid, grid) / share
    error = values[drawn, 0].std() / drawn.sum() ** 0.5
    assert abs(values[drawn, 0].mean() - mean) < 5.0 * error


def test_an_unseen_level_scores_minus_infinity() -> None:
    log_mass = (
        autoregressive_model(DISCRETE)
        .conditional(latents(1))
        .log_prob(rows_of([[0, -1, 0, 0]]), None)
    )
    assert log_mass.item() == -torch.inf


def test_blank_cells_have_no_parallel_pass() -> None:
    blank = replace(all_rows(), observed=torch.zeros(48, 4, dtype=torch.bool))
    with pytest.raises(ValueError, match="complete rows"):
        autoregressive_model(DISCRETE).conditional(latents(1)).log_prob(blank, None)


def test_calibration_gives_the_model_the_margins_of_the_table() -> None:
    model = autoregressive_model(DISCRETE, strength=0.3).float()
    generator = generator_for(3, "codes")
    shares = [
        torch.tensor(s) for s in ([0.9, 0.1], [0.2, 0.3, 0.5], [0.7, 0.1, 0.1, 0.1], [0.5, 0.5])
    ]
    codes = torch.stack([torch.multinomial(s, 5000, True, generator=generator) for s in shares], 1)
    calibrate(model, [torch.bincount(column) for column in codes.T], seed=0)
    with torch.no_grad():
        drawn, _ = model.sample(50_000, generator_for(4, "draws"))
    for j, share in enumerate(shares):
        present = torch.bincount(drawn[:, j].long(), minlength=len(share)) / len(drawn)
        assert (present - share).abs().max() < 0.02


def test_calibration_gives_numbers_their_distribution() -> None:
    """The numbers of a codec are standard normal; the model's are too, once it is calibrated."""
    model = autoregressive_model([levels(2), number_or_missing()], strength=0.3).float()
    codes = torch.tensor([[0, 1], [1, 1], [1, 0]]).repeat(2000, 1)
    calibrate(model, [torch.bincount(column) for column in codes.T], seed=0)
    with torch.no_grad():
        drawn, values = model.sample(50_000, generator_for(4, "draws"))
    assert kstest(values[drawn[:, 1] == 1, 1].numpy(), "norm").statistic < 0.01


def test_a_row_that_runs_away_stays_bounded() -> None:
    """The means of each number follow those before it ten times as far: without bounds the last of
    twenty would lie beyond 10 ** 19, and of some more columns beyond the finite numbers."""
    number = ColumnShape("number", n_codes=2, point_code=1, code_scores=(-2.0, 0.0))
    model = autoregressive_model([number] * 20, strength=0.0)
    assert isinstance(model.decoder, AutoregressiveDecoder)
    with torch.no_grad():
        model.decoder.refinement.slopes[..., 0] = 10.0
        for shift in model.decoder.refinement.shifts:
            shift[:, 1] = 20.0
    z = latents(200, 2)
    codes, values = model.decoder.row_draws()(z, generator_for(0, "draws"))
    assert bool((codes == 1).all())
    assert 100.0 < float(values.abs().max()) < 10.0 * 8.0 * 20
    rows = EncodedTable(codes, values, torch.ones_like(codes, dtype=torch.bool))
    assert bool(torch.isfinite(model.conditional(z).log_prob(rows, None)).all())
