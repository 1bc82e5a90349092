"""Atoms stand among the numbers of their column: masses, draws and conditions go by their order."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.region import Region
from gcvae.model.decoders import CopulaConditional, GenerativeModel
from gcvae.model.networks import ColumnShape
from gcvae.numerics.generators import generator_for, uniform
from gcvae.numerics.normal import normal_cdf
from gcvae.sampling.conditioning import ConditionedModel
from tests.gcvae.models import latents, levels, number, random_model, rows_of
from tests.lengths import first_of

PLACES = (-math.inf, -0.4, 0.3, 0.3)
"""The missing level, an atom, and two between which no number lies."""
ATOMS = ColumnShape("atoms", 5, point_code=4, other_code_values=PLACES)
ONE_ATOM = ColumnShape("one", 2, point_code=1, other_code_values=(0.1,))
COLUMNS = [ATOMS, ONE_ATOM, levels(2)]
EDGES = {0: (-math.inf, -0.4, 0.3, 1.0, math.inf), 1: (-math.inf, -0.8, 0.1, math.inf)}


def model_of(columns: list[ColumnShape] = COLUMNS, **settings: object) -> GenerativeModel:
    return random_model("paper-gcvae", columns, strength=1.5, n_components=2, **settings)


def conditional(model: GenerativeModel, z: Tensor) -> CopulaConditional:
    found = model.conditional(z)
    assert isinstance(found, CopulaConditional)
    return found


def outcomes() -> list[list[tuple[int, float, float]]]:
    """By column (code, lower, upper): every code, and the intervals that the numbers fall into."""
    return [
        [(code, math.nan, math.nan) for code in range(column.n_codes - (j in EDGES))]
        + [(column.n_codes - 1, *ends) for ends in itertools.pairwise(EDGES.get(j, ()))]
        for j, column in enumerate(COLUMNS)
    ]


def interval_rows() -> EncodedTable:
    rows = list(itertools.product(*outcomes()))
    codes = torch.tensor([[code for code, *_ in row] for row in rows], dtype=torch.int32)
    intervals = torch.tensor([[ends for _, *ends in row] for row in rows], dtype=torch.float64)
    low, high = intervals.clamp(-9.0, 9.0).unbind(-1)
    values = torch.nan_to_num((low + high) / 2.0)
    return EncodedTable(codes, values, torch.ones_like(codes, dtype=torch.bool), intervals)


def places_of(codes: Tensor, values: Tensor) -> Tensor:
    """Which of `outcomes` each cell is. Shape: (n, D) twice -> (n, D)."""
    found = codes.long().clone()
    for j, edges in EDGES.items():
        is_number = codes[:, j] == COLUMNS[j].point_code
        inside = torch.searchsorted(torch.tensor(edges[1:-1]).double(), values[:, j].contiguous())
        found[:, j] += torch.where(is_number, inside, 0)
    return found


def counted(codes: Tensor, values: Tensor) -> Tensor:
    """The share of each of `interval_rows`."""
    sizes = [len(of_column) for of_column in outcomes()]
    flat = torch.zeros(len(codes), dtype=torch.long)
    for place, size in zip(places_of(codes, values).T, sizes, strict=True):
        flat = flat * size + place
    return torch.bincount(flat, minlength=math.prod(sizes)).double() / len(codes)


def test_the_masses_of_all_rows_of_a_mixed_copula_sum_to_one() -> None:
    found, rows = conditional(model_of(), latents(40)[:, None]), interval_rows()
    total = found.log_prefixes(rows)[..., -1].exp().sum(-1)
    torch.testing.assert_close(total, torch.ones(40).double(), atol=1e-7, rtol=0.0)


def test_drawn_rows_have_the_exact_masses_of_atoms_and_of_numbers_between_them() -> None:
    model, rows = model_of(), interval_rows()
    expected = conditional(model, latents(1)[:, None]).log_prefixes(rows)[0, :, -1].exp()
    drawn = model.conditional(latents(1).expand(200_000, 2)).sample(generator_for(5, "draws"))
    torch.testing.assert_close(counted(*drawn), expected.detach(), atol=0.004, rtol=0.0)


def test_columns_drawn_given_the_factor_have_the_same_masses() -> None:
    model, rows = model_of(), interval_rows()
    expected = conditional(model, latents(1)[:, None]).log_prefixes(rows)[0, :, -1].exp()
    generator, n = generator_for(6, "walk"), 200_000
    with torch.no_grad():
        factor = torch.randn(n, 1, generator=generator, dtype=torch.float64)
        walk = model.conditional(latents(1).expand(n, 2)).walk(factor)
        drawn = [
            walk.column(j).draw_within(None, uniform((n,), generator, torch.float64))
            for j in range(3)
        ]
    codes, values = (
        torch.stack([getattr(d, name) for d in drawn], 1) for name in ("codes", "values")
    )
    torch.testing.assert_close(counted(codes, values), expected.detach(), atol=0.004, rtol=0.0)


def test_a_cell_has_the_normal_score_of_its_place_in_the_whole_column() -> None:
    model = model_of()
    found = conditional(model, latents(1)[:, None])
    beta = found.parameters.log_beta[-1][0, 0, 0].exp()

    def below(value: float) -> Tensor:
        return found.parameters.numbers.cdf(torch.full((1, 1, 2), value).double())[0, 0, 0]

    rows = rows_of([[4, 0, 0], [1, 0, 0]], [[0.2, 0, 0], [0, 0, 0]])
    cells = found.marginals.cells(found.parameters, rows)
    at_number = beta[0] + beta[1] + beta[4] * below(0.2)
    assert normal_cdf(cells.score[0, 0, 0]).item() == pytest.approx(at_number.item(), abs=1e-12)
    lower, upper = (normal_cdf(end[0, 1, 0]).item() for end in cells.interval_bounds())
    start = (beta[0] + beta[4] * below(-0.4)).item()
    assert (lower, upper) == pytest.approx((start, start + beta[1].item()), abs=1e-12)


def test_the_quantile_of_a_cell_s_score_is_the_cell() -> None:
    model, n = model_of(), 400
    generator = generator_for(3, "cells")
    codes = torch.stack([torch.randint(c.n_codes, (n,), generator=generator) for c in COLUMNS], 1)
    values = torch.randn(n, 3, generator=generator, dtype=torch.float64)
    rows = EncodedTable(codes.int(), values, torch.ones_like(codes, dtype=torch.bool))
    found = conditional(model, latents(n))
    cells = found.marginals.cells(found.parameters, rows)
    scores = cells.jittered_scores(uniform((n, 3), generator).double())
    got_codes, got_values = found.marginals.quantile(found.parameters, scores)
    assert torch.equal(got_codes, rows.codes)
    torch.testing.assert_close(
        got_values[cells.is_point], values[cells.is_point], atol=1e-7, rtol=1e-7
    )


def test_atoms_without_places_are_below_all_numbers() -> None:
    """The law of models of version 3."""
    below = [ColumnShape("atoms", 5, point_code=4), *COLUMNS[1:]]
    model = model_of(below)
    found = conditional(model, latents(1)[:, None])
    rows = rows_of([[3, 0, 0], [4, 0, 0]], [[0, 0, 0], [-9.0, 0, 0]])
    cells = found.marginals.cells(found.parameters, rows)
    assert cells.interval_bounds()[1][0, 0, 0] <= cells.score[0, 1, 0]
    above = found.parameters.log_beta[-1][0, 0, 0, 4]
    torch.testing.assert_close(cells.log_above[0, 0, 0], above, atol=1e-12, rtol=0.0)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e4])
def test_gradients_are_finite_beside_atoms(size: float, exact: bool) -> None:
    model = model_of(score_gradient=True).float()
    rows = rows_of(
        [[code, other, 0] for code in range(5) for other in range(2)],
        [[value, -value, 0.0] for value in np.linspace(-size, size, 10)],
    )
    jitter = None if exact else uniform((10, 3), generator_for(0, "v"))
    model.conditional(latents(10).float()).log_prob(rows, jitter).sum().backward()
    gradients = [p.grad for p in model.decoder.parameters() if p.grad is not None]
    assert gradients
    assert all(bool(torch.isfinite(g).all()) for g in gradients)


@pytest.mark.parametrize(
    ("allowed", "low", "high"),
    first_of(
        ((1, 2, 4), -0.9, 0.5),
        ((4,), -math.inf, 0.5),
        ((1,), -math.inf, math.inf),
        ((2, 4), 0.0, 1.5),
    ),
)
def test_rows_within_a_range_over_atoms_are_those_that_rejection_leaves(
    allowed: tuple[int, ...], low: float, high: float
) -> None:
    """The last column and the numbers of the second tell what the range says of them."""
    model = model_of().float()
    log_share = torch.full((1, 5), -torch.inf, dtype=torch.float64)
    log_share[0, list(allowed)] = 0.0
    ends = torch.tensor([[low]]).double(), torch.tensor([[high]]).double()
    found = ConditionedModel.fit(model, [Region(log_share, *ends), None, None], seed=0)
    codes, values = found.draw(20_000, generator_for(1, "rows"))
    with torch.no_grad():
        all_codes, all_values = model.sample(200_000, generator_for(2, "pool"))
    is_number = all_codes[:, 0] == 4
    is_inside = torch.isin(all_codes[:, 0], torch.tensor(allowed))
    is_inside &= ~is_number | ((all_values[:, 0] > low) & (all_values[:, 0] < high))
    assert np.exp(found.log_probability) == pytest.approx(float(is_inside.double().mean()), rel=0.1)
    of_rest = counted(all_codes[is_inside], all_values[is_inside])
    torch.testing.assert_close(counted(codes, values), of_rest, atol=0.03, rtol=0.0)


def test_a_known_number_beside_atoms_has_its_density() -> None:
    """p(x) of one column by the walk is that of the exact score."""
    model = model_of([ATOMS, number()])
    found = conditional(model, latents(1))
    rows = rows_of([[4, 0]], [[0.25, 0.7]])
    dots = [
        Region(torch.tensor([[0.0 if k == code else -torch.inf for k in range(n)]]).double(), v, v)
        for n, code, v in (
            (5, 4, torch.tensor([[0.25]]).double()),
            (1, 0, torch.tensor([[0.7]]).double()),
        )
    ]
    nodes = torch.linspace(-8.0, 8.0, 4001, dtype=torch.float64)
    with torch.no_grad():
        walk = model.conditional(latents(1).expand(len(nodes), 2)).walk(nodes[:, None])
        noise = torch.full((len(nodes),), 0.5).double()
        log_prob = sum(
            walk.column(j).draw_within(dot, noise).log_prob for j, dot in enumerate(dots)
        )
        total = torch.trapezoid(
            (log_prob - nodes.square() / 2).exp() / math.sqrt(2 * math.pi), nodes
        )
        assert total.log().item() == pytest.approx(found.log_prob(rows, None).item(), abs=1e-6)
