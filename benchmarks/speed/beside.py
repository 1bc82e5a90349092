"""Fits and rows beside MOSTLY AI's engine, in turns on one machine."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.quality.peers.frames import plain_frame
from benchmarks.quality.tables import load_table
from benchmarks.speed import peer
from benchmarks.speed.measures import Measure, Options, cpu_seconds_of
from benchmarks.speed.sampling import PRESETS, to_csv
from gcvae import Synthesizer, infer_schema

PEER = "MOSTLY AI"
_ROUNDS, _DRAWS = 3, 2
"""Fits of each, and draws of each fit."""
_ROWS, _NUMBERS, _LEVELS = 27_000, 14, 10
WIDE = f"{_ROWS:,} rows, {_NUMBERS} numbers, {_LEVELS} columns of levels"


class NoPeerError(Exception):
    """No Python was named that has the peer."""


def measure(options: Options) -> Iterator[Measure]:
    """CPU seconds of whole fits, and of a million rows: ours to CSV, the peer's as a frame."""
    if options.peer_python is None:
        raise NoPeerError("beside a peer needs --peer-python: one that has mostlyai-engine")
    for name, table in {"Adult": load_table("adult", options.data).train, WIDE: wide()}.items():
        found: dict[str, list[float]] = defaultdict(list)
        for seed in range(_ROUNDS):
            for preset in PRESETS:
                fitted: list[Synthesizer] = []
                fit = _fit(table, preset, seed, fitted)
                found[f"{preset} fit"].append(cpu_seconds_of(fit))
                for _ in range(_DRAWS):
                    seconds = cpu_seconds_of(lambda: to_csv(fitted[0], options.rows, options))  # noqa: B023
                    found[f"{preset} draw"].append(1e6 * seconds / options.rows)
            told = _of_the_peer(table, options)
            found[f"{PEER} fit"].append(told["fit"])
            found[f"{PEER} draw"] += [1e6 * seconds / options.rows for seconds in told["draw"]]
        for what, values in found.items():
            yield Measure(f"beside {name}", what, "s", tuple(values))


def wide() -> pd.DataFrame:
    """Numbers and levels that depend on four hidden numbers, as text."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(_ROWS, 4))
    scores = hidden @ rng.normal(size=(4, _NUMBERS + _LEVELS))
    scores += rng.normal(size=scores.shape)
    columns: dict[str, Any] = {}
    for j in range(_NUMBERS):
        number = np.exp(scores[:, j] / 2) if j % 2 else 10.0 * scores[:, j]
        columns[f"number {j}"] = [f"{value:.{1 + j % 3}f}" for value in number]
    for j in range(_LEVELS):
        edges = np.sort(rng.normal(scale=2.0, size=2 + j))
        columns[f"group {j}"] = [f"level {k}" for k in np.digitize(scores[:, _NUMBERS + j], edges)]
    return pd.DataFrame(columns, dtype=object)


def _fit(table: pd.DataFrame, preset: str, seed: int, fitted: list[Synthesizer]) -> Any:
    return lambda: fitted.append(Synthesizer.fit(table, preset=preset, seed=seed, device="cpu"))


def _of_the_peer(table: pd.DataFrame, options: Options) -> dict[str, Any]:
    """What a process of its own measured."""
    path = options.scratch / "beside.parquet"
    plain_frame(table, infer_schema(table).schema, ordinal_numbers=True).to_parquet(path)
    script = [str(Path(peer.__file__)), str(path), str(options.rows), str(_DRAWS)]
    done = subprocess.run(
        [str(options.peer_python), *script], stdout=subprocess.PIPE, text=True, check=True
    )
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told
