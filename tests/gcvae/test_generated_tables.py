"""Whatever a table holds, it is learned, sampled, scored, mapped, saved and loaded.

The laws are those of every table; `make test-properties` tries them on many more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from gcvae import Synthesizer
from gcvae.arrays import TIMES
from gcvae.cells.values import format_table, parse_table
from gcvae.codec.table_codec import TableCodec
from gcvae.errors import TableError
from gcvae.profiling.infer import infer_schema
from gcvae.schema.columns import Column, TableSchema
from gcvae.schema.kinds import ColumnKind
from gcvae.spelling.number_formats import numerals
from gcvae.training.settings import PRESETS
from tests.gcvae.frames import KINDS, WORDS, Cells, cells_of, dates
from tests.lengths import PRESETS_TRIED, tries

pytestmark = pytest.mark.usefixtures("few_rows")

MOST_ROWS = 60
QUICK = {"max_steps": 4, "d_hidden": 8, "d_latent": 2}
QUICK_AUTOREGRESSIVE = QUICK | {"d_sum": 8, "d_column": 6}


def _whole(low: int, high: int) -> st.SearchStrategy[Cells]:
    return st.just(st.integers(low, high).map(str))


_SIZES = st.builds(
    lambda sign, digits, size: f"{sign}{digits}e{size:+03d}",
    st.sampled_from(["", "-"]),
    st.integers(1, 9),
    st.integers(-300, 300),
)
ALL_KINDS: dict[str, st.SearchStrategy[Cells]] = KINDS | {
    "sizes from 1e-300 to 1e300": st.just(_SIZES),
    "whole numbers about 2^53": _whole(2**53 - 60, 2**53 + 60),
    "whole numbers about 2^62": _whole(2**62 - 60, 2**62 + 60),
    "whole numbers of 64 bits": _whole(-(2**63), 2**63 - 1),
    "mostly zero": st.just(st.just("0") | _SIZES),
    "neighbouring floats": st.just(st.integers(0, 40).map(lambda n: repr(1.0 + n * 2.0**-52))),
    "very many levels": st.just(st.integers(0, 999).map(lambda n: f"level {n}")),
    "names": st.just(st.uuids().map(str)),
    "keys": _whole(1, 10**4),
    "months": st.just(dates("%Y-%m")),
    "days without separators": st.just(dates("%Y%m%d", 1901, 2098)),
    "times of the day": st.just(dates("%d %b %Y, %I:%M %p")),
    "nothing": st.just(st.just("")),
}
_NO_NUMBERS = {"numbers with leading zeros", "whole numbers of 64 bits"}
_NUMBERS = {kind for kind in ALL_KINDS if "number" in kind or "integer" in kind} - _NO_NUMBERS | {
    "padded decimals", "shortest decimals", "floats as Python writes them",
    "sizes from 1e-300 to 1e300", "mostly zero", "neighbouring floats",
}  # fmt: skip
_NAMES = WORDS | st.sampled_from(
    [" ", "a,b", 'a "b"', "a\nb", "id", "column", "0", "级别", "naïve", "z" * 500, "__index__"]
)


@dataclass(frozen=True)
class Table:
    """A table's cells, what is said of its columns, and whether its cells come typed."""

    cells: dict[str, list[str]]
    given: dict[str, Any]
    is_typed: bool = False

    @property
    def frame(self) -> pd.DataFrame:
        """The cells as a table."""
        texts = pd.DataFrame(self.cells, dtype=object)
        return (
            parse_table(texts, infer_schema(texts, self.given).schema) if self.is_typed else texts
        )

    @property
    def schema(self) -> TableSchema:
        """Of the table."""
        return infer_schema(self.frame, self.given).schema


@st.composite
def columns(draw: st.DrawFn, kind: str, n_rows: int) -> list[str]:
    """The cells of a column, few, many or all of them missing."""
    cells = draw(cells_of(ALL_KINDS[kind], n_rows))
    share = draw(st.sampled_from([0.0, 0.0, 0.1, 0.5, 0.99]))
    marker = draw(st.sampled_from(["?", "NA", ""]))
    missing = np.random.default_rng(draw(st.integers(0, 99))).random(n_rows) < share
    return [marker if is_missing else cell for is_missing, cell in zip(missing, cells, strict=True)]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Tables of columns of every kind, as text or typed, of which something can be modelled."""
    n_rows = draw(st.integers(1, 12) | st.integers(13, MOST_ROWS))
    names = draw(st.lists(_NAMES, min_size=1, max_size=8, unique=True))
    cells: dict[str, list[str]] = {}
    given = []
    for name in names:
        kind = draw(st.sampled_from(sorted(ALL_KINDS)))
        is_copy = bool(cells) and draw(st.integers(0, 7)) == 0
        cells[name] = (
            draw(st.sampled_from(list(cells.values()))) if is_copy else draw(columns(kind, n_rows))
        )
        said = [None, None, None, "categorical", "ordinal", "identifier"]
        said += ["continuous"] if kind in _NUMBERS and not is_copy else []
        if (wanted := draw(st.sampled_from(said))) is not None:
            given.append({"name": name, "kind": wanted})
    table = Table(cells, {"columns": given})
    try:
        assert len(table.schema)
    except TableError as error:
        if "no column is left to model" not in str(error):
            raise
        reject()
    return replace(table, is_typed=draw(st.booleans()))


def within(column: Column, typed: pd.Series[Any], text: pd.Series[Any]) -> None:
    """Asserts that the cells of a sampled column are such as its schema allows."""
    present = typed.notna()
    assert column.missing.allowed or present.all() or column.kind is ColumnKind.CONSTANT
    if column.kind is ColumnKind.BOOLEAN:
        assert set(typed[present]) <= {False, True}
    elif column.kind.has_levels:
        assert set(typed[present]) <= set(column.levels or ())
    elif column.kind in (ColumnKind.CONTINUOUS, ColumnKind.INTEGER) and present.any():
        assert column.minimum is None or typed.min() >= column.minimum
        assert column.maximum is None or typed.max() <= column.maximum
        if column.decimals is not None:
            cells = pa.array(text[present].tolist(), pa.string())
            if column.number_format is not None:
                cells = numerals(cells, column.number_format)
            steps = [Fraction(cell) * 10**column.decimals for cell in cells.to_pylist()]
            assert all(step.denominator == 1 for step in steps)


def holds(table: Table, preset: str, folder: Path) -> None:
    """Asserts the laws of a fitted model of the table."""
    quick = QUICK_AUTOREGRESSIVE if PRESETS[preset].config.refinement else QUICK
    fitted = Synthesizer.fit(table.frame, schema=table.given, preset=preset, settings=quick)
    fitted.save(folder / "m.gcvae")
    loaded = Synthesizer.load(folder / "m.gcvae")
    assert loaded.to_bytes() == fitted.to_bytes()

    rows = fitted.sample(50, seed=1)
    pd.testing.assert_frame_equal(loaded.sample(50, seed=1), rows)
    text = format_table(rows, fitted.schema)
    values = parse_table(rows, fitted.schema)
    pd.testing.assert_frame_equal(parse_table(text, fitted.schema), values)
    for column in fitted.schema:
        within(column, values[column.name], text[column.name])

    scores = fitted.log_likelihood(table.frame, draws=5)
    pd.testing.assert_frame_equal(loaded.log_likelihood(table.frame, draws=5), scores)
    odd = ["anomaly", "odd_cell"]  # of models with an autoregressive decoder
    assert np.isfinite(scores.drop(columns=odd).to_numpy()).all()
    assert not fitted.log_likelihood(rows, draws=5).drop(columns=odd).isna().any(axis=None)

    for kind in ("expected", "total", "data"):
        map_ = loaded.dependencies(kind)
        assert map_.columns == tuple(column.name for column in fitted.codec.columns)
        # NaN where a column has one value only.
        assert not (np.abs(map_.tau) > 1.0).any()
        assert not (map_.unsigned < 0.0).any()
        assert not (map_.unsigned > 1.0).any()


@pytest.mark.filterwarnings("ignore::gcvae.codec.identifiers.WiderIdentifiersWarning")
@pytest.mark.parametrize("preset", PRESETS_TRIED)
@tries(4)
@given(table=tables())
def test_every_table_is_learned_sampled_scored_mapped_saved_and_loaded(
    table: Table, preset: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    holds(table, preset, tmp_path_factory.mktemp("model"))


@tries(20)
@given(table=tables())
def test_every_table_decodes_to_what_it_was(table: Table) -> None:
    schema = table.schema
    typed = parse_table(table.frame, schema)
    codec = TableCodec.fit(typed, schema, encoding="quantile")
    back = codec.decode(codec.encode(typed))
    for part in codec.columns:
        same(part.column, back[part.name], typed[part.name])


def same(column: Column, back: pd.Series[Any], typed: pd.Series[Any]) -> None:
    """Asserts that decoded cells are what they were.

    Numbers of more digits than a normal score has come back to within 2^-38 of their range; where
    the range has fewer steps than that they are rounded to the very number.
    """
    assert back.dtype == typed.dtype
    assert (back.isna() == typed.isna()).all()
    present = typed.notna()
    found, wanted = (part[present].tolist() for part in (back, typed))
    if not column.kind.is_real or not wanted:
        assert found == wanted
        return
    if column.kind is ColumnKind.DATETIME:
        found, wanted = ([int(t.asm8.astype(TIMES).view("i8")) for t in x] for x in (found, wanted))
    exactly = [Fraction(number) for number in wanted]
    errors = [abs(Fraction(a) - b) for a, b in zip(found, exactly, strict=True)]
    assert max(errors) <= (max(exactly) - min(exactly)) / 2**38
