"""Endpoints to upload, list, read, rename, profile and delete datasets and change their schemas."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Body, Header, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from catalog.errors import ConflictError, SchemaChangedError
from catalog.object_keys import dataset_prefix
from catalog.pages import Order
from catalog.records import DataKind, Dataset, Document, ModelStatus
from gcvae.errors import Problem, SchemaError
from gcvae.schema.columns import TableSchema
from gcvae.schema.suggestions import unknown_name
from service.access import Workspace
from service.bodies import (
    ChangedDatasetBody,
    ChangedNameBody,
    DatasetBody,
    FirstRowsBody,
    PageBody,
    ProfileBody,
    RulesBody,
    dataset_body,
)
from service.connections.use import SourceBody, read_table
from service.databases import (
    INVALID_REFERENCES,
    check_database,
    first_rows_of_table,
    profile_of_table,
)
from service.errors import PreconditionError, RequestError
from service.http.audit_trail import note_connection
from service.http.etags import entity_tag, satisfies_if_match, tag_of, tagged, tagged_json
from service.http.idempotency import IdempotencyKey, fingerprint, respond_once
from service.http.json_bodies import JSON_TYPE, JsonRoute, is_json, validated
from service.http.negotiation import form_or_file, query_parameter
from service.http.pages import Cursor, Limit, Search, Sort, page_body
from service.http.query_parameters import checked_name
from service.http.uploads import DATASET_TYPES, ENCODING, Upload, received
from service.ingestion import (
    check_table,
    first_rows_of,
    profile_of,
    stored_table,
    table_format,
)
from service.quotas import require_storage
from service.reservations import collect_garbage, reserved
from service.resources import Resources, Shared
from service.routes.privacy_ledgers import dataset_with_privacy, privacy_bodies
from service.schema_changes import (
    changes,
    patched,
    pointed_at_patch,
    stated_database_schema,
    stated_schema,
)
from service.table_process import read_isolated

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=JsonRoute)

MOST_FIRST_ROWS = 100
"""Maximum number of rows that a call for the first rows of a table returns."""

_FILE = {"type": "string", "format": "binary"}
_FIELDS = {
    "file": {
        "description": "CSV, gzipped CSV or Parquet; for a database several files or a ZIP file of "
        "them, each a table with the name of its file",
        "oneOf": [_FILE, {"type": "array", "items": _FILE}],
    },
    "schema": {"type": "string", "description": "schema document, JSON"},
    "name": {"type": "string"},
    "encoding": {"type": "string", "description": ENCODING},
}
_FILE_TYPES = ("text/csv", "application/gzip", "application/zip", "application/vnd.apache.parquet")
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": form_or_file(_FIELDS, _FILE_TYPES)
        | {JSON_TYPE: {"schema": SourceBody.model_json_schema()}},
    },
    "parameters": [
        query_parameter(name, f"{what}, if the body is the table itself")
        for name, what in (("name", "name"), ("schema", "schema"), ("encoding", ENCODING))
    ],
}

_PATCH_DESCRIPTION = (
    "JSON merge patch (RFC 7396) of the given schema: columns by name; null resets a member to the "
    "inferred value; rules are replaced as a whole. For a database: "
    "tables by name, "
    "whose lists are replaced as a whole"
)
_BY_NAME = {
    "type": ["object", "null"],
    "additionalProperties": {"type": ["object", "null"]},
}
_PATCH_SCHEMA = {
    "type": "object",
    "description": _PATCH_DESCRIPTION,
    "properties": {
        "columns": _BY_NAME,
        "find_rules": {"type": ["boolean", "null"]},
        "rules": {"type": ["array", "null"], "items": {"type": "object"}},
        "tables": _BY_NAME,
        "invalid_references": {"type": ["string", "null"], "enum": [*INVALID_REFERENCES, None]},
    },
    "example": {"columns": {"note": {"drop": True}, "age": {"kind": "ordinal", "levels": None}}},
}
_PATCH = {"requestBody": {"content": {"application/merge-patch+json": {"schema": _PATCH_SCHEMA}}}}
TableName = Annotated[str | None, Query(description="of a database: one of its tables")]
IfMatch = Annotated[
    str | None,
    Header(description="ETag of the dataset when it was read; 412 if it has changed since"),
]


@router.post("", status_code=201, response_model=DatasetBody, openapi_extra=_UPLOAD)
async def upload(
    request: Request, resources: Shared, workspace: Workspace, key: IdempotencyKey = None
) -> Response:
    """Create a dataset. Upload a table as CSV, gzipped CSV or Parquet, in a form or as the body
    itself, or name a table of a connection in JSON. A ZIP file of tables, or a form with several
    files, is a database; its keys are inferred, and foreign keys are checked."""
    if is_json(request.headers.get("Content-Type")):
        body = await run_in_threadpool(validated, await request.body(), SourceBody)
        note_connection(request, body.connection)
        contents: tuple[Any, ...] = (body.model_dump(mode="json"),)
        make = partial(import_table, resources, workspace, body)
        return await _made_once(request, workspace, key, contents, make)
    limits, readable = resources.settings, (JSON_TYPE, *DATASET_TYPES)
    async with received(request, limits, readable, limits.max_tables) as table:
        sha256 = await run_in_threadpool(table.sha256)
        contents = (sha256, table.name, table.schema, table.encoding)
        keep = partial(_kept, resources, workspace, table, sha256)
        make = partial(resources.tables.run, keep)
        return await _made_once(request, workspace, key, contents, make)


@router.get("")
def list_datasets(
    workspace: Workspace,
    limit: Limit = 50,
    cursor: Cursor = None,
    search: Search = None,
    sort: Sort = Order.NEWEST,
) -> PageBody[DatasetBody]:
    """List the datasets of the workspace, by default newest first."""
    page = workspace.datasets.list(limit=limit, cursor=cursor, search=search, order=sort)
    spent = privacy_bodies(workspace, page.items)
    return page_body(page, lambda dataset: dataset_body(dataset, spent.get(dataset.id)))


@router.get("/{dataset_id}", response_model=DatasetBody)
def read_dataset(dataset_id: str, request: Request, workspace: Workspace) -> Response:
    """Read a dataset: its size, schema, warnings and privacy budget."""
    dataset = workspace.datasets.get(dataset_id)
    return tagged_json(request, dataset_with_privacy(workspace, dataset))


@router.put("/{dataset_id}/schema")
async def replace_schema(
    dataset_id: str,
    response: Response,
    resources: Shared,
    workspace: Workspace,
    schema: Annotated[
        dict[str, Any], Body(description="schema document; omitted members are inferred")
    ],
    if_match: IfMatch = None,
) -> ChangedDatasetBody:
    """Replace the schema, including members that earlier requests have set. The new schema is
    checked against the table; members that it does not contain are inferred. The response lists the
    changes."""
    change = _Change(dataset_id, workspace, if_match, lambda _: schema)
    return await _changed(resources, response, change)


@router.patch("/{dataset_id}/schema", openapi_extra=_PATCH)
async def patch_schema(
    dataset_id: str,
    response: Response,
    resources: Shared,
    workspace: Workspace,
    patch: Annotated[dict[str, Any], Body(description=_PATCH_DESCRIPTION)],
    if_match: IfMatch = None,
) -> ChangedDatasetBody:
    """Change single members of the schema. Members that earlier requests have set are kept, and all
    others are inferred again. The response lists the changes."""
    change = _Change(dataset_id, workspace, if_match, lambda stated: patched(stated, patch), patch)
    return await _changed(resources, response, change)


@router.get("/{dataset_id}/profile", response_model=ProfileBody)
async def read_profile(
    dataset_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    table: TableName = None,
) -> Response:
    """Read the profile of a table: for each column its kind, share of missing values, quantiles or
    counts of levels (categories), and a histogram."""
    dataset = await run_in_threadpool(workspace.datasets.get, dataset_id)
    requested = _requested_table(dataset, table)
    content = await resources.tables.run(partial(_profile, resources, dataset, requested))
    return tagged(request, content, "application/json")


@router.get("/{dataset_id}/rules", response_model=RulesBody)
async def read_rules(
    dataset_id: str,
    request: Request,
    resources: Shared,
    workspace: Workspace,
    table: TableName = None,
) -> Response:
    """Read the rules (expressions over columns) that most rows of a table satisfy, with the number
    of rows that satisfy each rule and the first exceptions. The schema member `rules` turns rules
    off, makes them hard (kept in every synthetic row), or adds rules."""
    dataset = await run_in_threadpool(workspace.datasets.get, dataset_id)
    requested = _requested_table(dataset, table)
    profile = await resources.tables.run(partial(_profile, resources, dataset, requested))
    rules = RulesBody.model_validate_json(profile)
    return tagged(request, rules.model_dump_json().encode(), "application/json")


@router.get("/{dataset_id}/rows")
async def read_rows(
    dataset_id: str,
    resources: Shared,
    workspace: Workspace,
    limit: Annotated[int, Query(ge=1, le=MOST_FIRST_ROWS)] = 20,
    table: TableName = None,
) -> FirstRowsBody:
    """Read the first rows of a table, with cells as they were uploaded."""
    dataset = await run_in_threadpool(workspace.datasets.get, dataset_id)
    requested = _requested_table(dataset, table)
    read = partial(_first_rows, resources, dataset, limit, requested)
    columns, rows = await resources.tables.run(read)
    return FirstRowsBody(dataset_id=dataset.id, columns=columns, rows=rows)


@router.patch("/{dataset_id}")
def rename_dataset(dataset_id: str, body: ChangedNameBody, workspace: Workspace) -> DatasetBody:
    """Change the name of a dataset."""
    return dataset_with_privacy(workspace, workspace.datasets.rename(dataset_id, body.name))


@router.delete("/{dataset_id}", status_code=204)
def delete_dataset(
    dataset_id: str,
    response: Response,
    resources: Shared,
    workspace: Workspace,
    cascade: Annotated[bool, Query(description="also delete its models and their results")] = False,
) -> None:
    """Delete a dataset and its files. Models that were trained on it are kept unless `cascade` is
    set; the response header `Kept-Models` contains their number."""
    datasets = workspace.datasets
    n_kept = 0 if cascade else datasets.count_models(dataset_id)
    prefixes = datasets.delete(dataset_id, cascade=cascade)
    collect_garbage(resources, prefixes)
    response.headers["Kept-Models"] = str(n_kept)


async def import_table(resources: Resources, workspace: Workspace, body: SourceBody) -> DatasetBody:
    """Creates a dataset from a table of a connection. Returns its response body."""
    with tempfile.TemporaryFile(prefix="gcvae-import-") as file:
        read = partial(read_table, resources, workspace, body, file)
        table = await resources.connections.run(read)
        sha256 = await run_in_threadpool(table.sha256)
        return await resources.tables.run(partial(_kept, resources, workspace, table, sha256))


def _kept(resources: Resources, workspace: Workspace, table: Upload, sha256: str) -> DatasetBody:
    dataset = add_dataset(resources, workspace, table, sha256)
    return dataset_with_privacy(workspace, dataset)


async def _made_once(
    request: Request,
    workspace: Workspace,
    key: str | None,
    contents: tuple[Any, ...],
    make: Callable[[], Awaitable[DatasetBody]],
) -> Response:
    """Creates a dataset once for each Idempotency-Key. A later request with the same key must have
    the same `contents` (JSON values), or it is refused."""

    def find(dataset_id: str) -> DatasetBody:
        return dataset_with_privacy(workspace, workspace.datasets.get(dataset_id))

    asked = workspace, key, fingerprint(request, *contents)
    return await respond_once(*asked, make, find, 201, lambda made: f"/v1/datasets/{made.id}")


def add_dataset(resources: Resources, workspace: Workspace, upload: Upload, sha256: str) -> Dataset:
    """Checks an uploaded table or database, stores its bytes and then creates its record.

    An invalid table is not stored. If the service crashes after storing the bytes and before
    creating the record, the bytes are deleted when their reservation expires.

    Args:
        sha256: Checksum of the upload.
    """
    otherwise = "database" if table_format(upload.file) == "zip" else "table"
    name = checked_name(upload.name, f"{upload.pointer_prefix}name", otherwise=otherwise)
    require_storage(resources, workspace, upload.size_bytes())
    checked = _checked(resources, upload.file, upload.schema or {}, upload.encoding)
    dataset_id = workspace.datasets.new_id()
    prefix = dataset_prefix(dataset_id)
    with reserved(resources, prefix):
        key = f"{prefix}table.{checked['format']}"
        published = resources.store.publish(key, upload.chunks())
        assert published.sha256 == sha256
        return workspace.datasets.add(
            dataset_id=dataset_id,
            name=name,
            sha256=published.sha256,
            size_bytes=published.size_bytes,
            object_key=published.key,
            encoding=upload.encoding,
            source=upload.source,
            **checked | {"warnings": [*checked["warnings"], *upload.notes]},
        )


def _checked(
    resources: Resources, file: BinaryIO, schema: Document, encoding: str | None
) -> dict[str, Any]:
    """Checks a table or a ZIP file of tables. Returns the members of the dataset's record that
    result, such as the complete schema and the number of rows."""
    settings = resources.settings
    is_database = table_format(file) == "zip"
    check = check_database if is_database else check_table
    work = partial(check, schema=schema, encoding=encoding, settings=settings)
    stated = stated_database_schema(schema) if is_database else stated_schema(schema)
    return read_isolated(work, file, settings) | {"given_schema": stated}


def _requested_table(dataset: Dataset, name: str | None) -> Document | None:
    """Returns the description of table `name` of a database; None for a dataset of one table."""
    tables = {table["name"]: table for table in dataset.tables or ()}
    if name in tables:
        return tables[name]
    if name is not None:
        raise RequestError(unknown_name(f"table is {name!r}", name, [*tables], pointer="?table"))
    if dataset.kind is DataKind.DATABASE:
        expected = f"the name of one: {', '.join(tables)}"
        raise RequestError(Problem("a database has several tables", "?table", expected=expected))
    return None


@dataclass(frozen=True)
class _Change:
    """A request to change the schema of a dataset.

    Attributes:
        if_match: If-Match header; None if it is missing.
        document: Function that takes the schema members that users have set so far, and returns the
            members that are set after the request.
        patch: JSON merge patch in the request; None if the request replaces the schema.
    """

    dataset_id: str
    workspace: Workspace
    if_match: str | None
    document: Callable[[Document], Document]
    patch: Document | None = None


async def _changed(resources: Resources, response: Response, change: _Change) -> ChangedDatasetBody:
    before, after = await resources.tables.run(partial(_change_schema, resources, change))
    body = await run_in_threadpool(dataset_with_privacy, change.workspace, after)
    response.headers["ETag"] = tag_of(body)
    different = changes(before.schema, after.schema)
    return ChangedDatasetBody(**body.model_dump(by_alias=True), changes=different)


def _change_schema(resources: Resources, change: _Change) -> tuple[Dataset, Dataset]:
    """Returns the dataset before and after the change. If another request changes the schema
    meanwhile, the change is made again, to the schema of the other request."""
    datasets = change.workspace.datasets
    while True:
        before = datasets.get(change.dataset_id)
        if not satisfies_if_match(
            change.if_match, tag_of(dataset_with_privacy(change.workspace, before))
        ):
            message = f"dataset {before.id} has changed since it was read (If-Match); read it again"
            raise PreconditionError(message)
        _refuse_while_training(change.workspace, before.id)
        document = change.document(before.given_schema)
        found = _completed(resources, before, document, change.patch)
        members = "schema", "given_schema", "warnings", "tables"
        changed: dict[str, Any] = {name: found.get(name) for name in members}
        try:
            return before, datasets.replace_schema(before, **changed)
        except SchemaChangedError:
            continue


def _completed(
    resources: Resources, dataset: Dataset, document: Document, patch: Document | None
) -> dict[str, Any]:
    """Checks a new schema against the stored table. Returns the members of the dataset's record.

    `document` contains all schema members that users have specified. `patch` is the JSON merge
    patch in the request, into which errors then point; None if the request contains `document`.
    """
    try:
        with stored_table(resources.store, dataset) as file:
            return _checked(resources, file, document, dataset.encoding)
    except SchemaError as error:
        if patch is None:
            raise
        raise pointed_at_patch(error, document, patch) from None


def _refuse_while_training(workspace: Workspace, dataset_id: str) -> None:
    """Raises ConflictError if a model of the dataset is in training, which uses the schema."""
    page = workspace.models.list(limit=1, dataset_id=dataset_id, status=ModelStatus.TRAINING)
    for model in page.items:
        raise ConflictError(
            f"model {model.id} is being trained with this schema; wait, or cancel its job first"
        )


def _first_rows(
    resources: Resources, dataset: Dataset, limit: int, table: Document | None
) -> tuple[list[str], list[list[str | None]]]:
    settings = resources.settings
    how: dict[str, Any] = {"n_rows": limit, "encoding": dataset.encoding}
    read = partial(first_rows_of, **how)
    if table is not None:
        read = partial(first_rows_of_table, name=table["name"], settings=settings, **how)
    with stored_table(resources.store, dataset) as file:
        return read_isolated(read, file, settings)


def _profile(resources: Resources, dataset: Dataset, table: Document | None) -> bytes:
    described = dataset.schema if table is None else table
    key = (dataset.id, entity_tag(repr(described).encode()))
    return resources.profiles.get(key, lambda: _make_profile(resources, dataset, table))


def _make_profile(resources: Resources, dataset: Dataset, table: Document | None) -> bytes:
    settings = resources.settings
    linked = {} if table is None else dataset.schema["tables"][table["name"]]
    rules = {"rules": linked["rules"]} if "rules" in linked else {}
    schema = TableSchema.from_json(dataset.schema if table is None else table["schema"] | rules)
    how: dict[str, Any] = {"schema": schema, "encoding": dataset.encoding, "settings": settings}
    make = partial(profile_of, **how)
    if table is not None:
        make = partial(profile_of_table, name=table["name"], **how)
    with stored_table(resources.store, dataset) as file:
        profile = {"dataset_id": dataset.id, **read_isolated(make, file, settings)}
    return ProfileBody.model_validate(profile).model_dump_json().encode()
