"""Sums of which the whole and one term are known, whichever term is drawn last."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer
from gcvae.errors import ConditionError
from tests.wordings import refuses


def bills(n: int = 2_000) -> pd.DataFrame:
    """Two terms in cents and their sum, in that order, beside a level."""
    random = np.random.default_rng(0)
    a, b = random.gamma(2.0, 5.0, n).round(2), random.gamma(2.0, 5.0, n).round(2)
    kind = random.choice(list("xyz"), n)
    return pd.DataFrame({"a": a, "b": b, "total": (a + b).round(2), "类别": kind})


@pytest.fixture(scope="module")
def model() -> Synthesizer:
    fitted = Synthesizer.fit(bills(), seed=0, settings={"max_steps": 100}, progress=False)
    return Synthesizer.from_bytes(fitted.to_bytes())


@pytest.mark.parametrize(("term", "other"), [("a", "b"), ("b", "a")])
def test_a_condition_on_the_sum_and_a_term_gives_the_other(
    model: Synthesizer, term: str, other: str
) -> None:
    rows = model.sample(100, seed=1, given={"total": 30.0, term: 9.99})
    assert (rows[other] == 20.01).all()
    assert (rows["total"] == 30.0).all()


def test_known_cells_that_make_no_sum_are_refused_by_row(model: Synthesizer) -> None:
    known = pd.DataFrame({"total": [30.0, 5.0], "b": [29.0, 9.99]})
    with refuses(ConditionError, column="total"):
        model.sample(given_rows=known, seed=1)
    assert model.sample(given_rows=known[:1], seed=1)["a"].tolist() == [1.0]


def heavy_bills(n: int, seed: int) -> pd.DataFrame:
    """Three terms with heavy tails, so that a free draw of one is often more than the whole."""
    random = np.random.default_rng(seed)
    net, tax, fee = (np.exp(random.normal(m, 1.2, n)).round(2) for m in (2.0, 1.0, 0.0))
    return pd.DataFrame({"总": (net + tax + fee).round(2), "fee": fee, "net": net, "tax": tax})


@pytest.fixture(scope="module")
def of_three() -> Synthesizer:
    rows = heavy_bills(1_500, 0)
    fitted = Synthesizer.fit(rows, seed=0, settings={"max_steps": 100}, progress=False)
    [rule] = fitted.schema.rules or ()
    assert (rule.column, {*rule.parents}) == ("总", {"fee", "net", "tax"})
    return Synthesizer.from_bytes(fitted.to_bytes())


@pytest.mark.parametrize("unknown", [["net", "tax"], ["tax", "fee"], ["net", "tax", "fee"]])
def test_terms_that_are_unknown_together_are_drawn_for_their_sum(
    of_three: Synthesizer, unknown: list[str]
) -> None:
    """Each is proposed where some value of those after it makes the sum."""
    rows = heavy_bills(60, 1)
    known = rows.drop(columns=unknown)
    assert np.isfinite(of_three.log_likelihood(known)["log_likelihood"]).mean() > 0.98
    filled = of_three.impute(known.assign(**dict.fromkeys(unknown, np.nan)), seed=1)
    sums = filled[["net", "tax", "fee"]].astype(float).sum(axis=1)
    assert ((sums - rows["总"]).abs() < 0.005).mean() > 0.98


def test_a_sum_of_terms_that_are_unknown_has_the_density_of_drawn_sums(
    of_three: Synthesizer,
) -> None:
    """The proposals' weights leave the model as it is: bins hold what the model draws."""
    drawn = of_three.sample(20_000, seed=5)["总"].to_numpy()
    ends = np.quantile(drawn, [0.1, 0.3, 0.5])
    grid = np.linspace(ends[0], ends[2], 81).round(2)
    scores = of_three.log_likelihood(pd.DataFrame({"总": grid}), tolerance=0.05)
    mass = np.trapezoid(np.exp(scores["log_likelihood"]), grid)
    assert mass == pytest.approx(0.4, abs=0.04)


@pytest.mark.parametrize("unknown", [["net", "tax"], ["net", "tax", "fee"]])
def test_totals_without_their_terms_are_ranked_among_totals_without_them(
    of_three: Synthesizer, unknown: list[str]
) -> None:
    drawn = of_three.sample(150, seed=7)[["fee", "tax", "总", "net"]]
    drawn.loc[0, ["总", "fee"]] = 30_000.0, 3.0
    percentiles = of_three.log_likelihood(drawn.drop(columns=unknown))["percentile"]
    assert percentiles[0] < 1.0
    assert percentiles.mean() == pytest.approx(50.0, abs=8.0)
    assert percentiles.std() == pytest.approx(100.0 / 12**0.5, abs=7.0)


def test_a_start_that_is_unknown_is_solved_for_by_the_days_and_not_by_the_order_alone() -> None:
    random = np.random.default_rng(2)
    start = pd.Timestamp("2023-01-01") + pd.to_timedelta(random.integers(0, 700, 600), unit="D")
    days = random.geometric(0.1, 600)
    rows = pd.DataFrame({"start": start, "days": days})
    rows["end"] = rows["start"] + pd.to_timedelta(days, unit="D")
    settings = {"max_steps": 60}
    model = Synthesizer.fit(rows, preset="fast", seed=1, settings=settings, progress=False)
    assert len(model.schema.rules or ()) == 2, "days = end - start, start <= end"
    known = rows[["end", "days"]].head(60)
    assert np.isfinite(model.log_likelihood(known)["log_likelihood"]).all()
    filled = model.impute(known, seed=1)
    assert (filled["start"] == rows["start"].head(60)).all()
    wanted = {"end": rows["end"][0], "days": int(days[0])}
    for given in (wanted, dict(reversed(wanted.items()))):
        drawn = model.sample(60, seed=1, given=given)
        assert (drawn["start"] == rows["start"][0]).all()
        assert drawn.attrs["effective_sample_size"] > 50, "the order comes second"
