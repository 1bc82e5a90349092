"""Numbers and dates at the ends of their ranges: kept apart, kept to the digit, or refused."""

from __future__ import annotations

import datetime
import decimal
import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from gcvae import Synthesizer, infer_schema, parse_table, read_table, write_table
from gcvae.errors import TableError
from gcvae.schema.kinds import ColumnKind

BRIEFLY = {"max_steps": 10}
SOME_TIME, THE_END = datetime.datetime(2020, 1, 1), datetime.datetime(9999, 12, 31)


def read_parquet(**columns: Any) -> pd.DataFrame:
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file)
    return read_table(file.getvalue())


@pytest.fixture(scope="module")
def many_decades() -> tuple[pd.DataFrame, Synthesizer]:
    random = np.random.default_rng(0)
    u = random.random(600)
    table = pd.DataFrame({"p": np.where(u < 0.3, 10 ** (-40 * u), u), "k": random.normal(size=600)})
    return table, Synthesizer.fit(table, preset="fast", settings=BRIEFLY, seed=0)


def test_small_numbers_beside_large_ones_keep_their_digits(
    many_decades: tuple[pd.DataFrame, Synthesizer],
) -> None:
    table, synthesizer = many_decades
    back = synthesizer.codec.decode(
        synthesizer.codec.encode(parse_table(table, synthesizer.schema))
    )
    np.testing.assert_allclose(back["p"], table["p"], rtol=1e-6)
    drawn = synthesizer.sample(600, seed=1)["p"]
    assert (drawn == table["p"].min()).mean() < 0.01
    assert drawn.quantile(0.1) == pytest.approx(table["p"].quantile(0.1), rel=100)


def test_a_condition_on_small_numbers_holds(
    many_decades: tuple[pd.DataFrame, Synthesizer],
) -> None:
    drawn = many_decades[1].sample(100, given={"p": {"min": 4.03e-9, "max": 1e-3}}, seed=1)["p"]
    assert drawn.between(4.03e-9, 1e-3).all()


@pytest.mark.parametrize(
    "dates",
    [
        pa.array([*[SOME_TIME.date()] * 9, THE_END.date()]),
        pa.array([*[SOME_TIME] * 9, THE_END], pa.timestamp("us")),
        pa.array([*[SOME_TIME] * 9, THE_END], pa.timestamp("s")),
    ],
    ids=["date32", "us", "s"],
)
def test_a_far_date_is_a_date(dates: Any) -> None:
    table = read_parquet(end=dates)
    assert table["end"].iloc[-1] == THE_END
    assert infer_schema(table).schema["end"].kind == "datetime"


def test_times_of_nanoseconds_are_trained_on_their_own_schema() -> None:
    random = np.random.default_rng(0)
    times = pd.to_datetime("2020-01-01") + pd.to_timedelta(random.integers(0, 10**9, 200), "us")
    table = read_parquet(at=pa.array(times), k=random.normal(size=200).round(2))
    synthesizer = Synthesizer.fit(table, preset="fast", settings={"max_steps": 5}, seed=0)
    parsed = parse_table(table, synthesizer.schema)["at"]
    pd.testing.assert_series_equal(parsed.astype("datetime64[ns]"), table["at"])
    assert synthesizer.sample(50, seed=1)["at"].between(times.min(), times.max()).all()


def test_decimals_are_kept_to_the_digit(tmp_path: Path) -> None:
    cells = [decimal.Decimal(n).scaleb(-3) for n in range(-2000, 2000, 7)]
    table = read_parquet(price=pa.array(cells, pa.decimal128(20, 3)))
    schema = infer_schema(table).schema
    assert schema["price"].decimals == 3
    write_table(parse_table(table, schema), tmp_path / "again.csv", schema)
    assert (tmp_path / "again.csv").read_text().split()[1:] == [str(cell) for cell in cells]


@pytest.mark.parametrize("base", [2**53, 2**55, 2**62 - 100])
def test_large_whole_numbers_near_each_other_are_not_one(base: int) -> None:
    table = pd.DataFrame({"n": [str(base + i % 25) for i in range(300)], "k": ["a", "b"] * 150})
    inferred = infer_schema(table)
    assert inferred.schema["n"].kind is ColumnKind.INTEGER
    assert inferred.warnings == ()
    drawn = Synthesizer.fit(table, preset="fast", settings=BRIEFLY, seed=0).sample(200, seed=1)
    assert drawn["n"].astype(int).between(base, base + 24).all()
    assert drawn["n"].nunique() > 10


def test_a_map_is_drawn_in_the_form_that_its_name_says(
    many_decades: tuple[pd.DataFrame, Synthesizer], tmp_path: Path
) -> None:
    dependency_map = many_decades[1].dependencies("data")
    dependency_map.draw(tmp_path / "map.svg")
    dependency_map.draw(tmp_path / "map.png")
    assert (tmp_path / "map.svg").read_bytes().startswith(b"<?xml")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_whole_numbers_beyond_int64_are_refused_by_name() -> None:
    numbers = pd.DataFrame({"a": np.arange(60.0), "x": [10**30 + 10**26 * i for i in range(60)]})
    with pytest.raises(TableError, match="more than 64 bits"):
        Synthesizer.fit(numbers, preset="fast", settings={"max_steps": 5})
    model = Synthesizer.fit(numbers.astype(float), preset="fast", settings={"max_steps": 5})
    with pytest.raises(TableError, match="'x'"):
        model.log_likelihood(pd.DataFrame({"a": [1.0], "x": pd.Series([10**400], dtype=object)}))


def test_a_column_without_a_name_takes_no_part_in_rules() -> None:
    random = np.random.default_rng(0)
    table = pd.DataFrame({"": random.integers(1, 99, 300), "b": random.integers(1, 99, 300)})
    table["c"] = table[""] + table["b"]
    model = Synthesizer.fit(table, preset="fast", settings={"max_steps": 5})
    assert list(model.sample(5)) == ["", "b", "c"]
    assert all("``" not in rule.text for rule in model.schema.rules or ())
