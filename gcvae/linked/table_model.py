"""Model of one table of a database: p(row | parent row), or p(row) without a parent.

The model learns the table's columns and some columns of the rows that it references. For each child
table, it also learns the number of a row's children, their random effect (a vector that they share)
and, if they are a sequence, the time of the first child.

The context of a row contains the columns of its parent and other ancestors, their numbers of
children, and the random effect of the parent on its children. In a sequence, it also contains the
row's rank, its time and the previous row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.linked.model_checkpoints import ModelCheckpoints, digest_of
from gcvae.linked.random_effect import RandomEffect
from gcvae.linked.sequences import GAP, Clock
from gcvae.numerics.generators import numpy_generator
from gcvae.numerics.seeds import derived_seed
from gcvae.schema.columns import TableSchema
from gcvae.synthesizer import Synthesizer
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.preparation import Context
from gcvae.training.progress import Progress

_MOST_ROUNDS = 5
"""Maximum number of times that sequences which end too late are generated again."""
_FILLER = "·"


@dataclass(frozen=True)
class Fitting:
    """Arguments of `Synthesizer.fit` that all models of one table have in common."""

    preset: str
    settings: Mapping[str, object]
    seed: int
    device: str
    progress: Callable[[Progress], None] | bool | None
    checkpoints: ModelCheckpoints | None

    def synthesizer(
        self,
        frame: pd.DataFrame,
        document: Mapping[str, Any] | None,
        context: Context | None,
        held_out: Mask | None,
    ) -> Synthesizer:
        """Fits a model of a frame.

        Args:
            frame: Training and held-out rows.
            document: JSON schema document of the columns; None infers it.
            context: Data on which each row depends, such as its parent row; None for a table
                without a parent.
            held_out: Mask of the rows that decide when training stops; None lets the fit choose
                them.
        """
        if held_out is not None and not 0 < held_out.sum() < len(held_out):
            held_out = None
        if document is not None:
            own = [c for c in document["columns"] if c["name"] in frame.columns]
            document = {**document, "columns": own}
        if len(frame) == 1:  # in a single row, every column would be constant
            frame = pd.concat([frame, frame], ignore_index=True)
            context = None if context is None else context.twice()
        frame = with_filler(frame, document)

        def train(checkpoints: CheckpointStore | None) -> Synthesizer:
            return Synthesizer.fit(
                frame,
                schema=document,
                preset=self.preset,
                settings=self.settings,
                seed=self.seed,
                device=self.device,
                progress=self.progress,
                checkpoints=checkpoints,
                context=context,
                held_out=held_out,
            )

        if self.checkpoints is None:
            return train(None)
        frames = {"rows": frame}
        if held_out is not None:
            frames["held out"] = pd.DataFrame({"held out": held_out})
        if context is not None:
            frames["context"] = context.cells
            frames["parents"] = pd.DataFrame({"parent": context.groups})
            frames |= {} if context.parents is None else {"all parents": context.parents}
        settings = {**self.settings, "preset": self.preset, "seed": self.seed, "schema": document}
        return self.checkpoints.model(digest_of(frames, settings), train)


def with_filler(frame: pd.DataFrame, document: Mapping[str, Any] | None) -> pd.DataFrame:
    """Returns the frame, with an additional column of two levels if it contains only keys and
    constants, because a fit refuses such a table."""
    kinds = {c["name"]: c.get("kind") for c in (document or {}).get("columns", ())}
    unmodelled = {"identifier", "constant"}
    is_modelled = [
        frame[name].nunique() > 1
        for name in frame.columns
        if kinds.get(str(name)) not in unmodelled
    ]
    if any(is_modelled):
        return frame
    return with_filler_column(frame)


def with_filler_column(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the frame with an additional column of two alternating levels. Schema inference and
    fits refuse a table that contains only keys and constants; with this column they accept it."""
    filler = np.where(np.arange(len(frame)) % 2, "a", "b")
    return pd.concat([frame, pd.DataFrame({_FILLER: filler}, index=frame.index)], axis=1)


@dataclass(frozen=True)
class RowOrder:
    """Time column of a sequence (the ordered rows of one parent), and the model of the gaps, the
    times between consecutive rows.

    Attributes:
        column: Name of the time column.
        clock: Conversion of times to numbers.
        dtype: Name of the pandas dtype of the time column.
        gaps: Model of the gap to the previous row, as a number or as days and a time of day; or the
            gap itself, in units of the clock, if it is constant.
    """

    column: str
    clock: Clock
    dtype: str
    gaps: Synthesizer | float


@dataclass(frozen=True)
class TableModel:
    """Model of one table of a database: p(row | parent's row), or p(row) without a parent.

    Attributes:
        columns: Names of the modelled columns: those of the table, then the additional ones.
        rows: Model of the rows.
        effect: Random effect that the rows of one parent share; None without a parent.
        sequence: Order of the rows of a parent; None if they are unordered.
        previous_columns: Columns of the previous row of a sequence on which a row depends.
    """

    columns: tuple[str, ...]
    rows: Synthesizer
    effect: RandomEffect | None = None
    sequence: RowOrder | None = None
    previous_columns: tuple[str, ...] = ()

    def draw(self, n: int, seed: int) -> pd.DataFrame:
        """Generates `n` rows of a table without a parent, with cells of the columns' dtypes."""
        rows = pd.concat(self.rows.sample_blocks(n, seed), ignore_index=True)
        return rows[list(self.columns)]

    def draw_children(
        self,
        context: pd.DataFrame,
        counts: Codes,
        first: pd.Series[Any] | None,
        schema: TableSchema,
        seed: int,
    ) -> tuple[pd.DataFrame, Codes]:
        """Generates the rows of m parents. Returns (rows, parent index of each row), sorted by
        parent and, in a sequence, by time.

        Args:
            context: Context (data on which rows depend) of each parent. Shape: m rows.
            counts: Number of rows to generate for each parent. Shape: (m,).
            first: Time of each parent's first row; None if the rows are unordered. Shape: (m,).
            schema: Schema of the table; the limit of its time column is the last possible time.
            seed: Seed of the random generator.
        """
        parents = np.repeat(np.arange(len(counts)), counts)
        if self.sequence is None:
            rows = context.iloc[parents].reset_index(drop=True)
            return self.rows.sample_given(rows, seed)[list(self.columns)], parents
        assert first is not None, "a sequence begins at some time"
        return self._draw_until_last(self.sequence, context, counts, first, schema, seed)

    def _draw_until_last(
        self,
        sequence: RowOrder,
        context: pd.DataFrame,
        counts: Codes,
        first: pd.Series[Any],
        schema: TableSchema,
        seed: int,
    ) -> tuple[pd.DataFrame, Codes]:
        """Generates sequences with ascending times that end no later than the table's last time.

        Sequences that violate this are generated again, at most five times; then rows after the
        last time are removed.
        """
        clock, last = sequence.clock, sequence.clock.last(schema[sequence.column])
        rows, parents = self._draw_sequences(sequence, context, counts, first, seed, 0)
        n_drawn = len(rows)
        for _ in range(0 if isinstance(sequence.gaps, float) else _MOST_ROUNDS):
            times = clock.count(rows[sequence.column])
            falls = (np.diff(times, prepend=-np.inf) < 0) & (np.diff(parents, prepend=-1) == 0)
            again = np.unique(parents[(times > last) | falls])
            if not len(again):
                break
            of_parents = context.iloc[again].reset_index(drop=True)
            starts = first.iloc[again].reset_index(drop=True)
            drawn, of = self._draw_sequences(
                sequence, of_parents, counts[again], starts, seed, n_drawn
            )
            n_drawn += len(drawn)
            is_kept = ~np.isin(parents, again)
            parents = np.concatenate([parents[is_kept], again[of]])
            order = np.argsort(parents, kind="stable")
            rows = pd.concat([rows[is_kept], drawn], ignore_index=True)
            rows, parents = rows.iloc[order].reset_index(drop=True), parents[order]
        is_in_time = clock.count(rows[sequence.column]) <= last
        return rows[is_in_time].reset_index(drop=True), parents[is_in_time]

    def _draw_sequences(
        self,
        sequence: RowOrder,
        context: pd.DataFrame,
        counts: Codes,
        first: pd.Series[Any],
        seed: int,
        n_drawn: int,
    ) -> tuple[pd.DataFrame, Codes]:
        """Generates the rows of all sequences: all first rows, then all second rows, and so on.

        `n_drawn` is the number of rows generated before. The new rows are numbered from `n_drawn`,
        because synthetic keys are derived from row numbers and must not repeat.
        """
        now = sequence.clock.count(first)
        steps: list[pd.DataFrame] = []
        places: list[Codes] = []
        for k in range(int(counts.max()) if len(counts) else 0):
            active = np.flatnonzero(counts > k)
            previous = None
            if steps:
                kept = np.flatnonzero(np.isin(places[-1], active))
                previous = steps[-1].iloc[kept].reset_index(drop=True)
            base = context.iloc[active].reset_index(drop=True)
            ranks = _rank_features(np.full(len(active), k), counts[active] - 1 - k)
            rows, now[active] = self._step(
                sequence, base, ranks, now[active], previous, seed, n_drawn
            )
            n_drawn += len(rows)
            steps.append(rows)
            places.append(active)
        return self._ordered(sequence, context, steps, places, seed)

    def draw_next(
        self,
        context: pd.DataFrame,
        last: pd.DataFrame,
        ranks: Codes,
        times: pd.Series[Any],
        n: int,
        seed: int,
    ) -> tuple[pd.DataFrame, Codes]:
        """Generates `n` rows after the last row of each parent. Returns (new rows, parent index of
        each), sorted by parent and time.

        Args:
            context: Context (data on which rows depend) of each of m parents. Shape: m rows.
            last: Last known row of each parent. Shape: m rows.
            ranks: Number of known rows of each parent. Shape: (m,).
            times: Time of each parent's last row. Shape: (m,).
            n: Number of rows to add to each parent.
        """
        assert self.sequence is not None, "the rows have an order"
        now, previous, everyone = self.sequence.clock.count(times), last, np.arange(len(context))
        steps: list[pd.DataFrame] = []
        for k in range(n):
            ahead = _rank_features(ranks + k, np.full(len(ranks), n - 1 - k))
            previous, now = self._step(
                self.sequence, context, ahead, now, previous, seed, k * len(context)
            )
            steps.append(previous)
        return self._ordered(self.sequence, context, steps, [everyone] * n, seed)

    def _step(
        self,
        sequence: RowOrder,
        base: pd.DataFrame,
        ranks: pd.DataFrame,
        before: Numbers,
        previous: pd.DataFrame | None,
        seed: int,
        first_row: int,
    ) -> tuple[pd.DataFrame, Numbers]:
        """Generates the next row of each of m parents. Returns (rows, their times).

        Args:
            base: Columns of the parents and other ancestors. Shape: m rows.
            ranks: Numbers of rows of the same parent before and after the next row. Shape: m rows.
            before: Time of the previous row. If `previous` is None, the generated row is the first
                of its parent, and `before` is its own time. Shape: (m,).
            first_row: Number of the first generated row, from which synthetic keys are derived.
        """
        gap: Numbers = np.full(len(base), np.nan)
        previous_cells, now = _previous_features(previous, self.previous_columns, len(base)), before
        if previous is not None:
            at = sequence.clock.features(before, sequence.column)
            of_gap = pd.concat([base, ranks, at, previous_cells], axis=1)
            now = self._next_times(sequence, of_gap, before, seed, first_row)
            gap = now - before
        at = sequence.clock.features(now, sequence.column)
        whole = pd.concat([base, ranks, at, pd.DataFrame({GAP: gap}), previous_cells], axis=1)
        rows = self.rows.sample_given(whole, seed, first_row=first_row)
        rows[sequence.column] = sequence.clock.times(now, sequence.dtype).to_numpy()
        return rows, now

    def _ordered(
        self,
        sequence: RowOrder,
        context: pd.DataFrame,
        steps: Sequence[pd.DataFrame],
        places: Sequence[Codes],
        seed: int,
    ) -> tuple[pd.DataFrame, Codes]:
        """Returns (rows of all steps, parent index of each row), sorted by parent. `steps[k]`
        contains the k-th rows of all sequences with such a row, and `places[k]` the indices of
        their parents."""
        if not steps:
            empty = self.rows.sample_given(context.iloc[:0], seed)
            empty[sequence.column] = pd.Series(dtype=sequence.dtype)
            return empty, np.zeros(0, dtype=np.int64)
        parents = np.concatenate(places)
        order = np.argsort(parents, kind="stable")
        drawn = pd.concat(steps, ignore_index=True).iloc[order].reset_index(drop=True)
        return drawn[[*self.columns, sequence.column]], parents[order]

    def _next_times(
        self,
        sequence: RowOrder,
        context: pd.DataFrame,
        before: Numbers,
        seed: int,
        first_row: int,
    ) -> Numbers:
        """Generates the times of n rows, given the times `before` of their previous rows and the
        columns `context` on which gaps depend, in units of the clock. Shape: (n,)."""
        if isinstance(sequence.gaps, float):
            return before + sequence.gaps
        own = derived_seed(str(seed), GAP)  # the model of the rows uses `seed` itself
        drawn = sequence.gaps.sample_given(context, own, first_row=first_row)
        return sequence.clock.after(before, drawn)


def _rank_features(position: Codes, n_after: Codes) -> pd.DataFrame:
    return pd.DataFrame({"rank": position, "rows left": n_after})


def _previous_features(
    previous: pd.DataFrame | None, columns: Sequence[str], n: int
) -> pd.DataFrame:
    if previous is None:
        return pd.DataFrame({f"before {name}": [None] * n for name in columns})
    return previous[list(columns)].add_prefix("before ")


@dataclass(frozen=True)
class SequenceContext:
    """Data on which n rows of sequences (time-ordered rows of a parent) depend besides the parent:
    their ranks, their times and their previous rows.

    Attributes:
        order: Row indices sorted by parent and time. Shape: (n,).
        gap: Time since the previous row; NaN for the first row of a parent. Shape: (n,).
        ranks: Number of the parent's rows before and after each row. Shape: n rows.
        time_features: Columns that describe each row's time (`Clock.features`). Shape: n rows.
        previous_time_features: The same for the previous row's time. Shape: n rows.
        previous: Columns of the previous row; missing for the first row of a parent. Shape: n rows.
    """

    order: Codes
    gap: Numbers
    ranks: pd.DataFrame
    time_features: pd.DataFrame
    previous_time_features: pd.DataFrame
    previous: pd.DataFrame

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        times: pd.Series[Any],
        parents: Codes,
        clock: Clock,
        columns: Sequence[str],
    ) -> SequenceContext:
        """Computes ranks, times and previous rows for n rows of a table, in any order, from the
        time and the parent index of each row. `columns` are the names of the columns of the
        previous row on which a row depends. Shape: times (n,), parents (n,)."""
        counts = clock.count(times)
        order = np.lexsort((counts, parents))
        firsts = np.flatnonzero(np.diff(parents[order], prepend=-1))
        sizes = np.diff(np.r_[firsts, len(order)])
        rank = np.arange(len(order)) - np.repeat(firsts, sizes)
        n_after = np.repeat(sizes, sizes) - 1 - rank
        place = np.argsort(order)  # position of each row in `order`
        is_first, before = rank[place] == 0, order[np.maximum(place - 1, 0)]
        previous = rows[list(columns)].iloc[before].reset_index(drop=True)
        name = str(times.name)
        return cls(
            order,
            np.where(is_first, np.nan, counts - counts[before]),
            _rank_features(rank[place], n_after[place]),
            clock.features(counts, name),
            clock.features(counts[before], name),
            pd.DataFrame({f"before {c}": previous[c].mask(is_first) for c in columns}),
        )

    @property
    def non_first(self) -> Codes:
        """Indices of the rows that are not the first of their parent."""
        return np.flatnonzero(~np.isnan(self.gap))

    def take(self, at: Codes) -> SequenceContext:
        """Returns a copy with only the rows whose indices are in `at`."""
        frames = (
            each.iloc[at].reset_index(drop=True)
            for each in (self.ranks, self.time_features, self.previous_time_features, self.previous)
        )
        return SequenceContext(self.order, self.gap[at], *frames)

    def with_previous_filled(self, at: Codes, rows: pd.DataFrame) -> SequenceContext:
        """Returns a copy in which missing cells of previous rows are filled. The i-th of `rows` is
        the completed previous row of the row with index `at[i]`."""
        previous = self.previous.copy()
        for column in previous.columns:
            cells = rows[column.removeprefix("before ")].set_axis(at)
            previous[column] = previous[column].fillna(cells)
        return replace(self, previous=previous)

    def row_context(self, base: pd.DataFrame) -> pd.DataFrame:
        """Returns the context of the model of rows: the columns `base` of the parent and other
        ancestors, then rank, time, time since the previous row, and previous row."""
        gap = pd.DataFrame({GAP: self.gap})
        return pd.concat([base, self.ranks, self.time_features, gap, self.previous], axis=1)

    def gap_columns(self, clock: Clock, *, of_days: bool) -> pd.DataFrame:
        """Returns the columns that a model of gaps (times since the previous row) learns: the gaps;
        or, if `of_days` is true, their numbers of days and the times of day at which they end."""
        times = self.previous_time_features.iloc[:, 0]
        before = times.to_numpy(dtype=np.float64)
        return clock.gap_columns(self.gap, before, of_days=of_days)

    def gap_context(self, base: pd.DataFrame) -> pd.DataFrame:
        """Returns the context of the model of gaps (times since the previous row): columns `base`
        of the parent and other ancestors, then rank, time of the previous row, and that row."""
        return pd.concat([base, self.ranks, self.previous_time_features, self.previous], axis=1)


def fit_table(
    fitting: Fitting,
    frame: pd.DataFrame,
    document: Mapping[str, Any] | None,
    held_out: Mask | None,
) -> TableModel:
    """Fits the model of a table without a parent.

    Args:
        frame: Columns of the table and its additional columns, with cells of their dtypes.
        document: JSON schema document of the table.
        held_out: Mask of the rows that decide when training stops; None lets the fit choose rows.
    """
    rows = fitting.synthesizer(frame, document, None, held_out)
    return TableModel(tuple(map(str, frame.columns)), rows)


def fit_children(
    fitting: Fitting,
    frame: pd.DataFrame,
    document: Mapping[str, Any] | None,
    context: pd.DataFrame,
    parents: Codes,
    effect: RandomEffect,
    effect_names: Sequence[str],
    order: str | None,
    held_out: Mask | None,
) -> TableModel:
    """Fits the model of a table's rows given their parents.

    Args:
        frame: Columns of the table and its additional columns, with cells of their dtypes.
        document: JSON schema document of the table.
        context: Data of each parent on which its rows depend, also of parents without rows. Shape:
            m rows.
        parents: Parent index of each row. Shape: (n,).
        effect: Random effect, the vector that the rows of one parent share. For training, each row
            gets its own draw from its posterior.
        effect_names: Names of the columns of `context` that contain the random effect.
        order: Column that orders the rows of a parent; None if they are unordered.
        held_out: Mask of the rows that decide when training stops; None lets the fit choose rows.
            Shape: (n,).
    """
    noise = numpy_generator(fitting.seed, "effect of rows")
    own = frame.drop(columns=[order]) if order is not None else frame
    seen = own[[feature.column for feature in effect.features]]
    # From one draw for all siblings, the model could learn more about their cells than u contains.
    standard = noise.standard_normal((len(frame), effect.n_directions))
    fresh = effect.draw(seen, parents, len(context), standard, of=parents)
    rows = context.iloc[parents].reset_index(drop=True)
    for name, values in zip(effect_names, fresh.T, strict=True):
        rows[name] = values
    columns = tuple(map(str, own.columns))
    if order is None:
        model = fitting.synthesizer(own, document, Context(rows, parents, context), held_out)
        return TableModel(columns, model, effect)
    clock, columns_before = (
        Clock.of(frame[order]),
        tuple(feature.column for feature in effect.features),
    )
    sequence_context = SequenceContext.of(own, frame[order], parents, clock, columns_before)
    order_of_rows = sequence_context.order
    own, rows = (each.iloc[order_of_rows].reset_index(drop=True) for each in (own, rows))
    parents, sequence_context = parents[order_of_rows], sequence_context.take(order_of_rows)
    held_out = None if held_out is None else held_out[order_of_rows]
    gaps = _fit_gaps(fitting, sequence_context, rows, parents, clock, held_out)
    model = fitting.synthesizer(
        own, document, Context(sequence_context.row_context(rows), parents), held_out
    )
    sequence = RowOrder(order, clock, str(frame[order].dtype), gaps)
    return TableModel(columns, model, effect, sequence, columns_before)


def _fit_gaps(
    fitting: Fitting,
    sequence_context: SequenceContext,
    context: pd.DataFrame,
    parents: Codes,
    clock: Clock,
    held_out: Mask | None,
) -> Synthesizer | float:
    """Returns a fitted model of the gaps between consecutive rows of sequences; if all gaps are
    equal, the gap, in units of the clock."""
    non_first = sequence_context.non_first
    found = sequence_context.gap[non_first]
    if not len(found) or (found == found[0]).all():
        return float(found[0]) if len(found) else 0.0
    some = sequence_context.gap_context(context).iloc[non_first].reset_index(drop=True)
    frame = sequence_context.take(non_first).gap_columns(
        clock, of_days=clock.has_times_of_day(found)
    )
    kind = "integer" if clock.is_whole else "continuous"
    document = {"columns": [{"name": name, "kind": kind} for name in frame], "rules": []}
    held_out = None if held_out is None else held_out[non_first]
    of_rows = Context(some, parents[non_first])
    return fitting.synthesizer(frame, document, of_rows, held_out)
