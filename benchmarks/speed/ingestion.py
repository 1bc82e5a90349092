"""A CSV file read and its schema inferred, in turns with Arrow's bare reader."""

from __future__ import annotations

from collections.abc import Iterator

from pyarrow import csv

from benchmarks.scale import write_table
from benchmarks.speed.measures import Measure, Options, cpu_seconds_of
from gcvae import TableReader, infer_schema


def measure(options: Options) -> Iterator[Measure]:
    """MB per CPU second of a table of 20 columns (`benchmarks.scale`)."""
    path = options.scratch / "table.csv"
    write_table(path, options.rows)
    megabytes = path.stat().st_size / 1e6
    found: dict[str, list[float]] = {"Arrow's reader": [], "gcvae": []}
    bare = csv.ReadOptions(use_threads=False)
    for _ in range(options.repeats):
        seconds = cpu_seconds_of(lambda: csv.read_csv(path, bare))
        found["Arrow's reader"].append(megabytes / seconds)
        seconds = cpu_seconds_of(lambda: infer_schema(TableReader(path)))
        found["gcvae"].append(megabytes / seconds)
    for what, values in found.items():
        yield Measure("ingest", what, "MB/s", tuple(values))
