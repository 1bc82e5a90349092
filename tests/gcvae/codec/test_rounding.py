"""Generated numbers have as many decimals as those of the table, as often."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gcvae.cells.values import parse_table
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.rounding import Rounding
from gcvae.codec.table_codec import TableCodec
from gcvae.numerics.generators import generator_for, normal
from gcvae.profiling.infer import infer_schema
from tests.lengths import tries


def decimals_of(numbers: Any) -> pd.Series[Any]:
    """The fewest decimals that each number can be written with."""
    return pd.Series(numbers).dropna().map(lambda x: max(0, -_exponent(x)))


def _exponent(number: float) -> int:
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def shares(numbers: Any) -> dict[int, float]:
    """The share of the numbers with each number of decimals."""
    return decimals_of(numbers).value_counts(normalize=True).to_dict()


def with_decimals(numbers: Any, decimals: Any) -> pd.Series[Any]:
    """Each number, rounded to its decimals."""
    return pd.Series([round(float(x), int(d)) for x, d in zip(numbers, decimals, strict=True)])


def mixed(n: int = 4000, seed: int = 0) -> pd.Series[Any]:
    """Six in ten rounded to whole numbers, three to two decimals, one to four."""
    rng = np.random.default_rng(seed)
    decimals = rng.choice([0, 2, 4], n, p=[0.6, 0.3, 0.1])
    return with_decimals(rng.normal(500.0, 200.0, n), decimals)


def drawn(numbers: Any, kind: str = "quantile", rows: int = 20_000) -> pd.Series[Any]:
    """Rows with the codes of a column's cells and standard normal values, as a model with the right
    margins draws them."""
    frame = pd.DataFrame({"x": numbers, "other": ["a", "b"] * (len(numbers) // 2)})
    schema = infer_schema(frame, {"columns": [{"name": "x", "kind": "continuous"}]}).schema
    codec = TableCodec.fit(parse_table(frame, schema), schema, encoding=kind)
    codec = TableCodec.from_json(json.loads(json.dumps(codec.to_json())))
    values = normal((rows, 2), generator_for(0, "values")).double()
    encoded = codec.encode(parse_table(frame, schema)).codes
    codes = encoded[torch.arange(rows) % len(encoded)]
    placed = codec.with_positions(EncodedTable(codes, values, codes >= 0), generator_for(0, "u"))
    found = codec.decode(placed)
    pd.testing.assert_frame_equal(codec.decode(placed), found)
    return found["x"]


def everywhere(numbers: Any) -> Any:
    return np.ones(len(numbers), dtype=bool)


# Laws


@tries(60)
@given(st.lists(st.floats(-1e6, 1e6), min_size=30, max_size=60), st.integers(0, 2**32 - 1))
def test_rounding_moves_no_number_to_zero_across_it_or_where_it_may_not_be(
    numbers: list[float], seed: int
) -> None:
    random = np.random.default_rng(seed)
    found = with_decimals(numbers, random.integers(0, 6, len(numbers)))
    rounding = Rounding.fit(found.to_numpy(), 5, 0.0)
    if rounding is None:
        return
    free, u = random.choice(numbers, 200) * random.random(200), random.random(200)
    low, high = np.quantile(free, [0.2, 0.8])
    free = free[(free >= low) & (free <= high)]
    taken = np.setdiff1d(np.round(free[::5]), [0.0])

    def are_allowed(x: Any) -> Any:
        return (x >= low) & (x <= high) & ~np.isin(x, taken)

    made = rounding.rounded(free, u[: len(free)], are_allowed)
    assert ((made >= low) & (made <= high)).all()
    assert not np.isin(made, taken).any()
    np.testing.assert_array_equal(np.sign(made), np.sign(free))
    assert (np.abs(made - free) <= 3.5).all()


@tries(60)
@given(st.floats(-1e15, 1e15), st.floats(0.001, 0.999))
def test_a_number_is_rounded_by_itself_and_further_for_a_smaller_quantile(
    number: float, u: float
) -> None:
    rounding = Rounding.fit(mixed().to_numpy(), 4, 0.0)
    assert rounding is not None
    assert Rounding.from_json(json.loads(json.dumps(rounding.to_json()))).to_json() == (
        rounding.to_json()
    )
    few = rounding.rounded(np.array([number, 12.3456]), np.array([u, 0.5]), everywhere)
    alone = rounding.rounded(np.array([number]), np.array([u]), everywhere)
    assert few[0] == alone[0]
    coarse = rounding.rounded(np.array([number]), np.array([u / 2.0]), everywhere)
    assert decimals_of(coarse)[0] <= decimals_of(alone)[0]


@tries(30)
@given(
    st.lists(
        st.integers(-(10**6), 10**6).flatmap(
            lambda n: st.integers(0, 4).map(lambda d: round(n / 1000, d))
        ),
        min_size=20,
        max_size=40,
    ).filter(lambda numbers: len(set(numbers)) > 3 and len(numbers) % 2 == 0)
)
def test_rounding_stays_within_the_limits_and_the_decimals_of_the_column(
    numbers: list[float],
) -> None:
    made = drawn(pd.Series(numbers), rows=200)
    assert made.min() >= min(numbers)
    assert made.max() <= max(numbers)
    assert decimals_of(made).max() <= decimals_of(numbers).max()


# Shares


@pytest.mark.parametrize("kind", ["quantile", "standardised"])
def test_decimals_are_drawn_with_the_shares_of_the_table(kind: str) -> None:
    real, made = shares(mixed()), shares(drawn(mixed(), kind))
    for decimals in range(5):
        assert made.get(decimals, 0.0) == pytest.approx(real.get(decimals, 0.0), abs=0.02)


def test_decimals_go_by_size() -> None:
    """Three digits each: rounded to the decimals of large numbers, small ones would be nothing."""
    rng = np.random.default_rng(0)
    numbers = [float(f"{x:.2e}") for x in np.exp(rng.normal(2.0, 3.0, 4000))]
    made = drawn(pd.Series(numbers))
    digits = made[made > 0].map(lambda x: len(Decimal(repr(x)).normalize().as_tuple().digits))
    assert (digits <= 3).mean() > 0.95
    assert np.median(made) == pytest.approx(np.median(numbers), rel=0.1)
    assert (made > 0).mean() > 0.99


def test_decimals_are_distinguished_in_a_column_as_wide_as_it_is_precise() -> None:
    """Seconds on pages: most of six to eight decimals, a few of nine, up to 60,000."""
    rng = np.random.default_rng(0)
    decimals = rng.choice([0, 6, 7, 9], p=[0.4, 0.35, 0.24, 0.01], size=5000)
    numbers = with_decimals(np.exp(rng.normal(6.0, 1.5, 5000)).clip(max=60_000), decimals)
    real, made = shares(numbers), shares(drawn(numbers))
    for n in (0, 6, 7, 9):
        assert made.get(n, 0.0) == pytest.approx(real[n], abs=0.04)


@pytest.mark.parametrize(("size", "digits"), [(20.0, 2), (0.2, 3)])
def test_a_sum_that_python_writes_with_all_digits_gives_no_others_its_digits(
    size: float, digits: int
) -> None:
    """Of 13 to 15 decimals, and of more, for which a column has no limit."""
    numbers = pd.Series(np.random.default_rng(0).gamma(3.0, size, 2000).round(digits))
    numbers.iloc[:10] = numbers.iloc[:10] * (1.0 + 2.0**-50)
    assert max(shares(numbers)) > 12
    assert (decimals_of(drawn(numbers)) > digits).mean() < 0.02


@pytest.mark.parametrize(("decimals", "lost"), [(None, 0.0), (None, 1e-14), (3, 1e-14)])
def test_numbers_that_all_have_the_same_decimals_are_not_rounded(
    decimals: int | None, lost: float
) -> None:
    # Evenly spread, so that exactly one number in ten ends in a zero.
    numbers = np.arange(100_000, 200_000) / 1000 + (0.0 if decimals else 1e-4 / np.pi)
    assert Rounding.fit(numbers, decimals, lost) is None
