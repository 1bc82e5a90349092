"""Columns come back in the types that they had in the file or in the frame."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from gcvae.cells.values import parse_table
from gcvae.errors import TableError
from gcvae.files.frame_dtypes import with_dtypes
from gcvae.files.table_reader import TableReader
from gcvae.files.table_stream import stream_table
from gcvae.files.tables import read_table, write_table
from gcvae.files.to_arrow import arrow_table
from gcvae.profiling.infer import infer_schema
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.schema.parquet_types import parquet_type
from gcvae.synthesizer import Synthesizer
from tests.wordings import refuses

N = 120
TYPES = (
    pa.timestamp("us", "Europe/Berlin"), pa.timestamp("ms", "UTC"), pa.timestamp("ns"),
    pa.date32(), pa.date64(), pa.duration("ms"), pa.time64("us"), pa.time32("ms"),
    pa.decimal128(12, 2), pa.int8(), pa.uint32(), pa.uint64(), pa.float32(), pa.float64(),
    pa.dictionary(pa.int8(), pa.string()), pa.large_string(), pa.string(), pa.bool_(), pa.null(),
)  # fmt: skip
DAY = 86_400_000


def column(kind: Any, rng: np.random.Generator) -> pa.Array:
    """Cells of a type, a tenth of them null."""
    gone = rng.random(N) < 0.1
    if pa.types.is_null(kind):
        return pa.nulls(N)
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
        plain = pa.array(rng.choice(["7", "8", "b"], N), mask=gone)
        return plain.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else plain
    if pa.types.is_boolean(kind):
        return pa.array(rng.random(N) < 0.5, mask=gone)
    if pa.types.is_floating(kind):
        return pa.array(rng.integers(0, 999, N) / 10, mask=gone).cast(kind)
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(int(n)) / 100 for n in rng.integers(0, 9999, N)], kind)
    if pa.types.is_integer(kind):
        return pa.array(rng.integers(0, 120, N), mask=gone).cast(kind)
    milliseconds = pa.array(rng.integers(0, DAY, N), mask=gone)
    if pa.types.is_time(kind):
        return milliseconds.cast(pa.int32()).cast(pa.time32("ms")).cast(kind)
    if pa.types.is_duration(kind):
        return milliseconds.cast(kind)
    times = pa.array(rng.integers(10_000, 20_000, N) * DAY, mask=gone).cast(pa.timestamp("ms"))
    return times.cast(pa.int64()).cast(pa.timestamp("ms", getattr(kind, "tz", None))).cast(kind)


@pytest.fixture(scope="module", name="path")
def _path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    columns = {f"{i} {kind}": column(kind, rng) for i, kind in enumerate(TYPES)}
    table = pa.table(columns).cast(pa.schema([(n, k) for n, k in zip(columns, TYPES, strict=True)]))
    found = tmp_path_factory.mktemp("types") / "types.parquet"
    parquet.write_table(table, found)
    return found


@pytest.fixture(scope="module", name="fitted")
def _fitted(path: Path) -> Synthesizer:
    return Synthesizer.fit(TableReader(path), preset="fast", settings={"max_steps": 10}, seed=1)


def read(parts: Any) -> pa.Table:
    return parquet.read_table(pa.BufferReader(b"".join(parts)))


def test_a_sample_has_the_types_of_the_file(fitted: Synthesizer, path: Path) -> None:
    drawn = read(stream_table(fitted.sample_blocks(50, seed=1), fitted.schema, "parquet"))
    assert drawn.schema.types == parquet.read_schema(path).types
    times = [name for name in drawn.column_names if "time64" in name]
    assert len(times) == 1
    assert drawn.column(times[0]).drop_null()[0].as_py() > datetime.time(0)


def test_a_model_keeps_the_types_in_its_file(fitted: Synthesizer, path: Path) -> None:
    again = Synthesizer.from_bytes(fitted.to_bytes())
    drawn = read(stream_table(again.sample_blocks(5), again.schema, "parquet"))
    assert drawn.schema.types == parquet.read_schema(path).types


def test_a_completed_file_has_its_own_types_and_its_known_cells(
    fitted: Synthesizer, path: Path
) -> None:
    chunks = fitted.impute_blocks(TableReader(path))
    completed = read(stream_completed(chunks, fitted.schema, "parquet"))
    table = parquet.read_table(path)
    assert completed.schema.types == table.schema.types
    for name in table.column_names:
        known = table.column(name).is_valid()
        assert completed.column(name).filter(known).equals(table.column(name).filter(known))
        assert completed.column(name).null_count == (N if "null" in name else 0)


def test_identifiers_that_are_passed_on_keep_their_types(tmp_path: Path) -> None:
    numbers = [None, *range(2**63, 2**63 + N - 1)]
    table = pa.table(
        {
            "level": ["u", "v", None] * (N // 3),
            "number": pa.array(numbers, pa.uint64()),
            "digits": pa.array([n and Decimal(n * 10**15) for n in numbers], pa.decimal128(38, 0)),
            "time": pa.array(range(N), pa.int64()).cast(pa.timestamp("us", "Europe/Berlin")),
        }
    )
    path = tmp_path / "keys.parquet"
    parquet.write_table(table, path)
    names = table.column_names[1:]
    given = {"columns": [{"name": name, "kind": "identifier"} for name in names]}
    fitted = Synthesizer.fit(
        TableReader(path), schema=given, preset="fast", settings={"max_steps": 3}
    )
    chunks = fitted.impute_blocks(TableReader(path))
    completed = read(stream_completed(chunks, fitted.schema, "parquet"))
    assert completed.select(names).equals(table.select(names))
    assert completed.column("level").null_count == 0
    drawn = read(stream_table(fitted.sample_blocks(5), fitted.schema, "parquet"))
    assert drawn.schema.field("digits").type == pa.string()


def test_times_of_an_unknown_zone_are_read_in_utc(tmp_path: Path) -> None:
    days = pa.array([DAY, None, 2 * DAY], pa.int64())
    parquet.write_table(
        pa.table({"t": days.cast(pa.timestamp("ms", "Mars/Phobos"))}), tmp_path / "mars.parquet"
    )
    column = infer_schema(TableReader(tmp_path / "mars.parquet")).schema["t"]
    assert column.parquet_type == "timestamp[ms, tz=Mars/Phobos]"
    frame = read_table(tmp_path / "mars.parquet")
    assert frame["t"].astype(str).tolist() == [
        "1970-01-02 00:00:00+00:00",
        "NaT",
        "1970-01-03 00:00:00+00:00",
    ]
    schema = infer_schema(frame).schema
    written = arrow_table(parse_table(frame, schema), schema)
    assert written.schema.types == [pa.timestamp("ms", "Mars/Phobos")]
    assert written.column("t").cast(pa.int64()).equals(pa.chunked_array([days]))


def test_the_completed_tables_types_count_and_not_the_training_tables(
    fitted: Synthesizer, path: Path, tmp_path: Path
) -> None:
    table = parquet.read_table(path)
    places = [i for i, kind in enumerate(table.schema.types) if kind == pa.date32()]
    other = table.schema.set(places[0], table.schema.field(places[0]).with_type(pa.timestamp("s")))
    parquet.write_table(table.cast(other), tmp_path / "other.parquet")
    chunks = fitted.impute_blocks(TableReader(tmp_path / "other.parquet"))
    completed = read(stream_completed(chunks, fitted.schema, "parquet"))
    assert completed.schema.types[places[0]] == pa.timestamp("ms")  # which Parquet makes of "s"


def test_values_of_a_file_are_written_as_they_were(path: Path, tmp_path: Path) -> None:
    frame = read_table(path)
    schema = infer_schema(frame).schema
    write_table(parse_table(frame, schema), tmp_path / "again.parquet", schema)
    again, first = parquet.read_table(tmp_path / "again.parquet"), parquet.read_table(path)
    assert again.schema.types == first.schema.types
    assert again.to_pylist() == first.to_pylist()
    assert schema == infer_schema(TableReader(path)).schema


def test_text_says_the_zone_and_the_time_of_day(path: Path) -> None:
    formats = {c.parquet_type: c.datetime_format for c in infer_schema(TableReader(path)).schema}
    assert formats["timestamp[ms, tz=UTC]"] == "%Y-%m-%d %H:%M:%S+00:00"
    assert formats["time32[ms]"] == "%H:%M:%S.%f"


def test_a_frame_keeps_zones_and_durations() -> None:
    rng = np.random.default_rng(0)
    days = pd.Series(pd.to_datetime(rng.integers(0, 10**18, N)))
    frame = pd.DataFrame(
        {
            "zoned": days.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
            "lasting": pd.to_timedelta(rng.integers(0, 10**9, N) * 10**6),
            "day": days.dt.date,
            "clock": days.dt.time,
        }
    )
    frame.loc[:9, frame.columns] = None
    fitted = Synthesizer.fit(frame, preset="fast", settings={"max_steps": 5})
    drawn = read(stream_table(fitted.sample_blocks(20), fitted.schema, "parquet"))
    wanted = ["timestamp[ns, tz=Asia/Tokyo]", "duration[ns]", "date32[day]", "time64[us]"]
    assert [str(kind) for kind in drawn.schema.types] == wanted
    completed = fitted.impute(frame)
    assert completed.dtypes.tolist() == frame.dtypes.tolist()
    assert completed.notna().all(axis=None)
    pd.testing.assert_frame_equal(completed.iloc[10:], frame.iloc[10:])
    assert isinstance(completed["clock"].iloc[0], datetime.time)
    assert days.min() < completed["zoned"].iloc[0].tz_convert("UTC").tz_localize(None) < days.max()


@pytest.mark.parametrize("kind", [*TYPES, pa.string_view(), pa.decimal256(50, 3)], ids=str)
def test_a_type_is_read_as_it_is_written(kind: Any) -> None:
    assert parquet_type(str(kind)) == kind


def test_a_value_that_the_type_can_not_hold_is_named() -> None:
    given = {"columns": [{"name": "x", "parquet_type": "int8", "kind": "integer"}]}
    frame = pd.DataFrame({"x": range(1000)})
    with refuses(TableError, column="x"):
        arrow_table(frame, infer_schema(frame, given).schema)


def test_a_cell_of_a_file_is_named_by_its_row_in_the_file(tmp_path: Path) -> None:
    good = pa.table({"x": ["1"] * 5000 + ["2"] * 5000})
    bad = pa.table({"x": ["1"] * 5000 + ["two"] + ["2"] * 4999})
    schema = infer_schema(good.to_pandas(), {"columns": [{"name": "x", "kind": "integer"}]}).schema
    parquet.write_table(bad, tmp_path / "bad.parquet")
    chunks = TableReader(tmp_path / "bad.parquet").chunks(4096)
    parse_table(next(chunks), schema)
    with refuses(TableError, column="x"):
        parse_table(next(chunks), schema)


FAR = (pa.date32(), pa.date64(), pa.timestamp("ms"), pa.timestamp("us", "Europe/Berlin"))


def far_table(kind: Any, path: Path) -> pa.Table:
    """5,000 days, then the last of year 9999; a row group of each."""
    days = pa.array([*([19_000, 19_001, None] * 1_666), 19_002, 19_003, 2_932_896], pa.int32())
    cells = days.cast(pa.date32()).cast(pa.timestamp("ms"))
    zoned = cells.cast(pa.int64()).cast(pa.timestamp("ms", getattr(kind, "tz", None)))
    table = pa.table({"level": ["u", "v"] * 2500 + ["u"], "day": zoned.cast(kind)})
    parquet.write_table(table, path, row_group_size=5000)
    return parquet.read_table(path)


@pytest.mark.parametrize("kind", FAR, ids=str)
def test_a_far_date_is_a_date_of_its_type(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "far.parquet"
    table = far_table(kind, path)
    schema = infer_schema(TableReader(path)).schema
    assert (schema["day"].kind, str(schema["day"].maximum)[:10]) == ("datetime", "9999-12-31")
    chunks = [chunk["day"] for chunk in TableReader(path).chunks(4096)]
    assert all(str(chunk.dtype).startswith("datetime64[us") for chunk in chunks)
    written = arrow_table(parse_table(read_table(path), schema), schema)
    assert written.column("day").equals(table.column("day"))


@pytest.mark.parametrize("kind", FAR, ids=str)
def test_a_far_date_can_mean_missing(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "far.parquet"
    table = far_table(kind, path)
    zone = " 00:00:00+00:00" if getattr(kind, "tz", None) else ""
    day = {"name": "day", "missing": {"markers": ["9999-12-31" + zone]}}
    schema = infer_schema(TableReader(path), {"columns": [day]}).schema
    assert schema["day"].datetime_format == "%Y-%m-%d" + zone.replace("00:00:00", "%H:%M:%S")
    written = arrow_table(parse_table(read_table(path), schema), schema)
    assert written.column("day")[:-1].equals(table.column("day")[:-1])
    assert not written.column("day")[-1].is_valid


@pytest.mark.parametrize("year", [-1, 0, 10_000, 250_000])
def test_a_time_of_a_year_that_texts_can_not_express_is_refused(year: int) -> None:
    months = np.array([12 * (year - 1970), 600]).astype("M8[M]").astype("M8[s]")
    with refuses(TableError, column="day"):
        infer_schema(pa.table({"level": ["u", "v"], "day": pa.array(months)}))


def test_nanoseconds_are_cut_off_and_told() -> None:
    ticks = np.arange(60) * 10**12 + 1_234_567
    frame = pd.DataFrame({"at": ticks.view("M8[ns]"), "x": np.arange(60) / 7})
    frame["zoned"] = frame["at"].dt.tz_localize("Asia/Tokyo")
    inferred = infer_schema(frame, rules=False)
    told = [text for text in inferred.warnings if "finer than microseconds" in text]
    assert [text.split(":")[0] for text in told] == ["column 'at'", "column 'zoned'"]
    drawn = with_dtypes(parse_table(frame, inferred.schema), inferred.schema)
    assert drawn.dtypes.equals(frame.dtypes)
    assert drawn["at"].equals(frame["at"].dt.floor("us"))


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary(4), pa.uuid()], ids=str)
def test_bytes_are_no_cells(kind: Any, tmp_path: Path) -> None:
    width = 16 if kind == pa.uuid() else 4
    cells = pa.array([b"x" * width], pa.binary(width) if kind == pa.uuid() else kind)
    cells = pa.ExtensionArray.from_storage(kind, cells) if kind == pa.uuid() else cells
    parquet.write_table(pa.table({"raw": cells}), tmp_path / "raw.parquet")
    with refuses(TableError, column="raw"):
        read_table(tmp_path / "raw.parquet")


def test_columns_without_cells_can_be_dropped(tmp_path: Path) -> None:
    path = tmp_path / "nested.parquet"
    plain = pa.table({"level": ["u", "v", None] * 40, "x": np.arange(N) / 7})
    table = plain.append_column("list", pa.array([[1, 2]] * N))
    parquet.write_table(table.append_column("raw", pa.array([b"r"] * N)), path)
    dropped = [{"name": name, "drop": True} for name in ("list", "raw")]
    schema = infer_schema(TableReader(path), {"columns": dropped}).schema
    assert infer_schema(TableReader(path), schema.to_json()).schema == schema
    fitted = Synthesizer.fit(TableReader(path), schema=schema, preset="fast",
                             settings={"max_steps": 3})  # fmt: skip
    assert fitted.sample(3).columns.tolist() == plain.column_names
    chunks = fitted.impute_blocks(TableReader(path))
    completed = read(stream_completed(chunks, fitted.schema, "parquet"))
    assert completed.column_names == plain.column_names
    whole = read_table(path, dropped={column.name for column in schema if column.drop})
    assert whole.columns.tolist() == plain.column_names
    with refuses(TableError, column="raw"):
        infer_schema(TableReader(path), {"columns": dropped[:1]})


def test_periods_that_are_too_far_for_nanoseconds_are_read_and_come_back() -> None:
    days = pd.period_range("2024-01-01", periods=40, freq="D").to_list()
    frame = pd.DataFrame({"until": [*days, *[pd.Period("9999-12-31", "D")] * 10, None]})
    schema = infer_schema(frame).schema
    assert (schema["until"].kind, schema["until"].maximum) == ("datetime", "9999-12-31")
    again = with_dtypes(parse_table(frame, schema), schema)
    assert again["until"].equals(frame["until"])


def test_months_are_written_asked_for_and_drawn_as_months() -> None:
    months = np.random.default_rng(0).choice(pd.period_range("2020-01", periods=60, freq="M"), 200)
    frame = pd.DataFrame({"month": pd.Series(months), "x": np.arange(200) / 7})
    model = Synthesizer.fit(frame, preset="fast", settings={"max_steps": 4})
    assert model.schema["month"].datetime_format == "%Y-%m"
    for asked in (pd.Period("2021-03", "M"), "2021-03"):
        drawn = model.sample(5, seed=1, given={"month": asked})["month"]
        assert drawn.tolist() == [pd.Period("2021-03", "M")] * 5
    quarter = model.sample(50, seed=1, given={"month": pd.Period("2021Q1", "Q")})["month"]
    assert set(quarter) == set(pd.period_range("2021-01", "2021-03", freq="M"))
