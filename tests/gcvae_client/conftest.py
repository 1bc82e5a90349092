"""A service to talk to, with limits so low that samples and scores become jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from gcvae_client import Client
from tests.running_service import Running, running, settings_in, train

TABLE = b"size,colour\n" + b"".join(
    b"%d.%d,%s\n" % (i % 23, i % 10, [b"red", b"green", b"blue"][i % 3]) for i in range(60)
)


@pytest.fixture(scope="session")
def table() -> bytes:
    """A small CSV table."""
    return TABLE


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One service for all tests of the client."""
    limits = {"max_inline_sample_rows": 100, "max_inline_score_rows": 60}
    with running(settings_in(tmp_path_factory.mktemp("service"), **limits)) as service:
        yield service


@pytest.fixture
def client(service: Running) -> Iterator[Client]:
    """A client of that service."""
    with Client(service.url) as client:
        yield client


@pytest.fixture(scope="session")
def model(service: Running) -> dict[str, Any]:
    """A ready model."""
    return train(service, TABLE)
