"""A shared service, a service of one's own, and a trained model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.running_service import Running, running, settings_in, train

CARS = b"mpg,cylinders,fuel,sold\n" + b"".join(
    b"%d.%d,%d,%s,%s\n" % (15 + i % 17, i % 10, 4 + 2 * (i % 3), fuel, [b"yes", b"no"][i % 2])
    for i, fuel in enumerate([b"petrol", b"diesel", b"?", b"petrol"] * 25)
)


@pytest.fixture(scope="session")
def cars() -> bytes:
    """A CSV table of 100 rows: a real column, an ordinal, a categorical with blanks, a boolean."""
    return CARS


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for all tests that can share it."""
    folder = tmp_path_factory.mktemp("service")
    limits = {
        "max_inline_sample_rows": 5000,
        "max_inline_score_rows": 100,
        "sample_shard_rows": 8192,
    }
    with running(settings_in(folder, **limits)) as service:
        yield service


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start a service of one's own, with settings of one's own."""
    with ExitStack() as stack:
        yield lambda **given: stack.enter_context(running(settings_in(tmp_path, **given)))


@pytest.fixture(scope="session")
def model(service: Running, cars: bytes) -> dict[str, Any]:
    """A ready model of the shared service."""
    return train(service, cars)


@pytest.fixture
def dataset_id(service: Running, cars: bytes) -> str:
    """A dataset of the shared service."""
    headers = {"Content-Type": "text/csv"}
    return str(service.http.post("/v1/datasets", content=cars, headers=headers).json()["id"])
