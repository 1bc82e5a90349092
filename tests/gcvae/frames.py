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


def _fixed(decimals: int) -> st.SearchStrategy[str]:
    numbers = st.integers(-(10**9), 10**9)
    return numbers.map(lambda n: f"{n / 10**decimals:.{decimals}f}")


def dates(date_format: str, first: int = 1700, last: int = 2200) -> st.SearchStrategy[str]:
    times = st.datetimes(datetime(first, 1, 1), datetime(last, 1, 1))
    return times.map(lambda t: t.strftime(date_format))


def _shortest(number: float) -> str:
    return f"{int(number)}" if number == math.floor(number) and abs(number) < 1e15 else repr(number)


def _price(cents: int) -> str:
    """In euros, as Germans write them: 1.234,50 €."""
    return f"{cents / 100:,.2f} €".translate(str.maketrans(",.", ".,"))


Cells = st.SearchStrategy[str]

KINDS: dict[str, st.SearchStrategy[Cells]] = {
    "integers": st.just(st.integers(-(2**48), 2**48).map(str)),
    "large integers": st.just(st.integers(-(2**62), 2**62).map(str)),
    "few numbers": st.just(st.integers(0, 5).map(str)),
    "padded decimals": st.integers(1, 4).map(_fixed),
    "shortest decimals": st.just(st.integers(-(10**7), 10**7).map(lambda n: _shortest(n / 1000))),
    "floats as Python writes them": st.just(
        st.floats(allow_nan=False, allow_infinity=False, width=64).map(lambda x: repr(x + 0.0))
    ),
    "prices": st.just(st.integers(-(10**9), 10**9).map(_price)),
    "shares": st.just(st.integers(0, 100).map(lambda n: f"{n} %")),
    "levels": st.just(st.sampled_from(["red", "green", "dark blue", "Ωmega", "-1,5", 'a "b"'])),
    "words": st.just(WORDS),
    "booleans": st.sampled_from([("TRUE", "FALSE"), ("yes", "no"), ("Y", "N"), ("t", "f")]).map(
        st.sampled_from
    ),
    "days": st.just(dates("%Y-%m-%d")),
    "days or never": st.just(dates("%Y-%m-%d") | st.just("9999-12-31")),
    "American days": st.just(dates("%m/%d/%Y")),
    "days without zeros": st.just(dates("%-d.%-m.%Y")),
    "seconds": st.just(dates("%Y-%m-%d %H:%M:%S")),
    "microseconds": st.just(dates("%Y-%m-%dT%H:%M:%S.%f", 1990, 2020)),
    "constant": st.sampled_from(["1", "x", "2.50", "true", "2024-01-01"]).map(st.just),
    "numbers with leading zeros": st.just(st.integers(0, 99).map(lambda n: f"{n:05d}")),
}
"""For each kind of column the strategies of its cells, of which a column has one."""


def cells_of(kind: st.SearchStrategy[Cells], n_rows: int) -> st.SearchStrategy[list[str]]:
    """The cells of a column of this kind, none of them missing."""
    return kind.flatmap(lambda cell: st.lists(cell, min_size=n_rows, max_size=n_rows))


@st.composite
def columns(draw: st.DrawFn, kind: str) -> list[str]:
    """The cells of a column of this kind, some of them missing."""
    cells = draw(cells_of(KINDS[kind], _N_ROWS))
    marker = draw(st.sampled_from(["?", "NA", ""]))
    missing = draw(st.sets(st.integers(0, _N_ROWS - 1), max_size=5))
    return [marker if i in missing else cell for i, cell in enumerate(cells)]


def frame_of(cells: list[str]) -> pd.DataFrame:
    """A table of this column and one that can be modelled whatever the column is."""
    other = ["a", "b"] * (len(cells) // 2) + ["a"] * (len(cells) % 2)
    return pd.DataFrame({"column": cells, "other": other}, dtype=object)
