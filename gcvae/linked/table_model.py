"""The model of one table among others: its rows, given the row of their parent.

Beside its own columns a row has, for each table whose parent it is, how many rows it has there,
their random effect and the time of the first; and what it borrows of the rows that it refers to.
Its context is what the parent has: its columns and those of its own parent, how many rows it has of
each table, and the random effect of these rows; in a sequence also the row's rank, its time and the
row before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.linked.random_effect import RandomEffect
from gcvae.linked.sequences import Clock, Ranks
from gcvae.numerics.generators import numpy_generator
from gcvae.numerics.seeds import derived_seed
from gcvae.synthesizer import Synthesizer
from gcvae.training.preparation import Context
from gcvae.training.progress.training_progress import Progress

GAP = "gap"
_FILLER = "·"
_MOST_CONTEXT = 60


@dataclass(frozen=True)
class Fitting:
    """How the models of a database are fitted."""

    preset: str
    settings: Mapping[str, object]
    seed: int
    device: str
    progress: Callable[[Progress], None] | bool | None

    def synthesizer(
        self,
        frame: pd.DataFrame,
        document: Mapping[str, Any] | None,
        context: Context | None,
        held_out: Mask | None,
    ) -> Synthesizer:
        """The model of one frame; rows of some households are held out of its training."""
        if held_out is not None and not 0 < held_out.sum() < len(held_out):
            held_out = None
        if document is not None:
            own = [c for c in document["columns"] if c["name"] in frame.columns]
            document = {**document, "columns": own}
        if len(frame) == 1:  # of one row every column is constant
            frame = pd.concat([frame, frame], ignore_index=True)
            context = None if context is None else context.twice()
        return Synthesizer.fit(
            with_filler(frame, document),
            schema=document,
            preset=self.preset,
            settings=self.settings,
            seed=self.seed,
            device=self.device,
            progress=self.progress,
            context=context,
            held_out=held_out,
        )


def with_filler(frame: pd.DataFrame, document: Mapping[str, Any] | None) -> pd.DataFrame:
    """The frame, with a column to model where it has none: keys alone are no table."""
    kinds = {c["name"]: c.get("kind") for c in (document or {}).get("columns", ())}
    unmodelled = {"identifier", "constant"}
    is_modelled = [
        frame[name].nunique() > 1
        for name in frame.columns
        if kinds.get(str(name)) not in unmodelled
    ]
    if any(is_modelled):
        return frame
    return filled(frame)


def filled(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame and a column of two levels."""
    filler = np.where(np.arange(len(frame)) % 2, "a", "b")
    return pd.concat([frame, pd.DataFrame({_FILLER: filler}, index=frame.index)], axis=1)


@dataclass(frozen=True)
class RowOrder:
    """The order of the rows of a parent.

    Attributes:
        column: Of the times.
        clock: How they are counted.
        dtype: Of the column, typed.
        gaps: Model of the gap from the row before; a number where it is always the same.
    """

    column: str
    clock: Clock
    dtype: str
    gaps: Synthesizer | float


@dataclass(frozen=True)
class TableModel:
    """p(row | parent's row) of one table, or p(row) of a table without a parent.

    Attributes:
        columns: The modelled columns' names, the own ones and those beside them.
        rows: The model of the rows.
        effect: The random effect of the parent on these rows; None without a parent.
        sequence: The order of the rows of a parent; None where there is none.
        told: Columns of the row before that a row of a sequence is told.
    """

    columns: tuple[str, ...]
    rows: Synthesizer
    effect: RandomEffect | None = None
    sequence: RowOrder | None = None
    told: tuple[str, ...] = ()

    def draw(self, n: int, seed: int) -> pd.DataFrame:
        """n rows of a table without a parent, typed."""
        rows = pd.concat(self.rows.sample_blocks(n, seed), ignore_index=True)
        return rows[list(self.columns)]

    def draw_children(
        self, context: pd.DataFrame, counts: Codes, first: pd.Series[Any] | None, seed: int
    ) -> tuple[pd.DataFrame, Codes]:
        """(rows, number of each one's parent), the rows of one parent together and in order.

        Args:
            context: Of each parent. Shape: m rows.
            counts: How many rows each parent gets. Shape: (m,).
            first: The time of each parent's first row, in a sequence.
            seed: The same seed gives the same rows.
        """
        parents = np.repeat(np.arange(len(counts)), counts)
        if self.sequence is None:
            rows = context.iloc[parents].reset_index(drop=True)
            return self.rows.sample_given(rows, seed)[list(self.columns)], parents
        assert first is not None, "a sequence begins at some time"
        return self._drawn_in_order(self.sequence, context, counts, first, seed)

    def _drawn_in_order(
        self,
        sequence: RowOrder,
        context: pd.DataFrame,
        counts: Codes,
        first: pd.Series[Any],
        seed: int,
    ) -> tuple[pd.DataFrame, Codes]:
        """All first rows at once, then all second ones, and so on."""
        now = sequence.clock.count(first)
        steps: list[pd.DataFrame] = []
        places: list[Codes] = []
        n_drawn = 0
        for k in range(int(counts.max()) if len(counts) else 0):
            active = np.flatnonzero(counts > k)
            previous = None
            if steps:
                kept = np.flatnonzero(np.isin(places[-1], active))
                previous = steps[-1].iloc[kept].reset_index(drop=True)
            base = context.iloc[active].reset_index(drop=True)
            ranks = _of_ranks(np.full(len(active), k), counts[active] - 1 - k)
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
        """(n further rows of each parent, number of each one's parent), in order.

        Args:
            context: Of each parent. Shape: m rows.
            last: The last row of each parent. Shape: m rows.
            ranks: How many rows each parent has. Shape: (m,).
            times: The time of each last row. Shape: (m,).
            n: How many rows follow.
            seed: The same seed gives the same rows.
        """
        assert self.sequence is not None, "the rows have an order"
        now, previous, everyone = self.sequence.clock.count(times), last, np.arange(len(context))
        steps: list[pd.DataFrame] = []
        for k in range(n):
            told = _of_ranks(ranks + k, np.full(len(ranks), n - 1 - k))
            previous, now = self._step(
                self.sequence, context, told, now, previous, seed, k * len(context)
            )
            steps.append(previous)
        return self._ordered(self.sequence, context, steps, [everyone] * n, seed)

    def _step(
        self,
        sequence: RowOrder,
        base: pd.DataFrame,
        ranks: pd.DataFrame,
        last: Numbers,
        previous: pd.DataFrame | None,
        seed: int,
        first_row: int,
    ) -> tuple[pd.DataFrame, Numbers]:
        """(the next row of each parent, its time); without previous rows the first, at `last`."""
        gap: Numbers = np.full(len(base), np.nan)
        told, now = _told(previous, self.told, len(base)), last
        if previous is not None:
            at = sequence.clock.features(last, sequence.column)
            gap = self._gaps(sequence, pd.concat([base, ranks, at, told], axis=1), seed, first_row)
            now = last + gap
        at = sequence.clock.features(now, sequence.column)
        whole = pd.concat([base, ranks, at, pd.DataFrame({GAP: gap}), told], axis=1)
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
        """The rows of all steps, those of one parent together."""
        if not steps:
            empty = self.rows.sample_given(context.iloc[:0], seed)
            empty[sequence.column] = pd.Series(dtype=sequence.dtype)
            return empty, np.zeros(0, dtype=np.int64)
        parents = np.concatenate(places)
        order = np.argsort(parents, kind="stable")
        drawn = pd.concat(steps, ignore_index=True).iloc[order].reset_index(drop=True)
        return drawn[[*self.columns, sequence.column]], parents[order]

    def _gaps(
        self, sequence: RowOrder, context: pd.DataFrame, seed: int, first_row: int
    ) -> Numbers:
        if isinstance(sequence.gaps, float):
            return np.full(len(context), sequence.gaps)
        own = derived_seed(str(seed), GAP)  # the rows' model has the noise of the seed itself
        drawn = sequence.gaps.sample_given(context, own, first_row=first_row)[GAP]
        return drawn.to_numpy(dtype=np.float64)


def _of_ranks(place: Codes, left: Codes) -> pd.DataFrame:
    """What a row of a sequence is told of its rank."""
    return pd.DataFrame({"rank": place, "rows left": left})


def _told(previous: pd.DataFrame | None, told: Sequence[str], n: int) -> pd.DataFrame:
    """What a row of a sequence is told of the row before; nothing of none."""
    if previous is None:
        return pd.DataFrame({f"before {name}": [None] * n for name in told})
    return previous[list(told)].add_prefix("before ")


@dataclass(frozen=True)
class Steps:
    """What each row of a sequence is told beside its parent: of its rank, time and row before.

    Shape: order (n,): row numbers, parent by parent, in time; gap (n,): the time since the row
    before, NaN of the first; the frames have n rows.
    """

    order: Codes
    gap: Numbers
    ranks: pd.DataFrame
    at: pd.DataFrame
    at_before: pd.DataFrame
    before: pd.DataFrame

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        times: pd.Series[Any],
        parents: Codes,
        clock: Clock,
        told: Sequence[str],
    ) -> Steps:
        """Of the typed rows of a table, in any order. Shape: (n,) parents."""
        counts = clock.count(times)
        ranks = Ranks.of(parents, counts)
        of_rows = np.argsort(ranks.order)
        is_first = ranks.before[of_rows] < 0
        before = ranks.order[ranks.before][of_rows]
        previous = rows[list(told)].iloc[before].reset_index(drop=True)
        name = str(times.name)
        return cls(
            ranks.order,
            np.where(is_first, np.nan, counts - counts[before]),
            _of_ranks(ranks.place[of_rows], ranks.left[of_rows]),
            clock.features(counts, name),
            clock.features(counts[before], name),
            pd.DataFrame({f"before {c}": previous[c].mask(is_first) for c in told}),
        )

    @property
    def later(self) -> Codes:
        """The rows that have one before them."""
        return np.flatnonzero(~np.isnan(self.gap))

    def take(self, at: Codes) -> Steps:
        """Those of some rows."""
        frames = (
            each.iloc[at].reset_index(drop=True)
            for each in (self.ranks, self.at, self.at_before, self.before)
        )
        return Steps(self.order, self.gap[at], *frames)

    def context(self, base: pd.DataFrame) -> pd.DataFrame:
        """What the model of the rows is given, beside the context of their parents."""
        gap = pd.DataFrame({GAP: self.gap})
        return pd.concat([base, self.ranks, self.at, gap, self.before], axis=1)

    def gap_context(self, base: pd.DataFrame) -> pd.DataFrame:
        """What the model of the gaps is given: the time of the row before is the last known."""
        return pd.concat([base, self.ranks, self.at_before, self.before], axis=1)


def fit_table(
    fitting: Fitting,
    frame: pd.DataFrame,
    document: Mapping[str, Any] | None,
    held_out: Mask | None,
) -> TableModel:
    """The model of a table without a parent."""
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
    """The model of the rows of a table, given their parents.

    Args:
        fitting: How.
        frame: Typed columns of the table, and those beside them.
        document: Of its schema.
        context: Of each parent, those without rows among them. Shape: m rows.
        parents: The number of each row's parent. Shape: (n,).
        effect: Of the parents on these rows: each row gets a fresh draw of it.
        effect_names: What its directions are called in the context.
        order: The column by which the rows of a parent follow each other.
        held_out: Rows of households that are held out of training. Shape: (n,).
    """
    noise = numpy_generator(fitting.seed, "effect of rows")
    own = frame.drop(columns=[order]) if order is not None else frame
    seen = own[[feature.column for feature in effect.features]]
    fresh = effect.draw_for_rows(
        seen, parents, len(context), noise.standard_normal((len(frame), effect.n_directions))
    )
    rows = context.iloc[parents].reset_index(drop=True)
    for name, values in zip(effect_names, fresh.T, strict=True):
        rows[name] = values
    columns = tuple(map(str, own.columns))
    if order is None:
        model = fitting.synthesizer(own, document, Context(rows, parents, context), held_out)
        return TableModel(columns, model, effect)
    clock, told = Clock.of(frame[order]), tuple(feature.column for feature in effect.features)
    steps = Steps.of(own, frame[order], parents, clock, told)
    order_of_rows = steps.order
    own, rows = (each.iloc[order_of_rows].reset_index(drop=True) for each in (own, rows))
    parents, steps = parents[order_of_rows], steps.take(order_of_rows)
    held_out = None if held_out is None else held_out[order_of_rows]
    gaps = _fit_gaps(fitting, steps, rows, parents, clock, held_out)
    model = fitting.synthesizer(own, document, Context(steps.context(rows), parents), held_out)
    sequence = RowOrder(order, clock, str(frame[order].dtype), gaps)
    return TableModel(columns, model, effect, sequence, told)


def _fit_gaps(
    fitting: Fitting,
    steps: Steps,
    context: pd.DataFrame,
    parents: Codes,
    clock: Clock,
    held_out: Mask | None,
) -> Synthesizer | float:
    """The model of the gaps; the gap itself where it is always the same."""
    later = steps.later
    found = steps.gap[later]
    if not len(found) or (found == found[0]).all():
        return float(found[0]) if len(found) else 0.0
    some = steps.gap_context(context).iloc[later].reset_index(drop=True)
    document = {"columns": [{"name": GAP, "kind": "integer" if clock.is_whole else "continuous"}]}
    held_out = None if held_out is None else held_out[later]
    of_rows = Context(some, parents[later])
    return fitting.synthesizer(_of_gaps(found, clock), document, of_rows, held_out)


def _of_gaps(gaps: Numbers, clock: Clock) -> pd.DataFrame:
    return pd.DataFrame({GAP: gaps.astype(np.int64) if clock.is_whole else gaps})


def limited(context: pd.DataFrame) -> pd.DataFrame:
    """The first columns of a context: further ancestors' are told least."""
    return context.iloc[:, :_MOST_CONTEXT]
