"""Rows drawn from models of Adult, to a CSV file, in turns with the limits."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.quality.tables import load_table
from benchmarks.running_service import cpu_seconds, running_service
from benchmarks.speed.limits import ROWS_AT_ONCE, products_step, writer_seconds
from benchmarks.speed.measures import Measure, Options, cpu_seconds_of
from gcvae import Synthesizer
from gcvae.files.table_stream import stream_table
from gcvae_client import Client

PRESETS = ("default", "fast")
_LIMIT_BLOCKS = 4


def measure(options: Options) -> Iterator[Measure]:
    """CPU seconds of a million rows: the products, the fastest writer, and all that we do."""
    for preset in PRESETS:
        yield from _measure(fitted(preset, options), preset, options)
        yield from _doors(preset, options)


def fitted(preset: str, options: Options) -> Synthesizer:
    """A model of Adult, of the scratch folder if it is there."""
    path = options.scratch / f"adult-{preset}.gcvae"
    if not path.exists():
        table = load_table("adult", options.data).train
        fresh = Synthesizer.fit(
            table, preset=preset, settings=options.settings, seed=0, device="cpu"
        )
        fresh.save(path)
    return Synthesizer.load(path)


def to_csv(synthesizer: Synthesizer, rows: int, options: Options) -> None:
    """Draws rows into a file of the scratch folder, as `gcvae sample` does."""
    blocks = synthesizer.sample_blocks(rows, seed=1)
    with (options.scratch / "drawn.csv").open("wb") as file:
        file.writelines(stream_table(blocks, synthesizer.schema, "csv"))


def _measure(synthesizer: Synthesizer, preset: str, options: Options) -> Iterator[Measure]:
    drawn = synthesizer.sample(options.rows, seed=2)
    products = {
        "matrix products": products_step(synthesizer.model),
        "oneDNN's products": products_step(synthesizer.model, by_onednn=True),
    }
    found: dict[str, list[float]] = {what: [] for what in (*products, "fastest writer", "gcvae")}
    for _ in range(options.repeats):
        for what, step in products.items():
            step()
            limit = cpu_seconds_of(lambda: [step() for _ in range(_LIMIT_BLOCKS)])  # noqa: B023
            found[what].append(limit / (_LIMIT_BLOCKS * ROWS_AT_ONCE))
        found["fastest writer"].append(writer_seconds(drawn) / options.rows)
        seconds = cpu_seconds_of(lambda: to_csv(synthesizer, options.rows, options))
        found["gcvae"].append(seconds / options.rows)
    for what, values in found.items():
        yield Measure(f"sample {preset}", what, "s", tuple(1e6 * value for value in values))
    for rows in options.scale:
        seconds = cpu_seconds_of(lambda: to_csv(synthesizer, rows, options))  # noqa: B023
        yield Measure(f"scale {preset}", f"{rows}", "s", (1e6 * seconds / rows,))


def _doors(preset: str, options: Options) -> Iterator[Measure]:
    """The most rows of the scale by `gcvae sample` and through REST, starts of processes included.

    A service with one worker has drawn a row before; what asks it is not counted.
    """
    rows, model = max(options.scale), options.scratch / f"adult-{preset}.gcvae"
    drawn = options.scratch / "by-a-door.csv"
    drawn.unlink(missing_ok=True)
    command = ["gcvae_cli", "sample", str(model), "--rows", str(rows), "-o", str(drawn)]
    run = [sys.executable, "-m", *command]
    seconds = cpu_seconds_of(lambda: subprocess.run(run, check=True, capture_output=True))
    yield Measure(f"door {preset}", "`gcvae sample`", "s", (1e6 * seconds / rows,))
    with (
        tempfile.TemporaryDirectory(prefix="gcvae-doors-") as folder,
        running_service(Path(folder), "serve") as (url, process),
        Client(url) as client,
    ):
        imported = client.import_model(model)
        client.sample(imported, 1, format="csv")
        before = cpu_seconds(process)
        client.sample(imported, rows, format="csv", to=drawn)
        seconds = cpu_seconds(process) - before
    yield Measure(f"door {preset}", "REST", "s", (1e6 * seconds / rows,))
