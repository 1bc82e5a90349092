"""Laws of shards: rows drawn or scored in several places and joined are those of one place."""

from __future__ import annotations

import math
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import Synthesizer, TableReader
from gcvae.files.shards import SHARD_UNIT_ROWS, FileShard
from gcvae.files.table_stream import MEDIA_TYPES, join_parquet, stream_table
from gcvae.numerics.exact_sum import ExactSum
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.sampling.known_cells import BLOCK_ROWS
from gcvae.sampling.samplers import SAMPLE_BLOCK_ROWS
from gcvae.scoring.row_scores import SCORE_BLOCK_ROWS
from gcvae.scoring.score_options import ScoreOptions
from gcvae.scoring.score_stream import ScoreTotals, scores_end, stream_scores
from tests.gcvae.conditioned_tables import SCHEMA, table

CUTS = (0, SHARD_UNIT_ROWS, 2 * SHARD_UNIT_ROWS, 2 * SHARD_UNIT_ROWS + 300)
ROWS = CUTS[-1]


@cache
def model() -> Synthesizer:
    quick = {"max_steps": 20, "evaluate_every_steps": 20}
    return Synthesizer.fit(
        table(), schema=SCHEMA, preset="paper-gcvae", settings=quick, seed=0, device="cpu"
    )


def shards(cuts: tuple[int, ...]) -> list[tuple[range, FileShard]]:
    runs = [range(*ends) for ends in pairwise(cuts)]
    return [(run, FileShard(run.start == 0, run.stop == cuts[-1])) for run in runs]


def test_blocks_of_every_kind_begin_where_a_run_of_rows_may() -> None:
    assert SHARD_UNIT_ROWS % SAMPLE_BLOCK_ROWS == 0
    assert SHARD_UNIT_ROWS % SCORE_BLOCK_ROWS == 0
    assert SHARD_UNIT_ROWS % BLOCK_ROWS == 0


@pytest.mark.parametrize("form", MEDIA_TYPES)
def test_a_table_drawn_in_pieces_is_the_table_drawn_whole(form: str, tmp_path: Path) -> None:
    schema = model().schema
    whole = b"".join(stream_table(model().sample_blocks(ROWS, 3), schema, form))
    files = []
    for run, shard in reversed(shards(CUTS)):
        file = tmp_path / f"{run.start}"
        blocks = model().sample_blocks(ROWS, 3, among=run)
        file.write_bytes(b"".join(stream_table(blocks, schema, form, shard)))
        files.insert(0, file)
    if form == "parquet":
        assert b"".join(join_parquet(files)) == whole
    else:
        assert b"".join(file.read_bytes() for file in files) == whole


@pytest.mark.parametrize(
    "conditions",
    [
        {"given": {"grade": "low", "age": {"min": 30, "max": 60}}},
        {"distribution": {"grade": {"low": 0.5, "high": 0.5}}},
    ],
    ids=["given", "distribution"],
)
def test_rows_under_conditions_do_not_depend_on_who_draws_them(conditions: dict[str, Any]) -> None:
    cuts = (0, SHARD_UNIT_ROWS, SHARD_UNIT_ROWS + 300)
    whole = model().sample(cuts[-1], 3, **conditions)
    parts = [model().sample_blocks(cuts[-1], 3, among=run, **conditions) for run, _ in shards(cuts)]
    pd.testing.assert_frame_equal(pd.concat(chain(*parts), ignore_index=True), whole)


def test_rows_around_known_cells_do_not_depend_on_who_draws_them() -> None:
    known = pd.DataFrame({"grade": ["low", "mid", "high"] * 1370})  # 4,110 rows
    cuts = (0, SHARD_UNIT_ROWS, len(known))
    last = model().sample_blocks(len(known), 3, among=range(*cuts[1:]), given_rows=known)
    whole = model().sample(len(known), 3, given_rows=known)
    found = pd.concat(last, ignore_index=True)
    pd.testing.assert_frame_equal(found, whole.iloc[cuts[1] :].reset_index(drop=True))


@pytest.mark.parametrize("form", ["csv", "json"])
def test_scores_made_in_pieces_are_those_made_in_one(form: str) -> None:
    frame = table(400)
    frame.loc[[3, 130, 131], "grade"] = "unheard of"
    options, scorer = ScoreOptions(draws=5), model().scorer
    heading = {"measure": "density"}
    whole_totals, totals = ScoreTotals(), ScoreTotals()
    whole = b"".join(stream_scores(scorer.blocks(frame, options), form, heading, whole_totals))
    found = b""
    for run, shard in shards((0, 128, 192, 400)):
        own = ScoreTotals()
        blocks = scorer.blocks(frame, options, run)
        begun = FileShard(shard.is_first, is_last=False)
        found += b"".join(stream_scores(blocks, form, heading, own, begun))
        totals.add_all(ScoreTotals.of_state(own.state()))
    assert found + scores_end(form, totals) == whole
    assert totals.to_json() == whole_totals.to_json()
    assert totals.to_json()["n_impossible"] == 3


@pytest.mark.parametrize(("source", "draws"), [("csv", 1), ("parquet", 2)])
def test_tables_completed_in_pieces_are_those_completed_in_one(
    source: str, draws: int, tmp_path: Path
) -> None:
    path, schema = tmp_path / f"table.{source}", model().schema
    blanked(path, BLOCK_ROWS + 140)
    whole = list(model().impute_blocks(TableReader(path), draws, 5))
    made = [
        (list(model().impute_blocks(TableReader(path), draws, 5, run)), shard)
        for run, shard in shards((0, BLOCK_ROWS, BLOCK_ROWS + 140))
    ]
    for form in MEDIA_TYPES:
        files = [tmp_path / str(number) for number in range(len(made))]
        for file, (blocks, shard) in zip(files, made, strict=True):
            file.write_bytes(b"".join(stream_completed(blocks, schema, form, shard)))
        found = join_parquet(files) if form == "parquet" else map(Path.read_bytes, files)
        assert b"".join(found) == b"".join(stream_completed(whole, schema, form))


def blanked(path: Path, n_rows: int) -> None:
    """A file of rows with blanks, here many and there none; of Parquet in many row groups."""
    frame = table(n_rows)
    frame["grade"] = frame["grade"].where(frame.index % 3 > 0)
    frame["age"] = frame["age"].astype("Int64").mask(frame.index > BLOCK_ROWS)
    if path.suffix == ".parquet":
        frame.to_parquet(path, row_group_size=200)
    else:
        frame.to_csv(path, index=False)


@given(st.lists(st.floats(allow_nan=False), max_size=20), st.integers(0, 20))
def test_an_exact_sum_does_not_depend_on_who_adds_what(values: list[float], cut: int) -> None:
    finite = [value for value in values if math.isfinite(value)]
    whole, first, rest = ExactSum(), ExactSum(), ExactSum()
    for number, value in enumerate(finite):
        whole.add(value)
        (first if number < cut else rest).add(value)
    rest = ExactSum.from_json(rest.to_json())
    rest.add_all(first)
    try:
        assert rest.value == whole.value == math.fsum(finite)
    except OverflowError:
        assert max(map(abs, finite)) > 1e300


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_sum_with_a_number_that_is_not_finite_is_not_finite(value: float) -> None:
    total = ExactSum()
    for part in (1.5, value, 2.5):
        total.add(part)
    assert repr(ExactSum.from_json(total.to_json()).value) == repr(value)
