"""Log-likelihood and anomaly of a household: a row with all rows below it, such as a customer with
all orders.

    p(a, n, x) = ∫ p(a, n, u) Π_k p(x_k | a, n, u) du · n! / Π m!
               ≈ mean over s of  p(a, n, u_s) Π_k p(x_k | a, n, u_s) / q(u_s | x)  · n! / Π m!,

where a is the row, n its number of children, x_k the k-th child, and u the random effect that the
children share; u_s is drawn from its posterior q (`random_effect`). The children are a set, so the
probabilities of all their orders are added; m are the multiplicities of equal rows. The rows of a
sequence have one order, and the gap to the previous row is part of a row. Rows below the children
are integrated in the same way.

Columns that are computed, copied or determined by others add no density. A row that violates such a
relation has likelihood zero, or the largest share of violations that the fit tolerates.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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
from gcvae.linked.linked_rows import LinkedRows
from gcvae.linked.plan import LEAST_EQUAL as EQUAL_COPIES
from gcvae.linked.references import NO_ROW, all_row_numbers, checked_references
from gcvae.linked.table_model import GAP, Steps
from gcvae.linked.totals import LEAST_EQUAL as EQUAL_TOTALS
from gcvae.linked.totals import SLACK
from gcvae.numerics.generators import numpy_generator
from gcvae.numerics.seeds import derived_seed
from gcvae.schema.columns import TableSchema
from gcvae.scoring.score_options import ScoreOptions

_LEAST_DRAWS = 2
_ROOTS_AT_ONCE = 200
_OF_A_ROW = 0.3
"""Accepted standard error of a row's score, in nats. The errors of a household's rows are
independent."""


@dataclass
class Tails:
    """For each of n rows, the smallest tail probability (probability of outcomes no likelier than a
    cell) among its cells and those of all rows below it.

    Attributes:
        least: Smallest tail probability. Shape: (n,).
        cells: Number of cells. Shape: (n,).
        table, row, column: Location of the cell with the smallest tail probability. Shape: (n,).
    """

    least: Numbers
    cells: Numbers
    table: Any
    row: Codes
    column: Any

    @property
    def statistic(self) -> Numbers:
        """Anomaly statistic of each row: the Bonferroni-corrected smallest tail probability, min(1,
        number of cells * smallest tail probability)."""
        return np.asarray(np.minimum(self.least * self.cells, 1.0))

    def with_children(self, found: Tails, parents: Codes) -> None:
        """Merges the smallest tail probabilities of a child table's rows into those of their
        parents, in place.

        Args:
            found: Smallest tail probabilities of m child rows.
            parents: Parent index of each child row. Shape: (m,).
        """
        self.cells += np.bincount(parents, found.cells, len(self.cells))
        order = np.argsort(-found.least, kind="stable")  # of each parent the oddest is last
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
    """Returns the log of the mean likelihood over draws. Shape: (S, n) -> (n,)."""
    return np.asarray(logsumexp(of_draws, axis=0) - np.log(len(of_draws)))


def _standard_error(of_draws: Numbers) -> Numbers:
    """Returns the standard error of `_log_mean_exp` by the delta method, in nats.

    NaN for one draw or a household of likelihood zero. Shape: (S, n) -> (n,).
    """
    n = len(of_draws)
    most = of_draws.max(axis=0, initial=-np.inf)
    with np.errstate(invalid="ignore", divide="ignore"):
        weights = np.exp(of_draws - most)
        spread = weights.std(axis=0, ddof=1) if n > 1 else np.full(weights.shape[1], np.nan)
        return np.asarray(spread / weights.mean(axis=0) / np.sqrt(n))


@dataclass
class _Violations:
    """Rows that violate a relation found by the fit.

    Attributes:
        found: By column of the relation, the mask of the rows and the log-probability of each.
    """

    found: dict[str, tuple[Mask, float]] = field(default_factory=dict)

    def add(self, column: str, breaks: Mask, log_prob: float) -> None:
        """Adds the violations of one column, if there are any."""
        if breaks.any():
            self.found[column] = breaks, log_prob


class Households(LinkedRows):
    """Scores, extends and imputes households: rows of a root table, each with all rows below it.

    Attributes:
        parts: Fitted tables by name.
        models: Models of the tables that are not catalogues (copied unchanged).
        frames: Rows of each table with the columns that its model adds, such as numbers of
            children.
        trained: Indices of training rows, by table, while anomalies of held-out rows are computed;
            else empty.
        broken: By table, the rows that violate a rule, a copy or a dependency that determines a
            column.
        index: By table, the index of the caller's frame; for a table of entities, their keys.
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
        self.broken = {name: _Violations() for name in parts}
        known = {name: p.catalogue for name, p in parts.items() if p.catalogue is not None}
        frames, differing = divided_tables(tables, splits)
        frames |= known
        self.index = {name: frame.index for name, frame in tables.items()}
        for split in splits:
            self.index[split.parent] = pd.Index(frames[split.parent][split.key[-1]])
            for column, breaks in differing[split.parent].items():
                self.broken[split.parent].add(column, breaks, -np.inf)
        frames = checked_references(frames, links)
        typed = {name: self._typed(name, frame) for name, frame in frames.items()}
        rows = all_row_numbers(typed, links)
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
        self.steps: dict[str, Steps] = {}
        self.by_parent: dict[str, Codes] = {}
        self.equal: dict[str, Codes] = {}
        for name in reversed(list(parts)):
            self._gather(name)

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
        """Returns the log-likelihood of each household of a root table and its standard error, in
        nats.

        A household is a row of the root table with all rows below it. Shape: (n,), (n,), for n
        households.

        Args:
            draws: Number of draws of the random effect, the vector that the children of a row
                share.
            progress: Receives the number of finished households, and may raise to end the call.
        """
        found, errors = [np.zeros(0)], [np.zeros(0)]
        for first in range(0, len(self.typed[name]), _ROOTS_AT_ONCE):
            at = np.arange(first, min(first + _ROOTS_AT_ONCE, len(self.typed[name])))
            of_draws = self._score(name, at, self._context_above(name, at), draws, seed)
            found.append(_log_mean_exp(of_draws))
            errors.append(_standard_error(of_draws))
            progress(int(at[-1]) + 1)
        return np.concatenate(found), np.concatenate(errors)

    def tails(self, name: str, seed: int, at: Codes | None = None) -> Tails:
        """Returns the smallest tail probability of the cells of each household: a row of a root
        table with all rows below it.

        The random effect, the vector that the children of a row share, is set to its posterior
        mean.

        Args:
            at: Row indices of the households to examine; None examines all.
        """
        at = np.arange(len(self.typed[name])) if at is None else at
        return self._tails(name, at, self._context_above(name, at), seed)

    def extend(self, name: str, n: int, seed: int) -> pd.DataFrame:
        """Generates `n` rows after the last row of each parent in table `name`, whose rows have an
        order, in the format of the real table."""
        part, model, key = self.parts[name], self.models[name], self.key(name)
        assert key is not None, "an ordered table has a parent"
        counts = np.bincount(self.parents(name), minlength=len(self.typed[key.table]))
        at = np.flatnonzero(counts)  # a parent without rows has no last time
        above = self.frames[key.table].iloc[at].reset_index(drop=True)
        above[self.parts[key.table].child_columns[name][0]] = counts[at] + n
        context = above.add_prefix(f"{key.table} ")
        if self.key(key.table) is not None:
            upper = self._context_above(key.table, at)
            context = pd.concat([context, upper], axis=1)
        of_child = self._child_context(name, above, context, np.arange(len(at)))
        last = self.steps[name].order[np.cumsum(counts)[at] - 1]
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
        """Returns the parsed tables with missing cells drawn from the model, parents before their
        children.

        A row is completed given its known cells, its completed parent row, and the numbers and
        random effects of its children. Keys stay missing.
        """
        for name, model in self.models.items():
            at = np.arange(len(self.frames[name]))
            typed, _ = self._encoded(name, self.frames[name])
            context = self._context_above(name, at)
            encoded = None if context is None else self._context_of(name, context, at)
            full = model.rows.impute_given(typed, encoded, derived_seed(str(seed), name))
            columns = [c.name for c in model.rows.schema if c.is_modelled]
            self.frames[name] = self.frames[name].assign(
                **{
                    c: self.frames[name][c].fillna(full[c])
                    for c in columns
                    if c in self.frames[name]
                }
            )
        return Drawing(self.links, self.parts, seed).computed(self, self.frames)

    # Reading

    def _typed(self, name: str, frame: pd.DataFrame) -> pd.DataFrame:
        """Parses a table into cells of the dtypes that its model uses."""
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

    def _gather(self, name: str) -> None:
        """Builds the frame of a table's rows with additional columns, and adds to its parent's
        frame the number of children and their random effect."""
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
            are_equal = (cells.astype(str) == theirs.astype(str)) | (cells.isna() & theirs.isna())
            self.broken[name].add(column, ~are_equal.to_numpy(), np.log(1.0 - EQUAL_COPIES))
        for total in part.totals:
            sums = total.of_children(self.typed[total.child], self.parents(total.child), len(frame))
            differ = np.abs(frame[total.column].to_numpy(dtype=np.float64) - sums) > SLACK
            self.broken[name].add(total.column, differ.to_numpy(), np.log(1.0 - EQUAL_TOTALS))
        self.frames[name] = frame
        key, model = self.key(name), part.model
        if key is None or model is None:
            return
        if model.sequence is not None:
            times = self.typed[name][model.sequence.column]
            self.steps[name] = Steps.of(
                frame, times, self.parents(name), model.sequence.clock, model.previous_columns
            )
        self.by_parent[name] = np.argsort(self.parents(name), kind="stable")
        own = frame[[c for c in model.columns if c in frame]]
        groups = own.groupby([*map(str, own.columns), self.parents(name)], dropna=False)
        self.equal[name] = np.asarray(groups.ngroup(), dtype=np.int64)
        if self.parts[key.table].catalogue is None:
            mean, _ = self._posterior(name)
            before = self.frames.get(key.table, pd.DataFrame())
            self.frames[key.table] = pd.concat([before, self.child_columns(name, mean)], axis=1)

    def _borrowed(self, name: str, number: int, columns: tuple[str, ...]) -> pd.DataFrame:
        """Returns the columns of referenced rows; missing references are violations if the training
        table contained none."""
        found = self.borrowed_cells(name, number, columns)
        there = f"{', '.join(self.links[name].foreign_keys[number].columns)} there"
        if there in self.models[name].columns and there not in found:
            found[there] = True
        elif there in found and there not in self.models[name].columns:
            breaks = self.rows[name][number] == NO_ROW
            self.broken[name].add(there.removesuffix(" there"), breaks, -np.inf)
            found = found.drop(columns=there)
        return found

    def _posterior(self, name: str) -> tuple[Numbers, Numbers]:
        """Returns q(u | children) for each parent of a table's rows: means and Cholesky factors."""
        key, effect = self.key(name), self.models[name].effect
        assert key is not None, "it has a parent"
        assert effect is not None, "its parents have an effect"
        n = len(self.typed[key.table])
        seen = self.frames[name][[feature.column for feature in effect.features]]
        return effect.posterior(seen, self.parents(name), n)

    # Scoring

    def _context_above(self, name: str, at: Codes) -> pd.DataFrame | None:
        """Returns the context of rows: random effects and columns of their parents and other
        ancestors; None for a table without a parent."""
        key = self.key(name)
        if key is None:
            return None
        parents = self.parents(name)[at]
        above = self.frames[key.table].iloc[parents].reset_index(drop=True)
        effects = above[[c for c in above.columns if c.startswith(f"{name} effect ")]]
        upper = self._context_above(key.table, parents)
        parts = [effects, above.add_prefix(f"{key.table} "), *([] if upper is None else [upper])]
        return pd.concat(parts, axis=1)

    def _encoded(self, name: str, rows: pd.DataFrame) -> tuple[pd.DataFrame, set[str]]:
        """Returns (rows as the table's model expects them, names of the columns that are not
        scored)."""
        part = self.parts[name]
        schema = self.models[name].rows.schema
        absent = [c.name for c in schema if c.name not in rows]
        rows = with_columns(rows, dict.fromkeys(absent))
        typed = parse_table(rows[list(schema.names)], schema)
        return typed, {*absent, *(total.column for total in part.totals)}

    def _score(
        self, name: str, at: Codes, context: pd.DataFrame | None, draws: int, seed: int
    ) -> Numbers:
        """Returns log p of rows and all rows below them given their context, for S draws of the
        random effects.

        Shape: at (n,) -> (S, n).
        """
        children = self.children(name)
        posteriors = {child: self._posterior(child) for child in children}
        n_draws = draws if any(mean.shape[1] for mean, _ in posteriors.values()) else 1
        n, number = len(at), derived_seed(str(seed), name)
        tiled = np.tile(at, n_draws)
        rows = self.frames[name].iloc[tiled].reset_index(drop=True)
        context = None if context is None else pd.concat([context] * n_draws, ignore_index=True)
        found = np.zeros(len(tiled))
        for child, (mean, root) in posteriors.items():
            noise = numpy_generator(number, "effect", child).standard_normal(
                (len(tiled), mean.shape[1])
            )
            u = mean[tiled] + np.einsum("nij,nj->ni", root[tiled], noise)
            rows = rows.assign(**{f"{child} effect {k + 1}": each for k, each in enumerate(u.T)})
            log_det = np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
            found += 0.5 * (noise**2 + np.log(2 * np.pi)).sum(axis=1) + log_det[tiled]
        found += self._log_density(name, rows, tiled, context, number)
        own = rows.add_prefix(f"{name} ")
        context = own if context is None else pd.concat([own, context], axis=1)
        fewer = max(_LEAST_DRAWS, draws // 2)
        for child in children:
            below, parents = self._below(child, tiled)
            of_child = self._child_context(child, rows, context, parents)
            scores = _log_mean_exp(self._score(child, below, of_child, fewer, number))
            found += np.bincount(parents, scores, len(tiled)) + self._log_orders(
                child, below, parents, len(tiled)
            )
        return found.reshape(n_draws, n)

    def _log_density(
        self,
        name: str,
        rows: pd.DataFrame,
        at: Codes,
        context: pd.DataFrame | None,
        seed: int,
    ) -> Numbers:
        """Returns log p of the rows given their context, without the rows below them.

        Shape: (n,).
        """
        options = ScoreOptions(seed=seed, tolerance=_OF_A_ROW, score_missingness=True)
        found = np.zeros(len(at))
        for breaks, log_prob in self.broken[name].found.values():
            found += np.where(breaks[at], log_prob, 0.0)
        if context is not None and self.models[name].sequence is not None:
            found += self._gap_log_density(name, at, context, options)
        typed, unknown = self._encoded(name, rows)
        model = self.models[name].rows
        encoded = None if context is None else self._context_of(name, context, at)
        return found + model.scorer.given(typed, encoded, unknown, options)

    def _context_of(self, name: str, context: pd.DataFrame, at: Codes) -> Any:
        """Encodes the context of rows; in a sequence, with their rank, time and previous row."""
        codec = self.models[name].rows.context
        assert codec is not None, "its model is conditional"
        conditions = context[list(self.parts[name].context)]
        if name in self.steps:
            conditions = self.steps[name].take(at).context(conditions)
        return codec.encode(conditions)

    def _gap_log_density(
        self, name: str, at: Codes, context: pd.DataFrame, options: ScoreOptions
    ) -> Numbers:
        """Returns log p of the gaps of a sequence's rows; 0 for first rows. Shape: (n,)."""
        sequence = self.models[name].sequence
        assert sequence is not None, "it has an order"
        gaps, steps = sequence.gaps, self.steps[name].take(at)
        found, with_previous = np.zeros(len(at)), steps.with_previous
        if isinstance(gaps, float):
            found[with_previous] = np.where(steps.gap[with_previous] == gaps, 0.0, -np.inf)
        elif (conditions := self._gaps(name, at, context)) is not None:
            found[with_previous] = gaps.scorer.given(*conditions, (), options)
        return found

    def _below(self, child: str, at: Codes) -> tuple[Codes, Codes]:
        """Returns (indices of the children of rows `at`, index in `at` of each child's parent)."""
        parents, order = self.parents(child), self.by_parent[child]
        sizes = np.bincount(parents, minlength=int(at.max(initial=0)) + 1)
        starts = np.cumsum(sizes) - sizes
        repeats = np.repeat(np.arange(len(at)), sizes[at])
        inside = np.arange(len(repeats)) - np.repeat(np.cumsum(sizes[at]) - sizes[at], sizes[at])
        return order[starts[at[repeats]] + inside], repeats

    def _log_orders(self, child: str, below: Codes, parents: Codes, n: int) -> Numbers:
        """Returns the log number of distinct orders of each parent's children. Shape: (n,)."""
        if self.models[child].sequence is not None:
            return np.zeros(n)
        found = gammaln(np.bincount(parents, minlength=n) + 1.0)
        if not self.children(child):
            pairs = np.stack([parents, self.equal[child][below]], axis=1)
            different, counts = np.unique(pairs, axis=0, return_counts=True)
            found -= np.bincount(different[:, 0], gammaln(counts + 1.0), n)
        return np.asarray(found)

    # Anomalies

    def _tails(self, name: str, at: Codes, context: pd.DataFrame | None, seed: int) -> Tails:
        """Returns the smallest tail probability of each row and all rows below it, given their
        context."""
        part, rows = self.parts[name], self.frames[name].iloc[at].reset_index(drop=True)
        n, number = len(at), derived_seed(str(seed), name)
        typed, unknown = self._encoded(name, rows)
        encoded = None if context is None else self._context_of(name, context, at)
        trained = table = None
        if name in self.trained:
            table, _ = self._encoded(name, self.frames[name])
            trained = table.iloc[self.trained[name]]
        least, cells, columns = self.models[name].rows.scorer.tails_given(
            typed, encoded, unknown, number, trained, table
        )
        owners = part.reduction.owners
        written = [None if c is None else owners.get(c, c) for c in columns]
        of_table = np.full(n, name, dtype=object)
        found = Tails(
            least.copy(), cells.astype(np.float64), of_table, at.copy(), np.array(written, object)
        )
        if name in self.steps and context is not None:
            self._add_gaps(name, at, context, number, found)
        for column, (breaks, _) in self.broken[name].found.items():
            found.least[breaks[at]], found.column[breaks[at]] = 0.0, column
        own = rows.add_prefix(f"{name} ")
        context = own if context is None else pd.concat([own, context], axis=1)
        for child in self.children(name):
            below, parents = self._below(child, at)
            of_child = self._child_context(child, rows, context, parents)
            found.with_children(self._tails(child, below, of_child, number), parents)
        return found

    def _add_gaps(
        self, name: str, at: Codes, context: pd.DataFrame, seed: int, found: Tails
    ) -> None:
        """Merges the tail probabilities of the gaps between a sequence's rows, as cells of its time
        column."""
        sequence, conditions = self.models[name].sequence, self._gaps(name, at, context)
        assert sequence is not None, "it has an order"
        gaps, with_previous = sequence.gaps, self.steps[name].take(at).with_previous
        if conditions is None or isinstance(gaps, float):
            return
        tails, _, _ = gaps.scorer.tails_given(*conditions, (), seed)
        are_odder = tails < found.least[with_previous]
        odder = with_previous[are_odder]
        found.cells[with_previous] += 1
        found.least[odder], found.column[odder] = tails[are_odder], sequence.column

    def _gaps(self, name: str, at: Codes, context: pd.DataFrame) -> tuple[pd.DataFrame, Any] | None:
        """Returns (typed gaps, encoded contexts) of rows with a previous row; None if no gap is
        modelled."""
        sequence, steps = self.models[name].sequence, self.steps[name].take(at)
        with_previous = steps.with_previous
        if sequence is None or isinstance(sequence.gaps, float) or not len(with_previous):
            return None
        conditions = steps.gap_context(context[list(self.parts[name].context)])
        codec = sequence.gaps.context
        assert codec is not None, "it is conditional"
        encoded = codec.encode(conditions.iloc[with_previous].reset_index(drop=True))
        typed = parse_table(pd.DataFrame({GAP: steps.gap[with_previous]}), sequence.gaps.schema)
        return typed, encoded

    def _child_context(
        self, child: str, rows: pd.DataFrame, context: pd.DataFrame, parents: Codes
    ) -> pd.DataFrame:
        """Returns the context of a child table's rows: the random effect, then the columns of the
        parent and its ancestors."""
        effects = [c for c in rows.columns if c.startswith(f"{child} effect ")]
        whole = pd.concat([rows[effects], context], axis=1)
        return whole.iloc[parents].reset_index(drop=True)
