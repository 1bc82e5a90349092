"""Datasets: upload, list, read, replace the schema, profile, delete."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Request, Response
from starlette.concurrency import run_in_threadpool

from catalog.datasets import dataset_prefix
from catalog.records import Dataset, ModelStatus
from gcvae.errors import Problem
from gcvae.schema import TableSchema
from service.access import Workspace
from service.bodies import DatasetBody, PageBody, ProfileBody, dataset_body
from service.errors import RequestError, StateError
from service.etags import entity_tag, tagged, tagged_json
from service.idempotency import Answer, IdempotencyKey, created, fingerprint, once
from service.ingestion import check_table, infer_within_limits, stored_columns
from service.json_bodies import JsonRoute
from service.pages import Cursor, Limit, page_body
from service.reservations import reserved, sweep
from service.resources import Resources, Shared
from service.uploads import Upload, received

_MAX_NAME = 200

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=JsonRoute)

_TABLE = {"schema": {"type": "string", "format": "binary"}}
_UPLOAD = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "schema": {"type": "string", "description": "schema document, JSON"},
                        "name": {"type": "string"},
                    },
                }
            },
            "text/csv": _TABLE,
            "application/gzip": _TABLE,
            "application/vnd.apache.parquet": _TABLE,
        },
    },
    "parameters": [
        {"name": name, "in": "query", "required": False, "schema": {"type": "string"},
         "description": f"{name} of a table that is the bare body"}
        for name in ("name", "schema")
    ],
}  # fmt: skip


@router.post("", status_code=201, response_model=DatasetBody, openapi_extra=_UPLOAD)
async def upload(
    request: Request, resources: Shared, workspace: Workspace, key: IdempotencyKey = None
) -> Response:
    """Upload a table: CSV, gzipped CSV or Parquet, as a form or as the bare body."""
    async with received(request, resources.settings) as table:
        sha256 = await run_in_threadpool(table.sha256)
        request_sha256 = fingerprint(request, sha256, table.name, table.schema)

        def answer(dataset: Dataset) -> Answer:
            return created(201, dataset_body(dataset), f"/v1/datasets/{dataset.id}")

        async def make() -> Answer:
            keep = partial(add_dataset, resources, workspace, table, sha256)
            return answer(await resources.tables.run(keep))

        def find(dataset_id: str) -> Answer:
            return answer(resources.catalog.datasets.get(dataset_id, workspace=workspace))

        return await once(resources, workspace, key, request_sha256, make, find)


@router.get("")
def list_datasets(
    resources: Shared, workspace: Workspace, limit: Limit = 50, cursor: Cursor = None
) -> PageBody[DatasetBody]:
    """List the datasets, newest first."""
    page = resources.catalog.datasets.list(limit=limit, cursor=cursor, workspace=workspace)
    return page_body(page, dataset_body)


@router.get("/{dataset_id}", response_model=DatasetBody)
def read_dataset(
    dataset_id: str, request: Request, resources: Shared, workspace: Workspace
) -> Response:
    """Read a dataset's record."""
    dataset = resources.catalog.datasets.get(dataset_id, workspace=workspace)
    return tagged_json(request, dataset_body(dataset))


@router.put("/{dataset_id}/schema", response_model=DatasetBody)
async def replace_schema(
    dataset_id: str,
    resources: Shared,
    workspace: Workspace,
    schema: Annotated[dict[str, Any], Body(description="schema document; may leave things open")],
) -> DatasetBody:
    """Replace the schema; it is checked against the table, and what it leaves open is inferred."""
    datasets = resources.catalog.datasets
    dataset = await run_in_threadpool(datasets.get, dataset_id, workspace=workspace)
    work = partial(_replace_schema, resources, dataset, schema)
    return dataset_body(await resources.tables.run(work))


@router.get("/{dataset_id}/profile", response_model=ProfileBody)
async def read_profile(
    dataset_id: str, request: Request, resources: Shared, workspace: Workspace
) -> Response:
    """Per column: kind, missing share, quantiles or level counts, and a histogram."""
    datasets = resources.catalog.datasets
    dataset = await run_in_threadpool(datasets.get, dataset_id, workspace=workspace)
    content = await resources.tables.run(partial(_profile, resources, dataset))
    return tagged(request, content, "application/json")


@router.delete("/{dataset_id}", status_code=204)
def delete_dataset(dataset_id: str, resources: Shared, workspace: Workspace) -> None:
    """Delete a dataset with its bytes. Models that were trained on it stay."""
    prefixes = resources.catalog.datasets.delete(dataset_id, workspace=workspace)
    sweep(resources, prefixes)


def add_dataset(resources: Resources, workspace: str, upload: Upload, sha256: str) -> Dataset:
    """Check the table, publish its bytes, record it: in this order, so that a bad table leaves
    nothing, and a crash leaves only bytes whose reservation runs out.
    """
    name = _checked_name(upload)
    checked = check_table(upload.file, upload.schema, resources.settings)
    catalog = resources.catalog
    dataset_id = catalog.datasets.new_id()
    prefix = dataset_prefix(dataset_id)
    with reserved(resources, prefix):
        key = f"{prefix}table.{checked.format}"
        published = resources.store.publish(key, upload.chunks())
        assert published.sha256 == sha256
        return catalog.datasets.add(
            dataset_id=dataset_id,
            name=name,
            format=checked.format,
            rows=checked.rows,
            columns=checked.columns,
            schema=checked.inferred.schema.to_json(),
            sha256=published.sha256,
            size_bytes=published.size_bytes,
            object_key=published.key,
            warnings=list(checked.inferred.warnings),
            workspace=workspace,
        )


def _replace_schema(resources: Resources, dataset: Dataset, schema: dict[str, Any]) -> Dataset:
    _refuse_while_training(resources, dataset)
    with stored_columns(resources.store, dataset, resources.settings) as source:
        inferred = infer_within_limits(source, schema, resources.settings)
    return resources.catalog.datasets.replace_schema(
        dataset.id,
        inferred.schema.to_json(),
        list(inferred.warnings),
        workspace=dataset.workspace,
    )


def _refuse_while_training(resources: Resources, dataset: Dataset) -> None:
    """A training that resumes must find the schema that it began with."""
    page = resources.catalog.models.list(
        limit=1, dataset_id=dataset.id, status=ModelStatus.TRAINING, workspace=dataset.workspace
    )
    for model in page.items:
        raise StateError(
            f"model {model.id} is being trained under this schema; wait, or cancel its job first"
        )


def _profile(resources: Resources, dataset: Dataset) -> bytes:
    key = (dataset.id, entity_tag(repr(dataset.schema).encode()))
    return resources.profiles.get(key, lambda: _make_profile(resources, dataset))


def _make_profile(resources: Resources, dataset: Dataset) -> bytes:
    from gcvae.profile import profile_table  # pandas: not before it is needed
    from gcvae.typed_columns import typed_columns

    schema = TableSchema.from_json(dataset.schema)
    with (
        stored_columns(resources.store, dataset, resources.settings) as source,
        typed_columns(source, schema) as table,
    ):
        profile = {"dataset_id": dataset.id, **profile_table(table, schema)}
    return ProfileBody.model_validate(profile).model_dump_json().encode()


def _checked_name(upload: Upload) -> str:
    name = upload.name
    if name is None or not name.strip():
        return "table"
    if len(name) > _MAX_NAME or not name.isprintable():
        expected = f"at most {_MAX_NAME} printable characters"
        raise RequestError(
            Problem("the name can not be used", f"{upload.place}name", expected=expected)
        )
    return name
