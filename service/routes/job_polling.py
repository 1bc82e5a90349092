"""Polling: hundreds of clients ask for a job every second, so it costs little."""

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


class PollingRoute(APIRoute):
    """A route that makes the checks of all routes by itself.

    The framework finds out for every request anew what a function depends on; that took a third of
    a poll's processor time. The documentation is made of the function as of any other.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function, with what it takes."""

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
    """Read a job. Made for polling: `ETag` and 304, `Retry-After` while it is not over."""
    job = await resources.job_reads.get(job_id, workspace=workspace.name)
    headers = {} if job.status.is_final else {"Retry-After": str(POLL_SECONDS)}
    return tagged_json(request, job_body(job), headers)
