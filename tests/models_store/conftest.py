"""An S3 of our own: moto's server on a free loopback port."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.servers import S3Server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server that has a bucket `bucket`."""
    with S3Server() as server:
        yield server
