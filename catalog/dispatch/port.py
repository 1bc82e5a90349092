"""Interface for notifying workers of queued jobs.

A message says that a queue contains work, and for which job it was sent. The worker takes the next
job according to the database (`Leases.claim_next`), so order, loss and duplication of messages do
not matter.
"""

from __future__ import annotations

import logging
from typing import Protocol

from catalog.errors import DispatchError
from catalog.records import Job

_log = logging.getLogger(__name__)


class Dispatcher(Protocol):
    """Interface of an object that notifies workers of queued jobs.

    A message that was sent without an exception is delivered at least once, unless the broker loses
    it.
    """

    def send(self, job: Job) -> None:
        """Notifies a worker that the job's queue contains work.

        Raises:
            DispatchError: The broker did not accept the message.
        """

    def ping(self) -> None:
        """Checks that the message broker responds.

        Raises:
            DispatchError: The broker does not respond.
        """


def send_soon(dispatcher: Dispatcher, job: Job) -> None:
    """Notifies workers of a job now; if the broker fails, the reconciler sends the message later.

    One message wakes one worker, so a job in shards sends a message for each shard.
    """
    event = {"job": job.id}
    try:
        for _ in range(max(1, job.n_shards)):
            dispatcher.send(job)
        _log.info("job sent", extra=event)
    except DispatchError as error:
        _log.warning("job not sent, the reconciler will do it: %s", error, extra=event)
