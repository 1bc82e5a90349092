"""Anomalies: the tail of the oddest cell, as a p-value, and the cell's column."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

from gcvae import Synthesizer
from gcvae.model.column_distribution import ColumnDistribution
from gcvae.scoring.anomalies import column_tails, p_values

pytestmark = pytest.mark.usefixtures("few_rows")


def shop(n: int, seed: int) -> pd.DataFrame:
    """Sales whose total follows from price and quantity, and the group from the ware."""
    random = np.random.default_rng(seed)
    ware = random.integers(0, 12, n)
    quantity = random.integers(1, 6, n)
    price = 5 + 3 * ware
    return pd.DataFrame(
        {
            "ware": [f"w{k}" for k in ware],
            "group": [f"g{k % 3}" for k in ware],
            "price": price,
            "quantity": quantity,
            "total": price * quantity,
            "weight": np.round(ware + random.normal(0, 0.3, n), 2),
        }
    )


@cache
def fitted() -> Synthesizer:
    """A model of sales."""
    settings = {"max_steps": 200}
    return Synthesizer.fit(shop(1_500, 0), preset="fast", settings=settings, seed=0, device="cpu")


def test_a_broken_rule_and_an_odd_number_are_named_with_a_small_p() -> None:
    rows = shop(4, 5)
    rows.loc[0, "group"] = {"g0": "g1", "g1": "g2", "g2": "g0"}[rows.loc[0, "group"]]
    rows.loc[1, "total"] += 1
    rows.loc[2, "weight"] += 40
    scores = fitted().log_likelihood(rows)
    assert (scores["anomaly"][:3] <= 0.02).all()
    assert scores["anomaly"][3] > 0.02
    assert scores["odd_cell"][0] in ("group", "ware", "price")
    assert scores["odd_cell"][1:3].tolist() == ["total", "weight"]


def test_clean_rows_have_each_p_as_often_as_it_says() -> None:
    found = fitted().log_likelihood(shop(1_000, 6))["anomaly"]
    for p in (0.02, 0.05, 0.1):
        assert 0.2 * p <= float((found <= p).mean()) <= 1.5 * p + 0.01


@pytest.mark.slow
def test_rows_of_rare_days_have_each_p_as_often_as_it_says() -> None:
    """Each day has some fourteen rows, held-out ones among them."""

    def days(seed: int) -> pd.DataFrame:
        at = np.random.default_rng(seed).integers(0, 365, (5_000, 2))
        shown = pd.Timestamp("2025-01-01") + pd.to_timedelta(at.ravel(), "D")
        return pd.DataFrame(
            shown.strftime("%Y-%m-%d").to_numpy().reshape(at.shape), columns=["a", "b"]
        )

    model = Synthesizer.fit(days(0), preset="fast", settings={"max_steps": 60}, seed=0)
    found = model.log_likelihood(days(1))["anomaly"]
    for p in (0.1, 0.2):
        assert 0.7 * p <= float((found <= p).mean()) <= 1.3 * p


def test_a_row_of_which_nothing_is_known_is_not_odd_and_models_without_a_chain_have_none() -> None:
    blank = pd.DataFrame(None, index=range(2), columns=shop(2, 7).columns)
    assert (fitted().log_likelihood(blank)["anomaly"] > 0.1).all()
    plain = Synthesizer.fit(shop(200, 1), preset="paper-vae", settings={"max_steps": 20}, seed=0)
    scores = plain.log_likelihood(shop(3, 2))
    assert scores["anomaly"].isna().all()
    assert scores["odd_cell"].isna().all()


def test_anomalies_are_the_same_after_load_and_in_any_order_of_columns() -> None:
    rows = shop(20, 8)
    whole = fitted().log_likelihood(rows)
    again = Synthesizer.from_bytes(fitted().to_bytes()).log_likelihood(rows[rows.columns[::-1]])
    pd.testing.assert_series_equal(whole["anomaly"], again["anomaly"])
    assert whole["odd_cell"].tolist() == again["odd_cell"].tolist()


def test_the_tail_of_a_level_is_the_mass_of_those_no_likelier() -> None:
    mass = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).expand(5, 4)
    column = ColumnDistribution(mass.log(), -1, None, None)
    codes = torch.tensor([0, 1, 2, 3, -1])
    found = column_tails(column, codes, torch.zeros(5, dtype=torch.float64))
    assert torch.allclose(found, torch.tensor([1.0, 0.5, 0.2, 0.05, 0.0], dtype=torch.float64))


def test_the_rows_of_a_code_are_counted_without_this_one() -> None:
    column = ColumnDistribution(torch.tensor([[0.5, 0.3, 0.2]]).log(), -1, None, None)
    kept = torch.tensor([0.5], dtype=torch.float64)
    found = column_tails(column, torch.tensor([0]), torch.zeros(1, dtype=torch.float64), kept)
    assert torch.allclose(found, torch.tensor([0.25 + 0.2], dtype=torch.float64))


def test_p_falls_on_below_all_that_was_seen() -> None:
    reference = {"anomaly": [0.01, 0.2, 0.5, 1.0]}
    found = p_values(reference, np.array([0.0, 0.001, 0.01, 0.3, 1.0]))
    assert found[0] == 0.0
    assert (np.diff(found) > 0).all()
    assert found[-1] == 1.0
    assert np.isnan(p_values(None, np.array([0.5]))).all()
