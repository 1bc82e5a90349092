"""Generated columns of every kind, as the text cells of a file."""

from __future__ import annotations

import math
from datetime import datetime

import pandas as pd
from hypothesis import strategies as st

WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1
)
_N_ROWS = 24


def _rows(cells: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    return st.lists(cells, min_size=_N_ROWS, max_size=_N_ROWS)


def _fixed(decimals: int) -> st.SearchStrategy[str]:
    numbers = st.integers(-(10**9), 10**9)
    return numbers.map(lambda n: f"{n / 10**decimals:.{decimals}f}")


def _dates(date_format: str, first: int = 1700, last: int = 2200) -> st.SearchStrategy[str]:
    times = st.datetimes(datetime(first, 1, 1), datetime(last, 1, 1))
    return times.map(lambda t: t.strftime(date_format))


def _shortest(number: float) -> str:
    return f"{int(number)}" if number == math.floor(number) and abs(number) < 1e15 else repr(number)


KINDS: dict[str, st.SearchStrategy[list[str]]] = {
    "integers": _rows(st.integers(-(2**48), 2**48).map(str)),
    "large integers": _rows(st.integers(-(2**62), 2**62).map(str)),
    "few numbers": _rows(st.integers(0, 5).map(str)),
    "padded decimals": st.integers(1, 4).flatmap(lambda d: _rows(_fixed(d))),
    "shortest decimals": _rows(st.integers(-(10**7), 10**7).map(lambda n: _shortest(n / 1000))),
    "floats as Python writes them": _rows(
        st.floats(allow_nan=False, allow_infinity=False, width=64).map(lambda x: repr(x + 0.0))
    ),
    "levels": _rows(st.sampled_from(["red", "green", "dark blue", "Ωmega", "-1,5", 'a "b"'])),
    "words": _rows(WORDS),
    "booleans": st.sampled_from([("TRUE", "FALSE"), ("yes", "no"), ("Y", "N"), ("t", "f")]).flatmap(
        lambda pair: _rows(st.sampled_from(pair))
    ),
    "days": _rows(_dates("%Y-%m-%d")),
    "American days": _rows(_dates("%m/%d/%Y")),
    "days without zeros": _rows(_dates("%-d.%-m.%Y")),
    "seconds": _rows(_dates("%Y-%m-%d %H:%M:%S")),
    "microseconds": _rows(_dates("%Y-%m-%dT%H:%M:%S.%f", 1990, 2020)),
    "constant": st.sampled_from(["1", "x", "2.50", "true", "2024-01-01"]).map(
        lambda cell: [cell] * _N_ROWS
    ),
    "numbers with leading zeros": _rows(st.integers(0, 99).map(lambda n: f"{n:05d}")),
}


@st.composite
def columns(draw: st.DrawFn, kind: str) -> list[str]:
    """The cells of a column of this kind, some of them missing."""
    cells = draw(KINDS[kind])
    marker = draw(st.sampled_from(["?", "NA", ""]))
    missing = draw(st.sets(st.integers(0, _N_ROWS - 1), max_size=5))
    return [marker if i in missing else cell for i, cell in enumerate(cells)]


def frame_of(cells: list[str]) -> pd.DataFrame:
    """A table of this column and one that can be modelled whatever the column is."""
    other = ["a", "b"] * (len(cells) // 2) + ["a"] * (len(cells) % 2)
    return pd.DataFrame({"column": cells, "other": other}, dtype=object)
