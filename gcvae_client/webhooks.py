"""Methods of the client for webhooks: URLs to which the service sends events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gcvae_client.bodies import present
from gcvae_client.errors import Document
from gcvae_client.resources import Resource, path_of
from gcvae_client.service import Service


class Webhooks(Service):
    """Base class of `Client` with the methods for webhooks, which need a key with the scope
    `admin`."""

    def create_webhook(self, url: str, events: Sequence[str] | None = None) -> Document:
        """Creates a webhook and returns it with its `secret`, which no other call returns.

        The service signs deliveries with the secret, by the Standard Webhooks specification.

        Args:
            url: URL to which events are sent; the operator of the service must have allowed the
                host.
            events: Types of the events: `job.ended`, `report.ready`, `key.expiring`, `run.ended`.
                Default: all.

        Raises:
            InvalidError: The URL is invalid, or its host is not allowed.
        """
        body = present(url=url, events=None if events is None else list(events))
        return self._json("POST", "/v1/webhooks", json=body)

    def webhooks(self) -> Iterator[Document]:
        """Yields all webhooks of the workspace, the newest first."""
        return self._items("/v1/webhooks")

    def ping_webhook(self, webhook: Resource) -> Document:
        """Sends an event of type `ping` to a webhook, to test it, and returns its delivery."""
        return self._json("POST", path_of("webhook", webhook, "/ping"))

    def deliveries(self, webhook: Resource) -> Iterator[Document]:
        """Yields a webhook's deliveries of the last 30 days, the newest first.

        `delivered_at` is None until the receiver has accepted the event; `next_attempt_at` is None
        if there is no further attempt.
        """
        return self._items(path_of("webhook", webhook, "/deliveries"))

    def retry_delivery(self, delivery: Document) -> Document:
        """Repeats a delivery, also one that was accepted or has no further attempt, and returns it.

        Args:
            delivery: A delivery, as returned by `deliveries`.
        """
        path = f"/v1/webhooks/{delivery['webhook_id']}/deliveries/{delivery['id']}/retry"
        return self._json("POST", path)
