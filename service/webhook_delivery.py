"""Delivers events to webhooks, signed by the Standard Webhooks specification.

    signature = base64(HMAC-SHA256(secret, id + "." + timestamp + "." + body))

Each API process takes due deliveries from the outbox, the table of deliveries in the database. It
has at most four open attempts at one webhook, so that a slow receiver does not delay the others.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import time
from collections import Counter

import httpx
from sqlalchemy.exc import SQLAlchemyError

from catalog.records import Delivery
from catalog.webhooks.outbox import DueDelivery, Outbox
from service.errors import OutsideError
from service.outside import AllowedHosts

_AT_ONCE = 4
_STEPS = 4
"""Steps of an attempt, each with its own time limit: DNS lookup, connection, request, response."""
_UPKEEP_SECONDS = 60.0
_MOST_ERROR = 300

log = logging.getLogger("service")


class Deliverer:
    """Delivers the events of all workspaces to their webhooks when they are due.

    Args:
        timeout_seconds: A quarter of the time limit of an attempt. An attempt has four steps: DNS
            lookup, connection, request and response.
        interval_seconds: Time between two searches for due deliveries.
    """

    def __init__(
        self,
        outbox: Outbox,
        allowed_hosts: AllowedHosts,
        timeout_seconds: float,
        interval_seconds: float,
    ) -> None:
        self._outbox = outbox
        self._allowed_hosts = allowed_hosts
        self._interval_seconds = interval_seconds
        self._attempt_seconds = _STEPS * timeout_seconds
        self._open: Counter[str] = Counter()
        self._attempts: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Delivers events until cancelled; continues if the database does not respond."""
        upkeep_at = 0.0
        while True:
            try:
                if time.monotonic() >= upkeep_at:
                    upkeep_at = time.monotonic() + _UPKEEP_SECONDS
                    await asyncio.to_thread(self._outbox.announce_expiring_keys)
                    await asyncio.to_thread(self._outbox.forget)
                await self._take()
            except SQLAlchemyError:
                log.warning("the outbox of webhooks does not answer")
            await asyncio.sleep(self._interval_seconds)

    async def _take(self) -> None:
        due = await asyncio.to_thread(
            self._outbox.take,
            self._attempt_seconds + self._interval_seconds,
            _AT_ONCE,
            dict(self._open),
        )
        for found in due:
            self._open[found.delivery.webhook_id] += 1
            attempt = asyncio.create_task(self._attempt(found))
            self._attempts.add(attempt)
            attempt.add_done_callback(self._attempts.discard)

    async def _attempt(self, due: DueDelivery) -> None:
        """Attempts a delivery. If its result cannot be recorded, it is attempted again later."""
        delivery = due.delivery
        try:
            status, error = await self._send(due)
            if error is None and status is not None:
                await asyncio.to_thread(self._outbox.delivered, delivery.id, status)
            else:
                await asyncio.to_thread(
                    self._outbox.failed, delivery.id, delivery.attempts, status, str(error)
                )
        except SQLAlchemyError:
            log.warning("the result of a delivery is not recorded", extra={"event": delivery.id})
        finally:
            self._open[delivery.webhook_id] -= 1

    async def _send(self, due: DueDelivery) -> tuple[int | None, str | None]:
        """Returns (status of the response or None without one, error message). The message is None
        if the receiver has accepted the event by a 2xx status."""
        body = event_body(due.delivery)
        headers = signed_headers(due.delivery.id, int(time.time()), body, due.secret)
        try:
            async with asyncio.timeout(self._attempt_seconds):  # also if single bytes arrive slowly
                status = await self._allowed_hosts.post(due.url, body, headers)
        except OutsideError as error:
            return None, str(error)[:_MOST_ERROR]
        except (TimeoutError, httpx.TimeoutException):
            return None, "the receiver did not answer in time"
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return None, f"no connection: {type(error).__name__}"
        return status, None if 200 <= status < 300 else f"the receiver answered {status}"


def event_body(delivery: Delivery) -> bytes:
    """Returns the JSON body of an event. It has the same bytes in each attempt."""
    event = {
        "id": delivery.id,
        "type": delivery.type.value,
        "timestamp": delivery.created_at.isoformat(timespec="milliseconds"),
        "data": delivery.about,
    }
    return json.dumps(event, ensure_ascii=False, sort_keys=True).encode()


def signed_headers(event_id: str, timestamp: int, body: bytes, secret: str) -> dict[str, str]:
    """Returns the headers of a signed event.

    Args:
        timestamp: Time of the attempt, in seconds since 1970.
        secret: Secret of the webhook: `whsec_` and the signing key in base64.
    """
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b".".join((event_id.encode(), str(timestamp).encode(), body))
    signature = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    return {
        "Content-Type": "application/json",
        "User-Agent": "gcvae",
        "webhook-id": event_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }
