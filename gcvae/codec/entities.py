"""Entities: groups of rows with the same recurring key, such as the orders of one customer.

A recurring key is an identifier that determines other columns: customer_id -> city, birth date. The
model learns p(a, x) of single rows without the key, where a are the determined columns and x the
others. Generated rows are sorted by a and cut into runs, whose sizes are distributed as those of
the table's groups. The rows of a run become an entity: they get one key, and the determined cells
of a random row among them.

    generated, sorted by a     a1 x1   a2 x2 | a3 x3 | a4 x4   a5 x5   a6 x6
    entities                   a2 x1   a2 x2 | a3 x3 | a4 x4   a4 x5   a4 x6

Neighbours have similar a, so that x still depends on a as in the table. Given a, the rows of an
entity are independent; `DatabaseSynthesizer` also learns their dependence.

# PAPER-DIFF: the paper's rows are independent. Here rows with the same key agree in the columns
# that the key determines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from gcvae.arrays import Codes
from gcvae.artifact.documents import Document
from gcvae.cells.data_frames import with_columns
from gcvae.codec.encoded_table import EncodedTable
from gcvae.files.typed_columns import TypedTable, value_codes
from gcvae.numerics.permutations import Numbers
from gcvae.numerics.seeds import derived_seed
from gcvae.rules.search_functions import LEAST_ROWS_EACH
from gcvae.schema.columns import TableSchema
from gcvae.schema.rule_documents import is_of_entity

_MOST_SIZES, _LEAST_OF_SIZE = 256, 5
"""Maximum number of group sizes that are stored, and minimum number of groups for each."""

Grouping = Literal["none", "equal", "near"]
"""Which generated rows become an entity: "none"; "equal", rows with equal determined cells; or
"near", neighbours in the sorted rows, all of which get the determined cells of one of them."""


@dataclass(frozen=True)
class Entities(Document):
    """Recurring key of a table, which determines other columns.

    Attributes:
        key: Name of the key column.
        determined: Names of the columns that the key determines.
        sizes: Group sizes (numbers of rows with the same key), ascending; each stands for an equal
            share of the keys.
    """

    key: str
    determined: tuple[str, ...]
    sizes: tuple[int, ...]

    @classmethod
    def fit(cls, table: TypedTable, schema: TableSchema) -> Self | None:
        """Returns the recurring key that determines the most columns, according to the schema's
        rules; None if no key recurs."""
        found: dict[str, list[str]] = {}
        for rule in schema.rules or ():
            if rule.keep != "off" and is_of_entity(rule, schema) and not schema[rule.column].drop:
                found.setdefault(rule.parents[0], []).append(rule.column)
        for key in sorted(found, key=lambda name: -len(found[name])):
            sizes = group_sizes(value_codes(table, key))
            if sizes.sum() >= LEAST_ROWS_EACH * len(sizes) > 0:
                return cls(key, tuple(found[key]), mean_sizes(sizes))
        return None

    @property
    def mean_size(self) -> float:
        """Mean number of rows of an entity."""
        return float(np.mean(self.sizes))

    def grouped(
        self,
        table: EncodedTable,
        columns: Sequence[int],
        n_bound: int,
        grouping: Grouping,
        origin: Sequence[str],
    ) -> tuple[EncodedTable, Numbers]:
        """Divides n generated rows into entities.

        Args:
            table: Generated rows.
            columns: Indices of the encoded columns that the key determines. The rows are sorted by
                these columns, in this order.
            n_bound: With the grouping "near", rows become one entity only if they have equal cells
                in the first `n_bound` of these columns. Rules connect these columns with others
                that the key does not determine; different cells in them could violate a rule.
            grouping: Which rows become an entity (see `Grouping`).
            origin: Strings that seed the random numbers.

        Returns:
            The rows with the determined cells of their entity, and the index of each row's entity,
            from 0. Shape: (n,).
        """
        n = len(table)
        if grouping == "none" or n == 0:
            return table, np.arange(n, dtype=np.uint64)
        place = list(columns)
        codes, values = table.codes[:, place].numpy(), table.values[:, place].numpy()
        keys = [part[:, j] for j in range(len(place)) for part in (codes, values)]
        order = np.lexsort(keys[::-1]) if keys else np.arange(n)
        n_alike = 2 * (len(place) if grouping == "equal" else n_bound)
        differs = np.zeros(n, dtype=bool)
        for key in keys[:n_alike]:
            differs[1:] |= key[order][1:] != key[order][:-1]
        generator = np.random.default_rng(derived_seed(*origin))
        ends = _ends(self.sizes, np.append(np.flatnonzero(differs), n), generator)
        run = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        firsts = np.append(0, ends[:-1])
        chosen = order[generator.integers(firsts, ends)]
        source, numbers = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.uint64)
        source[order], numbers[order] = chosen[run], run
        moved = table.codes.clone(), table.values.clone()
        for cells in moved:
            cells[:, place] = cells[torch.from_numpy(source)][:, place]
        return replace(table, codes=moved[0], values=moved[1]), numbers

    def filled(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Fills missing cells of the columns that the key determines, and returns the rows. A
        missing cell gets the cell of another row with the same key, if there is one."""
        names = [name for name in self.determined if name in rows]
        if self.key not in rows or not names:
            return rows
        others = rows.groupby(self.key)[names].transform("first")
        filled = {name: rows[name].where(rows[name].notna(), others[name]) for name in names}
        return with_columns(rows, filled)


def random_groups(sizes: Sequence[int], n: int, *origin: str) -> Numbers:
    """Divides n rows at random into groups of these sizes.

    Args:
        sizes: Group sizes in rows; each stands for an equal share of the groups.
        origin: Strings that seed the random numbers.

    Returns:
        The index of each row's group, from 0. Shape: (n,).
    """
    generator = np.random.default_rng(derived_seed(*origin))
    ends = _ends(sizes, np.array([n]), generator)
    groups = np.repeat(np.arange(len(ends), dtype=np.uint64), np.diff(ends, prepend=0))
    return generator.permutation(groups)


def _ends(sizes: Sequence[int], limits: Codes, generator: np.random.Generator) -> Codes:
    """Cuts rows into consecutive runs of random sizes, and returns the end of each run. `limits`
    are row numbers that no run crosses, ascending; the last is the number of rows."""
    drawn = generator.choice(sizes, size=int(limits[-1]))
    ends, at = list[int](), 0
    for limit in limits.tolist():
        while at < limit:
            at = min(at + int(drawn[len(ends)]), limit)
            ends.append(at)
    return np.array(ends, dtype=np.int64)


def mean_sizes(sizes: Codes) -> tuple[int, ...]:
    """Summarises the numbers of rows of C keys by at most 256 numbers, ascending. Shape: (C,).

    The keys are sorted by their number of rows and divided into parts with about equally many keys.
    Each number is the mean of one part.
    """
    n_parts = max(min(_MOST_SIZES, len(sizes) // _LEAST_OF_SIZE), 1)
    parts = np.array_split(np.sort(sizes), n_parts)
    return tuple(max(round(float(part.mean())), 1) for part in parts)


def group_sizes(codes: npt.NDArray[np.integer[Any]]) -> Codes:
    """Returns the number of rows of each of C keys, given the index of each row's key; -1 for
    missing. Shape: (n,) -> (C,)."""
    counts = np.bincount(codes[codes >= 0])
    return counts[counts > 0]
