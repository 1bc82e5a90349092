"""Writes events into the outbox, in the caller's transaction."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from catalog.database.clock import database_clock
from catalog.database.tables import DeliveryRow, JobRow, KeyRow, RunRow, ScheduleRow, WebhookRow
from catalog.ids import new_id
from catalog.records import Document, EventType, JobStatus


def announce_end(session: Session, row: JobRow) -> None:
    """Writes the event that a job has ended, and for a report the event that it is ready."""
    about: Document = {
        "job_id": row.id,
        "kind": row.kind.value,
        "status": row.status.value,
        "model_id": row.model_id,
        "dataset_id": row.dataset_id,
        "result_id": row.result_id,
        # Only the code, because the message may quote cells of the table.
        "error": None if row.error is None else row.error.get("code"),
    }
    announce(session, row.workspace, EventType.JOB_ENDED, row.id, about)
    if row.kind.spec.is_report and row.status is JobStatus.SUCCEEDED:
        announce(session, row.workspace, EventType.REPORT_READY, row.id, about)


def announce_expiry(session: Session, row: KeyRow) -> None:
    """Writes the event that an API key expires soon, for webhooks that have not received it."""
    assert row.expires_at is not None
    about: Document = {
        "key_id": row.id,
        "name": row.name,
        "expires_at": row.expires_at.isoformat(timespec="seconds"),
    }
    known = select(DeliveryRow.webhook_id).where(
        DeliveryRow.subject == row.id, DeliveryRow.type == EventType.KEY_EXPIRING
    )
    told = set(session.scalars(known))
    announce(session, row.workspace, EventType.KEY_EXPIRING, row.id, about, told)


def announce_run(session: Session, schedule: ScheduleRow, row: RunRow) -> None:
    """Writes the event of a run that has ended or was skipped."""
    about: Document = {
        "run_id": row.id,
        "schedule_id": schedule.id,
        "due_at": row.due_at.isoformat(timespec="seconds"),
        "status": row.status.value,
        "missed": row.missed,
        "dataset_id": row.dataset_id,
        "model_id": row.model_id,
        "sample_id": row.sample_id,
        # Without the message, which may quote cells; `differences` contains column names and types.
        "error": None if row.error is None else row.error["code"],
        "differences": [] if row.error is None else row.error.get("differences", []),
    }
    announce(session, schedule.workspace, EventType.RUN_ENDED, schedule.id, about)


def announce(
    session: Session,
    workspace: str,
    event: EventType,
    subject: str,
    about: Document,
    except_for: set[str] | None = None,
) -> None:
    """Writes an event for each webhook of the workspace that is registered for this type.

    Args:
        subject: Id of the job, key, schedule or webhook that the event is about; deliveries with
            the same subject are made in order.
        about: Content of the event, as a JSON object.
        except_for: Ids of webhooks that do not get the event; None for none.
    """
    webhooks = select(WebhookRow).where(WebhookRow.workspace == workspace)
    for webhook in session.scalars(webhooks).all():
        if event in webhook.events and webhook.id not in (except_for or ()):
            session.add(delivery_row(webhook, event, subject, about))


def delivery_row(
    webhook: WebhookRow, event: EventType, subject: str, about: Document
) -> DeliveryRow:
    """Returns the database row of a new delivery, which is due at once."""
    return DeliveryRow(
        id=new_id("evt"),
        webhook_id=webhook.id,
        type=event,
        subject=subject,
        about=about,
        attempts=0,
        next_attempt_at=database_clock(),
        created_at=database_clock(),
    )
