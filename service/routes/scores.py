"""Endpoint that scores rows, which returns their log-likelihoods under a model."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from pydantic import Field, StrictBool
from starlette.concurrency import run_in_threadpool

from catalog.job_kinds import SCORE_DRAWS, JobKind
from catalog.records import DataKind
from gcvae.errors import Problem, SettingError
from gcvae.numerics.seeds import MAX_SEED
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.score_stream import MEDIA_TYPES
from gcvae.scoring.scoring_setting import require_plain, require_scores
from gcvae.training.costs import Computation
from service.bodies import ResultBody, RowsBody, Seed, Whole
from service.errors import RequestError, TableLimitError
from service.http.negotiation import LIST_CONTENT, ListFormat
from service.inline import work as inline_work
from service.routes.database_rows import enqueue_database
from service.routes.results import cut_rows, estimate, result_routes
from service.routes.row_requests import RowsCall, documented, given, received_rows
from service.settings import ServiceSettings

router = APIRouter(tags=["scores"])


class NewScoresBody(RowsBody):
    """Rows to score, and options. A missing cell is null and is integrated out."""

    draws: Whole | None = Field(
        None, ge=1, description="fixed number of draws of z per row, instead of a tolerance"
    )
    tolerance: float | None = Field(
        None,
        ge=0.001,
        allow_inf_nan=False,
        strict=True,
        description="target standard error of each score in nats; 0.1 without `draws`",
    )
    seed: Seed = 0
    measure: Literal["density", "rounding_cell", "pmf"] = Field(
        "density",
        description="measure of continuous values: density per original unit, mass of the rounding "
        "cell, or mass of the quantile bin",
    )
    score_missingness: StrictBool = Field(
        False,
        description="score missing cells by their probability instead of integrating them out",
    )


@router.post(
    "/v1/models/{model_id}/scores",
    response_class=Response,
    responses={
        200: {"content": LIST_CONTENT},
        202: {"model": ResultBody},
    },
    openapi_extra=documented(NewScoresBody, ("draws", "seed", "format", "encoding", "priority")),
)
async def score_rows(
    call: RowsCall,
    draws: Annotated[
        int | None,
        Query(ge=1, description="fixed number of draws of z per row, instead of a tolerance"),
    ] = None,
    tolerance: Annotated[
        float | None,
        Query(
            ge=0.001,
            allow_inf_nan=False,
            description="target standard error of each score in nats; default 0.1",
        ),
    ] = None,
    seed: Annotated[int | None, Query(ge=0, le=MAX_SEED)] = None,
    measure: Annotated[
        Literal["density", "rounding_cell", "pmf"] | None,
        Query(description="measure of continuous values"),
    ] = None,
    score_missingness: Annotated[
        bool | None, Query(description="score missing cells instead of integrating them out")
    ] = None,
    format: ListFormat = None,
) -> Response:
    """Score rows (JSON, CSV or Parquet). The response contains for each row a lower bound on log
    p(row) in nats, its standard error, its percentile among held-out rows (for a row with missing
    cells, among synthetic rows with the same cells missing), an `anomaly` p-value (small is
    anomalous), the most anomalous cell (`odd_cell`), and contributions of the columns, whose sum is
    the bound. `measure` and `notes` in the JSON explain the numbers. Missing cells are integrated
    out; a category that training did not contain scores -Infinity.

    If the model's `scoring` is `flag`, each row only has `is_rare`; if it is `off`, the response is
    403. For more rows than `GCVAE_MAX_INLINE_SCORE_ROWS`, the response is 202 and a job.

    For a model of a database, send its tables (a ZIP file, or several files in a form); `draws` and
    `seed` are the only options. The response is 202 and a job. Its result has a line for each
    household (a row without a parent and all rows that refer to it, directly or indirectly):
    `table` and `row` of the row without a parent, and `log_likelihood` and `anomaly` of the
    household, with `odd_table`, `odd_row` and `odd_cell`.
    """
    query = given(
        draws=draws,
        tolerance=tolerance,
        seed=seed,
        measure=measure,
        score_missingness=score_missingness,
    )
    settings = call.resources.settings
    model = await run_in_threadpool(call.workspace.models.get, call.model_id)
    if model.kind is DataKind.DATABASE:
        options = ScoreOptions(draws=draws or SCORE_DRAWS, seed=seed or 0)
        _check_draws(options, query, settings)
        return await enqueue_database(
            call, model, JobKind.SCORE, options.to_json(), query, _OF_DATABASE, format, MEDIA_TYPES
        )
    async with received_rows(call, NewScoresBody, format, MEDIA_TYPES) as rows:
        require_scores(rows.model.scoring)
        options = _options(rows.body_options | query, rows.model.scoring)
        _check_draws(options, query, settings)
        found = await rows.checked()
        if found.frame is not None:
            work = partial(inline_work.score_rows, frame=found.frame, options=options)
            filename = f"{rows.model.name}-scores.csv" if rows.response_format == "csv" else None
            return await rows.answer(work, filename)

        return await rows.enqueue(
            JobKind.SCORE,
            options.to_json(),
            fingerprinted=options.to_json().values(),
            shards=cut_rows(found.rows, settings.score_shard_rows),
            estimate=estimate(rows.model, Computation.SCORE, found.rows, options.typical_draws),
        )


_OF_DATABASE = ("draws", "seed")
"""Query parameters of scores of a database."""

result_routes(router, JobKind.SCORE)


def _options(members: Mapping[str, Any], scoring: str) -> ScoreOptions:
    try:
        options = ScoreOptions(**members)
        require_plain(scoring, options)
        return options
    except SettingError as error:
        raise RequestError(*error.problems) from error


def _check_draws(
    options: ScoreOptions, query: Mapping[str, Any], settings: ServiceSettings
) -> None:
    limit = settings.max_score_draws
    if options.draws is None or options.draws <= limit:
        return
    pointer = "?draws" if "draws" in query else "/draws"
    problem = Problem(f"draws is {options.draws}", pointer, expected=f"at most {limit}")
    raise TableLimitError(f"{options.draws} draws are requested", limit, "max_score_draws", problem)
