"""Dates such as 9999-12-31 among others are frequent values like any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gcvae import Synthesizer, infer_schema
from gcvae.cells.values import format_table, parse_table
from gcvae.files.to_arrow import arrow_table
from gcvae.profiling.profile import profile_column
from gcvae.schema.columns import Missing

N = 2_000


def contracts(far: str, date_format: str) -> pd.DataFrame:
    """Contracts of which three in ten have no end, as text."""
    random = np.random.default_rng(0)
    start = pd.Timestamp("2019-01-01") + pd.to_timedelta(random.integers(0, 1500, N), unit="D")
    end = start + pd.to_timedelta(random.gamma(2, 60, N).astype(int), unit="D")
    until = np.where(random.random(N) < 0.3, far, end.strftime(date_format))
    return pd.DataFrame({"gültig bis": until, "gültig von": start.strftime(date_format)})


@pytest.mark.parametrize(
    ("far", "date_format"),
    [
        ("9999-12-31", "%Y-%m-%d"),
        ("31.12.9999", "%d.%m.%Y"),
        ("99991231", "%Y%m%d"),
        ("0001-01-01", "%Y-%m-%d"),
        ("9999-12-31 23:59:59", "%Y-%m-%d %H:%M:%S"),
        ("9999-12-31 23:59:59.999999", "%Y-%m-%d %H:%M:%S.%f"),
    ],
)
def test_a_far_date_among_dates_is_a_value_beside_the_order(far: str, date_format: str) -> None:
    table = contracts(far, date_format)
    schema = infer_schema(table).schema
    until = schema["gültig bis"]
    assert until.kind == "datetime"
    assert far in (until.minimum, until.maximum)
    assert until.missing == Missing()
    order = f"`gültig bis` >= `gültig von` or `gültig bis` == '{far}'"
    assert [str(rule) for rule in schema.rules or ()] == [order]
    assert format_table(parse_table(table, schema), schema).equals(table)


def test_a_far_date_may_be_said_to_mean_missing() -> None:
    said = {"columns": [{"name": "gültig bis", "missing": {"markers": ["9999-12-31"]}}]}
    texts = contracts("9999-12-31", "%Y-%m-%d")
    typed = texts.assign(**{"gültig bis": texts["gültig bis"].astype("datetime64[s]")})
    for table in (texts, typed):
        schema = infer_schema(table, said).schema
        cells = parse_table(table, schema)["gültig bis"]
        assert (cells.isna() == (texts["gültig bis"] == "9999-12-31")).all()


def test_a_far_date_has_a_bar_of_its_own_in_the_profile() -> None:
    table = contracts("9999-12-31", "%Y-%m-%d")
    schema = infer_schema(table).schema
    profile = profile_column(parse_table(table, schema)["gültig bis"], schema["gültig bis"])
    edges, counts = profile["histogram"]["edges"], profile["histogram"]["counts"]
    assert edges[-1] == "9999-12-31"
    assert edges[-2] < "2025"
    assert counts[-1] == (table["gültig bis"] == "9999-12-31").sum()
    assert sum(counts) == N
    assert sum(n > 0 for n in counts) > 20


def test_drawn_rows_end_in_time_or_never_also_of_a_saved_model(tmp_path: Path) -> None:
    table = contracts("9999-12-31", "%Y-%m-%d")
    Synthesizer.fit(table, seed=0, settings={"max_steps": 10}).save(tmp_path / "m.gcvae")
    synthesizer = Synthesizer.load(tmp_path / "m.gcvae")
    drawn = format_table(synthesizer.sample(2000, 1), synthesizer.schema)
    has_end = drawn["gültig bis"] != "9999-12-31"
    assert (drawn["gültig bis"][has_end] >= drawn["gültig von"][has_end]).all()
    assert (drawn["gültig bis"][has_end] < "2030").all()
    assert has_end.mean() == pytest.approx((table["gültig bis"] != "9999-12-31").mean(), abs=0.15)
    assert np.isfinite(synthesizer.log_likelihood(table[:50])["log_likelihood"]).all()
    known = pd.DataFrame({"gültig bis": ["9999-12-31", "2022-05-05", ""] * 20})
    around = format_table(synthesizer.sample(given_rows=known, seed=1), synthesizer.schema)
    assert (around["gültig bis"][::3] == "9999-12-31").all()
    assert (around["gültig bis"][1::3] == "2022-05-05").all()
    assert (around["gültig bis"][2::3] != "9999-12-31").any()


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("ms", "UTC")])
def test_a_parquet_file_has_the_far_date_again_in_its_type(kind: Any, tmp_path: Path) -> None:
    days = pd.to_datetime(contracts("2030-01-01", "%Y-%m-%d")["gültig bis"]).to_numpy("M8[D]")
    days[::3] = np.datetime64("9999-12-31")
    table = pa.table({"until": pa.array(days.astype("M8[s]")).cast(kind), "n": np.arange(N) % 7})
    schema = infer_schema(table).schema
    assert schema["until"].kind == "datetime"
    written = arrow_table(parse_table(table, schema), schema)
    assert written.column("until").equals(table.column("until"))
