"""Objects that all requests share: settings, database, store, job queue, pools and caches."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from catalog.catalog import Catalog
from catalog.dispatch.celery import CeleryDispatcher, make_celery
from catalog.settings import CatalogSettings
from models_store import Store, open_store
from runtime.traces import Traces, make_traces
from service.connections.passwords import PasswordEncryption
from service.inline.pool import InlinePool
from service.inline.single_flight_cache import SingleFlightCache
from service.job_reads import JobReads
from service.metrics import Metrics
from service.outside import AllowedHosts
from service.pool import WorkPool
from service.settings import ServiceSettings

if TYPE_CHECKING:
    from service.sign_on import SignOn


@dataclass(frozen=True)
class Resources:
    """Objects that all requests of an application share.

    Attributes:
        catalog: Records in the database.
        store: Files of tables, models and results.
        dispatcher: Sends ids of jobs to the workers' queue.
        tables: Threads that read uploaded tables.
        inline: Child processes that run models, for requests answered without a job.
        profiles: Cached JSON profiles of datasets, by (dataset id, hash of the schema).
        allowed_hosts: Sends requests to hosts that the operator has allowed.
        sign_on: Signs persons in at the identity provider; None if none is configured.
        connections: Threads that read and write tables of connections, which are databases, buckets
            and web servers to which an administrator has given a name.
        password_encryption: Encrypts the passwords of connections.
        closing: Set when the service shuts down, so that event streams end.
    """

    settings: ServiceSettings
    catalog: Catalog
    store: Store
    dispatcher: CeleryDispatcher
    tables: WorkPool
    inline: InlinePool
    metrics: Metrics
    traces: Traces
    job_reads: JobReads
    profiles: SingleFlightCache[tuple[str, str], bytes]
    allowed_hosts: AllowedHosts
    sign_on: SignOn | None
    connections: WorkPool
    password_encryption: PasswordEncryption
    closing: threading.Event = field(default_factory=threading.Event)

    def close(self) -> None:
        """Ends child processes, waits for threads that use tables, and closes the database."""
        self.closing.set()
        self.inline.close()
        self.connections.close()
        self.tables.close()
        self.catalog.close()
        self.traces.close()


def make_resources(settings: ServiceSettings) -> Resources:
    """Connects to the database, store and queue in `settings`, and creates pools and caches.

    Raises:
        MissingExtraError: Traces are configured, but OpenTelemetry is not installed.
    """
    urls = {"database_url": settings.database(), "broker_url": settings.broker()}
    records = CatalogSettings.model_validate(urls)
    catalog = Catalog(
        records.database_url,
        resend_seconds=records.resend_seconds,
        answer_seconds=settings.database_seconds,
    )
    metrics = Metrics(catalog.statistics)
    return Resources(
        settings=settings,
        catalog=catalog,
        store=open_store(settings.store(), settings.store_access_key, settings.store_secret_key),
        dispatcher=CeleryDispatcher(make_celery(records.broker_url)),
        tables=WorkPool(
            "reading tables", settings.table_workers, settings.table_waiting, "table_waiting"
        ),
        inline=InlinePool(settings, metrics),
        metrics=metrics,
        traces=make_traces(settings, "api"),
        job_reads=JobReads(catalog.all_jobs.get_many),
        profiles=SingleFlightCache(64),
        allowed_hosts=AllowedHosts.of(settings),
        sign_on=_make_sign_on(settings),
        connections=WorkPool(
            "connections", settings.connection_workers, settings.table_waiting, "table_waiting"
        ),
        password_encryption=PasswordEncryption(settings),
    )


def _make_sign_on(settings: ServiceSettings) -> SignOn | None:
    if not settings.oidc_issuer:
        return None
    from service.sign_on import SignOn  # imports cryptography, which takes 0.1 s

    return SignOn(settings)


async def get_resources(request: Request) -> Resources:
    """Returns the resources of the application that handles the request, as a FastAPI dependency.

    It is a coroutine, because FastAPI would call a normal function in a thread, which takes longer.
    """
    resources = request.app.state.resources
    assert isinstance(resources, Resources)
    return resources


Shared = Annotated[Resources, Depends(get_resources)]
