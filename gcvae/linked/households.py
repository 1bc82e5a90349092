"""Log-likelihood and anomaly of a household: a row with all rows that refer to it, directly or
indirectly ("below it"), such as a customer with all orders.

    p(a, n, x) = ∫ p(a, n, u) Π_k p(x_k | a, n, u) du · n! / Π m!
               ≈ mean over s of  p(a, n, u_s) Π_k p(x_k | a, n, u_s) / q(u_s | x)  · n! / Π m!,

where a is the row, n its number of children, x_k the k-th child, and u the random effect that the
children share; u_s is drawn from its posterior q (`random_effect`). The children are a set, so the
probabilities of all their orders are added; m are the multiplicities of equal rows. The rows of a
sequence have one order only. The density of such a row includes the density of its gap, the time
since the previous row. Rows below the children are integrated in the same way.

Columns that are copied, sums over children or determined by others add no density. For a row that
violates such a relation, the likelihood is multiplied by the largest share of violations that the
fit tolerates, which may be zero.

Missing cells are unknown and are integrated out. If other rows depend on them, each draw fills them
with values given the known cells of their row. The densities of rows below and of the next row of a
sequence, and the number m of equal rows, are then computed from the filled row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import gammaln, logsumexp

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.cells.data_frames import with_columns
from gcvae.cells.values import parse_table
from gcvae.errors import Problem, TableError
from gcvae.linked.database_draw import Drawing
from gcvae.linked.database_part import DatabasePart, of_table
from gcvae.linked.database_schema import DatabaseSchema
from gcvae.linked.entities import Split, divided_tables
from gcvae.linked.linked_rows import LinkedRows, effect_columns
from gcvae.linked.plan import LEAST_EQUAL as EQUAL_COPIES
from gcvae.linked.references import (
    NO_ROW,
    all_referenced_rows,
    checked_references,
    without_blanks,
)
from gcvae.linked.table_model import SequenceContext
from gcvae.linked.totals import LEAST_EQUAL as EQUAL_TOTALS
from gcvae.linked.totals import SLACK
from gcvae.numerics.generators import numpy_generator
from gcvae.numerics.seeds import derived_seed
from gcvae.schema.columns import TableSchema
from gcvae.scoring.score_options import ScoreOptions

_LEAST_DRAWS = 2
_ROOTS_AT_ONCE = 200
_COMPLETIONS = 4
"""Number of times that unknown cells are filled; tail probabilities are averaged over these."""
_OF_A_ROW = 0.3
"""Accepted standard error of the log-likelihood of one row, in nats; errors of different rows are
independent."""


@dataclass
class Tails:
    """For each of n rows, the smallest tail probability (probability of outcomes no likelier than a
    cell) among its cells and those of all rows below it.

    Attributes:
        least: Smallest tail probability. Shape: (n,).
        cells: Number of cells that were compared. Shape: (n,).
        table, row, column: Table name, row index and column name of the cell with the smallest tail
            probability. Shape: (n,) each.
    """

    least: Numbers
    cells: Numbers
    table: Any
    row: Codes
    column: Any

    @property
    def statistic(self) -> Numbers:
        """Anomaly statistic of each of n rows: its smallest tail probability with Bonferroni
        correction, min(1, number of cells * smallest tail probability). Shape: (n,)."""
        return np.asarray(np.minimum(self.least * self.cells, 1.0))

    def merge_children(self, found: Tails, parents: Codes) -> None:
        """Merges the smallest tail probabilities of a child table's rows into those of their
        parents, in place.

        Args:
            found: Smallest tail probabilities of m child rows.
            parents: Parent index of each child row. Shape: (m,).
        """
        self.cells += np.bincount(parents, found.cells, len(self.cells))
        order = np.argsort(-found.least, kind="stable")  # the smallest of each parent is last
        least = np.ones(len(self.least))
        which = np.full(len(self.least), -1, dtype=np.int64)
        least[parents[order]], which[parents[order]] = found.least[order], order
        odder = least < self.least
        for mine, theirs in zip(
            (self.least, self.table, self.row, self.column),
            (found.least, found.table, found.row, found.column),
            strict=True,
        ):
            mine[odder] = theirs[which[odder]]


def _log_mean_exp(of_draws: Numbers) -> Numbers:
    return np.asarray(logsumexp(of_draws, axis=0) - np.log(len(of_draws)))


def _standard_error(of_draws: Numbers) -> Numbers:
    """Returns the standard error of `_log_mean_exp` by the delta method, in nats; NaN for a single
    draw or a household of likelihood zero."""
    n = len(of_draws)
    most = of_draws.max(axis=0, initial=-np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.exp(of_draws - most)
        spread = weights.std(axis=0, ddof=1) if n > 1 else np.full(weights.shape[1], np.nan)
        return np.asarray(spread / weights.mean(axis=0) / np.sqrt(n))


class Households(LinkedRows):
    """Scores, extends and imputes households: rows of a root table, each with all rows below it. A
    root table has no parent, or its parent is a catalogue, a table that is copied unchanged.

    Attributes:
        parts: Fitted tables by name.
        models: Models of the tables that are not catalogues.
        frames: Rows of each table with the columns that its model adds, such as numbers of
            children.
        trained: By table, indices of the training rows; empty unless anomalies of held-out rows are
            computed. A level that only held-out rows contain then counts as new, like one
            that is not in the table.
        broken: By table and column, (mask of the rows that violate the column's relation,
            log-probability that is added for each such row). A column has a relation if it is
            copied, is a total, or is determined by an entity.
        missing: By table and column, mask of the cells that are known to be missing, because a row
            has no children or a reference is missing. Other missing cells are unknown.
        blanks: By table, mask of the rows with an unknown cell that the table's model learns.
        index: By table, index of the frame that the user passed; for a table of entities, their
            keys.
    """

    def __init__(
        self,
        links: DatabaseSchema,
        parts: Mapping[str, DatabasePart],
        splits: tuple[Split, ...],
        tables: Mapping[str, pd.DataFrame],
    ) -> None:
        """Parses the tables and links their rows.

        Raises:
            TableError: A table or column is missing, a cell cannot be parsed, a key is repeated, or
                a reference leads to no row.
        """
        self.parts = parts
        self.models = {name: p.model for name, p in parts.items() if p.model is not None}
        self.broken: dict[str, dict[str, tuple[Mask, float]]] = {name: {} for name in parts}
        known = {name: p.catalogue for name, p in parts.items() if p.catalogue is not None}
        frames, differing = divided_tables(without_blanks(tables), splits)
        frames |= known
        self.index = {name: frame.index for name, frame in tables.items()}
        for split in splits:
            self.index[split.parent] = pd.Index(frames[split.parent][split.key[-1]])
            for column, breaks in differing[split.parent].items():
                self._add_broken(split.parent, column, breaks, -np.inf)
        frames = checked_references(frames, links)
        typed = {name: self._typed(name, frame) for name, frame in frames.items()}
        rows = all_referenced_rows(typed, links)
        for name, part in parts.items():
            if part.plan.parent is not None:
                key = links[name].foreign_keys[part.plan.parent]
                at = np.flatnonzero(rows[name][part.plan.parent] == NO_ROW)
                if len(at):
                    message = f"table {name!r}: row {at[0]} refers to no row of {key.table!r}"
                    raise TableError(Problem(message, row=int(at[0]), expected="a parent for each"))
            order = part.plan.order
            if order is not None and typed[name][order].isna().any():
                row = int(np.argmax(typed[name][order].isna()))
                message = f"table {name!r}: row {row} has no {order!r}"
                expected = "a value in each row: it orders the rows of a parent"
                raise TableError(Problem(message, row=row, column=order, expected=expected))
        super().__init__(links, {name: part.plan for name, part in parts.items()}, typed, rows)
        self.trained: dict[str, Codes] = {}
        self.frames: dict[str, pd.DataFrame] = dict(self.degrees())
        self.sequence_contexts: dict[str, SequenceContext] = {}
        self.rows_by_parent: dict[str, Codes] = {}
        self.equality_groups: dict[str, Codes] = {}
        self.missing: dict[str, dict[str, Mask]] = {}
        self.blanks: dict[str, Mask] = {}
        for name in reversed(list(parts)):
            self._build_frame(name)

    def roots(self) -> list[str]:
        """Returns the names of the root tables: those without a parent, or whose parent is a
        catalogue, a table that is copied unchanged."""
        found = []
        for name, part in self.parts.items():
            key = self.key(name)
            is_top = key is None or self.parts[key.table].catalogue is not None
            found += [name] if part.catalogue is None and is_top else []
        return found

    def log_likelihood(
        self,
        name: str,
        draws: int,
        seed: int,
        progress: Callable[[int], None] = lambda _: None,
    ) -> tuple[Numbers, Numbers]:
        """Returns (log-likelihood of each household, its standard error), in nats, for a root table
        of n rows. A household is a row of that table with all rows below it. Shape: (n,), (n,).

        Args:
            name: Name of the root table.
            draws: Number of draws of the random effect, the vector that the children of a row
                share.
            progress: Receives the number of finished households; an exception ends the call.
        """
        found, errors = [np.zeros(0)], [np.zeros(0)]
        for first in range(0, len(self.typed[name]), _ROOTS_AT_ONCE):
            at = np.arange(first, min(first + _ROOTS_AT_ONCE, len(self.typed[name])))
            above, siblings = self._context_above(name, at), self._siblings(name, at)
            of_draws, _ = self._score(name, at, above, siblings, draws, seed)
            found.append(_log_mean_exp(of_draws))
            errors.append(_standard_error(of_draws))
            progress(int(at[-1]) + 1)
        return np.concatenate(found), np.concatenate(errors)

    def tails(self, name: str, seed: int, at: Codes | None = None) -> Tails:
        """Returns, for each household (a row of the root table `name` with all rows below it), the
        smallest tail probability of its cells.

        The random effect, the vector that the children of a row share, is set to its posterior
        mean. `at` contains the indices of the rows whose households are examined; None: all.
        """
        at = np.arange(len(self.typed[name])) if at is None else at
        above = self._context_above(name, at)
        return self._tails(name, at, [above], self._siblings(name, at), seed)

    def extend(self, name: str, n: int, seed: int) -> pd.DataFrame:
        """Generates `n` rows after the last row of each parent in table `name`, whose rows are
        ordered. Returns them with the columns and dtypes of the real table."""
        part, model, key = self.parts[name], self.models[name], self.key(name)
        assert key is not None, "an ordered table has a parent"
        counts = np.bincount(self.parents(name), minlength=len(self.typed[key.table]))
        at = np.flatnonzero(counts)  # a parent without rows has no last time
        above = self.frames[key.table].iloc[at].reset_index(drop=True)
        above[self.parts[key.table].child_columns[name][0]] = counts[at] + n
        context = above.add_prefix(f"{key.table} ")
        if self.key(key.table) is not None:
            context = pd.concat([context, self._context_above(key.table, at)], axis=1)
        of_child = self._child_context(name, above, context, np.arange(len(at)))
        last = self.sequence_contexts[name].order[np.cumsum(counts)[at] - 1]
        rows, parents = model.draw_next(
            of_child[list(part.context)],
            self.frames[name].iloc[last].reset_index(drop=True),
            counts[at],
            self.typed[name][part.plan.order].iloc[last].reset_index(drop=True),
            n,
            derived_seed(str(seed), name),
        )
        drawing = Drawing(self.links, self.parts, seed)
        return drawing.complete(self, self.frames, name, rows, at[parents])

    def impute(self, seed: int) -> dict[str, pd.DataFrame]:
        """Returns all tables, parsed, after filling missing cells with draws from the models.

        A row is completed given its known cells, its completed parent row, the number of its
        children, and their random effect: a vector that summarises what they have in common. Keys
        stay missing.
        """
        for name in self.models:
            at = np.arange(len(self.frames[name]))
            typed, _ = self._encoded(name, self.frames[name])
            context, siblings = self._context_above(name, at), self._siblings(name, at)
            self.frames[name], _ = self._completed(
                name, self.frames[name], typed, at, context, siblings, derived_seed(str(seed), name)
            )
        return Drawing(self.links, self.parts, seed).recompute(self, self.frames)

    # Reading

    def _typed(self, name: str, frame: pd.DataFrame) -> pd.DataFrame:
        """Converts the cells of table `name` to the dtypes that its model uses."""
        part = self.parts[name]
        if part.catalogue is not None:
            return part.catalogue
        typed = part.typed(name, frame)
        with of_table(name):
            if name not in self.models:
                return typed
            made = part.reduction.rewritten
            learned = [
                c for c in self.models[name].rows.schema if c.name in typed and c.name not in made
            ]
            values = parse_table(typed[[c.name for c in learned]], TableSchema(tuple(learned)))
            return with_columns(typed, {c.name: values[c.name] for c in learned})

    def _build_frame(self, name: str) -> None:
        """Builds the frame of a table, its rows with additional columns, and adds the number of
        children and their random effect to the frame of its parent."""
        part, frame = self.parts[name], self.typed[name]
        if part.catalogue is not None:
            self.frames[name] = part.catalogue
            return
        if len(part.reduction):
            reduced = part.reduction.reduce(self.joined(name, part.parent_columns))
            frame = reduced.drop(columns=list(part.parent_columns), errors="ignore")
        frame = pd.concat([frame, self.frames.get(name, pd.DataFrame())], axis=1)
        for i, (columns, _) in part.borrowed.items():
            frame = pd.concat([frame, self._borrowed(name, i, columns)], axis=1)
        for column, (number, other) in part.plan.copied.items():
            theirs = self.borrowed_cells(name, number, [other]).iloc[:, 0]
            cells = self.typed[name][column]
            differ = (cells.astype(str) != theirs.astype(str)) & cells.notna() & theirs.notna()
            self._add_broken(name, column, differ.to_numpy(), np.log(1.0 - EQUAL_COPIES))
        for total in part.totals:
            sums = total.of_children(self.typed[total.child], self.parents(total.child), len(frame))
            own = frame[total.column].to_numpy(dtype=np.float64, na_value=np.nan)
            differ = np.abs(own - sums) > SLACK
            self._add_broken(name, total.column, differ.to_numpy(), np.log(1.0 - EQUAL_TOTALS))
        self.frames[name] = frame
        key, model = self.key(name), part.model
        if model is not None:
            self.missing[name] = self._known_missing(name, frame)
            self.blanks[name] = self._unknown_rows(name, frame)
        if key is None or model is None:
            return
        if model.sequence is not None:
            times = self.typed[name][model.sequence.column]
            self.sequence_contexts[name] = SequenceContext.of(
                frame, times, self.parents(name), model.sequence.clock, model.previous_columns
            )
        self.rows_by_parent[name] = np.argsort(self.parents(name), kind="stable")
        self.equality_groups[name] = self._equal_rows(name, frame, self.parents(name))
        if self.parts[key.table].catalogue is None:
            mean, _ = self._posterior(name)
            clock = None if model.sequence is None else model.sequence.clock
            before = self.frames.get(key.table, pd.DataFrame())
            self.frames[key.table] = pd.concat(
                [before, self.child_columns(name, mean, clock)], axis=1
            )

    def _borrowed(self, name: str, number: int, columns: tuple[str, ...]) -> pd.DataFrame:
        """Returns, for each row, `columns` of the row that foreign key `number` references.

        If the model learned which references are missing, a boolean column tells which are present.
        Without it, the cells of a missing reference count as unknown.
        """
        found = self.borrowed_cells(name, number, columns)
        presence = self._presence_column(name, number)
        if presence not in self.models[name].columns:
            return found.drop(columns=presence, errors="ignore")
        return found if presence in found else found.assign(**{presence: True})

    def _add_broken(self, name: str, column: str, breaks: Mask, log_prob: float) -> None:
        if breaks.any():
            self.broken[name][column] = breaks, log_prob

    def _presence_column(self, name: str, number: int) -> str:
        return f"{', '.join(self.links[name].foreign_keys[number].columns)} there"

    def _known_missing(self, name: str, frame: pd.DataFrame) -> dict[str, Mask]:
        """Returns, by column, a mask of the cells that are known to be missing: cells about the
        first child if there are no children, and about a referenced row if there is none."""
        part = self.parts[name]
        added = {c for columns in part.child_columns.values() for c in columns}
        found = {c: frame[c].isna().to_numpy() for c in frame.columns if c in added}
        for number, (columns, _) in part.borrowed.items():
            if self._presence_column(name, number) in self.models[name].columns:
                prefix = self._presence_column(name, number).removesuffix("there")
                are_lost = self.rows[name][number] == NO_ROW
                found |= dict.fromkeys((f"{prefix}{c}" for c in columns), are_lost)
        return found

    def _unknown_rows(self, name: str, frame: pd.DataFrame) -> Mask:
        """Returns a mask of the rows with an unknown cell that the model learns: one that is
        missing, but not because a child row or a referenced row does not exist."""
        found = np.zeros(len(frame), dtype=bool)
        for column in self.models[name].rows.schema:
            if column.is_modelled and column.name in frame and not column.missing.is_value:
                are_missing = self.missing[name].get(column.name, False)
                found |= frame[column.name].isna().to_numpy() & ~np.asarray(are_missing)
        return found

    def _equal_rows(self, name: str, rows: pd.DataFrame, parents: Codes) -> Codes:
        """Returns a group number for each of n rows. Equal rows of the same parent form a group;
        all other rows have different numbers. Shape: (n,)."""
        own = rows[[c for c in self.models[name].columns if c in rows]]
        groups = own.groupby([*map(str, own.columns), parents], dropna=False)
        return np.asarray(groups.ngroup(), dtype=np.int64)

    def _posterior(self, name: str) -> tuple[Numbers, Numbers]:
        """Returns (means, Cholesky factors of the covariances) of the random effect given the
        children, for each row of the parent table."""
        key, effect = self.key(name), self.models[name].effect
        assert key is not None, "it has a parent"
        assert effect is not None, "its parents have an effect"
        n = len(self.typed[key.table])
        seen = self.frames[name][[feature.column for feature in effect.features]]
        return effect.posterior(seen, self.parents(name), n)

    # Scoring

    def _context_above(self, name: str, at: Codes) -> pd.DataFrame | None:
        """Returns the columns on which the rows `at` depend: random effects, and columns of their
        parents and other ancestors. None for a table without a parent."""
        key = self.key(name)
        if key is None:
            return None
        parents = self.parents(name)[at]
        context = self.lineage(key.table, self.frames, parents)
        above = self.frames[key.table].iloc[parents].reset_index(drop=True)
        return pd.concat([above[effect_columns(name, above.columns)], context], axis=1)

    def _encoded(self, name: str, rows: pd.DataFrame) -> tuple[pd.DataFrame, set[str]]:
        """Converts rows to the columns and dtypes of the table's model. Returns (converted rows,
        names of the columns that are not scored: totals and columns that `rows` lacks)."""
        part = self.parts[name]
        schema = self.models[name].rows.schema
        absent = [c.name for c in schema if c.name not in rows]
        rows = with_columns(rows, dict.fromkeys(absent))
        typed = parse_table(rows[list(schema.names)], schema)
        return typed, {*absent, *(total.column for total in part.totals)}

    def _siblings(self, name: str, at: Codes) -> Codes:
        """Returns the parent index of each row in `at`. In a table without a parent, no rows are
        siblings, and each row gets its own index."""
        return at if self.key(name) is None else self.parents(name)[at]

    def _completed(
        self,
        name: str,
        rows: pd.DataFrame,
        typed: pd.DataFrame,
        at: Codes,
        context: pd.DataFrame | None,
        siblings: Codes,
        seed: int,
    ) -> tuple[pd.DataFrame, SequenceContext | None]:
        """Draws the unknown cells of rows given their known cells and their context.

        Returns a pair: the completed rows, and their `SequenceContext` (ranks, times and previous
        rows), which is None if the rows are unordered. In a sequence, each row is completed given
        the completed row before it.

        Args:
            typed: The rows with the columns and dtypes of the table's model.
            at: Index of each of the n rows in the table. Shape: (n,).
            context: Columns of the parents and other ancestors, on which the rows depend; None for
                a table without a parent. Shape: n rows.
            siblings: Number of each row's parent: equal numbers mean the same parent. Shape: (n,).
        """
        model, unknown = self.models[name], self.blanks[name][at]
        sequence_context = (
            self.sequence_contexts[name].take(at) if name in self.sequence_contexts else None
        )
        if not unknown.any():
            return rows, sequence_context
        rank = (
            np.zeros(len(at))
            if sequence_context is None
            else sequence_context.ranks["rank"].to_numpy()
        )
        order = np.lexsort((rank, siblings))
        for step in np.unique(rank[unknown]):
            now = np.flatnonzero(unknown & (rank == step))
            encoded = None
            if context is not None:
                own = context.iloc[now].reset_index(drop=True)
                encoded = self._context_of(
                    name, own, None if sequence_context is None else sequence_context.take(now)
                )
            missing = {c: mask[at[now]] for c, mask in self.missing[name].items()}
            of_step = derived_seed(str(seed), f"completed {step}")
            drawn = model.rows.impute_given(typed.iloc[now], encoded, missing, of_step)
            drawn = drawn.set_axis(now)
            columns = [c.name for c in model.rows.schema if c.is_modelled and c.name in rows]
            rows = with_columns(rows, {c: rows[c].fillna(drawn[c]) for c in columns})
            if sequence_context is not None:
                places = np.empty(len(at), dtype=np.int64)
                places[order] = np.arange(len(at))
                after = order[np.minimum(places[now] + 1, len(at) - 1)]
                follows = (siblings[after] == siblings[now]) & (rank[after] == step + 1)
                sequence_context = sequence_context.with_previous_filled(
                    after[follows], rows.iloc[now[follows]]
                )
        return rows, sequence_context

    def _score(
        self,
        name: str,
        at: Codes,
        context: pd.DataFrame | None,
        siblings: Codes,
        draws: int,
        seed: int,
    ) -> tuple[Numbers, pd.DataFrame]:
        """Computes the log-likelihood of each of n rows together with all rows below it, given the
        cells of its ancestors (`context`), once for each of S draws of random effects and unknown
        cells. S is 1 if nothing has to be drawn.

        Returns (log-likelihoods, of shape (S, n); the rows of all draws, with unknown cells
        filled).

        `at` contains the indices of the rows. Rows have the same number in `siblings` if they have
        the same parent.
        """
        children = self.children(name)
        posteriors = {child: self._posterior(child) for child in children}
        varies = any(mean.shape[1] for mean, _ in posteriors.values())
        varies |= any(self.blanks[table].any() for table in (name, *children))
        n_draws = draws if children and varies else 1
        n, number = len(at), derived_seed(str(seed), name)
        tiled = np.tile(at, n_draws)
        rows = self.frames[name].iloc[tiled].reset_index(drop=True)
        context = None if context is None else pd.concat([context] * n_draws, ignore_index=True)
        siblings = np.tile(siblings, n_draws) + np.repeat(np.arange(n_draws), n) * (
            siblings.max(initial=0) + 1
        )
        found = np.zeros(len(tiled))
        for child, (mean, root) in posteriors.items():
            noise = numpy_generator(number, "effect", child).standard_normal(
                (len(tiled), mean.shape[1])
            )
            u = mean[tiled] + np.einsum("nij,nj->ni", root[tiled], noise)
            rows = rows.assign(**{f"{child} effect {k + 1}": each for k, each in enumerate(u.T)})
            log_det = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
            found += 0.5 * (noise**2 + np.log(2 * np.pi)).sum(axis=1) + log_det[tiled]
        typed, unscored = self._encoded(name, rows)
        rows, sequence_context = self._completed(
            name, rows, typed, tiled, context, siblings, number
        )
        found += self._log_density(name, typed, unscored, tiled, context, sequence_context, number)
        own = rows.add_prefix(f"{name} ")
        context = own if context is None else pd.concat([own, context], axis=1)
        fewer = max(_LEAST_DRAWS, draws // 2)
        for child in children:
            below, parents = self._below(child, tiled)
            of_child = self._child_context(child, rows, context, parents)
            of_draws, drawn = self._score(child, below, of_child, parents, fewer, number)
            found += np.bincount(parents, _log_mean_exp(of_draws), len(tiled))
            found += self._log_orders(child, below, drawn, parents, len(tiled))
        return found.reshape(n_draws, n), rows

    def _log_density(
        self,
        name: str,
        typed: pd.DataFrame,
        unscored: set[str],
        at: Codes,
        context: pd.DataFrame | None,
        sequence_context: SequenceContext | None,
        seed: int,
    ) -> Numbers:
        """Returns the log density of the known cells of each of n rows, given the rows to which it
        belongs in other tables and, in a sequence, the previous row. The columns `unscored` and the
        rows of child tables are not included. Shape: (n,)."""
        options = ScoreOptions(seed=seed, tolerance=_OF_A_ROW)
        found = np.zeros(len(at))
        for breaks, log_prob in self.broken[name].values():
            found += np.where(breaks[at], log_prob, 0.0)
        if context is not None and sequence_context is not None:
            found += self._gap_log_density(name, sequence_context, context, options)
        encoded = None if context is None else self._context_of(name, context, sequence_context)
        missing = {c: mask[at] for c, mask in self.missing[name].items()}
        scorer = self.models[name].rows.scorer
        return found + scorer.log_likelihoods_given(typed, encoded, unscored, missing, options)

    def _context_of(
        self, name: str, context: pd.DataFrame, sequence_context: SequenceContext | None
    ) -> Any:
        """Encodes, for the table's model, the data on which rows depend: cells of their ancestors
        and, in a sequence, their ranks, times and previous rows."""
        codec = self.models[name].rows.context
        assert codec is not None, "its model is conditional"
        conditions = context[list(self.parts[name].context)]
        return codec.encode(
            conditions if sequence_context is None else sequence_context.row_context(conditions)
        )

    def _gap_log_density(
        self,
        name: str,
        sequence_context: SequenceContext,
        context: pd.DataFrame,
        options: ScoreOptions,
    ) -> Numbers:
        """Returns log p of the time since the previous row; 0 for the first row of a sequence.
        Shape: (n,)."""
        sequence = self.models[name].sequence
        assert sequence is not None, "it has an order"
        gaps, non_first = sequence.gaps, sequence_context.non_first
        found = np.zeros(len(sequence_context.gap))
        if isinstance(gaps, float):
            found[non_first] = np.where(sequence_context.gap[non_first] == gaps, 0.0, -np.inf)
        elif (conditions := self._gap_inputs(name, sequence_context, context)) is not None:
            found[non_first] = gaps.scorer.log_likelihoods_given(*conditions, (), {}, options)
        return found

    def _below(self, child: str, at: Codes) -> tuple[Codes, Codes]:
        """Returns (indices of the children of rows `at`, index in `at` of each child's parent)."""
        parents, order = self.parents(child), self.rows_by_parent[child]
        sizes = np.bincount(parents, minlength=int(at.max(initial=0)) + 1)
        starts = np.cumsum(sizes) - sizes
        repeats = np.repeat(np.arange(len(at)), sizes[at])
        inside = np.arange(len(repeats)) - np.repeat(np.cumsum(sizes[at]) - sizes[at], sizes[at])
        return order[starts[at[repeats]] + inside], repeats

    def _log_orders(
        self, child: str, below: Codes, drawn: pd.DataFrame, parents: Codes, n: int
    ) -> Numbers:
        """Returns, for each of n parents, the log of the number of distinct orders of its children,
        whose indices are `below` and whose completed rows are `drawn`; 0 for sequences, which have
        one order. Shape: (n,)."""
        if self.models[child].sequence is not None:
            return np.zeros(n)
        found = gammaln(np.bincount(parents, minlength=n) + 1.0)
        if not self.children(child):
            equal = self.equality_groups[child][below]
            if self.blanks[child].any():
                equal = self._equal_rows(child, drawn, parents)
            pairs = np.stack([parents, equal], axis=1)
            different, counts = np.unique(pairs, axis=0, return_counts=True)
            found -= np.bincount(different[:, 0], gammaln(counts + 1.0), n)
        return np.asarray(found)

    # Anomalies

    def _tails(
        self,
        name: str,
        at: Codes,
        contexts: Sequence[pd.DataFrame | None],
        siblings: Codes,
        seed: int,
    ) -> Tails:
        """Returns the smallest tail probability among the cells of each row `at` and of all rows
        below it.

        A context contains the cells of the ancestors on which the rows depend. If some of them are
        unknown, they are drawn several times: `contexts` contains one context for each draw, and
        tail probabilities are means over the draws. Rows have the same number in `siblings` if they
        have the same parent.
        """
        part, rows = self.parts[name], self.frames[name].iloc[at].reset_index(drop=True)
        n, number = len(at), derived_seed(str(seed), name)
        typed, unscored = self._encoded(name, rows)
        decides = bool(self.children(name)) or name in self.sequence_contexts
        if decides and self.blanks[name][at].any() and len(contexts) == 1:
            contexts = [*contexts] * _COMPLETIONS
        completed = [
            self._completed(
                name, rows, typed, at, context, siblings, derived_seed(str(number), str(k))
            )
            for k, context in enumerate(contexts)
        ]
        encoded = [
            None if context is None else self._context_of(name, context, sequence_context)
            for context, (_, sequence_context) in zip(contexts, completed, strict=True)
        ]
        trained = table = None
        if name in self.trained:
            table, _ = self._encoded(name, self.frames[name])
            trained = table.iloc[self.trained[name]]
        missing = {c: mask[at] for c, mask in self.missing[name].items()}
        least, cells, columns = self.models[name].rows.scorer.tails_given(
            typed, encoded, unscored, missing, number, trained, table
        )
        owners = part.reduction.owners
        written = [None if c is None else owners.get(c, c) for c in columns]
        of_table = np.full(n, name, dtype=object)
        found = Tails(
            least.copy(), cells.astype(np.float64), of_table, at.copy(), np.array(written, object)
        )
        gaps = [
            self._gap_inputs(name, sequence_context, context)
            for context, (_, sequence_context) in zip(contexts, completed, strict=True)
            if sequence_context is not None and context is not None
        ]
        self._add_gaps(name, at, [each for each in gaps if each is not None], number, found)
        for column, (breaks, _) in self.broken[name].items():
            found.least[breaks[at]], found.column[breaks[at]] = 0.0, column
        for child in self.children(name):
            below, parents = self._below(child, at)
            of_child = []
            for (drawn, _), context in zip(completed, contexts, strict=True):
                own = drawn.add_prefix(f"{name} ")
                whole = own if context is None else pd.concat([own, context], axis=1)
                of_child.append(self._child_context(child, drawn, whole, parents))
            found.merge_children(self._tails(child, below, of_child, parents, number), parents)
        return found

    def _add_gaps(
        self,
        name: str,
        at: Codes,
        conditions: Sequence[tuple[pd.DataFrame, Any]],
        seed: int,
        found: Tails,
    ) -> None:
        """Updates `found`, the smallest tail probabilities of the rows `at`, in place by those of
        their gaps (times since the previous row). A gap counts as a cell of the time column.

        `conditions` contains the result of `_gap_inputs` for each draw of unknown cells. The tail
        probability of a gap is the mean over the draws.
        """
        sequence = self.models[name].sequence
        if sequence is None or isinstance(sequence.gaps, float) or not conditions:
            return
        non_first = self.sequence_contexts[name].take(at).non_first
        typed, encoded = conditions[0][0], [context for _, context in conditions]
        tails, cells, _ = sequence.gaps.scorer.tails_given(typed, encoded, (), {}, seed)
        are_odder = tails < found.least[non_first]
        odder = non_first[are_odder]
        found.cells[non_first] += cells
        found.least[odder], found.column[odder] = tails[are_odder], sequence.column

    def _gap_inputs(
        self, name: str, sequence_context: SequenceContext, context: pd.DataFrame
    ) -> tuple[pd.DataFrame, Any] | None:
        """Returns (gaps to the previous row, encoded data on which they depend) for all rows except
        the first of each sequence. None if no gap is modelled, as when all gaps are equal."""
        sequence, non_first = self.models[name].sequence, sequence_context.non_first
        if sequence is None or isinstance(sequence.gaps, float) or not len(non_first):
            return None
        conditions = sequence_context.gap_context(context[list(self.parts[name].context)])
        codec = sequence.gaps.context
        assert codec is not None, "it is conditional"
        encoded = codec.encode(conditions.iloc[non_first].reset_index(drop=True))
        cells = sequence_context.take(non_first).gap_columns(
            sequence.clock, of_days=len(sequence.gaps.schema) > 1
        )
        typed = parse_table(cells, sequence.gaps.schema)
        return typed, encoded

    def _child_context(
        self, child: str, rows: pd.DataFrame, context: pd.DataFrame, parents: Codes
    ) -> pd.DataFrame:
        whole = pd.concat([rows[effect_columns(child, rows.columns)], context], axis=1)
        return whole.iloc[parents].reset_index(drop=True)
