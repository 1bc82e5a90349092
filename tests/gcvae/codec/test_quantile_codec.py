"""Numbers as atoms and normal scores: exact round trips, and densities that integrate to one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import kstest

from gcvae.cells.values import parse_table
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.quantile_codec import QuantileCodec, _are_sentinels
from gcvae.codec.table_codec import TableCodec
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from tests.lengths import first_of, tries


def fitted(frame: pd.DataFrame) -> tuple[pd.DataFrame, TableCodec]:
    schema = infer_schema(frame).schema
    typed = parse_table(frame, schema)
    return typed, TableCodec.fit(typed, schema, encoding="quantile")


def skewed(n: int = 3000) -> pd.DataFrame:
    """A skewed number, one with a heavy zero, a whole number with few values, and blanks."""
    random = np.random.default_rng(0)
    amount = np.where(random.random(n) < 0.6, 0.0, random.lognormal(3.0, 1.0, n).round(2))
    frame = pd.DataFrame(
        {
            "size": random.lognormal(0.0, 1.0, n).round(4),
            "amount": amount,
            "age": random.integers(17, 80, n),
        }
    )
    frame.loc[:50, "size"] = np.nan
    return frame


@pytest.mark.parametrize(
    "name", first_of("auto_mpg_with_missing", "magic", "shoppers", "adult_train")
)
def test_a_real_table_decodes_to_what_it_was(name: str, data_dir: Path) -> None:
    typed, codec = fitted(read_table(data_dir / f"{name}.csv"))
    back = codec.decode(codec.encode(typed))
    kept = [column.name for column in codec.columns]
    pd.testing.assert_frame_equal(back[kept], typed[kept])


def test_a_codec_comes_back_from_its_document() -> None:
    typed, codec = fitted(skewed())
    back = TableCodec.from_json(codec.to_json())
    assert back == codec
    assert torch.equal(back.encode(typed).values, codec.encode(typed).values)


def test_the_values_of_numbers_are_standard_normal() -> None:
    typed, codec = fitted(skewed())
    encoded, column = codec.encode(typed), codec.columns[0]
    values = encoded.values[:, 0][encoded.codes[:, 0] == column.n_codes - 1]
    assert kstest(values.numpy(), "norm").statistic < 0.01


def test_heavy_and_few_values_are_atoms() -> None:
    typed, codec = fitted(skewed())
    size, amount, age = codec.columns
    assert isinstance(amount, QuantileCodec)
    assert (size.n_codes, amount.n_codes, age.n_codes) == (2, 2, 64)
    encoded = codec.encode(typed)
    assert torch.equal(encoded.codes[:, 1] == 0, torch.tensor(typed["amount"].to_numpy() == 0.0))


def with_an_atom_in_the_middle(n: int = 3000) -> pd.DataFrame:
    """A number of which a quarter of the rows has one value amid the others, and blanks."""
    random = np.random.default_rng(2)
    height = random.normal(170.0, 9.0, n).round(4)
    height = np.where(random.random(n) < 0.25, 171.0, height)
    frame = pd.DataFrame({"height": height, "y": np.arange(n) % 2})
    frame.loc[:60, "height"] = np.nan
    return frame


def test_an_atom_stands_where_its_value_is_among_the_others() -> None:
    typed, codec = fitted(with_an_atom_in_the_middle())
    column = codec.columns[0]
    assert isinstance(column, QuantileCodec)
    missing, place = column.code_values
    assert missing == -np.inf
    others = typed["height"][typed["height"].notna() & (typed["height"] != 171.0)]
    assert ndtr(place) == pytest.approx((others < 171.0).mean(), abs=0.01)
    assert column.scores[1] == place  # on the axis of the other numbers
    values = codec.encode(typed.loc[others.index]).values[:, 0].numpy()
    assert ((values > place) == (others > 171.0)).all()


def test_a_bin_of_numbers_ends_at_an_atom() -> None:
    _, codec = fitted(with_an_atom_in_the_middle())
    column = codec.columns[0]
    assert isinstance(column, QuantileCodec)
    values = np.linspace(-4.0, 4.0, 1001)
    low, high = column.bins(values).T
    assert ((low <= values) & (values <= high)).all()
    assert not ((low < column.code_values[1]) & (column.code_values[1] < high)).any()
    edges = np.unique(np.concatenate([low, high]))
    assert (edges[0], edges[-1]) == (-np.inf, np.inf)
    assert column.code_values[1] in edges
    assert np.array_equal(np.unique(low), edges[:-1])  # the bins tile the axis


def test_a_number_that_the_table_never_had_has_a_place() -> None:
    typed, codec = fitted(skewed())
    strange = typed.head(3).assign(size=[1e6, 0.00001, 3.3333], age=[200, 3, 17])
    encoded = codec.encode(strange)
    assert torch.isfinite(encoded.values).all()
    assert (encoded.codes >= 0).all()
    assert torch.isfinite(codec.log_units(encoded)).all()


def test_the_density_falls_as_far_as_doubles_reach() -> None:
    random = np.random.default_rng(1)
    _, codec = fitted(pd.DataFrame({"x": random.normal(size=300), "y": np.arange(300) % 2}))
    far = pd.DataFrame({"x": 10.0 ** np.arange(1, 301), "y": 0})
    encoded = codec.encode(pd.concat([far, -far], ignore_index=True))
    q = encoded.values[:, 0]
    log_density = (-0.5 * q.square() - codec.log_units(encoded)).view(2, -1)
    assert torch.isfinite(log_density).all()
    assert (log_density.diff(dim=1) <= 0.0).all()
    assert (log_density[:, :140].diff(dim=1) < -1.0).all()


def test_the_density_in_original_units_integrates_to_one() -> None:
    """phi(q) / (dx/dq) over x, the far tails included."""
    _, codec = fitted(skewed())
    grid = np.concatenate([np.linspace(-40.0, 100.0, 400_001)])
    frame = pd.DataFrame({"size": grid, "amount": 0.0, "age": 17})
    encoded = codec.encode(frame)
    log_density = torch.distributions.Normal(0.0, 1.0).log_prob(encoded.values[:, 0])
    density = (log_density - codec.log_units(encoded)).exp().numpy()
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=2e-3)


def test_drawn_values_stay_within_the_columns_limits() -> None:
    typed, codec = fitted(skewed())
    values = torch.tensor([[-12.0, -12.0, 0.0], [12.0, 12.0, 0.0], [0.0, 0.0, 0.0]]).double()
    codes = torch.tensor([[1, 1, 5]] * 3, dtype=torch.int32)
    frame = codec.decode(EncodedTable(codes, values, codes >= 0))
    assert frame["size"].between(typed["size"].min(), typed["size"].max()).all()
    assert frame["amount"].between(0.0, typed["amount"].max()).all()


@pytest.mark.parametrize("n", [2, 3, 7])
def test_tables_of_a_few_rows_have_a_codec(n: int) -> None:
    frame = pd.DataFrame({"x": np.arange(n) * 1.5 + 0.1, "y": np.arange(n) % 2})
    schema = infer_schema(frame, {"columns": [{"name": "x", "kind": "continuous"}]}).schema
    typed = parse_table(frame, schema)
    codec = TableCodec.fit(typed, schema, encoding="quantile")
    pd.testing.assert_series_equal(codec.decode(codec.encode(typed))["x"], typed["x"])


def test_positions_without_room_between_them_have_a_finite_density() -> None:
    """Beside 1e300 the positions of small numbers differ by less than a float64 can halve."""
    random = np.random.default_rng(0)
    sizes = 10.0 ** random.uniform(-300, 300, 60)
    typed, codec = fitted(pd.DataFrame({"x": np.append(sizes, 1e300), "y": np.arange(61) % 2}))
    encoded = codec.encode(typed)
    assert torch.isfinite(codec.log_units(encoded)).all()
    back = codec.decode(encoded)["x"]
    assert np.abs(back / 1e300 - typed["x"] / 1e300).max() < 1e-12


@pytest.mark.parametrize("n", [1, 300])
def test_numbers_beside_the_largest_that_there_is_stay_apart(n: int) -> None:
    """Some programs write -1.8e308 where there is no number."""
    frame = skewed()
    usual = frame["size"].iloc[:-n].copy()
    frame.loc[frame.index[-n:], "size"] = -np.finfo(np.float64).max
    typed, codec = fitted(frame)
    back = codec.decode(codec.encode(typed))["size"]
    # The smallest may share their knots with the single one.
    rows = typed["size"] > usual.quantile(0.01)
    pd.testing.assert_series_equal(back[rows], typed["size"][rows], check_exact=False, rtol=1e-6)
    size = codec.columns[0]
    drawn = size.decode(np.full(9, size.n_codes - 1), np.linspace(-2, 2, 9))
    assert drawn.is_monotonic_increasing
    assert drawn.nunique() == 9
    assert drawn.between(usual.min(), usual.max()).all()


def with_marker(values: np.ndarray, marker: float, n: int = 6) -> QuantileCodec:
    """The codec of the values, n of which say the marker instead."""
    frame = pd.DataFrame(
        {"x": np.append(values[n:], [marker] * n), "y": np.arange(len(values)) % 2}
    )
    codec = fitted(frame)[1].columns[0]
    assert isinstance(codec, QuantileCodec)
    return codec


@pytest.mark.parametrize("marker", [-1.0, 999.0, 99999.0, -9.99])
def test_a_light_number_that_stands_apart_is_an_atom(marker: float) -> None:
    ages = np.random.default_rng(0).normal(45.0, 9.0, 4000).clip(18.0, 90.0).round(2)
    codec = with_marker(ages, marker)
    cells = codec.decode(np.arange(len(codec.atoms)), np.zeros(len(codec.atoms)))
    assert cells.tolist().count(marker) == 1


def test_a_light_date_that_stands_apart_is_an_atom() -> None:
    days = np.random.default_rng(1).integers(0, 5000, 6000)
    dates = pd.Timestamp("2010-01-01") + pd.to_timedelta(days, unit="D")
    texts = [*dates.strftime("%Y-%m-%d")[5:], *["1900-01-01"] * 5]
    codec = fitted(pd.DataFrame({"x": texts, "y": np.arange(6000) % 2}))[1].columns[0]
    assert isinstance(codec, QuantileCodec)
    assert codec.decode(np.array([0]), np.zeros(1)).tolist() == [pd.Timestamp("1900-01-01")]
    assert len(codec.atoms) == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_other_number_is_an_atom(seed: int) -> None:
    """Neither one of one row, nor the heaps of a tail that thins out, nor a peak of its own."""
    random = np.random.default_rng(seed)
    heaped = random.lognormal(6.0, 1.2, 6000).round(-1)  # so do the largest, in some rows each
    lone = np.append(random.normal(0.0, 1.0, 3000).round(4), 50.0)
    peaks = np.where(random.random(3000) < 0.9, 0.0, 40.0) + random.normal(0.0, 1.0, 3000).round(3)
    for values in (heaped, lone, peaks):
        found, counts = np.unique(values, return_counts=True)
        assert not _are_sentinels(found, counts, counts < 0.005 * len(values)).any()


def test_a_number_is_the_atom_that_it_is_written_as() -> None:
    """Sixtieths to six digits: alone in a column, and beside numbers of one row each."""
    random = np.random.default_rng(0)
    parts = (random.integers(1, 60, 3_000) / 60).round(6)
    free = np.where(random.random(3_000) < 0.5, parts, random.random(3_000).round(6))
    _, codec = fitted(pd.DataFrame({"alone": parts, "beside": free}))
    are_discrete = []
    for column in codec.columns:
        assert isinstance(column, QuantileCodec)
        are_discrete.append(column.is_discrete)
        written, _ = column.encode(pd.Series([0.166667, 0.333333, 0.5]))
        exact, _ = column.encode(pd.Series([1 / 6, 1 / 3, 0.5 + 4e-7]))
        assert exact.tolist() == written.tolist()
        assert max(written) < column.n_codes - 1
        beyond, _ = column.encode(pd.Series([0.166668, 0.333335]))
        assert (beyond == column.n_codes - 1).all()
    assert are_discrete == [True, False]


def decoded(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame after it was encoded and decoded, by a codec that was saved and loaded."""
    typed, codec = fitted(frame)
    codec = TableCodec.from_json(json.loads(json.dumps(codec.to_json())))
    return codec.decode(codec.encode(typed))


def test_a_number_that_recurs_is_no_number_of_fewer_digits() -> None:
    random = np.random.default_rng(0)
    amount = random.lognormal(2.0, 1.0, 1000).round(5)
    amount[:50] = 6.904679999999999
    frame = pd.DataFrame({"amount": amount, "y": np.arange(1000) % 2})
    assert (decoded(frame)["amount"] == 6.904679999999999).sum() == 50


def test_neighbouring_doubles_that_recur_far_from_the_mean_stay_two() -> None:
    amount = np.random.default_rng(0).normal(50.0, 9.0, 1000)
    amount[:50], amount[50:90] = 0.3, 0.1 + 0.2
    back = decoded(pd.DataFrame({"amount": amount, "y": np.arange(1000) % 2}))["amount"]
    assert ((back == 0.3).sum(), (back == 0.1 + 0.2).sum()) == (50, 40)


@st.composite
def recurring_numbers(draw: st.DrawFn) -> tuple[pd.Series[Any], set[float]]:
    """A column of numbers, and those that one row in a hundred and more has."""
    numbers = draw(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=6))
    numbers += [float(np.nextafter(x, np.inf)) for x in draw(st.sets(st.sampled_from(numbers)))]
    # A deviation has more than all bits of smaller ones.
    shared = sorted({x if abs(x) > 1e-280 else 0.0 for x in numbers})
    random = np.random.default_rng(draw(st.integers(0, 99)))
    n_rows = draw(st.integers(500, 800))
    size = 10.0 ** draw(st.integers(-9, 9))
    others = draw(st.floats(-1e9, 1e9)) + size * random.lognormal(0.0, 1.0, n_rows)
    if draw(st.booleans()):
        others = others.round(draw(st.integers(0, 6)))
    n_each = draw(st.integers(-(-n_rows // 100), n_rows // len(shared)))
    others[: n_each * len(shared)] = np.repeat(shared, n_each)
    return pd.Series(random.permutation(others)), set(shared)


@tries(60)
@given(column=recurring_numbers(), is_text=st.booleans())
def test_a_number_of_one_row_in_a_hundred_comes_back_to_the_last_bit(
    column: tuple[pd.Series[Any], set[float]], is_text: bool
) -> None:
    numbers, shared = column
    frame = pd.DataFrame({"x": numbers, "y": np.arange(len(numbers)) % 2})
    back = decoded(frame.map(repr) if is_text else frame)["x"]
    recur = numbers.isin(shared)
    assert back[recur].tolist() == numbers[recur].tolist()


FAR = pd.Timestamp("9999-12-31 23:59:59.999999")


def moments(n: int = 3000) -> pd.DataFrame:
    """Moments of five years to the microsecond, of which a fifth are the last of year 9999."""
    random = np.random.default_rng(0)
    times = (1_577_836_800_000_000 + random.integers(0, 150_000_000_000_000, n)).view("M8[us]")
    times[random.random(n) < 0.2] = FAR.to_datetime64()
    return pd.DataFrame({"at": times, "x": random.normal(size=n).round(3)})


def test_a_far_atom_costs_no_other_moment_its_microseconds() -> None:
    typed, codec = fitted(moments())
    for found in (codec, TableCodec.from_json(json.loads(json.dumps(codec.to_json())))):
        back = found.decode(found.encode(typed))["at"]
        pd.testing.assert_series_equal(back, typed["at"])


def test_nothing_but_the_atom_lies_beyond_the_others() -> None:
    typed, codec = fitted(moments())
    [column] = [c for c in codec.columns if c.name == "at"]
    assert isinstance(column, QuantileCodec)
    q = np.linspace(-9.0, 9.0, 2001)
    drawn = column.decode(np.full(len(q), column.n_codes - 1), q)
    near = typed["at"][typed["at"] < FAR]
    assert drawn.between(near.min() - pd.Timedelta(1, "D"), near.max() + pd.Timedelta(1, "D")).all()
    ends = [pd.Series(np.array([text], "M8[us]")) for text in ("2100-01-01", "9000-01-01")]
    lower, upper = column.edges(*ends)
    assert lower == upper == np.inf
    assert not column.codes_between(*ends).any()
