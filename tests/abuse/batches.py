"""Inputs of a subject, read in a process of their own that is watched: batch by batch.

Of each process the end is seen, its memory, and what it has left: files and open descriptors.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.abuse.findings import Findings
from tests.abuse.inputs import REFUSALS, SUBJECTS, Subject

INPUT_SECONDS = 30
"""Processor time of one input."""
MEMORY_BYTES = 1 << 30
"""What a process may take beyond what it begins with."""


def read_batch(name: str, number: int, n_inputs: int, kept: Path, findings: Findings) -> int:
    """Read so many inputs of a subject; returns the peak of memory, in bytes.

    Args:
        number: the seed of the batch.
        kept: folder of the inputs that found something.
    """
    context = multiprocessing.get_context("fork")
    pipe, theirs = context.Pipe()
    process = context.Process(target=_read, args=(theirs, name, number, n_inputs, kept))
    process.start()
    theirs.close()
    peak = 0
    try:
        if not pipe.poll(120 + n_inputs * INPUT_SECONDS / 10):
            findings.fail(f"{name}: stands still", batch=number)
            process.kill()
        else:
            found, peak = pipe.recv()
            _add(findings, found)
    except EOFError:
        process.join()
        findings.fail(f"{name}: the process ended with {process.exitcode}", batch=number)
    process.join()
    return peak


def _add(findings: Findings, found: Findings) -> None:
    for subject, counts in found.outcomes.items():
        findings.outcomes.setdefault(subject, type(counts)()).update(counts)
    for what, shown in found.failures.items():
        before = findings.failures.setdefault(what, {**shown, "n": 0})
        before["n"] += shown["n"]


def _read(pipe: Connection, name: str, number: int, n_inputs: int, kept: Path) -> None:
    findings = Findings()
    with tempfile.TemporaryDirectory(prefix="gcvae-fuzz-") as folder:
        tempfile.tempdir = folder
        _limit_memory()
        signal.signal(signal.SIGPROF, _out_of_time)
        watched = Watched(name, SUBJECTS[name], kept, findings)
        n_open = len(os.listdir("/proc/self/fd"))

        @seed(number)
        @settings(
            max_examples=n_inputs,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=[*HealthCheck],
        )
        @given(value=watched.subject.inputs())
        def read(value: Any) -> None:
            watched.read(value)

        read()
        if left := os.listdir(folder):
            findings.fail(f"{name}: files are left", files=left)
        if len(os.listdir("/proc/self/fd")) > n_open + 8:  # libraries open some once
            findings.fail(f"{name}: descriptors are left open")
        tempfile.tempdir = None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    pipe.send((findings, peak))


class Watched:
    """Reads inputs of a subject one by one, and notes how each ends."""

    def __init__(self, name: str, subject: Subject, kept: Path, findings: Findings) -> None:
        self._name = name
        self.subject = subject
        self._kept = kept
        self._findings = findings

    def read(self, value: Any) -> None:
        """Read one, in its time."""
        begun = time.process_time()
        outcome = "read"
        try:
            with _time_limit():
                self.subject.read(value)
        except REFUSALS as error:
            outcome = type(error).__name__
        except Exception as error:
            outcome = f"! {type(error).__name__}"
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            what = f"{self._name}: {type(error).__name__} at {where}"
            self._findings.fail(what, error=error, kept=self._keep(value, outcome))
        if time.process_time() - begun > INPUT_SECONDS / 3:
            self._findings.count(self._name, "over a third of its time")
        self._findings.count(self._name, outcome)

    def _keep(self, value: Any, outcome: str) -> str:
        self._kept.mkdir(parents=True, exist_ok=True)
        n_kept = sum(1 for _ in self._kept.glob(f"{self._name}-*"))
        path = self._kept / f"{self._name}-{n_kept}"
        if n_kept < 200:
            path.write_bytes(value if isinstance(value, bytes) else repr(value).encode())
        return str(path.name)


class OutOfTimeError(Exception):
    """An input takes too much processor time."""


def _out_of_time(_: int, __: FrameType | None) -> None:
    raise OutOfTimeError


@contextmanager
def _time_limit() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_PROF, INPUT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _limit_memory() -> None:
    *_, data, _ = Path("/proc/self/statm").read_text().split()
    most = int(data) * os.sysconf("SC_PAGE_SIZE") + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
