"""The folder of an attempt, and what is left of attempts that were killed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from catalog import Catalog, Claim, upgrade
from tests.catalog.conftest import add_dataset
from tests.claims import claim_job
from worker.processes.scratch import remove_scratch, scratch_folder

_SIZE_BYTES = 1 << 20


@pytest.fixture
def claims(tmp_path: Path) -> list[Claim]:
    """The claims of three attempts at a job."""
    url = f"sqlite:///{tmp_path}/catalog.sqlite"
    upgrade(url)
    catalog = Catalog(url)
    training = {"dataset_id": add_dataset(catalog).id, "name": "m", "training": {}}
    job_id = catalog.workspace("default").jobs.enqueue_training(**training)[1].id
    found = []
    for _ in range(3):
        claim = claim_job(catalog, job_id, "worker", -1)
        assert claim is not None
        found.append(claim)
    catalog.close()
    return found


def folders(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("gcvae-job*"))


def test_an_attempt_removes_what_killed_ones_left(
    claims: list[Claim], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    for attempt in (1, 2, 3):
        (tmp_path / f"gcvae-{claims[0].job_id}-{attempt}-killed").mkdir()
    with scratch_folder(claims[2]) as folder:
        assert folder.parent == tmp_path
        assert tempfile.gettempdir() == str(folder)
        assert folders(tmp_path) == sorted([folder.name, f"gcvae-{claims[0].job_id}-3-killed"])
    remove_scratch(claims[2])
    assert folders(tmp_path) == []


def test_a_full_disk_is_no_reason_to_work_and_to_look_elsewhere(
    claims: list[Claim], make_disk: Callable[[int], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = make_disk(_SIZE_BYTES)
    left = disk / f"gcvae-{claims[0].job_id}-1-killed"
    left.mkdir()
    (disk / "ballast").write_bytes(bytes(_SIZE_BYTES))
    monkeypatch.setenv("TMPDIR", str(disk))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert tempfile.gettempdir() != str(disk), "which is why it is not asked"
    with scratch_folder(claims[1]) as folder:
        assert folders(disk) == [folder.name]
        with pytest.raises(OSError, match="No space left"):
            (folder / "file").write_bytes(bytes(9))
    assert folders(disk) == []
