"""Imputation: known cells to the byte, blanks by values, each from p(missing | known)."""

from __future__ import annotations

import io
import json
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from gcvae import Synthesizer, TableReader, read_table
from gcvae.cells.values import format_table
from gcvae.errors import SettingError, TableError, UnknownColumnError
from gcvae.sampling.imputation_stream import stream_completed
from tests.gcvae.conditioned_tables import excess_variation, fitted, table
from tests.lengths import first_of
from tests.wordings import refuses

pytestmark = pytest.mark.usefixtures("few_rows")
PRESETS = first_of("fast", "paper-gcvae", "paper-vae-roc")


def blanked(n: int = 300, share: float = 0.25) -> tuple[pd.DataFrame, np.ndarray]:
    """Text cells with blanks among them, and where they are."""
    frame = table().head(n).astype(object)
    text = frame.where(frame.notna(), "").astype(str)
    holes = np.random.default_rng(1).random(text.shape) < share
    return text.mask(holes, ""), holes | (text == "").to_numpy()


@pytest.mark.parametrize("preset", PRESETS)
def test_known_cells_stay_and_every_blank_becomes_a_value(preset: str) -> None:
    cells, blank = blanked()
    filled = fitted(preset).impute(cells)
    assert filled.where(~blank, "").equals(cells)
    assert not filled.isin(["", "NA"]).any(axis=None)
    assert set(filled["city"]) <= {"Rome", "Paris", "Lyon", "Turin"}
    pd.testing.assert_frame_equal(filled, fitted(preset).impute(cells))


@cache
def whole_and_its_model() -> tuple[pd.DataFrame, Synthesizer]:
    """A table without blanks, and its model, saved and loaded."""
    random = np.random.default_rng(0)
    size = random.normal(size=300).round(2)
    whole = pd.DataFrame({"größe": size, "是": size > 0.5, "of": random.integers(0, 9, 300)})
    whole["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 99, 300), "D")
    whole["grade"] = np.where(size > 0, "high", "low")
    model = Synthesizer.fit(whole, preset="fast", settings={"max_steps": 5}, seed=0)
    return whole, Synthesizer.from_bytes(model.to_bytes())


@pytest.mark.parametrize("blank", [None, np.nan, pd.NA])
def test_a_column_without_a_cell_is_filled_in_the_schemas_dtype(blank: object) -> None:
    whole, model = whole_and_its_model()
    rows = whole.head(5)[["grade", "of"]].assign(是=blank, day=blank, größe=blank)
    filled = model.impute(rows, seed=1)
    assert filled.dtypes.map(str).to_dict() == {
        "grade": "object", "of": "int64", "是": "boolean", "day": "datetime64[us]",
        "größe": "float64",
    }  # fmt: skip
    assert not filled.isna().any(axis=None)
    some = whole.head(5).astype({"größe": object})
    some.loc[0, "größe"] = blank
    assert (
        model.impute(some, seed=1)["größe"].iloc[1:].tolist() == whole["größe"].iloc[1:5].tolist()
    )
    nothing = model.impute(rows.assign(grade=blank, of=blank), seed=1)
    assert not nothing.isna().any(axis=None)
    absent = model.impute(rows[["grade", "of"]], seed=1)
    assert absent[[*filled]].equals(filled)
    as_text = model.impute(rows.astype({"of": str}), seed=1)
    assert {str(kind) for kind in as_text.dtypes} == {"object"}
    assert as_text["是"].isin(["True", "False"]).all()


def test_draws_are_numbered_row_by_row() -> None:
    cells, blank = blanked(40)
    filled = fitted("paper-gcvae").impute(cells, draws=3, seed=1)
    assert list(filled.columns) == ["draw", *cells.columns]
    assert filled["draw"].tolist() == [1, 2, 3] * 40
    for draw in (1, 2, 3):
        one = filled[filled["draw"] == draw].drop(columns="draw").reset_index(drop=True)
        assert one.where(~blank, "").equals(cells)
    assert filled.groupby(np.arange(120) // 3)["height"].nunique().max() == 3
    written = format_table(filled, fitted("paper-gcvae").schema)
    assert written["draw"].tolist() == ["1", "2", "3"] * 40
    assert list(written.columns) == list(filled.columns)


def test_a_blank_is_drawn_from_what_is_known_of_its_row() -> None:
    """Many copies of one row: the draws are the conditional that `given` samples."""
    known = {"height": "181.0", "grade": "high"}
    row = {name: known.get(name, "") for name in table().columns}
    filled = fitted("paper-gcvae").impute(pd.DataFrame([row] * 600), seed=2)
    cities = ["Rome", "Paris", "Lyon", "Turin"]
    given = {"height": 181.0, "grade": "high", "city": cities}
    rows = fitted("paper-gcvae").sample(4000, seed=3, given=given)
    assert excess_variation(filled["city"], rows["city"].astype(object)) < 0.06
    assert excess_variation(filled["age"].astype(int), rows["age"].astype(int)) < 0.06


def test_a_known_cell_that_training_never_had_stays_and_says_nothing() -> None:
    cells, _ = blanked(20, share=0.0)
    cells.loc[0, ["city", "age"]] = ["Oslo", ""]
    filled = fitted("paper-gcvae").impute(cells)
    assert filled.loc[0, "city"] == "Oslo"
    assert 18 <= int(filled.loc[0, "age"]) <= 90


def test_typed_cells_stay_typed() -> None:
    frame = table().head(60)
    frame["age"] = frame["age"].astype("Int64").mask(np.arange(60) % 3 == 0)
    frame["height"] = frame["height"].mask(np.arange(60) % 4 == 0)
    filled = fitted("paper-gcvae").impute(frame)
    assert filled.dtypes.equals(frame.dtypes)
    assert filled.notna().all(axis=None)
    kept = frame["height"].notna()
    assert (filled["height"][kept] == frame["height"][kept]).all()


def test_a_file_keeps_its_known_cells_to_the_byte() -> None:
    synthesizer = fitted("paper-gcvae")
    text = (
        b"age,grade,city,member,since,height,gain\n" + b"41,low,Rome,yes,2020-01-05,171.50,0\n" * 3
    )
    text += b"41,,Rome,yes,2020-01-05,171.50,0\n"
    blocks = synthesizer.impute_blocks(read_table(text))
    lines = b"".join(stream_completed(blocks, synthesizer.schema, "csv")).split(b"\n")
    assert lines[:4] == text.split(b"\n")[:4]
    assert lines[4].startswith(b"41,")
    assert lines[4].endswith(b",Rome,yes,2020-01-05,171.50,0")


def test_a_cell_is_known_by_its_copy() -> None:
    numbers = np.random.default_rng(0).normal(50.0, 10.0, 300).round(2)
    frame = pd.DataFrame({"a": numbers, "a_again": numbers, "b": (numbers > 50.0).astype(str)})
    synthesizer = Synthesizer.fit(frame, preset="fast", settings={"max_steps": 50})
    assert synthesizer.codec.copies == {"a_again": "a"}
    rows = pd.DataFrame({"a": [None, 70.0] * 20, "a_again": [70.0, None] * 20, "b": None})
    filled = synthesizer.impute(rows)
    assert (filled[["a", "a_again"]] == 70.0).all(axis=None)
    assert (filled["b"] == "True").mean() > 0.8


@pytest.mark.parametrize("format", ["parquet", "json", "jsonl"])
def test_other_formats_hold_values_and_the_draw(format: str) -> None:
    synthesizer = fitted("paper-gcvae")
    cells, _ = blanked(12)
    content = b"".join(
        stream_completed(synthesizer.impute_blocks(cells, draws=2), synthesizer.schema, format)
    )
    if format == "parquet":
        assert read_table(content)["draw"].tolist() == [1, 2] * 12
    else:
        assert content.count(b'"draw": 2') == 12


def test_what_can_not_be_imputed_is_refused() -> None:
    cells, _ = blanked(5)
    with refuses(SettingError, "/draws"):
        next(fitted("paper-gcvae").impute_blocks(cells, draws=0))
    with refuses(UnknownColumnError, column="aeg"):
        next(fitted("paper-gcvae").impute_blocks(cells.rename(columns={"age": "aeg"})))


@pytest.mark.parametrize("preset", PRESETS)
def test_a_column_that_a_table_lacks_is_one_of_blanks(preset: str, tmp_path: Path) -> None:
    cells, lacking = blanked(20)[0], ["age", "since", "city"]
    part = cells.drop(columns=lacking)[cells.columns.drop(lacking)[::-1]]
    blank = part.assign(**dict.fromkeys(["age", "since", "city"], ""))
    blank = blank[[*part, *(name for name in cells if name in lacking)]]
    synthesizer = Synthesizer.from_bytes(fitted(preset).to_bytes())
    part.to_csv(tmp_path / "part.csv", index=False)
    reader = TableReader(tmp_path / "part.csv")
    for rows in (part, reader):
        pd.testing.assert_frame_equal(synthesizer.impute(rows), synthesizer.impute(blank))
        pd.testing.assert_frame_equal(
            synthesizer.log_likelihood(rows, 5), synthesizer.log_likelihood(blank, 5)
        )
        pd.testing.assert_frame_equal(synthesizer.encode(rows), synthesizer.encode(blank))


def test_a_typed_table_is_completed_by_typed_columns(tmp_path: Path) -> None:
    typed = table().head(40).drop(columns=["age", "height", "since"])
    typed.to_parquet(tmp_path / "part.parquet")
    for rows in (typed, tmp_path / "part.parquet"):
        completed = fitted("fast").impute(rows)
        assert pd.api.types.is_integer_dtype(completed["age"])
        assert pd.api.types.is_float_dtype(completed["height"])
        assert pd.api.types.is_datetime64_any_dtype(completed["since"])
        assert completed[["age", "height", "since"]].notna().all(axis=None)


def test_a_table_that_has_none_of_the_models_columns_is_refused(tmp_path: Path) -> None:
    rows = pd.DataFrame({"one": ["1", "1"]})
    made = Synthesizer.fit(table().assign(one="1"), settings={"max_steps": 2}, preset="fast")
    rows.to_csv(tmp_path / "one.csv", index=False)
    for given in (rows, tmp_path / "one.csv"):
        for use in (made.impute, made.log_likelihood, made.encode):
            with refuses(TableError):
                use(given)


@pytest.mark.parametrize("format", ["csv", "parquet", "json"])
def test_cells_of_dropped_columns_are_passed_on(format: str, tmp_path: Path) -> None:
    n = 60
    columns = {
        "x": pa.array([None if i % 4 == 0 else i / 7 for i in range(n)]),
        "day": pa.array([date(2024, 1, 1 + i % 28) for i in range(n)]),
        "seconds": pa.array([timedelta(seconds=i) for i in range(n)], pa.duration("s")),
        "time": pa.array([time(1, 2, i) for i in range(n)]),
        "price": pa.array([Decimal(i) / 4 for i in range(n)], pa.decimal128(8, 2)),
        "count": pa.array([None if i % 3 else i for i in range(n)], pa.int16()),
        "note": pa.array(["NA" if i % 3 else f"note {i}" for i in range(n)]),
        "flag": pa.array([bool(i % 2) for i in range(n)]),
    }
    table, path = pa.table(columns), tmp_path / "rows.parquet"
    parquet.write_table(table, path)
    dropped = [{"name": name, "drop": True} for name in list(columns)[1:]]
    model = Synthesizer.fit(TableReader(path), schema={"columns": dropped}, preset="fast",
                            settings={"max_steps": 3})  # fmt: skip
    blocks = model.impute_blocks(TableReader(path))
    written = b"".join(stream_completed(blocks, model.schema, format))
    if format == "parquet":
        again = parquet.read_table(io.BytesIO(written))
        assert again.drop(["x", "note"]).equals(table.drop(["x", "note"]))
        return
    if format == "csv":
        lines = pd.read_csv(io.BytesIO(written), dtype=str, keep_default_na=False).to_dict("list")
        assert lines["note"] == columns["note"].to_pylist()
    else:
        lines = pd.DataFrame(json.loads(written)).astype(str).to_dict("list")
    assert lines["day"][1] == "2024-01-02"
    assert lines["time"][1] == "01:02:01"
    assert lines["seconds"][1] == "1"
    assert lines["price"][1] == "0.25"
    assert lines["flag"][1].lower() == "true"


@pytest.mark.parametrize("preset", first_of("fast", "default"))
def test_a_blank_that_a_rule_asks_for_stays_and_any_other_is_filled(preset: str) -> None:
    random = np.random.default_rng(0)
    status = random.choice(["open", "sold", "returned"], 600, p=[0.3, 0.4, 0.3])
    is_back = status == "returned"
    whole = pd.DataFrame(
        {
            "status": status,
            "refund": np.where(is_back, random.integers(1, 900, 600) / 10, np.nan),
            "reason": np.where(is_back, random.choice(["late", "broken"], 600), None),
            "price": random.integers(100, 900, 600) / 10,
        }
    )
    rules = [
        {"rule": "is_missing(refund) if status != 'returned'", "keep": "hard"},
        {"rule": "is_missing(reason) == is_missing(refund)"},
    ]
    fitted = Synthesizer.fit(
        whole, schema={"rules": rules}, preset=preset, settings={"max_steps": 10}, seed=0
    )
    model = Synthesizer.from_bytes(fitted.to_bytes())
    hole = np.arange(600) % 3 == 0
    filled = model.impute(whole.mask(hole[:, None] & [False, True, True, True]), seed=1)
    assert (filled["refund"].notna() == is_back).all()
    assert (filled["reason"].notna() == is_back).all()
    assert filled["price"].notna().all()
    scores = model.log_likelihood(whole[~is_back], draws=5, seed=2)
    assert np.isfinite(scores["log_likelihood"]).all()
    assert (scores[["contributions.refund", "contributions.reason"]] == 0.0).all(axis=None)


@pytest.mark.parametrize(
    "words", [("no", "yes"), ("N", "Y"), ("0", "1"), (0, 1), (0.0, 1.0), (False, True)]
)
def test_truth_values_are_filled_in_the_words_of_the_table(words: tuple[object, object]) -> None:
    random = np.random.default_rng(0)
    whole = pd.DataFrame({"member": random.random(300) < 0.5, "size": random.normal(size=300)})
    model = Synthesizer.fit(whole, preset="fast", settings={"max_steps": 5}, seed=0)
    cells = np.array(words, dtype=object)[[0, 1] * 30 + [1] * 30]
    rows = pd.DataFrame({"member": cells, "size": random.normal(size=90)})
    rows.loc[np.arange(90) % 3 == 0, "member"] = None
    for part in (rows, rows.tail(30)):  # the last rows have only one of the words
        filled = model.impute(part, seed=1)["member"]
        assert set(map(repr, filled)) == set(map(repr, words))
    given = rows.astype({"member": "string"}).to_csv(index=False).encode()
    if isinstance(words[0], str):
        blocks = model.impute_blocks(read_table(given))
        lines = b"".join(stream_completed(blocks, model.schema, "csv")).splitlines()[1:]
        assert {line.split(b",")[0].decode() for line in lines} == set(words)
