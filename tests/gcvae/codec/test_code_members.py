"""Which member of its code a cell is, by its position and back."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gcvae.codec.code_members import CodeMembers

MEMBERS = CodeMembers(np.array([1, 0, 1, 2, 1]), np.array([3.0, 5.0, 1.0, 7.0, 4.0]))


def test_shares_are_of_the_members_of_one_code() -> None:
    np.testing.assert_allclose(MEMBERS.shares, [3 / 8, 1.0, 1 / 8, 1.0, 4 / 8])


def test_uniform_positions_are_members_by_their_shares() -> None:
    u = (np.arange(8_000) + 0.5) / 8_000
    members = MEMBERS.member_at(np.full(8_000, 1), u)
    counts = np.bincount(members, minlength=5)
    assert counts.tolist() == [3_000, 0, 1_000, 0, 4_000]


def test_a_code_below_zero_has_no_member() -> None:
    assert MEMBERS.member_at(np.array([-1, 0]), np.array([0.5, 0.5])).tolist() == [-1, 1]


def test_chosen_members_have_their_part_of_the_code() -> None:
    chosen = np.array([True, False, True, True, False])
    np.testing.assert_allclose(np.exp(MEMBERS.log_shares(chosen)), [0.0, 0.5, 1.0])
    codes = np.full(1_000, 1)
    positions = MEMBERS.positions_among(chosen, codes, (np.arange(1_000) + 0.5) / 1_000)
    counts = np.bincount(MEMBERS.member_at(codes, positions), minlength=5)
    assert counts.tolist() == [750, 0, 250, 0, 0]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(1e-3, 1e3)), min_size=1, max_size=40).filter(
        lambda pairs: {code for code, _ in pairs} == set(range(1 + max(pairs)[0]))
    )
)
def test_the_middle_of_a_member_is_its_own(pairs: list[tuple[int, float]]) -> None:
    codes, weights = (np.array(part) for part in zip(*pairs, strict=True))
    members = CodeMembers(codes, weights.astype(float))
    assert members.member_at(members.codes, members.middles).tolist() == list(range(len(pairs)))
