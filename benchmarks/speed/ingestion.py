"""CSV files read and their schemas inferred, in turns with Arrow's bare reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pyarrow import csv

from benchmarks.quality.tables import NoTableError
from benchmarks.scale import write_table
from benchmarks.speed.measures import Measure, Options, cpu_seconds_of
from gcvae import TableReader, infer_schema

BARE, OWN = "Arrow's reader", "gcvae"
_LARGE_BYTES = 100_000_000
_TIMES_MORE_ROWS = 4
_ON_ONE_THREAD = csv.ReadOptions(use_threads=False)


def measure(options: Options) -> Iterator[Measure]:
    """MB per CPU second of tables of 20 columns (`benchmarks.scale`), and of Adult repeated.

    Raises:
        NoTableError: Adult is not there.
    """
    for name, path in _tables(options).items():
        megabytes = path.stat().st_size / 1e6
        yield Measure(f"ingest {name}", "size", "MB", (megabytes,))
        found: dict[str, list[float]] = {BARE: [], OWN: []}
        for _ in range(options.repeats):
            seconds = cpu_seconds_of(lambda path=path: csv.read_csv(path, _ON_ONE_THREAD))
            found[BARE].append(megabytes / seconds)
            seconds = cpu_seconds_of(lambda path=path: infer_schema(TableReader(path)))
            found[OWN].append(megabytes / seconds)
        for what, values in found.items():
            yield Measure(f"ingest {name}", what, "MB/s", tuple(values))
        path.unlink()


def _tables(options: Options) -> dict[str, Path]:
    """The files by what they are called on the page."""
    paths = {}
    for rows in (options.rows, _TIMES_MORE_ROWS * options.rows):
        paths[f"20 columns, {rows:,} rows"] = path = options.scratch / f"{rows}-rows.csv"
        write_table(path, rows)
    paths["Adult, its rows again and again"] = path = options.scratch / "adult-again.csv"
    adult = options.data / "adult_train.csv"
    if not adult.exists():
        raise NoTableError(f"there is no {adult}")
    names, rows_of_adult = adult.read_bytes().split(b"\n", 1)
    with path.open("wb") as file:
        file.write(names + b"\n")
        for _ in range(_LARGE_BYTES // len(rows_of_adult)):
            file.write(rows_of_adult)
    return paths
