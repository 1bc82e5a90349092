"""Resolves references between tables to row indices, and chooses the references of generated rows.

A row is generated given its parent row. Other rows to which it refers are chosen afterwards: the
model generates, together with the row, values that a referenced row should have in some columns. Of
256 candidates, the one with the smallest cost is chosen:

    cost(row, candidate) = number of different levels + sum of |differences of normal scores|
                           + 2 max(0, 0.5 - remaining capacity)

Candidates are drawn in proportion to their remaining capacity, the number of references that they
should still receive. This preserves the distribution of the number of references per row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.codec.context_codec import ContextCodec
from gcvae.errors import Problem, SchemaError, TableError, json_pointer
from gcvae.linked.database_schema import DatabaseSchema, ForeignKey
from gcvae.numerics.generators import numpy_generator

NO_ROW = -1
"""Row index of a missing reference."""
_MOST_BORROWED = 6
"""Maximum number of columns of a referenced row that are modelled with the referring row."""
_MOST_LEVELS = 60
_CANDIDATES = 256
_CHUNK_ROWS = 256
_SHOWN = 10


def without_blanks(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Returns the tables with empty strings replaced by missing values, because an empty string in
    a CSV file may be a missing key."""
    return {name: frame.replace({"": None}) for name, frame in tables.items()}


def comparable(own: pd.Series[Any], other: pd.Series[Any]) -> tuple[pd.Series[Any], ...]:
    """Converts two key columns to one dtype, so that equal keys compare equal.

    Numbers and strings become strings; whole numbers are written without a decimal point.
    """
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


def referenced_rows(
    frame: pd.DataFrame, key: ForeignKey, parents: pd.DataFrame
) -> tuple[Codes, Codes]:
    """Finds the row that each of n rows references. Returns (its index in `parents`, indices of the
    m rows whose key is invalid). Shape: (n,), (m,).

    The index is -1 if the key is missing or invalid. A key of several columns is missing if all of
    its cells are missing; if only some are, it is invalid.
    """
    pairs = [
        comparable(frame[own], parents[other])
        for own, other in zip(key.columns, key.references, strict=True)
    ]
    own, of_parents = (
        pd.MultiIndex.from_arrays(cells) if len(pairs) > 1 else pd.Index(cells[0])
        for cells in zip(*pairs, strict=True)
    )
    are_blank = frame[list(key.columns)].isna().to_numpy()
    is_missing = are_blank.all(axis=1)
    found = np.asarray(of_parents.get_indexer(own), dtype=np.int64)
    found[are_blank.any(axis=1)] = NO_ROW
    return found, np.flatnonzero((found == NO_ROW) & ~is_missing)


def all_referenced_rows(
    tables: Mapping[str, pd.DataFrame], schema: DatabaseSchema
) -> dict[str, dict[int, Codes]]:
    """Returns, for each foreign key of each table, the row index that each row references; -1 if it
    references no row."""
    return {
        name: {
            i: referenced_rows(tables[name], key, tables[key.table])[0]
            for i, key in enumerate(table.foreign_keys)
        }
        for name, table in schema.tables.items()
    }


def checked_references(
    tables: Mapping[str, pd.DataFrame], schema: DatabaseSchema, invalid_references: str = "refuse"
) -> dict[str, pd.DataFrame]:
    """Checks that keys are unique, and that foreign keys are missing or exist in the referenced
    table. Returns the tables, without invalid references.

    Args:
        tables: Tables by name.
        schema: Schema with the keys of all tables.
        invalid_references: What to do if a foreign key leads to no row: `refuse` raises an error,
            `drop` leaves out the row, `null` makes its key missing.

    Raises:
        TableError: Keys are not unique, or foreign keys do not exist in the referenced table and
            `invalid_references` is `refuse`. The message shows the first ten invalid keys.
        SchemaError: `invalid_references` is `drop` or `null`, but not a single value of a foreign
            key exists in the referenced table, so that the foreign key itself must be wrong.
    """
    tables = without_blanks(tables)
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
                _, lost = referenced_rows(tables[name], key, tables[key.table])
                if not len(lost):
                    continue
                pointer = json_pointer("tables", name, "foreign_keys", i)
                whole = tables[name][list(key.columns)].notna().all(axis=1).to_numpy().nonzero()[0]
                if invalid_references != "refuse" and len(whole) and np.isin(whole, lost).all():
                    message = f"no value of the key {key} of table {name!r} is there"
                    expected = f"columns that hold keys of {key.table!r}"
                    raise SchemaError(Problem(message, pointer, expected=expected))
                if invalid_references == "refuse":
                    problems.append(_invalid_references(name, tables[name], key, lost, pointer))
                elif invalid_references == "drop":
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
    """Returns a problem if values of a key are repeated or missing; else None."""
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


def _invalid_references(
    name: str, frame: pd.DataFrame, key: ForeignKey, lost: Codes, pointer: str
) -> Problem:
    """Returns the problem that the keys in the rows `lost` do not exist in the referenced table."""
    shown = frame.iloc[lost][list(key.columns)].drop_duplicates().head(_SHOWN).astype(str)
    values = "; ".join(shown.agg(", ".join, axis=1))
    message = (
        f"{len(lost)} rows of table {name!r} refer ({key}) to rows that do not exist: {values}"
    )
    expected = (
        "keys of that table, whole or missing; or invalid_references 'drop' (leaves the rows out) "
        "or 'null' (empties them)"
    )
    return Problem(message, pointer, expected=expected)


def borrowed_columns(parents: pd.DataFrame, rare_rows: int) -> list[str]:
    """Chooses at most six columns of a referenced table that distinguish its rows.

    The columns are modelled with the rows that reference the table, so that a suitable row can be
    chosen. Categorical columns come before numeric ones.

    Args:
        parents: Rows of the referenced table.
        rare_rows: Minimum average number of rows per level of a categorical column. A column with
            fewer rows per level is not chosen, unless it is numeric.
    """
    n_levels = {str(c): parents[c].nunique() for c in parents.columns}
    most = min(_MOST_LEVELS, len(parents) // rare_rows)
    few = [c for c, n in n_levels.items() if 1 < n <= most]
    numbers = [
        c
        for c, n in n_levels.items()
        if n > most and pd.api.types.is_numeric_dtype(parents[c].dtype)
    ]
    return [*few, *numbers][:_MOST_BORROWED]


def chosen_rows(
    target: Numbers,
    features: Numbers,
    capacity: Numbers,
    paired: Sequence[Codes],
    others: Sequence[Codes],
    seed: int,
) -> Codes:
    """Chooses the row that each of n generated rows refers to, among m rows. Returns row indices.
    Shape: (n,).

    Args:
        target: The values that the referenced row should have in C columns, encoded by
            `features_of`. Shape: (n, 2 C).
        features: The same columns of the rows to choose from. Shape: (m, 2 C).
        capacity: Number of references that each of the m rows should receive. Shape: (m,).
        paired: Empty, or a list of one array: row indices that another foreign key references.
            Pairs of this index and the chosen one do not repeat, if that is possible, because both
            keys are part of a unique key. Shape: (n,).
        others: Arrays that contain, for each generated row, a row index that it must not choose:
            its own index in a table that refers to itself, or the row that another foreign key
            references, if in the real table the two keys never lead to the same row. Shape: (n,)
            each.
    """
    rng, capacity = numpy_generator(seed, "references"), capacity.copy()
    found = np.full(len(target), NO_ROW, dtype=np.int64)
    chosen_by: dict[int, set[int]] = {}
    order = rng.permutation(len(target))
    for start in range(0, len(order), _CHUNK_ROWS):
        rows = order[start : start + _CHUNK_ROWS]
        weight = capacity.clip(min=1e-6)
        n = min(_CANDIDATES, len(weight))
        some = rng.choice(len(weight), n, replace=False, p=weight / weight.sum())
        distance = _distance(target[rows], features[some])
        distance += rng.random(distance.shape) * 1e-6
        for i, row in enumerate(rows):
            # The cost grows with the number of references beyond a row's capacity.
            cost = distance[i] + 2.0 * (0.5 - capacity[some]).clip(min=0.0)
            for other in others:
                cost = np.where(some == other[row], np.inf, cost)
            if len(paired):
                group = chosen_by.setdefault(int(paired[0][row]), set())
                cost = np.where(np.isin(some, list(group)), 1e6, cost)
            at = int(some[cost.argmin()])
            found[row] = at
            capacity[at] -= 1.0
            if len(paired):
                group.add(at)
    return found


def _distance(target: Numbers, candidates: Numbers) -> Numbers:
    """Returns the number of different levels plus the sum of absolute differences of normal scores.
    Shape: target (n, 2 C), candidates (m, 2 C) -> (n, m)."""
    c = target.shape[1] // 2
    differ = (target[:, None, :c] != candidates[None, :, :c]).sum(-1, dtype=np.float64)
    apart = np.abs(target[:, None, c:] - candidates[None, :, c:]).sum(-1)
    return np.asarray(differ + apart)


def features_of(frame: pd.DataFrame, codec: ContextCodec) -> Numbers:
    """Encodes C columns as C category indices, then C normal scores. Shape: (n, 2 C)."""
    return np.asarray(codec.encode(frame).double().numpy())
