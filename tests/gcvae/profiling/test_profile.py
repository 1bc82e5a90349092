"""The profile of a table's columns."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from gcvae.cells.values import parse_table
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from gcvae.profiling.profile import profile_table


def profile(text: str) -> dict[str, dict[str, object]]:
    frame = read_table(text.encode())
    schema = infer_schema(frame).schema
    document = json.loads(json.dumps(profile_table(parse_table(frame, schema), schema)))
    assert document["rows"] == len(frame)
    return {column["name"]: column for column in document["columns"]}


TEXT = "id,n,d,s,c\n" + "".join(
    f"k{i},{'?' if i < 6 else i % 50 + 6},2024-01-{i % 30 + 1:02d},{'aab'[i % 3]},5\n"
    for i in range(60)
)


def test_numbers_have_quantiles_and_a_histogram_of_all_their_cells() -> None:
    column = profile(TEXT)["n"]
    assert column["missing_share"] == pytest.approx(0.1)
    assert column["quantiles"]["0.0"] == 6
    assert column["quantiles"]["0.5"] == 28.5
    assert sum(column["histogram"]["counts"]) == 54


@pytest.mark.parametrize("n_missing", [1, 3, 7, 24])
def test_the_missing_share_is_the_missing_cells_over_the_rows(n_missing: int) -> None:
    cells = ["" if i < n_missing else str(i) for i in range(25)]
    column = profile("n,m\n" + "".join(f"{cell},x{i}\n" for i, cell in enumerate(cells)))["n"]
    assert column["missing_share"] == n_missing / 25


def test_dates_are_written_in_their_format() -> None:
    column = profile(TEXT)["d"]
    assert column["quantiles"]["0.0"] == "2024-01-01"
    assert column["histogram"]["edges"][-1] == "2024-01-30"


def test_levels_are_counted_the_most_frequent_first() -> None:
    levels = profile(TEXT)["s"]["levels"]
    assert levels == [{"level": "a", "count": 40}, {"level": "b", "count": 20}]


def test_an_identifier_shows_no_value() -> None:
    assert profile(TEXT)["id"] == {
        "name": "id", "kind": "identifier", "missing_share": 0.0, "distinct": 60,
    }  # fmt: skip


def test_rare_levels_are_counted_together() -> None:
    frame = pd.DataFrame({"s": [f"level {i % 70}" for i in range(140)]})
    schema = infer_schema(frame).schema
    column = profile_table(parse_table(frame, schema), schema)["columns"][0]
    assert len(column["levels"]) == 50
    assert column["other_count"] == 40


def test_of_a_dropped_column_its_name_is_all_that_is_shown() -> None:
    frame = read_table(TEXT.encode())
    given = {"columns": [{"name": name, "drop": True} for name in ("id", "n", "d", "s")]}
    frame["t"] = [f"{i % 7}" for i in range(len(frame))]
    schema = infer_schema(frame, given).schema
    columns = profile_table(parse_table(frame, schema), schema)["columns"]
    assert columns[:4] == [{"name": name, "drop": True} for name in ("id", "n", "d", "s")]
    assert [column["name"] for column in columns] == ["id", "n", "d", "s", "c", "t"]
