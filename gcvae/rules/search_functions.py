"""Finds functional dependencies: one or two columns that determine another, such as country and
currency.

Rows that are equal in the determining columns have to be equal in the dependent column. For all
pairs of columns, rows are sorted by the determining column and neighbours are compared. Then the
training half of the sample predicts the dependent cells of the validation half: by the most
frequent value for the same determining cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.rules.grids import counted
from gcvae.rules.row_sample import Agreement, Candidate, RowSample
from gcvae.schema.columns import Column
from gcvae.schema.rules import Rule, dependency

LEAST_SHARE = 0.95
"""Minimum share of unseen rows in which a dependency holds."""
LEAST_ROWS_EACH = 2.0
"""Minimum mean number of rows with the same key for a column whose keys identify entities, such as
customers."""
_LEAST_AGREEMENT = 0.88  # minimum share of neighbours that agree
_LEAST_UNUSUAL = 0.8  # minimum share of agreement among rows without the most frequent value
_SURE_SHARE = 0.99  # share of validation rows that ranks first and ends the search for pairs
_LEAST_REPEATED = 100
"""Minimum number of rows whose determining cells also occur in another row."""
_MOST_SHARE_OF_VALUES = 0.3  # maximum ratio of distinct numbers to rows in the columns searched
MOST_PAIRED = 40  # number of columns among which two that determine a third are searched

Codes = npt.NDArray[np.integer[Any]]


def find_functions(sample: RowSample) -> list[Candidate]:
    """Finds functional dependencies of columns on one other column, or on two other columns where
    one does not suffice; preferred dependencies first.

    Of columns that determine each other, the first in the table determines the others.
    """
    columns = [column for column in sample.columns if _has_few_values(sample, column)]
    rest = [column for column in (*sample.numeric, *sample.dates) if column not in columns]
    levels = [(column,) for column in columns if column.kind.has_levels]
    single = _found(sample, columns, [(column,) for column in columns])
    single += _found(sample, rest, levels)
    fixes = {(c.rule.parents[0], c.rule.column) for c in single}
    position = {name: i for i, name in enumerate(sample.schema.names)}
    single = [
        c
        for c in single
        if (c.rule.column, c.rule.parents[0]) not in fixes
        or position[c.rule.parents[0]] < position[c.rule.column]
    ]
    few = columns[:MOST_PAIRED]
    pairs = [
        (a, b)
        for a, b in combinations(few, 2)
        if (a.name, b.name) not in fixes and (b.name, a.name) not in fixes
    ]

    def is_inverse(candidate: Candidate) -> bool:
        """Returns whether a determining number has more distinct values than the dependent column.
        The dependency then probably holds by chance: a price that follows from room and season may
        determine the room."""
        n_values, rule = {n: c.max() for n, c in sample.training.codes.items()}, candidate.rule
        return any(
            sample.schema[name].has_numbers and n_values[name] > n_values[rule.column]
            for name in rule.parents
        )

    fixed = {c.rule.column for c in single if c.share >= _SURE_SHARE and not is_inverse(c)}
    double = _found(sample, few, pairs)
    double = [c for c in double if c.rule.column not in fixed]

    def key(candidate: Candidate) -> tuple[float, ...]:
        rule = candidate.rule
        n_values = [sample.training.codes[name].max() for name in rule.parents]
        is_before = any(position[name] > position[rule.column] for name in rule.parents)
        share = round(candidate.share, 3)
        is_unsure = candidate.share < _SURE_SHARE
        is_of_number = any(sample.schema[name].has_numbers for name in rule.parents)
        is_of_number &= not sample.schema[rule.column].has_numbers
        return (
            is_unsure,
            is_of_number,
            len(rule.parents),
            is_before,
            -share,
            float(np.prod(n_values)),
        )

    return sorted([*single, *double], key=key)


def _has_few_values(sample: RowSample, column: Column) -> bool:
    codes = sample.training.codes[column.name]
    if column.kind.has_levels:
        return bool((codes >= 0).any())
    return column.has_numbers and codes.max() < _MOST_SHARE_OF_VALUES * len(codes)


def _found(
    sample: RowSample, columns: Sequence[Column], fixing: Sequence[tuple[Column, ...]]
) -> list[Candidate]:
    """Returns the validated dependencies of `columns` on each group of determining columns in
    `fixing`."""
    if not columns:
        return []
    names = [column.name for column in columns]
    codes = np.stack([sample.training.codes[name] for name in names], axis=1)
    chance = np.array([_collision(codes[:, j]) for j in range(len(names))])
    n_tried = len(columns) * max(len(fixing), 1)
    found = []
    for group in fixing:
        of = tuple(column.name for column in group)
        joint = joint_codes([sample.training.codes[name] for name in of])
        order = np.argsort(joint, kind="stable")
        order = order[joint[order] >= 0]
        first, second = order[:-1], order[1:]
        same = joint[first] == joint[second]
        first, second = first[same], second[same]
        if len(first) < _LEAST_REPEATED:
            continue
        known = (codes[first] >= 0) & (codes[second] >= 0)
        agree = (codes[first] == codes[second]) & known
        shares = agree.sum(0) / np.maximum(known.sum(0), 1)
        good = (shares >= _LEAST_AGREEMENT) & (known.sum(0) >= _LEAST_REPEATED)
        for j in np.flatnonzero(good & (shares > chance + 0.2 * (1 - chance))):
            if names[j] not in of:
                candidate = _validated(
                    sample, Rule(dependency(of, names[j]), source="found"), n_tried
                )
                found += [] if candidate is None else [candidate]
    return found


def _collision(codes: Codes) -> float:
    counts = np.bincount(codes[codes >= 0])
    return float(((counts / max(counts.sum(), 1)) ** 2).sum())


def joint_codes(columns: Sequence[Codes]) -> Codes:
    """Numbers the combinations of values in several columns, whose values are given as integers, -1
    for missing. Rows with equal values get the same number, and rows with a missing value get -1.
    Not all numbers up to the largest occur. Shape: (n,) each -> (n,)."""
    first, *others = columns
    if not others:
        return first
    joint, blank = first.astype(np.int64), first < 0
    for codes in others:
        blank |= codes < 0
        joint = pd.factorize(joint * (int(codes.max(initial=0)) + 2) + codes)[0]
    return np.where(blank, -1, joint)


def most_frequent_codes(joint: Codes, codes: Codes) -> Codes:
    """Returns the most frequent value of a column for each of C combinations of values in other
    columns. Values are given as integers, and -1 stands for missing.

    The result is -1 for a combination in whose rows the column is always missing, or that does not
    occur.

    Args:
        joint: Number of the combination in each row, from 0 to C - 1, as `joint_codes` returns it;
            -1 if a value is missing. Shape: (n,).
        codes: Value of the column in each row. Shape: (n,).

    Returns:
        Most frequent value by number of the combination. Shape: (C,).
    """
    n_codes = int(codes.max(initial=0)) + 1
    known = (joint >= 0) & (codes >= 0)
    pairs, counts = counted(joint[known].astype(np.int64) * n_codes + codes[known])
    found = np.full(int(joint.max(initial=-1)) + 1, -1, dtype=np.int64)
    pairs = pairs[np.argsort(counts, kind="stable")]  # the last of equally frequent codes stays
    found[pairs // n_codes] = pairs % n_codes
    return found


def _validated(sample: RowSample, rule: Rule, n_tried: int) -> Candidate | None:
    """Returns a dependency as a candidate if the training half predicts enough cells of the
    validation half; else None."""
    n = len(sample.training)
    joint = joint_codes([sample.codes[name] for name in rule.parents])
    codes = sample.codes[rule.column]
    table = most_frequent_codes(joint[:n], codes[:n])
    table = np.append(table, np.full(joint.max() + 2 - len(table), -1))
    predicted, values = table[joint[n:]], codes[n:]
    known = (predicted >= 0) & (values >= 0)
    predicted, values = predicted[known], values[known]
    if len(values) < _LEAST_REPEATED:
        return None
    usual = np.bincount(codes[codes >= 0]).argmax()
    unusual = values != usual
    agree = predicted == values
    found = Agreement(
        float(agree.mean()), max(float((values == usual).mean()), 1e-3), 1.0, len(values)
    )
    is_good = found.share >= LEAST_SHARE and unusual.any()
    if not is_good or agree[unusual].mean() < _LEAST_UNUSUAL or not found.is_significant(n_tried):
        return None
    return Candidate(rule, found.nats, found.share)
