"""Drawn numbers have as many decimals as those of the table, as often."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_wine

from gcvae import Synthesizer, TableReader
from gcvae.artifact.file import read_artifact, unpack_tensors
from gcvae.artifact.versions import current_manifest
from gcvae.cells.values import format_table, parse_table
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.table_codec import TableCodec
from gcvae.numerics.generators import generator_for, normal
from gcvae.profiling.infer_schema import infer_schema
from tests.lengths import tries

QUICK = {
    "max_steps": 40, "annealing": 0.0, "calibration": False, "d_hidden": 8, "d_latent": 2,
    "d_sum": 8, "d_column": 6,
}  # fmt: skip


def decimals_of(numbers: pd.Series[Any]) -> pd.Series[Any]:
    """How many decimals each number is written with, at the shortest."""
    return numbers.dropna().map(lambda x: max(0, -_exponent(x)))


def _exponent(number: float) -> int:
    exponent = Decimal(repr(number)).normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def shares(numbers: pd.Series[Any]) -> dict[int, float]:
    """The share of the numbers with each number of decimals."""
    return decimals_of(numbers).value_counts(normalize=True).to_dict()


def drawn(numbers: Any, kind: str = "quantile", rows: int = 20_000) -> pd.Series[Any]:
    """Rows with the codes of a column's cells and standard normal values, as a model with the right
    margins draws them."""
    frame = pd.DataFrame({"x": numbers, "other": ["a", "b"] * (len(numbers) // 2)})
    schema = infer_schema(frame, {"columns": [{"name": "x", "kind": "continuous"}]}).schema
    codec = TableCodec.fit(parse_table(frame, schema), schema, numbers=kind)
    codec = TableCodec.from_json(json.loads(json.dumps(codec.to_json())))
    values = normal((rows, 2), generator_for(0, "values")).double()
    encoded = codec.encode(parse_table(frame, schema)).codes
    codes = encoded[torch.arange(rows) % len(encoded)]
    table = EncodedTable(codes, values, codes >= 0)
    placed = codec.with_positions(table, generator_for(0, "decimals"))
    found = codec.decode(placed)
    pd.testing.assert_frame_equal(codec.decode(placed), found)
    return found["x"]


def mixed(n: int = 4000, seed: int = 0) -> pd.Series[Any]:
    """Six in ten whole, three of two decimals, one of four."""
    rng = np.random.default_rng(seed)
    decimals = rng.choice([0, 2, 4], p=[0.6, 0.3, 0.1], size=n)
    numbers = rng.normal(500.0, 200.0, n)
    return pd.Series([round(x, d) for x, d in zip(numbers.tolist(), decimals, strict=True)])


def test_one_odd_cell_gives_no_others_its_digits() -> None:
    wine = load_wine(as_frame=True).frame
    fitted = Synthesizer.fit(wine, preset="fast", settings=QUICK)
    loaded = Synthesizer.from_bytes(fitted.to_bytes())
    rows = fitted.sample(2000, seed=1)
    pd.testing.assert_frame_equal(loaded.sample(2000, seed=1), rows)
    real, made = shares(wine["color_intensity"]), shares(rows["color_intensity"])
    assert real[6] < 0.01
    assert made.get(6, 0.0) < 0.03
    for decimals in (0, 1, 2):
        assert made[decimals] == pytest.approx(real[decimals], abs=0.05)


@pytest.mark.parametrize("kind", ["quantile", "standardised"])
def test_decimals_are_drawn_with_the_shares_of_the_table(kind: str) -> None:
    real, made = shares(mixed()), shares(drawn(mixed(), kind))
    for decimals in range(5):
        assert made.get(decimals, 0.0) == pytest.approx(real.get(decimals, 0.0), abs=0.02)


def test_common_fractions_are_drawn_with_the_shares_of_the_table() -> None:
    """Means of up to six whole numbers: halves and thirds, of which decimals say nothing."""
    random = np.random.default_rng(0)
    n_of = random.choice(np.arange(1, 7), 6000, p=[0.3, 0.25, 0.15, 0.1, 0.1, 0.1])
    means = pd.Series(np.round(random.integers(20, 9000, 6000) * 6 // 6 / n_of, 7))
    many = drawn(means)
    for fraction in (0.0, 0.5, 0.3333333, 0.6666667, 0.25):
        expected, found = (float((np.round(x % 1.0, 7) == fraction).mean()) for x in (means, many))
        assert found == pytest.approx(expected, abs=0.02)


def test_numbers_of_many_sizes_keep_their_digits() -> None:
    """Three digits each: rounded to the decimals of large ones, small ones would be nothing."""
    rng = np.random.default_rng(0)
    numbers = [float(f"{x:.2e}") for x in np.exp(rng.normal(2.0, 3.0, 4000))]
    made = drawn(pd.Series(numbers))
    digits = made[made > 0].map(lambda x: len(Decimal(repr(x)).normalize().as_tuple().digits))
    assert (digits <= 3).mean() > 0.95
    assert np.median(made) == pytest.approx(np.median(numbers), rel=0.1)
    assert (made > 0).mean() > 0.99


@pytest.mark.parametrize(("size", "digits"), [(20.0, 2), (0.2, 3)])
def test_a_sum_that_python_writes_with_all_digits_gives_no_others_its_digits(
    size: float, digits: int
) -> None:
    """Of 13 to 15 decimals, and of more, for which a column has no limit."""
    numbers = pd.Series(np.random.default_rng(0).gamma(3.0, size, 2000).round(digits))
    numbers.iloc[:10] = numbers.iloc[:10] * (1.0 + 2.0**-50)
    assert max(shares(numbers)) > 12
    assert (decimals_of(drawn(numbers)) > digits).mean() < 0.02


def test_decimals_are_told_apart_in_a_column_as_wide_as_it_is_precise() -> None:
    """Seconds on pages: most of six to eight decimals, a few of nine, up to 60,000."""
    rng = np.random.default_rng(0)
    decimals = rng.choice([0, 6, 7, 9], p=[0.4, 0.35, 0.24, 0.01], size=5000)
    seconds = np.exp(rng.normal(6.0, 1.5, 5000)).clip(max=60_000)
    numbers = pd.Series([round(x, d) for x, d in zip(seconds.tolist(), decimals, strict=True)])
    real, made = shares(numbers), shares(drawn(numbers))
    for n in (0, 6, 7, 9):
        assert made.get(n, 0.0) == pytest.approx(real[n], abs=0.04)


def test_numbers_whose_digits_all_count_are_drawn_as_before() -> None:
    numbers = pd.Series(np.random.default_rng(0).normal(0.0, 1.0, 2000))
    assert (decimals_of(drawn(numbers)) > 12).mean() > 0.99


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
    assert decimals_of(made).max() <= decimals_of(pd.Series(numbers)).max()


@pytest.fixture(scope="module")
def prices() -> pd.DataFrame:
    """A price, mostly whole, and a higher one; names in two scripts, not in alphabetical order."""
    price = mixed(1200).abs() + 1.0
    rng = np.random.default_rng(1)
    rate = pd.Series(rng.choice(["b", "a"], 1200))
    high = (price + rng.gamma(2.0, 30.0, 1200)).round(2)
    return pd.DataFrame({"Preis": price, "上限": high, "rate": rate})


@pytest.fixture(scope="module")
def fitted(prices: pd.DataFrame) -> Synthesizer:
    schema = {
        "columns": [],
        "constraints": [{"kind": "inequality", "low": "Preis", "high": "上限"}],
    }
    made = Synthesizer.fit(prices, schema=schema, preset="fast", settings=QUICK)
    return Synthesizer.from_bytes(made.to_bytes())


def test_rounding_leaves_no_range_that_was_asked_for(fitted: Synthesizer) -> None:
    rows = fitted.sample(500, seed=1, given={"Preis": {"min": 480.01, "max": 519.99}})
    assert rows["Preis"].between(480.01, 519.99).all()
    assert shares(rows["Preis"])[0] > 0.4


def test_rounding_breaks_no_constraint(fitted: Synthesizer) -> None:
    rows = fitted.sample(3000, seed=2)
    assert (rows["Preis"] <= rows["上限"]).all()
    assert shares(rows["Preis"])[0] == pytest.approx(0.6, abs=0.08)


def test_known_cells_keep_their_digits_and_drawn_ones_beside_them_do_not(
    fitted: Synthesizer,
) -> None:
    known = pd.DataFrame({"Preis": ["123.4567", "250.5"] * 100, "rate": ["a", "b"] * 100})
    rows = fitted.sample(given_rows=known, seed=1)
    assert rows["Preis"].tolist() == [123.4567, 250.5] * 100
    blank = pd.DataFrame(
        {"Preis": [""] * 400, "上限": ["612.35"] * 400, "rate": ["a"] * 400}, dtype=object
    )
    filled = fitted.impute(blank, seed=1)
    assert filled["上限"].eq("612.35").all()
    assert shares(filled["Preis"].astype(float))[0] > 0.4


def test_a_file_gives_the_classes_of_its_frame(
    prices: pd.DataFrame, fitted: Synthesizer, tmp_path: Path
) -> None:
    path = tmp_path / "prices.csv"
    format_table(prices, infer_schema(prices).schema).to_csv(path, index=False)
    quick = QUICK | {"max_steps": 1}
    models = [
        Synthesizer.fit(table, preset="fast", settings=quick)
        for table in (pd.read_csv(path, dtype=str), TableReader(path))
    ]
    classes = [model.codec.to_json()["columns"]["Preis"] for model in models]
    assert classes[0] == classes[1]
    assert classes[0]["line"]["decimal_classes"] is not None


@pytest.mark.parametrize("preset", ["default", "paper-gcvae"])
def test_a_model_of_version_3_rounds_all_numbers_alike(preset: str) -> None:
    path = Path(__file__).parents[4] / "gcvae" / "artifacts" / f"version-3-{preset}.gcvae"
    manifest = current_manifest(unpack_tensors(read_artifact(path))[1])
    codec = manifest["codec"]
    real = [c["name"] for c in codec["schema"]["columns"] if c.get("kind") == "continuous"]
    lines = [codec["columns"][name].get("line", codec["columns"][name]) for name in real]
    assert lines
    assert all(line["decimal_classes"] is None for line in lines)
