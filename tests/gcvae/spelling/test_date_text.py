"""Dates in the formats of people are found, and come back as they were; others are asked about."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import Synthesizer, format_table, infer_schema, parse_table
from gcvae.schema.columns import TableSchema
from gcvae.spelling import date_text
from gcvae.spelling.date_text import check_format, infer_format, read_dates, write_dates

FIRST, LAST = date(1, 1, 1), date(9999, 12, 31)
CENTURY = date(1970, 1, 1), date(2049, 12, 28)
DAYS = pd.Series(pd.date_range("2023-01-03", periods=90, freq="3D", unit="us"))
ORDINALS = [f"{day.day}th of {day:%B} {day.year}" for day in DAYS]
DATES = st.lists(
    st.datetimes().map(lambda time: time.strftime("%Y-%m-%d %H:%M:%S"))
    | st.text(st.sampled_from("0123-: T"), min_size=10, max_size=19)
    | st.sampled_from(["2024-02-30", "2024-02-29", "2024-1-2", "2024-02-29 24:00:00"]),
    min_size=1,
    max_size=3,
)
ISO = sorted(date_text._ISO_LENGTHS)


def warnings_of(cells: list[str]) -> tuple[str, ...]:
    """Of a table with these cells, and a column that can be modelled."""
    table = pd.DataFrame({"day": cells, "x": np.arange(len(cells)) / 7})
    return infer_schema(table, rules=False).warnings


@given(
    st.sampled_from(date_text._DAYS),
    st.sampled_from(["", " %H:%M", "T%H:%M:%S", ", %-I:%M %p", " %H:%M:%S+02:00"]),
    st.data(),
)
def test_every_known_format_is_found_and_gives_the_cells_back(
    day: str, clock: str, data: st.DataObject
) -> None:
    ends = (FIRST, LAST) if "%Y" in day and day != "%Y%m%d" else CENTURY
    by_month = st.lists(
        st.dates(*ends), min_size=12, max_size=30, unique_by=lambda day: (day.year, day.month)
    )
    days = data.draw(by_month)
    date_format = day if day == "%Y%m%d" else day + clock
    times = np.array(days, "M8[us]")
    table = pd.DataFrame({"day": date_text.write_dates(times, date_format).to_pylist()})
    schema = infer_schema(table, rules=False).schema
    assert schema["day"].kind == "datetime"
    assert format_table(parse_table(table, schema), schema)["day"].tolist() == table["day"].tolist()


@pytest.mark.parametrize(
    "date_format", ["%b %d %Y", "%A, %d %B %Y", "%d %b, %Y", "%Y-%d-%m", "%a, %d %b %Y %H:%M GMT"]
)
def test_formats_of_people_are_found(date_format: str) -> None:
    table = pd.DataFrame({"day": DAYS.dt.strftime(date_format)})
    assert infer_schema(table, rules=False).schema["day"].datetime_format == date_format


def test_drawn_dates_are_written_in_the_format_of_the_table() -> None:
    table = pd.DataFrame({"day": DAYS.dt.strftime("%A, %d %B %Y"), "x": np.arange(90) / 7})
    model = Synthesizer.fit(table, preset="fast", settings={"max_steps": 4})
    drawn = format_table(model.sample(50, seed=1), model.schema)["day"]
    assert (pd.to_datetime(drawn, format="%A, %d %B %Y").dt.strftime("%A, %d %B %Y") == drawn).all()


@pytest.mark.parametrize(
    ("cells", "asked"),
    [
        (ORDINALS, "looks like dates, such as '3th of January 2023': set its datetime_format"),
        (DAYS.dt.strftime("%d-%b-%Y").str.upper(), "datetime_format '%d-%b-%Y' in the schema"),
        (DAYS.dt.strftime("%d'%b'%Y"), "looks like dates"),
    ],
)
def test_dates_of_no_known_format_are_asked_about(cells: list[str], asked: str) -> None:
    assert any(asked in text for text in warnings_of(list(cells)))


def test_a_time_of_any_format_is_read_to_the_microsecond() -> None:
    times = np.array(["0001-01-01", "1969-12-31T23:59:59.999999", "9999-12-31T23:59:59.999999"])
    times = times.astype("M8[us]")
    for date_format in (
        "%Y-%m-%d %H:%M:%S.%f",
        "%-d. %B %Y, %I:%M:%S.%f %p",
        "%a, %d %b %Y %H:%M:%S.%f",
    ):
        texts = date_text.write_dates(times, date_format, 6)
        assert (date_text.read_dates(texts, date_format) == times).all()
    cut = date_text.read_dates(pa.array(["1969-12-31 23:59:59.999999999"]), "%Y-%m-%d %H:%M:%S.%f")
    assert cut == times[1:2]


@pytest.mark.parametrize(
    ("text", "date_format"),
    [
        ("2023-02-29", "%Y-%m-%d"),
        ("31.04.2024", "%d.%m.%Y"),
        ("24:00", "%H:%M"),
        ("0000-01-01", "%Y-%m-%d"),
        ("10000-01-01", "%Y-%m-%d"),
        ("2024-01-01x", "%Y-%m-%d"),
    ],
)
def test_what_is_no_date_of_the_format_has_no_time(text: str, date_format: str) -> None:
    assert np.isnat(date_text.read_dates(pa.array([text]), date_format)).all()


def test_a_given_format_reads_dates_in_capitals() -> None:
    table = pd.DataFrame({"day": DAYS.dt.strftime("%d-%b-%Y").str.upper()})
    said = {"columns": [{"name": "day", "datetime_format": "%d-%b-%Y"}]}
    assert parse_table(table, infer_schema(table, said).schema)["day"].equals(DAYS)


@pytest.mark.parametrize(
    "pattern",
    ["INV-2023-{:05d}", "1.2.{}", "March {} offers", "10.0.0.{}", "{} May Street", "2023 W{}"],
)
def test_what_only_resembles_dates_is_not_asked_about(pattern: str) -> None:
    warnings = warnings_of([pattern.format(n) for n in range(90)])
    assert not any("dates" in text for text in warnings)


@given(DATES, st.sampled_from(ISO))
def test_dates_are_those_of_the_slower_reader(cells: list[str], date_format: str) -> None:
    for texts in (pa.array(cells, pa.string()), pa.array([cell[:10] for cell in cells])):
        found = date_text.read_dates(texts, date_format)
        forms = date_text.infer_format(texts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(date_text, "_iso_times", lambda texts, date_format: None)
            np.testing.assert_array_equal(found, date_text.read_dates(texts, date_format))
            assert forms == date_text.infer_format(texts)


@pytest.mark.parametrize(
    ("first", "last", "date_format"),
    [
        (1942, 2008, "%d/%m/%1942y"),
        (1955, 1966, "%d/%m/%1955y"),
        (1927, 2025, "%d/%m/%1927y"),
        (2015, 2026, "%d/%m/%y"),
        (1985, 2024, "%d/%m/%y"),
        (2020, 2045, "%d/%m/%y"),
    ],
)
def test_years_of_two_digits_are_of_the_century_that_leaves_most_years_unused(
    first: int, last: int, date_format: str
) -> None:
    times = np.array(
        [f"{first + i % (last - first + 1)}-0{1 + i % 9}-{13 + i % 9}" for i in range(400)]
    )
    texts = write_dates(times.astype("datetime64[us]"), "%d/%m/%y")
    assert infer_format(texts) == (date_format, 0)
    read = read_dates(texts, date_format)
    assert (read == times.astype("datetime64[us]")).all()
    assert write_dates(read, date_format).equals(texts)
    assert check_format(date_format) == date_format


def test_a_window_of_years_is_a_warning_of_the_schema() -> None:
    born = [f"{1 + i % 28:02d}/{1 + i % 12:02d}/{(42 + i % 67) % 100:02d}" for i in range(400)]
    found = infer_schema(pd.DataFrame({"born": born, "n": [i % 7 for i in range(400)]}))
    assert found.schema["born"].datetime_format == "%d/%m/%1942y"
    assert any("which are read as 1942 to 2041" in warning for warning in found.warnings)
    assert TableSchema.from_json(found.schema.to_json()) == found.schema
