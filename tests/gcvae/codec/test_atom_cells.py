"""The cells of atoms are taken out of an axis and put back."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import ndtr

from gcvae.codec.atom_cells import RoundingCells
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.schema.columns import Column
from gcvae.schema.kinds import ColumnKind

CELLS = RoundingCells((3.0, 4.0, 9.0), 0.5)


def test_whole_numbers_but_the_atoms_are_numbered_without_gaps() -> None:
    others = np.array([1.0, 2.0, 5.0, 6.0, 7.0, 8.0, 10.0, 11.0])
    assert CELLS.without_cells(others).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert CELLS.with_cells(CELLS.without_cells(others)).tolist() == others.tolist()


def test_a_cell_is_one_place_and_all_else_keeps_its_order() -> None:
    x = np.linspace(0, 12, 2_401)
    places = CELLS.without_cells(x)
    assert (np.diff(places) >= 0).all()
    assert np.ptp(places[(x >= 2.5) & (x <= 4.5)]) == pytest.approx(0.0)
    outside = (x < 2.5) | ((x > 4.5) & (x < 8.5)) | (x > 9.5)
    assert CELLS.with_cells(places[outside]) == pytest.approx(x[outside])


def test_the_ends_of_neighbouring_cells_are_exactly_one_place() -> None:
    width = 1 / 2.757865519241687  # as on an axis in deviations
    cells = RoundingCells(tuple(width * np.arange(-2.0, 9.0)), width / 2)
    ends = width * (np.arange(-2.0, 10.0) - 0.5)
    assert len(set(cells.without_cells(ends))) == 1
    assert cells.without_cells(np.array([-np.inf, np.inf])).tolist() == [-np.inf, np.inf]


def test_no_place_is_put_back_into_a_cell() -> None:
    found = CELLS.with_cells(np.linspace(-3, 12, 4_001))
    assert not np.isin(np.rint(found), CELLS.atoms).any()


@pytest.fixture(scope="module")
def codec() -> QuantileCodec:
    """Of whole numbers from 0 to 299, of which some are atoms by chance and one by weight."""
    random = np.random.default_rng(0)
    numbers = np.where(random.random(1_500) < 0.1, 0, random.integers(0, 300, 1_500))
    column = Column("x", ColumnKind.INTEGER, minimum=0, maximum=299)
    return QuantileCodec.fit(pd.Series(numbers), column)


def test_the_masses_of_all_other_numbers_add_up_to_one(codec: QuantileCodec) -> None:
    assert 10 < len(codec.atoms) < 100
    codes, values = codec.encode(pd.Series(np.arange(300)))
    is_other = codes == codec.n_codes - 1
    low, high = codec.rounding_cells(values[is_other]).T
    assert (ndtr(high) - ndtr(low)).sum() == pytest.approx(1.0, abs=0.003)


def test_what_is_drawn_beside_the_atoms_is_no_atom(codec: QuantileCodec) -> None:
    u = np.random.default_rng(1).random(5_000)
    values = codec.distribution.scores_at(codec.distribution.positions_at(np.sqrt(2) * (u - 0.5)))
    drawn = codec.decode(np.full(5_000, codec.n_codes - 1), values)
    assert (codec.encode(drawn)[0] == codec.n_codes - 1).all()


def test_a_codec_comes_back_from_its_document(codec: QuantileCodec) -> None:
    again = QuantileCodec.from_json(codec.column, codec.to_json())
    cells = pd.Series(np.arange(300))
    assert again.encode(cells)[1].tolist() == codec.encode(cells)[1].tolist()
