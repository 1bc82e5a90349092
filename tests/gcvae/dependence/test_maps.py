"""Dependency maps: tau-b, Cramér's V and the copula's expected tau."""

from __future__ import annotations

import json
import math
import time
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau
from scipy.stats.contingency import association

from gcvae.dependence.heat_map import CAPTIONS
from gcvae.dependence.maps import (
    DependencyMap,
    clustered_order,
    difference_of,
    map_of_copula,
    map_of_rows,
)
from gcvae.dependence.notes import KINDS
from gcvae.figures.fonts import FontWarning
from gcvae.model.decoders import CopulaDecoder
from gcvae.numerics.cramers_v import cramers_v, group
from gcvae.numerics.generators import generator_for
from gcvae.numerics.kendall import normal_scores, tau_b, tau_of_correlation
from tests.gcvae.models import levels, number, random_model


def ranks(n: int = 400) -> torch.Tensor:
    """A continuous column, one that follows it, a coarse one with ties, and a constant."""
    generator = generator_for(0, "ranks")
    x = torch.randn(n, generator=generator)
    y = x + torch.randn(n, generator=generator)
    return torch.stack([x, -y, (2 * x).round(), torch.zeros(n)], 1)


def test_tau_b_is_scipys_for_every_pair() -> None:
    got, columns = tau_b(ranks()), ranks().numpy().T
    for i in range(3):
        for j in range(3):
            assert got[i, j] == pytest.approx(
                kendalltau(columns[i], columns[j]).statistic, abs=1e-12
            )


@pytest.mark.parametrize("n", [1, 2, 3, 4, 17])
def test_tau_b_counts_every_pair_of_few_rows_once(n: int) -> None:
    x = torch.rand(n, 2, generator=generator_for(n, "few")).argsort(0)
    expected = kendalltau(x[:, 0], x[:, 1]).statistic if n > 1 else math.nan
    assert tau_b(x)[0, 1] == pytest.approx(expected, abs=1e-12, nan_ok=True)


def test_tau_b_of_many_rows_is_near_the_exact_one() -> None:
    """Of 40,000 rows not all pairs are compared: 25 million are, a standard error under 0.0003."""
    many = ranks(40_000)[:, :3]
    got, columns = tau_b(many), many.numpy().T
    for i in range(3):
        for j in range(i):
            assert got[i, j] == pytest.approx(
                kendalltau(columns[i], columns[j]).statistic, abs=0.0015
            )


def test_a_column_of_ties_has_no_tau_with_others() -> None:
    tau = tau_b(ranks())[3]
    assert np.isnan(tau[:3]).all()
    assert tau[3] == 1.0
    v = cramers_v([np.array([0, 1, 0, 1]), np.zeros(4, dtype=int)])
    assert np.isnan(v[0, 1])


def test_normal_scores_are_the_quantiles_of_mid_ranks() -> None:
    scores = normal_scores(torch.tensor([[5], [7], [5]]))
    assert scores[:, 0] == pytest.approx([-0.3186, 0.6745, -0.3186], abs=1e-4)


def test_the_tau_of_a_correlation_is_the_orthant_formula() -> None:
    rho = torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0], dtype=torch.float64)
    torch.testing.assert_close(
        tau_of_correlation(rho), torch.tensor([-1, -1 / 3, 0, 1 / 3, 1]).double()
    )


def test_cramers_v_is_scipys_less_its_bias() -> None:
    x, y = (group(ranks(4000)[:, j].numpy().astype(float)) for j in (0, 1))
    table = np.zeros((10, 10), dtype=int)
    np.add.at(table, (x, y), 1)
    plain = association(table, method="cramer")
    v = cramers_v([x, y])
    assert 0.9 * plain < v[0, 1] < plain
    assert v[0, 0] == 1.0


def test_independent_columns_have_a_cramers_v_near_zero() -> None:
    noise = torch.rand(4000, 2, generator=generator_for(3, "noise")).numpy().astype(float)
    assert cramers_v([group(noise[:, 0]), group(noise[:, 1])])[0, 1] < 0.03


def test_the_expected_map_of_one_fixed_copula_is_its_tau_without_spread() -> None:
    columns = [number("x"), number("y"), levels(2, "g")]
    model = random_model("paper-gcvae", columns)
    assert isinstance(model.decoder, CopulaDecoder)
    assert model.decoder.loadings is not None
    torch.nn.init.zeros_(model.decoder.loadings.weight)
    model.decoder.loadings.bias.data = torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64)
    z, weight = torch.randn(50, 2), torch.full((50,), 0.02, dtype=torch.float64)
    map_ = map_of_copula(model.float(), ["x", "y", "g"], "expected", z, weight, [])
    rho = 2.0 / math.sqrt(2.0 * 5.0)
    assert map_.tau[0, 1] == pytest.approx(2.0 / math.pi * math.asin(rho), abs=1e-6)
    assert map_.unsigned[0, 1] == pytest.approx(rho, abs=1e-6)
    assert map_.tau[0, 2] < 0.0
    assert map_.spread is not None
    assert map_.spread.max() < 1e-3


def test_a_copulas_map_is_the_weighted_mean_of_tau_and_not_the_tau_of_the_mean() -> None:
    model = random_model("paper-gcvae", [number("x"), number("y")], strength=3.0).float()
    z, weight = torch.randn(40, 2), torch.rand(40, dtype=torch.float64)
    weight = weight / weight.sum()
    map_ = map_of_copula(model, ["x", "y"], "local", z, weight, [])
    with torch.no_grad():
        rho = torch.stack(
            [model.conditional(z[i : i + 1]).correlation()[0, 0, 1] for i in range(40)]
        )
    tau = 2.0 / math.pi * torch.arcsin(rho)
    mean = float((weight * tau).sum())
    assert map_.tau[0, 1] == pytest.approx(mean, abs=1e-6)
    assert map_.spread is not None
    spread = float((weight * (tau - mean).square()).sum().sqrt())
    assert map_.spread[0, 1] == pytest.approx(spread, abs=1e-6)
    assert map_.unsigned[0, 1] == pytest.approx(float((weight * rho.abs()).sum()), abs=1e-6)


def test_a_map_comes_back_from_its_document() -> None:
    map_ = map_of_rows(["a", "b", "c", "d"], "total", ranks(), ["note"])
    document = json.loads(json.dumps(map_.to_json(), allow_nan=False))
    assert DependencyMap.from_json(document).to_json() == map_.to_json() == document
    assert document["tau"][3] == [None, None, None, 1.0]
    assert sorted(document["order"]) == [0, 1, 2, 3]


def test_a_difference_is_taken_cell_by_cell() -> None:
    total, data = (map_of_rows(["a", "b"], "total", ranks(n)[:, :2], []) for n in (400, 200))
    difference = difference_of(total, data, ["note"])
    assert difference.kind == "difference"
    assert difference.tau[0, 1] == total.tau[0, 1] - data.tau[0, 1]
    assert difference.unsigned[0, 1] == total.unsigned[0, 1] - data.unsigned[0, 1]
    assert (np.diag(difference.tau) == 0.0).all()


def test_every_kind_has_its_caption() -> None:
    assert set(CAPTIONS) == set(KINDS)


@pytest.mark.slow
def test_five_hundred_columns_are_mapped_and_drawn_in_seconds() -> None:
    cells = torch.rand(1_000, 500, generator=generator_for(0, "wide"))
    map_ = map_of_rows([f"column {j}" for j in range(500)], "total", cells, [])
    others = map_.tau[np.triu_indices(500, 1)]
    assert others.std() == pytest.approx(2.0 / 3.0 / math.sqrt(1_000), rel=0.1)
    started = time.process_time()
    assert map_.picture("png").startswith(b"\x89PNG")
    assert time.process_time() - started < 30.0


def test_clustering_puts_dependent_columns_side_by_side() -> None:
    tau = np.eye(4)
    tau[0, 2] = tau[2, 0] = -0.9
    tau[1, 3] = tau[3, 1] = 0.8
    order = clustered_order(tau)
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("n_columns", [1, 2, 5, 40, 120])
def test_a_map_of_any_size_is_drawn(n_columns: int) -> None:
    names = tuple(f"column with a rather long name {j}" for j in range(n_columns))
    tau = np.eye(n_columns)
    map_ = DependencyMap(names, "total", tau, tau, "measure", ())
    assert map_.picture("png").startswith(b"\x89PNG")
    assert ElementTree.fromstring(map_.picture("svg")).tag.endswith("svg")


def test_what_is_not_defined_is_marked_and_explained() -> None:
    tau = np.array([[1.0, np.nan], [np.nan, 1.0]])
    svg = DependencyMap(("a", "b"), "total", tau, tau, "measure", ()).picture("svg").decode()
    assert "#f2c14e" in svg
    plain = DependencyMap(("a", "b"), "total", np.eye(2), np.eye(2), "measure", ()).picture("svg")
    assert "#f2c14e" not in plain.decode()


def test_pictures_that_are_drawn_at_once_are_those_drawn_alone() -> None:
    map_ = map_of_rows(["a", "b", "c", "d"], "total", ranks(), [])
    with ThreadPoolExecutor(4) as pool:
        pictures = {*pool.map(lambda _: map_.picture("svg"), range(8))}
    assert pictures == {map_.picture("svg")}


def test_names_of_any_script_are_drawn() -> None:
    names = (chr(0x10F0F0), "price", r"$\frac$", "größe")  # the first one in no font
    map_ = DependencyMap(names, "total", np.eye(4), np.eye(4), "measure", ())
    with pytest.warns(FontWarning, match="no font of this machine has"):
        assert map_.picture("png").startswith(b"\x89PNG")
    assert map_.picture("svg") == map_.picture("svg")


def test_equal_maps_give_equal_pictures() -> None:
    map_ = map_of_rows(["a", "b", "c", "d"], "total", ranks(), [])
    assert map_.picture("svg") == map_.picture("svg")
    assert map_.picture("png") == map_.picture("png")
