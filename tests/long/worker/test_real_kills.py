"""Training with the real library that is killed in between."""

from __future__ import annotations

import time
from random import Random
from typing import Any

import pytest

from catalog import JobStatus
from tests.long.worker.test_real_library import _has_checkpoint_of, _train

LONG_ENOUGH = {"max_steps": 3000}
"""For five kills, each after a checkpoint."""


@pytest.mark.slow
def test_training_killed_five_times_ends_with_the_weights_of_an_undisturbed_run(
    real_system: Any,
) -> None:
    from gcvae import Synthesizer

    random = Random(5)
    undisturbed = real_system.finished(_train(real_system, **LONG_ENOUGH), 300)
    job = _train(real_system, **LONG_ENOUGH)
    for attempt in range(1, 6):
        real_system.wait(lambda n=attempt: _has_checkpoint_of(real_system.job(job), n), 120)
        time.sleep(random.uniform(0.0, 0.4))
        real_system.child(job).kill()
    done = real_system.finished(job, 300)
    assert (done.status, done.attempt) == (JobStatus.SUCCEEDED, 6)
    resumed = Synthesizer.from_bytes(real_system.artifact(job)).model.state_dict()
    expected = Synthesizer.from_bytes(real_system.artifact(undisturbed)).model.state_dict()
    assert resumed.keys() == expected.keys()
    assert all(resumed[name].equal(expected[name]) for name in expected)
    assert "training resumes" in (real_system.folder / "worker.log").read_text()


def test_a_worker_leaves_nothing_in_the_temporary_folder_even_when_it_is_killed(
    own_real_system: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = own_real_system
    temporary = system.folder / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    system.start_worker()
    assert system.finished(_train(system, max_steps=100)).status is JobStatus.SUCCEEDED
    system.wait(lambda: not list(temporary.glob("gcvae-*")))
    system.stop_workers()  # by SIGKILL
    assert list(temporary.iterdir()) == []
