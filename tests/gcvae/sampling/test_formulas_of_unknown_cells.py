"""Rows of which a computed column is known and what it follows from is not."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from gcvae import Synthesizer
from gcvae.cells.values import parse_table
from gcvae.errors import ConditionError
from gcvae.sampling.deductions import deduced
from tests.wordings import refuses


def bills(n: int, seed: int) -> pd.DataFrame:
    """Bills: gross follows from net, and net from price, quantity and discount."""
    random = np.random.default_rng(seed)
    price = random.choice([19.99, 24.5, 39.9, 79.0, 120.75], n)
    quantity = random.integers(1, 7, n)
    off = random.choice([0, 5, 10, 20], n)
    rate = random.choice([0.0, 0.07, 0.19], n)
    net = np.round(price * quantity * (1 - off / 100), 2)
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, n), "D")
    shipped = day + pd.to_timedelta(random.integers(0, 9, n), "D")
    return pd.DataFrame(
        {
            "price": [f"{x:.2f}" for x in price],
            "quantity": quantity.astype(str),
            "off": off.astype(str),
            "net": [f"{x:.2f}" for x in net],
            "rate": [f"{x:.2f}" for x in rate],
            "gross": [f"{x:.2f}" for x in np.round(net * (1 + rate), 2)],
            "ordered": day.strftime("%Y-%m-%d"),
            "shipped": shipped.strftime("%Y-%m-%d"),
            "weekday": day.day_name(),
        }
    )


@cache
def fitted() -> Synthesizer:
    """A model of bills."""
    return Synthesizer.fit(bills(1_500, 0), preset="fast", seed=0, device="cpu")


def kept(rows: pd.DataFrame) -> np.ndarray:
    """Which rows keep all formulas. Shape: (n,)."""
    price, quantity, off, net, rate, gross = (
        pd.to_numeric(rows[name]) for name in ("price", "quantity", "off", "net", "rate", "gross")
    )
    ordered, shipped = (pd.to_datetime(rows[name]) for name in ("ordered", "shipped"))
    return np.asarray(
        ((net - price * quantity * (1 - off / 100)).abs() < 0.0051)
        & ((gross - net * (1 + rate)).abs() < 0.0051)
        & (ordered <= shipped)
        & (rows["weekday"] == ordered.dt.day_name())
    )


def test_the_formulas_are_found() -> None:
    assert {str(rule) for rule in fitted().schema.rules or ()} >= {
        "net == price * quantity * (1 - off / 100)",
        "gross == net * (1 + rate)",
        "weekday == weekday(ordered)",
        "shipped >= ordered",
    }


def test_blanks_anywhere_are_filled_so_that_every_formula_holds() -> None:
    rows = bills(200, 1)
    blank = np.random.default_rng(2).random(rows.shape) < 0.35
    filled = fitted().impute(rows.mask(blank), seed=1)
    assert kept(filled.astype(str)).all()
    known = rows.mask(blank)
    assert ((filled.astype(str) == known) | known.isna()).all(axis=None)


def test_a_total_is_met_by_what_it_follows_from() -> None:
    rows = bills(3, 4)
    gross = rows["gross"].astype(float).tolist()
    for total in gross:
        drawn = fitted().sample(40, seed=3, given={"gross": total})
        assert (pd.to_numeric(drawn["gross"]) == total).all()
        assert kept(drawn.astype(str)).all()


def test_rows_with_blanks_have_a_score_where_whole_rows_have() -> None:
    rows = bills(80, 5)
    blank = np.random.default_rng(6).random(rows.shape) < 0.35
    assert np.isfinite(fitted().log_likelihood(rows.mask(blank))["log_likelihood"]).all()


def test_cells_that_follow_for_certain_are_deduced_over_several_formulas() -> None:
    model = fitted()
    rows = bills(6, 7)
    known = rows.copy()
    known.loc[0, ["net", "gross"]] = None  # forwards, twice
    known.loc[1, ["net", "quantity"]] = None  # backwards, twice
    typed = parse_table(known, model.schema)
    found = deduced(model.scorer.codec, typed)
    expected = parse_table(rows, model.schema)
    assert found.loc[0, ["net", "gross"]].tolist() == expected.loc[0, ["net", "gross"]].tolist()
    assert found.loc[1, "net"] == expected.loc[1, "net"]
    assert int(found.loc[1, "quantity"]) == int(expected.loc[1, "quantity"])


def test_a_condition_that_breaks_a_formula_is_refused_by_its_name() -> None:
    with refuses(ConditionError, "/given/weekday"):
        fitted().sample(3, given={"ordered": "2024-03-04", "weekday": "Sunday"})
    with refuses(ConditionError, "/given/gross"):
        fitted().sample(3, given={"net": 100.0, "rate": 0.19, "gross": 120.0})


def test_a_condition_on_a_computed_column_goes_as_far_as_what_it_follows_from() -> None:
    random = np.random.default_rng(0)
    quantity, price = random.integers(1, 9, 600), np.round(random.uniform(10, 100, 600), 2)
    days = random.integers(1, 30, 600)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, 600), "D")
    table = pd.DataFrame({"quantity": quantity, "price": price, "days": days, "start": start})
    table["total"] = np.round(quantity * price, 2)
    table["end"] = start + pd.to_timedelta(days, "D")
    table = table[(table["total"] < 700) & (table["end"] < "2024-10-25")]
    rules = [{"rule": "total == quantity * price"}, {"rule": "end == start + days"}]
    model = Synthesizer.fit(
        table, schema={"rules": rules}, preset="fast", settings={"max_steps": 100}, seed=1
    )
    model = Synthesizer.from_bytes(model.to_bytes())
    assert float(model.schema["total"].maximum or 0) < 705
    for given in ({"min": 705, "max": 720}, {"min": 705}, 712.0):
        drawn = model.sample(50, seed=1, given={"total": given})
        assert drawn["total"].between(705, 800 if isinstance(given, dict) else 712).all()
        assert np.allclose(drawn["total"], drawn["quantity"] * drawn["price"], atol=0.006)
    late = model.sample(20, seed=1, given={"end": {"min": "2024-11-02"}})
    assert (late["end"] >= "2024-11-02").all()
    assert (late["end"] == late["start"] + pd.to_timedelta(late["days"], "D")).all()
    assert (
        model.sample(5, seed=1, given={"end": {"max": "2024-01-20"}})["end"] < "2024-01-21"
    ).all()
    with refuses(ConditionError):  # 8 of 100.00 at most
        model.sample(5, seed=1, given={"total": 5000})
    with refuses(ConditionError, "/given/price"):
        model.sample(5, seed=1, given={"price": 5000})
