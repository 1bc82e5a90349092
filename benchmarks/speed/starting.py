"""What starts take, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.speed.measures import Measure, Options, cpu_seconds_of

_COMMANDS = {
    "an empty Python": ("-c", "pass"),
    "import gcvae": ("-c", "import gcvae"),
    "gcvae --help": ("-m", "gcvae_cli", "--help"),
}


def measure(options: Options) -> Iterator[Measure]:
    """CPU seconds of each command."""
    for what, command in _COMMANDS.items():

        def run(command: tuple[str, ...] = command) -> None:
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)

        run()  # so that its compiled files are there
        values = tuple(cpu_seconds_of(run) for _ in range(options.repeats))
        yield Measure("start", what, "s", values)
