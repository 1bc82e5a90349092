"""How fast the library is, on one thread, into docs/performance.md.

    python -m benchmarks.speed [--subjects sample ...] [--rows 200000] [--scale 100000 1000000]

Each figure is measured several times, in turns with its limit, in CPU seconds; figures of another
run stay in the result unless their subject is measured anew. The page is made of the result alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from benchmarks.quality.results import processor
from benchmarks.quality.tables import NoTableError, data_folder
from benchmarks.speed import beside, fitting, growth, ingestion, sampling, scoring, starting
from benchmarks.speed.limits import products
from benchmarks.speed.measures import Measure, Options
from benchmarks.speed.page import page
from gcvae_cli.assignments import parse_assignments

_ROOT = Path(__file__).parents[2]
RESULT = "speed-*.json"
SUBJECTS: dict[str, Callable[[Options], Iterator[Measure]]] = {
    "start": starting.measure,
    "fit": fitting.measure,
    "beside": beside.measure,
    "sample": sampling.measure,
    "score": scoring.measure,
    "ingest": ingestion.measure,
    "growth": growth.measure,
}


def main() -> int:
    """Measures, merges, writes. Returns: 0 done, 2 a table or the peer is not there."""
    given = _arguments()
    torch.set_num_threads(1)
    results = _ROOT / "benchmarks" / "results"
    today = datetime.now(UTC).date().isoformat()
    given.scratch.mkdir(parents=True, exist_ok=True)
    options = Options(
        given.data,
        given.scratch,
        given.repeats,
        given.rows,
        tuple(given.scale),
        parse_assignments(given.set),
        given.peer_python,
    )
    try:
        measured = {name: [asdict(m) for m in SUBJECTS[name](options)] for name in given.subjects}
    except (NoTableError, beside.NoPeerError) as error:
        print(error, file=sys.stderr)
        return 2
    document = _latest(results)
    # Products, half of all drawing and scoring, gain most by wider vectors.
    machine = f"{processor()} ({torch.backends.cpu.get_cpu_capability()})"
    for name, measures in measured.items():
        document["subjects"][name] = {"date": today, "machine": machine, "measures": measures}
    if "sample" in measured:
        document["products"] = {
            preset: products(sampling.fitted(preset, options).model) for preset in sampling.PRESETS
        }
    document["date"] = today
    (results / f"speed-{today}.json").write_text(json.dumps(document, indent=1) + "\n")
    given.page.write_text(page(document))
    return 0


def _latest(results: Path) -> dict[str, Any]:
    """The last result; an empty one if there is none."""
    files = sorted(results.glob(RESULT))
    empty: dict[str, Any] = {"subjects": {}}
    return json.loads(files[-1].read_text()) if files else empty


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--subjects", nargs="+", choices=SUBJECTS, default=[*SUBJECTS])
    parser.add_argument("--peer-python", type=Path, help="a Python that has mostlyai-engine")
    parser.add_argument("--data", type=Path, default=data_folder(), help="folder of the tables")
    scratch = Path(tempfile.gettempdir()) / "gcvae-speed"
    parser.add_argument("--scratch", type=Path, default=scratch, help="models that are kept")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=200_000, help="drawn in each run")
    parser.add_argument("--scale", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--set", action="append", default=[], help="a setting of the fits")
    parser.add_argument("--page", type=Path, default=_ROOT / "docs" / "performance.md")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
