"""Which rows keep the hard rules of a schema, and which tables contradict them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.cells.values import parse_table
from gcvae.errors import SchemaError
from gcvae.files.tables import read_table
from gcvae.profiling.infer import infer_schema
from gcvae.sampling.hard_rules import HardRules, KnownCombinations
from gcvae.schema.columns import TableSchema
from tests.lengths import tries
from tests.wordings import refuses, same_wording

BOOKINGS = """start,end,room,floor,nights,code
2024-01-01,2024-01-03,single,1,2,x1
2024-01-05,2024-01-06,double,2,1,x2
2024-02-01,2024-01-30,double,1,3,x3
2024-02-02,,suite,2,,x4
2024-02-03,2024-02-01,,3,2,x5
"""


def hard(text: str) -> dict[str, object]:
    return {"rule": text, "keep": "hard"}


def combinations(*columns: str) -> dict[str, object]:
    return hard(f"combinations({', '.join(columns)})")


def problems_of(*hard_rules: dict[str, object], columns: object = ()) -> list[str]:
    """What is wrong with these hard rules on the bookings."""
    with pytest.raises(SchemaError) as caught:
        infer_schema(
            read_table(BOOKINGS.encode()),
            {"columns": list(columns), "rules": list(hard_rules), "find_rules": True},  # type: ignore[call-overload]
        )
    return [str(problem) for problem in caught.value.problems]


def fitted(frame: pd.DataFrame, *hard_rules: dict[str, object]) -> tuple[HardRules, ...]:
    """The hard rules fitted to a table, and the same from their document."""
    schema = infer_schema(frame, {"rules": list(hard_rules), "find_rules": True}).schema
    found = HardRules.fit(parse_table(frame, schema), schema)
    document = json.loads(json.dumps(found.to_json()))
    return found, HardRules.from_json(TableSchema.from_json(schema.to_json()), document)


# Laws


CELLS = st.none() | st.sampled_from(["p", "q", "r"])
ROWS = st.lists(st.tuples(CELLS, st.none() | st.integers(0, 3), st.booleans()), min_size=1)


@tries(50)
@given(rows=ROWS, others=ROWS, order=st.randoms(use_true_random=False))
def test_combinations_hold_for_the_rows_they_were_fitted_to_and_for_no_others(
    rows: list[tuple[object, ...]], others: list[tuple[object, ...]], order: object
) -> None:
    frames = [
        pd.DataFrame(
            {
                "a": pd.Series([row[0] for row in some], dtype=object),
                "b": pd.Series([row[1] for row in some], dtype="Int64"),
                "c": pd.Series([row[2] for row in some], dtype=bool),
            }
        )
        for some in (rows, others)
    ]
    found = KnownCombinations.fit(frames[0], ["a", "b", "c"])
    assert found.hold(frames[0]).all()
    assert found.hold(frames[1]).tolist() == [row in set(rows) for row in others]
    assert KnownCombinations.from_json(json.loads(json.dumps(found.to_json()))) == found
    shuffled = frames[0].sample(frac=1.0, random_state=1)
    assert KnownCombinations.fit(shuffled, ["a", "b", "c"]).to_json() == found.to_json()


@tries(30)
@given(
    pairs=st.lists(
        st.tuples(st.integers(-9, 9), st.none() | st.integers(-9, 9)), min_size=2, max_size=30
    )
)
def test_an_inequality_is_broken_by_just_the_rows_where_it_is_false(
    pairs: list[tuple[int, int | None]],
) -> None:
    frame = pd.DataFrame(
        {"a": [a for a, _ in pairs], "b": pd.array([b for _, b in pairs], "Int64")}
    )
    kinds = [{"name": name, "kind": "integer"} for name in "ab"]
    schema = TableSchema.from_json(
        infer_schema(frame, {"columns": kinds}).schema.to_json()
        | {"rules": [hard("a <= b")], "find_rules": True}
    )
    satisfied = HardRules(schema, {}).kept(parse_table(frame, schema))
    assert satisfied[:, 0].tolist() == [b is None or a <= b for a, b in pairs]


# Examples


@pytest.mark.parametrize("blanks_unknown", [False, True])
def test_a_blank_is_a_level_of_a_combination_where_it_is_not_a_cell_to_be_guessed(
    blanks_unknown: bool,
) -> None:
    table = read_table(BOOKINGS.encode())
    unseen = table.assign(room=["", "suite", "single", "", "suite"])
    twice = pd.concat([table, table], ignore_index=True)
    for hard_rules in fitted(twice, combinations("room", "floor")):
        schema = infer_schema(twice).schema
        found = hard_rules.kept(parse_table(unseen, schema), blanks_unknown=blanks_unknown)
        expected = [blanks_unknown, True, True, blanks_unknown, False]
        assert found[:, 0].tolist() == expected


def test_a_hard_dependency_on_two_columns_holds_for_the_combinations_of_the_table() -> None:
    frame = pd.DataFrame({"a": list("xxyyy"), "b": list("ssstt"), "c": list("ppqrr")})
    text = "determines(a, b; c)"
    schema = TableSchema.from_json(infer_schema(frame, {"rules": [hard(text)]}).schema.to_json())
    rules = HardRules.fit(parse_table(frame, schema), schema)
    others = pd.DataFrame(
        {"a": ["x", "x", "x", None, "y"], "b": list("sstst"), "c": ["p", "q", "p", "q", None]}
    )
    assert rules.kept(others)[:, 0].tolist() == [True, False, False, True, True]
    again = HardRules.from_json(schema, json.loads(json.dumps(rules.to_json())))
    assert again.kept(others).tolist() == rules.kept(others).tolist()


def test_combinations_hold_dates_numbers_and_booleans_to_the_digit() -> None:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "day": pd.to_datetime("2024-01-01") + pd.to_timedelta(random.integers(0, 20, 900), "D"),
            "price": random.integers(0, 10, 900) / 10 + 0.1,
            "open": random.random(900) < 0.5,
        }
    )
    for hard_rules in fitted(frame, combinations("day", "price", "open")):
        schema = infer_schema(frame).schema
        assert hard_rules.kept(parse_table(frame, schema)).all()
        later = frame.assign(day=frame["day"] + pd.Timedelta(days=50))
        assert not hard_rules.kept(parse_table(later, schema)).any()


def test_a_table_that_breaks_hard_rules_is_told_which_how_often_and_where() -> None:
    problems = problems_of(
        hard("start <= end"),
        hard("nights <= floor"),
        hard("end - start == nights or room == 'suite'"),
    )
    same_wording("\n".join(problems))


def test_a_table_without_lines_is_told_the_row() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 2]}, index=[7, 8, 9])
    with refuses(SchemaError, "/rules/0"):
        infer_schema(frame, {"rules": [hard("a <= b")], "find_rules": True})


@pytest.mark.parametrize(
    ("hard_rule", "columns"),
    [
        (hard("start <= floor"), []),
        (hard("start <= end"), [{"name": "end", "drop": True}]),
        (combinations("room", "code"), [{"name": "code", "kind": "identifier"}]),
        (combinations("room", "start"), []),
        (hard("1 < 2"), []),
        (hard("floor < 1j"), []),
        (hard("-" * 200 + "floor > 0"), []),
        (hard("(" * 500 + "floor" + ")" * 500), []),
        (hard("floor.real > 0"), []),
    ],
)
def test_a_hard_rule_that_has_no_meaning_is_refused_with_its_pointer(
    hard_rule: dict[str, object], columns: list[object]
) -> None:
    [found] = problems_of(hard_rule, columns=columns)
    assert found.startswith("/rules/0")
    same_wording(found)


def test_a_backtick_in_a_text_is_no_column() -> None:
    frame = pd.DataFrame({"a b": ["x`y`", "z", "z"], "n": [1, 2, 3]})
    infer_schema(frame, {"rules": [hard("`a b` == 'x`y`' or n > 1")], "find_rules": True})
    with refuses(SchemaError, "/rules/0"):
        infer_schema(frame, {"rules": [hard("`a c` == 'z'")], "find_rules": True})
