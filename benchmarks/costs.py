"""What jobs take, measured: the coefficients of `gcvae/training/costs.py`.

    python -m benchmarks.costs [--data FOLDER] [-o benchmarks/results/costs-DATE.json]

    python -m benchmarks.costs --check
    python -m benchmarks.costs --reports


Each piece of work runs in a process of its own, on one thread; its CPU seconds and peak memory are
the kernel's. Coefficients are non-negative least squares of relative errors over the pieces. At the
end it prints every piece as measured and as estimated, and how far the estimates are off. With
--check it measures nothing anew but whole trainings of other tables, beside their estimates; with
--reports reports alone, after two short trainings of each table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import nnls

from benchmarks.quality.tables import NoTableError, data_folder, load_table
from gcvae.training.costs import (
    COEFFICIENTS,
    reporting_cost,
    reporting_features,
    sampling_features,
    scoring_features,
    training_cost,
    training_features,
)
from gcvae.training.settings import configure, settle

_PRESETS = ("default", "fast", "gcvae", "paper-gcvae")
_TABLES = ((2_000, 14), (16_000, 14), (16_000, 5))
_STEPS = {"paper-gcvae": (200, 2_000)}  # a step of its small networks takes about a millisecond
_OTHER_STEPS = (40, 160)
_SAMPLES = ((20_000, 14), (120_000, 14), (120_000, 5))
_SCORES = ((500, 14, 100), (2_000, 14, 100), (2_000, 14, 20), (2_000, 5, 100))

_REPORTS = ((300, 14), (2_000, 14), (16_000, 14), (16_000, 5), (3_000, 56), (120_000, 5))
_REPORT_SHARE = 0.1

_CHECKS = (("default", "auto"), ("fast", "shoppers"), ("paper-gcvae", "auto"))

_WHOLE = """
import sys, pandas as pd
from gcvae import Synthesizer
frame = pd.read_csv(sys.argv[1], dtype=str, keep_default_na=False)
Synthesizer.fit(frame, preset=sys.argv[2], device="cpu")
"""
_TRAIN = """
import sys, pandas as pd
from gcvae import Synthesizer
path, preset, steps, out = sys.argv[1:]
settings = {"max_steps": int(steps), "patience_steps": 10**6, "annealing": 0.0}
frame = pd.read_csv(path, dtype=str, keep_default_na=False)
Synthesizer.fit(frame, preset=preset, settings=settings, device="cpu").save(out)
"""
_SAMPLE = """
import sys
from pathlib import Path
from tempfile import gettempdir
from gcvae import Synthesizer
from gcvae.files.table_stream import stream_table
model = Synthesizer.from_bytes(Path(sys.argv[1]).read_bytes())
with open(sys.argv[3], "wb") as file:
    file.writelines(stream_table(model.sample_blocks(int(sys.argv[2])), model.schema, "csv"))
"""
_SCORE = """
import sys, pandas as pd
from pathlib import Path
from tempfile import gettempdir
from gcvae import Synthesizer
model = Synthesizer.from_bytes(Path(sys.argv[1]).read_bytes())
frame = pd.read_csv(sys.argv[2], dtype=str, keep_default_na=False).head(int(sys.argv[3]))
list(model.score_blocks(frame, draws=int(sys.argv[4])))
"""
_FIT_FOR_REPORT = """
import sys
from gcvae import Synthesizer, TableReader
settings = {"max_steps": 40, "annealing": 0.0, "report_share": float(sys.argv[3])}
table = TableReader(sys.argv[1])
Synthesizer.fit(table, preset=sys.argv[2], settings=settings, device="cpu").save(sys.argv[4])
"""
_REPORT = """
import sys
from pathlib import Path
from gcvae import Synthesizer, TableReader
model = Synthesizer.from_bytes(Path(sys.argv[1]).read_bytes())
model.report(TableReader(sys.argv[2]))
"""


def main() -> int:
    """Measures, fits, prints. Returns: 0 done, 2 wrong usage."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the tables")
    parser.add_argument("-o", "--output", type=Path, help="JSON of the coefficients and pieces")
    parser.add_argument("--scratch", type=Path, default=Path(gettempdir()) / "gcvae-costs")
    parser.add_argument("--check", action="store_true", help="judge the estimates there are")
    parser.add_argument("--reports", action="store_true", help="measure reports alone")
    given = parser.parse_args()
    given.scratch.mkdir(exist_ok=True)
    if given.check:
        return _check(given)
    try:
        table = load_table("adult", given.data).train
    except NoTableError as error:
        print(error, file=sys.stderr)
        return 2
    uses = () if given.reports else (*_trainings(table, given.scratch), *_uses(given.scratch))
    pieces = [*uses, *_reports(table, given.scratch)]
    document = {"date": datetime.now(UTC).date().isoformat(), "coefficients": _fit(pieces)}
    _print(pieces, document["coefficients"])
    if given.output is not None:
        given.output.write_text(json.dumps(document | {"pieces": pieces}, indent=1) + "\n")
    return 0


def _check(given: argparse.Namespace) -> int:
    """Whole trainings, which may stop early, beside what was estimated of them."""
    for preset, name in _CHECKS:
        table = load_table(name, given.data).train
        path = given.scratch / f"{name}.csv"
        table.to_csv(path, index=False)
        rows, columns = table.shape
        settled = settle(configure(preset), n_rows=rows, n_columns=columns)
        cost = training_cost(preset, settled, rows, columns)
        used = _run(_WHOLE, path, preset)
        print(f"{preset} on {name} ({rows} x {columns}): measured {used}, estimated {cost}")
    return 0


def _trainings(table: pd.DataFrame, scratch: Path) -> list[dict[str, Any]]:
    pieces = []
    for rows, columns in _TABLES:
        path = scratch / f"{rows}-{columns}.csv"
        table.iloc[:rows, :columns].to_csv(path, index=False)
        for preset in _PRESETS:
            for steps in _STEPS.get(preset, _OTHER_STEPS):
                model = scratch / f"{preset}-{columns}.gcvae"
                config = configure(preset, {"max_steps": steps, "annealing": 0.0})
                settled = settle(config, n_rows=rows, n_columns=columns)
                features = training_features(settled, rows, columns)
                used = _run(_TRAIN, path, preset, steps, model)
                pieces.append({"work": f"train {preset}", "features": features} | used)
                print(pieces[-1], flush=True)
    return pieces


def _uses(scratch: Path) -> list[dict[str, Any]]:
    pieces = []
    for preset in _PRESETS:
        for rows, columns in _SAMPLES:
            model = scratch / f"{preset}-{columns}.gcvae"
            used = _run(_SAMPLE, model, rows, scratch / "rows.csv")
            features = sampling_features(rows, columns)
            pieces.append({"work": f"sample {preset}", "features": features} | used)
            print(pieces[-1], flush=True)
        for rows, columns, draws in _SCORES:
            model = scratch / f"{preset}-{columns}.gcvae"
            used = _run(_SCORE, model, scratch / f"16000-{columns}.csv", rows, draws)
            features = scoring_features(rows, columns, draws)
            pieces.append({"work": f"score {preset}", "features": features} | used)
            print(pieces[-1], flush=True)
    return pieces


def _reports(table: pd.DataFrame, scratch: Path) -> list[dict[str, Any]]:
    """Reports of the default preset's models, less what drawing and scoring take in them."""
    pieces = []
    for rows, columns in _REPORTS:
        path, model = scratch / f"report-{rows}-{columns}.csv", scratch / "report.gcvae"
        wide = _widened(table, columns)
        wide.iloc[np.arange(rows) % len(wide)].to_csv(path, index=False)
        _run(_FIT_FOR_REPORT, path, "default", _REPORT_SHARE, model)
        used, unseen = _run(_REPORT, model, path), round(_REPORT_SHARE * rows)
        features = reporting_features(rows, columns, unseen)
        of_model = reporting_cost("default", rows, columns, unseen).seconds
        compared = np.dot(COEFFICIENTS["report"]["seconds"], features["seconds"])
        used["seconds"] = round(used["seconds"] - (of_model - float(compared)), 2)
        pieces.append({"work": "report", "features": features} | used)
        print(pieces[-1], flush=True)
    return pieces


def _widened(table: pd.DataFrame, columns: int) -> pd.DataFrame:
    """The table beside copies of itself, of which each is moved on by a thousand rows."""
    found = [table.iloc[:, :14]]
    while sum(one.shape[1] for one in found) < columns:
        moved = np.roll(np.arange(len(table)), 1_000 * len(found))
        found.append(found[0].iloc[moved].reset_index(drop=True).add_suffix(f" {len(found)}"))
    return pd.concat(found, axis=1).iloc[:, :columns]


def _run(script: str, *arguments: object) -> dict[str, float]:
    """CPU seconds and peak memory of a process."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    child = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"})
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, command
    return {
        "seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "memory_bytes": usage.ru_maxrss * 1024,
    }


def _fit(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """Coefficients by kind of work: one for each of its features."""
    found: dict[str, Any] = {}
    for work in dict.fromkeys(piece["work"] for piece in pieces):
        own = [piece for piece in pieces if piece["work"] == work]
        found[work] = {
            name: _coefficients([p["features"][name] for p in own], [p[name] for p in own])
            for name in ("seconds", "memory_bytes")
        }
    return found


def _coefficients(features: list[list[float]], values: list[float]) -> list[float]:
    design = np.array(features) / np.array(values)[:, None]
    scale = design.max(axis=0)
    solution, _ = nnls(design / scale, np.ones(len(values)))
    return [float(f"{value:.3g}") for value in solution / scale]


def _print(pieces: list[dict[str, Any]], coefficients: dict[str, Any]) -> None:
    print(json.dumps(coefficients, indent=1))
    ratios: dict[str, list[float]] = {"seconds": [], "memory_bytes": []}
    for piece in pieces:
        for name, found in ratios.items():
            estimated = np.dot(coefficients[piece["work"]][name], piece["features"][name])
            found.append(float(estimated / piece[name]))
        print(piece["work"], *(f"{name} ×{found[-1]:.2f}" for name, found in ratios.items()))
    for name, found in ratios.items():
        print(f"{name}: estimate / measured from {min(found):.2f} to {max(found):.2f}")


if __name__ == "__main__":
    sys.exit(main())
