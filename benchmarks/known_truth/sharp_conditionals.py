"""Tables in which one column decides sharply where a number is, and how many drawn rows break that.

    python -m benchmarks.known_truth.sharp_conditionals [--rows 2000] [--seeds 0,1,2]

Each table is fitted with and without change points and clusters of the marginal CDF (switches of
`benchmarks.ablation`). Printed are the share of broken rows among 10,000, the mean log-likelihood
of 1,000 unseen rows and the CPU seconds of the fit, as means over the seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.ablation.seams import switched_off
from benchmarks.ablation.switches import SWITCHES
from benchmarks.pages_of_results import table_of
from benchmarks.quality.results import processor
from gcvae import Synthesizer

_DEVICES = 20
_SPREAD = 0.01
_FREEZING = 2.0
_BEGINNING = pd.Timestamp("2023-10-01")
_DRAWN, _UNSEEN = 10_000, 1_000
_SWITCHES = ("change points", "clusters of the marginal CDF")


def devices(n: int, random: np.random.Generator) -> pd.DataFrame:
    """Devices with a location each, one degree apart, and a column that says nothing."""
    device = random.integers(0, _DEVICES, n)
    noise = _SPREAD * random.normal(size=(2, n))
    return pd.DataFrame(
        {
            "device": [f"dev{i:02d}" for i in device],
            "latitude": (48.0 + device % 5 + noise[0]).round(5),
            "longitude": (9.0 + device // 5 + noise[1]).round(5),
            "noise": random.normal(size=n).round(4),
        }
    )


def _elsewhere(drawn: pd.DataFrame) -> float:
    device = drawn["device"].str[3:].astype(int)
    north = (drawn["latitude"] - 48.0 - device % 5).abs()
    east = (drawn["longitude"] - 9.0 - device // 5).abs()
    return float(((north > 0.1) | (east > 0.1)).mean())


def line_of_devices(n: int, random: np.random.Generator) -> pd.DataFrame:
    """Devices in a row, one degree apart."""
    device = random.integers(0, _DEVICES, n)
    place = 48.0 + device + _SPREAD * random.normal(size=n)
    names = [f"dev{i:02d}" for i in device]
    noise = random.normal(size=n).round(4)
    return pd.DataFrame({"device": names, "latitude": place.round(5), "noise": noise})


def _off_line(drawn: pd.DataFrame) -> float:
    device = drawn["device"].str[3:].astype(int)
    return float(((drawn["latitude"] - 48.0 - device).abs() > 0.1).mean())


def frost(n: int, random: np.random.Generator) -> pd.DataFrame:
    """A flag that is `temperature < 2`."""
    degrees = (8.0 + 9.0 * random.normal(size=n)).round(3)
    humidity = (60.0 + 10.0 * random.normal(size=n) - 0.5 * degrees).round(2)
    flag = np.where(degrees < _FREEZING, "frost", "mild")
    station = random.choice(list("ABCD"), n)
    return pd.DataFrame(
        {"temperature": degrees, "humidity": humidity, "state": flag, "station": station}
    )


def _wrong_flag(drawn: pd.DataFrame) -> float:
    return float(((drawn["temperature"] < _FREEZING) != (drawn["state"] == "frost")).mean())


def late_category(n: int, random: np.random.Generator) -> pd.DataFrame:
    """A category of a third of the rows that exists only after a date."""
    day = pd.Timestamp("2022-01-01") + pd.to_timedelta(random.integers(0, 1_000, n), unit="D")
    usual = random.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    is_new = (day >= _BEGINNING) & (random.random(n) < 0.35)
    amount = np.exp(random.normal(3.0, 1.0, n)).round(2)
    return pd.DataFrame(
        {"ordered": day, "category": np.where(is_new, "new", usual), "amount": amount}
    )


def _too_early(drawn: pd.DataFrame) -> float:
    return float((drawn.loc[drawn["category"] == "new", "ordered"] < _BEGINNING).mean())


Table = Callable[[int, np.random.Generator], pd.DataFrame]
TABLES: dict[str, tuple[Table, Callable[[pd.DataFrame], float]]] = {
    "devices": (devices, _elsewhere),
    "line of devices": (line_of_devices, _off_line),
    "frost": (frost, _wrong_flag),
    "late category": (late_category, _too_early),
}


def measure(name: str, n: int, seed: int, *, has_mechanisms: bool) -> dict[str, float]:
    """Broken rows, unseen nats and CPU seconds of one fit of the default preset."""
    draw, broken = TABLES[name]
    table = draw(n, np.random.default_rng(seed))
    seams = [seam for switch in _SWITCHES for seam in SWITCHES[switch].seams]
    start = time.process_time()
    with nullcontext() if has_mechanisms else switched_off(seams):
        model = Synthesizer.fit(table, seed=seed, progress=False)
    seconds = time.process_time() - start
    unseen = model.log_likelihood(draw(_UNSEEN, np.random.default_rng(1_000 + seed)))
    return {
        "broken": broken(model.sample(_DRAWN, seed=1)),
        "nats": float(unseen["log_likelihood"].mean()),
        "seconds": seconds,
    }


def main() -> None:
    """Fits all tables, writes the figures and prints their means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    runs = [
        {"table": name, "seed": seed, "with": with_all}
        | measure(name, given.rows, seed, has_mechanisms=with_all)
        for name in TABLES
        for seed in map(int, given.seeds.split(","))
        for with_all in (False, True)
    ]
    if given.output is not None:
        document = {"rows": given.rows, "machine": f"{processor()}, 1 thread", "runs": runs}
        given.output.write_text(json.dumps(document, indent=1) + "\n")
    figures = pd.DataFrame(runs).groupby(["table", "with"], sort=False).mean(numeric_only=True)
    lines = [
        [name, *(f"{row[key]:.{digits}f}" for key, digits in FIGURES for row in of_table)]
        for name in TABLES
        for of_table in [[figures.loc[(name, False)], figures.loc[(name, True)]]]
    ]
    heads = ["table", *(f"{key} {when}" for key, _ in FIGURES for when in ("without", "with"))]
    print(table_of(heads, lines))


FIGURES = (("broken", 3), ("nats", 2), ("seconds", 1))

if __name__ == "__main__":
    main()
