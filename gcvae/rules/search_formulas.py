"""Finds numeric columns that are short formulas of others, by enumeration.

    leaves    x, and for rates 1 - r, 1 + r, 1 - r/100, 1 + r/100
    pairs     a + b, a - b, a * b, a / b, 100 * a / b, a / b², (a - b) / b, (a + b) / 2
    triples   a pair P and a third leaf u, by meet in the middle: y = P * u if P equals y / u
    multiples c * x, c * P or c * a * b * d, with the constant c that most rows agree on
    products  a * b + d * e, by meet in the middle
    bounds    max(a, f) or min(a, f), of such a formula f and a column or number a
    exempt    y == f or y == c, with the column's most frequent number c

A formula is tested on some rows (the sieve), then on all of the training half, and validated on the
other half. Among formulas that hold equally often, the shortest is preferred.

A relation between columns may have several formulas, one for each column that can be computed.
Because results are rounded, rows that one formula computes may violate the other formulas. The
formula is preferred whose results satisfy the other formulas most often.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations, islice
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Mask, Numbers
from gcvae.cells.data_frames import with_columns
from gcvae.cells.grid_units import grid_unit, slack
from gcvae.rules.plan import OF_NO_LEVEL, Plan, is_formula
from gcvae.rules.predictions import Prediction, quantities, rounded
from gcvae.rules.row_sample import (
    LEAST_ROWS,
    LEAST_SHARE,
    Candidate,
    RowSample,
    agreement_of,
    column_medians,
    equality,
    most_frequent,
    validated,
)
from gcvae.schema.columns import Column
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Rule, sum_text

_ROWS = 600
"""Number of rows in which terms are computed; the sieve contains the most informative of them."""
_SIEVE_ROWS = 48
_SKIPPED = 8
"""Every eighth row of the sieve is tested before all of them."""
_LEAST_SIEVE = 10
_LEAST_SIEVED = 0.7
_LEAST_HELD = LEAST_SHARE - 0.1
"""Minimum share of the first _ROWS rows that satisfy a formula, for it to be tested in all rows."""
_LEAST_JUDGED = 100
"""Minimum number of rows for which _LEAST_HELD applies: three standard errors of the share are
0.09. For fewer rows, but at least LEAST_ROWS, the minimum share is 0.5."""
_LEAST_BOUNDED = 0.995
"""Minimum share of rows in which a formula with a bound holds."""
_LEAST_EXEMPT = 0.05
"""Minimum share of rows that have the number to which a formula does not apply, and of rows that
do not have it."""
_LEAST_MET, _LEAST_NUMBERS_MET = 0.02, 3
"""Minimum share of rows in which the bound is reached, and of distinct numbers in them."""
MOST_COLUMNS = 40
"""Maximum number of columns in pairs and triples; time grows with the cube of this number."""
_MOST_IN_TRIPLES = 20
"""Maximum number of columns of which products of three are formed."""
_MOST_MATCHES = 400
"""Maximum number of pairs that match one row's value; more are not informative."""
_MOST_SIEVED, _MOST_TRIED, _MOST_OF_NAMES = 200, 24, 3
"""Maximum number of formulas of a column from the sieve, of those that are tested in all rows, and
of those of the same columns."""
_NEGLIGIBLE_SHARE = 0.001
"""A formula with further columns has to hold in a share of rows that is larger by this number."""
_MOST_LOST = 0.01
"""Tolerated difference in the share of rows, computed by a formula, that satisfy the other formulas
of its relation."""
_MOST_MISSED, _NEAR_STEPS = 0.02, 2.0
"""A formula is an approximation if it misses more than this share of rows, by a median of at most
so many multiples of the column's resolution."""
_NEAR_ROWS = 200
_MOST_LEFT = 0.06
"""Maximum standard deviation of the error of an approximate formula, as a share of the column's."""
_LEAST_NEAR = 0.95
_MOST_DIGITS = 3
"""Maximum number of digits of the constant of an approximate formula."""
_MOST_DIGITS_OF_FACTOR = 6
"""Maximum number of digits of the constant factor of an exact formula; 1 for a column whose numbers
span less than _LEAST_STEPS multiples of its resolution, which many factors would fit."""
_LEAST_STEPS = 20
_COARSER = 3.0
"""Number of doublings up to which two columns count as equally fine."""
_MOST_NEAR = 3
_MOST_LEVELS = 12
"""Maximum number of distinct numbers of a column that is not approximated."""
_FACTORS = (
    1.0, 0.01, 100.0, 0.1, 10.0, 0.001, 1000.0, 10_000.0, 0.5, 2.0, 12.0, 60.0, 1 / 12, 1 / 60,
)  # fmt: skip
"""Usual factors of a term, such as those of units and per cent."""
_NEAR_FACTOR = 0.1
"""Largest relative difference between a usual factor and the median factor of the rows."""

_Of = Callable[..., Numbers]


class _Term(NamedTuple):
    """A term of which formulas are built.

    Attributes:
        text: Expression of the term.
        names: Columns in the expression.
        size: Complexity.
        factors: (Complexity, index of the leaf) of each factor, if the term is a product.
    """

    text: str
    names: frozenset[str]
    size: float
    factors: tuple[tuple[float, int], ...] = ()


_NO_TERM = _Term("", frozenset(), 0.0)


class _Terms(NamedTuple):
    """Terms, and their values in the first n training rows. Shape: (n, number of terms)."""

    each: list[_Term]
    values: Numbers


class _Proposal(NamedTuple):
    """A formula that holds in most rows of a sieve (the rows tested first).

    Attributes:
        text: Expression of the formula.
        size: Complexity.
        names: Columns in the expression.
        values: Function that returns the formula's values in the first training rows, for which the
            terms were computed (`_Terms`). Shape: (n,).
    """

    text: str
    size: float
    names: frozenset[str]
    values: Callable[[], Numbers]


class _Triple(NamedTuple):
    """A way to combine a pair p and a leaf u to a formula.

    Attributes:
        text: Expression with {p} and {u}.
        size: Complexity that the combination adds.
        value: Function of (p, u) that returns the formula's value y.
        pair: Function of (y, u) that returns the value p for which the formula equals y.
    """

    text: str
    size: float
    value: _Of
    pair: _Of


_PRODUCT = "{a} * {b}"
_PAIRS: tuple[tuple[str, float, _Of], ...] = (
    (_PRODUCT, 2.0, lambda a, b: a * b),
    ("{a} + {b}", 2.0, lambda a, b: a + b),
    ("{a} - {b}", 2.0, lambda a, b: a - b),
    ("{b} - {a}", 2.0, lambda a, b: b - a),
    ("{a} / {b}", 2.4, lambda a, b: a / b),
    ("{b} / {a}", 2.4, lambda a, b: b / a),
    ("{a} / {b} ** 2", 3.2, lambda a, b: a / b**2),
    ("{b} / {a} ** 2", 3.2, lambda a, b: b / a**2),
    ("({a} - {b}) / {b}", 2.9, lambda a, b: (a - b) / b),
    ("({b} - {a}) / {a}", 2.9, lambda a, b: (b - a) / a),
    ("({a} + {b}) / 2", 2.6, lambda a, b: (a + b) / 2),
)
"""Formulas of two leaves: expression, complexity and value. Rates form products only."""
_TRIPLES = (
    _Triple("{p} * {u}", 1.0, lambda p, u: p * u, lambda y, u: y / u),
    _Triple("{p} * {u} / 100", 1.7, lambda p, u: p * u / 100, lambda y, u: 100 * y / u),
    _Triple("{p} / {u}", 1.4, lambda p, u: p / u, lambda y, u: y * u),
    _Triple("{u} / {p}", 1.4, lambda p, u: u / p, lambda y, u: u / y),
    _Triple("100 * {p} / {u}", 1.8, lambda p, u: 100 * p / u, lambda y, u: y * u / 100),
    _Triple("100 * {u} / {p}", 1.8, lambda p, u: 100 * u / p, lambda y, u: 100 * u / y),
    _Triple("{p} + {u}", 1.0, lambda p, u: p + u, lambda y, u: y - u),
    _Triple("{p} - {u}", 1.1, lambda p, u: p - u, lambda y, u: y + u),
    _Triple("{u} - {p}", 1.1, lambda p, u: u - p, lambda y, u: u - y),
)
"""Formulas of a pair and a leaf. Rates form products and quotients only."""
_OF_RATES = 6
"""Number of the first triples, those of rates."""
_INVERTED = {"{p} * {u}": "{u} / {p}", "{p} / {u}": "1 / ({p} * {u})", "{p}": "1 / {p}"}
"""Products and quotients with 1 / p in place of p."""


def find_formulas(sample: RowSample, terms: FormulaTerms, plan: Plan) -> Iterator[Candidate]:
    """Yields rules by which a numeric column is an exact short formula of others, one for each set
    of related columns, shortest first."""
    n_tried = max(len(terms.columns) * len(terms.pairs.each) * len(terms.leaves.each), 1)
    positions = {name: i for i, name in enumerate(sample.schema.names)}

    def key(found: tuple[float, Candidate]) -> tuple[float, ...]:
        (size, candidate), rule = found, found[1].rule
        is_backward = any(positions[name] > positions[rule.column] for name in rule.parents)
        # Columns without missing cells are preferred as computed ones.
        missing = round(float(np.isnan(sample.training.numbers[rule.column]).mean()), 2)
        return (
            -round(candidate.share, 2),
            size,
            missing,
            is_backward,
            -positions[rule.column],
        )

    found = []
    for column in terms.columns:
        whole = _Sieve.of(sample, column)
        found += _confirmed(sample, whole, whole.usual_proposals(terms), n_tried, LEAST_SHARE)
    yield from _one_per_relation(sample, [one for _, one in sorted(found, key=key)], plan)


def _one_per_relation(
    sample: RowSample, candidates: Sequence[Candidate], plan: Plan
) -> Iterator[Candidate]:
    """Yields one formula for each set of related columns; its `others` compute other columns of the
    set.

    Rounding loses information, so that rows that one formula computes may violate the others. The
    formula is chosen whose computed rows satisfy the others most often. If all formulas are exact,
    smaller sets come first; of equally large sets, those whose formula the plan allows come first.
    A set is left out if formulas of some of its columns hold about as often.
    """
    relations: dict[frozenset[str], list[Candidate]] = {}
    for candidate in candidates:
        relations.setdefault(frozenset(candidate.rule.columns), []).append(candidate)
    share_of = {names: max(c.share for c in sides) for names, sides in relations.items()}
    is_near = any(not is_formula(candidate.rule) for candidate in candidates)
    for size in [0] if is_near else sorted({len(names) for names in relations}):
        waiting = []
        for names, sides in relations.items():
            if size not in (0, len(names)):
                continue
            least = share_of[names] - _NEGLIGIBLE_SHARE
            if any(fewer < names and share >= least for fewer, share in share_of.items()):
                continue  # further columns change no more than rounding does
            preferred = _preferred(sample, sides)
            if preferred is not None and plan.allows(preferred.rule, may_rearrange=False):
                yield preferred
            elif preferred is not None:
                waiting.append(preferred)
        yield from waiting


def _preferred(sample: RowSample, sides: Sequence[Candidate]) -> Candidate | None:
    """Returns the best of several formulas for the same columns. Eligible are those whose computed
    rows satisfy the other formulas most often, or nearly so. The best is the eligible formula with
    the least cost; the other eligible ones become its `others`. Returns None if the best formula
    computes a column of levels, but its results are rarely among the levels."""
    rules = [side.rule for side in sides]
    agreement = {rule.text: _agreement_of_others(sample, rule, rules) for rule in rules}
    most = max(kept for _, kept in agreement.values())
    best = [
        (_cost(sample, side.rule) + (0.0 if is_level >= _LEAST_HELD else OF_NO_LEVEL), side)
        for side in sides
        for is_level, kept in [agreement[side.rule.text]]
        if kept >= most - _MOST_LOST
    ]
    best.sort(key=lambda pair: round(pair[0]))
    [(cost, first), *others] = best
    if agreement[first.rule.text][0] < _LEAST_HELD:
        return None
    return replace(first, cost=cost, others=tuple((c, other.rule) for c, other in others))


def _cost(sample: RowSample, rule: Rule) -> float:
    """Returns log2(largest spread of a formula's inputs / spread of the computed column), or 0 if
    that is negative. The spread is the standard deviation in multiples of the column's step
    (`_n_steps`).

    With only one input, a cost of up to 3 counts as 0: the two columns are then regarded as equally
    fine.
    """
    own, *others = (_n_steps(sample, name) for name in (rule.column, *rule.parents))
    n_doubled = math.log2(max(1.0, *(other / own for other in others)))
    return n_doubled if len(rule.parents) > 1 or n_doubled > _COARSER else 0.0


def _n_steps(sample: RowSample, name: str) -> float:
    """Returns the standard deviation of a column in multiples of its step: the largest of 1, 10,
    100, ... times the resolution of which all numbers of the column are multiples."""
    numbers, step = sample.training.numbers[name], grid_unit(sample.schema[name]) or 1.0
    numbers = numbers[~np.isnan(numbers)]
    while np.abs(numbers).max() >= 10 * step and np.allclose(
        np.rint(numbers / (10 * step)) * 10 * step, numbers, rtol=0.0, atol=1e-3 * step
    ):
        step *= 10
    return float(numbers.std()) / step


def _agreement_of_others(
    sample: RowSample, rule: Rule, others: Sequence[Rule]
) -> tuple[float, float]:
    """Tests a formula, and other formulas of the same columns, on rows of the sample in which the
    cells of each input are permuted, and the formula's column y is computed from them.

    Returns (share of these rows in which y is one of its levels, or 1 if it has none; share of
    these rows that satisfy a formula of `others` for another column, averaged over these formulas).
    """
    others = [other for other in others if other.column != rule.column]
    column = sample.schema[rule.column]
    frame = sample.training.frame[list(rule.columns)].dropna()[:_ROWS]
    if not len(frame) or not (others or column.kind.has_levels):
        return 1.0, 1.0
    random = np.random.default_rng(0)
    formula = Prediction.of(rule, sample.schema)
    off = quantities(frame[rule.column]) - quantities(formula.predicted(frame))
    order = {name: random.permutation(len(frame)) for name in rule.parents}
    mixed = with_columns(frame, {name: frame[name].to_numpy()[at] for name, at in order.items()})
    computed = quantities(formula.predicted(mixed)) + np.where(np.isnan(off), 0.0, off)
    unit = grid_unit(column)
    mixed[rule.column] = computed if unit is None else rounded(computed, column)
    is_level = mixed[rule.column].isin(sample.training.frame[rule.column]).to_numpy()
    shares = []
    for other in others:
        known, kept = Prediction.of(other, sample.schema).keeps(mixed)
        shares.append(float(kept.sum() / max(known.sum(), 1)))
    share_of_levels = float(is_level.mean()) if column.kind.has_levels else 1.0
    return share_of_levels, float(np.mean(shares)) if shares else 1.0


def find_approximations(sample: RowSample, terms: FormulaTerms, plan: Plan) -> Iterator[Candidate]:
    """Yields products and quotients that approximate a column up to a constant factor, most precise
    first."""
    if not terms.pairs.each:
        return
    found = []
    for column in terms.columns:
        if len(np.unique(sample.training.numbers[column.name])) <= _MOST_LEVELS:
            continue
        for text, left in _best_products(sample, column, terms.leaves, terms.pairs):
            rule = _approximate_rule(sample, column, text)
            if rule is None:
                continue
            n_tried = len(terms.columns) * len(terms.pairs.each)
            for candidate in validated([rule], sample, n_tried, _LEAST_NEAR):
                found.append((left, candidate))
    in_order = sorted(found, key=lambda pair: (round(pair[0], 3), len(pair[1].rule.text)))
    yield from _one_per_relation(sample, [candidate for _, candidate in in_order], plan)


def _best_products(
    sample: RowSample, column: Column, leaves: _Terms, pairs: _Terms
) -> list[tuple[str, float]]:
    """Returns up to three products or quotients of a pair P and a leaf u whose logarithm best fits
    that of a column y.

    Let a be the logarithm of y / u, and p that of P, both minus their means over the rows. The
    squared error is then |a - p|² = |a|² + |p|² - 2 a·p, which one matrix product gives for all
    pairs and leaves.

    Returns:
        (expression, share of the standard deviation of log y that remains) of each product.
    """
    y = sample.training.numbers[column.name][:_ROWS]
    rows = np.flatnonzero(y > 0)[:_NEAR_ROWS]
    if len(rows) < _SIEVE_ROWS:
        return []
    of_y = _centred(y[rows, None])[:, 0]
    deviation = float(of_y @ of_y)
    if np.isnan(deviation) or deviation <= 0:
        return []
    p = _centred(pairs.values[rows])
    is_other = np.array([column.name not in pair.names for pair in pairs.each])
    is_usable = ~np.isnan(p).any(axis=0) & is_other
    p = np.where(is_usable, p, 0.0)
    of_pairs = np.where(is_usable, (p * p).sum(axis=0), np.inf)
    u = _centred(leaves.values[rows])
    forms = [("{p}", _NO_TERM, of_y)]
    for leaf, logs in zip(leaves.each, u.T, strict=True):
        if column.name not in leaf.names and not np.isnan(logs).any():
            forms += [("{p} * {u}", leaf, of_y - logs), ("{p} / {u}", leaf, of_y + logs)]
    targets = np.stack([target for _, _, target in forms])
    tried: list[tuple[float, str]] = []
    plainness = 1e-6 * deviation * np.array([pair.size for pair in pairs.each])
    for sign in (1, -1):  # y is a pair or its reciprocal, times or divided by u
        left = (targets * targets).sum(axis=1)[:, None] + of_pairs - 2.0 * sign * (targets @ p)
        places = (left + plainness).argmin(axis=1)
        for (form, leaf, _), off, place in zip(forms, left, places, strict=True):
            pair = pairs.each[place]
            if off[place] > _MOST_LEFT**2 * deviation or pair.names & leaf.names:
                continue
            form = form if sign > 0 else _INVERTED[form]
            text = form.format(p=f"({pair.text})", u=leaf.text)
            tried.append((max(float(off[place]), 0.0), text))
    best = sorted(tried)[:_MOST_NEAR]
    return [(text, float(np.sqrt(left / deviation))) for left, text in best]


def _centred(values: Numbers) -> Numbers:
    """Returns the logarithms of each column of a matrix minus their mean; NaN where a number is not
    positive. Shape: (n, D)."""
    with np.errstate(all="ignore"):
        logs = np.log(np.where(values > 0, values, np.nan))
        return np.asarray(logs - logs.mean(axis=0))


def _approximate_rule(sample: RowSample, column: Column, text: str) -> Rule | None:
    """Returns the rule y ≈ c · f ± the 99 % quantile of the error, with few digits of c; None if
    the error is too large."""
    y, half = quoted_name(column.name), sample.training
    unit = grid_unit(column)
    predicted = Prediction.of(Rule(f"{y} == {text}"), sample.schema).evaluated(half.frame)
    target = half.numbers[column.name]
    known = ~np.isnan(predicted) & ~np.isnan(target) & (predicted != 0)
    if known.sum() < 2 * _SIEVE_ROWS or unit is None:
        return None
    target, predicted = target[known], predicted[known]
    factor = float(np.median(target / predicted))
    for digits in range(1, _MOST_DIGITS + 1):
        plain = float(f"{factor:.{digits}g}")
        off, best = (np.abs(target - c * predicted) for c in (plain, factor))
        if np.quantile(off, 0.9) <= 1.05 * np.quantile(best, 0.9) + 0.1 * unit:
            break
    else:
        return None
    near = max(float(np.quantile(off, 0.99)), unit)
    spread = float(np.subtract(*np.quantile(target, [0.75, 0.25])))
    if near > 4 * _MOST_LEFT * spread:
        return None
    return Rule(
        f"{y} ≈ {_scaled(plain, text, 0.0)[0]} ± {float(f'{near:.1g}'):.12g}", source="found"
    )


@dataclass(frozen=True)
class FormulaTerms:
    """Terms of which formulas of numeric columns are built.

    Attributes:
        columns: Columns that formulas may explain: those with more than two distinct numbers.
        leaves: Numeric columns as terms, and 1 - r and 1 + r of rates r (numbers from 0 to 1).
        pairs: Combinations of two leaves, such as a + b and a * b.
        proposed: Formulas proposed so far, by the column that they explain.
    """

    columns: tuple[Column, ...]
    leaves: _Terms
    pairs: _Terms
    proposed: dict[str, list[_Proposal]] = field(default_factory=dict)

    @cached_property
    def products(self) -> _Terms:
        """Products of two columns."""
        at = [i for i, pair in enumerate(self.pairs.each) if pair.factors and pair.size == 2.0]
        return _Terms([self.pairs.each[i] for i in at], self.pairs.values[:, at])

    @cached_property
    def triple_products(self) -> _Terms:
        """Products of three columns, of the first _MOST_IN_TRIPLES columns."""
        products, values = list[_Term](), [self.leaves.values[:, :0]]
        plain = [i for i, leaf in enumerate(self.leaves.each) if leaf.size == 1.0]
        for places in combinations(plain[:_MOST_IN_TRIPLES], 3):
            leaves = [self.leaves.each[i] for i in places]
            names = frozenset().union(*(leaf.names for leaf in leaves))
            products.append(_Term(" * ".join(leaf.text for leaf in leaves), names, 3.0))
            values.append(self.leaves.values[:, places].prod(axis=1, keepdims=True))
        return _Terms(products, np.concatenate(values, axis=1))

    @classmethod
    def of(cls, sample: RowSample) -> Self:
        """Returns the terms of at most MOST_COLUMNS columns; those with only two distinct numbers
        are the first to be left out."""
        n_numbers = {
            c.name: len(np.unique(known[~np.isnan(known)]))
            for c in sample.numeric
            for known in [sample.training.numbers[c.name][:_ROWS]]
        }
        spread = [c for c in sample.numeric if n_numbers[c.name] > 2]
        others = [c for c in sample.numeric if n_numbers[c.name] == 2 and spread]
        names = {c.name for c in [*spread, *others][:MOST_COLUMNS]}
        leaves = _leaves(sample, [c for c in sample.numeric if c.name in names])
        return cls(tuple(c for c in spread if c.name in names), leaves, _pairs(leaves))


def _leaves(sample: RowSample, columns: Sequence[Column]) -> _Terms:
    """Returns terms of single columns: each column x itself and, if all its numbers lie between 0
    and 1 or between 0 and 100, the rates 1 - x and 1 + x, or 1 - x / 100 and 1 + x / 100."""
    terms, values = list[_Term](), [np.zeros((min(len(sample.training), _ROWS), 0))]
    for column in columns:
        whole, name = sample.training.numbers[column.name], quoted_name(column.name)
        x, low, high = whole[:_ROWS], np.nanmin(whole), np.nanmax(whole)
        forms = [(name, 1.0, x)]
        if low >= 0 and high <= 1:
            forms += [(f"(1 - {name})", 1.5, 1 - x), (f"(1 + {name})", 1.5, 1 + x)]
        elif low >= 0 and high <= 100:
            r = x / 100
            forms += [(f"(1 - {name} / 100)", 1.6, 1 - r), (f"(1 + {name} / 100)", 1.6, 1 + r)]
        for text, size, of_form in forms:
            terms.append(_Term(text, frozenset({column.name}), size, ((size, len(terms)),)))
            values.append(of_form[:, None])
    return _Terms(terms, np.concatenate(values, axis=1))


def _pairs(leaves: _Terms) -> _Terms:
    """Combines two leaves of different columns by each operation; leaves such as 1 - r by products
    only."""
    terms, values = list[_Term](), []
    with np.errstate(all="ignore"):
        for (i, a), (j, b) in combinations(enumerate(leaves.each), 2):
            forms = _PAIRS if a.size == b.size == 1.0 else _PAIRS[:1]
            for form, size, value in forms if a.names != b.names else ():
                text, size = form.format(a=a.text, b=b.text), size + a.size + b.size - 2.0
                factors = a.factors + b.factors if form == _PRODUCT else ()
                terms.append(_Term(text, a.names | b.names, size, factors))
                values.append(value(leaves.values[:, i], leaves.values[:, j]))
    return _Terms(terms, np.stack(values, axis=1) if terms else np.zeros((len(leaves.values), 0)))


def find_bounded(sample: RowSample, terms: FormulaTerms, plan: Plan) -> Iterator[Candidate]:
    """Yields rules by which a numeric column is a short formula with a bound, max(a, f) or
    min(a, f), for columns that no rule of the plan computes; shortest first."""
    n_tried = len(terms.columns) * len(terms.pairs.each) * len(terms.leaves.each)
    n_bounds, found = 2 + 2 * len(terms.leaves.each), []
    for column in terms.columns:
        if not plan.computes(column.name):
            whole = _Sieve.of(sample, column)
            bounded = list(_bounded(whole, terms))
            found += _confirmed(sample, whole, bounded, n_bounds * n_tried, _LEAST_BOUNDED)
    in_order = sorted(found, key=lambda pair: (-round(pair[1].share, 2), pair[0]))
    yield from _one_per_relation(sample, [candidate for _, candidate in in_order], plan)


def find_exempting(sample: RowSample, terms: FormulaTerms, plan: Plan) -> Iterator[Candidate]:
    """Yields rules by which a numeric column is a short formula or its most frequent number, such
    as `fee == 0.02 * amount or fee == 0`, for columns that no rule of the plan computes; shortest
    first."""
    n_tried = len(terms.columns) * len(terms.pairs.each) * len(terms.leaves.each)
    found = []
    for column in terms.columns:
        whole = _Sieve.of(sample, column)
        usual, known = whole.usual, whole.y[~np.isnan(whole.y)]
        share = float((known == usual).mean()) if len(known) else 0.0
        if plan.computes(column.name) or not _LEAST_EXEMPT <= share <= 1 - _LEAST_EXEMPT:
            continue
        others = replace(whole, y=np.where(whole.y == usual, np.nan, whole.y))
        suffix = f" or {quoted_name(column.name)} == {usual:.12g}"
        proposals = [one._replace(text=one.text + suffix) for one in whole.usual_proposals(terms)]
        found += _confirmed(sample, others, proposals, n_tried, _LEAST_BOUNDED)
    in_order = sorted(found, key=lambda pair: (-round(pair[1].share, 2), pair[0]))
    yield from _one_per_relation(sample, [candidate for _, candidate in in_order], plan)


def _confirmed(
    sample: RowSample, whole: _Sieve, proposals: Sequence[_Proposal], n_tried: int, least: float
) -> list[tuple[float, Candidate]]:
    """Returns (complexity, candidate) for proposals that hold in at least a share `least` of the
    rows of each half of the sample, and in nearly as many validation rows as the best proposal. To
    save time, each is first tested in the rows of `whole`."""
    found = []
    for text, size, _, values in proposals:
        if not whole.may_hold(values()) or whole.is_near(values()):
            continue
        rule = equality(whole.column, text)
        seen = agreement_of(rule, sample.training.frame, sample.schema)
        if seen.share < least or seen.unusual < least * seen.share:
            continue
        for candidate in validated([rule], sample, n_tried, least):
            found.append((size, candidate))
    most = max((candidate.share for _, candidate in found), default=0.0)
    return [(size, candidate) for size, candidate in found if candidate.share >= most - 0.005]


def _bounded(whole: _Sieve, terms: FormulaTerms) -> Iterator[_Proposal]:
    """Yields formulas of a column y with one bound, max(a, f) or min(a, f), or with two constant
    bounds.

    A single bound a is the most frequent number of y, or another column: for max(a, f), one that is
    hardly ever larger than y; for min(a, f), one that is hardly ever smaller than y. Two constant
    bounds are the smallest and the largest number of y. The formula f is sought in rows in which y
    does not equal the bound.
    """
    y, near, usual, leaves = whole.y, whole.near, whole.usual, terms.leaves
    known = y[~np.isnan(y)]
    proposals = whole.usual_proposals(terms)
    low, high = (float(end) for end in (known.min(), known.max()))
    is_between = (y > low) & (y < high)
    if min((y == low).mean(), (y == high).mean()) >= _LEAST_MET and is_between.any():
        for text, size, names, values in whole.proposals(
            _informative_rows(np.where(is_between, y, np.nan)), terms
        ):
            bounded = partial(_clipped, values, low, high)
            text = f"min({high:.12g}, max({low:.12g}, {text}))"
            yield _Proposal(text, size + 3.0, names, bounded)
    for word, choose, sign in (("max", np.maximum, 1.0), ("min", np.minimum, -1.0)):
        if (sign * known >= sign * usual).all():
            for text, size, names, values in proposals:
                bounded = partial(choose, values(), usual)
                yield _Proposal(f"{word}({usual:.12g}, {text})", size + 1.5, names, bounded)
        above = sign * (y[:, None] - leaves.values)
        n_known = (~np.isnan(above)).sum(axis=0)
        is_met = (np.abs(above) <= near[:, None]) & (y != usual)[:, None]
        met = is_met.sum(axis=0) / np.maximum(n_known, 1)
        is_bound = (above >= -near[:, None]).sum(axis=0) >= _LEAST_BOUNDED * n_known
        for i in np.flatnonzero(is_bound & (met >= _LEAST_MET) & (met <= 1 - _LEAST_MET)):
            leaf = leaves.each[i]
            is_other = leaf.size == 1.0 and whole.column.name not in leaf.names
            if is_other and len(np.unique(y[is_met[:, i]])) >= _LEAST_NUMBERS_MET:
                rows = _informative_rows(np.where(is_met[:, i], np.nan, y))
                for text, size, names, values in whole.proposals(rows, terms):
                    bounded = partial(choose, values(), leaves.values[:, i])
                    text = f"{word}({leaf.text}, {text})"
                    yield _Proposal(text, size + 2.5, names | leaf.names, bounded)


def _clipped(values: Callable[[], Numbers], low: float, high: float) -> Numbers:
    return np.clip(values(), low, high)


def _informative_rows(y: Numbers) -> npt.NDArray[np.intp]:
    """Returns indices of some rows in which a column is neither 0 nor its most frequent number, by
    descending absolute value; if these are too few, also rows with the most frequent number."""
    known = np.flatnonzero(~np.isnan(y) & (y != 0))
    if not len(known):
        return known
    values, counts = np.unique(y[known], return_counts=True)
    unusual = known[y[known] != values[counts.argmax()]]
    rows = unusual if len(unusual) >= _SIEVE_ROWS else known
    rows = rows[np.argsort(-np.abs(y[rows]), kind="stable")]
    step = max(len(rows) // _SIEVE_ROWS, 1)
    return np.asarray(rows[::step][:_SIEVE_ROWS])


@dataclass(frozen=True)
class _Sieve:
    """Some rows of a column y, in which formulas are tested first.

    Attributes:
        column: Schema of y.
        y: Numbers of the column. Shape: (n,).
        unit: Resolution of y; None if it has none.
    """

    column: Column
    y: Numbers
    unit: float | None

    @cached_property
    def usual(self) -> float:
        """Most frequent number of the column; NaN if all cells are missing."""
        known = self.y[~np.isnan(self.y)]
        return float(most_frequent(known)) if len(known) else np.nan

    @cached_property
    def near(self) -> Numbers:
        """Largest distance between the column y and a formula at which they count as equal, in each
        of n rows. Shape: (n,)."""
        return slack(self.column, np.abs(self.y), is_rounded=True)

    def may_hold(self, values: Numbers) -> bool:
        """Returns whether a formula with these values equals the column in so many rows that a test
        in all rows is worthwhile.

        It also has to equal the column in most of the rows that do not contain the column's most
        frequent number.
        """
        off = np.abs(values - self.y)
        is_equal, known = off <= self.near, np.isfinite(off)
        for among, least in ((known, _LEAST_HELD), (known & (self.y != self.usual), 0.7)):
            n = int(among.sum())
            least = least if n >= _LEAST_JUDGED else 0.5
            if n >= LEAST_ROWS and is_equal[among].mean() < least:
                return False
        return True

    def is_near(self, values: Numbers) -> bool:
        """Returns whether a formula with these values misses the column in many rows, but by
        little, so that it is an approximation."""
        off = np.abs(values - self.y)
        missed = off[off > self.near]
        is_often = len(missed) > _MOST_MISSED * np.isfinite(off).sum()
        return bool(is_often and np.median(missed) <= _NEAR_STEPS * (self.unit or 0.0))

    @classmethod
    def of(cls, sample: RowSample, column: Column) -> Self:
        """Returns the first training rows of a column."""
        return cls(column, sample.training.numbers[column.name][:_ROWS], grid_unit(column))

    def usual_proposals(self, terms: FormulaTerms) -> list[_Proposal]:
        """Returns the formulas that equal the column in most of the rows in which it is neither 0
        nor its most frequent number (`_informative_rows`); shortest first."""
        name = self.column.name
        if name not in terms.proposed:
            terms.proposed[name] = self.proposals(_informative_rows(self.y), terms)
        return terms.proposed[name]

    def proposals(self, rows: npt.NDArray[np.intp], terms: FormulaTerms) -> list[_Proposal]:
        """Returns the formulas that equal the column in most of the rows with indices `rows`;
        shortest first."""
        if len(rows) < _LEAST_SIEVE:
            return []
        sieve = _Sieve(self.column, self.y[rows], self.unit)
        tried: dict[str, _Proposal] = {}
        leaves, pairs, products = terms.leaves, terms.pairs, terms.products
        for one in (
            *sieve._of_multiples(leaves, rows),
            *sieve._of_multiples(pairs, rows),
            *sieve._of_multiples(terms.triple_products, rows),
            *islice(sieve._of_triples(leaves, pairs, rows), _MOST_SIEVED),
            *islice(sieve._of_triples(products, products, rows), _MOST_SIEVED),
        ):
            if one.text not in tried or one.size < tried[one.text].size:
                tried[one.text] = one
        holds = {text: self.may_hold(one.values()) for text, one in tried.items()}
        best, n_of_names = list[_Proposal](), Counter[tuple[frozenset[str], bool]]()
        for one in sorted(tried.values(), key=lambda one: (not holds[one.text], one.size)):
            key = one.names, holds[one.text]
            n_of_names[key] += 1
            if n_of_names[key] <= _MOST_OF_NAMES:
                best.append(one)
        return sorted(best[:_MOST_TRIED], key=lambda one: one.size)

    def _of_multiples(self, terms: _Terms, rows: npt.NDArray[np.intp]) -> Iterator[_Proposal]:
        """Yields the terms that equal the column in most rows when they are multiplied by a
        constant: one of the usual factors (`_FACTORS`) or, unless the term is a rate such as 1 - r,
        one with at most _MOST_DIGITS_OF_FACTOR digits."""
        is_fine = self.unit is None or np.ptp(self.y) >= _LEAST_STEPS * self.unit
        at = np.arange(len(terms.each))
        for step in (_SKIPPED, 1):
            y, near, values = (
                self.y[::step, None],
                self.near[::step, None],
                terms.values[rows[::step]],
            )
            factors = column_medians(y / values[:, at])
            off = np.abs(factors * values[:, at] - y)
            hits = (off <= 4 * near).sum(axis=0)
            is_near = hits >= np.maximum(_LEAST_SIEVED * (~np.isnan(off)).sum(axis=0), 2)
            at, factors = at[is_near], factors[is_near]
        for place, factor in zip(at.tolist(), factors.tolist(), strict=True):
            term, x = terms.each[place], values[:, place]
            is_rate = len(term.names) == 1 and term.size > 1.0
            known = np.isfinite(x) & (x != 0)
            if self.column.name in term.names or known.sum() < _LEAST_SIEVE or not factor:
                continue
            others = _plain_factors(factor) if is_fine else [float(f"{factor:.1g}")]
            sizes = [
                (one, _scaled(one, term.text, term.size)[1])
                for one in _FACTORS
                if abs(one / factor - 1) <= _NEAR_FACTOR
            ]
            sizes += [
                (one, term.size + 0.5 + 0.1 * k) for k, one in enumerate(others) if not is_rate
            ]
            for plain, size in sizes:
                hits = np.abs(plain * x - self.y)[known] <= self.near[known]
                if hits.mean() >= _LEAST_SIEVED:
                    text, _ = _scaled(plain, term.text, term.size)
                    values_of = partial(np.multiply, plain, terms.values[:, place])
                    yield _Proposal(text, size, term.names, values_of)
                    break

    def _of_triples(
        self, leaves: _Terms, pairs: _Terms, rows: npt.NDArray[np.intp]
    ) -> Iterator[_Proposal]:
        """Yields the formulas that combine a pair, such as a + b, with a third column and equal the
        column y in most rows; the shortest first."""
        u, p = leaves.values[rows], pairs.values[rows]
        required = self._required_pairs(leaves, u)
        if not required or not pairs.each:
            return
        target = np.stack([values for _, _, values, _ in required], axis=1)
        reach = np.stack([near for *_, near in required], axis=1)
        n_pairs, met = len(pairs.each), [np.zeros(0, dtype=np.int64)]
        for row in range(0, len(rows), max(len(rows) // 4, 1)):
            order = np.argsort(p[row], kind="stable")
            ordered = p[row][order]
            first = np.searchsorted(ordered, target[row] - reach[row])
            last = np.searchsorted(ordered, target[row] + reach[row], side="right")
            n_met = np.where(np.isnan(target[row]), 0, last - first)
            n_met = np.where(n_met <= _MOST_MATCHES, n_met, 0)
            which = np.repeat(np.arange(len(n_met)), n_met)
            place = order[np.arange(len(which)) - np.repeat(n_met.cumsum() - n_met - first, n_met)]
            off = np.abs(p[::_SKIPPED, place] - target[::_SKIPPED, which])
            at = self._may_agree(off, reach[::_SKIPPED, which])
            which, place = which[at], place[at]
            off = np.abs(p[:, place] - target[:, which])
            hits = self._shares(off <= reach[:, which], ~np.isnan(off)) >= _LEAST_SIEVED
            met.append(which[hits] * n_pairs + place[hits])
        numbers, places = np.divmod(np.unique(np.concatenate(met)), n_pairs)
        sizes = np.array([triple.size for _, triple, *_ in required])[numbers]
        sizes += np.array([pair.size for pair in pairs.each])[places]
        sizes += np.array([leaves.each[i].size for i, *_ in required])[numbers]
        for k in np.argsort(sizes, kind="stable").tolist():
            number, place = int(numbers[k]), int(places[k])
            i, triple, *_ = required[number]
            leaf, pair = leaves.each[i], pairs.each[place]
            if self.column.name in pair.names or (pair.names & leaf.names and not leaf.factors[1:]):
                continue
            if pair.names == leaf.names:
                continue
            if triple is _TRIPLES[0] and pair.factors:
                factors = sorted(pair.factors + leaf.factors)
                text = " * ".join(leaves.each[k].text for _, k in factors)
            else:
                is_sum = triple.text in ("{p} + {u}", "{p} - {u}")
                of_pair = pair.text if is_sum else f"({pair.text})"
                text = triple.text.format(p=of_pair, u=leaf.text)
            names = pair.names | leaf.names
            values_of = partial(triple.value, pairs.values[:, place], leaves.values[:, i])
            yield _Proposal(text, float(sizes[k]), names, values_of)

    def _required_pairs(
        self, leaves: _Terms, u: Numbers
    ) -> list[tuple[int, _Triple, Numbers, Numbers]]:
        """Returns which values a pair must have so that it equals y when combined with a leaf.

        There is an element for each leaf and each way to combine it with a pair (`_Triple`): (index
        of the leaf, way, required values, how far they may deviate). `u` are the values of the
        leaves. Shape: required values and deviation (n,), u (n, leaves).
        """
        found = []
        with np.errstate(all="ignore"):
            for i, leaf in enumerate(leaves.each):
                is_other = self.column.name not in leaf.names
                forms = _TRIPLES if leaf.size == 1.0 else _TRIPLES[:_OF_RATES]
                forms = _TRIPLES[_OF_RATES : _OF_RATES + 2] if leaf.factors[1:] else forms
                for triple in forms if is_other else ():
                    values = triple.pair(self.y, u[:, i])
                    usable = np.where(np.isfinite(values), values, np.nan)
                    ends = [triple.pair(self.y + e, u[:, i]) for e in (-self.near, self.near)]
                    reach = np.abs(ends[1] - ends[0]) / 2
                    found.append((i, triple, usable, reach + 1e-9 * np.abs(usable)))
        return found

    @staticmethod
    def _may_agree(off: Numbers, near: Numbers) -> npt.NDArray[np.intp]:
        """Returns the indices of the terms that are close to the values required of them: at most
        `near` away in at least half of the rows. `off` are the distances; rows with NaN are not
        counted. Shape: (n, terms) each."""
        return np.flatnonzero((off <= near).sum(axis=0) >= 0.5 * (~np.isnan(off)).sum(axis=0))

    @staticmethod
    def _shares(hits: Mask, known: Mask) -> Numbers:
        """Returns for each term the share of the rows `known` in which it has the required value
        (`hits`); 0 if few rows are known. Shape: (n, terms) each -> (terms,)."""
        n_known = known.sum(axis=0)
        shares = hits.sum(axis=0) / np.maximum(n_known, 1)
        return np.where(n_known >= _LEAST_SIEVE, shares, 0.0)


def _plain_factors(factor: float) -> Iterator[float]:
    """Yields approximations of a factor, the plainest first: 1 / n with a whole number n if the
    factor lies between -1 and 1, then the factor rounded to 1, 2 and more digits."""
    if 0.0 < abs(factor) < 1.0:
        yield 1.0 / round(1.0 / factor)
    for digits in range(1, _MOST_DIGITS_OF_FACTOR + 1):
        yield float(f"{factor:.{digits}g}")


def _scaled(factor: float, text: str, size: float) -> tuple[str, float]:
    if factor == 1.0:
        return text, size
    whole = f"({text})" if " + " in text or " - " in text else text
    scaled = sum_text([(factor, whole)])
    return scaled, size + (0.6 if scaled.startswith(whole) else 0.5)
