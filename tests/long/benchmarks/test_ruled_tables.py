"""The generated tables keep the rules that they say, in the shares that they say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.known_truth.countable import (
    COLUMNS,
    DEPOSITS,
    FEES,
    LANDS,
    MOVED_SHARE,
    SURCHARGE_SHARE,
    draw_countable,
    masses,
)
from benchmarks.known_truth.independent_columns import N_COLUMNS, ROWS, draw_independent
from benchmarks.known_truth.orders import CATEGORIES, CURRENCIES, DISCOUNT_SHARE, draw_orders
from gcvae import infer_schema

ORDERS = draw_orders()


def cents(name: str) -> np.ndarray:
    return np.rint(ORDERS[name].astype(float).to_numpy() * 100).astype(np.int64)


def test_a_seed_has_its_own_orders() -> None:
    assert draw_orders(50, 1).equals(draw_orders(50, 1))
    assert not draw_orders(50, 1).equals(draw_orders(50, 2))


def test_orders_are_shipped_after_they_are_made() -> None:
    ordered, shipped = (pd.to_datetime(ORDERS[name]) for name in ("ordered", "shipped"))
    assert (shipped >= ordered).all()
    assert (shipped == ordered).mean() == pytest.approx(0.2, abs=0.02)


def test_totals_are_price_times_quantity_but_for_discounts() -> None:
    whole = cents("price") * ORDERS["quantity"].astype(int).to_numpy()
    kept = cents("total") == whole
    assert 1 - kept.mean() == pytest.approx(DISCOUNT_SHARE, abs=0.006)
    less = cents("total")[~kept] / whole[~kept]
    assert less == pytest.approx(0.9, abs=0.002)


def test_prices_end_in_99_or_49() -> None:
    assert set(cents("price") % 100) == {49, 99}
    assert (cents("price") > 99).all()


def test_categories_and_currencies_follow() -> None:
    assert (ORDERS["product"].map(CATEGORIES) == ORDERS["category"]).all()
    assert (ORDERS["country"].map(CURRENCIES) == ORDERS["currency"]).all()
    assert ORDERS["product"].nunique() == len(CATEGORIES)


def test_invoices_are_keys_and_payments_are_blank_together() -> None:
    assert ORDERS["invoice"].str.fullmatch(r"INV-\d{6}").all()
    assert ORDERS["invoice"].is_unique
    assert ((ORDERS["paid"] == "") == (ORDERS["method"] == "")).all()


def test_the_masses_of_all_countable_rows_add_up_to_one() -> None:
    every = masses()
    assert every["mass"].sum() == pytest.approx(1.0)
    assert len(every) == len(DEPOSITS) * len(FEES) * 2 * len(LANDS) * 2
    assert (every["mass"] > 0).all()
    assert not every.duplicated(list(COLUMNS)).any()


def test_countable_rows_are_drawn_with_their_masses() -> None:
    every, drawn = masses(), draw_countable(50_000, 3)
    over = drawn["total"] - drawn["deposit"] - drawn["fee"]
    assert set(over) == {0, 1}
    assert (over == 1).mean() == pytest.approx(SURCHARGE_SHARE, abs=0.005)
    moved = drawn["city"].map(LANDS) != drawn["land"]
    assert moved.mean() == pytest.approx(MOVED_SHARE, abs=0.003)
    shares = drawn.groupby("deposit").size() / len(drawn)
    expected = every.groupby("deposit")["mass"].sum()
    assert shares.to_numpy() == pytest.approx(expected.to_numpy(), abs=0.002)


def test_independent_columns_are_of_all_kinds_and_independent() -> None:
    tables = [draw_independent(seed) for seed in range(4)]
    assert [table.shape for table in tables] == list(zip(ROWS, N_COLUMNS, strict=False))
    kinds = {column.kind for column in infer_schema(tables[2]).schema}
    assert {"continuous", "integer", "categorical", "boolean", "datetime"} <= kinds
    of_numbers = tables[3].apply(pd.to_numeric, errors="coerce").dropna(axis=1, how="all")
    between = of_numbers.corr(method="spearman").to_numpy()[
        ~np.eye(of_numbers.shape[1], dtype=bool)
    ]
    assert np.abs(between).max() < 0.05


def test_a_seed_has_its_own_independent_table() -> None:
    assert draw_independent(0).equals(draw_independent(0))
    assert not draw_independent(0).equals(draw_independent(4))
