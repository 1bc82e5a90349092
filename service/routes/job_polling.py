"""Endpoint that reads a job, optimised because hundreds of clients poll it every second."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from service.access import Workspace, get_workspace
from service.bodies import JobBody, job_body
from service.http.etags import tagged_json
from service.http.query_parameters import refuse_unknown_parameters
from service.resources import Shared, get_resources

POLL_SECONDS = 1
"""Interval of polls that responses recommend, as Retry-After."""


class PollingRoute(APIRoute):
    """FastAPI route that calls the dependencies of `read_job` directly.

    FastAPI would resolve them for each request, which took a third of a poll's processor time. The
    OpenAPI document is generated from the function as usual.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns a handler that calls the dependencies and then the route's function."""

        async def poll(request: Request) -> Response:
            resources = await get_resources(request)
            workspace = await get_workspace(request)
            await refuse_unknown_parameters(request)
            job_id = request.path_params["job_id"]
            answer: Response = await self.endpoint(job_id, request, resources, workspace)
            return answer

        return poll


router = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=PollingRoute)


@router.get("/{job_id}", response_model=JobBody)
async def read_job(
    job_id: str, request: Request, resources: Shared, workspace: Workspace
) -> Response:
    """Read a job. For polling, the response has an ETag, and Retry-After until the job ends."""
    job = await resources.job_reads.get(job_id, workspace=workspace.name)
    headers = {} if job.status.is_final else {"Retry-After": str(POLL_SECONDS)}
    return tagged_json(request, job_body(job), headers)
