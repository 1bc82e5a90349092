"""The profile of a table's columns."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from gcvae.profile import profile_table
from gcvae.schema import infer_schema
from gcvae.tables import parse_table, read_table


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
