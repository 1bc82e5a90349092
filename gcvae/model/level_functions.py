"""Functional dependencies between the integer codes of columns, such as product -> category, or
origin and destination -> distance.

A dependency (`LevelFunction`) lists the codes that a column y can have given the codes of its
parents. The decoder generates one of these columns last, y or a parent, and enforces the dependency
on the code of this column. C is the set of its codes that satisfy the dependency, and B the set of
those that violate it. The probability p(k) of code k under the network is replaced by

    p'(k) = p(C or B) (1 - e) p(k) / p(C)  for k in C,      p(C or B) e p(k) / p(B)  for k in B

with e the share of exceptions: the share of the table's rows that violate the dependency. Codes in
neither set, such as that of missing cells, are not constrained and keep their probabilities, so
p(C or B) may be less than one. If the codes of the parents occur with too many different codes of
y, no code is constrained. Probabilities still add up to one, the network need not learn the
dependency, and generated rows have the table's share of exceptions.

If every row of the table satisfies a dependency, all generated rows do too (e = 0). When rows are
scored, e is small but positive unless the dependency is a hard rule, so that a row that violates it
has a finite score.

Some dependencies, called *relations*, allow several codes of y for each code of the parent: those
that occur with this code in at least two rows. Other dependencies are conditions on two columns,
such as "y is missing where its parent is missing" or "y is missing where its parent has a certain
level". A condition may divide the cells of a column into just two *classes*, missing and present.

# PAPER-DIFF: the paper has no rules between columns. The autoregressive decoder enforces
# functional dependencies between coded columns.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from gcvae.arrays import Codes, Mask, Numbers
from gcvae.model.networks import ColumnShape, set_constants

_LEAST_SHARE = 0.1
"""Minimum share of an allowed code of y among the rows with the same parents' codes."""
_LEAST_ROWS = 2
"""Minimum number of rows with an allowed code, unless the parents' codes occur in one row only."""
_MOST_EXCEPTIONS = 0.5
"""Largest share of exceptions; parents' codes with more are not constrained."""
_NOTHING = -1e29
"""Log of probability zero; finite, so that it has a gradient."""
_LOW = 1e-30
"""Sums of probabilities above this are computed without logarithms."""


@dataclass(frozen=True)
class LevelFunction:
    """Functional dependency: the codes of r parent columns determine the code of a column y, with
    exceptions.

    Attributes:
        column: Index of y among the model's columns.
        parents: Indices of the parent columns.
        pairs: Allowed combinations of the parents' codes and, last, the code of y. Shape: (m, r +
            1).
        exceptions: Share of rows that violate the dependency; 0 for a hard rule.
        is_exact: Whether every row of the table satisfies it, so that generated rows do too.
        has_missing: Whether code 0 of y stands for missing; missing cells are not constrained.
        class_counts: Contingency table of a condition on two columns, such as "y is missing where
            its parent is missing": entry [a, b] is the number of rows with class a of the parent
            and class b of y. The classes of a column are its codes or, if the condition
            distinguishes only missing cells, 0 for missing and 1 for all other codes. If there are
            counts, `pairs` contains classes instead of codes. None for other dependencies. Shape:
            (number of classes of the parent, number of classes of y).
    """

    column: int
    parents: tuple[int, ...]
    pairs: Codes
    exceptions: float
    has_missing: bool = False
    class_counts: Codes | None = None
    is_exact: bool = False

    @classmethod
    def fit(
        cls,
        columns: Sequence[int],
        rows: Codes,
        *,
        has_missing: bool = False,
        is_hard: bool = False,
    ) -> Self:
        """Fits a functional dependency to the rows of a table.

        A code of y is allowed if enough of the rows with the same parents' codes have it; rows with
        another code of y are exceptions. If the parents' codes occur in a single row, its code of y
        is allowed, but the row does not count in the share of exceptions. With x exceptions in n
        rows the share is (x + 1/2) / (n + 1).

        Args:
            columns: Indices of the r parents and, last, of y.
            rows: Codes of these columns in the rows without missing cells. Shape: (n, r + 1).
            has_missing: Whether code 0 of y stands for missing.
            is_hard: Whether the rule is hard, so that no exceptions are generated.
        """
        pairs, counts = np.unique(rows, axis=0, return_counts=True)
        _, key = np.unique(pairs[:, :-1], axis=0, return_inverse=True)
        key = key.reshape(-1)
        n_rows = np.bincount(key, counts)
        is_own = (counts >= _LEAST_ROWS) & (counts >= _LEAST_SHARE * n_rows[key])
        n_breaking = np.bincount(key, np.where(is_own, 0, counts))
        is_tested = (n_rows > 1) & (n_breaking <= _MOST_EXCEPTIONS * n_rows)
        is_constrained = is_tested | (n_rows == 1)
        is_own |= n_rows[key] == 1
        share = (n_breaking[is_tested].sum() + 0.5) / (n_rows[is_tested].sum() + 1.0)
        exceptions = 0.0 if is_hard else float(share)
        kept = pairs[is_own & is_constrained[key]]
        is_exact = bool(is_constrained.all()) and not n_breaking[is_tested].any()
        parents = tuple(columns[:-1])
        return cls(columns[-1], parents, kept, exceptions, has_missing, is_exact=is_exact)

    @classmethod
    def of_pairs(cls, columns: tuple[int, int], rows: Codes) -> Self:
        """Fits the dependency "each code of the parent column occurs only with certain codes of
        column y" to n rows. `columns` are the indices of the parent and of y, `rows` their codes,
        of shape (n, 2).

        Pairs of codes that occur in at least two rows are allowed. For each code of the parent, the
        probability that a new row contains a pair that is not in the table is estimated as
        (n_1 + 2 n_2) / n (Good 1953): n is the number of rows with this code, n_1 the number of its
        pairs that occur in one row, n_2 the number of those that occur in two. Codes for which it
        exceeds one half are not constrained.
        """
        pairs, counts = np.unique(rows, axis=0, return_counts=True)
        _, key = np.unique(pairs[:, 0], return_inverse=True)
        n_rows = np.bincount(key, counts)
        n_others = np.bincount(key, np.where(counts <= _LEAST_ROWS, counts, 0))
        is_constrained = n_others <= _MOST_EXCEPTIONS * n_rows
        share = (n_others[is_constrained].sum() + 0.5) / (n_rows[is_constrained].sum() + 1.0)
        kept = pairs[(counts >= _LEAST_ROWS) & is_constrained[key]]
        return cls(columns[1], columns[:1], kept, float(share))

    @classmethod
    def of_classes(cls, columns: tuple[int, int], rows: Codes, allowed: Mask) -> Self:
        """Fits a condition on a parent and a column y, such as "y is missing where its parent is
        missing".

        Args:
            columns: Indices of the parent and of y.
            rows: Codes of both columns. Shape: (n, 2).
            allowed: Entry [a, b] is whether the condition allows class a of the parent with class b
                of y. Classes are codes or, in a column with two classes, 0 for missing and 1 for
                present. Shape: (number of classes of the parent, of y).
        """
        known = np.minimum(rows, np.array(allowed.shape) - 1)
        cell_index = known @ np.array([allowed.shape[1], 1])
        counts = np.bincount(cell_index, minlength=allowed.size).reshape(allowed.shape)
        n_kept = counts[allowed].sum()
        exceptions = (len(rows) - n_kept + 0.5) / (len(rows) + 1.0)
        is_exact = bool(n_kept == len(rows))
        pairs = np.argwhere(allowed)
        return cls(
            columns[1],
            columns[:1],
            pairs,
            float(exceptions),
            class_counts=counts,
            is_exact=is_exact,
        )

    def classes(self, codes: Tensor, at: Sequence[int]) -> Tensor:
        """Converts codes to the classes of a condition: 0 for missing and 1 for present, or the
        code itself. Other dependencies return codes unchanged.

        Args:
            codes: Codes of some of the dependency's columns. Shape: (n, len(at)).
            at: Position of each of these columns in `columns`.

        Shape: (n, len(at)).
        """
        if self.class_counts is None:
            return codes
        return torch.minimum(codes, codes.new_tensor([self.class_counts.shape[i] - 1 for i in at]))

    def pairs_by_code(self, at: int, n_codes: int) -> Codes:
        """Returns the allowed combinations, `pairs`, with the classes of one column replaced by its
        codes.

        The class "present" stands for every code except missing, so a combination that contains it
        is repeated for each of these codes. If the column is not divided into such classes, `pairs`
        is returned unchanged.

        Args:
            at: Position of the column in `columns`.
            n_codes: Number of codes of the column.

        Shape: (number of combinations, r + 1).
        """
        if self.class_counts is None or self.class_counts.shape[at] == n_codes:
            return self.pairs
        known = self.pairs[self.pairs[:, at] == 1]
        each = np.repeat(known, n_codes - 1, axis=0)
        each[:, at] = np.tile(np.arange(1, n_codes), len(known))
        return np.concatenate([self.pairs[self.pairs[:, at] == 0], each])

    def shares(self, at: int, given: Codes) -> Numbers:
        """Returns the share of rows expected to violate the dependency, for each of m combinations
        of codes of all its columns but the one that is generated last.

        The share is `exceptions` for every combination, except in a condition on two columns (see
        `class_counts`). There a combination is a class of the column that is generated first, and
        the share is estimated from the table's rows with this class.

        Args:
            at: Position in `columns` of the column that is generated last.
            given: Class of the column that is generated first. Dependencies without
                `class_counts` use only the length of this array. Shape: (m,).
        """
        if self.class_counts is None:
            return np.full(len(given), self.exceptions)
        fits = np.zeros(self.class_counts.shape, dtype=bool)
        fits[self.pairs[:, 0], self.pairs[:, 1]] = True
        counts, fits = (self.class_counts, fits) if at == 1 else (self.class_counts.T, fits.T)
        shares = ((counts * ~fits).sum(axis=1) + 0.5) / (counts.sum(axis=1) + 1.0)
        return np.asarray(shares[given])

    @property
    def columns(self) -> tuple[int, ...]:
        """Indices of the parents and, last, of y."""
        return (*self.parents, self.column)

    @property
    def is_hard(self) -> bool:
        """Whether the dependency is a hard rule, without exceptions."""
        return self.exceptions == 0.0

    @property
    def follows(self) -> bool:
        """Whether the decoder has to generate y after its parents.

        In a soft rule with a single parent, y may come first; its code then restricts the codes of
        the parent.
        """
        return len(self.parents) > 1 or self.is_hard

    def to_json(self, names: Sequence[str]) -> dict[str, Any]:
        """Returns a JSON-compatible dict for `from_json`; `names` are the names of all columns."""
        return {
            "column": names[self.column],
            "of": [names[j] for j in self.parents],
            "pairs": self.pairs.tolist(),
            "exceptions": self.exceptions,
            "has_missing": self.has_missing,
            "blanks": None if self.class_counts is None else self.class_counts.tolist(),
            "is_exact": self.is_exact,
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any], columns: Sequence[ColumnShape]) -> Self:
        """Restores a dependency from a dict that `to_json` returned. Raises KeyError or ValueError
        if a member is missing or does not fit the columns."""
        names = [column.name for column in columns]
        own = [names.index(name) for name in (*document["of"], document["column"])]
        pairs = np.asarray(document["pairs"], dtype=np.int64)
        n_codes = [columns[j].n_codes for j in own]
        exceptions = float(document["exceptions"])
        is_whole = pairs.ndim == 2 and pairs.shape[1:] == (len(own),) and len(pairs) > 0
        if not is_whole or (pairs < 0).any() or (pairs >= n_codes).any():
            raise ValueError(f"a function of {document['column']!r} has codes that there are not")
        class_counts = document["blanks"]
        class_counts = None if class_counts is None else np.asarray(class_counts, dtype=np.int64)
        is_of_classes = class_counts is None or (
            class_counts.ndim == len(own) == 2 and (pairs < class_counts.shape).all()
        )
        if len({*own}) < max(len(own), 2) or not 0.0 <= exceptions < 1.0 or not is_of_classes:
            raise ValueError(f"a function of {document['column']!r} is none")
        has_missing = bool(document["has_missing"])
        is_exact = bool(document.get("is_exact", False))  # files of earlier builds lack it
        return cls(own[-1], tuple(own[:-1]), pairs, exceptions, has_missing, class_counts, is_exact)


def by_decreasing_exceptions(functions: Iterable[LevelFunction]) -> list[LevelFunction]:
    """Returns dependencies in the order in which they are applied: by decreasing share of
    exceptions (rows that violate the dependency).

    A dependency may change the result of those applied before it, so only the last one reproduces
    its share exactly. Hard rules, which have no exceptions, therefore come last.
    """
    return sorted(functions, key=lambda function: -function.exceptions)


class FunctionStep(nn.Module):
    """Enforces a functional dependency: changes the code probabilities of the last of its columns
    in the decoder's order, given the codes of its other columns.

    Attributes:
        function: The dependency.
        last: Index of the last column.
        given: Indices of the r other columns.
        given_at: Their positions in `function.columns`.
        strides: Weights that combine the codes of `given` into one integer key. Shape: (r,).
        keys: Keys of the constrained combinations of codes, ascending. Shape: (m,).
        fitting: Codes of the last column that satisfy the dependency, padded. Shape: (m, k).
        counted: Mask of the entries of `fitting` that are not padding. Shape: (m, k).
        is_constrained: Mask of the last column's K codes that are constrained. Shape: (K,).
        can_violate: Whether a constrained code can violate the dependency, for each key. Shape:
            (m,).
        shares: Expected share of rows that violate the dependency for each key, in scores. Shape:
            (m,).
        drawn_shares: The same share in generated rows. Shape: (m,).
    """

    strides: Tensor
    keys: Tensor
    fitting: Tensor
    counted: Tensor
    is_constrained: Tensor
    can_violate: Tensor
    shares: Tensor
    drawn_shares: Tensor

    def __init__(self, function: LevelFunction, last: int, n_codes: Sequence[int]) -> None:
        super().__init__()
        self.function = function
        self.last = last
        self.given = [j for j in function.columns if j != last]
        at = function.columns.index(last)
        pairs = function.pairs_by_code(at, n_codes[last])
        codes = pairs[:, at]
        if last == function.column:
            is_constrained = np.arange(n_codes[last]) >= function.has_missing
        else:
            is_constrained = np.isin(np.arange(n_codes[last]), codes)
        self.given_at = [function.columns.index(j) for j in self.given]
        class_counts = function.class_counts
        sizes = [n_codes[j] for j in self.given]
        sizes = sizes if class_counts is None else [class_counts.shape[i] for i in self.given_at]
        strides = np.array([math.prod(sizes[i + 1 :]) for i in range(len(sizes))], dtype=np.int64)
        numbers = np.delete(pairs, at, axis=1) @ strides
        keys, key_index = np.unique(numbers, return_inverse=True)
        fitting, counted = _codes_by_key(key_index.reshape(-1), codes, len(keys))
        shares = torch.from_numpy(function.shares(at, keys))
        set_constants(
            self,
            strides=torch.from_numpy(strides),
            keys=torch.from_numpy(keys),
            fitting=torch.from_numpy(fitting),
            counted=torch.from_numpy(counted),
            is_constrained=torch.from_numpy(is_constrained),
            can_violate=torch.from_numpy(counted.sum(axis=1) < is_constrained.sum()),
            shares=shares,
            drawn_shares=torch.zeros_like(shares) if function.is_exact else shares,
        )

    def forward(self, log_beta: Tensor, codes: Tensor, shares: Tensor | None = None) -> Tensor:
        """Returns log probabilities of the last column's codes, with the dependency enforced.

        Args:
            log_beta: Log probabilities without the dependency, possibly padded. Shape: (..., n, K).
            codes: Codes of the r other columns. Shape: (n, r).
            shares: Expected share of violations for each key; None for `self.shares`. Shape: (m,).
        """
        is_known, key_index = self._key_indices(codes)
        at = self.fitting[key_index].expand(*log_beta.shape[:-1], -1)
        fits = torch.zeros_like(log_beta, dtype=torch.bool).scatter(-1, at, True)
        breaks = self._applies_to(log_beta.shape[-1]) & ~fits
        fitting = log_beta.gather(-1, at), self.counted[key_index]
        log_fit, log_break = _log_sides(log_beta, fits, breaks, fitting)
        can_violate = is_known & (log_fit > _NOTHING) & (log_break > _NOTHING)
        log_both = torch.logaddexp(log_fit, log_break)
        share = (self.shares if shares is None else shares)[key_index].to(log_beta.dtype)
        kept = torch.where(can_violate, log_both - log_fit + (-share).log1p(), 0.0)[..., None]
        broken = torch.where(can_violate, log_both - log_break + share.log(), 0.0)[..., None]
        return log_beta + torch.where(fits, kept, torch.where(breaks, broken, 0.0))

    def masses(self, masses: Tensor, codes: Tensor) -> Tensor:
        """Returns unnormalised probabilities of the last column's codes with the dependency
        enforced, for generation. Shape: masses (n, K), codes of the other columns (n, r) -> (n, K).

        If the total probability of the codes that satisfy the dependency, or of those that violate
        it, underflows, logarithms are used, so that hard rules hold for improbable codes too.
        """
        is_known, key_index = self._key_indices(codes)
        at = self.fitting[key_index]
        fitting = masses.gather(-1, at)
        others = masses.scatter(-1, at, 0.0)
        applies = self._applies_to(masses.shape[-1])
        p_fit = (fitting * self.counted[key_index]).sum(-1)
        p_break = (others if bool(applies.all()) else others * applies).sum(-1)
        p_both = p_fit + p_break
        can_violate = is_known & self.can_violate[key_index]
        is_under = torch.minimum(p_fit, p_break) <= _LOW * p_both
        if bool((is_under & can_violate).any()):
            log_beta = torch.log_softmax(masses.log(), -1)
            kept_in_logs: Tensor = self(log_beta, codes, self.drawn_shares)
            return kept_in_logs.exp()
        share = self.drawn_shares[key_index].to(masses.dtype)
        kept = torch.where(can_violate, (1.0 - share) * p_both / p_fit, 1.0)[:, None]
        broken = torch.where(can_violate, share * p_both / p_break, 1.0)[:, None]
        others *= broken if bool(applies.all()) else torch.where(applies, broken, 1.0)
        return others.scatter_(-1, at, fitting * kept)

    def log_prob(self, log_beta: Tensor, codes: Tensor, own: Tensor) -> Tensor:
        """Returns the log probability of one code of the last column in each row, with the
        dependency enforced. This is faster than `forward` if all rows satisfy the dependency.

        Args:
            log_beta: Log probabilities without the dependency. Shape: (..., n, K).
            codes: Codes of the r other columns. Shape: (n, r).
            own: The code of the last column; must not be -1 (unknown). Shape: (n,).

        Shape: (..., n).
        """
        is_known, key_index = self._key_indices(codes)
        at = self.fitting[key_index]
        fits = is_known & (at == own[:, None]).any(-1)
        fitting = log_beta.gather(-1, at.expand(*log_beta.shape[:-1], -1)).exp()
        p_fit = (fitting * self.counted[key_index]).sum(-1)
        p_both = (log_beta.exp() * self._applies_to(log_beta.shape[-1])).sum(-1)
        can_violate = fits & self.can_violate[key_index]
        breaks = is_known & ~fits & self.is_constrained[own]
        own = own.expand(log_beta.shape[:-1])[..., None]
        if bool((breaks | (can_violate & ((p_fit < _LOW) | (p_both <= p_fit)))).any()):
            whole: Tensor = self(log_beta, codes)
            return whole.gather(-1, own).squeeze(-1)
        ratio = p_both.clamp(min=_LOW).log() - p_fit.clamp(min=_LOW).log()
        kept = ratio + (-self.shares[key_index]).log1p().to(log_beta.dtype)
        return log_beta.gather(-1, own).squeeze(-1) + torch.where(can_violate, kept, 0.0)

    def _key_indices(self, codes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns whether each row's combination of codes is constrained, and the index of its key
        in `keys`. Shape: codes (n, r) -> (n,) each."""
        classes = self.function.classes(codes.clamp(min=0), self.given_at)
        key = (classes.long() * self.strides).sum(-1)
        key_index = torch.searchsorted(self.keys, key).clamp(max=len(self.keys) - 1)
        return (codes >= 0).all(-1) & (self.keys[key_index] == key), key_index

    def _applies_to(self, width: int) -> Tensor:
        """Returns the mask of the constrained codes of the last column, padded to `width`."""
        return nn.functional.pad(self.is_constrained, (0, width - len(self.is_constrained)))


def _log_sides(
    log_beta: Tensor, fits: Tensor, breaks: Tensor, fitting: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Returns the log of the total probability of the codes that satisfy a dependency, and that of
    the codes that violate it.

    Sums are computed in logarithms if one of them underflows; a sum of zero then has a finite
    logarithm below `_NOTHING`, so that it has a gradient. `fitting` contains the log probabilities
    of the codes that satisfy the dependency, padded, and the mask of the entries that are not
    padding.
    """
    p_fit = (fitting[0].exp() * fitting[1]).sum(-1)
    p_break = (log_beta.exp() * breaks).sum(-1)
    if not bool(((p_fit < _LOW) | (p_break < _LOW)).any()):
        return p_fit.log(), p_break.log()
    return _log_sum(log_beta, fits), _log_sum(log_beta, breaks)


def _codes_by_key(key_index: Codes, codes: Codes, n_keys: int) -> tuple[Codes, Mask]:
    """Groups m codes by key; `key_index` is the index of each code's key. Returns a row of codes
    for each key, padded by repeating a code, and the mask of the entries that are not padding.
    Shape: (m,) -> (n_keys, k) each."""
    order = np.argsort(key_index, kind="stable")
    counts = np.bincount(key_index, minlength=n_keys)
    first = np.cumsum(counts) - counts
    listed = np.tile(codes[order][first][:, None], counts.max())
    listed[key_index[order], np.arange(len(order)) - first[key_index[order]]] = codes[order]
    return listed, np.arange(counts.max()) < counts[:, None]


def _log_sum(log_beta: Tensor, chosen: Tensor) -> Tensor:
    """Returns the log of the total probability of the chosen codes; a finite number for zero."""
    return torch.where(chosen, log_beta, 2 * _NOTHING).clamp(min=2 * _NOTHING).logsumexp(-1)


def order_with_rules(
    order: Sequence[int], columns: Sequence[ColumnShape], functions: Sequence[LevelFunction]
) -> list[int]:
    """Returns column indices in the given order, with dependent columns moved after their parents;
    dependencies must be acyclic.

    A column that determines several others without exceptions, such as a product with a category
    and a price, precedes them where possible: a category and a price that are generated first may
    not occur together in any product.
    """
    before = {j: set(columns[j].parents) for j in order}
    better = {j: set[int]() for j in order}
    n_exact = Counter(function.parents for function in functions if function.is_exact)
    for function in functions:
        if function.follows:
            before[function.column] |= set(function.parents)
        elif function.is_exact and n_exact[function.parents] > 1:
            better[function.column] |= set(function.parents)
    placed: list[int] = []
    waiting = list(order)
    while waiting:
        possible = [j for j in waiting if before[j].issubset(placed)]
        ready = next((j for j in possible if better[j].issubset(placed)), possible[0])
        placed.append(ready)
        waiting.remove(ready)
    return placed
