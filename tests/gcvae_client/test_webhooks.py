"""Webhooks by the client."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gcvae_client import AsyncClient, Client, InvalidError, NotFoundError
from tests.running_service import Running, running, settings_in
from tests.servers.webhook_receiver import receiver


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Running]:
    """A service that may reach this machine."""
    outside = {"outside_hosts": ("127.0.0.1",), "outside_networks": ("127.0.0.0/8",)}
    with running(settings_in(tmp_path, **outside)) as found:
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
        assert client.retry_delivery(delivery)["delivered_at"] is None
        client.delete(webhook)
        with pytest.raises(NotFoundError):
            client.ping_webhook(webhook["id"])
        with pytest.raises(ValueError, match="is the id of a webhook; that of a model is needed"):
            client.sample(webhook, 1)


def test_a_host_that_is_not_allowed_is_an_invalid_url(service: Running) -> None:
    with Client(service.url) as client, pytest.raises(InvalidError) as caught:
        client.create_webhook("https://example.com/hook")
    assert caught.value.errors[0]["pointer"] == "/url"


def test_the_asynchronous_client_has_the_same_calls(service: Running) -> None:
    async def talk() -> None:
        async with AsyncClient(service.url) as client:
            made = await client.create_webhook("http://127.0.0.1:9/hook")
            assert [one["id"] async for one in client.webhooks()] == [made["id"]]
            delivery = await client.ping_webhook(made)
            assert [one["id"] async for one in client.deliveries(made)] == [delivery["id"]]
            assert (await client.retry_delivery(delivery))["id"] == delivery["id"]

    asyncio.run(talk())
