"""What the other cells of a row say of a number's decimals.

A price in yen has none and one in euros two; one month was measured to halves and the next to
thirds; means of three numbers end in thirds. Beside its size, a number's decimals go by the leaf of
a tree over the other columns: half of a sample of rows finds each split, and the other half has to
be likelier by it: by each way to write numbers, or by whether they are whole, short, fractions or
long, for which fewer rows are enough. The numbers of a leaf have the decimals of the table's
numbers of that leaf.

Source: Breiman, Friedman, Olshen and Stone (1984), Classification and Regression Trees. Levels are
split in the order of the first principal coordinate of their shares (Coppersmith, Hong and Hosking
1999).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.special import xlogy
from torch import Tensor

from gcvae.codec.decimals.decimal_classes import DecimalClasses
from gcvae.codec.decimals.decimal_hands import (
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
"""Stands for the position of a missing cell."""
_PRIOR_ROWS = 8.0
"""As which a node's shares count among the rows of its leaves."""
_DEVIATIONS = 2.5
"""By which the mean gain of a split is above none on the rows that judge it."""
_MOST_TRIED = 8
"""Splits of some rows that are judged, by the columns that split them best."""
_LEAST_GAIN = 0.02
"""Nats a row that all splits together save these."""


@dataclass(frozen=True)
class Split:
    """Where a row goes by one of its cells: a place ≥ 0 is the next split, -1 - k is leaf k.

    Attributes:
        column: Number of the column.
        codes: Of a column of levels, those whose rows go left; None of numbers.
        end: Of numbers, the position on their codec's line up to which rows go left; None of
            levels.
        left, right: Places.
    """

    column: int
    codes: tuple[int, ...] | None
    end: float | None
    left: int
    right: int

    def goes_left(self, codec: ColumnCodec, codes: Codes, values: Numbers) -> Mask:
        """Shape: (n,) twice -> (n,)."""
        if self.codes is not None:
            return np.isin(codes, self.codes)
        assert self.end is not None, "a split of numbers has an end"
        is_left: Mask = _positions(codec, codes, values) <= self.end
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
    def from_json(cls, document: Mapping[str, Any], columns: Sequence[ColumnCodec]) -> DecimalTree:
        """The tree of a document that `to_json` wrote."""
        splits = tuple(_read_split(split, columns) for split in document["splits"])
        classes = tuple(map(DecimalClasses.from_json, document["classes"]))
        return cls(splits, classes, document["gain"])


def _read_split(document: Mapping[str, Any], columns: Sequence[ColumnCodec]) -> Split:
    column = [codec.name for codec in columns].index(document["column"])
    codes = None if document["codes"] is None else tuple(document["codes"])
    end = document.get("end")
    if document.get("most") is not None:  # earlier models have the normal score there
        codec = columns[column]
        assert isinstance(codec, QuantileCodec), "trees split by no other numbers"
        end = float(codec.distribution.positions_at(np.array([document["most"]]))[0])
    return Split(column, codes, end, document["left"], document["right"])


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
        found = classes_of(codec)
        ways = [
            _Ways(kinds[order], found.n_kinds),
            _Ways(found.broad_kinds(kinds)[order], found.n_broad),
        ]
        splits, gain = _grown(beside, ways)
        if not splits:
            continue
        is_free = kinds >= 0
        leaves = DecimalTree(splits, (), gain).leaves(columns, codes, values)[is_free]
        decimals = codec.column.decimals
        assert decimals is not None, "they may differ"
        classes = DecimalClasses.of_groups(numbers[is_free], leaves, decimals)
        trees[j] = DecimalTree(splits, classes, gain)
    return trees


def _grown(axes: Sequence[_Axis], ways: Sequence[_Ways]) -> tuple[tuple[Split, ...], float]:
    """The splits of a column's numbers by how they are written, and what they save a row.

    There are none where they save too little.

    Args:
        axes: Of the columns that may split it, of rows in random order.
        ways: To write its numbers; finer ones first.
    """
    growth = _Growth(axes, ways)
    rows = np.flatnonzero(ways[0].kinds >= 0)
    growth.grow(rows, [w.shares(rows, np.full(w.shape, 1.0 / w.shape[1])) for w in ways])
    is_enough = growth.gain >= _LEAST_GAIN * (rows % 2 == 1).sum()
    gain = growth.gain / max(len(ways[0].kinds) // 2, 1)
    return (tuple(growth.splits), gain) if is_enough else ((), 0.0)


def _may_split(codec: ColumnCodec) -> bool:
    return isinstance(codec, QuantileCodec) or (not codec.is_real and codec.n_codes <= _MOST_LEVELS)


def _positions(codec: ColumnCodec, codes: Codes, values: Numbers) -> Numbers:
    """Where the cells of a column of numbers lie on its line, missing ones below. Shape: (n,)."""
    assert isinstance(codec, QuantileCodec), "trees split by no other numbers"
    of_codes = np.concatenate([[_MISSING] * codec.has_missing, codec.code_positions, [0.0]])
    positions: Numbers = of_codes[codes]
    are_others = codes == codec.n_codes - 1
    positions[are_others] = codec.distribution.positions_at(values[are_others])
    return positions


@dataclass(frozen=True)
class _Axis:
    """Cells of a column in bins.

    Attributes:
        column: Its number.
        bins: Shape: (n,).
        edges: Of numbers, the highest position of each bin but the last; None of levels.
    """

    column: int
    bins: Codes
    edges: Numbers | None

    @classmethod
    def of(cls, codec: ColumnCodec, column: int, codes: Codes, values: Numbers) -> _Axis:
        if not codec.is_real:
            return cls(column, codes, None)
        positions = _positions(codec, codes, values)
        shares = np.arange(1, _N_BINS) / _N_BINS
        found = np.quantile(positions, shares) if len(positions) else positions
        # Rounded, they tell of no single row.
        edges = np.unique([float(f"{edge:.3g}") for edge in found])
        return cls(column, np.searchsorted(edges, positions), edges)

    def split(self, low: Codes) -> tuple[tuple[int, ...] | None, float | None]:
        """What a split says whose rows in these bins go left."""
        if self.edges is None:
            return tuple(sorted(low.tolist())), None
        return None, float(self.edges[low.max()])


@dataclass(frozen=True)
class _Ways:
    """How the numbers of rows are written, of which every second row judges.

    Attributes:
        kinds: Of each row's number, size by size, -1 where they are not free. Shape: (n,).
        shape: How many sizes there are, and ways to write numbers of each.
    """

    kinds: Codes
    shape: tuple[int, int]

    def shares(self, rows: Codes, prior: Numbers) -> Numbers:
        """Of the ways, for each size, in the finding rows. Shape: (n,) -> (sizes, ways)."""
        cells = self.kinds[rows[rows % 2 == 0]]
        counts = np.bincount(cells, minlength=prior.size).reshape(prior.shape)
        shares: Numbers = counts + _PRIOR_ROWS * prior
        shares /= shares.sum(axis=1, keepdims=True)
        return shares

    def gains(self, rows: Codes, shares: Numbers, before: Numbers) -> Numbers:
        """Nats by which each judging row's number is likelier than before. Shape: (n,)."""
        kinds = self.kinds[rows[rows % 2 == 1]]
        gains: Numbers = np.log(shares.ravel()[kinds] / before.ravel()[kinds])
        return gains

    def candidates(self, axes: Sequence[_Axis], rows: Codes) -> Iterator[tuple[_Axis, Codes]]:
        """The best splits of rows, by their finding half: an axis and its bins that go left."""
        rows, found = rows[rows % 2 == 0], []
        for axis in axes:
            n_bins = int(axis.bins.max(initial=0)) + 1
            cells = axis.bins[rows] * np.prod(self.shape) + self.kinds[rows]
            counts = np.bincount(cells, minlength=n_bins * int(np.prod(self.shape)))
            counts = counts.reshape(n_bins, *self.shape)
            order = np.flatnonzero(counts.sum(axis=(1, 2)))
            if axis.edges is None:
                order = order[_first_coordinates(counts[order].sum(axis=1)).argsort(kind="stable")]
            left = counts[order].cumsum(axis=0)[:-1]
            right = counts.sum(axis=0) - left
            sizes = np.minimum(left.sum(axis=(1, 2)), right.sum(axis=(1, 2)))
            fit = np.where(sizes >= _LEAST_ROWS, _fit(left) + _fit(right), -np.inf)
            fit -= _fit(counts.sum(axis=0)[None])
            if len(fit) and fit.max() > 0.0:
                found.append((float(fit.max()), axis, order[: int(fit.argmax()) + 1]))
        found.sort(key=lambda split: -split[0])
        return ((axis, low) for _, axis, low in found[:_MOST_TRIED])


@dataclass
class _Growth:
    """A tree while it grows.

    Attributes:
        axes: Of the columns that may split it.
        ways: To write its numbers; the first by which a split is good decides.
        splits: Found so far.
        n_leaves: Found so far.
        gain: Nats that the splits save the judging rows.
    """

    axes: Sequence[_Axis]
    ways: Sequence[_Ways]
    splits: list[Split] = field(default_factory=list)
    n_leaves: int = 0
    gain: float = 0.0

    def grow(self, rows: Codes, shares: Sequence[Numbers]) -> int:
        """The place of the node of these rows, in whose first half the ways have these shares.

        Shape: (n,), (sizes, ways) each.
        """
        may_split = len(rows) >= 4 * _LEAST_ROWS and len(self.splits) < _MOST_SPLITS
        found = self._split(rows, shares) if may_split else None
        if found is None:
            self.n_leaves += 1
            return -self.n_leaves
        axis, low = found
        place = len(self.splits)
        split = Split(axis.column, *axis.split(low), left=0, right=0)
        self.splits.append(split)
        is_left = np.isin(axis.bins[rows], low)
        left, right = (
            self.grow(rows[side], self._shares(rows[side], shares)) for side in (is_left, ~is_left)
        )
        self.splits[place] = replace(split, left=left, right=right)
        return place

    def _split(self, rows: Codes, shares: Sequence[Numbers]) -> tuple[_Axis, Codes] | None:
        """The first split by which the judging rows are likelier, whose gain is counted."""
        for ways, before in zip(self.ways, shares, strict=True):
            for axis, low in ways.candidates(self.axes, rows):
                is_left = np.isin(axis.bins[rows], low)
                sides = [rows[side] for side in (is_left, ~is_left)]
                gains = np.concatenate(
                    [ways.gains(side, ways.shares(side, before), before) for side in sides]
                )
                error = gains.std() / np.sqrt(max(len(gains), 1))
                if gains.mean() > _DEVIATIONS * error:
                    self.gain += float(gains.sum())
                    return axis, low
        return None

    def _shares(self, rows: Codes, before: Sequence[Numbers]) -> list[Numbers]:
        return [w.shares(rows, prior) for w, prior in zip(self.ways, before, strict=True)]


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
