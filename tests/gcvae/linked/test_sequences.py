"""Times of ordered rows: their range and time of day, and keys that contain them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import DatabaseSynthesizer

QUICK: dict[str, Any] = {"preset": "fast", "settings": {"max_steps": 40}, "device": "cpu"}


def calls() -> dict[str, pd.DataFrame]:
    """Members from 2022 to 2024 and their calls, which happen from 9 to 17 o'clock; the number of a
    call contains its year, and an answer is due after two weeks."""
    rng = np.random.default_rng(0)
    n = 150
    joined = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, n), "D")
    members = pd.DataFrame({"member_id": np.arange(n), "joined": joined})
    of = np.sort(rng.integers(0, n, 4 * n))
    room = (pd.Timestamp("2024-12-31") - joined[of]).days
    days = pd.to_timedelta((rng.random(len(of)) * room).astype(int), "D")
    called = joined[of] + days + pd.to_timedelta(rng.integers(9 * 60, 17 * 60, len(of)), "min")
    numbers = 30_000 + 7 * rng.permutation(len(of))
    calls = pd.DataFrame(
        {
            "call_no": [f"C{t.year}-{k}" for t, k in zip(called, numbers, strict=True)],
            "member_id": of,
            "called": called,
            "due": called.normalize() + pd.Timedelta(14, "D"),
            "minutes": rng.integers(1, 30, len(of)),
        }
    )
    return {"members": members, "calls": calls}


@pytest.fixture(scope="module")
def model() -> DatabaseSynthesizer:
    """A model of the calls."""
    return DatabaseSynthesizer.fit(calls(), seed=1, **QUICK)


def test_times_stay_in_the_range_and_hours_of_the_table_and_keys_contain_them(
    model: DatabaseSynthesizer,
) -> None:
    real = calls()
    assert model.plans["calls"] == "given its row of members, in the order of called"
    drawn = DatabaseSynthesizer.from_bytes(model.to_bytes()).sample(seed=2)["calls"]
    assert len(drawn) > 0.8 * len(real["calls"])
    assert drawn["called"].max() <= real["calls"]["called"].max()
    assert drawn["called"].dt.hour.between(9, 16).mean() > 0.95
    assert (drawn["call_no"].str[1:5] == drawn["called"].dt.year.astype(str)).all()
    assert drawn["call_no"].is_unique
    assert (drawn["due"] == drawn["called"].dt.normalize() + pd.Timedelta(14, "D")).all()
    order = drawn.groupby("member_id")["called"]
    assert order.is_monotonic_increasing.all()


def test_a_continued_sequence_goes_on_after_the_last_time_of_the_table(
    model: DatabaseSynthesizer,
) -> None:
    real = calls()
    more = model.extend(real, 2, seed=3)["calls"]
    last = real["calls"].groupby("member_id")["called"].max()
    assert (more["called"] >= last.loc[more["member_id"]].to_numpy()).mean() > 0.9
    assert (more["call_no"].str[1:5] == more["called"].dt.year.astype(str)).all()
