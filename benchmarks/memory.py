"""What a default model remembers: attacks on models of halves of real tables.

    python -m benchmarks.memory --tables auto magic --seeds 3 --output RESULTS.json
    python -m benchmarks.memory --page RESULTS.json

A model of the preset `default` learns from one half of a table, of which it is told the kinds of
the columns, and the report (docs/report.md) attacks it beside the other half: by the model's own
scores, and by the rows that it draws. The seed shuffles the rows before they are cut, and is the
model's and the report's. Each run is a line of the answer as soon as it is done.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.pages_of_results import replaced_part
from benchmarks.quality.results import processor
from benchmarks.quality.tables import TABLE_NAMES, BenchmarkTable, data_folder, load_table
from gcvae import Synthesizer

PAGE = Path("docs") / "privacy.md"
PART = "memory"
SHOWN = {
    "likelihood": "the model's scores",
    "distance": "nearness of drawn rows",
    "density_ratio": "a classifier on drawn rows",
}
"""Attacks of the report that the page shows; each has a twin on isolated rows (`_isolated`)."""

_MEMBERS = ("area", "interval_95", "rows_of_each_class", "verdict")


def run(table: BenchmarkTable, seed: int) -> dict[str, Any]:
    """The figures of one model of a half."""
    rows = pd.concat([table.train, table.test], ignore_index=True)
    order = np.random.default_rng(seed).permutation(len(rows))
    half = len(order) // 2
    members, unseen = (
        rows.iloc[part].reset_index(drop=True) for part in (order[:half], order[half:])
    )
    started_at = time.process_time()
    kinds = [{"name": column.name, "kind": str(column.kind)} for column in table.schema]
    synthesizer = Synthesizer.fit(members, schema={"columns": kinds}, seed=seed, progress=False)
    cpu_seconds = time.process_time() - started_at
    report = synthesizer.report(members, unseen, seed=seed).to_json()
    attacks = {attack["name"]: attack for attack in report["privacy"]["attacks"]}
    return {
        "table": table.name,
        "seed": seed,
        "rows_of_training": half,
        "cpu_seconds_of_fit": round(cpu_seconds, 1),
        "cpu_seconds": round(time.process_time() - started_at, 1),
        "memory_gap": synthesizer.training_record["memory_gap"],
        "attacks": {
            name: {member: attacks[name][member] for member in _MEMBERS}
            for name in (*SHOWN, *(f"{name}_isolated" for name in SHOWN))
            if name in attacks
        },
        "share_nearer_to_members": report["privacy"]["descriptive"]["share_nearer_to_members"],
        "verdicts": report["privacy"]["leaks"],
    }


def lines_of_page(document: Mapping[str, Any]) -> str:
    """The table of docs/privacy.md: of several seeds the mean, and the widest interval."""
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for found in document["runs"]:
        runs.setdefault(found["table"], []).append(found)
    heads = ["table", "rows learned", "seeds", "gap, nats", *SHOWN.values(), "drawn rows nearer"]
    lines = [heads, ["---"] * len(heads)]
    for name, of_table in runs.items():
        first = of_table[0]
        gap = statistics.fmean(found["memory_gap"]["nats"] for found in of_table)
        nearer = statistics.fmean(found["share_nearer_to_members"] for found in of_table)
        cells = [name, f"{first['rows_of_training']:,}", str(len(of_table)), f"{gap:.2f}"]
        cells += [_area(of_table, attack) for attack in SHOWN] + [f"{nearer:.3f}"]
        lines.append(cells)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _area(runs: Sequence[Mapping[str, Any]], attack: str) -> str:
    """The mean area of the runs, between the lowest and the highest end of their intervals."""
    found = [run["attacks"][attack] for run in runs]
    low = min(one["interval_95"][0] for one in found)
    high = max(one["interval_95"][1] for one in found)
    return f"{statistics.fmean(one['area'] for one in found):.3f} ({low:.3f}–{high:.3f})"


def main() -> None:
    """Runs what the command line asks for, or writes the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=["auto", "magic", "shoppers", "adult"],
                        choices=TABLE_NAMES)  # fmt: skip
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="results; runs are added to those in it")
    parser.add_argument("--page", type=Path, help="results to be shown in docs/privacy.md")
    arguments = parser.parse_args()
    if arguments.page is not None:
        document = json.loads(arguments.page.read_text())
        PAGE.write_text(replaced_part(PAGE.read_text(), PART, lines_of_page(document)))
        return
    document = {"processor": processor(), "date": str(date.today()), "runs": []}
    if arguments.output is not None and arguments.output.exists():
        document = json.loads(arguments.output.read_text())
    for name in arguments.tables:
        table = load_table(name, data_folder())
        for seed in range(arguments.seeds):
            document["runs"].append(run(table, seed))
            sys.stdout.write(json.dumps(document["runs"][-1]) + "\n")
            sys.stdout.flush()
            if arguments.output is not None:
                arguments.output.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
