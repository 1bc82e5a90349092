"""Of the cells that go with others the most frequent is found as counting one by one finds it."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.rules import grids
from gcvae.rules.search_functions import joint_codes, most_frequent_codes

ROWS = st.lists(st.tuples(*[st.integers(-1, 4)] * 3), min_size=1, max_size=40)


def numbered(cells: list[object]) -> list[int]:
    """The place of each among those that appear, -1 for what has a blank."""
    places: dict[object, int] = {}
    return [-1 if cell is None else places.setdefault(cell, len(places)) for cell in cells]


@given(ROWS)
def test_combinations_are_told_apart_and_rise_as_they_appear(
    rows: list[tuple[int, ...]],
) -> None:
    columns = [
        np.array(numbered([x if x >= 0 else None for x in c])) for c in zip(*rows, strict=True)
    ]
    found = joint_codes(columns)
    expected = numbered([None if min(row) < 0 else row for row in rows])
    ranks = {number: place for place, number in enumerate(sorted(set(found.tolist()) - {-1}))}
    assert [ranks.get(number, -1) for number in found.tolist()] == expected


@given(ROWS, st.sampled_from([-1, 1 << 20]))
def test_the_most_frequent_code_is_the_last_of_those_that_are_so_frequent(
    rows: list[tuple[int, ...]], most: int
) -> None:
    """Whether the pairs are few, and counted, or many, and sorted."""
    joint, codes, _ = (np.array(column) for column in zip(*rows, strict=True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grids, "_COUNTED_WIDTH", most)
        found = most_frequent_codes(joint, codes)
    for number in range(int(joint.max(initial=-1)) + 1):
        counts = Counter(codes[(joint == number) & (codes >= 0)].tolist())
        wanted = max(counts, key=lambda code: (counts[code], code), default=-1)
        assert found[number] == wanted
