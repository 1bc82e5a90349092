"""What the other cells of a row say of a number's decimals.

A price in yen has none and one in euros two; one month was measured to halves and the next to
thirds; means of three numbers end in thirds. Beside its size, a number's decimals go by the leaf of
a tree over the other columns: half of a sample of rows finds each split, and the other half has to
be likelier by it. The numbers of a leaf have the decimals of the table's numbers of that leaf.

Source: Breiman, Friedman, Olshen and Stone (1984), Classification and Regression Trees. Levels are
split in the order of the first principal coordinate of their shares (Coppersmith, Hong and Hosking
1999).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import xlogy
from torch import Tensor

from gcvae.codec.decimal_classes import DecimalClasses
from gcvae.codec.decimal_hands import (
    DecimalHands,
    NumberCodec,
    classes_of,
    codecs_that_differ,
    with_classes,
    written,
)
from gcvae.codec.encoded_table import EncodedTable
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.files.typed_columns import TypedTable, rows_at

if TYPE_CHECKING:
    from gcvae.codec.column_codec import ColumnCodec

Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
_MOST_ROWS = 10_000
"""Of the sample."""
_LEAST_TABLE_ROWS = 500
_MOST_COLUMNS, _FEWEST_COLUMNS = 4_096, 8
"""That may split: of all trees together, and of each."""
_MOST_LEVELS = 64
_N_BINS = 16
_MOST_SPLITS = 15
_LEAST_ROWS = 50
"""Of a leaf, in each half of the sample."""
_MISSING = -1e3
"""Stands for the normal score of a missing cell."""
_PRIOR_ROWS = 8.0
"""As which a node's shares count among the rows of its leaves."""
_DEVIATIONS = 2.0
"""By which the mean gain of a split is above none on the rows that judge it."""
_LEAST_GAIN = 0.02
"""Nats a row that all splits together save these."""


@dataclass(frozen=True)
class Split:
    """Where a row goes by one of its cells: a place ≥ 0 is the next split, -1 - k is leaf k.

    Attributes:
        column: Number of the column.
        codes: Of a column of levels, those whose rows go left; None of numbers.
        most: Of numbers, the normal score up to which rows go left; None of levels.
        left, right: Places.
    """

    column: int
    codes: tuple[int, ...] | None
    most: float | None
    left: int
    right: int

    def goes_left(self, codec: ColumnCodec, codes: Codes, values: Numbers) -> Mask:
        """Shape: (n,) twice -> (n,)."""
        if self.codes is not None:
            return np.isin(codes, self.codes)
        assert self.most is not None, "a split of numbers has a score"
        is_left: Mask = _scores(codec, codes, values) <= self.most
        return is_left


@dataclass(frozen=True)
class DecimalTree:
    """The decimals of one column.

    Attributes:
        splits: The first is the root.
        classes: Of each leaf.
        gain: Nats a row of the table that the splits save rows which did not find them.
    """

    splits: tuple[Split, ...]
    classes: tuple[DecimalClasses, ...]
    gain: float

    def codecs(
        self, columns: Sequence[ColumnCodec], j: int, table: EncodedTable
    ) -> tuple[list[NumberCodec], Tensor]:
        """(column j's codec as each leaf has it, the leaf of each row). Shape: (n,)."""
        codec = columns[j]
        assert isinstance(codec, QuantileCodec), "trees are of these"
        leaves = self.leaves(columns, table.codes, table.values)
        return with_classes(codec, self.classes), torch.from_numpy(leaves)

    def leaves(self, columns: Sequence[ColumnCodec], codes: Tensor, values: Tensor) -> Codes:
        """The leaf of each row. Shape: (n, D) twice -> (n,)."""
        at = np.zeros(len(codes), dtype=np.int64)
        for place, split in enumerate(self.splits):  # a split stands before those that follow it
            rows = np.flatnonzero(at == place)
            j = split.column
            is_left = split.goes_left(columns[j], codes[rows, j].numpy(), values[rows, j].numpy())
            at[rows] = np.where(is_left, split.left, split.right)
        return -1 - at

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """The tree as a document, columns by name."""
        splits = [asdict(split) | {"column": names[split.column]} for split in self.splits]
        classes = [classes.to_json() for classes in self.classes]
        return {"splits": splits, "classes": classes, "gain": self.gain}

    @classmethod
    def from_json(cls, document: Mapping[str, Any], names: Sequence[str]) -> DecimalTree:
        """The tree of a document that `to_json` wrote."""
        splits = tuple(
            Split(
                names.index(split["column"]),
                None if split["codes"] is None else tuple(split["codes"]),
                split["most"],
                split["left"],
                split["right"],
            )
            for split in document["splits"]
        )
        classes = tuple(map(DecimalClasses.from_json, document["classes"]))
        return cls(splits, classes, document["gain"])


def decimals_of_rows(
    columns: Sequence[ColumnCodec], table: TypedTable
) -> tuple[DecimalHands | None, dict[int, DecimalTree]]:
    """(the hands of a typed table, the trees of its columns by number).

    Hands and trees say the same of the columns that have both: the ones stay that save more.
    """
    hands, trees = DecimalHands.fit(columns, table), fit_trees(columns, table)
    if hands is not None:
        rivals = trees.keys() & hands.classes.keys()
        if sum(trees[j].gain for j in rivals) > hands.gain:
            return None, trees
        trees = {j: tree for j, tree in trees.items() if j not in rivals}
    return hands, trees


def fit_trees(columns: Sequence[ColumnCodec], table: TypedTable) -> dict[int, DecimalTree]:
    """The trees of a typed table's columns of which the others tell the decimals, by number."""
    codecs = codecs_that_differ(columns)
    if not codecs or len(table) < _LEAST_TABLE_ROWS:
        return {}
    random = np.random.default_rng(len(table))
    places = np.sort(random.choice(len(table), min(len(table), _MOST_ROWS), replace=False))
    order = random.permutation(len(places))
    step = -(-len(columns) // max(_MOST_COLUMNS // len(codecs), _FEWEST_COLUMNS))
    others = {j: codec for j, codec in enumerate(columns) if j % step == 0 and _may_split(codec)}
    frame = rows_at(table, places, [columns[j].name for j in codecs.keys() | others.keys()])
    codes = torch.zeros(len(places), len(columns), dtype=torch.int64)
    values = torch.zeros(len(places), len(columns), dtype=torch.float64)
    for j, codec in others.items():
        cells = codec.encode(frame[codec.name])
        codes[:, j], values[:, j] = map(torch.from_numpy, cells)
    codes.clamp_(min=0)
    axes = [
        _Axis.of(codec, j, codes[order, j].numpy(), values[order, j].numpy())
        for j, codec in others.items()
    ]
    trees = {}
    for j, codec in codecs.items():
        kinds, numbers = written(codec, frame)
        beside = [axis for axis in axes if axis.column != j]
        splits, gain = _grown(beside, kinds[order], classes_of(codec).n_kinds)
        if not splits:
            continue
        is_free = kinds >= 0
        leaves = DecimalTree(splits, (), gain).leaves(columns, codes, values)[is_free]
        decimals = codec.column.decimals
        assert decimals is not None, "they may differ"
        classes = DecimalClasses.of_groups(numbers[is_free], leaves, decimals)
        trees[j] = DecimalTree(splits, classes, gain)
    return trees


def _grown(
    axes: Sequence[_Axis], kinds: Codes, n_kinds: tuple[int, int]
) -> tuple[tuple[Split, ...], float]:
    """The splits of a column's numbers by the decimals that they have, and what they save a row.

    There are none where they save too little.

    Args:
        axes: Of the columns that may split it, of rows in random order.
        kinds: Size and decimals of each number, -1 where these are not free. Shape: (n,).
        n_kinds: How many sizes there are, and decimals of each.
    """
    growth = _Growth(axes, kinds, n_kinds)
    rows = np.flatnonzero(kinds >= 0)
    growth.grow(rows, growth.shares(rows, np.full(n_kinds, 1.0 / n_kinds[1])))
    is_enough = growth.gain >= _LEAST_GAIN * (rows % 2 == 1).sum()
    gain = growth.gain / max(len(kinds) // 2, 1)
    return (tuple(growth.splits), gain) if is_enough else ((), 0.0)


def _may_split(codec: ColumnCodec) -> bool:
    return isinstance(codec, QuantileCodec) or (not codec.is_real and codec.n_codes <= _MOST_LEVELS)


def _scores(codec: ColumnCodec, codes: Codes, values: Numbers) -> Numbers:
    """Normal scores of the cells of a column of numbers, missing ones below. Shape: (n,)."""
    assert isinstance(codec, QuantileCodec), "trees split by no other numbers"
    of_codes = np.array(codec.scores)
    of_codes[: int(codec.has_missing)] = _MISSING
    return np.where(codes == codec.n_codes - 1, values, of_codes[codes])


@dataclass(frozen=True)
class _Axis:
    """Cells of a column in bins.

    Attributes:
        column: Its number.
        bins: Shape: (n,).
        edges: Of numbers, the highest score of each bin but the last; None of levels.
    """

    column: int
    bins: Codes
    edges: Numbers | None

    @classmethod
    def of(cls, codec: ColumnCodec, column: int, codes: Codes, values: Numbers) -> _Axis:
        if not codec.is_real:
            return cls(column, codes, None)
        scores = _scores(codec, codes, values)
        shares = np.arange(1, _N_BINS) / _N_BINS
        # Rounded, they tell of no single row.
        edges = np.unique(np.quantile(scores, shares).round(2)) if len(scores) else scores
        return cls(column, np.searchsorted(edges, scores), edges)

    def split(self, low: Codes) -> tuple[tuple[int, ...] | None, float | None]:
        """What a split says whose rows in these bins go left."""
        if self.edges is None:
            return tuple(sorted(low.tolist())), None
        return None, float(self.edges[low.max()])


@dataclass
class _Growth:
    """A tree while it grows, on rows of which every second one judges.

    Attributes:
        axes: Of the columns that may split it.
        kinds: Of each row's number, size by size. Shape: (n,).
        n_kinds: How many sizes there are, and decimals of each.
        splits: Found so far.
        n_leaves: Found so far.
        gain: Nats that the splits save the judging rows.
    """

    axes: Sequence[_Axis]
    kinds: Codes
    n_kinds: tuple[int, int]
    splits: list[Split] = field(default_factory=list)
    n_leaves: int = 0
    gain: float = 0.0

    def grow(self, rows: Codes, shares: Numbers) -> int:
        """The place of the node of these rows, in whose first half decimals have these shares.

        Shape: (n,), (sizes, decimals).
        """
        may_split = len(rows) >= 4 * _LEAST_ROWS and len(self.splits) < _MOST_SPLITS
        best = self._best(rows[rows % 2 == 0]) if may_split else None
        if best is not None:
            axis, low = best
            is_left = np.isin(axis.bins[rows], low)
            sides = [(rows[side], self.shares(rows[side], shares)) for side in (is_left, ~is_left)]
            gains = np.concatenate([self._gains(*side, shares) for side in sides])
            error = gains.std() / np.sqrt(max(len(gains), 1))
            if gains.mean() > _DEVIATIONS * error:
                self.gain += float(gains.sum())
                place = len(self.splits)
                split = Split(axis.column, *axis.split(low), left=0, right=0)
                self.splits.append(split)
                left, right = (self.grow(*side) for side in sides)
                self.splits[place] = replace(split, left=left, right=right)
                return place
        self.n_leaves += 1
        return -self.n_leaves

    def _best(self, rows: Codes) -> tuple[_Axis, Codes] | None:
        """The axis that splits these rows best, and its bins that go left."""
        best, most = None, 0.0
        for axis in self.axes:
            n_bins = int(axis.bins.max(initial=0)) + 1
            cells = axis.bins[rows] * np.prod(self.n_kinds) + self.kinds[rows]
            counts = np.bincount(cells, minlength=n_bins * int(np.prod(self.n_kinds)))
            counts = counts.reshape(n_bins, *self.n_kinds)
            of_bins = counts.sum(axis=(1, 2))
            order = np.flatnonzero(of_bins)
            if axis.edges is None:
                order = order[_first_coordinates(counts[order].sum(axis=1)).argsort(kind="stable")]
            left = counts[order].cumsum(axis=0)[:-1]
            right = counts.sum(axis=0) - left
            sizes = np.minimum(left.sum(axis=(1, 2)), right.sum(axis=(1, 2)))
            fit = np.where(sizes >= _LEAST_ROWS, _fit(left) + _fit(right), -np.inf)
            fit -= _fit(counts.sum(axis=0)[None])
            if len(fit) and fit.max() > most:
                best, most = (axis, order[: int(fit.argmax()) + 1]), float(fit.max())
        return best

    def shares(self, rows: Codes, prior: Numbers) -> Numbers:
        """Of the decimals, for each size, in the finding rows. Shape: (n,) -> (sizes, decimals)."""
        cells = self.kinds[rows[rows % 2 == 0]]
        counts = np.bincount(cells, minlength=prior.size).reshape(prior.shape)
        shares: Numbers = counts + _PRIOR_ROWS * prior
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def _gains(self, rows: Codes, shares: Numbers, before: Numbers) -> Numbers:
        """Nats by which each judging row's decimals are likelier than before. Shape: (n,)."""
        kinds = self.kinds[rows[rows % 2 == 1]]
        gains: Numbers = np.log(shares.ravel()[kinds] / before.ravel()[kinds])
        return gains


def _first_coordinates(counts: Codes) -> Numbers:
    """Where bins stand on the first axis of their shares of decimals. Shape: (B, C) -> (B,)."""
    rows = counts.sum(axis=1, keepdims=True)
    profiles = counts / rows - counts.sum(axis=0) / rows.sum()
    coordinates: Numbers = profiles @ np.linalg.eigh((profiles * rows).T @ profiles)[1][:, -1]
    return coordinates


def _fit(counts: Codes) -> Numbers:
    """log-likelihood of decimals given sizes, at their shares.

    Shape: (m, sizes, decimals) -> (m,).
    """
    of_sizes = counts.sum(axis=2)
    fit: Numbers = xlogy(counts, counts).sum(axis=(1, 2)) - xlogy(of_sizes, of_sizes).sum(axis=1)
    return fit
