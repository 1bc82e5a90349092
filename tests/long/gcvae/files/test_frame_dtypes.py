"""What goes in comes out: drawn and completed columns have the dtypes of the user's data frame."""

from __future__ import annotations

import io
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from gcvae import Synthesizer, TableReader, format_table, infer_schema, parse_table, write_table
from gcvae.errors import SchemaError, TableError
from gcvae.files.frame_dtypes import with_dtype
from gcvae.files.table_stream import stream_table
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.schema.columns import TableSchema
from gcvae.trial import try_out
from tests.wordings import refuses

pytestmark = pytest.mark.usefixtures("few_rows")

N = 240
RNG = np.random.default_rng(0)
WHOLE, FEW = RNG.integers(0, 100, N), RNG.integers(0, 4, N)
REAL = np.round(RNG.normal(size=N) * 10, 2)
TEXT = [str(x) for x in np.array(["a", "b", "c", "d"])[FEW]]
DAYS = [date(2024, 1, 1) + timedelta(days=int(n)) for n in WHOLE]
TIMES = pd.Series(pd.to_datetime(DAYS))
HOLES = np.random.default_rng(1).random(N) < 0.15
NUMPY = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NULLABLE = [name.replace("int", "Int").replace("u", "U") for name in NUMPY]
STRINGS = {
    "python": pd.StringDtype("python"),
    "pyarrow": pd.StringDtype("pyarrow"),
    "nan": pd.StringDtype(na_value=np.nan),
}
ARROW: dict[Any, list[Any]] = {
    pa.int8(): WHOLE.tolist(),
    pa.string(): TEXT,
    pa.large_string(): TEXT,
    pa.float32(): REAL.tolist(),
    pa.bool_(): (FEW > 1).tolist(),
    pa.date32(): DAYS,
    pa.timestamp("ms", "Europe/Berlin"): list(TIMES.dt.tz_localize("Europe/Berlin")),
    pa.duration("s"): [timedelta(hours=n) for n in WHOLE.tolist()],
}


def gaps(values: Any) -> list[Any]:
    """The values with blanks among them."""
    return [None if hole else value for hole, value in zip(HOLES, values, strict=True)]


def categories() -> dict[str, pd.Categorical]:
    return {
        "unused": pd.Categorical(gaps(TEXT), categories=["d", "c", "b", "a", "none"]),
        "ordered": pd.Categorical(gaps(TEXT), categories=["d", "c", "b", "a"], ordered=True),
        "whole": pd.Categorical(gaps(FEW.tolist()), categories=[3, 2, 1, 0, 9]),
        "real": pd.Categorical(FEW / 2),
        "bool": pd.Categorical(gaps((FEW > 1).tolist()), categories=[False, True]),
        "one": pd.Categorical(["k"] * N),
        "中文": pd.Categorical(np.array(["价", "格", "ß", "."])[FEW]),
    }


def columns() -> dict[str, Any]:
    """A column of every dtype that data frames have, most of them with blanks."""
    found: dict[str, Any] = {name: pd.Series(WHOLE).astype(name) for name in NUMPY}
    found |= {name: pd.Series(gaps(WHOLE.tolist()), dtype=name) for name in NULLABLE}
    found |= {f"{name}, none blank": pd.Series(WHOLE, dtype=name) for name in NULLABLE}
    found |= {f"{t}, few": pd.Series(gaps(FEW.tolist()), dtype=t) for t in ("Int8", "UInt64")}
    found |= {t: pd.Series(REAL, dtype=t) for t in ("float16", "float32", "float64")}
    found |= {t: pd.Series(gaps(REAL.tolist()), dtype=t) for t in ("Float32", "Float64")}
    found["float32, blanks"] = pd.Series(gaps(REAL.tolist()), dtype="float32")
    found["whole floats"] = pd.Series(gaps(WHOLE.tolist()), dtype="float64")
    found |= {"int8, few": pd.Series(FEW, dtype="int8"), "int8, one": np.ones(N, dtype="int8")}
    found |= {"bool": FEW > 1, "boolean": pd.Series(FEW > 1, dtype="boolean")}
    found["boolean, blanks"] = pd.Series(gaps((FEW > 1).tolist()), dtype="boolean")
    found |= {f"string {k}": pd.Series(gaps(TEXT), dtype=t) for k, t in STRINGS.items()}
    found["string of digits"] = pd.Series([f"{n}" for n in WHOLE], dtype="string[python]")
    found |= {f"category {name}": pd.Series(cells) for name, cells in categories().items()}
    found |= {f"datetime64[{u}]": TIMES.astype(f"datetime64[{u}]") for u in ("s", "ms", "us", "ns")}
    found["zoned"] = TIMES.dt.tz_localize("Europe/Berlin")
    found["zoned s"] = TIMES.astype("datetime64[s]").dt.tz_localize("America/New_York")
    found["offset"] = TIMES.dt.tz_localize("+02:00")
    found["far"] = TIMES.astype("datetime64[s]").mask(
        FEW == 0, pd.Timestamp("9999-12-31").as_unit("s")
    )
    hours = pd.Series(pd.to_timedelta(WHOLE, unit="h"))
    found |= {f"timedelta64[{u}]": hours.astype(f"timedelta64[{u}]") for u in ("s", "ms", "ns")}
    found |= {f"period {freq}": TIMES.dt.to_period(freq) for freq in ("D", "M", "Q", "Y")}
    found["period h"] = (TIMES + hours).dt.to_period("h")
    found["period, blanks"] = TIMES.dt.to_period("D").mask(pd.Series(HOLES))
    return (
        found
        | {name: pd.Series(cells, dtype=object) for name, cells in objects().items()}
        | {
            f"arrow {t}": pd.Series(gaps(cells), dtype=pd.ArrowDtype(t))
            for t, cells in ARROW.items()
        }
    )


def objects() -> dict[str, list[Any]]:
    return {
        "text": gaps(TEXT),
        "dates": gaps(DAYS),
        "one date": [DAYS[0]] * N,
        "clock": [time(n % 24, n % 60) for n in WHOLE.tolist()],
        "moments": [datetime(2024, 1, 1, n % 24) for n in WHOLE.tolist()],
        "spans": [timedelta(hours=n) for n in WHOLE.tolist()],
        "decimals": gaps([Decimal(n) / 100 for n in WHOLE.tolist()]),
        "whole numbers": gaps(WHOLE.tolist()),
        "truths": gaps((FEW > 1).tolist()),
    }


FRAME = pd.DataFrame(columns())
NAMES = list(FRAME)


@pytest.fixture(scope="module", name="fitted")
def _fitted() -> Synthesizer:
    """A model of the frame, as it is after saving and loading."""
    made = Synthesizer.fit(FRAME, preset="fast", settings={"max_steps": 4}, seed=1)
    loaded = Synthesizer.from_bytes(made.to_bytes())
    pd.testing.assert_frame_equal(made.sample(20, seed=2), loaded.sample(20, seed=2))
    return loaded


@pytest.fixture(scope="module", name="drawn")
def _drawn(fitted: Synthesizer) -> pd.DataFrame:
    return fitted.sample(300, seed=3)


@pytest.fixture(scope="module", name="completed")
def _completed(fitted: Synthesizer) -> pd.DataFrame:
    return fitted.impute(FRAME.head(90), seed=4)


def kinds(series: pd.Series[Any]) -> set[type]:
    """What objects are; pandas' own durations and moments are Python's."""
    ours = {pd.Timedelta: timedelta, pd.Timestamp: datetime}
    return {ours.get(type(cell), type(cell)) for cell in series.dropna()}


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_that_was_inferred_fits_its_frame_again(name: str) -> None:
    frame = FRAME[[name]].assign(other=REAL)
    schema = infer_schema(frame).schema
    again = TableSchema.from_json(schema.to_json())
    assert infer_schema(frame, again).schema == again == schema
    pd.testing.assert_frame_equal(parse_table(frame, again), parse_table(frame, schema))


@pytest.mark.parametrize("name", NAMES)
def test_a_drawn_column_has_the_dtype_of_the_frame(drawn: pd.DataFrame, name: str) -> None:
    assert drawn[name].dtype == FRAME[name].dtype
    if FRAME[name].dtype == object:
        assert kinds(drawn[name]) <= kinds(FRAME[name])


@pytest.mark.parametrize("name", NAMES)
def test_a_completed_column_has_its_own_dtype_and_its_known_cells(
    completed: pd.DataFrame, name: str
) -> None:
    own = FRAME[name].head(90)
    assert completed[name].dtype == own.dtype
    known = own.notna()
    assert completed[name][known].equals(own[known])
    assert completed[name].notna().all()
    if own.dtype == object:
        assert kinds(completed[name]) <= kinds(FRAME[name])


def test_rows_of_any_dtype_are_written_scored_and_encoded_as_the_library_s_own(
    fitted: Synthesizer, drawn: pd.DataFrame
) -> None:
    schema = fitted.schema
    own = parse_table(drawn, schema)
    pd.testing.assert_frame_equal(format_table(drawn, schema), format_table(own, schema))
    for form in ("csv", "parquet", "json", "jsonl"):
        assert b"".join(stream_table([drawn], schema, form)) == b"".join(
            stream_table([own], schema, form)
        )
    file = io.BytesIO()
    write_table(drawn, file, schema, "csv")
    again = parse_table(table_in(file), schema)
    pd.testing.assert_frame_equal(format_table(again, schema), format_table(own, schema))
    scores = fitted.log_likelihood(drawn.head(4))  # each set of blanks costs a reference
    zoned = [name for name in NAMES if "tz=" in (schema[name].parquet_type or "")]
    moments = {name: own[name].dt.tz_localize("UTC") for name in zoned}  # else the column's clock
    pd.testing.assert_frame_equal(scores, fitted.log_likelihood(own.assign(**moments).head(4)))
    assert np.isfinite(scores["log_likelihood"]).all()
    pd.testing.assert_frame_equal(
        fitted.encode(drawn.head(20)), fitted.encode(own.assign(**moments).head(20))
    )


def table_in(file: io.BytesIO) -> pd.DataFrame:
    file.seek(0)
    return TableReader(file).read()


def test_what_is_written_as_parquet_has_the_types_that_pandas_gives_it(
    fitted: Synthesizer, drawn: pd.DataFrame
) -> None:
    periods = [name for name in NAMES if name.startswith("period")]
    names = [name for name in NAMES if name not in periods]
    written = parquet.read_table(
        pa.BufferReader(b"".join(stream_table([drawn], fitted.schema, "parquet")))
    )
    file = io.BytesIO()
    FRAME[names].to_parquet(file, index=False)
    wanted = parquet.read_schema(file)
    found = {field.name: field.type for field in written.schema if field.name in names}
    for field in wanted:
        if FRAME[field.name].dtype != object and not pa.types.is_dictionary(field.type):
            assert found[field.name] == field.type, field.name
    assert pa.types.is_dictionary(found["category unused"])


def test_blocks_have_the_dtypes_of_the_whole(fitted: Synthesizer) -> None:
    [block] = fitted.sample_blocks(5, seed=3)
    assert (block.dtypes == fitted.sample(5, seed=3).dtypes).all()
    given = fitted.sample(40, 3, given={"int8, few": [1, 2], "category ordered": {"min": "b"}})
    assert (given.dtypes == block.dtypes).all()
    assert set(given["int8, few"]) == {1, 2}


def test_a_model_of_every_dtype_can_be_imported(fitted: Synthesizer) -> None:
    try_out(fitted)


def test_categories_keep_their_order_and_those_that_nobody_has(drawn: pd.DataFrame) -> None:
    assert drawn["category unused"].cat.categories.tolist() == ["d", "c", "b", "a", "none"]
    assert drawn["category ordered"].cat.ordered
    assert drawn["category ordered"].min() == "d"
    assert drawn["category whole"].cat.categories.tolist() == [3, 2, 1, 0, 9]


def test_a_category_that_the_frame_does_not_have_yet_is_added(fitted: Synthesizer) -> None:
    rows = FRAME.head(40).copy()
    rows["category unused"] = pd.Categorical([None] * 40, categories=["d"])
    filled = fitted.impute(rows)["category unused"]
    assert filled.notna().all()
    assert filled.cat.categories[0] == "d"


def test_intervals_come_as_ordered_texts_and_dates_as_categories_of_dates() -> None:
    frame = pd.DataFrame({"x": REAL, "cut": pd.cut(REAL, [-100, -5, 0, 5, 100])})
    frame["day"] = pd.Categorical(gaps(list(TIMES[:5].to_numpy()[FEW])))
    fitted = Synthesizer.fit(frame, preset="fast", settings={"max_steps": 3})
    drawn = fitted.sample(50, seed=1)
    assert drawn["cut"].cat.categories.tolist() == [str(x) for x in frame["cut"].cat.categories]
    assert drawn["cut"].cat.ordered
    assert drawn["day"].cat.categories.dtype == "datetime64[ns]"
    filled = fitted.impute(frame.assign(cut=frame["cut"].mask(HOLES)))
    assert filled["day"].notna().all()


def test_a_file_keeps_the_library_s_own_dtypes() -> None:
    file = io.BytesIO()
    FRAME[["int8", "category unused"]].to_parquet(file)
    schema = infer_schema(TableReader(file)).schema
    assert [column.dtype for column in schema] == [None, None]
    assert schema["int8"].parquet_type == "int8"


def test_a_schema_says_the_dtype_and_an_unknown_one_is_refused() -> None:
    given = {"columns": [{"name": "n", "dtype": "Int16"}, {"name": "t", "dtype": "category"}]}
    text = pd.DataFrame({"n": [str(n) for n in WHOLE], "t": TEXT})
    schema = infer_schema(text, given).schema
    assert TableSchema.from_json(schema.to_json()) == schema
    fitted = Synthesizer.fit(text, schema=schema, preset="fast", settings={"max_steps": 3})
    assert fitted.sample(5).dtypes.astype(str).tolist() == ["Int16", "category"]
    for name in ("int9", "datetime64[s, Atlantis/Here]", "(1000000,)f8", "object_"):
        with refuses(SchemaError, "/columns/0/dtype"):
            infer_schema(text, {"columns": [{"name": "n", "dtype": name}]})


def test_a_value_that_the_dtype_can_not_hold_is_named() -> None:
    schema = infer_schema(pd.DataFrame({"n": WHOLE.astype("int8"), "x": REAL})).schema
    with refuses(TableError, column="n"):
        with_dtype(pd.Series([3000]), schema["n"])


def test_completed_frames_of_any_dtype_are_streamed(fitted: Synthesizer) -> None:
    rows = FRAME.head(30)
    for form in ("csv", "json", "parquet"):
        blocks = fitted.impute_blocks(rows)
        data = b"".join(stream_completed(blocks, fitted.schema, form))
        assert len(data) > 1000
    lines = b"".join(stream_completed(fitted.impute_blocks(rows), fitted.schema, "csv"))
    known = parse_table(table_in(io.BytesIO(lines)), fitted.schema)
    own = parse_table(rows, fitted.schema)
    for name in NAMES:
        are_known = own[name].notna().to_numpy()
        assert known[name][are_known].tolist() == own[name][are_known].tolist(), name


def test_fresh_identifiers_keep_the_dtype_for_as_long_as_they_fit() -> None:
    keys = {"id": np.arange(N, dtype="uint8"), "key": np.arange(N, dtype="int32") * 3}
    frame = pd.DataFrame(keys | {"x": REAL, "code": pd.Series([f"k{i}" for i in range(N)])})
    frame["code"] = frame["code"].astype("string[pyarrow]")
    fitted = Synthesizer.fit(frame, preset="fast", settings={"max_steps": 3})
    assert [str(column.kind) for column in fitted.schema].count("identifier") == 3
    drawn = fitted.sample(60, seed=1)
    assert drawn["key"].dtype == "int32"
    assert drawn["code"].dtype == frame["code"].dtype
    assert drawn["id"].is_unique
    assert drawn["id"].dtype == "int64", "256 numbers are not enough"
