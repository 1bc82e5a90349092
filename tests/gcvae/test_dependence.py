"""Dependency maps: tau-b, Cramér's V and the copula's expected tau."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau
from scipy.stats.contingency import association

from gcvae.dependence import (
    DependencyMap,
    cramers_v,
    group,
    map_of_copula,
    map_of_rows,
    tau_b,
    tau_of_correlation,
)
from gcvae.generators import generator_for
from gcvae.heat_map import clustered_order
from gcvae.model import CopulaDecoder
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


def test_a_column_of_ties_has_no_tau_with_others_and_one_with_itself() -> None:
    assert tau_b(ranks())[3].tolist() == [0.0, 0.0, 0.0, 1.0]


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
    map_ = map_of_copula(model.float(), ["x", "y", "g"], generator_for(0, "map"), [])
    rho = 2.0 / math.sqrt(2.0 * 5.0)
    assert map_.tau[0, 1] == pytest.approx(2.0 / math.pi * math.asin(rho), abs=1e-6)
    assert map_.tau[0, 2] < 0.0
    assert map_.spread is not None
    assert map_.spread.max() < 1e-3


def test_a_map_comes_back_from_its_document() -> None:
    map_ = map_of_rows(["a", "b", "c", "d"], "total", ranks(), ["note"])
    back = DependencyMap.from_json(map_.to_json())
    assert back.to_json() == map_.to_json()
    assert back.columns == ("a", "b", "c", "d")


def test_clustering_puts_dependent_columns_side_by_side() -> None:
    tau = np.eye(4)
    tau[0, 2] = tau[2, 0] = -0.9
    tau[1, 3] = tau[3, 1] = 0.8
    order = clustered_order(tau)
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1


@pytest.mark.parametrize("n_columns", [1, 2, 5, 40, 120])
def test_a_map_of_any_size_is_drawn(n_columns: int) -> None:
    names = tuple(f"column with a rather long name {j}" for j in range(n_columns))
    tau = np.eye(n_columns)
    map_ = DependencyMap(names, "total", tau, tau, "measure", ())
    assert map_.picture("png").startswith(b"\x89PNG")
    assert ElementTree.fromstring(map_.picture("svg")).tag.endswith("svg")


def test_names_of_any_script_are_drawn_without_a_warning() -> None:
    names = ("价格", "🙂", r"$\frac$", "größe")
    map_ = DependencyMap(names, "total", np.eye(4), np.eye(4), "measure", ())
    assert map_.picture("png").startswith(b"\x89PNG")
    assert map_.picture("svg") == map_.picture("svg")


def test_equal_maps_give_equal_pictures() -> None:
    map_ = map_of_rows(["a", "b", "c", "d"], "total", ranks(), [])
    assert map_.picture("svg") == map_.picture("svg")
    assert map_.picture("png") == map_.picture("png")
