"""Rows of linked tables, with the columns that related rows add to each row.

    row of T:  columns | columns of referenced rows | numbers of rows that reference it
               | for each child table: number of children, random effect u, time of the first child

References are row indices. Fitting, scoring and generation build their rows in this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Numbers
from gcvae.linked.database_part import degree_name, taken_cells
from gcvae.linked.database_schema import DatabaseSchema, ForeignKey
from gcvae.linked.plan import TablePlan
from gcvae.linked.references import NO_ROW
from gcvae.linked.sequences import Clock


def effect_columns(child: str, columns: Iterable[str]) -> list[str]:
    """Returns those of the names `columns` that stand for the random effect of a row on its
    children in table `child`."""
    return [c for c in columns if c.startswith(f"{child} effect ")]


class LinkedRows:
    """Rows of a database whose foreign keys are resolved to row indices.

    Attributes:
        links: Keys of the tables.
        plans: Plan of each table, parents before their children.
        typed: Rows of each table, with cells of the columns' dtypes.
        rows: For each table and each of its foreign keys, the row index that each row references;
            -1 for a missing reference.
    """

    def __init__(
        self,
        links: DatabaseSchema,
        plans: Mapping[str, TablePlan],
        typed: Mapping[str, pd.DataFrame],
        rows: Mapping[str, Mapping[int, Codes]],
    ) -> None:
        self.links, self.plans, self.typed, self.rows = links, plans, typed, rows

    def key(self, name: str) -> ForeignKey | None:
        """Returns the foreign key that leads to the table's parent; None without a parent."""
        number = self.plans[name].parent
        return None if number is None else self.links[name].foreign_keys[number]

    def parents(self, name: str) -> Codes:
        """Returns the row index of the parent of each of n rows of table `name`. Shape: (n,)."""
        return self.rows[name][self.plans[name].parent or 0]

    def children(self, name: str) -> list[str]:
        """Returns the names of the table's child tables."""
        keys = {child: self.key(child) for child in self.plans}
        return [child for child, key in keys.items() if key is not None and key.table == name]

    def lineage(
        self, name: str, frames: Mapping[str, pd.DataFrame], at: Codes | None = None
    ) -> pd.DataFrame:
        """Returns rows joined with their parents and other ancestors.

        Args:
            name: Name of the table of the rows.
            frames: Columns of each table to join. In the result, their names have the name of the
                table as a prefix.
            at: Indices of the rows; None: all rows.
        """
        rows = frames[name] if at is None else frames[name].iloc[at].reset_index(drop=True)
        own, key = rows.add_prefix(f"{name} "), self.key(name)
        if key is None:
            return own
        parents = self.parents(name) if at is None else self.parents(name)[at]
        return pd.concat([own, self.lineage(key.table, frames, parents)], axis=1)

    def joined(self, name: str, outside: Mapping[str, str]) -> pd.DataFrame:
        """Returns the rows of table `name` with additional columns of their parent rows.

        Args:
            outside: Columns of the parent to add: {name in the result: name in the parent table}.
        """
        key, typed = self.key(name), self.typed[name]
        if key is None:
            return typed
        above, rows = self.typed[key.table], self.parents(name)
        columns = {here: taken_cells(above[c], rows) for here, c in outside.items()}
        return pd.concat([typed, pd.DataFrame(columns, index=typed.index)], axis=1)

    def degrees(self) -> dict[str, pd.DataFrame]:
        """Counts the rows that reference each row of a table. Returns a frame of counts for each
        referenced table, with one column for each foreign key.

        References to a parent are not counted here; `child_columns` counts them. References from or
        to catalogues (tables that are copied unchanged) are not counted either.
        """
        found: dict[str, dict[str, Codes]] = {}
        for name, plan in self.plans.items():
            for i, key in enumerate(self.links[name].foreign_keys):
                other = self.plans[key.table]
                if i == plan.parent or plan.is_catalogue or other.is_catalogue:
                    continue
                rows = self.rows[name][i]
                n = len(self.typed[key.table])
                counts = np.bincount(rows[rows != NO_ROW], minlength=n)
                found.setdefault(key.table, {})[degree_name(name, key)] = counts
        return {name: pd.DataFrame(columns) for name, columns in found.items()}

    def borrowed_cells(self, name: str, number: int, columns: Sequence[str]) -> pd.DataFrame:
        """Returns columns of the rows that a foreign key references. A missing reference gives
        missing cells. If any reference is missing, a boolean column is added, which is true where a
        reference exists.

        Args:
            name: Name of the referring table.
            number: Index of the foreign key.
            columns: Columns of the referenced table.
        """
        key, rows = self.links[name].foreign_keys[number], self.rows[name][number]
        others, prefix = self.typed[key.table], ", ".join(key.columns)
        found = {f"{prefix} {c}": taken_cells(others[c], rows) for c in columns}
        if (rows == NO_ROW).any():
            found[f"{prefix} there"] = rows != NO_ROW
        return pd.DataFrame(found, index=self.typed[name].index)

    def child_columns(self, name: str, effect: Numbers, clock: Clock | None) -> pd.DataFrame:
        """Returns the columns that child table `name` adds to the rows of its parent table: number
        of children, random effect, and in a sequence the time of the first child.

        Args:
            effect: Random effect of each of m parents: a vector of q dimensions that its children
                share. Shape: (m, q).
            clock: Conversion of the times of a sequence; None if the children are unordered.
        """
        key, order = self.key(name), self.plans[name].order
        assert key is not None, "it has a parent"
        n, parents = len(self.typed[key.table]), self.parents(name)
        found = {f"{name} count": np.bincount(parents, minlength=n)}
        found |= {f"{name} effect {k + 1}": u for k, u in enumerate(effect.T)}
        frame = pd.DataFrame(found)
        if order is not None and clock is not None:
            times = self.typed[name][order].groupby(parents).min().reindex(range(n))
            columns = clock.first_columns(times)
            frame = pd.concat([frame, columns.add_prefix(f"{name} ")], axis=1)
        return frame
