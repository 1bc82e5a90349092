"""Nearness and equality to the rows of training."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from benchmarks.quality.measures import dcr_share, exact_copies
from gcvae.schema.columns import TableSchema

SCHEMA = TableSchema.from_json(
    {
        "version": 1,
        "columns": [
            {"name": "id", "kind": "identifier"},
            {"name": "x", "kind": "continuous", "missing": {"allowed": True}},
            {"name": "n", "kind": "integer"},
            {
                "name": "k",
                "kind": "categorical",
                "levels": ["a", "b"],
                "missing": {"allowed": True},
            },
        ],
    }
)


def rows(n: int, seed: int) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "x": random.normal(size=n),
            "n": random.integers(0, 9, n),
            "k": random.choice(np.array(["a", "b", None], dtype=object), n),
        }
    )
    frame.loc[random.random(n) < 0.1, "x"] = np.nan
    return frame


def test_rows_that_are_new_are_as_near_to_either_half() -> None:
    share = dcr_share(rows(1_000, 0), rows(1_000, 1), rows(1_000, 2), SCHEMA)
    assert share.value == pytest.approx(0.5, abs=4 * share.standard_error)
    assert share.n_rows == 1_000


def test_copies_are_nearer_to_the_half_that_they_are_copies_of() -> None:
    seen, unseen = rows(500, 0), rows(500, 1)
    assert dcr_share(seen, unseen, seen, SCHEMA).value > 0.95
    assert dcr_share(seen, unseen, unseen, SCHEMA).value < 0.05


def test_the_two_halves_share_what_is_as_near_to_both() -> None:
    half = rows(200, 0)
    assert dcr_share(half, half.copy(), rows(300, 1), SCHEMA).value == 0.5


def test_unequal_halves_are_cut_to_the_same_size() -> None:
    share = dcr_share(rows(2_000, 0), rows(500, 1), rows(1_000, 2), SCHEMA)
    assert share.value == pytest.approx(0.5, abs=4 * share.standard_error)


def test_nearness_is_ranges_of_numbers_and_whole_levels() -> None:
    seen = pd.DataFrame({"id": [1], "x": [0.0], "n": [0], "k": ["a"]})
    unseen = pd.DataFrame({"id": [2], "x": [10.0], "n": [0], "k": ["b"]})
    near_seen = pd.DataFrame({"id": [3], "x": [9.0], "n": [0], "k": ["a"]})  # 0.9 against 1.1
    assert dcr_share(seen, unseen, near_seen, SCHEMA).value == 1.0
    missing = near_seen.assign(x=np.nan, k=None)  # 2 against 2
    assert dcr_share(seen, unseen, missing, SCHEMA).value == 0.5


def test_copies_are_counted_without_identifiers_beside_what_chance_has() -> None:
    seen = pd.DataFrame({"id": [1, 2], "x": [0.5, np.nan], "n": [1, 2], "k": ["a", None]})
    unseen = seen.assign(id=[8, 9], n=[1, 7])
    made = pd.concat([seen.assign(id=0), seen.assign(k="b")])
    assert exact_copies(seen, unseen, made, SCHEMA) == (0.5, 0.5)
