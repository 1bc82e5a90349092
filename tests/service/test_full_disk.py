"""The disk that uploads are held on is full, or may not be written to."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.running_service import Running, assert_problem

_SIZE_BYTES = 1 << 20


@pytest.fixture
def disk(make_disk: Callable[[int], Path]) -> Path:
    """A disk of one megabyte."""
    return make_disk(_SIZE_BYTES)


def test_an_upload_to_a_full_disk_is_refused_and_leaves_nothing(
    start: Callable[..., Running], disk: Path, cars: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = start()
    headers = {"Content-Type": "text/csv"}
    # The first table starts the server that processes are forked from; its folder is elsewhere.
    assert service.http.post("/v1/datasets", content=cars, headers=headers).status_code == 201
    before = service.traces()
    monkeypatch.setattr(tempfile, "tempdir", str(disk))
    (disk / "ballast").write_bytes(bytes(_SIZE_BYTES - 4096))
    table = cars + cars.partition(b"\n")[2] * 20
    bare = service.http.post("/v1/datasets", content=table, headers={"Content-Type": "text/csv"})
    assert_problem(bare, 503, "disk-full")
    assert int(bare.headers["Retry-After"]) > 0
    large = table + cars.partition(b"\n")[2] * 1000  # a form is held in memory up to a megabyte
    form = service.http.post("/v1/datasets", files={"file": ("cars.csv", large)})
    assert_problem(form, 503, "disk-full")
    assert service.traces() == before
    (disk / "ballast").unlink()
    assert service.http.post("/v1/datasets", content=table, headers=headers).status_code == 201
