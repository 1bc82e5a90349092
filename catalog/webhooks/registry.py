"""The webhooks of a workspace and the log of their deliveries."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence

from sqlalchemy import func, select

from catalog.database.clock import database_clock
from catalog.database.tables import DeliveryRow, WebhookRow
from catalog.errors import ConflictError, NotFoundError
from catalog.ids import new_id
from catalog.pages import Page, read_page
from catalog.records import Delivery, EventType, Webhook
from catalog.rows import WorkspaceRecords, copy_row, find_row, written
from catalog.webhooks.events import delivery_row

MOST_WEBHOOKS = 20
_SECRET_BYTES = 32


class Webhooks(WorkspaceRecords):
    """Creates, lists and deletes the webhooks of one workspace."""

    def create(self, url: str, events: Sequence[EventType]) -> tuple[Webhook, str]:
        """Creates a webhook and returns (its record, the secret that signs its deliveries).

        Raises:
            ConflictError: The workspace has `MOST_WEBHOOKS` webhooks already, or one with this URL.
        """
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        with self._database.writing() as session:
            ours = select(func.count()).where(WebhookRow.workspace == self._workspace)
            if session.scalars(ours).one() >= MOST_WEBHOOKS:
                raise ConflictError(f"the workspace has {MOST_WEBHOOKS} webhooks; delete one first")
            same = select(WebhookRow.id).where(
                WebhookRow.workspace == self._workspace, WebhookRow.url == url
            )
            if (known := session.scalar(same)) is not None:
                raise ConflictError(f"webhook {known} has this URL already")
            row = WebhookRow(
                id=new_id("whk"),
                workspace=self._workspace,
                url=url,
                secret=secret,
                events=sorted({event.value for event in events}),
                created_at=database_clock(),
            )
            return written(session, row, Webhook), secret

    def get(self, webhook_id: str) -> Webhook:
        """Returns a webhook.

        Raises:
            NotFoundError: The workspace has no such webhook.
        """
        with self._database.reading() as session:
            return copy_row(Webhook, find_row(session, WebhookRow, webhook_id, self._workspace))

    def list(self, *, limit: int, cursor: str | None) -> Page[Webhook]:
        """Returns a page of the workspace's webhooks, the newest first.

        Raises:
            CursorError: The cursor is invalid.
        """
        query = select(WebhookRow).where(WebhookRow.workspace == self._workspace)
        with self._database.reading() as session:
            return read_page(session, query, WebhookRow, Webhook, limit, cursor)

    def delete(self, webhook_id: str) -> None:
        """Deletes a webhook with its deliveries.

        Raises:
            NotFoundError: The workspace has no such webhook.
        """
        with self._database.writing() as session:
            session.delete(find_row(session, WebhookRow, webhook_id, self._workspace))

    def deliveries(self, webhook_id: str, *, limit: int, cursor: str | None) -> Page[Delivery]:
        """Returns a page of a webhook's deliveries, the newest first.

        Raises:
            NotFoundError: The workspace has no such webhook.
            CursorError: The cursor is invalid.
        """
        query = select(DeliveryRow).where(DeliveryRow.webhook_id == webhook_id)
        with self._database.reading() as session:
            find_row(session, WebhookRow, webhook_id, self._workspace)
            return read_page(session, query, DeliveryRow, Delivery, limit, cursor)

    def ping(self, webhook_id: str) -> Delivery:
        """Queues an event of type `ping` for a webhook and returns its delivery.

        Raises:
            NotFoundError: The workspace has no such webhook.
        """
        with self._database.writing() as session:
            webhook = find_row(session, WebhookRow, webhook_id, self._workspace)
            row = delivery_row(webhook, EventType.PING, webhook_id, {})
            return written(session, row, Delivery)

    def retry(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Queues a delivery again, whatever became of it, and returns it.

        Raises:
            NotFoundError: The workspace has no such webhook, or it no such delivery.
        """
        with self._database.writing() as session:
            find_row(session, WebhookRow, webhook_id, self._workspace)
            query = select(DeliveryRow).where(
                DeliveryRow.webhook_id == webhook_id, DeliveryRow.id == delivery_id
            )
            row = session.scalar(query.with_for_update())
            if row is None:
                raise NotFoundError("delivery", delivery_id)
            row.attempts, row.delivered_at, row.next_attempt_at = 0, None, database_clock()
            return written(session, row, Delivery)
