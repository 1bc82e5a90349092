"""What is left to be found in a table is asked for, each with the line to add."""

from __future__ import annotations

from typing import Any

import pytest

from gcvae.codec.rare_levels import OTHER
from gcvae.errors import SchemaError, SettingError
from gcvae.training.differential_privacy.budget import Budget
from gcvae.training.differential_privacy.declared import declared_table
from gcvae.training.settings import configure
from tests.gcvae.training.differential_privacy.tables import (
    declared_document,
    declared_frame,
    document_without,
)
from tests.wordings import refuses

NAMES = list(declared_frame(5))
BUDGET = Budget(3.0, 1e-6)


def refused(document: dict[str, Any], budget: Budget = BUDGET) -> list[tuple[Any, Any, Any]]:
    """The place, the column and the line to add of each problem."""
    with pytest.raises((SchemaError, SettingError)) as error:
        declared_table(NAMES, document, budget)
    return [(p.pointer, p.column, p.expected) for p in error.value.problems]


def test_a_table_without_a_schema_is_asked_for_every_column() -> None:
    problems = refused({})
    assert [column for _, column, _ in problems] == NAMES
    assert '"name": "größe"' in problems[0][2]


@pytest.mark.parametrize(
    ("column", "member", "line"),
    [
        ("größe", "minimum", '"minimum": '),
        ("größe", "maximum", '"maximum": '),
        ("größe", "decimals", '"decimals": 2'),
        ("größe", "missing", '"missing": {"allowed": false}'),
        ("years", "minimum", '"minimum": '),
        ("seit", "datetime_format", '"datetime_format": "%Y-%m-%d"'),
        ("группа", "levels", '"levels": [...]'),
        ("aktiv", "levels", '"levels": ["no", "yes"]'),
        ("aktiv", "kind", '"kind": one of '),
    ],
)
def test_each_thing_that_is_left_out_is_named_with_its_line(
    column: str, member: str, line: str
) -> None:
    [(pointer, named, expected)] = refused(document_without(column, member))
    number = [c["name"] for c in declared_document()["columns"]].index(column)
    assert (pointer, named) == (f"/columns/{number}/{member}", column)
    assert line in expected


def test_everything_that_is_missing_is_named_at_once() -> None:
    problems = refused(document_without("größe", "minimum", "maximum", "missing"))
    assert {pointer.rpartition("/")[2] for pointer, _, _ in problems} == {
        "minimum",
        "maximum",
        "missing",
    }


def test_levels_may_be_left_to_discovery() -> None:
    budget = Budget(3.0, 1e-6, discover=("группа",))
    found = declared_table(NAMES, document_without("группа", "levels"), budget)
    assert found.discovered == ("группа",)
    whole = found.with_levels({"группа": ["в", "а"]})
    assert whole.schema["группа"].levels == ("а", "в", OTHER)
    assert whole.schema.names == tuple(NAMES)


def test_a_target_has_levels_and_discovery_is_of_categorical_columns() -> None:
    [(pointer, _, _)] = refused(declared_document(), Budget(3.0, 1e-6, target="years"))
    assert pointer == "/differential_privacy/target"
    [(pointer, _, _)] = refused(declared_document(), Budget(3.0, 1e-6, discover=("years",)))
    assert pointer == "/differential_privacy/discover/0"


@pytest.mark.parametrize(
    ("setting", "places"),
    [
        ({"epsilon": 3}, ["delta"]),
        ({"epsilon": 0, "delta": 1e-6}, ["epsilon"]),
        ({"epsilon": True, "delta": 1e-6}, ["epsilon"]),
        ({"epsilon": 3, "delta": 0.5}, ["delta"]),
        ({"epsilon": 3, "delta": 1e-6, "target": 4}, ["target"]),
        ({"epsilon": 3, "delta": 1e-6, "discover": "x"}, ["discover"]),
        ({"epsilon": 3, "delta": 1e-6, "epsilom": 3}, ["epsilom"]),
        ({"epsilon": float("nan"), "delta": None}, ["delta", "epsilon"]),
    ],
)
def test_a_promise_that_can_not_be_kept_is_refused_by_its_members(
    setting: dict[str, Any], places: list[str]
) -> None:
    with pytest.raises(SettingError) as error:
        configure("default", {"differential_privacy": setting})
    found = [problem.pointer for problem in error.value.problems]
    assert found == [f"/differential_privacy/{place}" for place in places]


def test_rows_are_not_held_back_for_a_report_under_a_promise() -> None:
    promise = {"epsilon": 3, "delta": 1e-6}
    with refuses(SettingError):
        configure("default", {"differential_privacy": promise, "report_share": 0.1})
