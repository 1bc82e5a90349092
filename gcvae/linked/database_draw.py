"""Generates a database: rows given their parents, then references, computed columns and keys."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pandas as pd

from gcvae.arrays import TIMES, Codes, Mask
from gcvae.cells.data_frames import with_columns
from gcvae.codec.key_parts import with_parts
from gcvae.files.frame_dtypes import with_dtypes
from gcvae.linked.database_part import DatabasePart, degree_name, taken_cells
from gcvae.linked.database_schema import DatabaseSchema, ForeignKey, LinkedTable
from gcvae.linked.linked_rows import LinkedRows, effect_columns
from gcvae.linked.references import NO_ROW, chosen_rows, features_of
from gcvae.numerics.seeds import derived_seed

_MOST_ROUNDS = 30
"""Maximum number of times that rows with repeated keys are generated again."""


class Drawing(LinkedRows):
    """Generates a synthetic database from the fitted tables, with valid keys.

    Attributes:
        links: Database schema, with the keys of all tables.
        parts: Fitted tables by name, parents before their children.
        seed: The same seed gives the same database.
        frames: Rows of each table generated so far, with the additional columns of its model.
        rows: For each table and index of a foreign key, the row index that each row references.
    """

    def __init__(self, links: DatabaseSchema, parts: Mapping[str, DatabasePart], seed: int) -> None:
        self.parts, self.seed = parts, seed
        self.frames: dict[str, pd.DataFrame] = {}
        self.rows: dict[str, dict[int, Codes]] = {name: {} for name in parts}
        super().__init__(links, {name: p.plan for name, p in parts.items()}, {}, self.rows)

    def tables(self, parents: int | None, scale: float) -> dict[str, pd.DataFrame]:
        """Returns generated rows of all tables, with the columns and dtypes of the real tables.

        Args:
            parents: Number of rows of each table without a parent; None: see `scale`.
            scale: If `parents` is None, each table without a parent gets this multiple of the
                number of rows of the real table.
        """
        for name, part in self.parts.items():
            self._draw(name, part, parents, scale)
        for name, part in self.parts.items():
            self._choose_references(name, part)
        written = self._write_tables()
        found = {}
        referred = {key.table for t in self.links.tables.values() for key in t.foreign_keys}
        for name in self.links.tables:
            part = self.parts[name]
            frame = written[name][list(part.column_names)].reset_index(drop=True)
            unique = () if name in referred else self.links[name].unique
            are_again = repeats(frame, replace(self.links[name], unique=unique))
            _warn_of_left_out_rows(name, int(are_again.sum()))
            frame = frame[~are_again].reset_index(drop=True)
            found[name] = with_key_dtypes(with_dtypes(frame, part.schema), part.key_dtypes)
        return found

    def recompute(
        self, known: LinkedRows, frames: Mapping[str, pd.DataFrame]
    ) -> dict[str, pd.DataFrame]:
        """Recomputes all columns that other columns determine: by rules, as sums over child rows,
        or as copies from referenced rows. Returns all tables, in which these columns then agree
        with the others.

        Args:
            known: Rows of all tables.
            frames: The same rows with the columns that the models add, such as numbers of
                children.
        """
        self.frames = dict(frames)
        self.rows = {name: dict(known.rows[name]) for name in self.parts}
        return self._write_tables()

    def _write_tables(self) -> dict[str, pd.DataFrame]:
        """Returns all tables with keys and computed columns.

        Totals (sums over child rows) depend on child rows, and other columns on totals, so that the
        computation is repeated until no total changes.
        """
        written: dict[str, pd.DataFrame] = {}
        for _ in range(len(self.parts) + 1):
            written.clear()
            for name in self.parts:
                self._write_keys(name, written)
            for name in self.parts:
                self._write_references(name, written)
            if not self._add_totals(written):
                break
        return written

    def _add_totals(self, written: Mapping[str, pd.DataFrame]) -> bool:
        """Computes totals from written tables. Returns whether one of them changed."""
        has_changed = False
        for name, part in self.parts.items():
            for total in part.totals:
                own, parents = written[name][total.column], self.parents(total.child)
                cells = total.of_children(written[total.child], parents, len(own))
                cells = cells.astype(own.dtype)
                has_changed |= not cells.equals(own)
                self.frames[name] = with_columns(self.frames[name], {total.column: cells})
        return has_changed

    def complete(
        self,
        known: LinkedRows,
        frames: Mapping[str, pd.DataFrame],
        name: str,
        rows: pd.DataFrame,
        parents: Codes,
    ) -> pd.DataFrame:
        """Adds references, keys and computed columns to generated rows of one table. The rows of
        the other tables are known. Returns the generated rows with the columns and dtypes of the
        real table.

        Args:
            known: Known rows of all tables.
            frames: The same rows with the columns that the models add, such as numbers of
                children.
            name: Name of the table to which the generated rows belong.
            rows: Rows that the table's model generated.
            parents: Row index of each row's parent.
        """
        part = self.parts[name]
        self.frames = {**frames, name: rows}
        self.rows = {other: dict(known.rows[other]) for other in self.parts}
        self.rows[name] = {part.plan.parent or 0: parents}
        self._choose_references(name, part)
        written = {other: table for other, table in known.typed.items() if other != name}
        self._write_keys(name, written)
        self._write_references(name, written)
        frame = written[name][list(part.column_names)].reset_index(drop=True)
        return with_key_dtypes(with_dtypes(frame, part.schema), part.key_dtypes)

    def _draw(self, name: str, part: DatabasePart, parents: int | None, scale: float) -> None:
        """Generates the rows of a table given their parents. Other references are chosen later."""
        seed = derived_seed(str(self.seed), name)
        if part.catalogue is not None:
            self.frames[name] = part.catalogue.copy()
            return
        assert part.model is not None, "it is no catalogue"
        key = self.key(name)
        if key is None:
            n = parents if parents is not None else max(1, round(scale * part.n_rows))
            self.frames[name] = self._draw_unique(name, part, n, seed)
            return
        above, beside = self.frames[key.table], self.parts[key.table].child_columns[name]
        counts = above[beside[0]].to_numpy(dtype=np.float64, na_value=0.0).round().astype(np.int64)
        sequence, first = part.model.sequence, None
        if sequence is not None:
            first = sequence.clock.first_times(above, name)
            is_there = first.notna().to_numpy()
            counts = np.where(is_there, counts, 0)
            first = first.fillna(first.dropna().iloc[0]) if is_there.any() else first
        effects = above[effect_columns(name, beside)]
        context = pd.concat([effects, self.lineage(key.table, self.frames)], axis=1)
        context = context[list(part.context)]
        frame, rows = part.model.draw_children(
            context, counts.clip(min=0), first, part.schema, seed
        )
        n_drawn = len(frame)
        for _ in range(_MOST_ROUNDS if sequence is None else 0):
            again = np.flatnonzero(
                repeats(frame, self.links[name], key, rows) | self._are_late(name, frame)
            )
            if not len(again):
                break
            of_parents = context.iloc[rows[again]].reset_index(drop=True)
            drawn = part.model.rows.sample_given(of_parents, seed, first_row=n_drawn)
            n_drawn += len(again)
            kept = frame[~np.isin(np.arange(len(frame)), again)]
            frame = pd.concat([kept, drawn[list(frame.columns)].set_axis(again)]).sort_index()
        once = ~repeats(frame, self.links[name], key, rows)
        _warn_of_left_out_rows(name, int((~once).sum()))
        self.frames[name] = frame[once].reset_index(drop=True)
        self.rows[name][part.plan.parent or 0] = rows[once]

    def _draw_unique(self, name: str, part: DatabasePart, n: int, seed: int) -> pd.DataFrame:
        """Generates `n` rows of a table without a parent. Rows that repeat a unique key, or whose
        child rows would begin too late (`_are_late`), are replaced."""
        assert part.model is not None, "it is no catalogue"
        found, links = part.model.draw(n, seed), self.links[name]
        for more in range(1, _MOST_ROUNDS):
            found = found[~(repeats(found, links) | self._are_late(name, found))]
            if len(found) >= n:
                break
            again = part.model.draw(n, derived_seed(str(seed), str(more)))
            found = pd.concat([found, again], ignore_index=True)
        found = found[~repeats(found, links)].head(n).reset_index(drop=True)
        _warn_of_left_out_rows(name, n - len(found))
        return found

    def _are_late(self, name: str, frame: pd.DataFrame) -> Mask:
        """Returns a mask of the rows whose first child row, in a child table with an order, would
        be later than the largest time of that table. Shape: (n,)."""
        found = np.zeros(len(frame), dtype=bool)
        for child in self.children(name):
            part = self.parts[child]
            if part.model is None or (sequence := part.model.sequence) is None:
                continue
            times = sequence.clock.first_times(frame, child)
            known = times.notna().to_numpy()
            last = sequence.clock.last(part.schema[sequence.column])
            found[known] |= sequence.clock.count(times[known]) > last
        return found

    def _choose_references(self, name: str, part: DatabasePart) -> None:
        """Chooses the rows that a generated table references, except its parent rows, which are
        known."""
        if part.catalogue is not None:
            return
        for i, (columns, codec) in part.borrowed.items():
            key, frame = self.links[name].foreign_keys[i], self.frames[name]
            prefix, n = ", ".join(key.columns), len(frame)
            others = self.frames[key.table]
            if i in part.degrees:
                degrees = part.degrees[i]
            else:
                drawn = others[degree_name(name, key)].to_numpy(dtype=np.float64, na_value=0.0)
                degrees = drawn.clip(min=0.0)
            total = degrees.sum()
            capacity = degrees * (n / total) if total > 0 else np.full(len(others), 1.0)
            there = frame.get(f"{prefix} there")
            are_there = np.ones(n, dtype=bool) if there is None else there.to_numpy(dtype=bool)
            if not len(others) or not n:
                self.rows[name][i] = np.full(n, NO_ROW, dtype=np.int64)
                continue
            target = frame[[f"{prefix} {c}" for c in columns]].set_axis(list(columns), axis=1)
            at = np.flatnonzero(are_there)
            paired = self._paired_references(name, i)
            found = chosen_rows(
                features_of(target, codec)[at],
                features_of(others[list(columns)], codec),
                capacity,
                [rows[at] for rows in paired],
                [
                    *([at] if key.table == name else []),
                    *(
                        self.rows[name][j][at]
                        for j in part.disjoint.get(i, ())
                        if j in self.rows[name]
                    ),
                ],
                derived_seed(str(self.seed), f"{name} {i}"),
            )
            rows = np.full(n, NO_ROW, dtype=np.int64)
            rows[at] = found
            self.rows[name][i] = rows

    def _paired_references(self, name: str, number: int) -> list[Codes]:
        """Finds a foreign key that is part of the same primary or unique key as foreign key
        `number`, so that two rows must not reference the same pair of rows by these two keys.
        Returns [row indices that it references], or [] if there is no such key."""
        links = self.links[name]
        keys = [set(key.columns) for key in links.foreign_keys]
        others = [
            rows
            for columns in (links.primary_key, *links.unique)
            if keys[number] <= set(columns)
            for i, rows in self.rows[name].items()
            if i != number and keys[i] <= set(columns)
        ]
        return others[:1]

    def _restored(
        self, name: str, found: pd.DataFrame, written: Mapping[str, pd.DataFrame]
    ) -> pd.DataFrame:
        """Returns the rows `found` after computing, from their residuals, the columns that rules
        determine from cells outside the table's model, such as cells of the parent row."""
        part, key = self.parts[name], self.key(name)
        if not len(part.reduction):
            return found
        for here, column in part.parent_columns.items():
            assert key is not None, "the columns are those of its parent"
            found[here] = taken_cells(written[key.table][column], self.parents(name))
        made = {r.column for r in part.reduction.rewritings}
        kept = [c for c in part.column_names if c in found.columns or c in made]
        return part.reduction.restore(found)[kept]

    def _write_keys(self, name: str, written: dict[str, pd.DataFrame]) -> pd.DataFrame:
        """Returns the generated table after adding keys, references, copied and computed columns.
        The table is also added to `written`."""
        if name in written:
            return written[name]
        part, frame = self.parts[name], self.frames[name]
        if part.catalogue is not None:
            written[name] = frame
            return frame
        found = frame.copy()
        copied: dict[int, list[tuple[str, str]]] = {}
        for column, (number, other) in part.plan.copied.items():
            copied.setdefault(number, []).append((column, other))
        written[name] = found  # a table may refer to itself
        for i, key in enumerate(self.links[name].foreign_keys):
            others = found if key.table == name else self._write_keys(key.table, written)
            pairs = [*zip(key.columns, key.references, strict=True), *copied.get(i, [])]
            for column, other in pairs:
                if other not in others:  # the references are circular: row numbers become the key
                    continue
                found[column] = taken_cells(others[other], self.rows[name][i])
        found = self._restored(name, found, written)
        for column, parts in part.key_parts.items():
            found[column] = with_parts(found[column].to_numpy(dtype=object), parts, found)
        for column in part.column_names:
            if column in part.grids:
                start, step = part.grids[column]
                counted = start + step * np.arange(len(found))
                is_time = part.schema[column].has_times
                found[column] = counted.astype("int64").view(TIMES) if is_time else counted
            elif column not in found:
                found[column] = np.arange(1, len(found) + 1)
        written[name] = found
        return found

    def _write_references(self, name: str, written: Mapping[str, pd.DataFrame]) -> None:
        """Sets the foreign keys of a table when all tables have keys, because tables may refer to
        each other in a circle."""
        for i, key in enumerate(self.links[name].foreign_keys):
            for column, other in zip(key.columns, key.references, strict=True):
                cells = taken_cells(written[key.table][other], self.rows[name][i])
                written[name][column] = cells


def with_key_dtypes(frame: pd.DataFrame, dtypes: Mapping[str, str]) -> pd.DataFrame:
    """Converts key columns to the dtypes of the real keys; a column with values that the dtype
    cannot represent is unchanged.

    Args:
        frame: Table, whose columns are replaced in place.
        dtypes: Names of pandas dtypes, by column.
    """
    for name, dtype in dtypes.items():
        if str(frame[name].dtype) != dtype:
            with suppress(TypeError, ValueError, OverflowError):
                cells = frame[name].astype(pd.api.types.pandas_dtype(dtype))
                if (cells.isna() | (cells == frame[name])).all():
                    frame[name] = cells
    return frame


class RepeatedRowsWarning(UserWarning):
    """Warns that a generated table has fewer rows than requested, because rows that repeat a unique
    key were left out."""


def _warn_of_left_out_rows(name: str, n_rows: int) -> None:
    if n_rows:
        message = (
            f"table {name!r}: {n_rows} rows are left out, which would repeat values that are unique"
        )
        warnings.warn(message, RepeatedRowsWarning, stacklevel=5)


def repeats(
    frame: pd.DataFrame,
    table: LinkedTable,
    key: ForeignKey | None = None,
    parents: Codes | None = None,
) -> Mask:
    """Returns a mask of the rows whose primary key or unique key equals that of an earlier row.

    Shape: (n,).

    Args:
        frame: n rows of the table.
        table: Primary key and unique keys of the table. A key with a column that is neither in
            `frame` nor in `key` is not checked.
        key: Reference to the parent; None without a parent. Its columns are not in `frame`.
        parents: Row index of each row's parent, used as the value of the columns of `key`. Shape:
            (n,).
    """
    found = np.zeros(len(frame), dtype=bool)
    of_parent = {} if key is None else dict.fromkeys(key.columns, parents)
    whole = with_columns(frame, of_parent)
    for columns in (table.primary_key, *table.unique):
        if columns and set(columns) <= set(whole.columns):
            cells = whole[list(columns)]
            found |= (cells.duplicated() & cells.notna().all(axis=1)).to_numpy()
    return found
