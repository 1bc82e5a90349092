"""Sends messages to workers with Celery, through Redis or a broker in a folder.

A message tells a worker to look for jobs in a queue. The worker then takes the next job according
to the database (`Leases.claim_next`), so order, loss and duplication of messages do not matter.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from celery import Celery
from kombu.connection import Connection
from kombu.exceptions import KombuError

from catalog.dispatch.filesystem_transport import Transport
from catalog.errors import DispatchError
from catalog.job_kinds import Queue
from catalog.records import Job
from runtime.settings import require_extra

RUN_JOBS = "gcvae.run_jobs"

_log = logging.getLogger(__name__)

_FOLDER_SCHEME = "filesystem://"
_POLLING_SECONDS = 0.1
_VISIBILITY_SECONDS = 3600
_RESTORE_SECONDS = 10
_SENDER_SECONDS = 0.7


def queue_name(queue: Queue) -> str:
    """Returns the name by which the message broker knows a queue."""
    return f"gcvae-{queue.value}"


def make_celery(broker_url: str, answer_seconds: float = _SENDER_SECONDS) -> Celery:
    """Returns a Celery application for the broker at `redis://…` or `filesystem:///FOLDER`.

    Celery's results, remote control and events are disabled: the database contains the state of
    jobs, and messages contain only their ids.

    Args:
        broker_url: URL of the broker.
        answer_seconds: Time limit of Redis responses. HTTP requests wait for them, so the default
            is short; workers send unsent messages later (`catalog.dispatch.reconciler`). Workers
            may use a longer time.

    Raises:
        MissingExtraError: The broker is Redis, and its client is not installed.
    """
    if broker_url.startswith("redis"):
        require_extra("broker_url", "redis", "the package redis", "redis")
    app = Celery("gcvae", set_as_current=False, fixups=[])
    app.conf.update(_broker_settings(broker_url, answer_seconds))
    app.conf.update(
        task_default_queue=queue_name(Queue.COMPUTE),
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_send_task_events=False,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,  # the broker may be unavailable for days
        task_serializer="json",
        accept_content=["json"],
        enable_utc=True,
    )
    return app


class CeleryDispatcher:
    """Notifies workers of queued jobs by Celery messages.

    A message may be delivered twice, or be lost by the broker; the reconciler then sends it again.
    """

    def __init__(self, app: Celery) -> None:
        self._app = app

    def send(self, job: Job) -> None:
        """Notifies a worker that the job's queue contains a waiting job.

        Raises:
            DispatchError: The broker did not accept the message.
        """
        try:
            self._app.send_task(
                RUN_JOBS,
                args=[job.id],
                queue=queue_name(job.queue),
                retry=False,
                ignore_result=True,
            )
        except self._troubles as error:
            raise DispatchError(f"the broker did not accept job {job.id}: {error}") from error

    def ping(self) -> None:
        """Checks that the message broker responds.

        Raises:
            DispatchError: The broker does not respond.
        """
        try:
            with self._app.connection_for_write() as connection:
                connection.default_channel.queue_declare(queue_name(Queue.COMPUTE))
        except self._troubles as error:
            raise DispatchError(f"the broker does not respond: {error}") from error

    @property
    def _troubles(self) -> tuple[type[Exception], ...]:
        """Exceptions that show that the broker is unavailable, full or read-only."""
        connection: Connection = self._app.connection_for_write()
        return (
            KombuError,
            OSError,
            *connection.recoverable_connection_errors,
            *connection.recoverable_channel_errors,
        )


def send_soon(dispatcher: CeleryDispatcher, job: Job, n_messages: int = 1) -> None:
    """Notifies workers of a job that waits in a queue.

    If the broker does not accept the messages, no exception is raised: workers look for unsent
    messages regularly and send them (`catalog.dispatch.reconciler`).

    Args:
        n_messages: Number of messages; each wakes one worker.
    """
    event = {"job": job.id}
    try:
        for _ in range(n_messages):
            dispatcher.send(job)
        _log.info("job sent", extra=event)
    except DispatchError as error:
        _log.warning("job not sent, the reconciler will do it: %s", error, extra=event)


def _broker_settings(broker_url: str, answer_seconds: float) -> dict[str, Any]:
    if broker_url.startswith(_FOLDER_SCHEME):
        folder = Path(broker_url.removeprefix(_FOLDER_SCHEME))
        options = {"folder": str(folder), "polling_interval": _POLLING_SECONDS}
        return {
            "broker_url": f"{_FOLDER_SCHEME}localhost",
            "broker_transport": Transport,
            "broker_transport_options": options,
        }
    # kombu restores unacknowledged messages only every interval × throttle seconds, by default
    # every 100 s.
    options = {
        "visibility_timeout": _VISIBILITY_SECONDS,
        "unacked_restore_interval": _RESTORE_SECONDS,
        "unacked_restore_throttle": 1,
        "socket_connect_timeout": answer_seconds,
        "socket_timeout": answer_seconds,
        # A request waits only briefly for an unavailable broker; the reconciler sends later.
        "max_retries": 1,
        "interval_start": 0.0,
        "interval_step": 0.2,
        "interval_max": 0.2,
    }
    return {"broker_url": broker_url, "broker_transport_options": options}
