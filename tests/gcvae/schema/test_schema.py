"""What the schema makes of columns, and how it says what is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.cells.levels import level_texts
from gcvae.cells.values import parse_table
from gcvae.errors import SchemaError, TableError, UnknownColumnError
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import ColumnKind
from tests.gcvae.frames import KINDS, columns, frame_of
from tests.lengths import tries
from tests.wordings import refuses, same_wording


def read(text: str) -> pd.DataFrame:
    return read_table(text.encode())


def column_of(cells: list[str], given: dict[str, object] | None = None) -> Column:
    document = None if given is None else {"columns": [{"name": "column", **given}]}
    return infer_schema(frame_of(cells), document).schema["column"]


def problems_of(text: str, *columns: dict[str, object], **more: object) -> list[str]:
    with pytest.raises(SchemaError) as caught:
        infer_schema(read(text), {"columns": list(columns), **more})
    return [str(problem) for problem in caught.value.problems]


# Laws


@pytest.mark.parametrize("kind", KINDS)
@tries(20)
@given(data=st.data())
def test_a_schema_comes_back_from_its_document(kind: str, data: st.DataObject) -> None:
    schema = infer_schema(frame_of(data.draw(columns(kind)))).schema
    assert TableSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


@pytest.mark.parametrize("kind", KINDS)
@tries(20)
@given(data=st.data())
def test_a_table_agrees_with_its_own_schema(kind: str, data: st.DataObject) -> None:
    frame = frame_of(data.draw(columns(kind)))
    schema = infer_schema(frame).schema
    assert infer_schema(frame, schema).schema == schema


@tries(20)
@given(cells=columns("levels"), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_change_the_levels(cells: list[str], seed: int) -> None:
    shuffled = np.random.default_rng(seed).permutation(np.array(cells, dtype=object)).tolist()
    assert column_of(cells).levels == column_of(shuffled).levels


# Kinds


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([str(n) for n in range(0, 60, 2)], "integer"),
        ([f"{n}.0" for n in range(0, 60, 2)], "integer"),
        ([f"{n / 4}" for n in range(30)], "continuous"),
        ([f"{n}e-7" for n in range(1, 31)], "continuous"),
        ([" 4", "15 ", "7"] * 3, "ordinal"),
        (["0", "1"] * 5, "ordinal"),
        (["1.5", "2.5"] * 5, "ordinal"),
        (["TRUE", "FALSE"] * 5, "boolean"),
        (["Yes", "No"] * 5, "boolean"),
        (["yes", "No"] * 5, "categorical"),
        (["2024-02-29", "2023-01-31"] * 5, "datetime"),
        (["31.12.2023", "1.2.2024"] * 5, "datetime"),
        (["3:04", "5:06"] * 5, "categorical"),
        (["13:04", "05:06"] * 5, "datetime"),
        (["13:04:59", "05:06:00"] * 5, "datetime"),
        (["3:04 PM", "11:06 AM"] * 5, "datetime"),
        (["13:04:59", "24:06:00"] * 5, "ordinal"),  # durations
        (["2024-02-29", "2024-02-30"] * 5, "categorical"),
        ([f"2024{month:02d}{day:02d}" for month in (1, 2) for day in range(1, 21)], "datetime"),
        (["01234", "04711"] * 5, "categorical"),
        (["1,000", "2,000"] * 5, "ordinal"),
        (["unknown", "1"] * 5, "categorical"),
        (["x"] * 9, "constant"),
        (["?"] * 9, "constant"),
        ([f"person {n}" for n in range(60)], "identifier"),
        ([f"{n:03d}" for n in range(60)], "identifier"),
        ([str(n) for n in range(1, 61)], "identifier"),
        ([str(n) for n in range(1950, 2010)], "integer"),
        ([str(n / 7) for n in range(60)], "continuous"),
        ([str(n * n * 7919) for n in range(60)], "integer"),
        ([f"person {n}" for n in range(20)], "categorical"),
    ],
)
def test_a_column_is_of_the_kind_that_its_cells_speak_for(cells: list[str], kind: str) -> None:
    assert column_of(cells).kind == kind


def test_all_rows_are_looked_at_not_the_first_ones_only() -> None:
    assert column_of([*map(str, range(100, 1100)), "3.5"]).kind is ColumnKind.CONTINUOUS


def test_whole_numbers_that_hardly_repeat_and_are_named_like_a_key_are_identifiers() -> None:
    keys = [str(n * 7919) for n in range(60)]
    frame = pd.DataFrame({"customer_id": keys, "amount": keys, "other": ["a", "b"] * 30})
    schema = infer_schema(frame).schema
    assert [column.kind for column in schema] == ["identifier", "integer", "categorical"]


def test_whole_numbers_beyond_64_bits_are_text() -> None:
    assert column_of(["123456789012345678901", "2"] * 5).kind is ColumnKind.CATEGORICAL


@pytest.mark.parametrize(
    ("cells", "markers"),
    [
        (["1", "?", "2"], ("?",)),
        (["1", "", "2", "NA", ""], ("", "NA")),
        (["1", "None", "2", "-"], ("None", "-")),
        (["a", "N/A", "b", "null"], ("N/A", "null")),
        (["a", "None", "b", "-"], ()),
        (["a", "unknown", "b"], ()),
        ([" ?", "a", "b"], (" ?",)),
        (["yes", "no", "-"], ("-",)),
    ],
)
def test_a_marker_means_missing_where_the_column_otherwise_makes_sense(
    cells: list[str], markers: tuple[str, ...]
) -> None:
    column = column_of(cells)
    assert column.missing.markers == markers
    assert column.missing.allowed == bool(markers)


def test_one_value_beside_missing_cells_is_no_constant() -> None:
    assert column_of(["yes", "", "yes"]).kind is ColumnKind.CATEGORICAL
    assert column_of(["7", "", "7"]).kind is ColumnKind.ORDINAL


@pytest.mark.parametrize(
    ("cells", "level", "text"),
    [
        (["0.0", "-0.0", "0.0"], 0, "0.0"),
        (["0", "-0", "0"], 0, "0"),
        (["5", "5.0", "5.0"], 5, "5.0"),
    ],
)
def test_one_number_in_several_spellings_is_a_constant_in_the_most_frequent_one(
    cells: list[str], level: float, text: str
) -> None:
    frame = frame_of(cells)
    inferred = infer_schema(frame)
    column = inferred.schema["column"]
    assert (column.kind, column.levels) == (ColumnKind.CONSTANT, (level,))
    assert level_texts(column) == [text]
    assert any("several formats" in warning for warning in inferred.warnings)
    assert parse_table(frame, inferred.schema)["column"].tolist() == [level] * 3


def test_the_limits_and_the_decimals_are_those_of_the_cells() -> None:
    column = column_of([f"{n / 8:.2f}" for n in range(40)])
    assert (column.minimum, column.maximum) == (0.0, 4.88)
    assert (column.decimals, column.padded) == (2, True)


def test_the_words_of_a_boolean_are_kept_false_first() -> None:
    assert column_of(["WAHR", "FALSCH"]).kind is ColumnKind.CATEGORICAL
    assert column_of(["T", "F", "T"]).levels == ("F", "T")


def test_typed_columns_are_of_the_kind_of_their_dtype() -> None:
    n = 40
    frame = pd.DataFrame(
        {
            "int": np.arange(n) * 3,
            "float": np.linspace(0, 1, n),
            "whole float": np.arange(n, dtype=float) * 3,
            "int with gaps": pd.Series([np.nan, *range(0, 3 * (n - 1), 3)]),
            "bool": [True, False] * (n // 2),
            "date": pd.date_range("2024-01-01", periods=n),
            "time": pd.date_range("2024-01-01", periods=n, freq="h", tz="Europe/Berlin"),
            "category": pd.Categorical(["a", "b"] * (n // 2), categories=["b", "a", "c"]),
            "ordered": pd.Categorical([1, 3] * (n // 2), categories=[3, 2, 1], ordered=True),
            "string": pd.array(["x", None] * (n // 2), dtype="string"),
        }
    )
    schema = infer_schema(frame).schema
    assert [str(column.kind) for column in schema] == [
        "integer", "continuous", "continuous", "integer", "boolean", "datetime", "datetime",
        "categorical", "ordinal", "categorical",
    ]  # fmt: skip
    assert schema["category"].levels == ("b", "a", "c")
    assert schema["ordered"].levels == (3, 2, 1)
    assert schema["time"].datetime_format == "%Y-%m-%d %H:%M:%S+00:00"
    assert schema["time"].parquet_type == "timestamp[ns, tz=Europe/Berlin]"
    assert schema["string"].missing.allowed


def test_what_a_user_should_look_at_is_a_warning() -> None:
    text = "\n".join(["id,name,n,d", *(
        f"k{i},name {i % 40},{i if i != 5 else 'abc'},01/02/20{i % 30 + 10}" for i in range(60)
    )])  # fmt: skip
    warnings = infer_schema(read(text)).warnings
    assert [w.split(":")[0] for w in warnings] == [
        "column 'id'", "column 'name'", "column 'n'", "column 'n'", "column 'd'",
    ]  # fmt: skip
    assert "line 7 holds 'abc'" in warnings[2]
    assert "%d/%m/%Y fits every cell too" in warnings[4]


# What is given


def test_what_the_user_says_wins() -> None:
    text = "a,b,c,d\n1,1,2,03/04/2024\n2,0,3,05/06/2024\n"
    given = [
        {"name": "a", "kind": "continuous", "minimum": 0, "maximum": 10},
        {"name": "b", "kind": "boolean"},
        {"name": "c", "kind": "categorical", "levels": [1, 2, 3]},
        {"name": "d", "datetime_format": "%d/%m/%Y"},
    ]
    schema = infer_schema(read(text), {"columns": given}).schema
    assert (schema["a"].minimum, schema["a"].maximum) == (0, 10)
    assert schema["b"].levels == (0, 1)
    assert schema["c"].levels == (1, 2, 3)
    assert schema["d"].minimum == "03/04/2024"
    assert [str(c.kind) for c in schema] == ["continuous", "boolean", "categorical", "datetime"]


def test_given_markers_are_the_only_markers() -> None:
    cells = ["none of it", "?", "b", "none of it"]
    assert column_of(cells, {"missing": {"markers": ["none of it"]}}).levels == ("?", "b")


@given(st.lists(st.integers(-500, 500), min_size=4, max_size=40))
def test_numbers_are_levels_only_where_two_rows_share_each_on_average(values: list[int]) -> None:
    frame = pd.DataFrame({"n": values, "x": ["a", "a", "b", "b", *["a"] * (len(values) - 4)]})
    kind = infer_schema(frame, rules=False).schema["n"].kind
    assert kind is not ColumnKind.ORDINAL or len(values) >= 2 * len(set(values))


def test_hard_rules_are_kept() -> None:
    hard_rules = [
        {"rule": "a < b", "keep": "hard"},
        {"rule": "combinations(a, b)", "keep": "hard"},
        {"rule": "a + 1 <= `b`", "keep": "hard"},
    ]
    schema = infer_schema(
        read("a,b\n" + 2 * "1,2\n2,3\n"), {"rules": hard_rules, "find_rules": True}
    ).schema
    kept = [{"rule": rule.text, "keep": rule.keep} for rule in schema.rules or ()]
    assert kept[:3] == hard_rules


TEXT = 'age,sex\n39,M\n17,F\n"abc",M\n'


@pytest.mark.parametrize(
    "given",
    [
        {"name": "age", "kind": "integer"},
        {"name": "sex", "levels": ["F", "X"]},
        {"name": "ages"},
        {"name": "age", "missing": {"markers": ["abc"]}, "minimum": 18},
        {"name": "age", "missing": {"markers": ["abc"], "allowed": False}},
        {"name": "sex", "kind": "categorical", "minimum": 1},
        {"name": "sex", "kind": "constant"},
        {"name": "sex", "kind": "boolean"},
        {"name": "sex", "kind": "datetime"},
        {"name": "sex", "kind": "text"},
        {"name": "sex", "kind": "drop"},
        {"name": "sex", "levles": ["M"]},
        {"kind": "integer"},
        {"name": "age", "decimals": -1},
        {"name": "age", "maximum": float("inf")},
        {"name": "age", "levels": [1, float("nan")]},
        {"name": "age", "datetime_format": "%d %b"},
    ],
)
def test_a_contradiction_names_the_place_and_what_would_be_right(given: dict[str, object]) -> None:
    [problem] = problems_of(TEXT, given)
    same_wording(problem)


def test_every_contradiction_is_named_at_once() -> None:
    found = problems_of(TEXT, {"name": "age", "kind": "integer"}, {"name": "sex", "levels": ["M"]})
    assert len(found) == 2


@pytest.mark.parametrize(
    "hard_rule",
    [
        {"kind": "order"},
        {"kind": "inequality", "low": "age"},
        {"rule": "combinations(age, 3)", "keep": "hard"},
        {"rule": "combinations(age, sex)", "keep": "soft"},
        {"rule": "combinations(age)", "keep": "hard"},
        {"rule": "__import__('os')", "keep": "hard"},
        {"rule": "age >", "keep": "hard"},
        {"rule": "age <= height", "keep": "hard"},
    ],
)
def test_a_malformed_hard_rule_has_a_pointer(hard_rule: dict[str, object]) -> None:
    assert problems_of(TEXT, rules=[hard_rule])[0].startswith("/rules/0")


def test_a_document_of_another_version_is_refused() -> None:
    with refuses(SchemaError, "/version"):
        infer_schema(read(TEXT), {"version": 2})


@pytest.mark.parametrize("text", ["a,b\n1,x\n1,x\n", "a,b\n?,\n?,\n"])
def test_a_table_of_constants_is_refused(text: str) -> None:
    with refuses(TableError):
        infer_schema(read(text))


def test_a_frame_without_rows_or_columns_is_refused() -> None:
    with refuses(TableError):
        infer_schema(pd.DataFrame({"a": []}))
    with refuses(TableError):
        infer_schema(pd.DataFrame())
    with refuses(TableError):
        infer_schema(pd.DataFrame(index=range(3)))


def test_text_that_is_too_long_for_a_level_is_refused_unless_it_is_none() -> None:
    cells = ["x" * 1001, "y"] * 30
    with refuses(TableError, column="column"):
        infer_schema(frame_of(cells))
    with refuses(TableError, column="column"):
        infer_schema(frame_of(["x" * 1001] * 9))
    assert column_of(cells, {"drop": True}).drop
    assert column_of(cells, {"kind": "identifier"}).kind is ColumnKind.IDENTIFIER
    assert column_of([f"{n} {'x' * 1001}" for n in range(60)]).kind is ColumnKind.IDENTIFIER


def test_of_a_dropped_column_the_schema_has_its_name_and_nothing_else() -> None:
    said = {"name": "note", "drop": True, "kind": "categorical", "levels": ["secret"], "minimum": 5}
    frame = pd.DataFrame({"x": [1, 2, 3], "note": ["secret 1", "NA", "2024-99-99"]})
    inferred = infer_schema(frame, {"columns": [said]})
    document = inferred.schema.to_json()
    assert document["columns"][1] == {"name": "note", "drop": True}
    assert not any(told.startswith("column ") for told in inferred.warnings)
    assert TableSchema.from_json(json.loads(json.dumps(document))) == inferred.schema
    built = Column("note", ColumnKind.CATEGORICAL, levels=("secret",), drop=True)
    assert built == inferred.schema["note"]


@pytest.mark.parametrize(
    "cells",
    [
        ["x" * 1001, "y", "z"],
        ["2024-01-01", "01/02/2024", "9999-12-31"],
        ["NA", "-", "?"],
        [[1, 2], {"a": 1}, None],
    ],
    ids=["long", "ragged dates", "markers", "no cells"],
)
def test_nothing_that_stands_in_a_dropped_column_matters(cells: list[Any]) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "note": pd.Series(cells, dtype=object)})
    inferred = infer_schema(frame, {"columns": [{"name": "note", "drop": True}]})
    assert not any(told.startswith("column ") for told in inferred.warnings)
    assert parse_table(frame, inferred.schema).columns.tolist() == ["x"]


def test_a_column_that_is_dropped_no_more_is_inferred_from_its_cells() -> None:
    frame = pd.DataFrame({"x": [1, 2, 3], "note": ["a", "b", "a"]})
    dropped = infer_schema(frame, {"columns": [{"name": "note", "drop": True}]}).schema.to_json()
    dropped["columns"][1]["drop"] = False
    assert infer_schema(frame, dropped).schema["note"].levels == ("a", "b")


def test_a_name_that_is_too_long_is_refused() -> None:
    with refuses(TableError):
        infer_schema(pd.DataFrame({"x" * 501: [1, 2], "b": [1, 2]}))


def test_infinite_numbers_are_refused() -> None:
    with refuses(TableError, column="a"):
        infer_schema(pd.DataFrame({"a": [1.0, np.inf]}))


def test_an_unknown_column_is_named() -> None:
    schema = infer_schema(read(TEXT)).schema
    with refuses(UnknownColumnError, column="x"):
        schema["x"]


def test_an_incomplete_document_is_no_schema() -> None:
    with refuses(SchemaError, "/columns/0"):
        TableSchema.from_json({"columns": [{"name": "a", "kind": "ordinal"}]})


def test_real_tables_have_the_kinds_that_are_known_of_them(data_dir: object) -> None:
    schema = infer_schema(read_table(f"{data_dir}/auto_mpg_with_missing.csv")).schema
    assert [str(column.kind) for column in schema] == [
        "continuous", "ordinal", "continuous", "integer", "integer", "continuous", "ordinal",
        "ordinal", "categorical",
    ]  # fmt: skip
    assert schema["horsepower"].missing.markers == ("?",)


def test_the_schema_loads_without_torch() -> None:
    modules = "gcvae.schema, gcvae.errors, gcvae.cells.values"
    code = f"import sys, {modules}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("kind", ["categorical", "ordinal", "boolean", "continuous", "datetime"])
def test_a_column_without_values_can_be_of_any_kind(kind: str) -> None:
    frame = pd.DataFrame({"x": ["", ""], "y": ["a", "b"]})
    schema = infer_schema(frame, {"columns": [{"name": "x", "kind": kind}]}).schema
    assert TableSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema


def test_no_levels_are_refused_where_there_are_cells() -> None:
    given = {"columns": [{"name": "y", "levels": []}]}
    with refuses(SchemaError, "/columns/0/levels"):
        infer_schema(pd.DataFrame({"y": ["a", "b"]}), given)


def test_a_notebook_shows_columns_rules_and_warnings_and_their_names_as_text() -> None:
    lines = (f"{i},{i},{'<b>' if i % 2 else 'x'},7,note {i}" for i in range(40))
    table = read("\n".join(["low,high,<i>,same,note", *lines]))
    found = infer_schema(table, {"columns": [{"name": "note", "drop": True}]})
    page = found._repr_html_()
    for shown in ("&lt;i&gt;", "&lt;b&gt;, x", "0 to 39", "constant", "dropped"):
        assert f">{shown}<" in page, shown
    assert "<i>" not in page
    assert "Rule: " in page
    assert len(found.warnings) == page.count("Warning: ")
    assert repr(found).endswith(f"warnings: {len(found.warnings)}>")


def test_a_step_finer_than_a_microsecond_is_refused() -> None:
    column = {"name": "at", "kind": "datetime", "steps": ["1 second", "100 nanoseconds"]}
    with refuses(SchemaError, "/columns/0/steps"):
        TableSchema.from_json({"columns": [column | {"datetime_format": "%H:%M:%S.%f"}]})
