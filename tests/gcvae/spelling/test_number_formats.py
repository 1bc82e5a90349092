"""Numbers as people write them: found in a column, read as numbers, written back as they were."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from gcvae import Synthesizer, format_table, infer_schema, parse_table, read_table
from gcvae.errors import ConditionError, SchemaError, TableError
from gcvae.files.row_documents import row_to_frame
from gcvae.files.table_reader import TableReader
from gcvae.files.table_stream import stream_table
from gcvae.files.tables import write_table
from gcvae.sampling.imputation_stream import stream_completed
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.inferred_schema import InferredSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.spelling.forms import NumberFormat
from gcvae.spelling.number_formats import completed_format, numerals, read_members, written_in
from tests.lengths import tries
from tests.wordings import refuses

QUICK = {"max_steps": 20, "evaluate_every_steps": 10}


def inferred(texts: list[str], **said: Any) -> InferredSchema:
    document = {"columns": [{"name": "n", **said}]} if said else None
    return infer_schema(frame_of(texts), document)


def told_of_columns(found: InferredSchema) -> tuple[str, ...]:
    """Without what is said of a table of a few rows."""
    return tuple(warning for warning in found.warnings if warning.startswith("column "))


def frame_of(texts: list[str]) -> pd.DataFrame:
    return pd.DataFrame({"n": texts, "other": [i % 2 for i in range(len(texts))]})


def numbers_in(texts: list[str], **said: Any) -> list[Any]:
    found: list[Any] = parse_table(frame_of(texts), inferred(texts, **said).schema)["n"].tolist()
    return found


def written_back(texts: list[str], schema: TableSchema) -> list[Any]:
    found: list[Any] = format_table(parse_table(frame_of(texts), schema), schema)["n"].tolist()
    return found


# Laws

UNITS = ["", "$", "€", "CHF ", "kr ", "Rs.", "%", " €", " EUR", " kg", "°C", " zł", "\u00a0€", " %"]
PREFIXES, SUFFIXES = UNITS[:6], ["", *UNITS[6:]]


@st.composite
def formats(draw: st.DrawFn) -> NumberFormat:
    decimal = draw(st.sampled_from(".,"))
    signs = ["", " ", "\u00a0", "\u202f", "'", "\u2019", "," if decimal == "." else "."]
    thousands = draw(st.sampled_from(signs))
    prefix = draw(st.sampled_from(PREFIXES))
    suffix = "" if prefix else draw(st.sampled_from(SUFFIXES))
    both = f"{prefix}1{suffix}"
    negatives = [None, f"\u2212{both}", f"{both}-", f"({both})"] + [f"{prefix}-1"] * bool(prefix)
    return NumberFormat(
        decimal=decimal,
        thousands=thousands,
        grouping=draw(st.sampled_from(["thousands", "indian"])) if thousands else "thousands",
        grouped_from_digits=draw(st.sampled_from([4, 5])) if thousands else 4,
        prefix=prefix,
        suffix=suffix,
        negative=draw(st.sampled_from(negatives)),
    )


def amounts(decimals: int) -> st.SearchStrategy[str]:
    return st.integers(-(10**11), 10**11).map(lambda n: f"{n / 10**decimals:.{decimals}f}")


@tries(150)
@given(formats(), st.integers(0, 4).flatmap(lambda d: st.lists(amounts(d), min_size=1)))
def test_numerals_are_read_from_what_they_are_written_as(
    number_format: NumberFormat, plain: list[str]
) -> None:
    texts = written_in(pa.array(plain), number_format)
    assert numerals(texts, number_format).to_pylist() == plain
    assert written_in(numerals(texts, number_format), number_format).equals(texts)


@tries(150)
@given(formats(), st.integers(1, 2).flatmap(lambda d: st.lists(amounts(d), min_size=12)))
def test_a_column_of_any_format_is_found_to_be_numbers_and_written_as_it_was(
    number_format: NumberFormat, plain: list[str]
) -> None:
    plain = ["-1234567.25", "123456.5", "1234.75", *plain, "12.5"]
    plain = [f"{float(text):.2f}" for text in plain]
    texts = written_in(pa.array(plain), number_format).to_pylist()
    schema = inferred(texts).schema
    assert parse_table(frame_of(texts), schema)["n"].tolist() == [float(x) for x in plain]
    assert written_back(texts, schema) == texts
    assert TableSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    assert infer_schema(frame_of(texts), schema).schema == schema


@tries(50)
@given(formats())
def test_a_format_survives_its_document(number_format: NumberFormat) -> None:
    column = Column("n", ColumnKind.CONTINUOUS, number_format=number_format)
    schema = TableSchema((column,))
    assert TableSchema.from_json(json.loads(json.dumps(schema.to_json()))) == schema
    assert completed_format(read_members(number_format)) == number_format


# Finding


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["474,48", "12,5", "-3,25"], [474.48, 12.5, -3.25]),
        (["2,521.79", "12.50", "1,000,000.00"], [2521.79, 12.5, 1e6]),
        (["1.234,50", "12,00"], [1234.5, 12.0]),
        (["1 234,5", "12,0"], [1234.5, 12.0]),
        (["1\u00a0234,5", "12,0"], [1234.5, 12.0]),
        (["1\u202f234,5", "12,0"], [1234.5, 12.0]),
        (["1'234.50", "12.00"], [1234.5, 12.0]),
        (["1’234.50", "12.00"], [1234.5, 12.0]),
        (["12,34,567", "1,234", "99"], [1234567, 1234, 99]),
        (["1234,5", "12.345,6"], [1234.5, 12345.6]),
        (["$474", "$1,012", "-$3"], [474, 1012, -3]),
        (["474.48 €", "12.00 €"], [474.48, 12.0]),
        (["CHF 12.50", "CHF 1'234.50"], [12.5, 1234.5]),
        (["12 EUR", "1.234,5 EUR"], [12, 1234.5]),
        (["12,5 zł", "7 zł"], [12.5, 7]),
        (["kr 12", "kr 7"], [12, 7]),
        (["Rs.500", "Rs.1,000"], [500, 1000]),
        (["US$5", "US$7.5"], [5, 7.5]),
        (["12 %", "7 %"], [12, 7]),
        (["12.5%", "-0.5%"], [12.5, -0.5]),
        (["(1,234.50)", "12.00"], [-1234.5, 12.0]),
        (["($5)", "$7"], [-5, 7]),
        (["12.50-", "12.00"], [-12.5, 12.0]),
        (["−5", "3"], [-5, 3]),
        (["$-5", "$7"], [-5, 7]),
        (["1,5E+16", "2,5E-05", "3,0"], [1.5e16, 2.5e-5, 3.0]),
        (["1.234.567", "950"], [1234567, 950]),
        (["1,234", "950"], [1234, 950]),
    ],
)
def test_numbers_are_read_as_people_write_them_and_come_back_so(
    texts: list[str], numbers: list[float]
) -> None:
    found = inferred(texts)
    assert numbers_in(texts) == numbers
    assert told_of_columns(found) == ()
    assert written_back(texts, found.schema) == texts


@pytest.mark.parametrize(
    "unit", [" kg", " km", " l", "h", " min", " kWh", "MB", " °C", " Stk", " m²"]
)
def test_numbers_with_a_unit_are_numbers(unit: str) -> None:
    texts = [f"{n / 100:.2f}{unit}" for n in range(132, 3000, 7)]
    found = inferred(texts)
    assert found.schema["n"].kind is ColumnKind.CONTINUOUS
    assert found.schema["n"].number_format == NumberFormat(suffix=unit)
    assert written_back(texts, found.schema) == texts


def test_a_point_behind_letters_is_no_decimal_point() -> None:
    assert numbers_in(["Rs.50", "Rs.1,000"]) == [50, 1000]
    assert numbers_in(["$.50", "-$.75", "$2"]) == [0.5, -0.75, 2]


@pytest.mark.parametrize(
    "texts",
    [
        ["(1)", "(2)", "3"],  # footnotes
        ["1", "2-", "3"],  # marks
        ["555 123 456", "555 987 321"],
        ["12 rue", "3 rue"],
        ["012m", "013m"],
        ["m12", "m13"],
        ["5,-", "7,-"],
        ["12/5", "3/7"],
        ["10.1.2.3", "10.1.2.4"],
        ["09708", "10117"],
        ["A12", "A13"],
        ["1,2,3", "4,5,6"],
    ],
)
def test_names_made_of_digits_are_no_numbers(texts: list[str]) -> None:
    found = inferred(texts * 5)
    assert found.schema["n"].kind is ColumnKind.CATEGORICAL
    assert told_of_columns(found) == ()


@pytest.mark.parametrize(
    ("texts", "taken", "member", "otherwise"),
    [
        (["1,234", "2,521"], [1234, 2521], {"decimal": ","}, [1.234, 2.521]),
        (["1.234", "2.521"], [1.234, 2.521], {"thousands": "."}, [1234, 2521]),
        (["1.234 €", "2.521 €"], [1234, 2521], {"decimal": "."}, [1.234, 2.521]),
        (["1.234 %", "2.521 %"], [1.234, 2.521], {"thousands": "."}, [1234, 2521]),
    ],
)
def test_of_two_readings_one_is_assumed_and_the_schema_can_say_the_other(
    texts: list[str], taken: list[float], member: dict[str, str], otherwise: list[float]
) -> None:
    (warning,) = told_of_columns(inferred(texts))
    assert "can be read in two ways" in warning
    assert repr(texts[0]) in warning
    assert f"number_format {json.dumps(member)}" in warning
    assert numbers_in(texts) == taken
    assert numbers_in(texts, number_format=member) == otherwise
    assert told_of_columns(inferred(texts, number_format=member)) == ()


def test_decimals_of_any_other_number_settle_what_a_point_means() -> None:
    assert told_of_columns(inferred(["1.234", "0.500"])) == ()
    assert told_of_columns(inferred(["1.234", "2.52"])) == ()


@pytest.mark.parametrize(
    ("texts", "numbers", "odd", "back"),
    [
        (["$12", "5", "$7"], [12, 5, 7], "5", "$5"),
        (["1.234,5", "12345,6", "23.456,7"], [1234.5, 12345.6, 23456.7], "12345,6", "12.345,6"),
        (["5 €", "€ 6", "7 €"], [5, 6, 7], "€ 6", "6 €"),
        (
            ["1 234,5", "2\u00a0345,6", "3 456,7"],
            [1234.5, 2345.6, 3456.7],
            "2\\xa0345,6",
            "2 345,6",
        ),
    ],
)
def test_numbers_written_in_two_ways_are_all_read_and_written_like_most(
    texts: list[str], numbers: list[float], odd: str, back: str
) -> None:
    (warning,) = told_of_columns(inferred(texts))
    assert f"'{odd}' comes back as '{back}'" in warning
    assert numbers_in(texts) == numbers


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["$12", "€5"], "€5"),  # two currencies
        (["12 kg", "500 g"], "500 g"),
        (["12 %", "0.12"], "0.12"),  # nobody knows whether that is 12 % too
        (["12,5", "13.5"], "12,5"),
    ],
)
def test_numbers_of_two_kinds_stay_text_with_a_reason(texts: list[str], first: str) -> None:
    found = inferred(texts * 20)
    assert found.schema["n"].kind is ColumnKind.CATEGORICAL
    (warning,) = told_of_columns(found)
    assert repr(first) in warning
    assert "use one format, prefix and suffix" in warning


def test_a_word_among_formatted_numbers_is_named_with_its_line() -> None:
    rows = "".join(f'"{n},5";{n % 2}\n' for n in range(60))
    table = read_table(b"n;k\n" + rows.encode() + b"open;1\n")
    (warning, *_) = told_of_columns(infer_schema(table))
    assert "98.4% of its cells are numbers written like '0,5': line 62 holds 'open'" in warning
    assert "missing.markers" in warning
    said = {"columns": [{"name": "n", "missing": {"markers": ["open"]}}]}
    assert infer_schema(table, said).schema["n"].kind is ColumnKind.CONTINUOUS


def test_a_hyphen_among_formatted_numbers_means_missing() -> None:
    column = inferred([*(f"{n},5 €" for n in range(30)), "-"]).schema["n"]
    assert column.missing.markers == ("-",)
    assert column.kind is ColumnKind.CONTINUOUS


def test_prices_that_never_repeat_are_no_keys() -> None:
    assert inferred([f"${n}" for n in range(60)]).schema["n"].kind is ColumnKind.INTEGER


def test_a_unit_of_ones_own_is_read_where_the_schema_names_it() -> None:
    texts = ["12 kg", "3 kg", "1,200 kg"]
    assert numbers_in(texts, number_format={"suffix": " kg"}) == [12, 3, 1200]
    assert written_back(texts, inferred(texts, number_format={"suffix": " kg"}).schema) == texts


@pytest.mark.parametrize("kind", ["continuous", "integer", "ordinal"])
def test_a_kind_is_enough_to_have_formatted_cells_read(kind: str) -> None:
    texts = ["1.234 €", "12 €", "1.000.000 €"]
    assert numbers_in(texts, kind=kind) == [1234, 12, 1000000]


def test_kinds_of_text_keep_the_cells() -> None:
    column = inferred(["12 %", "7 %"], kind="categorical").schema["n"]
    assert (column.levels, column.number_format) == (("12 %", "7 %"), None)


def test_limits_may_be_written_as_the_cells_are() -> None:
    texts = [f"{n}.234,50 €" for n in range(1, 31)]
    column = inferred(texts, minimum="1.000,00 €", maximum="40.000,00 €").schema["n"]
    assert (column.minimum, column.maximum) == (1000, 40000)
    with refuses(SchemaError, "/columns/0/minimum"):
        inferred(texts, minimum="2.000 €")
    with refuses(SchemaError, "/columns/0/minimum"):
        inferred(texts, minimum="2.50")


@pytest.mark.parametrize(
    "given",
    [
        {"decimal": "."} | {"thousands": "."},
        {"decimal": ";"},
        {"thousands": "_"},
        {"grouping": "roman"},
        {"grouped_from_digits": 2},
        {"prefix": "5 "},
        {"suffix": 3},
        {"negative": "5"},
        {"point": ","},
        "1.234,50",
    ],
)
def test_a_format_that_is_none_is_refused(given: Any) -> None:
    with refuses(SchemaError, "/columns/0/number_format"):
        inferred(["1,5", "2,5"], number_format=given)


def test_a_cell_that_is_none_of_the_given_format_is_named() -> None:
    with refuses(SchemaError, "/columns/0/number_format"):
        inferred(["1,5", "1.5"], number_format={"decimal": ","})


# Rows


ORDERS = "price,vat,rebate,weight\n" + "".join(
    f'"{n % 9}.{n * 37 % 1000:03d},{n % 100:02d} €",{n % 30} %,'
    f"{'' if n % 8 == 0 else f'${n * 7 % 500}'},{n / 8}\n"
    for n in range(1, 201)
).replace('"0.', '"1.')


@pytest.fixture(scope="module")
def synthesizer(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    hard_rule = {"rule": "price > 500", "keep": "hard"}
    schema = {"columns": [], "rules": [hard_rule], "find_rules": True}
    table = read_table(ORDERS.encode())
    fitted = Synthesizer.fit(table, schema=schema, settings=QUICK, device="cpu")
    path = tmp_path_factory.mktemp("models") / "orders.gcvae"
    fitted.save(path)
    return Synthesizer.load(path)


def test_a_file_comes_back_as_it_was_written(tmp_path: Path, synthesizer: Synthesizer) -> None:
    frame = read_table(ORDERS.encode())
    write_table(parse_table(frame, synthesizer.schema), tmp_path / "again.csv", synthesizer.schema)
    assert (tmp_path / "again.csv").read_text() == ORDERS


def test_a_file_read_column_by_column_has_the_same_schema(tmp_path: Path) -> None:
    (tmp_path / "orders.csv").write_text(ORDERS)
    whole, by_column = (
        infer_schema(rows)
        for rows in (read_table(ORDERS.encode()), TableReader(tmp_path / "orders.csv"))
    )
    assert by_column == whole


def test_drawn_numbers_are_written_as_the_table_writes_them(synthesizer: Synthesizer) -> None:
    drawn = synthesizer.sample(200, seed=3)
    assert drawn["price"].dtype == np.float64
    assert (drawn["price"] > 500).all()
    written = format_table(drawn, synthesizer.schema)
    assert written["price"].str.fullmatch(r"\d{1,3}(\.\d{3})*,\d\d €").all()
    assert written["vat"].str.fullmatch(r"\d+ %").all()
    assert written["rebate"].str.fullmatch(r"(\$\d+)?").all()
    again = parse_table(written, synthesizer.schema)
    pd.testing.assert_frame_equal(again, drawn)


def test_json_has_numbers_and_parquet_has_them_too(synthesizer: Synthesizer) -> None:
    drawn = synthesizer.sample(5, seed=3)
    rows = json.loads(b"".join(stream_table([drawn], synthesizer.schema, "json")))
    assert [row["price"] for row in rows] == drawn["price"].tolist()
    data = b"".join(stream_table([drawn], synthesizer.schema, "parquet"))
    assert parquet.read_table(io.BytesIO(data))["price"].to_pylist() == drawn["price"].tolist()


def test_text_in_parquet_stays_text() -> None:
    frame = read_table(ORDERS.encode())
    data = io.BytesIO()
    pd.DataFrame(frame).to_parquet(data)
    table = read_table(data.getvalue())
    schema = infer_schema(table).schema
    values = parse_table(table, schema)
    assert values["price"].dtype == np.float64
    again = b"".join(stream_table([values], schema, "parquet"))
    assert parquet.read_table(io.BytesIO(again))["price"].to_pylist() == frame["price"].tolist()


def test_rows_are_alike_typed_and_as_text(synthesizer: Synthesizer) -> None:
    texts = read_table(ORDERS.encode()).head(8)
    typed = parse_table(texts, synthesizer.schema)
    documents = [
        {"price": row.price, "vat": row.vat, "rebate": row.rebate, "weight": row.weight}
        for row in typed.astype(object).where(typed.notna(), None).itertuples()
    ]
    from_json = pd.concat(
        [row_to_frame(row, synthesizer.schema) for row in documents], ignore_index=True
    )
    objects = pd.DataFrame(documents, dtype=object)
    expected = synthesizer.log_likelihood(texts, draws=5)
    for rows in (typed, from_json, objects):
        pd.testing.assert_frame_equal(synthesizer.log_likelihood(rows, draws=5), expected)


def test_known_cells_are_completed_in_their_own_form(synthesizer: Synthesizer) -> None:
    texts = read_table(ORDERS.encode()).head(16)
    texts["price"] = texts["price"].where(texts.index % 2 == 0, "")
    blocks = list(synthesizer.impute_blocks(texts, seed=1))
    table = b"".join(stream_completed(blocks, synthesizer.schema, "csv"))
    completed = read_table(table)
    assert completed["price"][::2].tolist() == texts["price"][::2].tolist()
    assert completed["price"].str.fullmatch(r"\d{1,3}(\.\d{3})*,\d\d €").all()
    assert completed["rebate"].str.fullmatch(r"\$\d+").all()
    typed = parse_table(texts, synthesizer.schema)
    assert synthesizer.impute(typed, seed=1)["price"].dtype == np.float64


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ({"price": {"min": 1500, "max": 3000.5}}, {"price": {"min": "1.500 €", "max": "3.000,5"}}),
        ({"vat": [7, 12]}, {"vat": ["7 %", "12"]}),
        ({"rebate": 49}, {"rebate": "$49"}),
    ],
)
def test_conditions_are_numbers_or_texts_of_the_table(
    synthesizer: Synthesizer, typed: dict[str, Any], text: dict[str, Any]
) -> None:
    rows = [synthesizer.sample(20, seed=5, given=given) for given in (typed, text)]
    pd.testing.assert_frame_equal(*rows)
    ((name, wanted),) = typed.items()
    drawn = rows[0][name].astype(float)
    if isinstance(wanted, dict):
        assert drawn.between(wanted["min"], wanted["max"]).all()
    else:
        assert set(drawn) <= set(np.atleast_1d(wanted))


def test_what_is_no_number_of_the_format_is_refused_with_an_example(
    synthesizer: Synthesizer,
) -> None:
    with refuses(ConditionError, "/given/price"):
        synthesizer.sample(1, given={"price": {"min": "12.50"}})
    row = {"price": "$5", "vat": 7, "rebate": None, "weight": 1}
    with refuses(TableError, line=2, column="price"):
        parse_table(row_to_frame(row, synthesizer.schema), synthesizer.schema)


def test_typed_frames_know_no_format() -> None:
    frame = pd.DataFrame({"price": [1234.5, 2.25] * 20, "vat": range(40)})
    schema = infer_schema(frame).schema
    assert schema["price"].number_format is None
    assert infer_schema(frame, schema).schema == schema


def test_texts_beside_numbers_in_one_column_are_not_guessed_at() -> None:
    frame = pd.DataFrame({"n": ["1.234,5", 12.125] * 20, "k": range(40)})
    assert infer_schema(frame).schema["n"].number_format is None
    column = Column("n", ColumnKind.CONTINUOUS, number_format=NumberFormat(",", "."))
    assert parse_table(frame[["n"]], TableSchema((column,)))["n"].tolist()[:2] == [1234.5, 12.125]


def test_a_completed_file_keeps_its_own_separator(tmp_path: Path, synthesizer: Synthesizer) -> None:
    texts = read_table(ORDERS.encode()).head(5)
    texts.loc[2, "price"] = ""
    (tmp_path / "blank.csv").write_text(texts.to_csv(sep=";", index=False))
    rows = TableReader(tmp_path / "blank.csv")
    lines = b"".join(
        stream_completed(synthesizer.impute_blocks(rows), synthesizer.schema, "csv")
    ).decode()
    assert lines.startswith("price;vat;rebate;weight\n1.037,01 €;1 %;")
    assert synthesizer.schema.separator == ","
