"""Imputation of some columns: the others stay as they are, and blanks that are values are known."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae import Synthesizer, TableReader, infer_schema, read_table
from gcvae.errors import InputError, SettingError, TableError, UnknownColumnError
from gcvae.sampling.filled_columns import filled_columns, read_names
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.schema.columns import TableSchema
from tests.wordings import refuses

COMMA, CHINESE = 'income, "net"', "第二申请人"
"""Names that lists with commas between have to carry."""


def loans(n: int = 400) -> pd.DataFrame:
    """Couples have a second applicant, singles have none; incomes are missing by chance."""
    rng = np.random.default_rng(0)
    couple = rng.random(n) < 0.5
    income = np.round(rng.normal(np.where(couple, 5000.0, 2000.0), 300.0), 1).astype(str)
    return pd.DataFrame(
        {
            "zeta": np.where(couple, "couple", "single"),
            COMMA: np.where(rng.random(n) < 0.1, "NA", income),
            CHINESE: np.where(couple, rng.choice(["spouse", "sibling"], n), ""),
            "age": rng.integers(20, 70, n).astype(str),
        }
    )


@cache
def fitted(is_value: bool = False) -> Synthesizer:
    """A model of the loans, as it is after saving and loading."""
    given = {"columns": [{"name": CHINESE, "missing": {"is_value": is_value}}]}
    settings = {"max_steps": 20}
    table = loans()
    made = Synthesizer.fit(table, schema=given, preset="fast", settings=settings, seed=1)
    return Synthesizer.from_bytes(made.to_bytes())


def blanked(n: int = 200) -> pd.DataFrame:
    """Rows with blanks in every column, spelled in three ways."""
    rows = loans(n)
    holes = np.random.default_rng(2).random(rows.shape) < 0.3
    markers = np.random.default_rng(3).choice(["", "NA", "?"], rows.shape)
    return pd.DataFrame(np.where(holes, markers, rows), columns=rows.columns)


def is_blank(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.isin(["", "NA", "?"])


def test_only_the_named_columns_are_filled_and_as_they_are_among_all() -> None:
    rows = blanked()
    whole = fitted().impute(rows, seed=4)
    some = fitted().impute(rows, seed=4, columns=[CHINESE, COMMA])
    pd.testing.assert_frame_equal(some[["zeta", "age"]], rows[["zeta", "age"]])
    pd.testing.assert_frame_equal(some[[COMMA, CHINESE]], whole[[COMMA, CHINESE]])
    # No single of the table has a second applicant: these cells stay missing, also where it is
    # drawn that the applicant is single.
    has_none = (whole["zeta"] == "single") & is_blank(rows)[CHINESE]
    assert not is_blank(some)[COMMA].any()
    assert is_blank(some)[CHINESE].equals(has_none)


@pytest.mark.slow
def test_a_file_has_the_same_cells_filled_and_leaves_the_others_byte_by_byte(
    tmp_path: Path,
) -> None:
    rows = blanked(1500)
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    options = {"columns": [COMMA], "seed": 5}
    blocks = fitted().impute_blocks(TableReader(path), **options)
    completed = read_table(b"".join(stream_completed(blocks, fitted().schema, "csv")))
    expected = fitted().impute(rows, **options)
    assert completed.to_numpy().tolist() == expected.to_numpy().tolist()
    assert (completed["age"] == rows["age"]).all()
    parts = [
        fitted().impute_blocks(TableReader(path), among=among, **options)
        for among in (range(1024), range(1024, 1500))
    ]
    joined = pd.concat([block for part in parts for block in part], ignore_index=True)
    assert joined.to_numpy().tolist() == expected.to_numpy().tolist()


def single_rows(n: int = 200) -> pd.DataFrame:
    """Nothing is known but that there is no second applicant."""
    blank = [""] * n
    return pd.DataFrame({"zeta": blank, COMMA: blank, CHINESE: blank, "age": ["40"] * n})


def test_a_kept_blank_stays_and_the_others_are_drawn_given_that_it_is_one() -> None:
    left = fitted().impute(single_rows(), columns=["zeta"])
    kept = fitted().impute(single_rows(), keep_missing=[CHINESE])
    assert (kept[CHINESE] == "").all()
    assert (kept["zeta"] == "single").mean() > 0.95
    assert kept[COMMA].astype(float).median() < 3000
    assert 0.4 < (left["zeta"] == "couple").mean() < 0.6, "a blank that is left says nothing"


@pytest.mark.slow
def test_a_schema_says_once_that_blanks_are_values() -> None:
    by_schema, by_request = fitted(is_value=True), fitted()
    assert by_schema.schema[CHINESE].missing.is_value
    rows = single_rows()
    filled = by_schema.impute(rows)
    pd.testing.assert_frame_equal(filled, by_request.impute(rows, keep_missing=[CHINESE]))
    everything = by_schema.impute(rows, keep_missing=[])
    pd.testing.assert_frame_equal(everything, by_request.impute(rows))
    named = by_schema.impute(rows, columns=[CHINESE])
    pd.testing.assert_series_equal(named[CHINESE], everything[CHINESE])
    assert is_blank(everything)[CHINESE].equals(everything["zeta"] == "single")
    assert is_blank(named[["zeta", COMMA]]).all(axis=None)


def test_a_schema_document_keeps_what_it_says_of_blanks() -> None:
    schema = fitted(is_value=True).schema
    assert TableSchema.from_json(schema.to_json()) == schema
    assert "is_value" not in str(fitted().schema.to_json()), "older documents are as they were"
    with refuses(InputError, "/columns/0/missing"):
        infer_schema(loans(), {"columns": [{"name": "zeta", "missing": {"is_value": "yes"}}]})


@pytest.mark.parametrize("kind", ["json", "parquet"])
def test_blanks_that_stay_are_null_in_typed_formats(kind: str) -> None:
    rows = blanked(60)
    blocks = fitted().impute_blocks(rows, columns=["zeta"])
    data = b"".join(stream_completed(blocks, fitted().schema, kind))
    found = pd.read_json(io.BytesIO(data)) if kind == "json" else read_table(data)
    names = [COMMA, CHINESE, "age"]
    assert (found[names].isna().to_numpy() == is_blank(rows[names]).to_numpy()).all()
    assert found["zeta"].notna().all()


def test_a_column_that_equals_another_is_filled_with_its_cell_where_it_is_named() -> None:
    numbers = np.random.default_rng(0).normal(50.0, 10.0, 300).round(2)
    table = pd.DataFrame({"b": numbers, "a": numbers, "c": numbers > 50})
    made = Synthesizer.fit(table, preset="fast", settings={"max_steps": 5})
    assert made.codec.copies == {"a": "b"}
    rows = pd.DataFrame({"b": [None, 70.0], "a": [70.0, None], "c": None})
    only_a = made.impute(rows, columns=["a"])
    assert only_a["a"].tolist() == [70.0, 70.0]
    assert only_a["b"].isna().tolist() == [True, False]


@pytest.mark.parametrize(
    ("columns", "keep_missing", "error"),
    [
        (["ages"], None, UnknownColumnError),
        (None, ["Zeta"], UnknownColumnError),
        ([], None, SettingError),
        ("age", None, SettingError),
        (["age"], ["age"], SettingError),
    ],
)
def test_what_can_not_be_filled_is_refused_by_its_place(
    columns: list[str], keep_missing: list[str], error: type[Exception]
) -> None:
    with refuses(error):
        fitted().impute(blanked(5), columns=columns, keep_missing=keep_missing)


def test_identifiers_dropped_columns_and_absent_ones_are_not_filled() -> None:
    table = loans().assign(key=[f"k{i}" for i in range(400)], note="n", one="1")
    given = {"columns": [{"name": "note", "drop": True}]}
    schema = infer_schema(table, given).schema
    for name in ("key", "note"):
        with refuses(SettingError, "/columns/0"):
            filled_columns(schema, [name])
    made = Synthesizer.fit(table, schema=schema, preset="fast", settings={"max_steps": 5})
    with refuses(TableError, column="one"):
        made.impute(table.head(3).drop(columns="one"), columns=["one"])


def test_lists_of_names_carry_commas_quotes_and_scripts() -> None:
    assert read_names('"income, ""net""",第二申请人', "?columns") == [COMMA, CHINESE]
    assert read_names("a, b", "?columns") == ["a", "b"]
    assert read_names('a," b\nc"', "?columns") == ["a", " b\nc"]
    with refuses(InputError, "?columns"):
        read_names('"a', "?columns")
