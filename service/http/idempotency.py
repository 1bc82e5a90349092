"""Idempotency-Key header: a repeated request with the same key gets the first one's response."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Header, Request, Response
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from catalog.idempotency import KEEP_SECONDS, CreatedRecord, Idempotency
from catalog.workspace import Workspace
from service.bodies import ModelBody, ResultBody

BodyT = TypeVar("BodyT", bound=BaseModel)

REPLAYED = "Idempotent-Replayed"

log = logging.getLogger("service")

_AGAIN_SECONDS = 1.0
_TRIES = 30  # after 30 s the reservation of the key has expired

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="a repeated request with the same key gets the response of the first one",
    ),
]


@dataclass(frozen=True)
class Answer:
    """A response to a request, in a form that can be stored and sent again."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


async def respond_once(
    workspace: Workspace,
    key: str | None,
    fingerprint: str,
    make: Callable[[], Awaitable[BodyT]],
    find: Callable[[str], BodyT],
    status: int,
    location: Callable[[BodyT], str],
) -> Response:
    """Handles a request with an Idempotency-Key once: a repeated request gets the first response.

    If `make` fails, the key can be used again.

    Args:
        key: Idempotency-Key of the request; None if it has none, so that `make` is always called.
        fingerprint: Checksum of the request, to refuse a different request with the same key.
        make: Function that creates a resource and returns the response body.
        find: Function that returns the response body for the id of the created resource, used if
            the first request created it but its response was not stored.
        status: Status of the response.
        location: Function that returns the path in the header Location.

    Raises:
        IdempotencyMismatchError: The key was used for a different request.
        IdempotencyBusyError: The first request with this key is not finished.
    """

    def answer_of(made: BodyT) -> Answer:
        body = made.model_dump(mode="json", by_alias=True)
        return Answer(status, body, {"Location": location(made)})

    if key is None:
        return _response(answer_of(await make()))
    keys = workspace.idempotency
    before = await run_in_threadpool(keys.begin, key, fingerprint)
    if isinstance(before, CreatedRecord):
        return _response(answer_of(await run_in_threadpool(find, before.id)), replayed=True)
    if before is not None:
        return _response(Answer(**before), replayed=True)
    async with _reserved(keys, key):
        with keys.answering(key):
            answer = answer_of(await make())
    document = {"status": answer.status, "body": answer.body, "headers": answer.headers}
    # The resource exists even if the database cannot record the response now.
    await _record_or_retry(partial(keys.complete, response=document), key)
    return _response(answer)


async def enqueue_once(
    workspace: Workspace,
    key: str | None,
    fingerprint: str,
    enqueue: Callable[[], ModelBody | ResultBody],
    find: Callable[[str], ModelBody | ResultBody],
) -> Response:
    """Queues a job once for each Idempotency-Key; responds with 202 and the job's path as Location.

    Args:
        key: Idempotency-Key of the request; None if it has none.
        fingerprint: Checksum of the request, to refuse a different request with the same key.
        enqueue: Function that queues the job and returns the response body.
        find: Function that returns the response body for the id of an already queued job.
    """
    make = partial(run_in_threadpool, enqueue)
    return await respond_once(
        *(workspace, key, fingerprint, make, find), 202, lambda made: f"/v1/jobs/{made.job_id}"
    )


@asynccontextmanager
async def _reserved(keys: Idempotency, key: str) -> AsyncIterator[None]:
    """Reserves an Idempotency-Key for the request in the block: other requests with this key are
    refused. If the block fails, the key is freed, so that the request can be repeated."""
    keeping = asyncio.create_task(_keep(keys, key))
    try:
        yield
    except BaseException:
        await _record_or_retry(keys.abandon, key)
        raise
    finally:
        keeping.cancel()


_retries: set[asyncio.Task[None]] = set()
"""Running background tasks, kept here because the event loop holds only weak references to them."""


async def _record_or_retry(update: Callable[..., None], key: str) -> None:
    if not await _try_to_record(update, key):
        retrying = asyncio.create_task(_retry(update, key))
        _retries.add(retrying)
        retrying.add_done_callback(_retries.discard)


async def _retry(update: Callable[..., None], key: str) -> None:
    for _ in range(_TRIES):
        await asyncio.sleep(_AGAIN_SECONDS)
        if await _try_to_record(update, key):
            return


async def _keep(keys: Idempotency, key: str) -> None:
    while True:
        await asyncio.sleep(KEEP_SECONDS)
        await _try_to_record(keys.keep, key)


async def _try_to_record(update: Callable[..., None], key: str) -> bool:
    try:
        await run_in_threadpool(update, key)
    except SQLAlchemyError as error:
        log.warning("Idempotency-Key %r: the database does not answer: %s", key, error)
        return False
    return True


def fingerprint(request: Request, *contents: object) -> str:
    """Returns a checksum of a request's method, path and `contents`.

    A repetition of the request has the same checksum and is thereby recognised.

    Args:
        contents: JSON values that describe the body, such as its checksum.
    """
    described = [request.method, request.url.path, *contents]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _response(answer: Answer, *, replayed: bool = False) -> Response:
    headers = answer.headers | ({REPLAYED: "true"} if replayed else {})
    content = json.dumps(answer.body, ensure_ascii=False, allow_nan=False).encode()
    return Response(content, answer.status, headers, "application/json")
