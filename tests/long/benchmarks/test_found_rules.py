"""The rules of the generated tables are found, and none where columns are independent."""

from __future__ import annotations

import pytest

from benchmarks.found_rules import search
from benchmarks.known_truth.countable import draw_countable
from benchmarks.known_truth.independent_columns import draw_independent
from benchmarks.known_truth.orders import draw_orders


def test_every_rule_of_the_orders_is_found() -> None:
    rules, splits, _ = search(draw_orders())
    assert {str(finding.rule) for finding in rules} >= {
        "total == price * quantity",
        "shipped >= ordered",
        "paid >= ordered",
        "product determines category",
        "country determines currency",
    }
    assert any(set(f.rule.columns) == {"paid", "method"} for f in rules)
    assert "price" in {split.original.name for split in splits}


def test_the_rules_of_the_countable_table_are_found() -> None:
    rules, splits, _ = search(draw_countable(3_000).astype(str))
    found = {str(finding.rule) for finding in rules}
    assert "total ≈ deposit + fee ± 1" in found  # of all rows; the equality is of .95 of them
    assert "city determines land" in found
    assert "deposit" in {split.original.name for split in splits}


@pytest.mark.parametrize("seed", [100, 101])  # not those of the benchmark
def test_no_rule_is_found_between_independent_columns(seed: int) -> None:
    rules, _, _ = search(draw_independent(seed))
    assert [str(finding.rule) for finding in rules] == []
