"""Durations are numbers of seconds, and come back as they were written."""

from __future__ import annotations

import io
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import Synthesizer, TableReader, format_table, infer_schema, parse_table
from gcvae.cells.values import END_READERS
from gcvae.errors import SchemaError
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.spelling.durations import DURATIONS, duration_texts
from tests.wordings import refuses

N = 200


def by_pandas(seconds: pd.Series) -> pd.Series:
    """Durations as `DataFrame.to_csv` writes them."""
    return pd.to_timedelta(seconds, unit="s").astype(str)


def trips() -> pd.DataFrame:
    """Distances, and how long they took."""
    rng = np.random.default_rng(0)
    distance = rng.uniform(1, 300, N)
    seconds = pd.Series((distance * 600 + rng.normal(size=N)).round())
    return pd.DataFrame({"distance": distance, "took": by_pandas(seconds)})


@given(
    st.sampled_from(DURATIONS),
    st.integers(0, 9),
    st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=20, unique=True),
)
def test_durations_are_found_and_come_back(zero: str, digits: int, counts: list[int]) -> None:
    numerals = pd.Series([f"{n / 10**digits:.{digits}f}" for n in [*counts, 90_000 * 10**digits]])
    texts = duration_texts(pd.array(numerals, "string[pyarrow]").__arrow_array__(), zero)
    table = pd.DataFrame({"took": texts.to_pylist()})
    schema = infer_schema(table, rules=False).schema
    values = parse_table(table, schema)
    expected = pd.to_timedelta(table["took"]).dt.total_seconds()
    assert values["took"].to_numpy(dtype=float) == pytest.approx(expected.to_numpy(), rel=1e-12)
    assert format_table(values, schema)["took"].tolist() == table["took"].tolist()


def test_times_of_day_stay_times() -> None:
    table = pd.DataFrame({"at": [f"{n % 24}:{n % 60:02d}:05" for n in range(90)]})
    assert infer_schema(table, rules=False).schema["at"].datetime_format == "%-H:%M:%S"


def test_durations_of_python_are_seconds() -> None:
    table = pd.DataFrame({"took": [str(timedelta(hours=n, seconds=n)) for n in range(90)]})
    found = infer_schema(table, rules=False)
    assert parse_table(table, found.schema)["took"].tolist() == [3601 * n for n in range(90)]
    assert any("has numbers in several formats" in warning for warning in found.warnings)


def test_drawn_durations_keep_their_link_after_save_and_load(tmp_path: Path) -> None:
    table = trips()
    fitted = Synthesizer.fit(table, preset="fast", settings={"max_steps": 300})
    fitted.save(tmp_path / "model.gcvae")
    model = Synthesizer.load(tmp_path / "model.gcvae")
    drawn = model.sample(N, seed=1)
    seconds = pd.to_timedelta(drawn["took"]).dt.total_seconds()
    assert seconds.corr(drawn["distance"], method="spearman") > 0.8
    assert (by_pandas(seconds) == drawn["took"]).all()
    asked = model.sample(20, seed=1, given={"took": {"min": "1 days 12:00:00"}})
    assert pd.to_timedelta(asked["took"]).min() >= pd.Timedelta(hours=36)


@pytest.mark.parametrize("given", [{"duration": "0"}, {"duration": "0:00:00", "suffix": " h"}])
def test_what_is_no_way_of_writing_durations_is_refused(given: dict[str, str]) -> None:
    said = {"columns": [{"name": "took", "number_format": given}]}
    with refuses(SchemaError, "/columns/0/number_format"):
        infer_schema(trips(), said)


def test_durations_of_frames_are_read_in_the_unit_of_their_column() -> None:
    table = trips()
    model = Synthesizer.fit(table, preset="fast", settings={"max_steps": 5}, seed=0)
    scores = model.log_likelihood(table.head(5))
    lengths = pd.to_timedelta(table["took"].head(5))
    for took in (
        *(lengths.astype(f"timedelta64[{unit}]") for unit in ("s", "ms", "us", "ns")),
        lengths.astype(object),
        lengths.astype(pd.ArrowDtype(pa.duration("ms"))),
    ):
        again = model.log_likelihood(table.head(5).assign(took=took))
        pd.testing.assert_frame_equal(again, scores)
    blank = table.head(40).assign(took=pd.to_timedelta(table["took"].head(40)))
    blank.loc[1::2, "took"] = pd.NaT
    filled = model.impute(blank, seed=1)["took"]
    assert filled.dtype == blank["took"].dtype
    assert filled[::2].equals(blank["took"][::2])
    assert filled.between(pd.Timedelta(0), pd.Timedelta("7 days")).all()
    assert filled[1::2].median() > pd.Timedelta("1h")
    hour = model.sample(9, seed=0, given={"took": {"min": pd.Timedelta("1h")}})
    assert (pd.to_timedelta(hour["took"]) >= pd.Timedelta("1h")).all()
    typed = table.assign(took=pd.to_timedelta(table["took"]).astype("timedelta64[s]"))
    of_seconds = Synthesizer.fit(typed, preset="fast", settings={"max_steps": 5}, seed=0)
    finer = typed.head(5).assign(took=lengths)
    pd.testing.assert_frame_equal(
        of_seconds.log_likelihood(finer), of_seconds.log_likelihood(typed.head(5))
    )


def test_durations_of_a_parquet_file_stay_what_they_are(tmp_path: Path) -> None:
    table = trips()
    model = Synthesizer.fit(table, preset="fast", settings={"max_steps": 5}, seed=0)
    lengths = pd.to_timedelta(table["took"].head(6))
    rows = table.head(6).assign(took=lengths)
    rows.loc[1, "took"] = pd.NaT
    rows.to_parquet(tmp_path / "rows.parquet")
    reader = TableReader(tmp_path / "rows.parquet")
    assert model.log_likelihood(reader).equals(model.log_likelihood(rows))
    for form, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        blocks = model.impute_blocks(reader, seed=1)
        content = b"".join(stream_completed(blocks, model.schema, form))
        filled = pd.to_timedelta(read(io.BytesIO(content))["took"])
        known = rows["took"].notna()
        assert (filled[known] == rows["took"][known]).all()
        assert filled.notna().all()


@pytest.mark.parametrize("unit", ["s", "ms", "ns"])
def test_the_end_of_a_range_of_durations_may_be_written_as_a_duration(unit: str) -> None:
    took = pd.Series(pd.to_timedelta(np.arange(0, 61 * N, 61), unit="s")).dt.as_unit(unit)
    column = infer_schema(pd.DataFrame({"took": took, "n": range(N)}), rules=False).schema["took"]
    read = END_READERS[column.kind]
    expected = pd.Timedelta(minutes=20) / pd.Timedelta(1, unit)
    assert read("00:20:00", column) == read("0 days 00:20:00", column) == expected
    assert read(5, column) == 5
    with pytest.raises(ValueError, match=f"a number of {unit}, or a duration such as 01:30:00"):
        read("soon", column)
