"""The service in a process of its own, and the processor time that it takes."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil

_START_SECONDS = 60.0


@contextmanager
def running_service(
    folder: Path, command: str = "api", pause: float = 0.1
) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Its address and its process, on the records of a folder.

    Args:
        folder: Where its data and its log are.
        command: `api` alone, or `serve` with a worker.
        pause: Seconds between two looks whether it answers.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    arguments = [command, "--port", port, "--data-dir", str(folder)]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "gcvae_cli", *arguments], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_for(url, process, pause)
        yield url, process
    finally:
        process.terminate()
        process.wait()


def cpu_seconds(process: subprocess.Popen[bytes]) -> float:
    """Of the process, of those that it started, and of those of them that ended."""
    first = psutil.Process(process.pid)
    return sum(sum(each.cpu_times()[:4]) for each in (first, *first.children(recursive=True)))


def _wait_for(url: str, process: subprocess.Popen[bytes], pause: float) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            httpx.get(f"{url}/readyz", timeout=5).raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(pause)
    raise RuntimeError("the service did not start")
