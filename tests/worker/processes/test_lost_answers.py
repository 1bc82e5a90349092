"""The database goes away just when something is written: its answer is lost, or comes late."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from catalog import Claim, Job, JobStatus, Outcome
from catalog.jobs.leases import Leases
from models_store import Store, open_store
from runtime.processes import ForkServer
from tests.claims import claim_job
from worker.processes.supervisor import JOB_IMPORTS, new_owner, run_attempt
from worker.settings import JobSettings
from worker.work.checkpoints import JobCheckpoints

TRAINING = {"steps": 5, "step_seconds": 0.01}
_AWAY = OperationalError("", {}, Exception("the server closed the connection"))


class LosingLeases(Leases):
    """Leases on a database that goes away at the end of a job: `losses` of finishing are lost,
    before anything is written or after it.
    """

    def lose(self, losses: int, *, after_writing: bool) -> None:
        self._losses, self._after_writing = losses, after_writing

    def finish(self, claim: Claim, outcome: Outcome, progress: Any = None) -> None:
        self._losses -= 1
        if self._losses < 0 or self._after_writing:
            super().finish(claim, outcome, progress)
        if self._losses >= 0:
            raise _AWAY


def _run(system: Any, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in system.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(system.folder)  # from here the child would find this checkout's library
    settings = JobSettings(heartbeat_seconds=0.1)
    claim = claim_job(system.catalog, job.id, new_owner(), settings.lease_seconds)
    with closing(ForkServer(JOB_IMPORTS)) as server:
        run_attempt(claim, system.catalog, system.store, settings, threading.Event(), server)


@pytest.mark.slow
@pytest.mark.parametrize("after_writing", [False, True])
def test_an_outcome_is_written_once_and_its_bytes_stay_whatever_answer_is_lost(
    system: Any, monkeypatch: pytest.MonkeyPatch, after_writing: bool
) -> None:
    leases = LosingLeases(system.catalog.database, 3, 0.2, 2.0)
    leases.lose(2, after_writing=after_writing)
    monkeypatch.setattr(system.catalog, "leases", leases)
    job = system.train(**TRAINING, send=False)
    _run(system, job, monkeypatch)
    done = system.job(job)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 1)
    assert len(system.artifact(job)) == 64
    assert system.orphans() == []


def test_training_goes_on_without_a_checkpoint_while_the_store_is_away(
    system: Any, tmp_path: Path
) -> None:
    job = system.train(**TRAINING, send=False)
    claim = claim_job(system.catalog, job.id, "worker", 10)
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    away: Store = open_store(f"file://{tmp_path}/other")
    os.rmdir(tmp_path / "other")
    blocked.rename(tmp_path / "other")
    checkpoints = JobCheckpoints(system.catalog, away, claim, JobSettings())
    checkpoints.save(b"first")
    assert system.job(job).checkpoint_key is None
    (tmp_path / "other").unlink()
    checkpoints.save(b"second")
    assert system.job(job).checkpoint_key is not None
    system.catalog.leases.hand_back(claim)
    claim = claim_job(system.catalog, job.id, "worker", 10)
    assert JobCheckpoints(system.catalog, away, claim, JobSettings()).load() == b"second"
