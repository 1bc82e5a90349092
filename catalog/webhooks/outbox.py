"""Due deliveries of webhooks in all workspaces.

A delivery is due at its time `next_attempt_at`. When a process takes a delivery, it sets this time
to the end of the attempt's time limit, so the delivery is due again if the process dies. The time
is None once the delivery has succeeded or was given up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Select, delete, exists, select
from sqlalchemy.orm import Session, aliased

from catalog.database.clock import database_clock
from catalog.database.tables import DeliveryRow, KeyRow, WebhookRow
from catalog.records import Delivery
from catalog.rows import Records, copy_row
from catalog.webhooks.events import announce_expiry

MOST_ATTEMPTS = 20
_FIRST_PAUSE_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 4 * 3600.0
_EXPIRY_SECONDS = 7 * 24 * 3600.0
_KEPT_SECONDS = 30 * 24 * 3600.0
_IS_DUE = DeliveryRow.next_attempt_at <= database_clock()


@dataclass(frozen=True)
class DueDelivery:
    """A delivery to attempt, with the URL and secret of its webhook."""

    delivery: Delivery
    url: str
    secret: str


class Outbox(Records):
    """Assigns due deliveries to processes and records their results."""

    def take(
        self, seconds: float, at_once: int, open_attempts: Mapping[str, int]
    ) -> list[DueDelivery]:
        """Begins attempts at the oldest due deliveries of each webhook, and returns the deliveries.

        Args:
            seconds: Time after which an attempt without a result counts as failed.
            at_once: Maximum number of attempts at one webhook that this process makes at a time.
            open_attempts: Number of attempts of this process that have not ended, by webhook id.
        """
        if not self._any(select(DeliveryRow.number).where(_IS_DUE)):
            return []
        with self._database.writing() as session:
            found = []
            webhooks = select(DeliveryRow.webhook_id).where(_IS_DUE).distinct()
            for webhook_id in session.scalars(webhooks).all():
                free = at_once - open_attempts.get(webhook_id, 0)
                rows = session.scalars(_due(webhook_id).limit(max(free, 0))).all()
                webhook = session.get_one(WebhookRow, webhook_id) if rows else None
                for row in rows:
                    row.attempts += 1
                    row.next_attempt_at = database_clock(seconds)
                    session.flush()
                    session.refresh(row)
                    assert webhook is not None
                    found.append(DueDelivery(copy_row(Delivery, row), webhook.url, webhook.secret))
            return found

    def delivered(self, delivery_id: str, status_code: int) -> None:
        """Records that the receiver has accepted a delivery."""
        with self._database.writing() as session:
            row = _find(session, delivery_id)
            if row is not None:  # its webhook may have been deleted
                row.status_code, row.error = status_code, None
                row.delivered_at, row.next_attempt_at = database_clock(), None

    def failed(self, delivery_id: str, attempt: int, status_code: int | None, error: str) -> None:
        """Records a failed attempt; the next one follows after a pause that doubles each time.

        The delivery is given up after `MOST_ATTEMPTS` attempts, which take at least 28 hours.

        Args:
            attempt: Number of the attempt. Nothing is recorded if a later attempt has begun.
            status_code: Status of the response; None if there was none.
        """
        with self._database.writing() as session:
            row = _find(session, delivery_id)
            if row is None or row.attempts != attempt or row.delivered_at is not None:
                return
            row.status_code, row.error = status_code, error
            pause = min(_FIRST_PAUSE_SECONDS * 2.0 ** (attempt - 1), _LONGEST_PAUSE_SECONDS)
            row.next_attempt_at = None if attempt >= MOST_ATTEMPTS else database_clock(pause)

    def announce_expiring_keys(self) -> None:
        """Writes an event for each API key that expires within a week, unless it was written."""
        soon = select(KeyRow).where(
            KeyRow.revoked_at.is_(None),
            KeyRow.expires_at > database_clock(),
            KeyRow.expires_at <= database_clock(_EXPIRY_SECONDS),
        )
        with self._database.writing() as session:
            for row in session.scalars(soon.with_for_update()).all():
                announce_expiry(session, row)

    def forget(self) -> None:
        """Deletes ended deliveries of events that are more than 30 days old."""
        old = DeliveryRow.created_at < database_clock(-_KEPT_SECONDS)
        with self._database.writing() as session:
            session.execute(delete(DeliveryRow).where(old, DeliveryRow.next_attempt_at.is_(None)))


def _find(session: Session, delivery_id: str) -> DeliveryRow | None:
    query = select(DeliveryRow).where(DeliveryRow.id == delivery_id)
    return session.scalar(query.with_for_update())


def _due(webhook_id: str) -> Select[DeliveryRow]:
    """Returns the query for a webhook's due deliveries, without rows that are locked.

    To keep the order of deliveries about one subject, such as a job, a delivery is omitted while an
    earlier one has neither succeeded nor been given up.
    """
    earlier = aliased(DeliveryRow)
    is_behind = exists().where(
        earlier.webhook_id == DeliveryRow.webhook_id,
        earlier.subject == DeliveryRow.subject,
        earlier.number < DeliveryRow.number,
        earlier.next_attempt_at.is_not(None),
    )
    return (
        select(DeliveryRow)
        .where(
            DeliveryRow.webhook_id == webhook_id,
            _IS_DUE,
            ~is_behind,
        )
        .order_by(DeliveryRow.next_attempt_at, DeliveryRow.number)
        .with_for_update(skip_locked=True, of=DeliveryRow)
    )
