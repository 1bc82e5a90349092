"""The quicker ways of reading numbers and dates say what the patterns and the slower reader say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.spelling import date_text, number_text

NUMBERS = st.lists(st.text(st.sampled_from("00123456789.-+e"), max_size=5), min_size=1, max_size=3)
DATES = st.lists(
    st.datetimes().map(lambda time: time.strftime("%Y-%m-%d %H:%M:%S"))
    | st.text(st.sampled_from("0123-: T"), min_size=10, max_size=19)
    | st.sampled_from(["2024-02-30", "2024-02-29", "2024-1-2", "2024-02-29 24:00:00"]),
    min_size=1,
    max_size=3,
)
ISO = sorted(date_text._ISO_LENGTHS)


@given(NUMBERS, st.integers(0, 1))
def test_numbers_are_those_of_the_patterns(cells: list[str], first: int) -> None:
    texts = pa.array(["x", *cells], pa.string()).slice(first)
    found = number_text.are_numbers(texts), number_text.are_whole(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(number_text, "_are_plain", lambda texts, characters, kind: False)
        slow = number_text.are_numbers(texts), number_text.are_whole(texts)
    assert [mask.tolist() for mask in found] == [mask.tolist() for mask in slow]


@given(st.lists(st.decimals(-999, 999, places=2) | st.integers(-99, 99), min_size=1, max_size=4))
def test_a_spelling_is_that_of_the_patterns(values: list[object]) -> None:
    texts = pa.array([str(value) for value in values], pa.string())
    found = number_text.infer_spelling(texts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(number_text, "_are_plain", lambda texts, characters, kind: False)
        assert found == number_text.infer_spelling(texts)


@given(DATES, st.sampled_from(ISO))
def test_dates_are_those_of_the_slower_reader(cells: list[str], date_format: str) -> None:
    for texts in (pa.array(cells, pa.string()), pa.array([cell[:10] for cell in cells])):
        found = date_text.read_dates(texts, date_format)
        forms = date_text.infer_format(texts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(date_text, "_iso_times", lambda texts, date_format: None)
            np.testing.assert_array_equal(found, date_text.read_dates(texts, date_format))
            assert forms == date_text.infer_format(texts)
