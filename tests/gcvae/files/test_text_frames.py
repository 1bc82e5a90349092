"""A frame of strings comes back as strings, spelled as the table spells them; a file does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae import Synthesizer, TableReader, format_table, infer_schema, parse_table, read_table
from gcvae.schema.columns import TableSchema
from tests.gcvae.frames import KINDS
from tests.lengths import tries

pytestmark = pytest.mark.usefixtures("few_rows")

N = 300
BRIEFLY = {"max_steps": 5}
TEXTS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "object": lambda frame: frame,
    "string[python]": lambda frame: frame.astype("string[python]"),
    "str": lambda frame: frame.astype(pd.StringDtype(na_value=np.nan)),
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def table() -> pd.DataFrame:
    """Texts that spell truth values, numbers, dates and keys, and some that spell nothing."""
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "churn": random.choice(["Y", "N"], N, p=[0.3, 0.7]),
            "zero": random.choice(["0", "1"], N),
            "price": random.choice(["24.50", "3.00", "100.10"], N),
            "code": random.choice(["007", "042", "100"], N),
            "amount": [f"{x:.2f}" for x in random.lognormal(3.0, 1.0, N)],
            "euros": [f"{x:.2f} €".replace(".", ",") for x in random.lognormal(3.0, 1.0, N)],
            "day": pd.Series(pd.date_range("2024-01-01", periods=N)).dt.strftime("%d.%m.%Y"),
            "end": random.choice(["9999-12-31", "2024-05-05"], N),
            "key": [str(100_001 + i) for i in range(N)],
            "constant": ["1.50"] * N,
        }
    )


def texts_of(frame: Any) -> pd.DataFrame:
    """The cells of a frame of any kind, all of which are strings."""
    cells = frame if isinstance(frame, pd.DataFrame) else pa.table(frame).to_pandas()
    cells = cells.astype(object)
    assert {type(cell) for cell in cells.to_numpy().ravel()} == {str}
    return cells


@pytest.mark.parametrize("kind", TEXTS)
def test_whatever_gives_rows_of_a_frame_of_strings_gives_strings(kind: str) -> None:
    rows, frame = table(), TEXTS[kind](table())
    model = Synthesizer.fit(frame, preset="fast", settings=BRIEFLY, seed=1)
    for each in (model, Synthesizer.from_bytes(model.to_bytes())):
        drawn = texts_of(each.sample(N, seed=1))
        assert (drawn["churn"] == "Y").mean() == pytest.approx(0.3, abs=0.15)
        for name in ("churn", "zero", "price", "code", "end", "constant"):
            assert set(drawn[name]) <= set(rows[name]), name
        assert drawn["amount"].str.fullmatch(r"\d+\.\d\d").all()
        assert drawn["euros"].str.fullmatch(r"\d+,\d\d €").all()
        assert drawn["key"].str.fullmatch(r"\d{6}").all()
        [block] = each.sample_blocks(N, seed=1)
        assert texts_of(block).equals(drawn)


def test_texts_of_a_frame_are_conditions_and_known_cells() -> None:
    model = Synthesizer.fit(table(), preset="fast", settings=BRIEFLY, seed=1)
    asked = {"churn": "Y", "zero": "0", "price": "24.50", "code": "007", "day": "05.02.2024"}
    assert (model.sample(9, 1, given=asked)[list(asked)] == pd.Series(asked)).all(axis=None)
    high = model.sample(9, 1, given={"amount": {"min": "20.00"}})["amount"]
    assert (high.astype(float) >= 20.0).all()
    assert set(model.sample(9, 1, distribution={"churn": {"Y": 1.0}})["churn"]) == {"Y"}
    known = table().head(9)[["churn", "price", "amount"]]
    around = texts_of(model.sample(seed=1, given_rows=known))
    assert around[list(known)].equals(known)
    holes = table().head(9)
    holes.loc[3:, ["churn", "price", "amount"]] = None
    filled = texts_of(model.impute(holes))
    assert set(filled["price"]) <= set(table()["price"])
    assert filled.head(3).equals(holes.head(3))


@st.composite
def frequent_texts(draw: st.DrawFn) -> pd.DataFrame:
    """Columns of few texts of any kind each, which one rule writes, blanks among them."""
    columns = {}
    for number in range(draw(st.integers(1, 5))):
        cell = draw(KINDS[draw(st.sampled_from(sorted(KINDS)))])
        few = draw(st.lists(cell, min_size=1, max_size=5, unique=True))
        random = np.random.default_rng(draw(st.integers(0, 99)))
        column = pd.Series(random.choice(few, 60), dtype=object)
        frame = pd.DataFrame({"text": column, "other": ["a", "b"] * 30})
        schema = infer_schema(frame).schema
        if format_table(parse_table(frame, schema), schema)["text"].equals(column):
            is_blank = random.random(60) < draw(st.sampled_from([0.0, 0.2]))
            columns[f"text {number}"] = column.mask(is_blank, None)
    return pd.DataFrame(columns | {"other": ["a", "b"] * 30}, dtype=object)


@tries(15)
@given(frame=frequent_texts())
def test_a_frame_of_few_texts_comes_back_in_its_own_texts(frame: pd.DataFrame) -> None:
    model = Synthesizer.fit(frame, preset="fast", settings={"max_steps": 3}, seed=1)
    drawn = Synthesizer.from_bytes(model.to_bytes()).sample(100, seed=1)
    for name in frame:
        assert drawn[name].dtype == object
        assert all(isinstance(cell, str) for cell in drawn[name].dropna())
        if model.schema[name].kind.has_levels:
            assert set(drawn[name].dropna()) <= set(frame[name].dropna())
        texts = drawn[[name]].dropna()
        values = parse_table(texts, TableSchema((model.schema[name],)))
        assert format_table(values, TableSchema((model.schema[name],))).equals(texts)


def test_a_file_and_the_frame_that_was_read_of_it_come_back_typed(tmp_path: Path) -> None:
    table().to_csv(tmp_path / "table.csv", index=False)
    read = read_table(tmp_path / "table.csv")
    of_file, of_frame, of_part = (
        infer_schema(rows).schema
        for rows in (TableReader(tmp_path / "table.csv"), read, read[["churn", "price"]].tail(200))
    )
    assert of_file == of_frame
    assert {column.dtype for column in (*of_file, *of_part)} == {None}
    typed = read.assign(price=read["price"].astype("float32"))
    assert infer_schema(typed).schema["price"].dtype == "float32"
    drawn = Synthesizer.fit(read, preset="fast", settings=BRIEFLY).sample(5, seed=1)
    assert (drawn["churn"].dtype, drawn["price"].dtype) == (bool, float)
