"""Endpoint that encodes rows: it returns the posterior of the latent vector z for each row."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Response

from catalog.job_kinds import JobKind
from gcvae.latent.encoding_stream import MEDIA_TYPES
from service.bodies import ResultBody, RowsBody
from service.http.negotiation import LIST_CONTENT, ListFormat
from service.inline import work as inline_work
from service.routes.results import cut_rows, result_routes
from service.routes.row_requests import RowsCall, documented, received_rows

router = APIRouter(tags=["latent space"])


@router.post(
    "/v1/models/{model_id}/encodings",
    response_class=Response,
    responses={
        200: {"content": LIST_CONTENT},
        202: {"model": ResultBody},
    },
    openapi_extra=documented(RowsBody),
)
async def encode_rows(
    call: RowsCall,
    format: ListFormat = None,
) -> Response:
    """Encode rows (JSON, CSV or Parquet): the response contains, in the order of the rows, the mean
    and standard deviation of the posterior of the latent vector z. Missing cells are treated as
    unknown. For more rows than `GCVAE_MAX_INLINE_SCORE_ROWS`, the response is 202 and a job."""
    async with received_rows(call, RowsBody, format, MEDIA_TYPES) as rows:
        found = await rows.checked()
        if found.frame is not None:
            filename = f"{rows.model.name}-encodings.csv" if rows.response_format == "csv" else None
            return await rows.answer(partial(inline_work.encode_rows, frame=found.frame), filename)

        shards = cut_rows(found.rows, call.resources.settings.score_shard_rows)
        return await rows.enqueue(JobKind.ENCODE, {}, fingerprinted=(), shards=shards)


result_routes(router, JobKind.ENCODE)
