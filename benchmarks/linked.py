"""Databases drawn anew beside the real ones: keys, counts, rows, order, and what trees tell.

    C2ST of rows          boosted trees on child rows, folds by parent: AUC, 0.5 is best
    C2ST of aggregates    the same on parents with the number of their rows, means and numbers of
                          levels: accuracy, 0.5 is best; beside it the floor of two halves
    shapes                1 - total variation or Kolmogorov-Smirnov distance, mean over columns
    gaps, again           shapes of the times between rows; how many times come again
    lag-1                 mean difference of rank correlations with the row before
    unseen p <= q         share of unseen parents with an anomaly of at most q: q is best

Run: python -m benchmarks.linked [--tables airbnb walmart orders] [--seeds 3]
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GroupKFold

from gcvae import DatabaseSynthesizer

DATA = Path(os.environ.get("GCVAE_DATA_DIR", "../shared/data"))
Tables = dict[str, pd.DataFrame]


def airbnb() -> tuple[Tables, dict[str, Any], list[tuple[str, str, str, str | None]]]:
    """Users and their sessions, codes of levels as levels."""
    users = pd.read_csv(DATA / "airbnb" / "user_mem.csv")
    sessions = pd.read_csv(DATA / "airbnb" / "session_mem.csv")
    levels = {
        "users": [c for c in users.columns if c not in ("user_id", "age")],
        "sessions": ["action", "action_type", "action_detail", "device_type"],
    }
    schema = {
        name: {"columns": [{"name": c, "kind": "categorical"} for c in columns]}
        for name, columns in levels.items()
    }
    tables = {"users": users, "sessions": sessions}
    return tables, {"tables": schema}, [("users", "user_id", "sessions", None)]


def calibration(model: DatabaseSynthesizer, seed: int) -> dict[str, float]:
    """How often users that no fit saw have a small anomaly."""
    names = ("user", "session")
    unseen = {f"{n}s": pd.read_csv(DATA / "airbnb" / f"{n}_non_mem.csv") for n in names}
    found = model.anomalies(unseen, seed=seed)["users"]["anomaly"]
    return {f"unseen p <= {q}": float((found <= q).mean()) for q in (0.01, 0.05, 0.1)}


def walmart() -> tuple[Tables, dict[str, Any], list[tuple[str, str, str, str | None]]]:
    """Stores with weekly sales of departments and weekly features."""
    names = ("stores", "depts", "features")
    tables = {name: pd.read_csv(DATA / "walmart" / f"{name}.csv") for name in names}
    children = [("stores", "Store", name, "Date") for name in ("depts", "features")]
    return tables, {"tables": {}}, children


def orders() -> tuple[Tables, dict[str, Any], list[tuple[str, str, str, str | None]]]:
    """A shop's orders as one table, in which customers come again."""
    return {"orders": pd.read_csv(DATA / "orders.csv")}, {"tables": {}}, []


SOURCES = {"airbnb": airbnb, "walmart": walmart, "orders": orders}


def shape(real: pd.Series[Any], drawn: pd.Series[Any]) -> float:
    """How alike two columns are distributed."""
    if pd.api.types.is_numeric_dtype(real.dtype) and real.nunique() > 60:
        return 1.0 - float(ks_2samp(real.dropna(), drawn.dropna()).statistic)
    shares = (each.astype(str).value_counts(normalize=True) for each in (real, drawn))
    first, second = shares
    return 1.0 - 0.5 * float(first.sub(second, fill_value=0).abs().sum())


def codes(real: pd.DataFrame, drawn: pd.DataFrame) -> tuple[np.ndarray[Any, Any], Any]:
    """Both sides as one matrix of numbers, levels by their rank among the real rows."""
    both = pd.concat([real, drawn], ignore_index=True)
    columns = []
    for name in both.columns:
        cells = both[name]
        if not pd.api.types.is_numeric_dtype(cells.dtype):
            ranks = {v: i for i, v in enumerate(real[name].astype(str).value_counts().index)}
            cells = cells.astype(str).map(ranks).fillna(-1)
        columns.append(cells.astype(float).to_numpy())
    return np.stack(columns, axis=1), np.r_[np.zeros(len(real)), np.ones(len(drawn))]


def c2st(real: pd.DataFrame, drawn: pd.DataFrame, groups: Any, seed: int) -> tuple[float, float]:
    """(accuracy, AUC) of boosted trees, five folds by group."""
    x, y = codes(real, drawn)
    scores = np.zeros(len(y))
    weights = np.where(y == 1, 0.5 / y.mean(), 0.5 / (1 - y.mean()))
    for train, test in GroupKFold(5, shuffle=True, random_state=seed).split(x, y, groups):
        trees = HistGradientBoostingClassifier(random_state=seed)
        scores[test] = trees.fit(x[train], y[train], weights[train]).predict_proba(x[test])[:, 1]
    accuracy = accuracy_score(y, scores > 0.5, sample_weight=weights)
    return float(accuracy), float(roc_auc_score(y, scores))


def aggregates(
    tables: Tables, parent: str, key: str, child: str, numbers: set[str]
) -> pd.DataFrame:
    """Parents with the number of their rows, means of numbers and numbers of levels."""
    rows = tables[child].groupby(key)
    found = tables[parent].set_index(key)
    found[f"{child} count"] = rows.size().reindex(found.index).fillna(0)
    for column in tables[child].columns.drop(key):
        of_parent = rows[column].mean() if column in numbers else rows[column].nunique()
        found[f"{child} {column}"] = of_parent.reindex(found.index)
    return found.reset_index(drop=True)


def lagged(rows: pd.DataFrame, key: list[str], order: str) -> dict[str, float]:
    """Rank correlations of numbers with the row before."""
    rows = rows.sort_values([*key, order])
    names = [c for c in rows.columns if c not in (*key, order)]
    names = [c for c in names if pd.api.types.is_numeric_dtype(rows[c].dtype)]
    before = rows.groupby(key)[names].shift(1)
    return {c: float(rows[c].rank().corr(before[c].rank())) for c in names}


def measure(
    real: Tables, drawn: Tables, children: list[tuple[str, str, str, str | None]], seed: int
) -> dict[str, float]:
    """The figures of the module's head."""
    found: dict[str, float] = {}
    for parent, key, child, order in children:
        r, s = real[child], drawn[child]
        unique = [c for c in r.columns if r[c].is_unique]
        columns = [c for c in r.columns if c not in (key, *unique)]
        found[f"{child} integrity"] = float(s[key].isin(drawn[parent][key]).mean())
        sizes = [
            t[child].groupby(key).size().reindex(t[parent][key]).fillna(0) for t in (real, drawn)
        ]
        found[f"{child} counts"] = 1.0 - float(ks_2samp(*sizes).statistic)
        found[f"{child} shapes"] = float(np.mean([shape(r[c], s[c]) for c in columns]))
        groups = np.r_[pd.factorize(r[key])[0], pd.factorize(s[key])[0] + 10**7]
        found[f"{child} C2ST AUC"] = c2st(r[columns], s[columns], groups, seed)[1]
        numbers = {
            c for c in columns if pd.api.types.is_numeric_dtype(r[c].dtype) and r[c].nunique() > 60
        }
        pair = [
            aggregates(t, parent, key, child, numbers).drop(columns=unique, errors="ignore")
            for t in (real, drawn)
        ]
        each = np.arange(len(pair[0]) + len(pair[1]))
        found[f"{child} aggregates accuracy"] = c2st(pair[0], pair[1], each, seed)[0]
        half = np.random.default_rng(seed).permutation(len(pair[0]))
        halves = [pair[0].iloc[part] for part in np.array_split(half, 2)]
        found[f"{child} aggregates floor"] = c2st(*halves, np.arange(len(half)), seed)[0]
        if order is not None:
            keys = [key, "Dept"] if "Dept" in r else [key]
            days = [t.assign(**{order: pd.to_datetime(t[order])}) for t in (r, s)]
            gaps = [
                t.sort_values([*keys, order]).groupby(keys)[order].diff().dropna() for t in days
            ]
            found[f"{child} gaps"] = shape(*(g.dt.days.astype(str) for g in gaps))
            found[f"{child} again"] = float((gaps[1].dt.days == 0).mean())
            lags = [lagged(t, keys, order) for t in (r, s)]
            found[f"{child} lag-1"] = float(
                np.nanmean([abs(lags[0][c] - lags[1][c]) for c in lags[0]])
            )
    if "orders" in real:
        found |= customers(real["orders"], drawn["orders"], seed)
    return found


def customers(real: pd.DataFrame, drawn: pd.DataFrame, seed: int) -> dict[str, float]:
    """One identity a customer, and the orders of each beside the floor of as many customers."""
    of = drawn.groupby("customer_id")
    found = {
        f"one {c} a customer": float((of[c].nunique() <= 1).mean())
        for c in ("country", "postal_code", "email")
    }
    sizes = real.groupby("customer_id").size(), of.size()
    rng = np.random.default_rng(seed)
    floor = [ks_2samp(sizes[0], rng.choice(sizes[0], len(sizes[1]))).statistic for _ in range(50)]
    found["orders a customer, KS"] = float(ks_2samp(*sizes).statistic)
    found["its floor"] = float(np.mean(floor))
    for name in ("customer_id", "email"):
        found[f"real {name} drawn"] = float(drawn[name].dropna().isin(real[name]).sum())
    return found


def main() -> None:
    """Fits, draws and measures; a line for each figure with its mean and spread over seeds."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tables", nargs="+", choices=list(SOURCES), default=list(SOURCES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--preset", default="default")
    asked = parser.parse_args()
    for name in asked.tables:
        real, schema, children = SOURCES[name]()
        figures = []
        for seed in range(asked.seeds):
            start = time.process_time()
            model = DatabaseSynthesizer.fit(real, schema=schema, seed=seed, preset=asked.preset)
            drawn = model.sample(seed=seed + 100)
            seconds = time.process_time() - start
            found = calibration(model, seed) if name == "airbnb" else {}
            figures.append(measure(real, drawn, children, seed) | found | {"CPU s": seconds})
        frame = pd.DataFrame(figures)
        print(f"\n{name}, {asked.seeds} seeds, preset {asked.preset}")
        for figure in frame.columns:
            spread = 0.0 if len(frame) < 2 else frame[figure].std()
            print(f"  {figure:34} {frame[figure].mean():8.3f} ± {spread:.3f}")


if __name__ == "__main__":
    main()
