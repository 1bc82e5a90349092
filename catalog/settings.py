"""Settings of the catalog, read from environment variables."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.settings import USUAL, ServerSettings


class CatalogSettings(ServerSettings):
    """Addresses of database and message broker, and limits on jobs.

    Attributes:
        database_url: `sqlite:///FILE` or `postgresql://USER@HOST/NAME`.
        broker_url: `redis://…`, or `filesystem:///FOLDER` for a broker without a server.
        attempts_limit: Maximum number of attempts at a job without a new checkpoint.
        resend_seconds: Pause before a job's message to the workers is sent again; it doubles each
            time.
        resend_limit_seconds: Maximum of this pause.
        running_jobs_limit: Maximum number of jobs of one workspace that run at the same time, in
            each queue; None for no limit.
    """

    database_url: Annotated[str, USUAL] = Field(repr=False)
    broker_url: Annotated[str, USUAL] = Field(repr=False)
    attempts_limit: int = Field(10, ge=1)
    resend_seconds: float = Field(2.0, gt=0)
    resend_limit_seconds: float = Field(60.0, gt=0)
    running_jobs_limit: Annotated[int | None, USUAL] = Field(None, ge=1)
