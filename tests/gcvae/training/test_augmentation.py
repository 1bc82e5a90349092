"""Imagined rows: the table's margins and its correlations, whatever its columns are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from gcvae.codec.encoded_table import EncodedTable
from gcvae.model.networks import ColumnShape
from gcvae.numerics.generators import generator_for
from gcvae.numerics.kendall import normal_scores
from gcvae.training.assembly import build_model
from gcvae.training.augmentation import AugmentationSampler
from gcvae.training.loop import split, train
from gcvae.training.settings import configure, settle
from tests.gcvae.models import levels, number, number_or_missing, rows_of

N_DRAWN = 20_000
ATOMS = ColumnShape("atoms", n_codes=3, point_code=2, code_scores=(-1.0, 1.0, 0.0))


def drawn(table: EncodedTable, columns: list[ColumnShape], n: int = N_DRAWN) -> EncodedTable:
    return AugmentationSampler(table, columns).draw(n, generator_for(0, "test"))


def shares(codes: Tensor, n_codes: int) -> Tensor:
    return torch.bincount(codes.long(), minlength=n_codes) / len(codes)


def test_codes_come_as_often_as_in_the_table() -> None:
    table = rows_of([[k, 0] for k in (0, 0, 0, 0, 1, 1, 1, 2)], [[0.0, x] for x in range(8)])
    found = drawn(table, [levels(3), number()])
    expected = shares(table.codes[:, 0], 3)
    assert torch.allclose(shares(found.codes[:, 0], 3), expected, atol=0.015)


def test_numbers_lie_between_those_of_the_table_with_their_quantiles() -> None:
    x = torch.randn(200, generator=generator_for(1, "table"), dtype=torch.float64).exp()
    found = drawn(rows_of([[0]] * 200, x[:, None].tolist()), [number()]).values[:, 0]
    assert x.min() <= found.min()
    assert found.max() <= x.max()
    assert len(found.unique()) > 0.9 * N_DRAWN
    at = torch.linspace(0.1, 0.9, 9, dtype=torch.float64)
    assert torch.allclose(found.quantile(at), x.quantile(at), atol=0.1)


def test_normal_scores_are_correlated_as_in_the_table() -> None:
    noise = torch.randn(3, 500, generator=generator_for(2, "table"), dtype=torch.float64)
    x, y = noise[0], -0.8 * noise[0] + 0.6 * noise[1]
    level = (x + 0.5 * noise[2] > 0).int()
    codes = torch.stack([torch.zeros_like(level), torch.zeros_like(level), level], 1)
    table = EncodedTable(
        codes, torch.stack([x, y, 0 * x], 1), torch.ones_like(codes, dtype=torch.bool)
    )
    found = drawn(table, [number("x"), number("y"), levels(2)])
    wanted, present = (
        np.corrcoef(normal_scores(torch.where(t.codes > 0, 1.0, t.values)).T)
        for t in (table, found)
    )
    assert present == pytest.approx(wanted, abs=0.04)


def test_atoms_stay_atoms_and_blanks_blanks() -> None:
    cells = [(0, 0.0), (0, 0.0), (2, -0.3), (2, 0.4), (1, 0.0), (1, 0.0), (2, 1.5), (2, 1.7)]
    blanks = [(0, 0.0), (0, 0.0), (1, 0.1), (1, 0.2), (1, 0.3), (1, 0.4), (1, 0.5), (1, 0.6)]
    table = rows_of(
        [[a, b] for (a, _), (b, _) in zip(cells, blanks, strict=True)],
        [[a, b] for (_, a), (_, b) in zip(cells, blanks, strict=True)],
    )
    found = drawn(table, [ATOMS, number_or_missing()])
    assert set(found.values[found.codes[:, 0] < 2, 0].tolist()) == {0.0}
    assert set(found.values[found.codes[:, 1] == 0, 1].tolist()) == {0.0}
    assert found.values[found.codes[:, 1] == 1, 1].min() >= 0.1


@pytest.mark.parametrize("n_rows", [1, 2, 5])
def test_tied_columns_and_hardly_any_rows_are_imagined_too(n_rows: int) -> None:
    table = rows_of([[0, 0, i % 2] for i in range(n_rows)], [[1.0, i, 0.0] for i in range(n_rows)])
    found = drawn(table, [number("a"), number("b"), levels(2)], 50)
    assert len(found) == 50
    assert bool((found.values[:, 0] == 1.0).all())
    assert bool(found.values.isfinite().all())


def test_the_same_generator_gives_the_same_rows() -> None:
    table = rows_of([[0]] * 4, [[0.0], [1.0], [2.0], [3.0]])
    one, other = (drawn(table, [number()], 10) for _ in range(2))
    assert torch.equal(one.values, other.values)


def test_held_out_rows_are_not_imagined(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows_of([[0]] * 100, [[float(x)] for x in range(100)])
    seen: list[EncodedTable] = []

    class Watched(AugmentationSampler):
        def __init__(self, rows: EncodedTable, *shapes: list[ColumnShape]) -> None:
            seen.append(rows)
            super().__init__(rows, *shapes)

    monkeypatch.setattr("gcvae.training.loop.AugmentationSampler", Watched)
    config = settle(configure("default", {"max_steps": 2}), n_rows=100, n_columns=1)
    train(build_model(config, [number()], seed=1), table, config, seed=1)
    [training], index = seen, split(100, config.held_out_share, 1)[0]
    assert torch.equal(training.values, table.values[index])
