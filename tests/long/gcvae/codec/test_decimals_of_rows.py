"""Rounding of generated numbers keeps what a fitted model promises of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine

from gcvae import Synthesizer, TableReader
from gcvae.cells.values import format_table
from gcvae.profiling.infer import infer_schema
from tests.gcvae.codec.test_rounding import mixed, shares

QUICK = {
    "max_steps": 40, "annealing": 0.0, "calibration": False, "d_hidden": 8, "d_latent": 2,
    "d_sum": 8, "d_column": 6,
}  # fmt: skip


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
        "rules": [{"rule": "Preis <= 上限", "keep": "hard"}],
        "find_rules": True,
    }
    made = Synthesizer.fit(prices, schema=schema, preset="fast", settings=QUICK)
    return Synthesizer.from_bytes(made.to_bytes())


def test_rounding_leaves_no_range_that_was_asked_for(fitted: Synthesizer) -> None:
    rows = fitted.sample(500, seed=1, given={"Preis": {"min": 480.01, "max": 519.99}})
    assert rows["Preis"].between(480.01, 519.99).all()
    assert shares(rows["Preis"])[0] > 0.4


def test_rounding_breaks_no_hard_rule(fitted: Synthesizer) -> None:
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


def test_a_file_gives_the_rounding_of_its_frame(
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
    assert classes[0]["line"]["rounding"] is not None
