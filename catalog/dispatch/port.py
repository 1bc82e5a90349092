"""The dispatch port: how workers learn that there is work.

A message says that a queue has work, and for which job it was sent. Whoever takes it takes the job
that is next by the records (`Leases.claim_next`), so that the order of messages, their loss and
their repetition decide nothing.
"""

from __future__ import annotations

import logging
from typing import Protocol

from catalog.errors import DispatchError
from catalog.records import Job

_log = logging.getLogger(__name__)


class Dispatcher(Protocol):
    """Wakes workers: at least once where it succeeds, perhaps never."""

    def send(self, job: Job) -> None:
        """Notify a worker that the job's queue has work.

        Raises:
            DispatchError: the broker did not take it.
        """

    def ping(self) -> None:
        """Ask the broker for an answer.

        Raises:
            DispatchError: it gives none.
        """


def send_soon(dispatcher: Dispatcher, job: Job) -> None:
    """Send now, or leave it to the reconciler: the committed job is not lost.

    One message wakes one worker, so each shard of a job sends one.
    """
    event = {"job": job.id}
    try:
        for _ in range(max(1, job.n_shards)):
            dispatcher.send(job)
        _log.info("job sent", extra=event)
    except DispatchError as error:
        _log.warning("job not sent, the reconciler will do it: %s", error, extra=event)
