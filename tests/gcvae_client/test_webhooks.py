"""Webhooks by the client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcvae_client import Client, NotFoundError
from tests.running_service import OUTSIDE, Running, running, settings_in
from tests.servers.webhook_receiver import receiver


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """A service that may reach this machine."""
    with running(settings_in(tmp_path, webhook_interval_seconds=0.05, **OUTSIDE)) as found:
        yield found


def test_a_webhook_is_made_tested_and_deleted(service: Running) -> None:
    with receiver() as target, Client(service.url) as client:
        webhook = client.create_webhook(f"{target.url}/hook", ["report.ready"])
        assert webhook["secret"].startswith("whsec_")
        assert [one["id"] for one in client.webhooks()] == [webhook["id"]]
        client.ping_webhook(webhook)
        target.wait_for(1)
        until = time.monotonic() + 20
        while (delivery := next(client.deliveries(webhook)))["delivered_at"] is None:
            assert time.monotonic() < until
            time.sleep(0.02)
        assert client.retry_delivery(delivery)["delivered_at"] is None
        client.delete(webhook)
        with pytest.raises(NotFoundError):
            client.ping_webhook(webhook["id"])
        with pytest.raises(ValueError, match="is the id of a webhook; that of a model is needed"):
            client.sample(webhook, 1)
