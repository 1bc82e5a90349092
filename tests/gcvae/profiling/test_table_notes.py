"""What a careful colleague says of a table: each note names its place, and says what to do."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gcvae.errors import TableError
from gcvae.files.table_reader import TableReader
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from gcvae.schema.inferred_schema import InferredSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.synthesizer import Synthesizer
from tests.wordings import refuses

RNG = np.random.default_rng(0)
N_ROWS = 400
FRAME = pd.DataFrame(
    {
        "price": RNG.gamma(2.0, 50.0, N_ROWS).round(2),
        "quantity": RNG.integers(1, 60, N_ROWS),
        "product": RNG.choice(["lamp", "rug", "shoe"], N_ROWS),
    }
)


def csv(frame: pd.DataFrame, *rows: str, index: bool = False) -> str:
    return frame.to_csv(index=index) + "".join(f"{row}\n" for row in rows)


def inferred(text: str, **given: object) -> InferredSchema:
    """The same of the text in memory and of its file, read in small windows."""
    data = text.encode()
    found = infer_schema(read_table(data), given or None)
    reader = TableReader(io.BytesIO(data), window_bytes=5_000)
    assert infer_schema(reader, given or None) == found
    return found


def notes(text: str, **given: object) -> tuple[str, ...]:
    return inferred(text, **given).warnings


def with_column(name: str, cells: Sequence[object]) -> pd.DataFrame:
    return FRAME.assign(**{name: list(cells)})


@pytest.mark.parametrize("is_file", [False, True])
def test_a_fitted_synthesizer_has_the_notes_of_its_table_and_its_file_has_none(
    tmp_path: Path, is_file: bool
) -> None:
    text = csv(with_column("code", [f"K{i}" for i in range(N_ROWS - 1)] + ["K7"])[:60], "total,9,,")
    (tmp_path / "t.csv").write_text(text)
    table = TableReader(tmp_path / "t.csv") if is_file else read_table(text.encode())
    fitted = Synthesizer.fit(table, preset="paper-vae", settings={"max_steps": 2})
    assert fitted.table_notes == notes(text) != ()
    assert f"notes on the table: {len(fitted.table_notes)} (table_notes)" in repr(fitted)
    data = fitted.to_bytes()
    assert not any(note.encode() in data for note in fitted.table_notes)
    loaded = Synthesizer.from_bytes(data)
    assert loaded.table_notes == ()
    assert "notes on the table" not in repr(loaded)


def test_a_table_without_oddities_gets_no_note() -> None:
    assert notes(csv(FRAME)) == ()


@pytest.mark.parametrize("n_rows", [2, 3, 49])
def test_a_table_of_a_few_rows_says_what_to_expect(n_rows: int) -> None:
    first = notes(csv(FRAME[:n_rows]))[0]
    assert first == (
        f"the table has {n_rows} rows, too few for training: a model of it knows little more than"
        " the range of each column, and its rows and scores mean little; use about 500 rows or"
        " more"
    )
    assert notes(csv(FRAME[:50])) == ()


# An index without a name


def test_the_index_that_to_csv_writes_is_left_out_with_a_note(tmp_path: Path) -> None:
    text = csv(FRAME, index=True)
    assert text.startswith(",price")
    found = inferred(text)
    assert found.schema.names == ("Unnamed: 0", *FRAME.columns)
    assert found.schema["Unnamed: 0"].drop
    assert found.warnings == (
        "column 'Unnamed: 0': has no name and only numbers the rows, as written by"
        ' DataFrame.to_csv() without index=False; it is dropped; "drop": false in the schema keeps'
        " it",
    )
    assert infer_schema(pd.read_csv(io.StringIO(text))).schema.names == found.schema.names

    path = tmp_path / "indexed.csv"
    path.write_text(text)
    fitted = Synthesizer.fit(TableReader(path), preset="fast", settings={"max_steps": 5})
    fitted.save(tmp_path / "m.gcvae")
    loaded = Synthesizer.load(tmp_path / "m.gcvae")
    assert list(loaded.sample(3, 0).columns) == list(FRAME.columns)
    assert len(pd.concat(loaded.score_blocks(TableReader(path)))) == N_ROWS
    assert len(pd.concat(loaded.impute_blocks(TableReader(path)))) == N_ROWS
    assert len(loaded.impute(pd.read_csv(path))) == N_ROWS


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (",a,b", ("Unnamed: 0", "a", "b")),
        ('"",a,b', ("Unnamed: 0", "a", "b")),
        (" ,a,b", ("Unnamed: 0", "a", "b")),
        (",Unnamed: 0,b", ("Unnamed: 0.1", "Unnamed: 0", "b")),
        (",,b", ("Unnamed: 0", "Unnamed: 1", "b")),
        (",index,b", ("Unnamed: 0", "index", "b")),
    ],
)
def test_first_columns_without_names_have_those_of_pandas_and_stay_unique(
    header: str, names: tuple[str, ...]
) -> None:
    text = f"{header}\n" + "".join(f"{i},{i % 7},{i % 3}\n" for i in range(60))
    assert tuple(read_table(text.encode()).columns) == names
    if " " not in header[:1]:
        assert tuple(pd.read_csv(io.StringIO(text)).columns) == names


def test_an_index_that_says_something_is_read_like_any_column() -> None:
    days = pd.date_range("2024-01-01", periods=N_ROWS).strftime("%Y-%m-%d")
    found = inferred(csv(FRAME.set_index(days), index=True))
    assert found.schema["Unnamed: 0"].kind is ColumnKind.DATETIME
    cities = RNG.choice(["Rom", "Oslo"], N_ROWS)
    found = inferred(csv(FRAME.set_index(cities), index=True))
    assert found.schema["Unnamed: 0"].kind is ColumnKind.CATEGORICAL
    shuffled = inferred(csv(FRAME.sample(frac=1.0, random_state=1), index=True))
    assert shuffled.schema["Unnamed: 0"].drop
    kept = {"name": "Unnamed: 0", "drop": False, "kind": "integer"}
    assert not inferred(csv(FRAME, index=True), columns=[kept]).schema["Unnamed: 0"].drop
    said = {"name": "Unnamed: 0", "drop": True}
    assert notes(csv(FRAME, index=True), columns=[said]) == ()


@pytest.mark.parametrize(
    ("index", "told"),
    [
        (pd.RangeIndex(N_ROWS), None),
        (RNG.permutation(N_ROWS), None),
        (pd.RangeIndex(N_ROWS, name="order"), "index 'order' is not a column and is ignored"),
        ([f"k{i}" for i in range(N_ROWS)], "index is not a column and is ignored; reset_index()"),
    ],
)
def test_a_frame_s_index_that_says_something_is_noted(index: object, told: str | None) -> None:
    found = infer_schema(FRAME.set_axis(index)).warnings
    assert (len(found) == 1 and told in found[0]) if told else found == ()


# Rows that are no rows


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (
            "{price:.2f},{quantity},",
            "line 402, the last, looks like a row of totals: it has the sum in 'price',"
            " 'quantity' of the cells above; remove it from the file, or it is used in training"
            " like any other row",
        ),
        (
            "{price:.2f},{quantity},Total",
            "of the cells above, and 'Total' in 'product'; remove",
        ),
        (
            "{price:.2f},,Summe:",
            "it has the sum in 'price' of the cells above, and 'Summe:'",
        ),
        ("{price:.2f},,", "looks like a row of totals: it has the sum in 'price' of the"),
    ],
)
def test_a_last_row_of_totals_is_named_by_its_line(row: str, told: str) -> None:
    filled = row.format(price=FRAME["price"].sum(), quantity=FRAME["quantity"].sum())
    found = [note for note in notes(csv(FRAME, filled)) if "totals" in note]
    assert len(found) == 1
    assert told in found[0]


@pytest.mark.parametrize("row", ["12.50,7,lamp", "12.50,7,total", "0,0,", "1.00,,", ",,Total"])
def test_a_last_row_that_is_no_total_gets_no_note(row: str) -> None:
    assert not any("totals" in note for note in notes(csv(FRAME, row)))


def test_typed_frames_and_parquet_name_the_row(tmp_path: Path) -> None:
    last = {"price": FRAME["price"].sum(), "quantity": FRAME["quantity"].sum(), "product": None}
    frame = pd.concat([FRAME, pd.DataFrame([last])], ignore_index=True)
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (frame, TableReader(tmp_path / "t.parquet")):
        found = infer_schema(table).warnings
        assert found[0].startswith("row 400, the last, looks like a row of totals")


def test_a_header_within_the_table_is_named_by_its_line() -> None:
    text = csv(FRAME[:200]) + csv(FRAME[200:])
    told = notes(text)
    assert told[0].startswith("line 202 repeats the header; remove it from the file")
    assert any("line 202 holds 'price'" in note for note in told)


def test_blank_rows_are_counted() -> None:
    text = csv(FRAME[:100], ",,", ",,") + csv(FRAME[100:]).split("\n", 1)[1]
    assert notes(text)[0].startswith("2 rows are missing in every column, the first in line 102;")


def test_copies_of_rows_are_counted_where_they_are_a_surprise() -> None:
    text = csv(pd.concat([FRAME, FRAME[10:40]]))
    assert notes(text) == (
        "30 rows are exact copies of earlier ones (7.0%), the first is line 402, a copy of"
        " line 12; remove them from the file if rows should be unique",
    )
    assert notes(csv(pd.concat([FRAME, FRAME])))[0].startswith("400 rows are exact copies")
    assert notes(csv(FRAME[["product"]].assign(size=FRAME["quantity"] % 4))) == ()
    assert notes(csv(FRAME[["product", "quantity"]])) == ()


@pytest.mark.parametrize("above", ["Sales of 2024\n", "# exported\n# by hand\n\n"])
def test_lines_above_the_header_are_pointed_out(above: str) -> None:
    with refuses(TableError, line=1):
        read_table((above + csv(FRAME)).encode())
    semicolons = "Sales of 2024\n" + FRAME.to_csv(index=False, sep=";")
    told = (
        "the table has one column, and all its cells contain a semicolon equally often: if there"
        " are lines above the column names, remove them from the file"
    )
    with refuses(TableError):
        infer_schema(read_table(semicolons.encode()))
    head, *rows = semicolons.splitlines()
    assert notes("\n".join([head, *rows * 3]) + "\n")[0] == told


# Cells that are no values


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (RNG.normal(10.0, 8.0, N_ROWS).round(1), "-9999.0"),
        (RNG.integers(18, 90, N_ROWS), "999"),
        (RNG.integers(0, 60, N_ROWS), "-1"),
        (pd.date_range("2015-01-01", periods=N_ROWS).strftime("%d.%m.%Y"), "31.12.2099"),
    ],
)
def test_a_marker_among_values_is_named_with_what_to_say_of_it(cells: object, told: str) -> None:
    column = pd.Series(cells).astype(str)
    column[[7, 90, 211, *range(300, 340)]] = told
    text = csv(with_column("x", column))
    (note,) = notes(text)
    assert note == (
        f"column 'x': has {told} in 43 cells (the first in line 9), far from all other values; if"
        f' it means missing, set missing.markers to ["{told}"]'
    )
    said = inferred(text, columns=[{"name": "x", "missing": {"markers": [told]}}])
    assert said.warnings == ()
    assert said.schema["x"].missing.allowed
    assert inferred(text, columns=[{"name": "x", "missing": {"markers": []}}]).warnings == ()


def test_the_markers_that_a_column_has_already_stay_in_the_proposal() -> None:
    column = RNG.integers(18, 90, N_ROWS).astype(str)
    column[:10], column[10:30], column[30:40] = "", "-999", "-99"
    (note,) = notes(csv(with_column("x", column)))
    assert "has -999 in 20 cells (the first in line 12), -99 in 10 cells" in note
    assert note.endswith('missing.markers to ["", "-999", "-99"]')


@pytest.mark.parametrize(
    "cells",
    [
        RNG.integers(0, 1000, N_ROWS),
        RNG.integers(-5, 60, N_ROWS),
        np.append(RNG.integers(0, 60, N_ROWS - 2), [-1, -1]),
        RNG.choice([-1, 1], N_ROWS),
        np.append(RNG.normal(0, 1, N_ROWS - 1).round(2), -9999.0),
        np.append(RNG.integers(0, 60, N_ROWS - 1), [9999]),
        RNG.choice([9, 99, 999], N_ROWS),
    ],
)
def test_values_that_belong_to_the_others_get_no_note(cells: object) -> None:
    assert notes(csv(with_column("x", pd.Series(cells)))) == ()


def test_a_few_words_among_numbers_are_named_with_their_cells() -> None:
    cells = RNG.integers(0, 900, N_ROWS).astype(str).astype(object)
    cells[[4, *range(100, 200)]], cells[[2, 3]] = "k. A.", "unbekannt"
    (note,) = [note for note in notes(csv(with_column("x", cells))) if "although" in note]
    assert note == (
        "column 'x': is treated as text although 74.2% of its cells are numbers: line 4 holds"
        " 'unbekannt'; add it to missing.markers if it means missing"
    )
    said = {"name": "x", "missing": {"markers": ["k. A.", "unbekannt"]}}
    assert inferred(csv(with_column("x", cells)), columns=[said]).schema["x"].kind == "integer"
    rooms = RNG.choice(["1", "2", "3", "4 or more"], N_ROWS)
    assert notes(csv(with_column("x", rooms))) == ()


def test_a_key_that_comes_again_is_named_with_its_lines() -> None:
    keys = [f"k{i}" for i in range(N_ROWS)]
    keys[300], keys[301], keys[302] = keys[10], keys[11], keys[10]
    told = notes(csv(with_column("order", keys)))
    assert told[1] == (
        "column 'order': looks like a key, but 2 of its values occur more than once, first 'k10' in"
        " line 12 and line 302; synthetic rows have each value once"
    )
    texts = [f"text number {i}" for i in range(N_ROWS - 1)] + ["text number 1"]
    assert not any("looks like a key" in note for note in notes(csv(with_column("t", texts))))
    numbers = [*range(100_000, 100_000 + N_ROWS - 1), 100_007]
    assert "'100007' in line 9 and line 401" in notes(csv(with_column("order_id", numbers)))[1]


def test_levels_that_differ_by_spaces_or_capitals_are_named() -> None:
    towns = RNG.choice(["Paris", "Lyon"], N_ROWS)
    towns[[5, 9]], towns[20] = "paris", " Lyon"
    towns[0], towns[1] = "Paris", "Lyon"
    (note,) = notes(csv(with_column("town", towns)))
    n = int((towns == "Paris").sum())
    assert note == (
        "column 'town': has categories that differ only by spaces or capitals and count as"
        f" different: 'Paris' ({n} cells) and 'paris' (2 cells, the first in line 7); so do"
        " those of 1 more"
    )
    assert (
        notes(csv(with_column("town", towns)), columns=[{"name": "town", "kind": "categorical"}])
        == ()
    )


# Dates in several formats


def mixed(*formats: str) -> list[str]:
    days = pd.date_range("2015-01-01", periods=N_ROWS)
    return [day.strftime(formats[i % 5 % len(formats)]) for i, day in enumerate(days)]


@pytest.mark.parametrize(
    ("cells", "told"),
    [
        (
            mixed("%Y-%m-%d", "%d/%m/%Y"),
            "is treated as text although 60.0% of its cells are dates of the format %Y-%m-%d: line"
            " 3 holds '02/01/2015'; use one format, or add it to missing.markers if it means",
        ),
        (
            mixed("%d.%m.%Y", "%d %b %Y", "%Y-%m-%dT%H:%M"),
            "is treated as text although it looks like dates, such as '01.01.2015'",
        ),
        (["2024-01-31"] * 399 + ["31.01.2024"], "line 401 holds '31.01.2024'"),
        (["01/31/2024", "31/01/2024"] * 200, "line 3 holds '31/01/2024'"),
        (
            ["1/5/2024"] * 3 + ["01/05/2024", "11/15/2024"] * 100,
            "its cells are dates of the format %m/%d/%Y, because some are written differently",
        ),
    ],
)
def test_dates_in_several_formats_are_named_with_their_lines(cells: list[str], told: str) -> None:
    found = notes(csv(FRAME[: len(cells)].assign(day=cells)))
    assert [told in note for note in found if "treated as text" in note] == [True]


def test_an_order_of_day_and_month_that_is_assumed_is_said() -> None:
    cells = [f"{1 + i % 12:02d}/{1 + i % 11:02d}/2024" for i in range(N_ROWS)]
    (note,) = notes(csv(with_column("day", cells)))
    assert note == (
        "column 'day': is read as %m/%d/%Y, though %d/%m/%Y fits every cell too: no day is beyond"
        " 12, so the order of day and month is assumed; if it is the other, give that"
        " datetime_format"
    )
    given = {"name": "day", "datetime_format": "%d/%m/%Y"}
    assert notes(csv(with_column("day", cells)), columns=[given]) == ()


def test_real_tables_get_no_note_but_the_one_that_is_true(data_dir: Path) -> None:
    told = {
        name: infer_schema(TableReader(data_dir / f"{name}.csv")).warnings
        for name in ("adult_train", "auto_mpg", "magic", "shoppers", "spect")
    }
    (capital_gain,) = told.pop("adult_train")  # known to be cut off there
    assert "'capital_gain': has 99999 in 159 cells" in capital_gain
    assert not any(told.values())


@pytest.mark.parametrize("n_rows", [3, 12, 49])
def test_texts_of_a_telling_form_are_identifiers_in_the_smallest_table_too(n_rows: int) -> None:
    keys = [f"INV-2024-{n:05d}" for n in range(n_rows)]
    mails = [f"anna{n}@shop.example" for n in range(n_rows)]
    words = [f"{'abcdefg'[n // 7]}{'hijklmn'[n % 7]} is a remark" for n in range(n_rows)]
    frame = pd.DataFrame({"no": keys, "mail": mails, "note": words, "x": range(n_rows)})
    found = infer_schema(frame.astype(str))
    kinds = {column.name: str(column.kind) for column in found.schema}
    assert (kinds["no"], kinds["mail"], kinds["note"]) == (
        "identifier",
        "identifier",
        "categorical",
    )
    assert "each value of 'note' belongs to one row and appears unchanged" in found.warnings[0]


def test_codes_of_digits_alone_name_no_rows() -> None:
    frame = pd.DataFrame({"code": [f"{n * 37:05d}" for n in range(12)], "x": range(12)})
    assert infer_schema(frame.astype(str)).schema["code"].kind is ColumnKind.CATEGORICAL


def test_an_identifier_of_phrases_says_that_what_rows_share_comes_out() -> None:
    notes = [f"customer {n} called about order {n * 7}" for n in range(60)]
    keys = [f"K-{n:05d}" for n in range(60)]
    frame = pd.DataFrame({"note": notes, "no": keys, "x": [n % 7 for n in range(60)]})
    of_note, of_no = (
        next(w for w in infer_schema(frame.astype(str)).warnings if f"'{name}'" in w)
        for name in ("note", "no")
    )
    assert of_note.endswith(
        "phrases that many rows share may appear in the new values: drop it if it is private"
    )
    assert of_no.endswith("if it is not an identifier, set its kind in the schema")
