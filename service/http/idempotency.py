"""Idempotency-Key: a creating request that is sent twice is done once and answered twice alike."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Request, Response
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool

from catalog.idempotency import KEEP_SECONDS, Idempotency, Made
from catalog.workspace import Workspace
from service.bodies import ModelBody, ResultBody

REPLAYED = "Idempotent-Replayed"

log = logging.getLogger("service")

_AGAIN_SECONDS = 1.0
_TRIES = 30  # by then the key is free anyway

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x20-\x7e]+$",
        description="the same key and request again are answered as the first time",
    ),
]


@dataclass(frozen=True)
class Answer:
    """An answer that can be given again."""

    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def created(status: int, body: BaseModel, location: str) -> Answer:
    """The answer to a request that made `body`, to be found at `location`."""
    return Answer(status, body.model_dump(mode="json", by_alias=True), {"Location": location})


async def once(
    workspace: Workspace,
    key: str | None,
    fingerprint: str,
    make: Callable[[], Awaitable[Answer]],
    find: Callable[[str], Answer],
) -> Response:
    """The answer of `make`, or the one that this key got before. A failure frees the key.

    Args:
        find: the answer to a request that made what has this id, if nobody could write it down.

    Raises:
        IdempotencyMismatchError: the key stands for another request.
        IdempotencyBusyError: the first request with this key is still being answered.
    """
    if key is None:
        return _response(await make())
    keys = workspace.idempotency
    before = await run_in_threadpool(keys.begin, key, fingerprint)
    if isinstance(before, Made):
        return _response(await run_in_threadpool(find, before.id), replayed=True)
    if before is not None:
        return _response(Answer(**before), replayed=True)
    async with _held(keys, key):
        with keys.answering(key):
            answer = await make()
    document = {"status": answer.status, "body": answer.body, "headers": answer.headers}
    # What was made is made, whether or not the database can write the answer down just now.
    await _insist(partial(keys.complete, response=document), key)
    return _response(answer)


async def enqueued_once(
    workspace: Workspace,
    key: str | None,
    fingerprint: str,
    enqueue: Callable[[], ModelBody | ResultBody],
    find: Callable[[str], ModelBody | ResultBody],
) -> Response:
    """202 and what `enqueue` made; its `Location` is the job. Raises as `once`.

    Args:
        find: what is made by the job of this id.
    """

    def answer(made: ModelBody | ResultBody) -> Answer:
        return created(202, made, f"/v1/jobs/{made.job_id}")

    async def make() -> Answer:
        return answer(await run_in_threadpool(enqueue))

    return await once(workspace, key, fingerprint, make, lambda job_id: answer(find(job_id)))


@asynccontextmanager
async def _held(keys: Idempotency, key: str) -> AsyncIterator[None]:
    """The key stays this request's while the block runs; a failure frees it."""
    keeping = asyncio.create_task(_keep(keys, key))
    try:
        yield
    except BaseException:
        await _insist(keys.abandon, key)
        raise
    finally:
        keeping.cancel()


_insisting: set[asyncio.Task[None]] = set()
"""Tasks that nobody waits for; the event loop alone would let them be forgotten."""


async def _insist(say: Callable[..., None], key: str) -> None:
    """Say it now, or as soon as the database is back: the key's user may ask again then."""
    if not await _tell(say, key):
        saying = asyncio.create_task(_say_later(say, key))
        _insisting.add(saying)
        saying.add_done_callback(_insisting.discard)


async def _say_later(say: Callable[..., None], key: str) -> None:
    for _ in range(_TRIES):
        await asyncio.sleep(_AGAIN_SECONDS)
        if await _tell(say, key):
            return


async def _keep(keys: Idempotency, key: str) -> None:
    while True:
        await asyncio.sleep(KEEP_SECONDS)
        await _tell(keys.keep, key)


async def _tell(say: Callable[..., None], key: str) -> bool:
    """Whether the database has heard it; the key frees itself when nothing is heard of it."""
    try:
        await run_in_threadpool(say, key)
    except SQLAlchemyError as error:
        log.warning("Idempotency-Key %r: the database does not answer: %s", key, error)
        return False
    return True


def fingerprint(request: Request, *contents: object) -> str:
    """A checksum of what the request asks for: method, path, and its content."""
    described = [request.method, request.url.path, *contents]
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()


def _response(answer: Answer, *, replayed: bool = False) -> Response:
    headers = answer.headers | ({REPLAYED: "true"} if replayed else {})
    content = json.dumps(answer.body, ensure_ascii=False, allow_nan=False).encode()
    return Response(content, answer.status, headers, "application/json")
