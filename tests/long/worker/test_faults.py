"""Deaths, freezes and losses in the middle of training: the job ends as if nothing had been."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from catalog import Job, JobStatus

TRAINING = {"steps": 40, "step_seconds": 0.05}


@pytest.fixture(scope="module")
def undisturbed(shared: Any) -> bytes:
    """The weights that training has to end with, whatever happens in between."""
    job = shared.finished(shared.train(steps=40, step_seconds=0.0))
    return bytes(shared.artifact(job))


def _family(pid: int) -> list[psutil.Process]:
    process = psutil.Process(pid)
    return [process, *process.children(recursive=True)]


def _signal(processes: list[psutil.Process], number: int) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


def _is_dead(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def _child(child: psutil.Process) -> psutil.Process:
    return child


def _fork_server(child: psutil.Process) -> psutil.Process:
    return child.parent()


def _celery_process(child: psutil.Process) -> psutil.Process:
    return child.parent().parent()


def _checkpoint_of_attempt(system: Any, job: Job, attempt: int) -> str | None:
    key = system.job(job).checkpoint_key
    return key if key is not None and f"/attempts/{attempt}/" in key else None


def test_training_goes_on_after_every_kind_of_kill(
    system: Any, undisturbed: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # of this worker alone
    system.start_worker()
    job = system.train(**TRAINING)
    for number, victim in enumerate((_child, _celery_process, _fork_server), start=1):
        checkpoint = system.wait(lambda n=number: _checkpoint_of_attempt(system, job, n))
        child = system.child(job)
        victim(child).kill()
        system.wait(lambda c=child: _is_dead(c))
        assert system.job(job).checkpoint_key >= checkpoint
    done = system.finished(job)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 4)
    assert system.artifact(job) == undisturbed
    assert system.orphans() == []
    assert list(tmp_path.glob("gcvae-process-*")) == []


def test_the_fraction_of_a_job_does_not_fall_when_it_is_done_again(system: Any) -> None:
    """With a checkpoint or without: what is left of it is shared out over the next attempt."""
    system.start_worker()
    job = system.train(**TRAINING)
    told: list[float] = []

    def fraction() -> float:
        seen = system.job(job)
        told.append(seen.progress.get("fraction", 0.0))
        assert (told[-1] == 1.0) == (seen.status is JobStatus.SUCCEEDED)
        return told[-1]

    system.wait(lambda: fraction() > 0.2)
    child = system.child(job)
    child.kill()
    system.wait(lambda: fraction() is not None and system.job(job).attempt == 2)
    system.wait(lambda: fraction() and system.job(job).status.is_final)
    assert told == sorted(told)
    assert fraction() == 1.0


_PARENT = """
import subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-m", "worker", "--die-with-parent"])
print(worker.pid, flush=True)
time.sleep(600)
"""


def test_after_the_death_of_everything_new_workers_go_on_with_an_empty_queue(
    system: Any, undisturbed: bytes
) -> None:
    with (system.folder / "worker.log").open("ab") as log:
        parent = subprocess.Popen(
            [sys.executable, "-c", _PARENT],
            cwd=system.folder,
            env=system.environment,
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        assert parent.stdout is not None
        worker_pid = int(parent.stdout.readline())
        job = system.train(**TRAINING)
        waiting = [system.train(steps=1, step_seconds=0.0) for _ in range(2)]
        system.with_checkpoint(job)
        processes = _family(worker_pid)
        assert len(processes) == 4
    finally:
        parent.kill()
        parent.communicate()
    system.wait(lambda: all(_is_dead(process) for process in processes))
    system.wipe_queue()
    for _ in range(2):
        system.start_worker()
    done = [system.finished(other) for other in (job, *waiting)]
    assert {(other.status, other.attempt > 2) for other in done} == {(JobStatus.SUCCEEDED, False)}
    assert system.artifact(job) == undisturbed
    assert system.orphans() == []


def _freeze_outside_a_transaction(processes: list[Any], system: Any) -> None:
    """Stop them at a moment when none of them holds SQLite's one write lock.

    A process that is frozen while it holds the lock keeps everybody from writing until it thaws:
    that is SQLite's, not the worker's. PostgreSQL ends such a session by its timeouts.
    """
    _signal(processes, signal.SIGSTOP)
    while not system.is_writable():
        _signal(processes, signal.SIGCONT)
        time.sleep(0.05)
        _signal(processes, signal.SIGSTOP)


def test_a_worker_that_was_frozen_past_its_lease_writes_nothing(
    system: Any, undisturbed: bytes
) -> None:
    frozen_worker = system.start_worker()
    job = system.train(**TRAINING)
    system.with_checkpoint(job)
    frozen = _family(frozen_worker.pid)
    _freeze_outside_a_transaction(frozen, system)
    system.start_worker()
    system.wait(lambda: system.job(job).attempt == 2)
    _signal(frozen, signal.SIGCONT)
    done = system.finished(job)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 2)
    assert system.artifact(job) == undisturbed
    system.wait(lambda: _is_dead(frozen[-1]))
    assert system.orphans() == []


def test_a_worker_that_is_told_to_stop_hands_its_job_back(system: Any, undisturbed: bytes) -> None:
    worker = system.start_worker()
    job = system.train(**TRAINING)
    system.with_checkpoint(job)
    processes = _family(worker.pid)
    worker.terminate()
    assert worker.wait(60) == 0
    assert all(_is_dead(process) for process in processes)
    assert system.job(job).status is JobStatus.QUEUED
    system.start_worker()
    assert system.finished(job).attempt == 2
    assert system.artifact(job) == undisturbed


def test_the_first_checkpoint_comes_soon(shared: Any) -> None:
    job = shared.train(steps=400, step_seconds=0.05)
    assert shared.with_checkpoint(job).progress["fraction"] < 0.5
    shared.catalog.workspace("default").jobs.request_cancel(job.id)
    shared.finished(job)


def test_a_worker_is_known_while_it_lives_and_not_after_it_ends_in_order(system: Any) -> None:
    worker = system.start_worker()
    found = system.wait(lambda: system.catalog.workers.list()[1])
    assert [one.slots for one in found] == [["CPU: train, compute"]]
    assert found[0].name.endswith(f"/{worker.pid}")
    worker.terminate()
    worker.wait(60)
    assert system.catalog.workers.list()[1] == []
