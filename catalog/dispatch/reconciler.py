"""The reconciler: what is due is sent again, what is hopeless is closed.

It makes the queue expendable: with every message lost, each queued job is sent again, and each
running job whose worker died is sent once its lease has expired.
"""

from __future__ import annotations

import logging

from catalog.catalog import Catalog
from catalog.dispatch.port import Dispatcher
from catalog.errors import DispatchError
from catalog.records import Job

_log = logging.getLogger(__name__)

_IDEMPOTENCY_SECONDS = 24 * 3600.0


class Reconciler:
    """Brings queue and records together. Several may run at once."""

    def __init__(self, catalog: Catalog, dispatcher: Dispatcher) -> None:
        self._catalog = catalog
        self._dispatcher = dispatcher

    def start(self) -> None:
        """Send every queued job once, whatever was sent before the start."""
        self._catalog.leases.make_due()
        self.run_once()

    def run_once(self) -> None:
        """Close what is hopeless and send what is due."""
        for job_id in self._catalog.leases.close_abandoned():
            _log.warning("job was abandoned and is closed", extra={"job": job_id})
        for job in self._catalog.leases.take_due():
            self._send(job)

    def forget_old_keys(self) -> None:
        """Forget idempotency keys that are more than a day old."""
        self._catalog.retention.forget_answers_older_than(_IDEMPOTENCY_SECONDS)

    def _send(self, job: Job) -> None:
        event = {"job": job.id}
        try:
            self._dispatcher.send(job)
            _log.info("job sent", extra=event)
        except DispatchError as error:
            _log.warning("job not sent, it is due again later: %s", error, extra=event)
