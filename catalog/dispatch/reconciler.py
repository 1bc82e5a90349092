"""Reconciler: sends lost messages again and closes jobs that cannot continue.

It sends a message again for each job that stays queued, and for each running job whose lease has
expired because its worker died. Messages may therefore be lost.
"""

from __future__ import annotations

import logging

from catalog.catalog import Catalog
from catalog.dispatch.celery import CeleryDispatcher, send_soon

_log = logging.getLogger(__name__)

_IDEMPOTENCY_SECONDS = 24 * 3600.0


class Reconciler:
    """Sends lost messages to workers again, and closes jobs that cannot continue.

    Several reconcilers may run at once.
    """

    def __init__(self, catalog: Catalog, dispatcher: CeleryDispatcher) -> None:
        self._catalog = catalog
        self._dispatcher = dispatcher

    def start(self) -> None:
        """Sends a message for every queued job, because the broker may have lost earlier ones."""
        self._catalog.leases.make_due()
        self.run_once()

    def run_once(self) -> None:
        """Sends all due messages, and closes abandoned jobs (see `Leases.close_abandoned`)."""
        for job_id in self._catalog.leases.close_abandoned():
            _log.warning("job was abandoned and is closed", extra={"job": job_id})
        for job in self._catalog.leases.take_due():
            send_soon(self._dispatcher, job)

    def forget_old_keys(self) -> None:
        """Deletes idempotency keys (marks of repeated requests) that are more than a day old."""
        self._catalog.retention.forget_answers_older_than(_IDEMPOTENCY_SECONDS)
