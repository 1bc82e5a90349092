"""Rows of which a computed column is known and what it follows from is not."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.cells.values import parse_table
from gcvae.errors import ConditionError
from gcvae.sampling.deductions import deduced
from tests.wordings import refuses

# Formulas hold by construction: how long a model has learned makes no difference.
QUICK: dict[str, Any] = {"preset": "fast", "settings": {"max_steps": 5}, "device": "cpu"}

pytestmark = pytest.mark.usefixtures("few_rows")


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
    return Synthesizer.fit(bills(800, 0), seed=0, **QUICK)


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
    rows = bills(100, 1)
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
    rows = bills(6, 5)
    blank = np.random.default_rng(6).random(rows.shape) < 0.35
    assert np.isfinite(fitted().log_likelihood(rows.mask(blank))["log_likelihood"]).all()


def taxed(n: int, seed: int) -> pd.DataFrame:
    """Sales with the tax rate of their country."""
    random = np.random.default_rng(seed)
    at = random.integers(0, 60, n)
    country, rate = np.char.add("land ", at.astype(str)), np.round(0.1 + 0.002 * at, 3)
    net = np.round(20.0 + random.gamma(3.0, 20.0, n), 2)  # so that net and gross give the rate
    return pd.DataFrame(
        {"country": country, "rate": rate, "net": net, "gross": np.round(net * (1 + rate), 2)}
    )


@cache
def of_taxed() -> Synthesizer:
    """A model of sales."""
    return Synthesizer.fit(taxed(1_200, 0), seed=0, **QUICK)


def test_a_dependency_holds_in_each_row_whatever_is_blank_in_others() -> None:
    rows = taxed(300, 1)
    known = rows.mask(np.random.default_rng(2).random(rows.shape) < 0.4)
    filled = of_taxed().impute(known, seed=1)
    rate_of = dict(zip(rows["country"], rows["rate"], strict=True))
    np.testing.assert_allclose(filled["country"].map(rate_of), filled["rate"])


def test_what_follows_from_cells_beyond_the_table_is_computed_from_them() -> None:
    rows = pd.DataFrame({"country": ["land 7"], "rate": [0.114], "net": [9000.0], "gross": [None]})
    filled = of_taxed().impute(rows.astype({"gross": float}), seed=1)
    assert filled["net"].tolist() == [9000.0]
    assert filled["gross"].tolist() == [10026.0]


def stays(n: int, seed: int) -> pd.DataFrame:
    """Stays in hospital: a rule gives an exact admission, others a year of them or a weekday."""
    random = np.random.default_rng(seed)
    born = pd.Series(
        pd.Timestamp("1935-01-01") + pd.to_timedelta(random.integers(0, 25_000, n), "D")
    )
    came = pd.Series(pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 700, n), "D"))
    days = random.poisson(4, n) + 1
    left = came + pd.to_timedelta(days, "D")
    is_open = random.random(n) < 0.08
    age = came.dt.year - born.dt.year
    age -= (came.dt.month * 100 + came.dt.day) < (born.dt.month * 100 + born.dt.day)
    return pd.DataFrame(
        {
            "born": born.dt.strftime("%Y-%m-%d"),
            "came": came.dt.strftime("%Y-%m-%d"),
            "left": left.dt.strftime("%Y-%m-%d").where(~is_open),
            "days": pd.Series(days).where(~is_open).astype("Int64"),
            "age": age,
            "weekday": came.dt.day_name(),
        }
    )


@cache
def of_stays() -> Synthesizer:
    """A model of stays."""
    return Synthesizer.fit(stays(800, 0), seed=0, **QUICK)


@pytest.mark.parametrize("unknown", [["came"], ["came", "days"], ["born"]])
def test_of_several_rules_the_ones_that_leave_least_give_the_cell(unknown: list[str]) -> None:
    model = of_stays()
    rows = stays(10, 1)
    known = rows.assign(**dict.fromkeys(unknown))
    assert np.isfinite(model.log_likelihood(known)["log_likelihood"]).all()
    if unknown == ["came"]:
        is_determined = rows["days"].notna()
        filled = model.impute(known, seed=1)["came"].astype(str)
        assert (filled == rows["came"])[is_determined].all()


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
    model = Synthesizer.fit(table, schema={"rules": rules}, seed=1, **QUICK)
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


def visits(n: int, seed: int) -> pd.DataFrame:
    """Visits of a clinic: age, body mass index and class follow from others; few have an end."""
    random = np.random.default_rng(seed)
    insurers = {"AOK": "public", "TK": "public", "Debeka": "private", "BG Bau": "accident"}
    insurer = random.choice(list(insurers), n, p=[0.5, 0.3, 0.15, 0.05])
    came = pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 700, n), "D")
    born = pd.DatetimeIndex(came - pd.to_timedelta(random.integers(400, 33_000, n), "D"))
    is_before = came.month * 100 + came.day < born.month * 100 + born.day
    height = np.round(random.normal(172, 9, n)).astype(int)
    weight = np.round(np.exp(random.normal(np.log(26), 0.16, n)) * (height / 100) ** 2, 1)
    stays = random.random(n) < 0.3
    left = pd.Series(came + pd.to_timedelta(random.geometric(0.2, n), "D")).where(stays)
    return pd.DataFrame(
        {
            "born": born,
            "came": came,
            "age": came.year - born.year - is_before.astype(int),
            "cm": height,
            "kg 体重": weight,
            "BMI": np.round(weight / (height / 100) ** 2, 1),
            "left": left.to_numpy(),
            "stays": np.where(stays, "yes", "no"),
            "insurer": insurer,
            "class": [insurers[name] for name in insurer],
        },
        index=pd.RangeIndex(500, 500 + n, name="visit"),
    )


@cache
def fitted_visits() -> Synthesizer:
    """A model of visits."""
    return Synthesizer.fit(visits(1_000, 0), seed=0, **QUICK)


def kept_visits(rows: pd.DataFrame) -> pd.DataFrame:
    """Which rows keep which rules. Shape: (n, 5)."""
    born, came = rows["born"], rows["came"]
    is_before = came.dt.month * 100 + came.dt.day < born.dt.month * 100 + born.dt.day
    known = visits(1_500, 0).groupby("insurer")["class"].first()
    index = rows["kg 体重"] / (rows["cm"] / 100) ** 2
    return pd.DataFrame(
        {
            "age": rows["age"] == came.dt.year - born.dt.year - is_before.astype(int),
            "BMI": (rows["BMI"] - index).abs() < 0.051,
            "stays": rows["left"].notna() == (rows["stays"] == "yes"),
            "left": rows["left"].isna() | (rows["left"] >= rows["came"]),
            "class": rows["class"] == rows["insurer"].map(known),
        }
    )


@pytest.mark.slow
def test_synthetic_visits_keep_the_rules() -> None:
    assert "BMI == 10000 * `kg 体重` / cm ** 2" in map(str, fitted_visits().schema.rules or ())
    assert kept_visits(fitted_visits().sample(2_000, seed=1)).mean().min() >= 0.995


def test_imputed_rows_keep_the_rules_whichever_column_is_missing() -> None:
    rows = visits(60, 5)
    for name in rows:
        filled = fitted_visits().impute(rows.assign(**{name: rows[name].where([False] * 60)}))
        pd.testing.assert_index_equal(filled.index, rows.index)
        assert kept_visits(filled).mean().min() >= 0.98, name


def test_a_cell_that_a_rule_makes_missing_stays_missing() -> None:
    rows = visits(200, 6)
    filled = fitted_visits().impute(rows)
    assert filled["left"].isna().equals(rows["stays"] == "no")


def test_known_flags_say_which_cells_are_missing() -> None:
    flags = pd.DataFrame({"stays": ["yes", "no"] * 20})
    drawn = fitted_visits().sample(given_rows=flags, seed=1)
    assert (drawn["left"].notna() == (flags["stays"] == "yes")).all()
    with refuses(ConditionError):
        fitted_visits().sample(5, given={"left": None, "stays": "yes"}, seed=1)


@pytest.mark.slow
def test_rows_of_unknown_cells_are_no_odder_than_whole_ones() -> None:
    rows = visits(400, 7)
    whole = fitted_visits().log_likelihood(rows)["anomaly"]
    for name in ("class", "born", "insurer", "left", "cm"):
        scores = fitted_visits().log_likelihood(rows.drop(columns=name))
        assert (scores["anomaly"] <= 0.02).mean() < (whole <= 0.02).mean() + 0.04, name
        assert np.isneginf(scores["log_likelihood"]).mean() < 0.01
    part = fitted_visits().log_likelihood(rows.drop(columns="class").head(7))
    pd.testing.assert_frame_equal(
        part, fitted_visits().log_likelihood(rows.drop(columns="class")).head(7)
    )


def test_a_formula_comes_before_a_given_inequality_of_its_column() -> None:
    rules = {"rules": [{"rule": "gross >= net", "keep": "hard"}], "find_rules": True}
    model = Synthesizer.fit(bills(800, 0), schema=rules, seed=0, **QUICK)
    drawn = model.sample(1_000, seed=1)
    assert kept(drawn).mean() > 0.99
    assert (pd.to_numeric(drawn["gross"]) >= pd.to_numeric(drawn["net"])).all()


def test_rounding_at_a_tie_leads_to_either_neighbour() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(1, 4_000, 600) / 10, random.choice([1.35, 2.05, 4.75], 600)
    table = pd.DataFrame({"a": a, "b": b, "product": np.round(a * b, 2)})
    model = Synthesizer.fit(table, seed=0, **QUICK)
    drawn = model.sample(3_000, seed=1)
    assert ((drawn["product"] - drawn["a"] * drawn["b"]).abs() < 0.0051).all()
