"""What formulas say of their columns: on the column's grid, in its dtype, missing where unknown."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from gcvae.cells.values import parse_table
from gcvae.rules.predictions import Prediction, Ties, keeps
from gcvae.schema.columns import TableSchema
from gcvae.schema.rules import Rule
from tests.wordings import refuses

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
            {"name": "word", "kind": "categorical", "levels": ["x", "y"]},
            {"name": "paid", "kind": "boolean", "levels": ["no", "yes"]},
            {"name": "Tag", "kind": "categorical", "levels": ["Friday", "Sunday", "Thursday"]},
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
        "word": ["x", "y", "", "x"],
        "paid": ["yes", "no", "", "no"],
        "Tag": ["Sunday", "Friday", "Sunday", ""],
    },
    index=[7, 3, 5, 1],
)


def prediction(text: str, ties: Ties = "even", **tables: dict[str, Any]) -> Prediction:
    found = Prediction.of(Rule(text, tables=tables), SCHEMA)
    return Prediction(found.rule, found.column, found.parents, ties)


def of(text: str, ties: Ties = "even", **tables: dict[str, Any]) -> pd.Series[Any]:
    """What a formula says in the table above."""
    return prediction(text, ties, **tables).predicted(parse_table(CELLS, SCHEMA))


def kept(text: str, **tables: dict[str, Any]) -> list[bool | None]:
    """Which rows of the table above keep a rule; None where not all is known."""
    known, kept = keeps(Rule(text, tables=tables), parse_table(CELLS, SCHEMA), SCHEMA)
    return [bool(k) if is_known else None for is_known, k in zip(known, kept, strict=True)]


def shown(series: pd.Series[Any]) -> list[Any]:
    """The values of a series, None where missing."""
    return [None if pd.isna(value) else value for value in series.tolist()]


def days(*texts: str | None) -> list[pd.Timestamp | None]:
    return [None if text is None else pd.Timestamp(text) for text in texts]


def test_a_sum_is_rounded_as_decimals_are_not_as_binary_fractions() -> None:
    found = of("total == net + 税")
    assert shown(found) == [0.3, 2.5, None, -1.14]
    assert found.index.tolist() == [7, 3, 5, 1]
    assert shown(of("total == net + 税", ties="away")) == [0.31, 2.51, None, -1.14]


def test_a_whole_number_is_of_its_columns_dtype_also_where_it_is_missing() -> None:
    found = of("rank == 2 * number + 1")
    assert found.dtype == "int64"
    assert shown(found) == [11, -149, 7, 2861]
    found = of("number == whole / 100")
    assert found.dtype == "Int64"
    assert shown(found) == [24, 1, None, 0]


def test_a_product_is_rounded_to_the_grid() -> None:
    assert shown(of("total == 100 * net * 税")) == [2.05, 1.25, None, -1.72]


def test_the_end_of_an_inequality_is_rounded_to_its_side() -> None:
    assert shown(of("total >= 税")) == [0.21, 0.01, 1.0, 0.02]
    assert shown(of("total <= 税")) == [0.2, 0.0, 1.0, 0.01]
    found = of("day >= start")
    assert found.dtype == "datetime64[us]"
    assert shown(found) == days("2024-04-01", "2024-02-29", None, "2024-01-01")
    assert shown(of("day <= start")) == days("2024-03-31", "2024-02-29", None, "2023-12-31")


@pytest.mark.parametrize(("text", "midnight"), [("", 0), (", 0", 0), (", 2400", 2400)])
def test_a_clock_goes_round_and_writes_midnight_as_its_column_does(
    text: str, midnight: int
) -> None:
    found = of(f"rank == clock(whole, number{text})")
    assert shown(found) == [midnight, 2355, None, midnight]


@pytest.mark.parametrize(
    ("part", "parts"),
    [
        ("month(start)", [3, 2, None, 12]),
        ('month(start, "Europe/Berlin")', [4, 2, None, 12]),
        ('hour(start, "America/New_York")', [19, 19, None, 7]),
        ("day_of_week(start)", [6, 3, None, 6]),
        ("day_of_week(start) + 1", [7, 4, None, 7]),
        ("(day_of_week(start) + 1) % 7", [0, 4, None, 0]),
        ("(day_of_week(start) + 1) % 7 + 1", [1, 5, None, 1]),
        ("day_of_year(start)", [91, 60, None, 365]),
        ("week(start)", [13, 9, None, 52]),
        ("quarter(start)", [1, 1, None, 4]),
    ],
)
def test_a_part_of_a_date_is_read_in_its_zone(part: str, parts: list[Any]) -> None:
    assert shown(of(f"rank == {part}")) == parts


def test_dates_are_days_apart() -> None:
    found = of("day == start + number")
    assert shown(found) == days("2024-04-06", "2023-12-16", None, "2027-12-01")
    assert shown(of("net == 24 * (day - start)")) == [0.5, 0, None, 12]
    assert shown(of("number == days(start, day)")) == [0, 0, None, 0]


def test_levels_are_said_as_they_are() -> None:
    found = of("Tag == weekday(start)")
    assert found.index.tolist() == [7, 3, 5, 1]
    assert shown(found) == ["Sunday", "Thursday", None, "Sunday"]
    assert shown(of("paid == (net < 税)")) == [True, False, None, True]
    assert shown(of("word == lower(word2[Tag])", word2={"Sunday": "X", "Friday": "Z"})) == [
        "x", "z", "x", None,
    ]  # fmt: skip
    assert kept("Tag == weekday(start)") == [True, False, None, None]
    assert kept("paid == (net < 税)") == [True, True, None, False]


def test_a_table_says_what_stands_beside_a_key() -> None:
    assert shown(of("net == rate[word] * number", rate={"x": 0.5, "y": 2})) == [
        2.5, -150, None, 715,
    ]  # fmt: skip
    assert shown(of("number == price[rank]", price={"1": 10, "3": 30})) == [10, None, 30, None]
    assert shown(of("net == fee[paid]", fee={"true": 1.5})) == [1.5, None, None, None]


def test_a_row_keeps_a_formula_whichever_way_halves_are_rounded() -> None:
    assert kept("total == net + 税") == [True, True, None, True]
    assert kept("total == net + 税 + 0.01") == [True, False, None, False]
    assert kept("total ≈ net + 0.2 ± 0.1") == [True, False, None, False]
    assert kept("total ≈ net + 0.2 ± 0.2") == [True, True, None, True]


def test_a_row_keeps_an_inequality_also_by_a_value_apart() -> None:
    assert kept("total >= net") == [True, True, None, True]
    assert kept("total <= net") == [False, True, None, False]
    assert kept("total <= net or total == 0.31") == [True, True, None, False]
    assert kept("day >= start + 0.1 or day == '29.02.2024'") == [False, True, None, True]


def test_missing_cells_follow_others_where_they_ask_for_it() -> None:
    assert kept("is_missing(net) if is_missing(whole)") == [None, None, True, None]
    assert kept("is_missing(net) == is_missing(start)") == [None, None, True, None]
    assert kept("is_missing(Tag) if is_missing(net)") == [None, None, False, None]
    assert kept("is_missing(Tag) == is_missing(net)") == [None, None, False, False]


def test_what_float64_can_not_count_is_not_predicted() -> None:
    assert shown(of(f"number == rank * {2**53}")) == [None, None, None, None]


def test_what_overflows_or_has_no_value_is_not_predicted() -> None:
    schema = TableSchema.from_json(
        {"columns": [{"name": name, "kind": "continuous"} for name in "aby"]}
    )
    frame = pd.DataFrame({"a": [1e300, 2.0, 0.0], "b": [1e300, 3.0, 1.0], "y": [0.0, 6.0, 0.0]})
    for text, said in (("y == a * b", [None, 6.0, 0.0]), ("y == b / a", [1.0, 1.5, None])):
        assert shown(Prediction.of(Rule(text), schema).predicted(frame)) == said


@pytest.mark.parametrize(
    "text",
    [
        "total == word",
        "total == start",
        "day == number",
        "number == start + day",
        "word == number",
        "paid == number",
        "word >= Tag",
        "net + word <= total",
        "rank == hour(day)",
        "rank == month(number)",
        "number == round(net, start)",
        'rank == hour(start, "Europe/Berlyn")',
        "total == rate[word]",
        "total >= net or total == 'none'",
        "day >= start or day == 0",
        "day >= start or day == '2024-02-29'",
    ],
)
def test_a_formula_whose_types_do_not_fit_is_refused(text: str) -> None:
    with refuses(ValueError):
        prediction(text)
