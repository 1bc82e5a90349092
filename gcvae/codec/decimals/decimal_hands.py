"""Whose hand wrote a row: numbers of one row have their decimals together.

A table of several sources has rows of three decimals beside rows of four. Each row has a hand k,
and its numbers have decimals by their sizes and that hand, apart from each other: a latent class
model, fitted by EM to half of a sample of rows, and taken where the other half is likelier by it.
The hand of a drawn row follows the shares that the rows of its level have, in the column of levels
that says the most of hands. Rows of one hand have the classes of decimals that they would have as a
table of their own.

Source: Lazarsfeld and Henry (1968), Latent Structure Analysis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from gcvae.codec.column_codecs import ContinuousCodec
from gcvae.codec.decimals.decimal_classes import DecimalClasses
from gcvae.codec.quantile_codec import QuantileCodec
from gcvae.files.typed_columns import TypedTable, rows_at
from gcvae.numerics.generators import uniform

if TYPE_CHECKING:
    from gcvae.codec.column_codec import ColumnCodec
    from gcvae.codec.region import Region

NumberCodec = ContinuousCodec | QuantileCodec
Codes = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.float64]
_MOST_HANDS = 4
_MOST_ROWS = 10_000
"""Of a sample, half of which finds the hands; the other half judges."""
_LEAST_ROWS = 500
_LEAST_HAND_ROWS = 100
"""Of one hand."""
_LEAST_GAIN = 0.02
"""Nats a row that one hand more saves unseen rows."""
_LEAST_INFORMATION = 0.01
"""Nats that a column of levels has to say of hands, beyond chance."""
_MOST_LEVELS = 64
_STARTS, _STEPS = 3, 30


@dataclass(frozen=True)
class DecimalHands:
    """The hands of a table.

    Attributes:
        by: Number of the column whose code says the most of hands; None where all rows are alike.
        shares: Of the hands, for each code of that column, or for all. Shape: (codes or 1, hands).
        classes: For each hand the classes of decimals of columns by number; None for no rounding.
        gain: Nats a row that hands save rows which did not find them.
    """

    by: int | None
    shares: Numbers
    classes: Mapping[int, tuple[DecimalClasses | None, ...]]
    gain: float

    @classmethod
    def fit(cls, columns: Sequence[ColumnCodec], table: TypedTable) -> DecimalHands | None:
        """The hands of a typed table; None where all rows are written alike."""
        codecs = codecs_that_differ(columns)
        n = len(table)
        if len(codecs) < 2 or n < _LEAST_ROWS:
            return None
        random = np.random.default_rng(n)
        rows = np.sort(random.choice(n, min(n, _MOST_ROWS), replace=False))
        found = [written(codec, rows_at(table, rows, [codec.name])) for codec in codecs.values()]
        kinds = [of_column[0] for of_column in found]
        sizes = [classes_of(codec).n_kinds for codec in codecs.values()]
        hands, gain = _found_hands(kinds, sizes, random)
        if hands is None:
            return None
        by, shares = _told_by(columns, hands, rows, table)
        classes = {
            j: tuple(_classes(codec, numbers[hands == k]) for k in range(hands.max() + 1))
            for (j, codec), (_, numbers) in zip(codecs.items(), found, strict=True)
        }
        return cls(by, shares, classes, gain)

    def drawn(self, codes: Tensor, generator: torch.Generator) -> Tensor:
        """The hands of drawn rows. Shape: (n, D) -> (n,)."""
        at = torch.zeros(len(codes), dtype=torch.int64)
        if self.by is not None:
            at = codes[:, self.by].long().clamp(min=0)
        u = uniform((len(codes), 1), generator, torch.float64)
        return (torch.from_numpy(self.shares).cumsum(1)[at, :-1] <= u).sum(1)

    def codecs(self, codec: NumberCodec, j: int) -> list[NumberCodec]:
        """The codec of column j as each hand has it; one, where all hands are alike there."""
        if j not in self.classes:
            return [codec]
        return with_classes(codec, self.classes[j])

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """The hands as a document, columns by name."""
        return {
            "by": None if self.by is None else names[self.by],
            "shares": self.shares.tolist(),
            "gain": self.gain,
            "classes": {
                names[j]: [None if c is None else c.to_json() for c in classes]
                for j, classes in self.classes.items()
            },
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], names: Sequence[str]) -> DecimalHands:
        """The hands of a document that `to_json` wrote."""
        by = document["by"]
        classes = {
            names.index(name): tuple(None if c is None else DecimalClasses.from_json(c) for c in of)
            for name, of in document["classes"].items()
        }
        by = None if by is None else names.index(by)
        return cls(by, np.array(document["shares"]), classes, document.get("gain", 0.0))


def with_classes(codec: NumberCodec, classes: Sequence[DecimalClasses | None]) -> list[NumberCodec]:
    """The codec with each of these."""
    assert isinstance(codec, QuantileCodec), "hands and trees are of these"
    assert isinstance(codec.line, ContinuousCodec), "only these have decimals"
    return [replace(codec, line=replace(codec.line, classes=c)) for c in classes]


def rounded(
    codecs: Sequence[NumberCodec], values: Tensor, u: Tensor, region: Region | None, hands: Tensor
) -> Tensor:
    """Values of one column, rounded to the decimals that u chooses, within the region.

    Args:
        codecs: Of the column, for each hand; or one for all.
        values: Of drawn numbers. Shape: (n,).
        u: Uniform on (0, 1). Shape: (n,).
        region: What they were drawn from; everything if None.
        hands: Of their rows. Shape: (n,).
    """

    def are_allowed(found: Numbers, at: Codes) -> Any:
        if region is None:
            return np.ones(len(found), dtype=bool)
        placed = torch.from_numpy(found)[:, None]
        return ((placed >= region.lower) & (placed <= region.upper)).any(dim=1).numpy()

    found = values.clone()
    for k, codec in enumerate(codecs):
        at = (hands == k) if len(codecs) > 1 else torch.ones_like(hands, dtype=torch.bool)
        own = codec.with_decimals(values[at].numpy(), u[at].numpy(), are_allowed)
        found[at] = torch.from_numpy(own)
    return found


def codecs_that_differ(columns: Sequence[ColumnCodec]) -> dict[int, QuantileCodec]:
    """The codecs, by number, of columns with numbers that have fewer decimals by choice."""
    found = {j: codec for j, codec in enumerate(columns) if isinstance(codec, QuantileCodec)}
    return {j: codec for j, codec in found.items() if _may_differ(codec)}


def _may_differ(codec: QuantileCodec) -> bool:
    """Whether some of the column's numbers have fewer decimals than others, by choice."""
    line = codec.line
    return isinstance(line, ContinuousCodec) and line.classes is not None and not line.classes.lost


def classes_of(codec: QuantileCodec) -> DecimalClasses:
    """The classes of a codec that differ."""
    assert isinstance(codec.line, ContinuousCodec)
    assert codec.line.classes is not None, "there are decimals"
    return codec.line.classes


def written(codec: QuantileCodec, frame: Any) -> tuple[Codes, Numbers]:
    """(kind of each cell, -1 where its digits are its own; its number, NaN there). Shape: (n,)."""
    series = frame[codec.name]
    codes, values = codec.encode(series)
    is_free = (codes == codec.n_codes - 1) & ~codec.distribution.are_repeated(values)
    numbers = np.where(is_free, series.to_numpy(dtype=np.float64, na_value=np.nan), np.nan)
    is_free &= numbers != 0.0
    kinds = np.full(len(numbers), -1, dtype=np.int64)
    kinds[is_free] = classes_of(codec).kinds(numbers[is_free])
    return kinds, numbers


def _classes(codec: QuantileCodec, numbers: Numbers) -> DecimalClasses | None:
    """The classes of one hand's numbers, NaN for none."""
    return DecimalClasses.fit(numbers[np.isfinite(numbers)], codec.column.decimals, 0.0)


def _found_hands(
    kinds: Sequence[Codes], sizes: Sequence[tuple[int, int]], random: np.random.Generator
) -> tuple[Codes | None, float]:
    """(the likeliest hand of each row, nats a row that hands save the judging rows).

    None where these need no hands.

    Args:
        kinds: Of each column, size by size. Shape: (n,) each.
        sizes: How many sizes there are, and decimals of each.
    """
    is_finding = random.permutation(len(kinds[0])) % 2 == 0
    finding, judging = ([k[half] for k in kinds] for half in (is_finding, ~is_finding))
    one = best = _LatentClasses.fit(finding, sizes, np.ones((len(finding[0]), 1)))
    for n_hands in range(2, _MOST_HANDS + 1):
        starts = (random.dirichlet(np.ones(n_hands), len(finding[0])) for _ in range(_STARTS))
        models = [_LatentClasses.fit(finding, sizes, shares) for shares in starts]
        more = max(models, key=lambda model: model.log_likelihood(finding))
        if more.log_likelihood(judging) - best.log_likelihood(judging) < _LEAST_GAIN:
            break
        best = more
    hands = np.asarray(best.log_joint(kinds)[0].argmax(axis=1))
    counts = np.bincount(hands, minlength=len(best.log_shares))
    are_several = len(counts) > 1 and counts.min() >= _LEAST_HAND_ROWS
    gain = best.log_likelihood(judging) - one.log_likelihood(judging)
    return (hands, gain) if are_several else (None, 0.0)


@dataclass(frozen=True)
class _LatentClasses:
    """log P(hand), and for each column log P(kind | hand). Shape: (K,), (kinds, K) each."""

    log_shares: Numbers
    log_kinds: tuple[Numbers, ...]

    @classmethod
    def fit(
        cls, kinds: Sequence[Codes], sizes: Sequence[tuple[int, int]], shares: Numbers
    ) -> _LatentClasses:
        """EM from the rows' shares of the hands. Shape: (n,) each, (n, K)."""
        for _ in range(_STEPS if shares.shape[1] > 1 else 1):
            model = cls._counted(kinds, sizes, shares)
            joint, total = model.log_joint(kinds)
            shares = np.exp(joint - total[:, None])
        return model

    @classmethod
    def _counted(
        cls, kinds: Sequence[Codes], sizes: Sequence[tuple[int, int]], shares: Numbers
    ) -> _LatentClasses:
        n, n_hands = shares.shape
        tables = []
        for k, size in zip(kinds, sizes, strict=True):
            n_kinds = size[0] * size[1]
            counts = [np.bincount(k + 1, w, minlength=n_kinds + 1)[1:] for w in shares.T]
            rows = (np.stack(counts, axis=1) + 0.5).reshape(*size, n_hands)
            tables.append(np.log(rows / rows.sum(axis=1, keepdims=True)).reshape(-1, n_hands))
        return cls(np.log((shares.sum(axis=0) + 1.0) / (n + n_hands)), tuple(tables))

    def log_likelihood(self, kinds: Sequence[Codes]) -> float:
        """Mean log P(kinds) of rows. Shape: (n,) each."""
        return float(self.log_joint(kinds)[1].mean())

    def log_joint(self, kinds: Sequence[Codes]) -> tuple[Numbers, Numbers]:
        """(log P(hand, kinds), log P(kinds)). Shape: (n,) each -> (n, K), (n,)."""
        joint = np.tile(self.log_shares, (len(kinds[0]), 1))
        for k, table in zip(kinds, self.log_kinds, strict=True):
            joint += np.where(k[:, None] >= 0, table[k], 0.0)
        return joint, np.logaddexp.reduce(joint, axis=1)


def _told_by(
    columns: Sequence[ColumnCodec], hands: Codes, rows: Codes, table: TypedTable
) -> tuple[int | None, Numbers]:
    """The column of levels that says the most of hands, and their shares at each of its codes."""
    alone = np.bincount(hands) / len(hands)
    n_hands = len(alone)
    best, most = None, _LEAST_INFORMATION
    shares = alone[None]
    for j, codec in enumerate(columns):
        if codec.is_real or codec.n_codes > _MOST_LEVELS:
            continue
        codes = codec.encode(rows_at(table, rows, [codec.name])[codec.name])[0].clip(min=0)
        counts = np.bincount(codes * n_hands + hands, minlength=codec.n_codes * n_hands)
        counts = counts.reshape(-1, n_hands)
        of_codes = (counts + alone) / (counts.sum(axis=1, keepdims=True) + 1.0)
        information = float((counts * np.log(of_codes / alone)).sum()) / len(hands)
        chance = (codec.n_codes - 1) * (n_hands - 1) / (2 * len(hands))
        if information - chance > most:
            best, most, shares = j, information - chance, of_codes
    return best, shares
