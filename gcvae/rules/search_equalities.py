"""Finds columns that equal another one in a share of the rows, such as a payment of the full bill.

Rows in which both columns have their most frequent value, such as 0, are ignored. In the remaining
rows the columns have to be equal far more often than by chance.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from gcvae.arrays import Mask, Numbers
from gcvae.rules.row_sample import Candidate, Half, RowSample, most_frequent
from gcvae.schema.columns import Column
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Rule

LEAST_SHARE = 0.02
"""Minimum share of equal numbers among rows without the column's most frequent value."""
_LEAST_EQUAL = 8
_LEAST_NATS = 12.0
_MOST_COLUMNS = 100
_MOST_CHANCE = 0.2
"""Maximum ratio of the share of equal numbers by chance to the observed share."""


def find_equalities(sample: RowSample) -> list[Candidate]:
    """Finds pairs of numeric or date columns that are equal in far more rows than by chance, those
    with the largest gain in log-likelihood first."""
    found = []
    for columns in (sample.numeric[:_MOST_COLUMNS], sample.dates[:_MOST_COLUMNS]):
        n_tried = max(len(columns) ** 2, 1)
        for a, b in combinations(columns, 2):
            candidate = _validated(sample, a, b, n_tried)
            if candidate is not None:
                found.append(candidate)
    return sorted(found, key=lambda candidate: -candidate.nats)


def _validated(sample: RowSample, a: Column, b: Column, n_tried: int) -> Candidate | None:
    """Returns the rule that column b equals column a; None if they are not equal often enough."""
    if not b.kind.is_real:
        return None
    halves = sample.halves
    seen = [found for half in halves if (found := _equal(half, a.name, b.name)) is not None]
    if len(seen) < len(halves):
        return None
    share, chance, rows = (float(np.mean(part)) for part in zip(*seen, strict=True))
    least = min(shares[0] for shares in seen)
    if least < LEAST_SHARE or chance > _MOST_CHANCE * share:
        return None
    nats = share * math.log(share / max(chance, 0.5 / rows))
    if nats * rows < _LEAST_NATS + math.log(n_tried):
        return None
    rule = Rule(f"{quoted_name(b.name)} == {quoted_name(a.name)}", source="found")
    return Candidate(rule, nats, share)


def _equal(half: Half, a: str, b: str) -> tuple[float, float, float] | None:
    """Returns (share of equal numbers, share by chance for similar numbers, number of rows)."""
    x, y = half.numbers[a], half.numbers[b]
    known = ~(np.isnan(x) | np.isnan(y))
    x, y = x[known], y[known]
    if len(x) < 4 * _LEAST_EQUAL:
        return None
    is_news = (y != most_frequent(y)) & (x != most_frequent(x))
    equal = (x == y) & is_news
    if equal.sum() < _LEAST_EQUAL:
        return None
    rows = int((y != most_frequent(y)).sum())
    return float(equal.sum()) / rows, _by_chance(x, y, is_news) / rows, rows


def _by_chance(x: Numbers, y: Numbers, is_news: Mask) -> float:
    """Returns the expected number of equal rows if each y is compared with a neighbouring x.

    Shape: (n,) each.
    """
    order = np.argsort(x, kind="stable")
    x, y, is_news = x[order], y[order], is_news[order]
    shifts = (1, 2, 3, 5, 8)
    return float(np.mean([((x[s:] == y[:-s]) & is_news[s:] & is_news[:-s]).sum() for s in shifts]))
