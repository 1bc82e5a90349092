"""Finds numeric columns that are sums of others: y = Σ c x + constant + one of a few remainders.

Terms are selected by orthogonal matching pursuit: each is the one most correlated with the
residual. Their factors c minimise the sum of absolute residuals, which is robust to exceptions, and
are then rounded to as few digits as the rows permit, because a rule holds to the last decimal or
not at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from gcvae.arrays import Numbers
from gcvae.cells.grid_units import grid_unit
from gcvae.rules.predictions import rounded
from gcvae.rules.row_sample import Candidate, Free, Half, RowSample, most_frequent, validated
from gcvae.schema.columns import Column
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Rule, sum_text

LEAST_SHARE = 0.9
"""Minimum share of rows in which a sum with its remainders holds."""
_LEAST_COMMON = 0.5  # minimum share of rows with the most frequent remainder
_LEAST_COMMON_BEFORE = 0.2  # ... before factors are rounded to few digits
_LEAST_REMAINDER = 0.01  # minimum share of rows with each other remainder
_LEAST_REMAINDER_ROWS = 5
_MOST_REMAINDERS = 8
_LEAST_GAP = 4  # grid units for each remainder
_LEAST_FIT = 0.8  # minimum R² of a column by its terms
_FIT_ROWS = 500
_N_REWEIGHTED = 20
_MOST_DIGITS = 6
_TAIL = 0.01
_MOST_COLUMNS = 300
MOST_TERMS = 5

_Fit = tuple[float, tuple[float, ...], float]
"""(constant, remainders, share of rows) of a sum."""


def find_sums(sample: RowSample, is_free: Free) -> Iterator[Candidate]:
    """Yields rules by which a numeric column is a weighted sum of others, one for each relation,
    solved for the preferred column."""
    columns = sample.numeric[:_MOST_COLUMNS]
    half = sample.training
    if len(columns) < 2:
        return
    scores = np.stack([_standardised(half.numbers[column.name]) for column in columns], axis=1)
    correlations = scores.T @ scores / len(scores)
    seen = set[frozenset[str]]()
    for number, y in enumerate(columns):
        for places in _terms(correlations, number):
            names = [columns[place].name for place in places]
            factors = _factors(half, y.name, names)
            relation = {n: f for n, f in zip(names, factors, strict=True) if _counts(half, y, n, f)}
            if not relation or frozenset({y.name, *relation}) in seen:
                continue
            rules = _rules(sample, {y.name: -1.0, **relation})
            if not rules:
                continue
            seen.add(frozenset({y.name, *relation}))
            n_tried = len(columns) ** 2 * MOST_TERMS
            found = validated(rules, sample, n_tried, LEAST_SHARE)
            yield from islice((c for c in found if is_free(c.rule)), 1)
            break


def _standardised(values: Numbers) -> Numbers:
    """Returns values clipped to their 1 % tails, with mean 0 and deviation 1; 0 where unknown.

    Shape: (n,).
    """
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros(len(values))
    values = values / max(np.abs(values[known]).max(), 1.0)  # squares of 1e300 are no doubles
    low, high = np.quantile(values[known], [_TAIL, 1 - _TAIL])
    if low == high:
        low, high = values[known].min(), values[known].max()
    clipped = np.clip(values, low, high)
    deviation = clipped[known].std()
    scores = (clipped - clipped[known].mean()) / (deviation if deviation > 0 else 1.0)
    return np.where(known, scores, 0.0)


def _terms(correlations: Numbers, y: int) -> Iterator[list[int]]:
    """Yields growing lists of column indices that fit column y well by least squares.

    Shape: correlations (D, D), columns by columns. Source: Pati, Rezaiifar and Krishnaprasad,
    Orthogonal Matching Pursuit (1993).
    """
    chosen = list[int]()
    left = correlations[:, y].copy()
    for _ in range(min(MOST_TERMS, len(correlations) - 1)):
        left[[y, *chosen]] = 0.0
        chosen.append(int(np.abs(left).argmax()))
        gram = correlations[np.ix_(chosen, chosen)] + 1e-9 * np.eye(len(chosen))
        weights = np.linalg.solve(gram, correlations[chosen, y])
        left = correlations[:, y] - correlations[:, chosen] @ weights
        if weights @ correlations[chosen, y] >= _LEAST_FIT * correlations[y, y] > 0:
            yield list(chosen)


def _factors(half: Half, y: str, names: Sequence[str]) -> Numbers:
    """Returns the factors of the terms that minimise the sum of absolute residuals. Shape: (number
    of terms,).

    Source: Schlossmacher, An iterative technique for absolute deviations curve fitting (1973).
    """
    matrix = np.stack([half.numbers[name] for name in (y, *names)], axis=1)
    matrix = matrix[~np.isnan(matrix).any(1)][:_FIT_ROWS]
    if len(matrix) <= 2 * len(names):
        return np.zeros(len(names))
    centre = np.median(matrix, axis=0)
    scale = np.maximum(np.abs(matrix - centre).mean(0), 1e-300)
    scaled = (matrix - centre) / scale
    target, terms = scaled[:, 0], np.column_stack([scaled[:, 1:], np.ones(len(scaled))])
    weights, found = np.ones(len(scaled)), np.zeros(terms.shape[1])
    for step in range(_N_REWEIGHTED):
        found = np.linalg.lstsq(terms * weights[:, None], target * weights, rcond=None)[0]
        least = max(10.0 ** -(step / 2 + 2), 1e-12)
        weights = 1.0 / np.sqrt(np.maximum(np.abs(target - terms @ found), least))
    return np.asarray(found[:-1] * scale[0] / scale[1:])


def _counts(half: Half, y: Column, name: str, factor: float) -> bool:
    """Returns whether a term changes y by more than rounding does."""
    values = half.numbers[name]
    spread = np.nanmax(values) - np.nanmin(values)
    unit = grid_unit(y) or 1e-6 * np.nanstd(half.numbers[y.name])
    return bool(abs(factor) * spread >= unit / 2)


def _rules(sample: RowSample, relation: Mapping[str, float]) -> list[Rule]:
    """Returns a relation Σ c x = constant solved for each of its columns for which it holds, best
    first.

    The preferred column has the factors with the fewest digits; then the largest spread c·σ,
    because totals vary more than their terms; then the last position in the table, because computed
    columns usually follow their inputs.
    """
    found = []
    spreads = {n: abs(f) * np.nanstd(sample.training.numbers[n]) for n, f in relation.items()}
    in_order = sorted(relation.items(), key=lambda term: sample.schema.names.index(term[0]))
    for y, own in in_order:
        terms = {name: -factor / own for name, factor in in_order if name != y}
        held = _plain_sum(sample, sample.schema[y], terms)
        if held is None:
            continue
        factors, (constant, remainders, share) = held
        text = sum_text([(factor, quoted_name(name)) for name, factor in factors.items()], constant)
        near = max(map(abs, remainders), default=0)
        text = (
            f"{quoted_name(y)} ≈ {text} ± {near:.12g}"
            if remainders
            else f"{quoted_name(y)} == {text}"
        )
        digits = sum(len(f"{factor:.12g}") for factor in factors.values() if factor != int(factor))
        is_narrow = spreads[y] < 0.95 * max(spreads.values())
        preference = (digits, is_narrow, -sample.schema.names.index(y))
        found.append((preference, share, Rule(text, source="found")))
    most = max((share for _, share, _ in found), default=0.0)
    found.sort(key=lambda one: one[0])
    return [rule for _, share, rule in found if share >= most - 0.005]


def _plain_sum(
    sample: RowSample, y: Column, terms: Mapping[str, float]
) -> tuple[dict[str, float], _Fit] | None:
    """Returns (factors of few digits, their fit) of a sum that holds for y; None if it does not, or
    holds without one of its terms."""
    half = sample.training
    plain = _plain(half, y, terms)
    if plain is None:
        return None
    factors, (constant, remainders, share) = plain
    if remainders and (_is_rounded(sample, y, factors) or not _are_apart(half, y, factors)):
        return None
    if len(factors) == 1 and not constant and [*factors.values()] == [1] and share == 1:
        return None  # a copy, which is found elsewhere
    if len(factors) > 1 and not _all_needed(half, y, factors, share):
        return None
    return plain


def _is_rounded(sample: RowSample, y: Column, factors: Mapping[str, float]) -> bool:
    """Returns whether the sum may lie between two multiples of y's resolution."""
    unit = grid_unit(y)
    for name, factor in factors.items():
        step = grid_unit(sample.schema[name])
        if unit is None or step is None:
            return unit is not None
        multiple = factor * step / unit
        if abs(multiple - round(multiple)) > 1e-9 * abs(multiple):
            return True
    return False


def _are_apart(half: Half, y: Column, factors: Mapping[str, float]) -> bool:
    """Returns whether the remainders are a few separate values instead of noise.

    This holds if one remainder occurs in nearly all rows, or if they leave most of the grid between
    them unused.
    """
    _, remainders, _ = _fit_of(half, y, factors)
    unit = grid_unit(y)
    alone = _fit_of(half, y, factors, most=1)[2]
    if alone >= LEAST_SHARE or unit is None:
        return True
    return (max(remainders) - min(remainders)) / unit >= _LEAST_GAP * len(remainders)


def _all_needed(half: Half, y: Column, factors: Mapping[str, float], share: float) -> bool:
    """Returns whether the sum holds in clearly fewer rows if any of its terms is omitted."""
    for name in factors:
        rest = {other: factor for other, factor in factors.items() if other != name}
        if _fit_of(half, y, rest)[2] > share - 0.02:
            return False
    return True


def _plain(
    half: Half, y: Column, terms: Mapping[str, float]
) -> tuple[dict[str, float], _Fit] | None:
    """Returns (factors with the fewest digits for which the sum holds as often as possible, their
    fit); None if it does not hold often enough."""
    if _most_common(half, y, terms)[2] < _LEAST_COMMON_BEFORE:
        return None
    tried = list[tuple[dict[str, float], _Fit]]()
    for digits in range(1, _MOST_DIGITS + 1):
        for rounding in (_to_digits, _to_whole_or_part, _to_part):
            factors = {name: rounding(factor, digits) for name, factor in terms.items()}
            if all(factors.values()) and factors not in [f for f, _ in tried]:
                tried.append((factors, _fit_of(half, y, factors)))
    best = max((held[2] for _, held in tried), default=0.0)
    if best < LEAST_SHARE:
        return None
    return next((f, held) for f, held in tried if held[2] >= best - 0.005)


def _to_digits(factor: float, digits: int) -> float:
    """Rounds a factor to a number of significant digits."""
    return _whole(float(f"{factor:.{digits}g}"))


def _to_part(factor: float, digits: int) -> float:
    """Returns 1 / n, with n rounded to a number of significant digits, such as 1/60."""
    return _whole(1.0 / float(f"{1.0 / factor:.{digits}g}")) if factor else 0.0


def _to_whole_or_part(factor: float, digits: int) -> float:
    """Rounds a factor of at least 1, or the reciprocal of a smaller one."""
    return _to_digits(factor, digits) if abs(factor) >= 1 else _to_part(factor, digits)


def _whole(factor: float) -> float:
    """Converts a whole number to an integer; other numbers are unchanged."""
    return int(factor) if factor == int(factor) and abs(factor) < 2**53 else factor


def _most_common(
    half: Half, y: Column, factors: Mapping[str, float]
) -> tuple[Numbers, float, float]:
    """Returns (differences between y and a sum, their unit, share of the most frequent multiple of
    the unit). Shape: (n,) first."""
    predicted = sum((factor * half.numbers[name] for name, factor in factors.items()), np.zeros(1))
    unit, values = grid_unit(y), half.numbers[y.name]
    off = values - (predicted if unit is None else rounded(predicted, y))
    off = off[~np.isnan(off)]
    step = unit if unit is not None else 1e-9 * max(float(np.nanmax(np.abs(values))), 1e-300)
    whole = np.rint(off / step)
    return off, step, float((whole == most_frequent(whole)).mean()) if len(off) else 0.0


def _fit_of(
    half: Half, y: Column, factors: Mapping[str, float], most: int = _MOST_REMAINDERS
) -> _Fit:
    """Returns (constant, remainders, share of rows) of a sum with the given factors."""
    off, step, share = _most_common(half, y, factors)
    if share < _LEAST_COMMON:
        return 0.0, (), 0.0
    constant = float(_clean(most_frequent(np.rint(off / step)), step))
    found, counts = np.unique(np.rint((off - constant) / step), return_counts=True)
    shares = counts / len(off)
    least = max(_LEAST_REMAINDER, _LEAST_REMAINDER_ROWS / len(off))
    order = np.argsort(-shares, kind="stable")
    order = order[shares[order] >= least][:most]
    if not len(order):
        return constant, (), 0.0
    remainders = tuple(_clean(found[i], step) for i in order)
    share = float(shares[order].sum())
    return _whole(constant), () if remainders == (0,) else remainders, share


def _clean(multiple: float, step: float) -> float:
    """Returns a multiple of a step, rounded to 12 digits against floating-point noise."""
    return _whole(float(f"{multiple * step:.12g}"))
