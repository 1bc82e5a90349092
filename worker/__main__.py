"""Runs the worker group (all processes of a worker), configured by environment variables."""

from __future__ import annotations

import argparse
import os
import sys

from catalog.errors import CatalogError
from runtime.errors import RuntimeSetupError
from runtime.parentage import die_with_parent
from worker.errors import WorkerError
from worker.processes.group import run_worker
from worker.settings import read_settings


def main() -> int:
    """Runs the worker group until it is asked to stop; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m worker", description=__doc__)
    parser.add_argument(
        "--die-with-parent",
        nargs="?",
        type=int,
        const=os.getppid(),
        metavar="PID",
        help="end when the process that started this one does, in whatever way",
    )
    parent_pid = parser.parse_args().die_with_parent
    if parent_pid is not None:
        die_with_parent(parent_pid)
    try:
        return run_worker(read_settings())
    except (CatalogError, RuntimeSetupError, WorkerError) as error:
        print(f"gcvae: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
