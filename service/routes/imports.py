"""Endpoint that imports a model from another service or from `gcvae train`."""

from __future__ import annotations

from functools import partial

from anyio import from_thread
from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from catalog.object_keys import model_prefix
from catalog.records import DataKind, Model, Trained
from gcvae.artifact.versions import NO_MODEL
from gcvae.schema.columns import TableSchema
from models_store import Published
from service.access import Workspace
from service.bodies import ModelBody, model_body
from service.errors import InvalidModelError
from service.http.body_limits import MODEL_TYPES
from service.http.idempotency import IdempotencyKey, fingerprint, respond_once
from service.http.json_bodies import JsonRoute
from service.http.negotiation import form_or_file, query_parameter
from service.http.query_parameters import checked_name
from service.http.uploads import MODEL_UPLOAD_TYPES, Upload, received
from service.ingestion import check_levels, check_size
from service.inline.work import examine_model
from service.quotas import require_storage
from service.reservations import reserved
from service.resources import Resources, Shared

router = APIRouter(prefix="/v1/models", tags=["models"], route_class=JsonRoute)

_FIELDS = {"file": {"type": "string", "format": "binary"}, "name": {"type": "string"}}
_FILE = {
    "requestBody": {"required": True, "content": form_or_file(_FIELDS, MODEL_TYPES)},
    "parameters": [
        query_parameter("name", "name of the model, if the body is the model file itself")
    ],
}


@router.post("/import", status_code=201, response_model=ModelBody, openapi_extra=_FILE)
async def import_model(
    request: Request, resources: Shared, workspace: Workspace, key: IdempotencyKey = None
) -> Response:
    """Import a model file of `gcvae train` or `gcvae clone --model`, or one downloaded from a
    service. The model is tested first and can be used at once. It has no dataset and no job."""
    async with received(request, resources.settings, MODEL_UPLOAD_TYPES) as upload:
        sha256 = await run_in_threadpool(upload.sha256)

        def keep() -> ModelBody:
            return model_body(add_model(resources, workspace, upload))

        def find(model_id: str) -> ModelBody:
            return model_body(workspace.models.get(model_id))

        request_sha256 = fingerprint(request, sha256, upload.name)
        make = partial(run_in_threadpool, keep)
        asked = workspace, key, request_sha256
        return await respond_once(*asked, make, find, 201, lambda made: f"/v1/models/{made.id}")


def add_model(resources: Resources, workspace: Workspace, upload: Upload) -> Model:
    """Stores a model file, tests it in a child process, and then creates the model's record.

    An invalid file is deleted. If the service crashes after storing the file and before creating
    the record, the file is deleted when its reservation expires.

    Raises:
        InvalidModelError: The file is not a model, or the model does not work.
        TableLimitError: The model's table has too many columns or levels.
    """
    name = checked_name(upload.name, f"{upload.pointer_prefix}name", otherwise="model")
    _refuse_other_files(upload)
    require_storage(resources, workspace, upload.size_bytes())
    model_id = workspace.models.new_id()
    prefix = model_prefix(model_id)
    with reserved(resources, prefix):
        published = resources.store.publish(f"{prefix}imported/model.gcvae", upload.chunks())
        trained = _examined(resources, published)
        known = ("preset", "seed", "device")  # a minimal file only has the preset
        training = {name: trained.record[name] for name in known if name in trained.record}
        return workspace.models.add_ready(
            model_id=model_id,
            name=name,
            trained=trained,
            training={**training, **trained.record.get("settings", {})},
            kind=DataKind.DATABASE if "tables" in trained.schema else DataKind.TABLE,
        )


def _refuse_other_files(upload: Upload) -> None:
    """Raises InvalidModelError unless a file begins like a model: with eight bytes that contain the
    length of a JSON header, and the header. Some other files pass this quick check."""
    size_bytes = upload.size_bytes()
    upload.file.seek(0)
    length, start = int.from_bytes(upload.file.read(8), "little"), upload.file.read(1)
    if start != b"{" or length > size_bytes - 8:
        raise InvalidModelError(NO_MODEL)


def _examined(resources: Resources, published: Published) -> Trained:
    """Tests a stored model file in a child process, and checks the size of the model's table.
    Returns the description of the model that the database stores."""
    work = partial(
        examine_model,
        key=published.key,
        sha256=published.sha256,
        size_bytes=published.size_bytes,
        settings=resources.settings,
    )
    trained: Trained = from_thread.run(resources.inline.run, work)
    if "tables" in trained.schema:
        for table in trained.record["tables"].values():
            check_size(0, table["columns"], resources.settings)
        return trained
    schema = TableSchema.from_json(trained.schema)
    check_size(0, len(schema.names), resources.settings)
    check_levels(schema, resources.settings)
    return trained
