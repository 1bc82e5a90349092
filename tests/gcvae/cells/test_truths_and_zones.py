"""Truth values in other words than the schema's, and times of another zone, in all rows."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

from gcvae import Synthesizer, TableReader
from gcvae.cells.values import format_table, parse_table
from gcvae.errors import ConditionError, TableError
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses

N = 300
ZONE = "Asia/Tokyo"


def table() -> pd.DataFrame:
    random = np.random.default_rng(0)
    at = pd.Series(pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 9000, N), "h"))
    return pd.DataFrame(
        {
            "member": random.random(N) < 0.4,
            "paid": np.where(random.random(N) < 0.6, "yes", "no"),
            "flag": random.integers(0, 2, N),
            "naive": at,
            "zoned": at.dt.tz_localize(ZONE),
        }
    )


@pytest.fixture(scope="module")
def model() -> Synthesizer:
    return Synthesizer.fit(table(), preset="fast", settings={"max_steps": 5}, seed=0)


def scores(model: Synthesizer, rows: Any) -> list[float]:
    return list(model.log_likelihood(rows, seed=1)["log_likelihood"])


@pytest.mark.parametrize(
    ("levels", "cells", "truths"),
    [
        ((False, True), [0, 1], [False, True]),
        ((False, True), [0.0, 1.0, None], [False, True, None]),
        ((False, True), ["no", "YES", " t ", "1"], [False, True, True, True]),
        (("nein", "ja"), ["0", "Ja", "true"], [False, True, True]),
        (("no", "yes"), [False, True], [False, True]),
        ((1, 2), ["1", "2", "1.0", "0"], [False, True, False, "0"]),
        (("t", "f"), ["t", "F", "yes"], [False, True, True]),
        ((False, True), ["maybe", "2"], ["maybe", "2"]),
    ],
)
def test_a_truth_value_is_read_from_every_usual_word_that_no_level_contradicts(
    levels: tuple[Any, ...], cells: list[Any], truths: list[Any]
) -> None:
    document = {"name": "ok", "kind": "boolean", "levels": list(levels), "missing": {}}
    schema = TableSchema.from_json({"version": 1, "columns": [document]})
    read = parse_table(pd.DataFrame({"ok": cells}), schema)["ok"]
    assert [None if pd.isna(x) else x for x in read] == truths


def test_truth_values_in_other_words_score_alike_in_frames_and_files(
    model: Synthesizer, tmp_path: Path
) -> None:
    rows = table().head(5)
    expected = scores(model, rows)
    digits = rows.assign(
        member=rows["member"].astype(int), paid=rows["paid"] == "yes", flag=rows["flag"] == 1
    )
    path = tmp_path / "rows.csv"
    rows.assign(member=rows["member"].map({True: "Y", False: "N"})).to_csv(path, index=False)
    for given in (digits, polars.from_pandas(digits), path):
        assert scores(model, given) == pytest.approx(expected)
    for value in (1, "1", "yes", True):
        known = pd.DataFrame({"member": [value]})
        assert model.sample(given_rows=known, seed=1)["member"].tolist() == [True]
        assert model.sample(2, given={"member": value}, seed=1)["member"].all()
    assert model.sample(2, given={"flag": True}, seed=1)["flag"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("column", "cells", "dtype"),
    [
        ("member", [1, 0, None], "Int64"),
        ("member", [1, 0, None], "float64"),
        ("paid", [1, 0, None], "Int8"),
        ("member", [1, 0, None], "int64[pyarrow]"),
        ("flag", [True, False, None], "bool[pyarrow]"),
        ("paid", [True, False, None], "boolean"),
        ("flag", [True, False, None], "boolean"),
        ("flag", [True, False, None], "object"),
    ],
)
def test_truth_values_are_completed_in_the_words_of_the_rows(
    model: Synthesizer, column: str, cells: list[Any], dtype: str
) -> None:
    rows = table().head(3).assign(**{column: pd.Series(cells, dtype=dtype)})
    filled = model.impute(rows, seed=1)[column]
    assert str(filled.dtype) == dtype
    assert filled.tolist()[:2] == cells[:2]
    assert filled.tolist()[2] in (cells[0], cells[1])


@pytest.mark.parametrize("unit", ["ns", "us"])
def test_times_without_a_zone_are_of_their_columns_clock(model: Synthesizer, unit: Any) -> None:
    rows = table().head(5)
    naive = rows.assign(zoned=rows["zoned"].dt.tz_localize(None).dt.as_unit(unit))
    expected = scores(model, rows)
    objects = naive.assign(zoned=[time.to_pydatetime() for time in naive["zoned"]])
    for given in (naive, polars.from_pandas(naive), objects):
        assert scores(model, given) == pytest.approx(expected)
    assert (model.sample(given_rows=naive[["zoned"]], seed=1)["zoned"] == rows["zoned"]).all()
    blank = naive.assign(flag=None)
    filled = model.impute(rows.assign(flag=None), seed=1)["flag"].tolist()
    assert model.impute(blank, seed=1)["flag"].tolist() == filled


def test_times_with_a_zone_are_refused_where_the_column_has_none(model: Synthesizer) -> None:
    zoned = pd.DataFrame({"naive": [None, table()["zoned"][0]]})
    for rows in (zoned, polars.from_pandas(zoned), zoned.astype(object)):
        with refuses(TableError, column="naive"):
            model.log_likelihood(rows)
    with refuses(TableError, column="naive"):
        model.sample(given_rows=zoned, seed=1)
    for wanted in (zoned["naive"][1], {"min": zoned["naive"][1]}):
        with refuses(ConditionError, "/given/naive"):
            model.sample(1, given={"naive": wanted})


def test_generated_times_of_a_text_column_with_offsets_are_read_as_they_were_meant(
    tmp_path: Path,
) -> None:
    texts = table()["naive"].dt.strftime("%Y-%m-%d %H:%M:%S+02:00")
    path = tmp_path / "times.csv"
    pd.DataFrame({"at": texts, "x": range(N)}).to_csv(path, index=False)
    model = Synthesizer.fit(path, preset="fast", settings={"max_steps": 5}, seed=0)
    drawn = model.sample(20, seed=1)
    assert drawn["at"].dtype == "datetime64[us]"
    written = format_table(drawn, model.schema)
    assert written["at"].str.endswith("+02:00").all()
    assert scores(model, drawn) == pytest.approx(scores(model, written))


@pytest.mark.parametrize("words", [(0, 1), (0.0, 1.0), ("no", "yes")])
def test_known_truths_of_a_parquet_file_keep_their_words(
    model: Synthesizer, words: tuple[Any, Any], tmp_path: Path
) -> None:
    sent = table().head(20)
    sent["member"] = sent["member"].map({False: words[0], True: words[1]})
    sent["paid"] = sent["paid"].mask(np.arange(20) % 2 == 0)
    path = tmp_path / "rows.parquet"
    sent.to_parquet(path)
    blocks = model.impute_blocks(TableReader(path))
    found = pd.read_parquet(io.BytesIO(b"".join(stream_completed(blocks, model.schema, "parquet"))))
    assert found["member"].tolist() == sent["member"].tolist()
    assert found["paid"].notna().all()
