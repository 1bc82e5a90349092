"""The catalog's settings, from the environment."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runtime.settings import USUAL, ServerSettings


class CatalogSettings(ServerSettings):
    """Where the records and the queue are, and how patient the job life cycle is.

    Attributes:
        running_jobs_limit: jobs of one workspace that may run at once, in each queue; None is as
            many as there are workers.
    """

    database_url: Annotated[str, USUAL] = Field(repr=False)
    broker_url: Annotated[str, USUAL] = Field(repr=False)
    attempts_limit: int = Field(10, ge=1)
    resend_seconds: float = Field(2.0, gt=0)
    resend_limit_seconds: float = Field(60.0, gt=0)
    running_jobs_limit: Annotated[int | None, USUAL] = Field(None, ge=1)
