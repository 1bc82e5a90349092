"""A table of every kind of column, models of it, and how far apart two samples of a column are."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from gcvae import Synthesizer

N_BINS = 12
SCHEMA = {
    "columns": [
        {"name": "age", "kind": "integer"},
        {"name": "grade", "kind": "ordinal", "levels": ["low", "mid", "high"]},
        {"name": "since", "dtype": "datetime64[ns]"},
    ]
}


def table(n: int = 1200) -> pd.DataFrame:
    """Numbers with and without atoms, levels with and without missing cells, dates."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=n)
    age = np.clip(np.round(45 + 12 * hidden + 6 * rng.normal(size=n)), 18, 90).astype(int)
    grade = np.array(["low", "mid", "high"])[np.digitize(hidden + rng.normal(size=n), [-0.8, 0.8])]
    city = np.array(["Rome", "Paris", "Lyon", "Turin"])[
        np.digitize(-hidden + 1.5 * rng.normal(size=n), [-1.5, 0.0, 1.6])
    ]
    days = np.round(400 + 120 * hidden + 60 * rng.normal(size=n)).astype(int)
    since = pd.Timestamp("2019-01-01") + pd.to_timedelta(days, unit="D")
    height = 170 + 8 * hidden + 5 * rng.normal(size=n)
    return pd.DataFrame(
        {
            "age": age,
            "grade": grade,
            "city": np.where(rng.random(n) < 0.15, None, city),
            "member": np.where(hidden + rng.normal(size=n) > 0, "yes", "no"),
            "since": since.strftime("%Y-%m-%d"),
            "height": np.round(height, 1),
            "gain": np.where(rng.random(n) < 0.6, 0, np.round(np.exp(4 + hidden)).astype(int)),
        }
    )


@cache
def fitted(preset: str, **_: Any) -> Synthesizer:
    """A model of the table, trained for a moment."""
    settings = {"max_steps": 100}
    return Synthesizer.fit(
        table(), schema=SCHEMA, preset=preset, settings=settings, seed=0, device="cpu"
    )


def places(series: pd.Series, edges: np.ndarray | None) -> np.ndarray:
    """Each cell's bin or level, missing cells in one of their own."""
    if edges is None:
        return series.astype(object).where(series.notna(), "missing").astype(str).to_numpy()
    numbers = series.astype("int64") if series.dtype.kind == "M" else series
    numbers = numbers.astype("float64").to_numpy()
    return np.where(series.isna(), -1, np.digitize(numbers, edges)).astype(str)


def excess_variation(one: pd.Series, other: pd.Series) -> float:
    """Total variation of two samples of a column beyond what equal distributions would show.

    E[TV] of two samples of n and m rows is about sum_k sqrt(p_k (1 - p_k) (1/n + 1/m) / (2 pi)).
    """
    edges = None
    if one.dtype.kind in "iufM" or one.dtype == "Int64":
        whole = pd.concat([one, other]).dropna()
        numbers = whole.astype("int64") if whole.dtype.kind == "M" else whole.astype("float64")
        edges = np.unique(np.quantile(numbers, np.linspace(0, 1, N_BINS + 1)[1:-1]))
    a, b = (pd.Series(places(s, edges)).value_counts(normalize=True) for s in (one, other))
    both = pd.concat([a, b], axis=1).fillna(0.0).to_numpy()
    p = both.mean(axis=1)
    noise = np.sqrt(p * (1 - p) * (1 / len(one) + 1 / len(other)) / (2 * np.pi)).sum()
    return float(0.5 * np.abs(both[:, 0] - both[:, 1]).sum() - noise)


def meets(frame: pd.DataFrame, given: dict[str, Any]) -> np.ndarray:
    """Which rows of the table's kind meet a condition, told without the library."""
    found = np.ones(len(frame), dtype=bool)
    for name, wanted in given.items():
        cells = frame[name]
        if isinstance(wanted, dict):
            found &= _within(cells, wanted)
            continue
        parts = [_is(cells, one) for one in (wanted if isinstance(wanted, list) else [wanted])]
        found &= np.logical_or.reduce(parts)
    return found


def _within(cells: pd.Series, ends: dict[str, Any]) -> np.ndarray:
    if cells.dtype == object:
        order = {level: i for i, level in enumerate(("low", "mid", "high"))}
        cells, ends = cells.map(order), {key: order[end] for key, end in ends.items()}
    if cells.dtype.kind == "M":
        ends = {key: pd.Timestamp(end) for key, end in ends.items()}
    inside = cells.ge(ends.get("min", cells.min())) & cells.le(ends.get("max", cells.max()))
    return inside.fillna(False).to_numpy(dtype=bool)


def _is(cells: pd.Series, value: Any) -> np.ndarray:
    if value is None:
        return cells.isna().to_numpy()
    value = {"yes": True, "no": False}.get(value, value) if cells.dtype == bool else value
    return (cells == value).fillna(False).to_numpy(dtype=bool)
