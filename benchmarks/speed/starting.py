"""What starts take, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.running_service import cpu_seconds, running_service
from benchmarks.speed.measures import Measure, Options, cpu_seconds_of
from catalog.database.migrate import upgrade

API, API_WAIT = "gcvae api, until it answers", "the same by the clock"
_COMMANDS = {
    "an empty Python": ("-c", "pass"),
    "import gcvae": ("-c", "import gcvae"),
    "gcvae --help": ("-m", "gcvae_cli", "--help"),
}


def measure(options: Options) -> Iterator[Measure]:
    """CPU seconds of each command; of the API also how long one waits until it answers."""
    for what, command in _COMMANDS.items():

        def run(command: tuple[str, ...] = command) -> None:
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)

        run()  # so that its compiled files are there
        values = tuple(cpu_seconds_of(run) for _ in range(options.repeats))
        yield Measure("start", what, "s", values)
    waits, seconds = zip(*(_until_ready() for _ in range(1 + options.repeats)), strict=True)
    yield Measure("start", API, "s", seconds[1:])
    yield Measure("start", API_WAIT, "s", waits[1:])


def _until_ready() -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    with tempfile.TemporaryDirectory(prefix="gcvae-start-") as folder:
        upgrade(f"sqlite:///{folder}/catalog.sqlite")
        start = time.perf_counter()
        with running_service(Path(folder), pause=0.01) as (_, process):
            return time.perf_counter() - start, cpu_seconds(process)
