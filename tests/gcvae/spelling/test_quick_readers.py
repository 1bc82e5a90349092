"""The quicker ways of reading numbers and dates say what the patterns and the slower reader say."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gcvae.spelling import date_text, number_text
from gcvae.spelling.text_bytes import are_in, have_outer_spaces

NUMBERS = st.lists(st.text(st.sampled_from("00123456789.-+e"), max_size=5), min_size=1, max_size=3)
SPELLED = [
    st.integers(-99, 99).map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.integers(0, 4).flatmap(
        lambda places: st.integers(-9999, 9999).map(lambda n: f"{n / 10**places:.{places}f}")
    ),
    st.decimals(-999, 999, places=2).map(str) | st.integers(-99, 99).map(str),
    st.floats(-1e6, 1e6).map(repr),
    st.integers(-99, 99).map(lambda n: f"{n}.0") | st.floats(-9, 9).map(lambda x: f"{x:.3g}"),
    st.sampled_from(["0", "-0", "-0.0", "-0.00", ".5", "5.", "-.5", "1e5", "+1", "1.10"]),
    st.integers(10**13, 10**17).map(lambda n: f"{str(n)[:-5]}.{str(n)[-5:]}"),
]
DATES = st.lists(
    st.datetimes().map(lambda time: time.strftime("%Y-%m-%d %H:%M:%S"))
    | st.text(st.sampled_from("0123-: T"), min_size=10, max_size=19)
    | st.sampled_from(["2024-02-30", "2024-02-29", "2024-1-2", "2024-02-29 24:00:00"]),
    min_size=1,
    max_size=3,
)
ISO = sorted(date_text._ISO_LENGTHS)


def use_patterns(patch: pytest.MonkeyPatch) -> None:
    """Takes every quick way away."""
    patch.setattr(number_text, "plain_numbers", lambda chunks: None)
    patch.setattr(number_text, "may_be_numbers", lambda texts: np.ones(len(texts), dtype=bool))


@given(NUMBERS, st.integers(0, 1))
def test_numbers_are_those_of_the_patterns(cells: list[str], first: int) -> None:
    texts = pa.array(["x", *cells], pa.string()).slice(first)
    found = number_text.are_numbers(texts), number_text.are_whole(texts)
    with pytest.MonkeyPatch.context() as patch:
        use_patterns(patch)
        slow = number_text.are_numbers(texts), number_text.are_whole(texts)
    assert [mask.tolist() for mask in found] == [mask.tolist() for mask in slow]


@given(st.sampled_from(SPELLED).flatmap(lambda cells: st.lists(cells, min_size=1, max_size=6)))
def test_numbers_and_their_spelling_are_those_of_the_patterns(cells: list[str]) -> None:
    texts = pa.array(["x", *cells], pa.string()).slice(1)
    if not number_text.are_numbers(texts).all():
        return
    values = number_text.numbers_of(texts)
    is_whole = bool(number_text.are_whole(texts).all())
    found = number_text.infer_spelling(texts), number_text.infer_spelling(texts, whole=is_whole)
    with pytest.MonkeyPatch.context() as patch:
        use_patterns(patch)
        slow = number_text.numbers_of(texts)
        assert values.dtype == slow.dtype
        assert values.tobytes() == slow.tobytes()  # zeros have signs
        assert found == (
            number_text.infer_spelling(texts),
            number_text.infer_spelling(texts, whole=is_whole),
        )


def test_columns_of_plain_numbers_need_no_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(texts: pa.Array, pattern: str) -> None:
        raise AssertionError(f"asked for {pattern}")

    monkeypatch.setattr(number_text, "_matches", refuse)
    for cells in (["1", "-20"], ["1.5", "0.25", "3"], ["1.50", "-0.25"], ["0.1234567890123456"]):
        texts = pa.array(cells, pa.string())
        assert number_text.are_numbers(texts).all()
        assert number_text.numbers_of(texts).tolist() == [float(cell) for cell in cells]
        assert number_text.infer_spelling(texts).exact


@given(st.lists(st.text("ab ?NA", max_size=3), max_size=9), st.sets(st.text("ab ?NA", max_size=3)))
def test_texts_are_in_a_list_as_python_has_it(cells: list[str], known: set[str]) -> None:
    texts = pa.array(["x", *cells], pa.string()).slice(1)
    assert are_in(texts, sorted(known)).tolist() == [cell in known for cell in cells]


@given(st.lists(st.text(max_size=3), max_size=5))
def test_outer_spaces_are_not_overlooked(cells: list[str]) -> None:
    texts = pa.array(["x", *cells], pa.string()).slice(1)
    if not have_outer_spaces(texts):
        assert pc.utf8_trim_whitespace(texts).equals(texts)


@given(DATES, st.sampled_from(ISO))
def test_dates_are_those_of_the_slower_reader(cells: list[str], date_format: str) -> None:
    for texts in (pa.array(cells, pa.string()), pa.array([cell[:10] for cell in cells])):
        found = date_text.read_dates(texts, date_format)
        forms = date_text.infer_format(texts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(date_text, "_iso_times", lambda texts, date_format: None)
            np.testing.assert_array_equal(found, date_text.read_dates(texts, date_format))
            assert forms == date_text.infer_format(texts)
