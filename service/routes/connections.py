"""Endpoints for connections: databases, buckets and web servers from which tables are read."""

from __future__ import annotations

import tempfile
from datetime import datetime
from functools import partial

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field, SecretStr, field_validator

from catalog.errors import ConflictError
from catalog.records import Connection
from catalog.workspace import Workspace as OpenedWorkspace
from gcvae.errors import Problem
from service.access import Workspace
from service.bodies import PageBody, RequestBody
from service.connections.use import TargetBody, checked_destination, tables_of, write_sample
from service.errors import RequestError
from service.http.audit_trail import note_connection
from service.http.downloads import stored_result
from service.http.json_bodies import JsonRoute
from service.http.pages import Cursor, Limit, page_body
from service.resources import Resources, Shared
from service.routes.samples import find_sample

router = APIRouter(prefix="/v1", tags=["connections"], route_class=JsonRoute)


class NewConnectionBody(RequestBody):
    """A request to create a connection: a database, bucket or web server, and a name for it."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")
    url: str = Field(
        min_length=1,
        max_length=2000,
        pattern=r"^[^\x00-\x20\x7f]+$",
        description="`postgresql://USER@HOST/DATABASE` (also mysql, mariadb), `sqlite:///FILE`, "
        "`s3://ACCESS_KEY@BUCKET/PREFIX?region=…&endpoint=…` or `https://{HOST}/{PREFIX}`",
    )
    password: SecretStr | None = Field(
        None,
        min_length=1,
        max_length=4000,
        description="password of the user, secret key of a bucket, or bearer token of a web server "
        "without a user; kept encrypted and never returned",
    )

    @field_validator("password")
    @classmethod
    def _check_password(cls, password: SecretStr | None) -> SecretStr | None:
        if password is not None and not password.get_secret_value().isprintable():
            raise ValueError("the password contains a control character")
        return password


class ConnectionBody(BaseModel):
    """A connection: a database, bucket or web server with a name."""

    id: str
    name: str
    url: str
    has_password: bool
    created_at: datetime


class ConnectionTestBody(BaseModel):
    """The result of a test of a connection."""

    tables: list[str] | None = Field(description="tables and views of a database; else null")


class ExportBody(BaseModel):
    """The number of rows that were written to a connection, and where."""

    connection: str
    table: str | None
    key: str | None
    rows: int


@router.post("/connections", status_code=201)
def create_connection(
    body: NewConnectionBody, workspace: Workspace, resources: Shared, response: Response
) -> ConnectionBody:
    """Create a connection, from which datasets are read and to which samples are written. The
    operator must have allowed its host. Requires the scope `admin`."""
    if body.name.startswith("con_"):
        expected = "a name that does not begin with con_"
        raise RequestError(Problem("the name looks like an id", "/name", expected=expected))
    checked_destination(resources, body.url, "/url")
    connections, sealed = workspace.connections, None
    connection_id = connections.new_id()
    if body.password is not None:
        password = body.password.get_secret_value()
        sealed = resources.password_encryption.encrypt(password, connection_id, body.url)
    made = connections.create(connection_id, body.name, body.url, sealed)
    response.headers["Location"] = f"/v1/connections/{made.id}"
    return _connection(made)


@router.get("/connections")
def list_connections(
    workspace: Workspace, limit: Limit = 50, cursor: Cursor = None
) -> PageBody[ConnectionBody]:
    """List the connections of the workspace, newest first, without passwords."""
    return page_body(workspace.connections.list(limit=limit, cursor=cursor), _connection)


@router.get("/connections/{connection_id}")
def read_connection(connection_id: str, workspace: Workspace) -> ConnectionBody:
    """Read a connection, by its id or name, without its password."""
    return _connection(workspace.connections.get(connection_id))


@router.delete("/connections/{connection_id}", status_code=204)
def delete_connection(connection_id: str, workspace: Workspace) -> None:
    """Delete a connection, by its id or name. Datasets that were read from it are kept. Requires
    the scope `admin`."""
    workspace.connections.delete(connection_id)


@router.post("/connections/{connection_id}/test")
async def test_connection(
    connection_id: str, workspace: Workspace, resources: Shared
) -> ConnectionTestBody:
    """Test a connection by using it, and list the tables if it is a database. The response comes
    within `GCVAE_OUTSIDE_TIMEOUT_SECONDS`."""

    def test() -> ConnectionTestBody:
        connection = workspace.connections.get(connection_id)
        return ConnectionTestBody(tables=tables_of(resources, connection))

    return await resources.connections.run(test)


@router.post("/samples/{result_id}/export", status_code=201)
async def export_sample(
    result_id: str,
    body: TargetBody,
    request: Request,
    workspace: Workspace,
    resources: Shared,
    response: Response,
) -> ExportBody:
    """Write the rows of a sample to a connection, all or none. For a database, the sample must have
    the format Parquet; a bucket accepts all formats. The sample must be the result of a job; set
    `job` to true in the request for the sample, because small samples are made without a job."""
    note_connection(request, body.connection)
    export = partial(export_result, result_id, body, workspace, resources)
    return await resources.connections.run(export)


def export_result(
    result_id: str, body: TargetBody, workspace: OpenedWorkspace, resources: Resources
) -> ExportBody:
    """Writes a sample to a connection. Returns the response body."""
    job, result = find_sample(workspace, result_id)
    if result is None:
        raise ConflictError(
            f"job {job.id} is {job.status}; export its result when it has succeeded"
        )
    connection = workspace.connections.get(body.connection)
    with tempfile.TemporaryFile(prefix="gcvae-export-") as file:
        file.writelines(stored_result(resources.store, result).stream())
        write_sample(resources, connection, body, file, job.spec["format"])
    return ExportBody(connection=connection.name, table=body.table, key=body.key, rows=result.rows)


def _connection(connection: Connection) -> ConnectionBody:
    has_password = connection.sealed_password is not None
    return ConnectionBody.model_validate(vars(connection) | {"has_password": has_password})
