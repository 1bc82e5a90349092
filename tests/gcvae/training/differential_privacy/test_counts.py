"""One row more or less changes every count, and every score of a choice, by at most one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from gcvae.codec.rare_levels import OTHER
from gcvae.files.source_columns import frame_columns
from gcvae.schema.columns import Column, Missing
from gcvae.schema.kinds import ColumnKind
from gcvae.training.differential_privacy.bins import (
    LEAST_BINS,
    MOST_BINS,
    n_bins,
    plain_bins,
    tree_bins,
    tree_widths,
    within_parents,
)
from gcvae.training.differential_privacy.budget import Budget
from gcvae.training.differential_privacy.cell_codes import MISSING, UNFIT, column_codes
from gcvae.training.differential_privacy.counts import BinnedRows, candidate_pairs
from gcvae.training.differential_privacy.declared import declared_table
from gcvae.training.differential_privacy.discovery import LEAST_ROWS, discovered_levels, threshold
from gcvae.training.differential_privacy.ledger import Ledger
from gcvae.training.differential_privacy.selection import round_scores
from tests.gcvae.training.differential_privacy.tables import declared_document, declared_frame
from tests.lengths import tries

SIZES = (4, 3, 5, 2)
BUDGET = Budget(3.0, 1e-6)
rows_of_bins = st.lists(
    st.tuples(*(st.integers(0, size - 1) for size in SIZES)), min_size=1, max_size=12
)


def changes(rows: list[tuple[int, ...]], gone: int, target: int | None) -> list[Any]:
    """What each exact count loses with a row: of every column, and of every pair."""
    kept = [row for i, row in enumerate(rows) if i != gone]
    whole, less = (
        BinnedRows(np.array(r, dtype=np.int64).reshape(-1, len(SIZES)), SIZES, target)
        for r in (rows, kept)
    )
    pairs = candidate_pairs(SIZES, target, np.random.default_rng(0))
    one_way = [whole.one_way(j) - less.one_way(j) for j in range(len(SIZES))]
    return one_way + [whole.table(pair) - less.table(pair) for pair in pairs]


@given(rows_of_bins, st.data(), st.sampled_from([None, 3]))
@tries(60)
def test_a_row_adds_one_to_one_cell_of_every_table(
    rows: list[tuple[int, ...]], data: st.DataObject, target: int | None
) -> None:
    gone = data.draw(st.integers(0, len(rows) - 1))
    for change in changes(rows, gone, target):
        assert change.sum() == 1
        assert np.abs(change).sum() == 1


@given(rows_of_bins, st.data(), st.floats(0, 5))
@tries(60)
def test_a_row_changes_the_score_of_no_pair_by_more_than_one(
    rows: list[tuple[int, ...]], data: st.DataObject, level: float
) -> None:
    gone = data.draw(st.integers(0, len(rows) - 1))
    kept = [row for i, row in enumerate(rows) if i != gone]
    pairs = candidate_pairs(SIZES, None, np.random.default_rng(0))
    scores = []
    for r in (rows, kept):
        binned = BinnedRows(np.array(r, dtype=np.int64).reshape(-1, len(SIZES)), SIZES)
        exact = [binned.table(pair) for pair in pairs]
        estimated = [np.full(counts.shape, level) for counts in exact]
        scores.append(round_scores(exact, estimated, Fraction(9, 4)))
    assert all(type(score) is int for score in scores[0])
    assert max(abs(a - b) for a, b in zip(*scores, strict=True)) <= 1


@given(st.integers(65, 10**6), st.integers(0, 10**6), st.data())
@tries(30)
def test_a_value_stands_in_one_node_of_each_level_of_a_tree(
    n: int, value: int, data: st.DataObject
) -> None:
    widths = tree_widths(n)
    assert widths[-1] == 1
    assert -(-n // widths[0]) <= 64
    for width in widths:
        starts = np.arange(0, n, width)
        ends = np.minimum(starts + width, n)
        assert ((starts <= value % n) & (value % n < ends)).sum() == 1


@given(st.integers(0, 59))
@tries(20)
def test_what_a_cell_becomes_does_not_depend_on_other_rows(gone: int) -> None:
    frame = declared_frame(60)
    frame.iloc[3, 0], frame.iloc[5, 2], frame.iloc[7, 1] = "no number", "999", "д"
    columns = declared_table(list(frame), declared_document(), BUDGET).columns
    kept = frame.drop(index=gone).reset_index(drop=True)
    for column in columns:
        whole = column_codes(frame_columns(frame), column)
        less = column_codes(frame_columns(kept), column)
        assert np.delete(whole, gone).tolist() == less.tolist()


def test_cells_beyond_a_bound_count_at_it_and_others_that_do_not_fit_leave_their_row() -> None:
    numbers = Column("n", ColumnKind.INTEGER, Missing(True), minimum=10, maximum=90)
    frame = pd.DataFrame({"n": ["5", "10", "11", "95", "x", ""], "m": ["5"] * 6})
    codes = column_codes(frame_columns(frame), numbers)
    assert codes.tolist() == [0, 0, 1, 80, UNFIT, MISSING]
    levels = Column("n", ColumnKind.CATEGORICAL, levels=("5", "10"))
    codes = column_codes(frame_columns(frame), levels)
    assert codes.tolist() == [0, 1, UNFIT, UNFIT, UNFIT, UNFIT]


def test_an_infinite_number_leaves_its_row_and_is_no_error() -> None:
    column = Column("x", ColumnKind.CONTINUOUS, Missing(True), 0.0, 9.0, decimals=0)
    source = frame_columns(pd.DataFrame({"x": [1.0, np.inf, np.nan, 4.0]}))
    assert column_codes(source, column).tolist() == [1, UNFIT, MISSING, 4]


def test_a_tree_finds_a_value_that_many_rows_have_and_spends_no_more_than_its_part() -> None:
    column = Column("x", ColumnKind.INTEGER, minimum=0, maximum=99_999)
    random = np.random.default_rng(0)
    codes = np.where(random.random(20_000) < 0.9, 777, random.integers(0, 50_000, 20_000))
    ledger = Ledger(3.0, 1e-6)
    bins = tree_bins(codes, column, ledger.rho / 10, ledger, cell_deviation=10.0)
    assert ledger.spent <= ledger.rho / 10
    assert {777, 778} <= set(bins.starts.tolist())
    assert bins.starts[0] == 0
    assert bins.starts[-1] == 100_000
    drawn = bins.values(bins.of(codes), random.random((len(codes), 2)))
    assert (bins.of(drawn) == bins.of(codes)).all()


def test_a_smooth_number_keeps_its_distribution_where_the_noise_hides_small_nodes() -> None:
    column = Column("x", ColumnKind.INTEGER, minimum=0, maximum=1_499_999)
    random = np.random.default_rng(0)
    codes = np.exp(random.normal(12.0, 0.6, 30_000)).astype(np.int64).clip(0, 1_499_999)
    gaps = []
    for _ in range(4):
        ledger = Ledger(1.0, 1e-6)
        bins = tree_bins(codes, column, ledger.rho / 100, ledger, cell_deviation=30.0)
        drawn = bins.values(bins.of(codes), random.random((len(codes), 2)))
        gaps.append(float(ks_2samp(codes, drawn).statistic))
    assert np.mean(gaps) < 0.035


@given(
    st.lists(st.tuples(st.integers(1, 8), st.floats(0, 1e5)), min_size=1, max_size=5),
    st.floats(0.1, 1e3),
    st.integers(0, 2**32 - 1),
)
@tries(60)
def test_nodes_add_up_to_their_parents_and_hold_no_fewer_than_none(
    families: list[tuple[int, float]], deviation: float, seed: int
) -> None:
    parents = np.repeat(np.arange(len(families)), [size for size, _ in families])
    held = np.array([rows for _, rows in families])
    random = np.random.default_rng(seed)
    counts = random.normal(0, 3 * deviation, len(parents)) + held[parents] * random.random()
    widths = random.integers(1, 9, len(parents))
    found = within_parents(counts, widths, parents, held, deviation)
    assert found.min() >= 0
    np.testing.assert_allclose(np.bincount(parents, found), held, rtol=1e-9, atol=1e-6)


def test_nodes_that_the_noise_hides_are_even_and_one_that_stands_out_stays() -> None:
    parents, widths, held = np.zeros(4, dtype=np.int64), np.array([8, 8, 8, 4]), np.array([70.0])
    hidden = within_parents(np.array([60.0, -30.0, 25.0, 40.0]), widths, parents, held, 50.0)
    np.testing.assert_allclose(hidden, [20.0, 20.0, 20.0, 10.0])
    held = np.array([7_000.0])
    clear = within_parents(np.array([7_020.0, -30.0, 10.0, 5.0]), widths, parents, held, 20.0)
    assert clear[0] > 6_950


@given(st.floats(0, 1e9), st.floats(0.01, 1e4), st.floats(1, 10))
@tries(60)
def test_more_rows_make_no_fewer_bins_and_more_noise_no_more(
    rows: float, deviation: float, times: float
) -> None:
    found = n_bins(rows, deviation)
    assert LEAST_BINS <= found <= MOST_BINS
    assert n_bins(rows * times, deviation) >= found >= n_bins(rows, deviation * times)


def test_noise_in_pairs_leaves_a_number_few_bins() -> None:
    column = Column("x", ColumnKind.INTEGER, minimum=0, maximum=9_999)
    codes = np.random.default_rng(0).integers(0, 10_000, 10_000)
    sizes = []
    for deviation in (1.0, 40.0):
        ledger = Ledger(3.0, 1e-6)
        sizes.append(tree_bins(codes, column, ledger.rho / 10, ledger, deviation).n)
    assert sizes[0] > 24
    assert sizes[1] < 12


def test_bins_and_values_are_inverse_with_the_missing_cell() -> None:
    bins = plain_bins(4, has_missing=True)
    codes = np.array([0, 3, MISSING, 1])
    assert bins.n == 5
    assert bins.values(bins.of(codes), np.full((4, 2), 0.5)).tolist() == codes.tolist()


def column_to_discover() -> Column:
    return Column("name", ColumnKind.CATEGORICAL, Missing(True), levels=(OTHER,))


def discovered(cells: list[str], epsilon: float, delta: float) -> list[str]:
    ledger = Ledger(epsilon, delta, delta / 2)
    source = frame_columns(pd.DataFrame({"name": cells}))
    column = column_to_discover()
    return discovered_levels(source, [column], ledger.rho / 2, ledger)["name"]


def test_a_level_that_occurs_once_never_comes_out_of_discovery() -> None:
    once = [f"person {i}" for i in range(2_000)]
    for _ in range(3):
        assert discovered(once, epsilon=100.0, delta=0.9) == []


def test_discovery_finds_levels_of_many_rows() -> None:
    cells = ["łódź"] * 400 + ["nice"] * 300 + [f"person {i}" for i in range(50)] + [""] * 90
    assert discovered(cells, epsilon=3.0, delta=1e-6) == ["łódź", "nice"]


@pytest.mark.parametrize("variance", [Fraction(1, 2), Fraction(30), Fraction(2_500)])
def test_two_rows_pass_the_threshold_with_a_chance_under_delta(variance: Fraction) -> None:
    delta = 1e-3
    y = np.arange(-3_000, 3_001)
    masses = np.exp(-(y**2) / (2 * float(variance)))
    masses /= masses.sum()
    most = threshold(variance, delta)
    assert masses[LEAST_ROWS + y > most].sum() <= delta
    assert masses[LEAST_ROWS + y > most - 1].sum() > delta
