"""Endpoint that lists the audit log of a workspace, for administrators."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.access import Workspace
from service.bodies import PageBody
from service.http.pages import Cursor, Limit, page_body

router = APIRouter(prefix="/v1/audit", tags=["audit"])


class AuditBody(BaseModel):
    """A line of the audit log: a request or a command of the operator, and who sent it."""

    id: str
    at: str = Field(description="UTC, ISO 8601")
    actor: str = Field(description="id of the key; `operator` for commands, `anyone` without keys")
    action: str = Field(description="method and route, or the command")
    subject: str = Field(description="the path with its ids")
    made: str | None = Field(description="path of the created resource")
    address: str | None = Field(
        description="IP address of the client, or of the proxy in front of the service"
    )
    status: int = Field(description="status of the response; 0 for commands")
    request_id: str | None
    number: int = Field(description="line number in the log of all workspaces")
    digest: str = Field(description="digest of this line and all earlier ones")


@router.get("")
def list_audit(
    workspace: Workspace, limit: Limit = 50, cursor: Cursor = None
) -> PageBody[AuditBody]:
    """List the audit log of the workspace, newest lines first. Requires the scope `admin`."""
    page = workspace.audit.list(limit=limit, cursor=cursor)
    return page_body(page, lambda entry: AuditBody.model_validate(vars(entry)))
