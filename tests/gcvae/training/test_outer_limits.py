"""The limits of a model's columns: none is a single row's value, and every row stays within."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, infer_schema, parse_table
from gcvae.schema.columns import Column
from gcvae.training.outer_limits import with_outer_limits

FORMATS = ["%Y-%m-%d", "%d.%m.%y", "%m/%Y", "%Y", "%Y-%m-%d %H:%M:%S", "%H:%M", "%d/%m/%Y %H:%M"]


def limited(cells: Any, rows: int = 5, **said: Any) -> Column:
    frame = pd.DataFrame({"größe": cells})
    given = {"columns": [{"name": "größe", **said}]}
    schema = infer_schema(frame, given).schema
    typed = parse_table(frame, schema)
    return with_outer_limits(schema, typed, given, rows, with_atoms=True)["größe"]


def numbers() -> np.ndarray[Any, Any]:
    return np.random.default_rng(1).normal(300.0, 50.0, 500).round(2)


def test_limits_are_plain_but_for_those_that_are_said_or_shared() -> None:
    column = limited(numbers())
    assert (column.minimum, column.maximum) == (160.0, 460.0)
    assert limited(numbers(), minimum=2.34).minimum == 2.34
    assert limited(numbers(), minimum=float(numbers().min())).minimum == numbers().min()
    shared = np.concatenate([numbers(), np.full(5, 777.77)])
    assert limited(shared).maximum == 777.77
    assert limited(numbers(), rows=1).maximum == numbers().max()


def test_a_far_date_leaves_the_limit_of_the_other_side() -> None:
    days = np.datetime64("2020-01-01") + np.random.default_rng(1).integers(0, 2000, 900)
    cells = days.astype(str).tolist()
    near = limited(cells, rows=5)
    assert limited(cells + ["9999-12-31"] * 100, rows=5).minimum == near.minimum
    assert limited(cells + ["0001-01-01"] * 100, rows=5).maximum == near.maximum
    assert limited(cells + ["9999-12-31"] * 100, rows=5).maximum == "9999-12-31"


def test_of_a_whole_schema_limits_beyond_all_cells_are_said() -> None:
    frame = pd.DataFrame({"n": numbers()})
    given = {"columns": [{"name": "n", "maximum": 501.25}]}
    schema = infer_schema(frame, given).schema
    found = with_outer_limits(schema, parse_table(frame, schema), schema, 5, with_atoms=True)["n"]
    assert (found.minimum, found.maximum) == (160.0, 501.25)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "Int16"])
def test_no_limit_leaves_the_type_of_the_column(dtype: str) -> None:
    limits = np.iinfo(dtype.lower())
    cells = np.linspace(max(limits.min, -30_000), min(limits.max, 32_700), 200).astype(int)
    column = limited(pd.Series(cells).drop_duplicates().astype(dtype), kind="integer")
    assert column.minimum <= cells[0]
    assert cells[-1] <= column.maximum
    assert limits.min <= column.minimum
    assert column.maximum <= limits.max


@pytest.mark.parametrize("written", FORMATS)
def test_every_date_is_within_limits_that_its_format_reads(written: str) -> None:
    random = np.random.default_rng(2)
    for years in (0.02, 0.9, 55.0):
        seconds = random.integers(0, int(years * 365 * 86_400), 300)
        times = pd.Timestamp("1971-02-03") + pd.to_timedelta(seconds, "s")
        texts = pd.Series(times.strftime(written))
        column = limited(texts, kind="datetime", datetime_format=written)
        ends = pd.to_datetime([column.minimum, column.maximum], format=written)
        found = pd.to_datetime(texts, format=written)
        assert ends[0] <= found.min()
        assert found.max() <= ends[1]
        counts = found.value_counts()
        if years == 55.0 and counts[found.max()] < 5 and len(counts) > 300 / 12:
            assert ends[1] > found.max()


def test_a_model_knows_no_single_rows_extreme_and_scores_its_row() -> None:
    cells = numbers()
    cells[7], cells[8] = 6543.21, 4.56
    frame = pd.DataFrame({"n": cells, "m": ["a", "b"] * 250})
    model = Synthesizer.fit(frame, settings={"max_steps": 5}, seed=1)
    assert model.schema["n"].maximum == 6600
    again = Synthesizer.from_bytes(model.to_bytes())
    for cell in (r"6543\.21", r"4\.56"):
        whole = rf"(?<!\d){cell}(?!\d)"  # and no digits of another number
        assert re.search(whole, model.to_bytes().decode("latin-1")) is None
    column = again.codec.to_json()["columns"]["n"]
    knots = np.array(column["distribution"]["knots"]) * column["line"]["scale"]
    knots += column["line"]["offset"]
    assert (np.abs(knots - 6543.21) > 1000.0).all()
    scores = again.log_likelihood(frame.iloc[:20], draws=4)["log_likelihood"]
    assert np.isfinite(scores).all()
    drawn = again.sample(2000, seed=1)["n"]
    assert drawn.between(2.0, 6600).all()
    assert again.sample(5, given={"n": {"min": 6540}}, seed=1)["n"].min() >= 6540
    told = Synthesizer.fit(frame, settings={"max_steps": 5, "rare_level_rows": 1}, seed=1)
    assert told.schema["n"].maximum == 6543.21
