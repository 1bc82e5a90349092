"""Blanks go together as the table's do, and where a term is blank the rule asks nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, infer_schema

N_ROWS = 1_200


def invoices(n: int, seed: int = 0) -> pd.DataFrame:
    """total = net + tax; beside a blank tax more is added than any tax is; paid and how are blank
    together."""
    random = np.random.default_rng(seed)
    net, tax = random.integers(100, 900, n), random.integers(5, 60, n)
    untaxed, unpaid = random.random(n) < 0.05, random.random(n) < 0.2
    total = net + np.where(untaxed, tax + 70, tax)
    paid = pd.Series(random.integers(1, 29, n)).astype("Int64")
    return pd.DataFrame(
        {
            "net": net,
            "tax": pd.Series(tax).astype("Int64").mask(untaxed),
            "total": total,
            "paid": paid.mask(unpaid),
            "how": pd.Series(random.choice(["card", "cash", "bank"], n)).mask(unpaid),
        }
    )


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    path = tmp_path_factory.mktemp("model") / "m.gcvae"
    Synthesizer.fit(invoices(N_ROWS), settings={"max_steps": 60}, seed=0, device="cpu").save(path)
    return Synthesizer.load(path)


def test_the_rules_of_this_table_are_found() -> None:
    found = infer_schema(invoices(N_ROWS)).schema.rules or ()
    assert {str(rule) for rule in found} == {
        "total == net + tax",
        "how is missing exactly where paid is",
    }


def test_columns_that_are_blank_together_are_so_in_drawn_rows(fitted: Synthesizer) -> None:
    drawn = fitted.sample(4_000, seed=1)
    assert 0.1 < drawn["paid"].isna().mean() < 0.3
    assert (drawn["paid"].isna() == drawn["how"].isna()).mean() > 0.998


def test_a_total_beside_a_blank_term_is_not_the_one_of_a_kept_rule(fitted: Synthesizer) -> None:
    """Its residual there is the distance from one number, which real totals are not."""
    drawn = fitted.sample(8_000, seed=1)
    beside = drawn.loc[drawn["tax"].isna(), "total"]
    assert len(beside) > 100
    assert beside.value_counts(normalize=True).iloc[0] < 0.05


def test_a_row_of_which_only_a_blank_term_fits_has_a_score(fitted: Synthesizer) -> None:
    """No tax adds up to its total: of the draws some leave the tax blank."""
    rows = invoices(N_ROWS)
    beside = rows[rows["tax"].isna()]
    assert len(beside) > 40
    scores = fitted.log_likelihood(beside)["log_likelihood"]
    exact = fitted.log_likelihood(beside, draws=2_000)["log_likelihood"]
    assert np.isfinite(scores).all()
    assert abs(float(scores.mean() - exact.mean())) < 0.3


def test_blanks_that_follow_from_two_rules_go_together() -> None:
    """The end of an order is drawn last: its weight and its code, before it, know of each other."""
    random = np.random.default_rng(0)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, N_ROWS), "D")
    end = start + pd.to_timedelta(random.integers(0, 20, N_ROWS), "D")
    is_open = random.random(N_ROWS) < 0.3
    has_code = ~is_open & (random.random(N_ROWS) < 0.7)
    table = pd.DataFrame(
        {
            "delivered": pd.Series(end).mask(is_open),
            "shipped": start,
            "weight": pd.Series(random.gamma(3, 2, N_ROWS).round(1)).mask(is_open),
            "code": pd.Series(random.choice(["a", "b", "c"], N_ROWS)).where(has_code),
        }
    )
    fitted = Synthesizer.fit(table, settings={"max_steps": 40}, seed=0, device="cpu")
    drawn = fitted.sample(4_000, seed=1)
    blank = drawn.isna()
    assert 0.2 < blank["delivered"].mean() < 0.4
    assert (blank["delivered"] == blank["weight"]).mean() > 0.998
    assert (blank["code"] | ~blank["delivered"]).mean() > 0.998


def test_a_term_that_is_filled_is_never_left_blank(fitted: Synthesizer) -> None:
    rows = invoices(600, seed=3)
    known = rows[rows["tax"].notna()].reset_index(drop=True)
    filled = fitted.impute(known.assign(tax=np.nan), seed=0)
    assert (filled["net"] + filled["tax"] == filled["total"]).all()


def test_the_start_of_an_order_is_filled() -> None:
    random = np.random.default_rng(0)
    low = random.integers(1, 50, 1_000)
    is_open = random.random(1_000) < 0.3
    high = low + random.integers(0, 30, 1_000)
    table = pd.DataFrame({"low": np.where(is_open, np.nan, low), "high": high})
    assert infer_schema(table).schema.rules, "high >= low"
    fitted = Synthesizer.fit(table, settings={"max_steps": 20}, seed=1, device="cpu")
    filled = fitted.impute(table.assign(low=np.nan).head(400), seed=1)
    assert filled["low"].notna().all()
    assert (filled["low"] <= filled["high"]).mean() > 0.98


def test_a_chain_of_functions_is_kept_where_its_last_column_alone_is_known() -> None:
    random = np.random.default_rng(0)
    product = random.integers(0, 100, 1_500)
    table = pd.DataFrame(
        {
            "product": [f"p{i}" for i in product],
            "category": [f"c{i % 20}" for i in product],
            "department": [f"d{i % 5}" for i in product],
        }
    )
    fitted = Synthesizer.fit(table, settings={"max_steps": 40}, seed=0, device="cpu")
    filled = fitted.sample(given_rows=table[["product"]].head(300), seed=0)
    assert (filled["category"] == table["category"].head(300)).mean() > 0.97
    assert (filled["department"] == table["department"].head(300)).mean() > 0.97


def test_a_blank_cell_beside_a_known_one_is_filled(fitted: Synthesizer) -> None:
    rows = invoices(300, seed=2)
    rows.loc[::3, "how"] = None
    filled = fitted.impute(rows, columns=["how"], seed=0)
    known = rows["paid"].notna()
    assert filled.loc[known, "how"].notna().mean() > 0.99


def test_a_row_that_breaks_a_hard_rule_of_missing_cells_is_impossible() -> None:
    table = invoices(N_ROWS)[["paid", "how", "net"]]
    rule = {"rule": "is_missing(how) == is_missing(paid)", "keep": "hard"}
    fitted = Synthesizer.fit(
        table, schema={"rules": [rule]}, settings={"max_steps": 20}, seed=0, device="cpu"
    )
    broken = table[table["paid"].notna()].head(20).assign(how=None)
    scores = fitted.log_likelihood(broken, score_missingness=True)["log_likelihood"]
    assert np.isneginf(scores).all()
    assert np.isfinite(fitted.log_likelihood(broken)["log_likelihood"]).all()
    assert np.isfinite(
        fitted.log_likelihood(table.head(50), score_missingness=True)["log_likelihood"]
    ).all()


def test_a_blank_term_that_is_none_is_none_in_drawn_rows(tmp_path: Path) -> None:
    """No tax where none is due: the total is the net then, drawn, scored and loaded again."""
    random = np.random.default_rng(0)
    net, tax = random.gamma(2, 50, N_ROWS).round(2), random.gamma(2, 9, N_ROWS).round(2)
    is_free = random.random(N_ROWS) < 0.2
    total = np.where(is_free, net, (net + tax).round(2))
    table = pd.DataFrame({"total": total, "net": net, "tax": np.where(is_free, np.nan, tax)})
    Synthesizer.fit(table, settings={"max_steps": 30}, seed=0, device="cpu").save(tmp_path / "m")
    fitted = Synthesizer.load(tmp_path / "m")
    drawn = fitted.sample(4_000, seed=1)
    free, taxed = drawn[drawn["tax"].isna()], drawn[drawn["tax"].notna()]
    assert len(free) > 300
    assert ((free["total"] - free["net"]).abs() < 0.005).mean() > 0.97
    assert ((taxed["total"] - taxed["net"] - taxed["tax"]).abs() < 0.005).mean() > 0.99
    scores = fitted.log_likelihood(table[is_free].head(60))["log_likelihood"]
    others = table[is_free].head(60).assign(total=lambda rows: rows["total"] + 0.5)
    assert np.isfinite(scores).all()
    assert scores.mean() > fitted.log_likelihood(others)["log_likelihood"].mean() + 1.0
    filled = fitted.impute(table[["net", "tax"]].assign(total=np.nan).head(200), seed=0)
    kept = filled["net"] + table["tax"].head(200).fillna(0.0) - filled["total"]
    assert (kept[table["tax"].head(200).notna()].abs() < 0.005).all()


def test_a_residual_that_is_one_number_has_nothing_to_keep() -> None:
    """All rows with a blank term have the median total, which stands for the rule there."""
    random = np.random.default_rng(0)
    table = pd.DataFrame({"net": random.integers(1, 90, 301), "tax": random.integers(1, 9, 301)})
    table["total"] = table["net"] + table["tax"]
    table["tax"] = table["tax"].astype("Int64")
    middle = int(table["total"].median())
    table.loc[:5, "net"], table.loc[:5, "tax"], table.loc[:5, "total"] = middle - 30, None, middle
    fitted = Synthesizer.fit(table, settings={"max_steps": 5}, seed=0, device="cpu")
    assert len(fitted.sample(200, seed=0)) == 200
