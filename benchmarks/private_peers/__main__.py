"""Other people's private models on Adult, under the promise of `benchmarks.differential_privacy`.

    python -m benchmarks.private_peers --mechanism mst aim --peer-python PYTHON --output FILE.json
    python -m benchmarks.private_peers --mechanism dp-sgd --peer-python PYTHON --output FILE.json
    python -m benchmarks.private_peers --page FILE.json

The peers take categories. They get the declared levels and, of numbers, the bins that our own
private tree cuts for its part of the budget; what is left of it is theirs. Their rows get values
within the bins as ours do. Runs are added to those that the results have.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.differential_privacy import DELTA, PAGE, declared_adult, figures
from benchmarks.pages_of_results import replaced_part, table_of
from benchmarks.quality.results import processor
from benchmarks.quality.tables import BenchmarkTable, data_folder, load_table
from gcvae.cells.values import format_table
from gcvae.files.source_columns import source_columns
from gcvae.training.differential_privacy.budget import Budget
from gcvae.training.differential_privacy.cell_codes import UNFIT, column_codes
from gcvae.training.differential_privacy.declared import declared_table
from gcvae.training.differential_privacy.ledger import Ledger, epsilon_of
from gcvae.training.differential_privacy.private_table import private_bins, values_of_bins

PART = "peers"
CHILDREN = {"mst": "counts_child.py", "aim": "counts_child.py", "dp-sgd": "gradients_child.py"}


@dataclass(frozen=True)
class Peer:
    """How a peer is run.

    Attributes:
        mechanism: One of `CHILDREN`.
        python: That has it.
        limit_minutes: Of CPU time, after which it is ended.
        settings: Of it, in the place of its defaults.
    """

    mechanism: str
    python: Path
    limit_minutes: float
    settings: Mapping[str, Any]


def run(table: BenchmarkTable, peer: Peer, epsilon: float, seed: int) -> dict[str, Any]:
    """The figures of one fit, or why there are none."""
    ledger = Ledger(epsilon, DELTA)
    schema = declared_adult(table)
    declared = declared_table(list(table.train.columns), schema, Budget(epsilon, DELTA))
    with source_columns(table.train) as source:
        codes = np.stack([column_codes(source, column) for column in declared.columns], axis=1)
    assert not (codes == UNFIT).any(), "every row is as it is declared"
    bins = private_bins(declared.columns, codes, ledger)
    names = [column.name for column in declared.columns]
    binned = {name: bins[j].of(codes[:, j]) for j, name in enumerate(names)}
    task = {
        "mechanism": peer.mechanism,
        "epsilon": epsilon_of(float(ledger.left), DELTA),
        "delta": DELTA,
        "seed": seed,
        "sizes": [b.n for b in bins],
        "n_rows": len(table.train),
        "limit_minutes": peer.limit_minutes,
    } | dict(peer.settings)
    found: dict[str, Any] = {
        "mechanism": peer.mechanism,
        "epsilon": epsilon,
        "delta": DELTA,
        "seed": seed,
        "epsilon_after_bins": round(task["epsilon"], 4),
        "bins": dict(zip(names, task["sizes"], strict=True)),
        "settings": dict(peer.settings),
    }
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        folder = Path(name)
        pd.DataFrame(binned).to_csv(folder / "bins.csv", index=False)
        (folder / "task.json").write_text(json.dumps(task))
        if (failure := failure_of(peer, folder)) is not None:
            return found | {"failure": failure}
        drawn = pd.read_csv(folder / "drawn.csv")[names].to_numpy(dtype=np.int64)
        found |= json.loads((folder / "outcome.json").read_text())
    random = np.random.default_rng(seed)
    values = values_of_bins(drawn, bins, names, declared.schema, random)
    return found | figures(table, format_table(values, declared.schema))


def failure_of(peer: Peer, folder: Path) -> str | None:
    """Runs the child; why it failed, None where it did not."""
    seconds = int(60 * peer.limit_minutes)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    threads = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS"), "1"
    )
    script = Path(__file__).with_name(CHILDREN[peer.mechanism])
    done = subprocess.run(
        [str(peer.python), str(script), str(folder)],
        env=os.environ | threads,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        check=False,
        preexec_fn=limit,
    )
    if done.returncode == 0:
        return None
    if done.returncode < 0:
        return f"ended after {peer.limit_minutes:g} minutes of CPU time"
    return (done.stderr.strip().splitlines() or ["it said nothing"])[-1]


_NAMES = {"mst": "MST", "aim": "AIM", "dp-sgd": "DP-SGD"}
_HEADS = (
    "ε",
    "model",
    "two-way TV",
    "Shape",
    "C2ST",
    "utility; that of real rows",
    "CPU seconds",
)


def lines_of_page(document: Mapping[str, Any]) -> str:
    """The peers' table of docs/differential-privacy.md, a line for each run, by epsilon."""
    lines: list[list[str]] = []
    for found in sorted(document["runs"], key=lambda run: float(run["epsilon"])):
        name = _NAMES[found["mechanism"]]
        if "failure" in found:
            lines.append([f"{found['epsilon']:g}", name, found["failure"], *[""] * 4])
            continue
        if "epsilon_kept" in found:
            name += f", ε {found['epsilon_kept']:.2f} after {found['epochs_kept']:.0f} passes"
        lines.append(
            [
                f"{found['epsilon']:g}",
                f"{name} ({found['library']})",
                f"{found['two_way_tv_percent']:.2f} %",
                f"{found['shape_percent']:.2f} %",
                f"{found['c2st']:.3f}",
                f"{found['utility']:.3f}; {found['utility_of_real_rows']:.3f}",
                f"{found['cpu_seconds']:.0f}",
            ]
        )
    return table_of(_HEADS, lines)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mechanism", choices=list(CHILDREN), nargs="+")
    parser.add_argument("--peer-python", type=Path, help="a Python that has them")
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 3.0, 10.0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit-minutes", type=float, default=20.0, help="CPU time of a fit")
    parser.add_argument("--settings", type=json.loads, default={}, help="of the peer, as JSON")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--page", type=Path, help="results that docs/differential-privacy.md shows")
    given = parser.parse_args()
    if given.page is not None:
        document = json.loads(given.page.read_text())
        PAGE.write_text(replaced_part(PAGE.read_text(), PART, lines_of_page(document)))
        return
    if None in (given.mechanism, given.peer_python, given.output):
        parser.error("a run takes --mechanism, --peer-python and --output")
    table = load_table("adult", data_folder())
    runs = json.loads(given.output.read_text())["runs"] if given.output.exists() else []
    for mechanism in given.mechanism:
        peer = Peer(mechanism, given.peer_python, given.limit_minutes, given.settings)
        for epsilon in given.epsilon:
            runs.append(run(table, peer, epsilon, given.seed))
            sys.stdout.write(json.dumps(runs[-1]) + "\n")
            sys.stdout.flush()
            found = {"table": table.name, "processor": processor(), "date": str(date.today())}
            given.output.write_text(json.dumps(found | {"runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    main()
