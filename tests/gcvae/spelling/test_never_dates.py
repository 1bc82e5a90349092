"""Times that stand in for dates such as 9999-12-31, and their texts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from gcvae.spelling.never_dates import (
    are_never,
    far_times,
    is_far,
    near_times,
    read_times,
    write_times,
)

FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m", "%-d %B %Y")
NEVER = {"%Y-%m-%d": ("9999-12-31", "0001-01-01"), "%d.%m.%Y": ("31.12.9999", "30.12.9999"),
         "%Y-%m-%d %H:%M:%S": ("9999-12-31 23:59:59", "0001-01-01 00:00:00"),
         "%Y-%m-%dT%H:%M:%SZ": ("9999-12-31T00:00:00Z",), "%Y-%m": ("9999-12",),
         "%-d %B %Y": ("1 January 0001",)}  # fmt: skip


@pytest.mark.parametrize("date_format", FORMATS)
def test_what_is_read_is_written_again(date_format: str) -> None:
    never = NEVER[date_format]
    usual = pd.Timestamp("2024-02-01").strftime(date_format)
    texts = pa.array([*never, usual])
    times = read_times(texts, date_format, never)
    assert are_never(times).tolist() == [True] * len(never) + [False]
    assert write_times(times, date_format, None, never).equals(texts)


def test_never_is_after_all_other_dates_or_before_them() -> None:
    never = ("9999-12-31", "0001-01-01")
    texts = pa.array(["0001-01-01", "1700-01-01", "2200-01-01", "9999-12-31"])
    times = read_times(texts, "%Y-%m-%d", never)
    assert (times[1:] > times[:-1]).all()
    later = read_times(
        pa.array(["2999-12-31", "9999-12-31"]), "%Y-%m-%d", ("9999-12-31", "2999-12-31")
    )
    assert later[0] < later[1]


def test_other_far_dates_and_the_times_that_stand_in_are_no_dates() -> None:
    [stand_in] = read_times(pa.array(["9999-12-31"]), "%Y-%m-%d", ("9999-12-31",))
    own = str(stand_in.astype("datetime64[D]"))
    times = read_times(pa.array(["9998-12-31", own]), "%Y-%m-%d", ("9999-12-31",))
    assert np.isnat(times).all()
    assert not np.isnat(read_times(pa.array([own]), "%Y-%m-%d", ())).any(), "without never it is"


def test_beside_never_a_column_reads_what_typed_dates_are_written_as() -> None:
    never = ("9999-12-31 23:59:59",)
    texts = pa.array(["2024-02-01", "9999-12-31T23:59:59", "2024-02-01 10:00:00.5", "9999-12-31"])
    times = read_times(texts, "%Y-%m-%d %H:%M:%S", never)
    assert times[0] == np.datetime64("2024-02-01")
    assert are_never(times).tolist() == [False, True, False, False]
    assert np.isnat(times[3]), "another moment"


def test_microseconds_hold_the_date_itself() -> None:
    times = pd.Series(
        read_times(pa.array(["9999-12-31", "2024-02-01"]), "%Y-%m-%d", ("9999-12-31",))
    )
    times.loc[2] = pd.NaT
    far = far_times(times, "%Y-%m-%d", ("9999-12-31",))
    assert far.dt.strftime("%Y-%m-%d").tolist()[:2] == ["9999-12-31", "2024-02-01"]
    assert far.isna().tolist() == [False, False, True]
    near = near_times(far, "%Y-%m-%d", ("9999-12-31",))
    assert near is not None
    assert near.equals(times)
    far.loc[1] = pd.Timestamp("9998-12-31")
    assert near_times(far, "%Y-%m-%d", ("9999-12-31",)) is None


def test_only_dates_that_nanoseconds_do_not_reach_are_far() -> None:
    assert is_far("9999-12-31", "%Y-%m-%d")
    assert not is_far("2099-12-31", "%Y-%m-%d")
    assert not is_far("9999-13-31", "%Y-%m-%d")
