"""What is known of a column that rules give reaches all on which it rests, rule after rule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer

RULES: list[dict[str, Any]] = [
    {"rule": "总 == net + shipping"},
    {"rule": "vat == 0.19 * 总"},
]


def orders(n: int) -> pd.DataFrame:
    """A tax on a sum, which is not told from its terms but from the sum."""
    random = np.random.default_rng(1)
    net = random.lognormal(3.5, 0.6, n).round(2)
    shipping = random.choice([0.0, 4.9, 9.9], n)
    whole = (net + shipping).round(2)
    return pd.DataFrame(
        {"vat": (0.19 * whole).round(2), "net": net, "shipping": shipping, "总": whole}
    )


@pytest.fixture(scope="module")
def model() -> Synthesizer:
    fitted = Synthesizer.fit(
        orders(800), preset="fast", seed=1, settings={"max_steps": 100}, schema={"rules": RULES},
        progress=False,
    )  # fmt: skip
    return Synthesizer.from_bytes(fitted.to_bytes())


def keeps_rules(rows: pd.DataFrame) -> pd.Series:
    numbers = rows.astype(float)
    off = (numbers["net"] + numbers["shipping"] - numbers["总"]).abs()
    return (off < 0.005) & ((0.19 * numbers["总"] - numbers["vat"]).abs() < 0.0051)


def test_rows_of_which_the_tax_alone_is_known_are_possible(model: Synthesizer) -> None:
    scored = model.log_likelihood(orders(60)[["vat"]])
    assert np.isfinite(scored["log_likelihood"]).all()
    assert scored["percentile"].between(0.0, 100.0).all()


def test_completed_rows_keep_both_rules(model: Synthesizer) -> None:
    rows = orders(60)
    filled = model.impute(rows.assign(net=np.nan, 总=np.nan), seed=1)
    assert (filled["vat"] == rows["vat"]).all()
    assert keeps_rules(filled).mean() > 0.98


def test_a_condition_on_the_tax_gives_what_it_rests_on(model: Synthesizer) -> None:
    drawn = model.sample(40, seed=1, given={"vat": 7.72})
    assert (drawn["vat"] == 7.72).all()
    assert keeps_rules(drawn).all()
    assert drawn.attrs["effective_sample_size"] > 20


@pytest.mark.parametrize("first", ["vat", "总"])
def test_ranges_of_both_hold_whichever_is_named_first(model: Synthesizer, first: str) -> None:
    given = {"vat": {"min": 5, "max": 8}, "总": {"min": 30, "max": 35}}
    given = {first: given.pop(first), **given}
    drawn = model.sample(40, seed=1, given=given)
    assert drawn["总"].between(30, 35).all()
    assert drawn["vat"].between(5, 8).all()


def stays(n: int) -> pd.DataFrame:
    random = np.random.default_rng(0)
    start = pd.Timestamp("2023-01-02") + pd.to_timedelta(random.integers(0, 500, n), unit="D")
    days = 1 + random.poisson(6, n)
    return pd.DataFrame(
        {
            "start": start,
            "end": start + pd.to_timedelta(days, unit="D"),
            "days": days,
            "month": start.month,
            "weekday": start.dayofweek + 1,
        }
    )


@pytest.fixture(scope="module")
def of_stays() -> Synthesizer:
    fitted = Synthesizer.fit(
        stays(800), preset="fast", seed=1, settings={"max_steps": 100}, progress=False
    )
    return Synthesizer.from_bytes(fitted.to_bytes())


@pytest.mark.parametrize(
    ("days", "share"), [(5, 0.134), ([3, 4], 0.134), ({"min": 3, "max": 6}, 0.428)]
)
def test_a_condition_on_the_days_between_two_dates_has_its_probability(
    of_stays: Synthesizer, days: Any, share: float
) -> None:
    """Neither date is known: the first is drawn where some second one makes the days."""
    drawn = of_stays.sample(60, seed=1, given={"days": days})
    assert ((drawn["end"] - drawn["start"]).dt.days == drawn["days"]).all()
    assert drawn["days"].between(3, 6).all()
    assert drawn.attrs["probability"] == pytest.approx(share, rel=0.25)


def test_a_date_is_found_by_its_parts_together(of_stays: Synthesizer) -> None:
    rules = [str(rule) for rule in of_stays.schema.rules or ()]
    assert {"month == month(start)", "weekday == day_of_week(start) + 1"} <= {*rules}, rules
    rows = stays(60)
    by_end = ["end", "days", "month"]  # the end and the days leave one start, the month many
    for known in (["weekday", "month"], ["month"], ["weekday", "days"], by_end):
        scored = of_stays.log_likelihood(rows[known])
        assert np.isfinite(scored["log_likelihood"]).all(), known
    filled = of_stays.impute(rows.assign(start=pd.NaT), seed=1)
    assert (filled["start"].dt.month == rows["month"]).all()
    assert (filled["start"].dt.dayofweek + 1 == rows["weekday"]).all()
    assert (filled["start"] == rows["start"]).mean() > 0.9, "end and days say which"
