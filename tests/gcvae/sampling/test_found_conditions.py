"""Conditions, flags, rates by limits and dates by months hold in drawn, filled and asked rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.errors import ConditionError, SchemaError

SHORT: dict[str, Any] = {"preset": "fast", "settings": {"max_steps": 10}, "seed": 0}
MONTHS = {"quarter": 3, "half": 6, "year": 12}
DAYS = {"slow": 9, "usual": 5, "fast": 2}


def later(dates: pd.Series, months: pd.Series) -> pd.Series:
    """The dates so many months later."""
    return pd.Series([d + pd.DateOffset(months=int(n)) for d, n in zip(dates, months, strict=True)])


def contracts(n: int = 1_500, seed: int = 0) -> pd.DataFrame:
    """Contracts of sites that differ; the open ones have no end."""
    random = np.random.default_rng(seed)
    sites, at = np.array(["Lyon", "Metz", "Brest", "Lille"]), random.integers(0, 4, n)
    start = pd.Series(pd.Timestamp("2022-01-01") + pd.to_timedelta(random.integers(0, 900, n), "D"))
    speed, term = random.choice([*DAYS], n), random.choice([*MONTHS], n)
    status = random.choice(["open", "held", "closed", "ended"], n, p=[0.4, 0.1, 0.3, 0.2])
    amount = random.integers(500, 60_000, n) / 10
    rows = pd.DataFrame(
        {
            "origin": sites[at],
            "destination": sites[(at + random.integers(1, 4, n)) % 4],
            "status": status,
            "start": start,
            "speed": speed,
            "due": start + pd.to_timedelta(pd.Series(speed).map(DAYS), "D"),
            "term": term,
            "expiry": later(start, pd.Series(term).map(MONTHS)),
            "amount": amount,
            "discount": np.round(rate_of(amount) * amount + 1e-9, 2),
            "score": random.integers(0, 101, n),
        }
    )
    rows["ended"] = (start + pd.to_timedelta(random.integers(0, 99, n), "D")).where(
        pd.Series(status).isin(["closed", "ended"])
    )
    rows["week"] = start - pd.to_timedelta(start.dt.dayofweek, "D")
    share = pd.Series(random.random(n))
    viewed = start + ((rows["expiry"] - start).dt.days * share).astype(int) * pd.Timedelta(days=1)
    rows["viewed"] = viewed.where(random.random(n) < 0.2)
    rows["grade"] = np.where((rows["score"] >= 40) & (rows["amount"] < 4_000), "good", "bad")
    return rows


def rate_of(amount: Any) -> Any:
    """The rate of a discount on an amount."""
    return np.array([0.0, 0.05, 0.1])[np.searchsorted([1_000, 2_500], amount, side="right")]


KEPT: dict[str, Callable[[pd.DataFrame], Any]] = {
    "origin != destination": lambda t: t["origin"] != t["destination"],
    "is_missing(ended) == (status in ('open', 'held'))": lambda t: (
        t["ended"].isna() == t["status"].isin(["open", "held"])
    ),
    "due == start + extra[speed]": lambda t: (
        (t["due"] - t["start"]).dt.days == t["speed"].map(DAYS)
    ),
    "expiry == add_months(start, months[term])": lambda t: (
        t["expiry"] == later(t["start"], t["term"].map(MONTHS)).set_axis(t.index)
    ),
    "discount == rate[bracket(amount, 1000, 2500)] * amount": lambda t: (
        np.abs(t["discount"] - rate_of(t["amount"]) * t["amount"]) < 0.0051
    ),
    "week == start_of_week(start)": lambda t: (
        t["week"] == t["start"] - pd.to_timedelta(t["start"].dt.dayofweek, "D")
    ),
    "viewed >= start": lambda t: t["viewed"].isna() | (t["viewed"] >= t["start"]),
    "expiry >= viewed": lambda t: t["viewed"].isna() | (t["expiry"] >= t["viewed"]),
    "grade": lambda t: (t["grade"] == "good") == ((t["score"] >= 40) & (t["amount"] < 4_000)),
}


@cache
def fitted() -> Synthesizer:
    """A model of contracts, read from its file."""
    return Synthesizer.from_bytes(Synthesizer.fit(contracts(), **SHORT).to_bytes())


def check(rows: pd.DataFrame) -> None:
    """Every row keeps every rule; at most one of 1,000 has a number between limits of others."""
    for name, keeps in KEPT.items():
        assert keeps(rows).mean() >= 0.999, name


def test_the_rules_are_found_and_hold_in_drawn_rows() -> None:
    found = {str(rule) for rule in fitted().schema.rules or ()}
    assert found >= KEPT.keys() - {"grade"}
    rows = fitted().sample(1_000, seed=1)
    check(rows)
    assert 0.1 < rows["viewed"].notna().mean() < 0.3
    assert np.isfinite(fitted().log_likelihood(rows)["log_likelihood"]).all()


@pytest.mark.parametrize(
    "given",
    [
        {"status": "open"},
        {"ended": None},
        {"status": "closed", "origin": "Lyon"},
        {"destination": "Metz", "grade": "good"},
        {"discount": 100.0},
        {"expiry": "2023-02-28"},
        {"due": "2023-02-28", "speed": "fast"},
    ],
    ids=str,
)
def test_rules_hold_under_conditions(given: dict[str, Any]) -> None:
    rows = fitted().sample(200, seed=1, given=given)
    check(rows)
    for name, wanted in given.items():
        cells = rows[name]
        is_wanted = cells.isna() if wanted is None else cells == type(cells.iloc[0])(wanted)
        assert is_wanted.all()


@pytest.mark.parametrize(
    "given",
    [
        {"origin": "Lyon", "destination": "Lyon"},
        {"status": "open", "ended": "2023-05-01"},
        {"status": "closed", "ended": None},
    ],
    ids=str,
)
def test_conditions_that_contradict_them_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ConditionError):
        fitted().sample(10, seed=1, given=given)


@pytest.mark.parametrize(
    "unknown", [["status"], ["ended"], ["origin"], ["discount", "grade"], ["due", "expiry"]]
)
def test_filled_cells_keep_them(unknown: list[str]) -> None:
    rows = contracts(60, seed=3)
    check(fitted().impute(rows.assign(**dict.fromkeys(unknown)), seed=1))


def test_a_soft_condition_may_be_given_and_holds_as_often_as_in_the_table() -> None:
    rows = contracts(seed=4)[["origin", "destination", "amount", "score"]]
    is_same = np.arange(len(rows)) % 10 == 0
    rows["destination"] = rows["destination"].where(~is_same, rows["origin"])
    schema = {"rules": [{"rule": "origin != destination"}]}
    drawn = Synthesizer.fit(rows, schema=schema, **SHORT).sample(4_000, seed=1)
    assert 0.87 < (drawn["origin"] != drawn["destination"]).mean() < 0.93
    with pytest.raises(SchemaError, match="cannot be soft"):
        Synthesizer.fit(rows, schema={"rules": [{"rule": "score > amount"}]}, **SHORT)
