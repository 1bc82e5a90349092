"""The webhooks of a workspace and the log of their deliveries."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.engine import Database
from catalog.database.tables import DeliveryRow, WebhookRow
from catalog.errors import ConflictError, NotFoundError
from catalog.ids import new_id
from catalog.pages import Page, copy_row, read_page
from catalog.records import Delivery, EventType, Webhook
from catalog.webhooks.events import delivery_row

MOST_WEBHOOKS = 20
_SECRET_BYTES = 32


class Webhooks:
    """Creates, lists and deletes the webhooks of one workspace."""

    def __init__(self, database: Database, workspace: str) -> None:
        self._database = database
        self._workspace = workspace

    def create(self, url: str, events: Sequence[EventType]) -> tuple[Webhook, str]:
        """Creates a webhook and returns (its record, the secret that signs its deliveries).

        Raises:
            ConflictError: The workspace has `MOST_WEBHOOKS` webhooks already.
        """
        secret = "whsec_" + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()
        with self._database.writing() as session:
            ours = select(func.count()).where(WebhookRow.workspace == self._workspace)
            if session.scalars(ours).one() >= MOST_WEBHOOKS:
                raise ConflictError(f"the workspace has {MOST_WEBHOOKS} webhooks; delete one first")
            row = WebhookRow(
                id=new_id("whk"),
                workspace=self._workspace,
                url=url,
                secret=secret,
                events=sorted({event.value for event in events}),
                created_at=database_clock(),
            )
            session.add(row)
            session.flush()
            session.refresh(row)
            return copy_row(Webhook, row), secret

    def get(self, webhook_id: str) -> Webhook:
        """Returns a webhook.

        Raises:
            NotFoundError: The workspace has no such webhook.
        """
        with self._database.reading() as session:
            return copy_row(Webhook, self._find(session, webhook_id))

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
            session.delete(self._find(session, webhook_id))

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
            row = delivery_row(self._find(session, webhook_id), EventType.PING, webhook_id, {})
            session.add(row)
            return _written(session, row)

    def retry(self, webhook_id: str, delivery_id: str) -> Delivery:
        """Queues a delivery again, whatever became of it, and returns it.

        Raises:
            NotFoundError: The workspace has no such webhook, or it no such delivery.
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
            return _written(session, row)

    def _find(self, session: Session, webhook_id: str) -> WebhookRow:
        row = session.get(WebhookRow, webhook_id)
        if row is None or row.workspace != self._workspace:
            raise NotFoundError("webhook", webhook_id)
        return row


def _written(session: Session, row: DeliveryRow) -> Delivery:
    session.flush()
    session.refresh(row)
    return copy_row(Delivery, row)
