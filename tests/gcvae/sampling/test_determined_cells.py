"""Cells that known ones determine are known, wherever they lie; other unknown cells are open."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from tests.gcvae.rules.test_search_forms import payslips
from tests.lengths import first_of

SHORT: dict[str, Any] = {"preset": "fast", "settings": {"max_steps": 5}, "seed": 0}
pytestmark = pytest.mark.usefixtures("few_rows")
NOTICE = pd.Timedelta(days=14)


def bills(n: int, seed: int, *, later: int = 0, more: int = 1) -> pd.DataFrame:
    """Bills of a year or, `later` days after it, of `more` times as much energy."""
    random = np.random.default_rng(seed)
    start = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 366, n) + later, "D")
    days = random.integers(20, 95, n)
    energy = np.round(more * random.gamma(6, 40, n), 1)
    price = np.round(random.uniform(0.2, 0.4, n), 2)
    return pd.DataFrame(
        {
            "meter": random.choice(["a", "b", "c"], n),
            "start": start,
            "end": start + pd.to_timedelta(days, "D"),
            "days": days,
            "due": start + pd.to_timedelta(days, "D") + NOTICE,
            "kWh": energy,
            "price": price,
            "amount": np.round(energy * price, 2),
        }
    )


@cache
def of_bills() -> Synthesizer:
    """A model of bills, read from its file."""
    return Synthesizer.from_bytes(Synthesizer.fit(bills(600, 0), **SHORT).to_bytes())


def test_days_that_are_added_to_a_date_determine_it() -> None:
    assert "due == end + 14" in map(str, of_bills().schema.rules or ())
    exact = {r.column for r in of_bills().codec.reduction.rewritings if getattr(r, "is_exact", 0)}
    assert exact == {"days", "amount", "due"}


UNKNOWN = (["end"], ["start"], ["start", "end"], ["end", "due"], ["start", "due"], ["days", "end"])


@pytest.mark.parametrize("later", first_of(400, 0, -400))
@pytest.mark.parametrize("unknown", UNKNOWN, ids="-".join)
def test_dates_that_others_determine_are_those_dates_in_any_year(
    unknown: list[str], later: int
) -> None:
    rows = bills(40, 1, later=later)
    known = rows.assign(**dict.fromkeys(unknown))
    filled = of_bills().impute(known, seed=1)
    for name in unknown:
        wanted = rows[name].astype(str)
        assert (filled[name].astype(str) == wanted).all()
    assert np.isfinite(of_bills().log_likelihood(known)["log_likelihood"]).all()


def test_numbers_that_others_determine_lie_beyond_the_table_if_the_others_do() -> None:
    rows = bills(40, 2, more=100)
    known = rows.assign(kWh=np.nan)
    filled = of_bills().impute(known, seed=1)
    assert (filled["kWh"] > bills(600, 0)["kWh"].max()).mean() > 0.9
    assert np.allclose(filled["kWh"] * filled["price"], filled["amount"], atol=0.0051)
    assert np.isfinite(of_bills().log_likelihood(known)["log_likelihood"]).all()


def test_a_result_beyond_the_table_leaves_unknown_parts_to_the_model() -> None:
    rows = bills(60, 3, later=400)
    filled = of_bills().impute(rows.assign(days=None, due=None), seed=1)
    assert (filled["days"].astype(int) == rows["days"]).all()
    assert (pd.to_datetime(filled["due"]) == rows["due"]).all()


def test_a_row_is_as_likely_without_a_cell_that_others_determine() -> None:
    """Up to the resolution of the cell: its value has a probability, no density."""
    rows = bills(60, 4)
    whole = of_bills().log_likelihood(rows)
    for name, unit in (("end", 0.0), ("start", 0.0), ("kWh", np.log(0.1))):
        known = of_bills().log_likelihood(rows.assign(**{name: None}))
        assert known["log_likelihood"].to_numpy() == pytest.approx(
            whole["log_likelihood"].to_numpy() + unit, abs=0.5
        )
        assert known["percentile"].notna().all()


def test_a_cell_that_may_be_missing_is_open_unless_it_is_to_be_filled() -> None:
    table = bills(600, 0)
    gone = np.random.default_rng(1).random(600) < 0.2
    table.loc[gone, ["end", "days", "due"]] = None
    model = Synthesizer.fit(table, **SHORT)
    rows = bills(30, 5, later=400).assign(end=pd.NaT)
    rows["end"] = rows["end"].astype(rows["start"].dtype)
    filled = model.impute(rows, seed=1)
    assert (filled["end"] == filled["start"] + pd.to_timedelta(filled["days"], "D")).all()
    kept = model.impute(rows, seed=1, keep_missing=["end"])
    assert kept["end"].isna().all()


def coupons(n: int, seed: int) -> pd.DataFrame:
    """Sales, of which a third have a discount and its code."""
    random = np.random.default_rng(seed)
    is_cheap = random.random(n) < 0.35
    codes = random.choice(["SPRING", "AUTUMN"], n)
    return pd.DataFrame(
        {
            "discounted": np.where(is_cheap, "yes", "no"),
            "discount_code": np.where(is_cheap, codes, None),
            "price": np.round(random.gamma(3, 20, n), 2),
        }
    )


@cache
def of_coupons() -> Synthesizer:
    return Synthesizer.fit(coupons(800, 0), **SHORT)


@pytest.mark.parametrize("unknown", [["discounted", "discount_code"], ["discounted"]], ids=len)
def test_a_flag_and_what_it_says_of_another_cell_are_drawn_together(unknown: list[str]) -> None:
    """A missing code is unknown: alone it does not say that there is no discount."""
    model = of_coupons()
    rows = coupons(400, 1).assign(**dict.fromkeys(unknown))
    filled = model.impute(rows, seed=1)
    is_cheap = filled["discounted"] == "yes"
    assert (is_cheap == filled["discount_code"].notna()).all()
    is_open = rows["discount_code"].isna()
    assert is_cheap[~is_open].all()
    assert 0.2 < is_cheap[is_open].mean() < 0.5
    kept = model.impute(rows, seed=1, keep_missing=["discount_code"])
    assert (kept["discounted"] == np.where(is_open, "no", "yes")).all()


def returns(n: int, seed: int, share: float) -> pd.DataFrame:
    """Orders, of which a share are lost and so never arrived."""
    random = np.random.default_rng(seed)
    is_lost = random.random(n) < share
    day = random.integers(1, 900, n) / 10
    return pd.DataFrame(
        {
            "lost": is_lost,
            "arrived": np.where(is_lost, np.nan, day),
            "state": np.where(is_lost, "claim", random.choice(["fine", "late"], n)),
        }
    )


@pytest.mark.parametrize("share", [0.4, 0.985])
def test_an_unknown_level_is_one_that_keeps_the_hard_rules(share: float) -> None:
    rules = [
        {"rule": "is_missing(arrived) if lost", "keep": "hard"},
        {"rule": "state == 'claim' or not lost", "keep": "hard"},
    ]
    model = Synthesizer.fit(
        returns(800, 0, share), schema={"rules": rules}, preset="fast", seed=0,
        settings={"max_steps": 20},
    )  # fmt: skip
    rows = returns(300, 1, 0.3)
    filled = model.impute(rows.assign(lost=None), seed=1)
    has_come = rows["arrived"].notna()
    is_lost = filled["lost"].astype(str) == "True"
    assert not is_lost[has_come | (rows["state"] != "claim")].any()
    assert filled["arrived"].isna().equals(is_lost)
    loose = model.impute(rows.assign(lost=None, arrived=np.nan, state=None), seed=1)
    is_lost = loose["lost"].astype(str) == "True"
    assert loose["arrived"].isna().equals(is_lost)
    assert is_lost.mean() == pytest.approx(share, abs=0.2)


@pytest.mark.parametrize("ties", ["binary", "away"])
def test_ties_are_rounded_as_in_the_table(ties: str) -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(1, 4_000, 600) / 10, random.choice([1.35, 2.05, 4.75], 600)
    exact = np.floor(np.round(a * b * 100, 6) + 0.5) / 100
    table = pd.DataFrame({"a": a, "b": b, "c": np.round(a * b, 2) if ties == "binary" else exact})
    for text in ("c == a * b", "c == round(a * b, 2)"):
        model = Synthesizer.fit(table, schema={"rules": [{"rule": text}]}, **SHORT)
        filled = Synthesizer.from_bytes(model.to_bytes()).impute(table.assign(c=np.nan), seed=1)
        pd.testing.assert_series_equal(filled["c"], table["c"])


def test_an_exact_dependency_outweighs_an_unlikely_number() -> None:
    """The number says that the level is the next one, which has another class."""
    random = np.random.default_rng(0)
    level = random.integers(0, 6, 800)
    table = pd.DataFrame(
        {
            "level": [f"level {i}" for i in level],
            "class": [f"class {i // 2}" for i in level],
            "size": np.round(level + 0.25 * random.normal(size=800), 3),
        }
    )
    model = Synthesizer.fit(table, **SHORT)
    assert "level determines class" in map(str, model.schema.rules or ())
    rows = pd.DataFrame({"level": None, "class": ["class 0"] * 200, "size": [1.95] * 200})
    filled = model.impute(rows, seed=1)
    assert filled["level"].isin(["level 0", "level 1"]).all()


@cache
def of_payslips() -> Synthesizer:
    return Synthesizer.fit(payslips(1_000, 1), **SHORT)


@pytest.mark.parametrize(
    "unknown",
    first_of(
        ["Brutto", "Bonus", "SV"],
        ["Brutto", "SV"],
        ["Brutto", "Bonus", "SV", "Netto"],
        ["Brutto", "Bonus", "SV", "Steuer"],
        ["Stunden", "Brutto", "Steuer"],
    ),
    ids="-".join,
)
def test_cells_that_follow_through_several_formulas_keep_all_of_them(unknown: list[str]) -> None:
    rows = payslips(60, 9)
    filled = of_payslips().impute(rows.assign(**dict.fromkeys(unknown, np.nan)), seed=0)
    share = filled["Klasse"].map({"I": 0.21, "III": 0.14, "V": 0.31})
    pay = filled["Satz"] * (filled["Stunden"] + 1.25 * filled["Überstunden"]) + filled["Bonus"]
    off = {
        "gross": filled["Brutto"] - pay,
        "tax": filled["Steuer"] - share * filled["Brutto"],
        "social": filled["SV"] - 0.2025 * filled["Brutto"],
        "net": filled["Netto"] - (filled["Brutto"] - filled["Steuer"] - filled["SV"]),
    }
    assert {name: float(gap.abs().max()) < 0.00501 for name, gap in off.items()} == dict.fromkeys(
        off, True
    )


def test_a_given_result_decides_where_a_formula_may_round_either_way() -> None:
    random = np.random.default_rng(3)
    high = random.integers(95, 160, 600)
    low = np.minimum(random.integers(55, 100, 600), high - 10)
    table = pd.DataFrame({"high": high, "low": low, "mean": np.rint((high + 2 * low) / 3)})
    rules = {"rules": [{"rule": "low == 1.5 * mean - 0.5 * high"}]}
    model = Synthesizer.fit(table, schema=rules, **SHORT)
    for value in (71, 74, 77):
        assert (model.sample(20, given={"low": value}, seed=0)["low"] == value).all()
