"""The dispatch port: how a job's id reaches a worker. The queue carries ids, nothing else."""

from __future__ import annotations

import logging
from typing import Protocol

from catalog.errors import DispatchError

_log = logging.getLogger(__name__)


class Dispatcher(Protocol):
    """Sends job ids to the workers: at least once where it succeeds, perhaps never."""

    def send(self, job_id: str) -> None:
        """Send the id.

        Raises:
            DispatchError: the broker did not take it.
        """

    def ping(self) -> None:
        """Ask the broker for an answer.

        Raises:
            DispatchError: it gives none.
        """


def send_soon(dispatcher: Dispatcher, job_id: str) -> None:
    """Send the id now, or leave it to the reconciler: the committed job is not lost."""
    job = {"job": job_id}
    try:
        dispatcher.send(job_id)
        _log.info("job sent", extra=job)
    except DispatchError as error:
        _log.warning("job not sent, the reconciler will do it: %s", error, extra=job)
