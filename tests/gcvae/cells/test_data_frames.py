"""Whatever is a table is taken wherever one is asked, and what is none is told so in a line."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest

from gcvae import Synthesizer, TableReader, infer_schema, parse_table, write_table
from gcvae.errors import SettingError, TableError
from tests.lengths import first_of
from tests.wordings import refuses, same_wording

N = 120
SETTINGS: Any = {"preset": "fast", "settings": {"max_steps": 4}}


def plain(n: int = N) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"größe": rng.normal(size=n).round(2), "b": rng.choice(["u", "v"], n)})


@pytest.fixture(scope="module", name="fitted")
def _fitted() -> Synthesizer:
    return Synthesizer.fit(plain(), **SETTINGS)


Use = Callable[[Synthesizer, Any], Any]
USES: dict[str, Use] = {
    "fit": lambda s, t: Synthesizer.fit(t, **SETTINGS).sample(5, seed=1),
    "infer_schema": lambda s, t: infer_schema(t).schema,
    "impute": lambda s, t: s.impute(t),
    "impute_blocks": lambda s, t: pd.concat(s.impute_blocks(t)),
    "log_likelihood": lambda s, t: s.log_likelihood(t),
    "score_blocks": lambda s, t: pd.concat(s.score_blocks(t)),
    "encode": lambda s, t: s.encode(t),
    "given_rows": lambda s, t: s.sample(given_rows=t, seed=1),
    "sampler": lambda s, t: s.sampler(1, given_rows=t).summary(N),
}
NO_TABLES: dict[str, Any] = {
    "list": [{"a": 1}],
    "array": np.ones((3, 2)),
    "dict": {"a": [1]},
    "bytes": b"a,b",
    "Series": plain()["b"],
    "polars Series": polars.Series([1]),
    "LazyFrame": polars.LazyFrame({"a": [1]}),
    "no file": "nowhere.csv",
    "numbered columns": plain().T,
    "columns twice": pd.concat([plain(), plain()], axis=1),
    "MultiIndex": pd.DataFrame({("a", "b"): [1]}),
}


@pytest.mark.parametrize("table", NO_TABLES)
def test_what_is_no_table_is_told_so_in_a_line_wherever_one_is_asked(
    fitted: Synthesizer, table: str
) -> None:
    told = set()
    for use in USES.values():
        with pytest.raises(TableError) as refused:
            use(fitted, NO_TABLES[table])
        told.add(str(refused.value))
    [line] = told
    same_wording(line)


@pytest.mark.parametrize("use", USES)
def test_a_path_is_read_wherever_a_table_is_asked(
    fitted: Synthesizer, use: str, tmp_path: Path
) -> None:
    csv, packed, binary = (tmp_path / f"表.{end}" for end in ("csv", "csv.gz", "parquet"))
    plain().to_csv(csv, index=False)
    plain().to_csv(packed, index=False)
    plain().to_parquet(binary)
    expected = USES[use](fitted, TableReader(csv))
    for source in (csv, str(packed)):
        assert repr(USES[use](fitted, source)) == repr(expected)
    assert repr(USES[use](fitted, binary)) == repr(USES[use](fitted, TableReader(binary)))


def test_nothing_is_no_table() -> None:
    with refuses(TableError):
        Synthesizer.fit(None)


def every_type() -> polars.DataFrame:
    """A column of every type that polars has for cells."""
    rng = np.random.default_rng(0)
    few, whole = rng.integers(0, 4, N), rng.integers(0, 100, N).tolist()
    text = np.array(["d", "c", "b", "a"])[few].tolist()
    days = [date(2024, 1, 1) + timedelta(days=n) for n in whole]
    gaps = [None if n % 7 == 0 else n for n in whole]
    return polars.DataFrame(
        {
            "whole": polars.Series(gaps, dtype=polars.Int8),
            "real": polars.Series(gaps, dtype=polars.Float32) / 7,
            "text": text,
            "category": polars.Series(text, dtype=polars.Categorical),
            "enum": polars.Series(text, dtype=polars.Enum(["d", "c", "b", "a", "z"])),
            "day": days,
            "clock": [time(n % 24) for n in whole],
            "span": [timedelta(hours=n) for n in whole],
            "decimal": [Decimal(n) / 10 for n in whole],
            "truth": few > 1,
            "zoned": polars.Series(days).cast(polars.Datetime("ms", "Europe/Berlin")),
        }
    )


@pytest.mark.parametrize(
    "made",
    first_of(
        pytest.param(lambda p: p, id="polars"),
        pytest.param(lambda p: p.to_arrow(), id="Arrow"),
        pytest.param(lambda p: p.to_arrow().to_batches()[0], id="batch"),
    ),
)
def test_frames_of_polars_and_arrow_go_in_and_their_types_come_out(
    made: Callable[[polars.DataFrame], Any],
) -> None:
    table = made(every_type())
    loaded = Synthesizer.from_bytes(Synthesizer.fit(table, **SETTINGS).to_bytes())
    wanted = every_type().with_columns(polars.col("enum").cast(polars.Categorical)).schema
    drawn, filled = loaded.sample(50, seed=1), loaded.impute(table)
    kind = polars.DataFrame if isinstance(table, polars.DataFrame) else pa.Table
    assert type(drawn) is type(filled) is kind
    assert polars.DataFrame(drawn).schema == wanted
    filled = polars.DataFrame(filled)
    assert filled.schema == wanted
    assert filled["whole"].null_count() == 0
    assert filled["text"].to_list() == every_type()["text"].to_list()
    enum = pa.table(loaded.sample(50, seed=1, frames="arrow"))["enum"].combine_chunks()
    assert enum.dictionary.to_pylist() == ["d", "c", "b", "a", "z"]
    assert enum.type.ordered
    of_pandas = loaded.log_likelihood(every_type().to_pandas())
    assert polars.DataFrame(loaded.log_likelihood(table)).equals(polars.DataFrame(of_pandas))
    assert len(loaded.encode(table)) == len(loaded.sample(given_rows=table)) == N


def test_a_list_among_the_columns_is_named_and_can_be_dropped() -> None:
    table = pa.table(plain()).append_column("list", pa.array([[1, 2]] * N))
    with refuses(TableError, column="list"):
        infer_schema(table)
    given = {"columns": [{"name": "list", "drop": True}]}
    fitted = Synthesizer.fit(table, schema=given, **SETTINGS)
    assert fitted.sample(3).column_names == ["größe", "b"]
    assert fitted.impute(table)["list"].to_pylist() == [[1, 2]] * N


def test_what_comes_out_is_a_frame_of_the_kind_that_went_in(tmp_path: Path) -> None:
    """Of a sample the kind of the table that was trained on, also once saved and loaded."""
    made = {"pandas": plain(), "polars": polars.DataFrame(plain()), "arrow": pa.table(plain())}
    for kind, table in made.items():
        Synthesizer.fit(table, **SETTINGS).save(tmp_path / "model.gcvae")
        loaded = Synthesizer.load(tmp_path / "model.gcvae")
        outs = [loaded.sample(9, seed=1), loaded.sample(given_rows=table, seed=1)]
        assert {type(out) for out in outs} == {type(table)}
        for other, rows in made.items():
            found = [loaded.impute(rows), loaded.encode(rows), loaded.log_likelihood(rows)]
            assert {type(one) for one in found} == {type(rows)}
            drawn = loaded.sample(9, seed=1, frames=other)
            assert type(drawn) is type(rows)
            for place in (f"{other}.csv", f"{other}.parquet"):
                write_table(drawn, tmp_path / place, loaded.schema)
        for end in ("csv", "parquet"):
            assert len({(tmp_path / f"{other}.{end}").read_bytes() for other in made}) == 1, kind
    with refuses(SettingError):
        loaded.sample(1, frames="pandsa")


def test_rows_of_any_index_and_no_rows_are_taken(fitted: Synthesizer) -> None:
    rows = plain().set_index(pd.Index([7] * N))
    assert len(fitted.impute(rows)) == len(fitted.log_likelihood(rows)) == N
    none = rows.head(0)
    assert len(fitted.impute(none)) == len(fitted.encode(none)) == 0
    assert len(fitted.log_likelihood(none)) == 0
    assert list(fitted.impute(none, draws=2)) == ["draw", "größe", "b"]
    assert (
        parse_table(polars.DataFrame(plain()), fitted.schema)["b"].tolist() == plain()["b"].tolist()
    )


def test_a_synthesizer_a_schema_and_a_map_say_what_they_are_in_a_line() -> None:
    secret = ["secret one", "secret two", "secret three"] * 40
    fitted = Synthesizer.fit(plain().assign(note=secret), **SETTINGS)
    told = repr(fitted)
    assert "3 columns" in told
    assert "120 rows" in told
    assert "preset fast" in told
    assert f"{fitted.training_record['bound_held_out']:.2f} nats" in told
    assert repr(fitted.schema) == "<TableSchema: 3 columns (1 continuous, 2 categorical)>"
    assert repr(fitted.dependencies("data")).startswith("<DependencyMap: data, 3 columns")
    for thing in (fitted, fitted.schema, fitted.dependencies("data"), infer_schema(plain())):
        assert len(repr(thing)) < 200
        assert "\n" not in repr(thing)
        assert "secret" not in repr(thing)
