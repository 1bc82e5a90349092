"""What rules say of their columns: on the column's grid, in its dtype, missing where unknown."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from gcvae.cells.values import parse_table
from gcvae.errors import Problem
from gcvae.rules.predictions import predicted
from gcvae.schema.columns import TableSchema
from gcvae.schema.rule_documents import read_rules, rule_problems

SCHEMA = TableSchema.from_json(
    {
        "columns": [
            {"name": "net", "kind": "continuous", "decimals": 2},
            {"name": "税", "kind": "continuous", "decimals": 3},
            {"name": "total", "kind": "continuous", "decimals": 2},
            {"name": "whole", "kind": "integer", "missing": {"allowed": True}},
            {"name": "number", "kind": "integer"},
            {"name": "rank", "kind": "ordinal", "levels": [0, 1, 2, 3, 4, 5, 6, 7]},
            {"name": "start", "kind": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
            {"name": "day", "kind": "datetime", "datetime_format": "%d.%m.%Y"},
        ]
    }
)
CELLS = pd.DataFrame(
    {
        "net": ["0.10", "2.50", "", "-1.15"],
        "税": ["0.205", "0.005", "1.000", "0.015"],
        "total": ["0.31", "2.50", "1.00", "-1.14"],
        "whole": ["2355", "110", "", "10"],
        "number": ["5", "-75", "3", "1430"],
        "rank": ["1", "2", "3", "4"],
        "start": ["2024-03-31 23:30:00", "2024-02-29 00:00:00", "", "2023-12-31 12:00:01"],
        "day": ["01.04.2024", "29.02.2024", "01.01.2024", "01.01.2024"],
    },
    index=[7, 3, 5, 1],
)


def of(document: dict[str, Any], column: str) -> pd.Series[Any]:
    """The predictions of a rule in the table above."""
    problems: list[Problem] = []
    rules = read_rules([document], problems)
    assert not problems + rule_problems(rules, SCHEMA)
    return predicted(rules[0], parse_table(CELLS, SCHEMA), SCHEMA[column])


def shown(series: pd.Series[Any]) -> list[Any]:
    """The values of a series, None where missing."""
    return [None if pd.isna(value) else value for value in series.tolist()]


def test_a_sum_is_rounded_as_decimals_are_not_as_binary_fractions() -> None:
    document = {"kind": "sum", "column": "total", "terms": {"net": 1, "税": 1}}
    found = of(document, "total")
    assert shown(found) == [0.3, 2.5, None, -1.14]
    assert found.index.tolist() == [7, 3, 5, 1]
    assert shown(of(document | {"ties": "away"}, "total")) == [0.31, 2.51, None, -1.14]


def test_a_whole_number_is_of_its_columns_dtype_also_where_it_is_missing() -> None:
    found = of({"kind": "sum", "column": "rank", "terms": {"number": 2}, "constant": 1}, "rank")
    assert found.dtype == "int64"
    assert shown(found) == [11, -149, 7, 2861]
    found = of({"kind": "sum", "column": "number", "terms": {"whole": 0.01}}, "number")
    assert found.dtype == "Int64"
    assert shown(found) == [24, 1, None, 0]


def test_a_product_is_rounded_to_the_grid() -> None:
    document = {"kind": "product", "column": "total", "factors": ["net", "税"], "factor": 100}
    assert shown(of(document, "total")) == [2.05, 1.25, None, -1.72]


def test_the_lower_end_of_an_order_is_rounded_up() -> None:
    found = of({"kind": "order", "low": "税", "high": "total"}, "total")
    assert shown(found) == [0.21, 0.01, 1.0, 0.02]
    found = of({"kind": "order", "low": "start", "high": "day"}, "day")
    assert found.dtype == "datetime64[ns]"
    days = ["2024-04-01", "2024-02-29", None, "2024-01-01"]
    assert shown(found) == [None if day is None else pd.Timestamp(day) for day in days]


@pytest.mark.parametrize(("midnight", "written"), [(0, 0), (2400, 2400)])
def test_a_clock_goes_round_and_writes_midnight_as_its_column_does(
    midnight: int, written: int
) -> None:
    document = {"kind": "clock", "column": "rank", "start": "whole", "minutes": "number"}
    found = of(document | {"midnight": midnight}, "rank")
    assert shown(found) == [written, 2355, None, written]


@pytest.mark.parametrize(
    ("part", "parts"),
    [
        ({"part": "month"}, [3, 2, None, 12]),
        ({"part": "month", "zone": "Europe/Berlin"}, [4, 2, None, 12]),
        ({"part": "hour", "zone": "America/New_York"}, [19, 19, None, 7]),
        ({"part": "weekday", "monday": 0}, [6, 3, None, 6]),
        ({"part": "weekday", "monday": 1}, [7, 4, None, 7]),
        ({"part": "weekday", "monday": 1, "sunday": 0}, [0, 4, None, 0]),
        ({"part": "weekday", "monday": 2}, [1, 5, None, 1]),
        ({"part": "day_of_year"}, [91, 60, None, 365]),
        ({"part": "week"}, [13, 9, None, 52]),
        ({"part": "quarter"}, [1, 1, None, 4]),
    ],
)
def test_a_part_of_a_date_is_read_in_its_zone(part: dict[str, Any], parts: list[Any]) -> None:
    assert shown(of({"kind": "date_part", "column": "rank", "of": "start"} | part, "rank")) == parts


def test_a_date_is_a_sum_in_seconds() -> None:
    terms = {"start": 1, "number": 86_400}
    found = of({"kind": "sum", "column": "day", "terms": terms}, "day")
    days = ["2024-04-06", "2023-12-16", None, "2027-12-01"]
    assert shown(found) == [None if day is None else pd.Timestamp(day) for day in days]
    terms = {"day": 1 / 3600, "start": -1 / 3600}
    assert shown(of({"kind": "sum", "column": "net", "terms": terms}, "net")) == [0.5, 0, None, 12]


def test_what_float64_can_not_count_is_not_predicted() -> None:
    found = of({"kind": "sum", "column": "number", "terms": {"rank": 2**53}}, "number")
    assert shown(found) == [None, None, None, None]


def test_what_overflows_is_not_predicted() -> None:
    schema = TableSchema.from_json(
        {"columns": [{"name": name, "kind": "continuous"} for name in "aby"]}
    )
    frame = pd.DataFrame({"a": [1e300, 2.0], "b": [1e300, 3.0], "y": [0.0, 6.0]})
    [rule] = read_rules([{"kind": "product", "column": "y", "factors": ["a", "b"]}], [])
    assert shown(predicted(rule, frame, schema["y"])) == [None, 6.0]
