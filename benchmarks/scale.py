"""Tables larger than memory: what 0.1, 1 and 10 million rows of 20 columns take.

    python -m benchmarks.scale [--rows 100000 1000000 10000000] [--preset fast] [-o FILE.json]

For each number of rows it writes a table (seeded, block by block), and in a process of its own, on
one thread and under a hard limit of 4 GiB of memory (RLIMIT_DATA: all memory but mapped files), it
infers the schema, as an upload does, and then fits a model of one epoch, as a training job does. It
prints the time of each part and the peak of memory, and how both grow with the rows.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import csv, parquet

from gcvae import Synthesizer, TableReader, infer_schema
from gcvae.training.progress import Progress
from gcvae.training.settings import MOST_HELD_OUT_ROWS
from gcvae_cli.assignments import parse_assignments

ROWS = (100_000, 1_000_000, 10_000_000)
LIMIT_BYTES = 4 << 30
PRESET, BATCH_SIZE = "paper-gcvae", 2048
BLOCK_ROWS = 100_000
_LOOK_EVERY_SECONDS = 0.05
_COUNTRIES = ["DE", "FR", "IT", "ES", "PL", "NL", "BE", "AT", "CZ", "SE", "DK", "FI"]
_WORDS = ["basic", "plus", "family", "student", "senior", "business"]


@dataclass
class Measured:
    """What one table took. Bytes of memory are peaks.

    Attributes:
        seconds: By part of the work, wall clock.
        cpu_seconds: Of the process; what else the machine did meanwhile is not in them.
        resident_bytes: Of the process, the pages of mapped files that it touched included; the
            kernel takes those back when others need the room.
        anonymous_bytes: Of the process without them: what cannot be taken back.
        files_bytes: Of the temporary files.
    """

    rows: int
    columns: int
    table_bytes: int
    steps: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    cpu_seconds: dict[str, float] = field(default_factory=dict)
    resident_bytes: dict[str, int] = field(default_factory=dict)
    anonymous_bytes: dict[str, int] = field(default_factory=dict)
    files_bytes: int = 0


def blocks(rows: int, seed: int = 0) -> Iterator[pd.DataFrame]:
    """A table of 20 columns that depend on two hidden numbers, as of a company's customers."""
    for number, first in enumerate(range(0, rows, BLOCK_ROWS)):
        n = min(BLOCK_ROWS, rows - first)
        yield _block(np.random.default_rng([seed, number]), first, n)


def _block(rng: np.random.Generator, first: int, n: int) -> pd.DataFrame:
    wealth, age = rng.normal(size=n), rng.normal(size=n)
    income = np.exp(10.2 + 0.5 * wealth + 0.2 * age + 0.2 * rng.normal(size=n))
    visits = rng.poisson(np.exp(1.5 + 0.4 * wealth))
    joined = np.datetime64("2015-01-01") + (1500 + 500 * age + 200 * rng.normal(size=n)).astype(int)
    seconds = rng.integers(0, 86_400 * 700, n) + (visits * 3600).astype(int)
    town = np.minimum(rng.geometric(0.004, n), 3000)
    return pd.DataFrame(
        {
            "customer": np.arange(first, first + n) + 10_000_000,
            "age": np.clip(45 + 14 * age + 3 * rng.normal(size=n), 18, 99).astype(int),
            "income": np.round(income, 2),
            "balance": np.round(income * np.abs(0.2 + 0.3 * rng.normal(size=n)), 2),
            "debt": np.where(rng.random(n) < 0.6, 0.0, np.round(income * rng.random(n), 2)),
            "score": np.round(600 + 60 * wealth + 40 * rng.normal(size=n)).astype(int),
            "distance": np.round(rng.gamma(2.0, 4.0, n), 3),
            "height": np.round(172 + 9 * rng.normal(size=n), 1),
            "visits": visits,
            "basket": np.where(visits == 0, np.nan, np.round(rng.gamma(3.0, 11 + visits, n), 2)),
            "children": np.clip(rng.poisson(1.0 + 0.3 * (age > 0)), 0, 8),
            "joined": joined.astype(str),
            "seen": pd.Series(np.datetime64("2023-01-01T00:00:00") + seconds).astype(str),
            "country": rng.choice(_COUNTRIES, n, p=_falling(len(_COUNTRIES))),
            "town": np.char.add("T", town.astype(str)),
            "plan": np.array(_WORDS)[np.clip((3 + wealth + rng.normal(size=n)), 0, 5).astype(int)],
            "member": np.where(wealth + rng.normal(size=n) > 0, "yes", "no"),
            "mail": np.where(rng.random(n) < 0.1, "", np.where(age > 0, "true", "false")),
            "channel": rng.choice(["web", "shop", "phone", "agent"], n, p=[0.5, 0.3, 0.1, 0.1]),
            "unit": "EUR",
        }
    )


def _falling(n: int) -> np.ndarray:
    weights = 1.0 / np.arange(1, n + 1)
    return cast(np.ndarray, weights / weights.sum())


def write_table(path: Path, rows: int) -> None:
    """The table as a file, CSV or Parquet by its name."""
    writer: Any = None
    for block in blocks(rows):
        table = pa.Table.from_pandas(block, preserve_index=False)
        if writer is None:
            make = parquet.ParquetWriter if path.suffix == ".parquet" else csv.CSVWriter
            writer = make(str(path), table.schema)
        writer.write_table(table)
    writer.close()


class _Peaks:
    """Looks at the process's memory, and at its temporary files, while it works."""

    def __init__(self) -> None:
        self.part = "start"
        self.resident: dict[str, int] = {}
        self.anonymous: dict[str, int] = {}
        self.files = 0
        threading.Thread(target=self._look_on, daemon=True).start()

    def _look_on(self) -> None:
        while True:
            self.look()
            time.sleep(_LOOK_EVERY_SECONDS)

    def look(self) -> None:
        """Notes the present memory and files, where they are the most so far."""
        status = dict(
            line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines()
        )
        for found, name in ((self.resident, "VmRSS"), (self.anonymous, "RssAnon")):
            n_bytes = int(status[name].split()[0]) * 1024
            found[self.part] = max(found.get(self.part, 0), n_bytes)
        folders = Path(tempfile.gettempdir()).glob("gcvae-table-*/*")
        self.files = max(self.files, sum(_size(path) for path in folders))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # it went in between
        return 0


def measure(path: Path, rows: int, preset: str, more: dict[str, Any]) -> Measured:
    """Infers the schema of a table and fits a model of one epoch, in this process."""
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
    found = Measured(rows, 0, path.stat().st_size)
    peaks = _Peaks()
    began = np.array([time.monotonic(), time.process_time()])

    def begin(part: str) -> None:
        nonlocal began
        if part == peaks.part:
            return
        peaks.look()
        now = np.array([time.monotonic(), time.process_time()])
        wall, cpu = (now - began).round(2).tolist()
        found.seconds[peaks.part], found.cpu_seconds[peaks.part] = wall, cpu
        peaks.part, began = part, now

    begin("ingest")
    schema = infer_schema(TableReader(path)).schema
    settings = _one_epoch(rows) | more
    _fit(path, schema, preset, settings, begin)
    begin("done")
    found.columns, found.steps = len(schema), settings["max_steps"]
    found.resident_bytes, found.anonymous_bytes = peaks.resident, peaks.anonymous
    found.files_bytes = peaks.files
    del found.seconds["start"], found.cpu_seconds["start"]
    return found


def _one_epoch(rows: int) -> dict[str, Any]:
    """Settings of a training that ends after each row was seen once."""
    trained = rows - min(round(0.1 * rows), MOST_HELD_OUT_ROWS)
    steps = math.ceil(trained / BATCH_SIZE)
    return {
        "batch_size": BATCH_SIZE, "max_steps": steps, "patience_steps": steps, "annealing": 0.0,
        "evaluate_every_steps": max(steps // 20, 1),
    }  # fmt: skip


def _fit(
    path: Path, schema: Any, preset: str, settings: dict[str, Any], begin: Callable[[str], None]
) -> None:
    parts = {"preparing": "encode", "training": "epoch", "finishing": "finish"}

    def told(progress: Progress) -> None:
        begin(parts[progress.phase])
        if sys.stderr.isatty():
            print(f"\r{progress.phase} {progress.fraction:.3f}   ", end="", file=sys.stderr)

    Synthesizer.fit(
        TableReader(path), schema=schema, preset=preset, settings=settings, seed=0, device="cpu",
        progress=told,
    )  # fmt: skip


def main() -> int:
    """Runs the tables, or one of them in this process."""
    given = _arguments()
    if given.measure is not None:
        more = parse_assignments(given.settings)
        print(json.dumps(asdict(measure(given.measure, given.rows[0], given.preset, more))))
        return 0
    found = []
    for rows in given.rows:
        with tempfile.TemporaryDirectory(prefix="gcvae-scale-", dir=given.scratch) as folder:
            path = Path(folder) / f"table.{given.format}"
            write_table(path, rows)
            found.append(_in_a_process(path, rows, given))
        print(_line(found[-1]), flush=True)
    print(page(found))
    if given.output is not None:
        document = {
            "date": datetime.now(UTC).date().isoformat(), "format": given.format,
            "preset": given.preset, "settings": parse_assignments(given.settings),
            "batch_size": BATCH_SIZE, "limit_bytes": LIMIT_BYTES, "tables": found,
        }  # fmt: skip
        given.output.write_text(json.dumps(document, indent=1) + "\n")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--preset", default=PRESET)
    parser.add_argument("--settings", nargs="*", default=[], metavar="KEY=VALUE")
    parser.add_argument("--format", choices=("csv", "parquet"), default="csv")
    parser.add_argument("--scratch", type=Path, help="folder of the tables and temporary files")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _in_a_process(path: Path, rows: int, given: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale", "--measure", str(path)]
    command += ["--preset", given.preset, "--settings", *given.settings, "--rows"]
    places = {"OMP_NUM_THREADS": "1", "TMPDIR": str(path.parent)}
    done = subprocess.run(
        [*command, str(rows)],
        env=os.environ | places,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _line(found: dict[str, Any]) -> str:
    parts = ", ".join(
        f"{part} {seconds:.1f} s ({found['cpu_seconds'][part]:.1f} of CPU,"
        f" {found['anonymous_bytes'][part] >> 20} MiB anonymous,"
        f" {found['resident_bytes'][part] >> 20} resident)"
        for part, seconds in found["seconds"].items()
    )
    size = f"{found['table_bytes'] >> 20} MiB, files {found['files_bytes'] >> 20} MiB"
    return f"{found['rows']:,} rows x {found['columns']} ({size}): {parts}"


_MARGIN = "|---" * 7 + "|"
_HEAD = (
    "|rows|ingest, s|encode, s|one epoch, s|finish, s"
    "|peak memory, MiB (with mapped pages)|temporary files, MiB|"
)


def page(found: list[dict[str, Any]]) -> str:
    """The tables as docs/scale.md shows them: CPU seconds, the peaks, and the slopes."""
    lines = [_HEAD, _MARGIN, *map(_page_line, found)]
    if len(found) > 1:
        lines += _slopes(found)
    return "\n".join(lines)


def _page_line(found: dict[str, Any]) -> str:
    seconds = [f"{n:,.0f}" for n in found["cpu_seconds"].values()]
    peaks = (max(found[name].values()) >> 20 for name in ("anonymous_bytes", "resident_bytes"))
    peak = "{:,} ({:,})".format(*peaks)
    return _cells([f"{found['rows']:,}", *seconds, peak, f"{found['files_bytes'] >> 20:,}"])


def _slopes(found: list[dict[str, Any]]) -> list[str]:
    """From each table to the next: seconds and MiB for a million rows more."""
    lines = []
    for first, last in pairwise(found):
        more = (last["rows"] - first["rows"]) / 1e6
        seconds = [
            f"{(n - first['cpu_seconds'][part]) / more:,.1f}"
            for part, n in last["cpu_seconds"].items()
        ]
        peaks = [
            (max(last[name].values()) - max(first[name].values())) / more / (1 << 20)
            for name in ("anonymous_bytes", "resident_bytes")
        ]
        files = (last["files_bytes"] - first["files_bytes"]) / more / (1 << 20)
        name = f"per million rows, from {first['rows']:,} to {last['rows']:,}"
        peak = f"{peaks[0]:,.0f} ({peaks[1]:,.0f})"
        lines.append(_cells([name, *seconds, peak, f"{files:,.0f}"]))
    return lines


def _cells(cells: list[str]) -> str:
    return f"|{'|'.join(cells)}|"


if __name__ == "__main__":
    sys.exit(main())
