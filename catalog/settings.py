"""Settings of the catalog, from the environment."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.settings import USUAL, ServerSettings


class CatalogSettings(ServerSettings):
    """Addresses of database and queue, and limits of the job life cycle.

    Attributes:
        running_jobs_limit: Maximum number of running jobs of one workspace, in each queue; None for
            no limit.
    """

    database_url: Annotated[str, USUAL] = Field(repr=False)
    broker_url: Annotated[str, USUAL] = Field(repr=False)
    attempts_limit: int = Field(10, ge=1)
    resend_seconds: float = Field(2.0, gt=0)
    resend_limit_seconds: float = Field(60.0, gt=0)
    running_jobs_limit: Annotated[int | None, USUAL] = Field(None, ge=1)
