"""Asynchronous client, which runs each method of `Client` in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial, update_wrapper
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from gcvae_client.client import Client
from gcvae_client.errors import Document
from gcvae_client.objects import bind

P = ParamSpec("P")
T = TypeVar("T")
_END = object()


class _Quiet(Client):
    """Client whose methods an `AsyncClient` runs in threads.

    The objects that it returns, such as models, are not bound to it: a call such as
    `model.sample()` would block the event loop, so it raises an error instead.
    """

    def _bound(self, document: Document) -> Any:
        return bind(document, None)


def _awaited(
    method: Callable[Concatenate[Client, P], T],
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(partial(method, self._client, *args, **kwargs))

    return update_wrapper(call, method)


def _iterated(
    method: Callable[Concatenate[Client, P], Iterator[T]],
) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    async def call(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        found = method(self._client, *args, **kwargs)
        while (item := await self._run(partial(next, found, _END))) is not _END:
            yield item

    return update_wrapper(call, method)


class AsyncClient:
    """Client for asyncio: the methods of `Client` as coroutines.

    Methods of `Client` that yield items, such as `models` and `events`, are asynchronous iterators,
    read with `async for`. Callbacks such as `on_progress` are called in a thread. Cancelling a
    coroutine stops waiting for the response; the service continues its work.

    Args:
        base_url: Address of the service.
        api_key: API key, sent as a bearer token; None if the service requires none.
        timeout_seconds: Time without a byte from the service after which a request fails.
        retries: How often a request is repeated if the service does not respond or is busy.
        calls: Maximum number of concurrent calls; additional calls wait.

    Example:
        ```python
        async with AsyncClient("http://127.0.0.1:8000") as client:
            model = await client.train(await client.upload("table.csv"))
            await client.wait(model)
            frame = await client.sample(model, 1000)
        ```
    """

    def __init__(
        self,
        base_url: str = "http://127.0.0.1:8000",
        *,
        api_key: str | None = None,
        timeout_seconds: float = 300.0,
        retries: int = 3,
        calls: int = 16,
    ) -> None:
        self._client = _Quiet(
            base_url, api_key=api_key, timeout_seconds=timeout_seconds, retries=retries
        )
        self._threads = ThreadPoolExecutor(calls, thread_name_prefix="gcvae-client")

    async def _run(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        """Returns the service's address, without the key."""
        return f"Async{self._client!r}"

    async def close(self) -> None:
        """Closes all connections; calls that have not begun are cancelled."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._client.close()

    upload = _awaited(Client.upload)
    dataset = _awaited(Client.dataset)
    datasets = _iterated(Client.datasets)
    privacy = _awaited(Client.privacy)
    cap_privacy = _awaited(Client.cap_privacy)
    replace_schema = _awaited(Client.replace_schema)
    patch_schema = _awaited(Client.patch_schema)
    profile = _awaited(Client.profile)
    first_rows = _awaited(Client.first_rows)
    rename = _awaited(Client.rename)
    rules = _awaited(Client.rules)
    train = _awaited(Client.train)
    import_model = _awaited(Client.import_model)
    model = _awaited(Client.model)
    models = _iterated(Client.models)
    restrict_scoring = _awaited(Client.restrict_scoring)
    download_model = _awaited(Client.download_model)
    sample = _awaited(Client.sample)
    score = _awaited(Client.score)
    impute = _awaited(Client.impute)
    encode = _awaited(Client.encode)
    dependencies = _awaited(Client.dependencies)
    manifold = _awaited(Client.manifold)
    report = _awaited(Client.report)
    make_report = _awaited(Client.make_report)
    dossier = _awaited(Client.dossier)
    delete = _awaited(Client.delete)
    job = _awaited(Client.job)
    jobs = _iterated(Client.jobs)
    wait = _awaited(Client.wait)
    events = _iterated(Client.events)
    cancel = _awaited(Client.cancel)
    retry = _awaited(Client.retry)
    is_ready = _awaited(Client.is_ready)
    create_connection = _awaited(Client.create_connection)
    connections = _iterated(Client.connections)
    test_connection = _awaited(Client.test_connection)
    import_table = _awaited(Client.import_table)
    export_sample = _awaited(Client.export_sample)
    create_webhook = _awaited(Client.create_webhook)
    webhooks = _iterated(Client.webhooks)
    ping_webhook = _awaited(Client.ping_webhook)
    deliveries = _iterated(Client.deliveries)
    retry_delivery = _awaited(Client.retry_delivery)
    create_schedule = _awaited(Client.create_schedule)
    schedules = _iterated(Client.schedules)
    schedule = _awaited(Client.schedule)
    change_schedule = _awaited(Client.change_schedule)
    run_schedule = _awaited(Client.run_schedule)
    runs = _iterated(Client.runs)
