"""References between the rows of tables, as row numbers, and the ones that are drawn.

A table has one parent whose row its own is drawn given; its other references are chosen when all
rows are there. For these a row is modelled together with a few columns of the row that it refers
to; then it gets, of some hundred candidates, the one that is most like these. Candidates come in
proportion to how many more rows may refer to them, so that degrees keep their distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.codec.context_codec import ContextCodec
from gcvae.errors import Problem, SchemaError, TableError, json_pointer
from gcvae.linked.database_schema import DatabaseSchema, ForeignKey
from gcvae.numerics.generators import numpy_generator

NO_ROW = -1
"""The row number of a missing reference."""
MOST_BORROWED = 6
_MOST_LEVELS = 60
_CANDIDATES = 256
_CHUNK_ROWS = 256
_SHOWN = 10


def without_blanks(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """The tables with empty texts as missing cells: a file cannot leave a key out otherwise."""
    return {name: frame.replace({"": None}) for name, frame in tables.items()}


def key_of(frame: pd.DataFrame) -> pd.MultiIndex | pd.Index[Any]:
    """The values of a key, row by row."""
    return pd.MultiIndex.from_frame(frame) if frame.shape[1] > 1 else pd.Index(frame.iloc[:, 0])


def comparable(own: pd.Series[Any], other: pd.Series[Any]) -> tuple[pd.Series[Any], ...]:
    """Two columns of keys in one type: whole numbers are equal with and without a point."""
    if own.dtype == other.dtype and own.dtype != object:
        return own, other
    found = []
    for cells in (own, other):
        if pd.api.types.is_numeric_dtype(cells.dtype):
            whole = cells.astype("Float64")
            is_whole = bool((whole.dropna() % 1 == 0).all())
            cells = whole.astype("Int64") if is_whole else whole
        found.append(cells.astype("string"))
    return tuple(found)


def row_numbers(frame: pd.DataFrame, key: ForeignKey, parents: pd.DataFrame) -> tuple[Codes, Codes]:
    """(row number in `parents` of each row, rows whose key is not there). Shape: (n,), (m,).

    A key of several columns is missing where all of them are; of which only some are is not there.
    """
    pairs = [
        comparable(frame[own], parents[other])
        for own, other in zip(key.columns, key.references, strict=True)
    ]
    own, of_parents = (
        key_of(pd.DataFrame({str(j): pair[side] for j, pair in enumerate(pairs)}))
        for side in (0, 1)
    )
    are_blank = frame[list(key.columns)].isna().to_numpy()
    is_missing = are_blank.all(axis=1)
    found = np.asarray(of_parents.get_indexer(own), dtype=np.int64)
    found[are_blank.any(axis=1)] = NO_ROW
    return found, np.flatnonzero((found == NO_ROW) & ~is_missing)


def all_row_numbers(
    tables: Mapping[str, pd.DataFrame], schema: DatabaseSchema
) -> dict[str, list[Codes]]:
    """Returns, for each foreign key of each table, the row that each of its rows refers to."""
    return {
        name: [row_numbers(tables[name], key, tables[key.table])[0] for key in table.foreign_keys]
        for name, table in schema.tables.items()
    }


def checked_references(
    tables: Mapping[str, pd.DataFrame], schema: DatabaseSchema, dirty: str = "refuse"
) -> dict[str, pd.DataFrame]:
    """The tables, of which every foreign key is found or missing.

    Args:
        tables: By name.
        schema: With their keys.
        dirty: What happens to rows whose foreign key does not exist: `refuse`, `drop` or `null`.

    Raises:
        TableError: Keys are not unique, or references are dirty and to be refused: the first ten.
    """
    tables = without_blanks(tables)
    tables = dict(tables)
    keys: list[tuple[str, tuple[str, ...], tuple[str | int, ...]]] = [
        (name, table.primary_key, ("tables", name, "primary_key"))
        for name, table in schema.tables.items()
    ]
    keys += [
        (key.table, key.references, ("tables", name, "foreign_keys", i, "references"))
        for name, table in schema.tables.items()
        for i, key in enumerate(table.foreign_keys)
        if key.references != schema[key.table].primary_key
    ]
    problems = [
        problem
        for name, columns, steps in keys
        if (problem := _repeated_key(name, tables[name], columns, json_pointer(*steps))) is not None
    ]
    for name, table in schema.tables.items():
        for i, columns in enumerate(table.unique):
            there, place = tables[name][list(columns)].dropna(), ("tables", name, "unique", i)
            problem = _repeated_key(name, there, columns, json_pointer(*place))
            problems += [] if problem is None else [problem]
    if problems:
        raise TableError(*problems)
    changed = True
    while changed:
        changed = False
        for name, table in schema.tables.items():
            for i, key in enumerate(table.foreign_keys):
                _, lost = row_numbers(tables[name], key, tables[key.table])
                if not len(lost):
                    continue
                pointer = json_pointer("tables", name, "foreign_keys", i)
                whole = tables[name][list(key.columns)].notna().all(axis=1).to_numpy().nonzero()[0]
                if dirty != "refuse" and len(whole) and np.isin(whole, lost).all():
                    message = f"no value of the key {key} of table {name!r} is there"
                    expected = f"columns that hold keys of {key.table!r}"
                    raise SchemaError(Problem(message, pointer, expected=expected))
                if dirty == "refuse":
                    problems.append(_dirty(name, tables[name], key, lost, pointer))
                elif dirty == "drop":
                    kept = np.setdiff1d(np.arange(len(tables[name])), lost)
                    tables[name], changed = tables[name].iloc[kept].reset_index(drop=True), True
                else:
                    frame = tables[name].copy()
                    for column in key.columns:
                        cells = frame[column].astype(object)
                        cells.iloc[lost] = None
                        frame[column] = cells.infer_objects()
                    tables[name] = frame
    if problems:
        raise TableError(*problems)
    return tables


def _repeated_key(
    name: str, frame: pd.DataFrame, key: Sequence[str], pointer: str
) -> Problem | None:
    """What is wrong with a key that is referred to: a value of it comes again or is missing."""
    if not key or not len(frame):
        return None
    cells = frame[list(key)].apply(lambda column: comparable(column, column)[0])
    again = cells.duplicated() | frame[list(key)].isna().any(axis=1)
    if not again.any():
        return None
    first = frame.loc[again, list(key)].head(_SHOWN).astype(str).agg(", ".join, axis=1)
    message = (
        f"{int(again.sum())} rows of table {name!r} have a key that is missing or comes again: "
        f"{'; '.join(first)}"
    )
    return Problem(message, pointer, expected="each value once")


def _dirty(name: str, frame: pd.DataFrame, key: ForeignKey, lost: Codes, pointer: str) -> Problem:
    """The first of the foreign keys that do not exist."""
    shown = frame.iloc[lost][list(key.columns)].drop_duplicates().head(_SHOWN).astype(str)
    values = "; ".join(shown.agg(", ".join, axis=1))
    message = (
        f"{len(lost)} rows of table {name!r} refer ({key}) to rows that do not exist: {values}"
    )
    expected = (
        "keys of that table, whole or missing; or dirty 'drop' (leaves the rows out) or 'null' "
        "(empties them)"
    )
    return Problem(message, pointer, expected=expected)


def borrowed_columns(parents: pd.DataFrame, rare_rows: int) -> list[str]:
    """Columns of a table that are modelled with the rows which refer to it: those of few levels
    first, then numbers. A level has `rare_rows` rows in the mean."""
    n_levels = {str(c): parents[c].nunique() for c in parents.columns}
    most = min(_MOST_LEVELS, len(parents) // rare_rows)
    few = [c for c, n in n_levels.items() if 1 < n <= most]
    numbers = [
        c
        for c, n in n_levels.items()
        if n > most and pd.api.types.is_numeric_dtype(parents[c].dtype)
    ]
    return [*few, *numbers][:MOST_BORROWED]


@dataclass(frozen=True)
class Choice:
    """The rows that may be referred to.

    Attributes:
        features: Their borrowed columns, as codes and normal scores. Shape: (m, 2 C).
        capacity: How many more rows may refer to each. Shape: (m,).
    """

    features: Numbers
    capacity: Numbers

    def assign(
        self, wanted: Numbers, taken: Sequence[Codes], others: Sequence[Codes], seed: int
    ) -> Codes:
        """A row number for each row that refers.

        Args:
            wanted: Features that the row has borrowed. Shape: (n, 2 C).
            taken: For each row the row numbers that it must not get. Shape: n arrays, or none.
            others: Row numbers that the row must not get: its own, where a table refers to itself,
                and those of other references that are never the same. Shape: (n,) each.
            seed: Of the candidates.
        """
        rng, capacity = numpy_generator(seed, "references"), self.capacity.copy()
        found = np.full(len(wanted), NO_ROW, dtype=np.int64)
        chosen_by: dict[int, set[int]] = {}
        order = rng.permutation(len(wanted))
        for start in range(0, len(order), _CHUNK_ROWS):
            rows = order[start : start + _CHUNK_ROWS]
            weight = capacity.clip(min=1e-6)
            n = min(_CANDIDATES, len(weight))
            some = rng.choice(len(weight), n, replace=False, p=weight / weight.sum())
            distance = _distance(wanted[rows], self.features[some])
            distance += rng.random(distance.shape) * 1e-6
            for i, row in enumerate(rows):
                # A row that has as many as it may is the costlier, the more it has beyond.
                cost = distance[i] + 2.0 * (0.5 - capacity[some]).clip(min=0.0)
                for other in others:
                    cost = np.where(some == other[row], np.inf, cost)
                if len(taken):
                    group = chosen_by.setdefault(int(taken[0][row]), set())
                    cost = np.where(np.isin(some, list(group)), 1e6, cost)
                at = int(some[cost.argmin()])
                found[row] = at
                capacity[at] -= 1.0
                if len(taken):
                    group.add(at)
        return found


def _distance(wanted: Numbers, candidates: Numbers) -> Numbers:
    """Levels that differ count one, numbers their normal scores' distance. (n, 2C), (m, 2C)."""
    c = wanted.shape[1] // 2
    differ = (wanted[:, None, :c] != candidates[None, :, :c]).sum(-1, dtype=np.float64)
    apart = np.abs(wanted[:, None, c:] - candidates[None, :, c:]).sum(-1)
    found: Numbers = differ + apart
    return found


def features_of(frame: pd.DataFrame, codec: ContextCodec) -> Numbers:
    """Borrowed columns as codes and scores. Shape: (n, 2 C)."""
    found: Numbers = codec.encode(frame).double().numpy()
    return found
