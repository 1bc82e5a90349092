"""The command `python -m benchmarks.ablation`: every table with all mechanisms, and without each.

    python -m benchmarks.ablation [--tables magic,orders] [--switches shrinkage] [--rows 3000]
        [--seeds 0] [--baseline-seeds 0,1,2] [--minutes 55]

One process for each run, one thread. Runs are added to the results as they come, and those that
stand there are not done again. A mechanism that made no difference to a baseline is not run on that
table. `--page` only writes the page anew.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.ablation.child import Task
from benchmarks.ablation.page import render_page
from benchmarks.ablation.switches import SWITCHES, Stage
from benchmarks.quality.results import processor, versions_of
from benchmarks.quality.runs import _ONE_THREAD
from benchmarks.quality.tables import data_folder

_ROOT = Path(__file__).parents[2]
_RESULTS = _ROOT / "benchmarks" / "results"
SOURCES = {
    "orders": "{data}/orders.csv:gross_amount",
    "flights": "flights",
    "shoppers": "shoppers",
    "magic": "magic",
    "default": "{data}/default.csv.gz:default payment next month",
    "bank": "{data}/bank_full.csv.gz:y",
    "auto": "auto",
}
"""The tables as `load_table` takes them, those with most mechanisms first."""
Run = dict[str, Any]


def main() -> None:
    """Does the runs that do not stand in the results, and writes the page."""
    given = _arguments()
    if given.page_only:
        given.page.write_text(render_page(json.loads(given.output.read_text())))
        return
    document: dict[str, Any] = {"benchmark": "ablation", "runs": []}
    if given.output.exists():
        document = json.loads(given.output.read_text())
    document |= {
        "preset": given.preset,
        "rows": given.rows,
        "judged": given.judged,
        "scored": given.scored,
        "imputed": given.imputed,
        "machine": f"{processor()}, 1 thread",
    }
    started = time.monotonic()
    for task in _tasks(given, document["runs"]):
        if time.monotonic() - started > 60 * given.minutes:
            print("no time is left for the rest", flush=True)
            break
        _do(task, given, document)
    _save(document, given.output)
    given.page.write_text(render_page(document))


def _tasks(given: argparse.Namespace, runs: list[Run]) -> Iterator[Task]:
    """What is to be done, the baselines first; `runs` grow while it goes on."""
    tables = given.tables.split(",")
    for seed in given.baseline_seeds:
        yield from (_task(given, table, "", seed) for table in tables)
    for seed in given.seeds:
        for name in given.switches.split(","):
            for table in tables:
                if _is_in_use(runs, table, name):
                    yield _task(given, table, name, seed)


def _is_in_use(runs: list[Run], table: str, switch: str) -> bool:
    """Whether a mechanism made a difference to any baseline of the table."""
    baselines = [run for run in runs if run["table"] == table and not run["switch"]]
    return any(switch in run.get("in_use", ()) for run in baselines)


def _task(given: argparse.Namespace, table: str, switch: str, seed: int) -> Task:
    source = SOURCES.get(table, table).format(data=given.data)
    sizes = given.rows, given.judged, given.scored, given.imputed
    return Task(table, source, switch, seed, given.preset, *sizes, str(given.cache))


def _do(task: Task, given: argparse.Namespace, document: dict[str, Any]) -> None:
    """One run, if it does not stand in the results."""
    own = {"table": task.table, "switch": task.switch, "seed": task.seed, "rows": task.rows}
    is_done = any(own.items() <= run.items() and "failed" not in run for run in document["runs"])
    if is_done and not _is_needed_again(task, given):
        return
    document["runs"][:] = [run for run in document["runs"] if not own.items() <= run.items()]
    begun = time.monotonic()
    figures = _outcome(task, given.data)
    run = own | {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "source": versions_of("default")["source"],
        "wall_seconds": round(time.monotonic() - begun, 1),
    }
    document["runs"].append(run | figures)
    _save(document, given.output)
    outcome = figures.get("failed", f"C2ST {figures.get('c2st', float('nan')):.3f}")
    name = f"{task.table}, {task.switch or 'baseline'}, seed {task.seed}"
    print(f"{name}: {run['wall_seconds']} s, {outcome}", flush=True)


def _is_needed_again(task: Task, given: argparse.Namespace) -> bool:
    """Whether variants begin with what a baseline leaves in the cache, and it is gone."""
    weights = given.cache / f"{task.table}-{task.rows}-{task.seed}.weights"
    return not task.switch and task.seed in given.seeds and not weights.exists()


def _outcome(task: Task, data: Path) -> dict[str, Any]:
    """The figures of a process of its own; `failed` with its last words if there are none."""
    with tempfile.TemporaryDirectory(prefix="ablation-") as name:
        paths = Path(name) / "task.json", Path(name) / "outcome.json"
        paths[0].write_text(json.dumps(asdict(task)))
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.ablation.child", *map(str, paths)],
            env=os.environ
            | _ONE_THREAD
            | {"CUDA_VISIBLE_DEVICES": "", "GCVAE_DATA_DIR": str(data)},
            cwd=_ROOT,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            return {"failed": (done.stderr.strip().splitlines() or ["no words"])[-1]}
        found: dict[str, Any] = json.loads(paths[1].read_text())
        return found


def _save(document: dict[str, Any], path: Path) -> None:
    draft = path.with_suffix(".partial")
    draft.write_text(json.dumps(document, indent=1) + "\n")
    os.replace(draft, path)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ablation", description=__doc__)
    today = datetime.now(UTC).date().isoformat()
    default = sorted(SWITCHES, key=lambda name: SWITCHES[name].stage is Stage.TRAINING)
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the tables")
    parser.add_argument("--tables", default=",".join(SOURCES), help="names, or file.csv:target")
    parser.add_argument("--switches", default=",".join(default))
    parser.add_argument("--seeds", type=_numbers, default=[0], help="of the variants")
    parser.add_argument("--baseline-seeds", type=_numbers, default=[0, 1, 2])
    parser.add_argument("--rows", type=int, default=3_000, help="to learn from, at most")
    parser.add_argument("--judged", type=int, default=3_000, help="unseen rows, at most")
    parser.add_argument("--scored", type=int, default=400, help="rows scored, of each sort")
    parser.add_argument("--imputed", type=int, default=100, help="rows with blanks")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--minutes", type=float, default=600.0, help="no run begins after these")
    parser.add_argument("--output", type=Path, default=_RESULTS / f"ablation-{today}.json")
    parser.add_argument("--page", type=Path, help="where not given, beside the results")
    parser.add_argument("--page-only", action="store_true", help="write the page anew")
    given = parser.parse_args()
    given.page = given.page or given.output.with_suffix(".md")
    source = versions_of("default")["source"]
    given.cache = Path(tempfile.gettempdir()) / f"gcvae-ablation-{given.preset}-{source}"
    given.cache.mkdir(exist_ok=True)
    return given


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
