"""Webhooks of a workspace and the log of their deliveries."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence

from sqlalchemy import select

from catalog.database.clock import database_clock
from catalog.database.tables import DeliveryRow, WebhookRow
from catalog.errors import ConflictError, NotFoundError
from catalog.pages import Page, read_page
from catalog.records import Delivery, EventType, Webhook
from catalog.registered import RegisteredRecords
from catalog.rows import write_row
from catalog.webhooks.events import delivery_row

_SECRET_BYTES = 32


class Webhooks(RegisteredRecords[WebhookRow, Webhook]):
    """Creates, lists and deletes the webhooks of one workspace, with their deliveries."""

    _row, _record, _prefix, _most = WebhookRow, Webhook, "whk", 20

    def create(self, url: str, events: Sequence[EventType]) -> tuple[Webhook, str]:
        """Creates a webhook and returns (its record, the secret that signs its deliveries).

        Raises:
            ConflictError: The workspace has the maximum number of webhooks already, or one with
                this URL.
        """
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        with self._database.writing() as session:
            self._require_room(session)
            if (known := session.scalar(self._ours().where(WebhookRow.url == url))) is not None:
                raise ConflictError(f"webhook {known.id} has this URL already")
            row = WebhookRow(
                id=self.new_id(),
                workspace=self._workspace,
                url=url,
                secret=secret,
                events=sorted({event.value for event in events}),
                created_at=database_clock(),
            )
            return write_row(session, row, Webhook), secret

    def deliveries(self, webhook_id: str, *, limit: int, cursor: str | None) -> Page[Delivery]:
        """Returns a page of a webhook's deliveries, the newest first.

        Raises:
            NotFoundError: The workspace has no such webhook.
            CursorError: The cursor is invalid.
        """
        query = select(DeliveryRow).where(DeliveryRow.webhook_id == webhook_id)
        with self._database.reading() as session:
            self._find(session, webhook_id)
            return read_page(session, query, DeliveryRow, Delivery, limit, cursor)

    def ping(self, webhook_id: str) -> Delivery:
        """Queues an event of type `ping` for a webhook and returns its delivery.

        Raises:
            NotFoundError: The workspace has no such webhook.
        """
        with self._database.writing() as session:
            webhook = self._find(session, webhook_id)
            row = delivery_row(webhook, EventType.PING, webhook_id, {})
            return write_row(session, row, Delivery)

    def retry(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Queues a delivery again, whatever its result, and returns it.

        Raises:
            NotFoundError: The workspace has no such webhook, or the webhook no such delivery.
        """
        with self._database.writing() as session:
            self._find(session, webhook_id)
            query = select(DeliveryRow).where(
                DeliveryRow.webhook_id == webhook_id, DeliveryRow.id == delivery_id
            )
            row = session.scalar(query.with_for_update())
            if row is None:
                raise NotFoundError("delivery", delivery_id)
            row.attempts, row.delivered_at, row.next_attempt_at = 0, None, database_clock()
            return write_row(session, row, Delivery)
