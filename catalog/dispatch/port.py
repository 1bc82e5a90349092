"""Interface for notifying workers of work.

A message says that a queue has work, and for which job it was sent. The worker takes the next job
according to the records (`Leases.claim_next`), so order, loss and duplication of messages do not
matter.
"""

from __future__ import annotations

import logging
from typing import Protocol

from catalog.errors import DispatchError
from catalog.records import Job

_log = logging.getLogger(__name__)


class Dispatcher(Protocol):
    """Notifies workers, at least once on success; messages may be lost."""

    def send(self, job: Job) -> None:
        """Tells a worker that the job's queue has work.

        Raises:
            DispatchError: The broker did not accept the message.
        """

    def ping(self) -> None:
        """Checks that the broker responds.

        Raises:
            DispatchError: It does not.
        """


def send_soon(dispatcher: Dispatcher, job: Job) -> None:
    """Sends the message now; on failure the reconciler sends it later.

    One message wakes one worker, so each shard of a job sends one.
    """
    event = {"job": job.id}
    try:
        for _ in range(max(1, job.n_shards)):
            dispatcher.send(job)
        _log.info("job sent", extra=event)
    except DispatchError as error:
        _log.warning("job not sent, the reconciler will do it: %s", error, extra=event)
