"""Finds numeric columns that are sums of others: y = Σ c x + constant + one of a few remainders.

A term x is a column or a product of two columns, as in rate * hours + 1.5 * rate * overtime. A
remainder is a difference that many rows share, such as a fee of 5 in some rows.

Terms are selected by orthogonal matching pursuit: each step adds the term that
correlates most with what the terms selected so far do not explain. Their factors c minimise the sum
of absolute errors, which is robust to exceptions. The factors are then rounded to as few digits as
the rows permit, because a rule holds exactly or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Mask, Numbers
from gcvae.cells.grid_units import grid_unit
from gcvae.rules.plan import OF_NO_LEVEL, Plan, Side
from gcvae.rules.predictions import rounded
from gcvae.rules.row_sample import LEAST_SHARE, Candidate, RowSample, most_frequent, validated
from gcvae.schema.columns import Column
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Rule, sum_text

_LEAST_COMMON = 0.5  # minimum share of rows with the most frequent remainder
_LEAST_COMMON_BEFORE = 0.2  # ... before factors are rounded to few digits
_LEAST_REMAINDER = 0.01  # minimum share of rows with each other remainder
_LEAST_REMAINDER_ROWS = 5
_MOST_REMAINDERS = 8
_LEAST_GAP = 4  # minimum range of the remainders, in multiples of the resolution per remainder
_MANY_TIES = 0.2  # share of rows with ties
_COST_OF_TIES = 8.0  # cost of a side with ties in all rows
_LEAST_FIT = 0.8  # minimum R² of a column by its terms
_LEAST_FIT_OF_PRODUCTS = 0.95  # the same if terms may be products, of which there are many more
_FIT_ROWS = 500
_LEAST_LOST = 0.02  # minimum share of rows that a sum loses if one of its terms is omitted
_LEAST_LOST_OF_ALL = 0.003  # the same for a sum that holds in all rows
_N_REWEIGHTED = 20
_MOST_DIGITS = 6
_TAIL = 0.01
_MOST_COLUMNS = 300
_MOST_FACTORS = 40  # columns of which products are formed
_MOST_STARTS = 5  # selections of a column's terms, each without the first term of the one before
_MOST_TOTALLED, _MOST_IN_FOURS = 30, 22  # columns of which totals are formed, of four on a side
_LEAST_KNOWN = 0.5  # share of rows in which a column of totals is known
_BATCH_ROWS, _N_BATCHES, _COVER_ROWS = 8, 3, 400
_MOST_MATCHES, _MOST_TOTALS = 5_000, 40
_MOST_DECIMALS = 6
MOST_TERMS = 5

_Fit = tuple[float, tuple[float, ...], float]
"""(Constant, remainders, share of rows in which it holds) of a sum with given factors."""


class _Term(NamedTuple):
    """Possible term of a sum: its columns (one, or two in a product), its value in each training
    row, and its resolution (None if it has none). Shape: (n,)."""

    columns: tuple[Column, ...]
    values: Numbers
    unit: float | None


_Terms = Mapping[str, _Term]
"""Terms by their expressions."""


def find_sums(sample: RowSample, plan: Plan, *, of_products: bool = False) -> Iterator[Candidate]:
    """Yields rules by which a numeric column is a weighted sum of others. Each relation between
    columns is yielded once, with its solutions for other columns (`Candidate.others`).

    Args:
        of_products: Whether terms may also be products of two columns. Sums are then found only for
            columns that no rule of the plan computes, and only of columns that, by the rules of the
            plan, do not depend on the computed one.
    """
    columns = sample.numeric[: _MOST_FACTORS if of_products else _MOST_COLUMNS]
    if len(columns) < 2:
        return
    terms = {quoted_name(c.name): _term(sample, c) for c in columns}
    if of_products:
        pairs = combinations(columns, 2)
        terms |= {
            f"{quoted_name(a.name)} * {quoted_name(b.name)}": _term(sample, a, b) for a, b in pairs
        }
    n_tried = len(columns) * len(terms) * MOST_TERMS
    seen = set[frozenset[str]]()

    def candidates(relation: Mapping[str, float]) -> list[Candidate]:
        """Returns a list with the rule of a linear relation {term: factor}. The list is empty if
        the relation does not hold in the sample, or has the same terms as an earlier one."""
        key = frozenset(relation)
        rules = [] if key in seen else _rules(sample, terms, relation)
        if not rules:
            return []
        seen.add(key)
        found = list(validated([rule for _, rule in rules], sample, n_tried))
        costs = {rule.text: cost for cost, rule in rules}
        sides = [(costs[candidate.rule.text], candidate.rule) for candidate in found]
        return [replace(c, cost=sides[0][0], others=tuple(sides[1:])) for c in found[:1]]

    if not of_products:
        found = [one for relation in _totals(terms) for one in candidates(relation)]
        yield from sorted(found, key=lambda c: (-round(c.share, 3), len(c.rule.columns)))
    tail = 0.0 if of_products else _TAIL
    scores = np.stack([_standardised(term.values, tail) for term in terms.values()], axis=1)
    correlations = scores.T @ scores / len(scores)
    least = _LEAST_FIT_OF_PRODUCTS if of_products else _LEAST_FIT
    texts = list(terms)
    for number, y in enumerate(columns):
        if of_products and plan.computes(y.name):
            continue
        omitted = {y.name}
        if of_products:
            omitted = {c.name for c in columns if plan.depends(c.name, on=y.name)}
        for _ in range(_MOST_STARTS if of_products else 1):
            first = None
            for selected in _selected(correlations, number, _outside(terms, omitted), least):
                names = [texts[i] for i in selected]
                first, factors = names[0], _factors(terms, texts[number], names)
                relation = {
                    x: factor
                    for x, factor in zip(names, factors, strict=True)
                    if _exceeds_rounding(terms, texts[number], x, factor)
                }
                found = candidates({texts[number]: -1.0, **relation}) if relation else []
                if found:
                    yield from found
                    break
            else:
                # The first term may be computed from y by an unknown rule.
                if first is not None and len(terms[first].columns) == 1:
                    omitted.add(terms[first].columns[0].name)
                    continue
            break


def _outside(terms: _Terms, names: Collection[str]) -> Mask:
    return np.array([not any(c.name in names for c in term.columns) for term in terms.values()])


def _totals(terms: _Terms) -> Iterator[dict[str, float]]:
    """Yields relations Σ ± x = 0 of three to eight columns that hold in some rows, shortest first.

    They are found by meeting in the middle: two signed sums of up to four columns that are equal in
    eight rows form a relation. Rows with the fewest zeros are chosen. Unlike matching pursuit, this
    also finds terms that are nearly functions of one another.
    """
    numbers = {text: term.values for text, term in terms.items()}
    resolutions = {text: term.unit or _resolution(term.values) for text, term in terms.items()}
    units = {text: unit for text, unit in resolutions.items() if unit is not None}
    known = {text: ~np.isnan(values) for text, values in numbers.items()}
    texts = [text for text in units if known[text].mean() >= _LEAST_KNOWN][:_MOST_TOTALLED]
    if len(texts) < 3:
        return
    whole = np.stack([numbers[text] for text in texts], axis=1) / min(units[t] for t in texts)
    while (~np.isnan(whole).any(axis=1)).sum() < min(_COVER_ROWS, len(whole) // 4):
        least_known = int(np.isnan(whole).sum(axis=0).argmax())
        whole, texts = np.delete(whole, least_known, axis=1), np.delete(texts, least_known).tolist()
    whole = whole[~np.isnan(whole).any(axis=1)]
    counts = np.rint(whole[(np.abs(whole) < 2.0**52).all(axis=1)]).astype(np.int64)
    random = np.random.default_rng(0)
    found: dict[frozenset[str], dict[str, float]] = {}
    for _ in range(_N_BATCHES):
        rows = _covering(counts[random.permutation(len(counts))])
        if len(rows) < _BATCH_ROWS:
            return
        # Equal sums in all rows have equal keys, which are computed modulo 2^64.
        weights = random.integers(1, 2**62, _BATCH_ROWS)
        keys = weights @ rows
        sums, members = _signed_sums(keys)
        order = np.argsort(sums, kind="stable")
        is_same = np.flatnonzero(sums[order][1:] == sums[order][:-1])
        for first in is_same.tolist()[:_MOST_MATCHES]:
            a, b = members[order[first : first + 2]].tolist()
            signs = [i for i in (*a, *(-i for i in b)) if i]
            relation = {texts[abs(i) - 1]: float(np.sign(i)) for i in signs}
            if 3 <= len(relation) == len(signs):
                found.setdefault(frozenset(relation), relation)
    yield from sorted(found.values(), key=len)[:_MOST_TOTALS]


def _resolution(values: Numbers) -> float | None:
    """Returns the largest of the numbers 1, 0.1, 0.01, ... of which all values are multiples; None
    if there is none. Shape: (n,)."""
    known = values[~np.isnan(values)]
    for digits in range(_MOST_DECIMALS + 1):
        if np.allclose(known, np.round(known, digits), rtol=1e-12, atol=1e-12):
            return float(10.0**-digits)
    return None


def _covering(whole: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns eight of n rows (all if there are fewer), chosen so that as many of the D columns as
    possible are nonzero in at least one of them. Shape: (n, D) -> (8, D)."""
    rows, is_covered = list[int](), np.zeros(whole.shape[1], dtype=bool)
    is_there = whole[:_COVER_ROWS] != 0
    for _ in range(min(_BATCH_ROWS, len(is_there))):
        gain = (is_there & ~is_covered).sum(axis=1) + 1e-3 * is_there.sum(axis=1)
        gain[rows] = -1.0
        rows.append(int(gain.argmax()))
        is_covered |= is_there[rows[-1]]
    return whole[rows]


def _signed_sums(
    keys: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Returns all m signed sums of up to three of D numbers (four if D is small), and the terms of
    each sum: i + 1 if number i is added, -(i + 1) if it is subtracted, 0 if unused. Shape: (m,),
    (m, 4)."""
    sums, members = [], []
    for size in (1, 2, 3, 4) if len(keys) <= _MOST_IN_FOURS else (1, 2, 3):
        chosen = list(combinations(range(len(keys)), size))
        chosen_terms = np.array(chosen, dtype=np.int64).reshape(-1, size)
        for signs in product((1, -1), repeat=size):
            sums.append((keys[chosen_terms] * np.array(signs)).sum(axis=1))
            own = (chosen_terms + 1) * np.array(signs)
            members.append(np.pad(own, ((0, 0), (0, 4 - size))))
    return np.concatenate(sums), np.concatenate(members)


def _term(sample: RowSample, *columns: Column) -> _Term:
    numbers, units = sample.training.numbers, [grid_unit(column) for column in columns]
    values = reduce(np.multiply, [numbers[column.name] for column in columns])
    known = [unit for unit in units if unit is not None]
    return _Term(columns, values, math.prod(known) if len(known) == len(units) else None)


def _standardised(values: Numbers, tail: float) -> Numbers:
    """Returns values clipped to their `tail` and 1 - `tail` quantiles, then scaled to mean 0 and
    standard deviation 1; 0 where unknown. Shape: (n,)."""
    known = ~np.isnan(values)
    if not known.any():
        return np.zeros(len(values))
    values = values / max(np.abs(values[known]).max(), 1.0)  # squares of 1e300 are no doubles
    low, high = np.quantile(values[known], [tail, 1 - tail])
    if low == high:
        low, high = values[known].min(), values[known].max()
    clipped = np.clip(values, low, high)
    deviation = clipped[known].std()
    scores = (clipped - clipped[known].mean()) / (deviation if deviation > 0 else 1.0)
    return np.where(known, scores, 0.0)


def _selected(correlations: Numbers, y: int, is_usable: Mask, least: float) -> Iterator[list[int]]:
    """Yields growing lists of indices of terms that fit the term with index y by least squares,
    with an R² of at least `least`. They are selected by orthogonal matching pursuit. Shape:
    correlations (T, T), is_usable (T,).

    Source: Pati, Rezaiifar and Krishnaprasad, Orthogonal Matching Pursuit (1993).
    """
    chosen = list[int]()
    left = correlations[:, y].copy()
    for _ in range(min(MOST_TERMS, len(correlations) - 1)):
        left[[y, *chosen]] = 0.0
        left[~is_usable] = 0.0
        chosen.append(int(np.abs(left).argmax()))
        gram = correlations[np.ix_(chosen, chosen)] + 1e-9 * np.eye(len(chosen))
        weights = np.linalg.solve(gram, correlations[chosen, y])
        left = correlations[:, y] - correlations[:, chosen] @ weights
        if weights @ correlations[chosen, y] >= least * correlations[y, y] > 0:
            yield list(chosen)


def _factors(terms: _Terms, y: str, names: Sequence[str]) -> Numbers:
    """Returns the factors of the terms that minimise the sum of absolute errors. Shape: (number of
    terms,).

    Source: Schlossmacher, An iterative technique for absolute deviations curve fitting (1973).
    """
    matrix = np.stack([terms[name].values for name in (y, *names)], axis=1)
    matrix = matrix[~np.isnan(matrix).any(1)][:_FIT_ROWS]
    if len(matrix) <= 2 * len(names):
        return np.zeros(len(names))
    centre = np.median(matrix, axis=0)
    scale = np.maximum(np.abs(matrix - centre).mean(0), 1e-300)
    scaled = (matrix - centre) / scale
    target, of_terms = scaled[:, 0], np.column_stack([scaled[:, 1:], np.ones(len(scaled))])
    weights, found = np.ones(len(scaled)), np.zeros(of_terms.shape[1])
    for step in range(_N_REWEIGHTED):
        found = np.linalg.lstsq(of_terms * weights[:, None], target * weights, rcond=None)[0]
        least = max(10.0 ** -(step / 2 + 2), 1e-12)
        weights = 1.0 / np.sqrt(np.maximum(np.abs(target - of_terms @ found), least))
    return np.asarray(found[:-1] * scale[0] / scale[1:])


def _exceeds_rounding(terms: _Terms, y: str, name: str, factor: float) -> bool:
    """Returns whether a term can change the sum by at least half the resolution of column y;
    rounding would hide smaller changes."""
    values = terms[name].values
    spread = np.nanmax(values) - np.nanmin(values)
    unit = terms[y].unit or 1e-6 * np.nanstd(terms[y].values)
    return bool(abs(factor) * spread >= unit / 2)


def _rules(sample: RowSample, terms: _Terms, relation: Mapping[str, float]) -> list[Side]:
    """Returns the rules into which a relation Σ c x = constant, given as {x: c}, can be solved,
    each with its cost; best first.

    Solutions that hold in clearly fewer rows than the best one are left out. The cost is
    log2(largest spread c·σ of a term / spread of the computed column); it is larger if many results
    are ties, half way between two multiples of the resolution.

    Solutions with few ties come first, then those with the fewest digits in their factors. Then the
    computed column with the largest spread is preferred, because totals vary more than their terms;
    then the last column in the table, because computed columns usually follow their inputs.
    """
    found = []
    positions = {
        text: [sample.schema.names.index(c.name) for c in terms[text].columns] for text in relation
    }
    spreads = {text: abs(f) * np.nanstd(terms[text].values) for text, f in relation.items()}
    in_order = sorted(relation.items(), key=lambda term: positions[term[0]])
    names = [column.name for text in relation for column in terms[text].columns]
    for y, own in in_order:
        if len(terms[y].columns) > 1 or names.count(terms[y].columns[0].name) > 1:
            continue
        held = _plain_sum(terms, y, {x: -factor / own for x, factor in in_order if x != y})
        if held is None or not held[0]:  # a constant alone is no relation
            continue
        factors, (constant, remainders, share) = held
        text = sum_text([(factor, x) for x, factor in factors.items()], constant)
        near = max(map(abs, remainders), default=0)
        text = f"{y} ≈ {text} ± {near:.12g}" if remainders else f"{y} == {text}"
        digits = sum(len(f"{factor:.12g}") for factor in factors.values() if factor != int(factor))
        cost = math.log2(max(spreads.values()) / spreads[y]) if spreads[y] else OF_NO_LEVEL
        # If the sum lies half way between two multiples of the resolution, y may be either.
        n_tied = 0.0 if remainders else share - _fit_of(terms, y, factors, most=1)[2]
        cost += _COST_OF_TIES * n_tied
        preference = (n_tied > _MANY_TIES, digits, round(cost), -positions[y][0])
        found.append((preference, share, (cost, Rule(text, source="found"))))
    most = max((share for _, share, _ in found), default=0.0)
    found.sort(key=lambda one: one[0])
    return [side for _, share, side in found if share >= most - 0.005]


def _plain_sum(
    terms: _Terms, y: str, factors: Mapping[str, float]
) -> tuple[dict[str, float], _Fit] | None:
    """Rounds the factors of a sum that equals a column y to few digits.

    Returns (rounded factors by term, their fit as `_fit_of` returns it), or None if the rounded sum

    - equals y in too few rows,
    - equals y in about as many rows without one of its terms,
    - is only a copy of one column, or
    - leaves remainders (frequent differences from y) that are noise instead of a few separate
      values, or leaves any although y has levels.
    """
    plain = _plain(terms, y, factors)
    if plain is None:
        return None
    factors, (constant, remainders, share) = plain
    if remainders and terms[y].columns[0].kind.has_levels:
        return None
    if remainders and _is_rounded(terms, y, factors):
        if max(map(abs, remainders)) > 1.5 * (terms[y].unit or 0.0):
            return None
        remainders = ()  # ties, which are rounded up or down
    if remainders and not _are_apart(terms, y, factors):
        return None
    if len(factors) == 1 and not constant and [*factors.values()] == [1] and share == 1:
        return None  # a copy, which is found elsewhere
    if len(factors) > 1 and not _all_needed(terms, y, factors, share, len(remainders)):
        return None
    return factors, (constant, remainders, share)


def _is_rounded(terms: _Terms, y: str, factors: Mapping[str, float]) -> bool:
    """Returns whether the sum may lie between two multiples of y's resolution."""
    unit = terms[y].unit
    for name, factor in factors.items():
        step = terms[name].unit
        if unit is None or step is None:
            return unit is not None
        multiple = factor * step / unit
        if abs(multiple - round(multiple)) > 1e-9 * abs(multiple):
            return True
    return False


def _are_apart(terms: _Terms, y: str, factors: Mapping[str, float]) -> bool:
    """Returns whether the frequent deviations of y from a sum (`_fit_of`) are a few separate values
    instead of noise.

    This holds if one deviation occurs in nearly all rows, or if most multiples of the resolution
    between the smallest and the largest frequent deviation are not frequent.
    """
    _, remainders, _ = _fit_of(terms, y, factors)
    unit = terms[y].unit
    alone = _fit_of(terms, y, factors, most=1)[2]
    if alone >= LEAST_SHARE or unit is None:
        return True
    return (max(remainders) - min(remainders)) / unit >= _LEAST_GAP * len(remainders)


def _all_needed(
    terms: _Terms, y: str, factors: Mapping[str, float], share: float, n_remainders: int
) -> bool:
    """Returns whether all terms of a sum are needed: if any one of them is left out, the sum holds
    in clearly fewer rows than the share `share`. The shorter sum may have as many remainders as the
    full one (`n_remainders`), or one if the full sum has none. See `_fit_of` for remainders."""
    gap = _LEAST_LOST if share < 1.0 else _LEAST_LOST_OF_ALL
    for name in factors:
        rest = {other: factor for other, factor in factors.items() if other != name}
        if _fit_of(terms, y, rest, max(n_remainders, 1))[2] > share - gap:
            return False
    return True


def _plain(
    terms: _Terms, y: str, factors: Mapping[str, float]
) -> tuple[dict[str, float], _Fit] | None:
    """Rounds the factors of a sum to as few digits as possible, so that it still holds in about as
    many rows as with more digits.

    Returns (rounded factors by term, their fit as `_fit_of` returns it); None if the sum does not
    hold often enough with any number of digits.
    """
    if _most_common(terms, y, factors)[2] < _LEAST_COMMON_BEFORE:
        return None
    tried = list[tuple[dict[str, float], _Fit]]()
    for digits in range(1, _MOST_DIGITS + 1):
        for rounding in (_to_digits, _to_whole_or_part, _to_part):
            plain = {name: rounding(factor, digits) for name, factor in factors.items()}
            if all(plain.values()) and plain not in [f for f, _ in tried]:
                tried.append((plain, _fit_of(terms, y, plain)))
    best = max((held[2] for _, held in tried), default=0.0)
    if best < LEAST_SHARE:
        return None
    held = [(f, fit) for f, fit in tried if fit[2] >= best - 0.005]
    return next((one for one in held if not one[1][1]), held[0])  # without remainders, if possible


def _to_digits(factor: float, digits: int) -> float:
    return _whole(float(f"{factor:.{digits}g}"))


def _to_part(factor: float, digits: int) -> float:
    """Approximates a factor by 1 / n with few digits of n: 0.01667 becomes 1 / 60."""
    return _whole(1.0 / float(f"{1.0 / factor:.{digits}g}")) if factor else 0.0


def _to_whole_or_part(factor: float, digits: int) -> float:
    return _to_digits(factor, digits) if abs(factor) >= 1 else _to_part(factor, digits)


def _whole(factor: float) -> float:
    return int(factor) if factor == int(factor) and abs(factor) < 2**53 else factor


def _most_common(
    terms: _Terms, y: str, factors: Mapping[str, float]
) -> tuple[Numbers, float, float]:
    """Returns (y minus a sum, in the rows where both are known; unit of these differences; share of
    these rows with the most frequent difference). The unit is the resolution of y, or a tiny number
    if y has none."""
    predicted = sum((factor * terms[name].values for name, factor in factors.items()), np.zeros(1))
    ([column], values, unit) = terms[y]
    off = values - (predicted if unit is None else rounded(predicted, column))
    off = off[~np.isnan(off)]
    step = unit if unit is not None else 1e-9 * max(float(np.nanmax(np.abs(values))), 1e-300)
    whole = np.rint(off / step)
    return off, step, float((whole == most_frequent(whole)).mean()) if len(off) else 0.0


def _fit_of(
    terms: _Terms, y: str, factors: Mapping[str, float], most: int = _MOST_REMAINDERS
) -> _Fit:
    """Returns (constant, remainders, share of rows) of a sum with the given factors.

    The constant is the most frequent difference between y and the sum. The remainders are the most
    frequent deviations of that difference from the constant, at most `most` of them, including 0;
    () if 0 is the only one. The share is that of the rows whose deviation is one of the remainders.
    """
    off, step, share = _most_common(terms, y, factors)
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
