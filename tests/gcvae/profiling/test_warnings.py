"""What a user is told of columns that are not taken as what they look like."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from gcvae.cells.values import format_table
from gcvae.files.table_reader import TableReader
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from gcvae.schema.inferred_schema import InferredSchema
from gcvae.synthesizer import Synthesizer

FIRST = 2**63


def inferred(cells: Sequence[object], kind: str | None = None) -> InferredSchema:
    text = "".join(f"{cell},{i % 3}\n" for i, cell in enumerate(cells))
    given = {"columns": [{"name": "x", "kind": kind}]} if kind else None
    return infer_schema(read_table(f"x,y\n{text}".encode()), given)


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (
            [f"20{n:02d}-01-01" for n in range(30)] + ["9999-12-31"] * 2,
            "has 9999-12-31 in 2 cells (the first in line 32), far from all other values; if it"
            " means missing, set missing.markers to",
        ),
        (
            [f"2024-01-01 00:00:{n:02d}.1234567" for n in range(30)],
            "has times finer than microseconds, whose further digits are cut off",
        ),
        (
            ["2024-02-29"] * 99 + ["2024-02-30"],
            "is treated as text although 99.0% of its cells are dates of the format %Y-%m-%d:"
            " line 101 holds '2024-02-30'",
        ),
        (
            ["2024-02-29"] * 4999 + ["2024-02-30"],
            "is treated as text although 99.9% of its cells are dates of the format %Y-%m-%d:",
        ),
        (
            [f"2024-01-01T10:0{n}:00+0{n}:00" for n in range(3)],
            "has times of several offsets from UTC, or with and without digits of a second: they"
            " are read as the moments that they are, and all are written like"
            " '2024-01-01T10:00:00+00:00'",
        ),
        (
            ["2024-01-01T10:00:00Z", "2024-01-01T11:00:00+01:00", "2024-01-01T12:00:00+02:00"],
            "all are written like '2024-01-01T10:00:00Z'",
        ),
        (
            [FIRST + n for n in range(3)],
            f"is treated as text: line 2 holds '{FIRST}', a whole number beyond {FIRST - 1024}",
        ),
        (
            ["NA", "", "", "1", "2"],
            "has 2 texts that mean missing, 'NA', ''; the model does not distinguish them, and"
            " synthetic rows have the most frequent, ''",
        ),
    ],
)
def test_the_reason_is_told_with_the_column(cells: list[object], reason: str) -> None:
    warnings = inferred(cells).warnings
    assert any(text.startswith("column 'x': ") and reason in text for text in warnings), warnings


@pytest.mark.parametrize(
    "cells",
    [
        ["2024-02-29", "2023-01-01"],
        ["one", "9999-12-31", "two"],
        ["2024-02-29", "9999-12-31", "0001-01-01"],
        [f"2024-01-01 00:00:{n:02d}.123456" for n in range(30)],
        ["1.50", "2.25"],
        ["0.1234567890123456789", "0.2234567890123456789"],
        ["NA", "1", "2"],
        ["call +4930", "call +4989"],
        ["13:04:05", "09:10:11"],
    ],
)
def test_nothing_is_told_of_columns_that_are_what_they_look_like(cells: list[str]) -> None:
    told = [text for text in inferred(cells).warnings if text.startswith("column ")]
    assert [text for text in told if "several formats" not in text] == []


@pytest.mark.parametrize("is_file", [True, False])
def test_whole_numbers_beyond_63_bits_are_drawn_and_scored(
    is_file: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("whole") / "large.parquet"
    rng = np.random.default_rng(0)
    numbers = np.uint64(FIRST - 2) + rng.integers(0, 4, 100).astype(np.uint64)
    columns = {"n": pa.array(numbers, mask=rng.random(100) < 0.1), "x": rng.random(100)}
    parquet.write_table(pa.table(columns), path)
    frame = pd.DataFrame({"n": pd.array(columns["n"].to_pylist(), "UInt64"), "x": columns["x"]})
    table = TableReader(path) if is_file else frame
    fitted = Synthesizer.fit(table, preset="fast", settings={"max_steps": 5})
    drawn = fitted.sample(50)
    assert set(drawn["n"].dropna().astype(str)) <= {str(FIRST - 2 + n) for n in range(4)}
    scores = pd.concat(fitted.score_blocks(table), ignore_index=True)
    assert len(scores) == 100
    assert np.isfinite(scores["log_likelihood"]).all()


def test_what_is_drawn_has_the_most_frequent_marker() -> None:
    cells = (["NA", "", "", "a", "b", "c"] * 20)[:100]
    text = "x,y\n" + "".join(f"{cell},{i % 7 / 7}\n" for i, cell in enumerate(cells))
    frame = read_table(text.encode())
    fitted = Synthesizer.fit(frame, preset="fast", settings={"max_steps": 5})
    assert fitted.schema["x"].missing.markers == ("", "NA")
    drawn = format_table(fitted.sample(100), fitted.schema)["x"]
    assert set(drawn) == {"", "a", "b", "c"}
    completed = fitted.impute(frame)
    assert completed["x"].isin(["a", "b", "c"]).all()
