"""Times with an offset from UTC are moments, and come back in an offset of the table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import Synthesizer, format_table, infer_schema, parse_table
from gcvae.errors import TableError
from gcvae_client.frames import plain, read_frame
from tests.wordings import refuses

N = 120
OFFSETS = st.sampled_from(["+02:00", "+0200", "+02", "-05:30", "-0500", "+14:00", "Z", " +01:00"])
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1)).map(
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
)


def moments(texts: pd.Series) -> pd.Series:
    """What pandas, which reads one text after the other, makes of them."""
    return texts.map(lambda text: pd.to_datetime(text, utc=True))


def berlin() -> pd.DataFrame:
    """Rows with times as `DataFrame.to_csv` writes those of a zone, in winter and in summer."""
    times = pd.date_range("2024-03-29 20:00", periods=N, freq="37min", tz="Europe/Berlin")
    rng = np.random.default_rng(0)
    return pd.DataFrame({"time": times.astype(str), "x": rng.normal(size=N).round(3)})


@given(st.lists(MOMENTS, min_size=2, max_size=20, unique=True), OFFSETS, st.booleans())
def test_times_of_one_offset_come_back_as_they_were(
    times: list[datetime], offset: str, has_digits: bool
) -> None:
    clock = "%Y-%m-%dT%H:%M:%S" + (".%f" if has_digits else "")
    texts = pd.DataFrame({"time": [time.strftime(clock) + offset for time in times]})
    schema = infer_schema(texts, rules=False).schema
    assert schema["time"].kind == "datetime"
    values = parse_table(texts, schema)
    assert (values["time"] == moments(texts["time"]).dt.tz_localize(None)).all()
    assert format_table(values, schema)["time"].tolist() == texts["time"].tolist()


@given(
    st.lists(
        st.tuples(MOMENTS, st.integers(-48, 56).map(lambda n: timezone(timedelta(minutes=15 * n)))),
        min_size=3,
        max_size=20,
        unique_by=lambda pair: pair[0],
    )
)
def test_times_of_several_offsets_stay_moments_and_come_back_in_one_of_them(
    pairs: list[tuple[datetime, timezone]],
) -> None:
    texts = pd.DataFrame({"time": [str(t.replace(tzinfo=UTC).astimezone(z)) for t, z in pairs]})
    schema = infer_schema(texts, rules=False).schema
    written = format_table(parse_table(texts, schema), schema)["time"]
    assert moments(written).tolist() == moments(texts["time"]).tolist()
    offsets = {text[-6:] for text in written}
    assert len(offsets) == 1
    assert offsets <= {text[-6:] for text in texts["time"]}


def test_a_note_says_how_times_of_several_offsets_come_back() -> None:
    said = "all are written like '2024-03-29 21:00:00+02:00'"
    assert any(said in warning for warning in infer_schema(berlin(), rules=False).warnings)


@pytest.mark.parametrize("ends", ["09:00-10:00", "09:00"])
def test_a_span_of_hours_is_no_offset(ends: str) -> None:
    cells = [f"2024-01-05 {n:02d}:00-{n + 1:02d}:00" for n in range(8, 20)]
    column = infer_schema(pd.DataFrame({"x": [*cells, f"2024-01-05 {ends}"]}), rules=False)
    assert column.schema["x"].datetime_format is None


def test_drawn_times_are_in_the_tables_range_and_offset_after_save_and_load(tmp_path: Path) -> None:
    table = berlin()
    fitted = Synthesizer.fit(table, preset="fast", settings={"max_steps": 4})
    fitted.save(tmp_path / "model.gcvae")
    model = Synthesizer.load(tmp_path / "model.gcvae")
    start = pd.Timestamp("2024-03-31 12:00", tz="Europe/Berlin")
    drawn = model.sample(200, seed=1, given={"time": {"min": start}})
    texts = format_table(drawn, model.schema)["time"]
    assert texts.str.endswith("+02:00").all()
    assert moments(texts).between(start, pd.Timestamp(model.schema["time"].maximum)).all()
    kept = format_table(model.impute(table), model.schema)["time"]
    assert moments(kept).tolist() == moments(table["time"]).tolist()


def test_objects_of_several_offsets_are_moments_and_come_back_with_a_zone() -> None:
    zones = [timezone(timedelta(hours=n)) for n in (2, 5)]
    times = [datetime(2024, 1, 1 + n % 28, n % 24, tzinfo=zones[n % 2]) for n in range(N)]
    table = pd.DataFrame({"time": pd.Series(times, dtype=object), "x": np.arange(N) / 7})
    schema = infer_schema(table, rules=False).schema
    expected = pd.to_datetime(table["time"], utc=True).dt.tz_localize(None)
    assert parse_table(table, schema)["time"].tolist() == expected.tolist()
    model = Synthesizer.fit(table, preset="fast", settings={"max_steps": 4})
    low, high = (pd.Timestamp(getattr(model.schema["time"], end)) for end in ("minimum", "maximum"))
    assert all(low <= time <= high for time in model.sample(50, seed=1)["time"])


def test_objects_with_and_without_a_zone_are_refused_by_name() -> None:
    times = [datetime(2024, 1, 1, tzinfo=UTC), *(datetime(2024, 1, n) for n in range(2, 20))]
    with refuses(TableError, column="time"):
        infer_schema(pd.DataFrame({"time": pd.Series(times, dtype=object)}))


def test_the_client_reads_and_writes_times_in_the_offset_of_the_table(tmp_path: Path) -> None:
    def formats() -> dict[str, str]:
        return {"time": "%Y-%m-%d %H:%M:%S+02:00"}

    moment = pd.Timestamp("2024-03-31 09:15", tz="UTC")
    asked = [moment.tz_convert("Asia/Tokyo"), moment.tz_localize(None)]
    assert {plain(time, "time", formats) for time in asked} == {"2024-03-31 11:15:00+02:00"}
    path = tmp_path / "rows.json"
    path.write_text('[{"time": "2024-03-31 11:15:00+02:00"}]')
    with path.open("rb") as file:
        read = read_frame(file, "json", None, formats)
    assert read["time"].tolist() == [moment.tz_localize(None)]
