"""Finds numeric columns that are short formulas of others, by enumeration.

    leaves    x, and for rates 1 - r, 1 + r, 1 - r/100, 1 + r/100
    pairs     a + b, a - b, a * b, a / b, 100 * a / b, a / b², (a - b) / b, (a + b) / 2
    triples   a pair P and a third leaf u, by meet in the middle: y = P * u where y / u = P

A formula is tested on some rows (the sieve), then on all of the training half, and validated on the
other half. Among formulas that hold equally often, the shortest is preferred. Several formulas may
express one relation, solved for different columns: the one is preferred whose rounding violates the
others least.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gcvae.arrays import Mask, Numbers
from gcvae.cells.data_frames import with_columns
from gcvae.cells.grid_units import grid_unit
from gcvae.rules.predictions import Prediction, quantities, rounded
from gcvae.rules.row_sample import Candidate, RowSample, agreement_of, validated
from gcvae.rules.search_sums import find_sums
from gcvae.schema.columns import Column
from gcvae.schema.expressions import quoted_name
from gcvae.schema.rules import Rule

LEAST_SHARE = 0.9
"""Minimum share of rows in which a formula holds."""
_ROWS = 600
"""Number of rows in which terms are computed; a sieve contains the most informative of them."""
_SIEVE_ROWS = 48
_LEAST_SIEVE = 10
_LEAST_SIEVED = 0.7
_LEAST_HELD = LEAST_SHARE - 0.1
"""Share of _ROWS rows below which a formula is not tested in all."""
_LEAST_JUDGED = 100
"""Number of known rows from which that share is reliable: three standard errors are 0.09."""
MOST_COLUMNS = 40
"""Maximum number of columns in pairs and triples; time grows with the cube of this number."""
_MOST_MATCHES = 400
"""Maximum number of pairs that match one row's value; more are not informative."""
_MOST_TRIED = 24
"""Maximum number of formulas of a column that are tested in all rows."""
_MOST_LOST = 0.01
"""Tolerated share of rows, computed by one formula of a relation, that violate another one."""
_NEAR_ROWS = 200
_MOST_LEFT = 0.06
"""Maximum standard deviation of the error of an approximate formula, as a share of the column's."""
_LEAST_NEAR = 0.95
_MOST_DIGITS = 3
"""Maximum number of digits of the constant of an approximate formula."""
_MOST_NEAR = 3
_FACTORS = (
    1.0, 0.01, 100.0, 0.1, 10.0, 0.001, 1000.0, 10_000.0, 0.5, 2.0, 12.0, 60.0, 1 / 12, 1 / 60,
)  # fmt: skip
"""Possible factors of a pair: units and per cent."""

Free = Callable[[Rule], bool]
"""Function that returns whether a rule is compatible with the accepted rules."""


@dataclass(frozen=True)
class _Terms:
    """Terms from which formulas are built, with their values in some rows.

    Attributes:
        texts: Expression of each term.
        names: Columns of each term.
        sizes: Complexity of each term.
        values: Values of the terms. Shape: (n, number of terms).
        products: (size, leaf) of the factors of each product; empty for other terms.
    """

    texts: list[str]
    names: list[frozenset[str]]
    sizes: list[float]
    values: Numbers
    products: list[list[tuple[float, int]]] = field(default_factory=list)


class _Proposal(NamedTuple):
    """A formula that holds in the rows of a sieve.

    Attributes:
        text: Expression.
        size: Complexity.
        values: Returns its values in the rows of `_Terms`. Shape: (n,).
    """

    text: str
    size: float
    values: Callable[[], Numbers]


def _times(factor: float, values: Numbers) -> Numbers:
    return factor * values


_TRIPLES: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "{p} * {u}": lambda p, u: p * u,
    "{p} / {u}": lambda p, u: p / u,
    "{u} / {p}": lambda p, u: u / p,
    "100 * {p} / {u}": lambda p, u: 100 * p / u,
    "100 * {u} / {p}": lambda p, u: 100 * u / p,
    "{p} + {u}": lambda p, u: p + u,
    "{p} - {u}": lambda p, u: p - u,
    "{u} - {p}": lambda p, u: u - p,
}
"""Formulas of a pair p and a leaf u."""


def find_formulas(sample: RowSample, is_free: Free) -> Iterator[Candidate]:
    """Yields rules by which a numeric column is a formula of others: exact short formulas, one per
    relation, shortest first; then sums of more terms; then approximate formulas.

    Args:
        sample: Sample of the table.
        is_free: Function that returns whether a rule is compatible with the accepted ones.
    """
    columns = [c for c in sample.numeric if _is_spread(sample.training.numbers[c.name])]
    columns = columns[:MOST_COLUMNS]
    if len(columns) < 2:
        yield from find_sums(sample, is_free)
        return
    leaves = _leaves(sample, columns)
    pairs = _pairs(leaves)
    yield from _exact(sample, columns, leaves, pairs, is_free)
    yield from find_sums(sample, is_free)
    yield from _approximate(sample, columns, leaves, pairs, is_free)


def _exact(
    sample: RowSample, columns: Sequence[Column], leaves: _Terms, pairs: _Terms, is_free: Free
) -> Iterator[Candidate]:
    """Yields formulas that hold to the last decimal."""
    n_tried = len(columns) * len(pairs.texts) * len(leaves.texts)
    found = [
        one for column in columns for one in _of_column(sample, column, leaves, pairs, n_tried)
    ]
    places = {name: place for place, name in enumerate(sample.schema.names)}

    def key(one: _Found) -> tuple[float, ...]:
        rule = one.candidate.rule
        is_backward = any(places[name] > places[rule.column] for name in rule.parents)
        # Columns without missing cells are preferred as computed ones.
        missing = round(float(np.isnan(sample.training.numbers[rule.column]).mean()), 2)
        return (*one.preference, missing, is_backward, -places[rule.column])

    in_order = sorted(found, key=key)
    yield from _one_per_relation(sample, [one.candidate for one in in_order], is_free)


def _one_per_relation(
    sample: RowSample, candidates: Sequence[Candidate], is_free: Free
) -> Iterator[Candidate]:
    """Yields one formula for each relation between columns.

    Rounding loses information, so rows that are computed by one formula may violate the others of
    its relation. The formula whose computed rows satisfy the others most often is chosen.
    """
    relations: dict[frozenset[str], list[Candidate]] = {}
    for candidate in candidates:
        relations.setdefault(frozenset(candidate.rule.columns), []).append(candidate)
    waiting = []
    for sides in relations.values():
        kept = {
            c.rule.text: _agreement_of_others(sample, c.rule, [o.rule for o in sides])
            for c in sides
        }
        most = max(kept.values())
        first, *others = [c for c in sides if kept[c.rule.text] >= most - _MOST_LOST]
        if is_free(first.rule):
            yield first
        else:
            waiting.append(others)
    for others in waiting:
        yield from [side for side in others if is_free(side.rule)][:1]


def _agreement_of_others(sample: RowSample, rule: Rule, others: Sequence[Rule]) -> float:
    """Returns the share of rows, computed by a formula from permuted cells, that satisfy the
    formulas of the other columns."""
    others = [other for other in others if other.column != rule.column]
    if not others:
        return 1.0
    random = np.random.default_rng(0)
    frame = sample.training.frame[list(rule.columns)].dropna()[:_ROWS]
    if not len(frame):
        return 1.0
    formula = Prediction.of(rule, sample.schema)
    off = quantities(frame[rule.column]) - quantities(formula.predicted(frame))
    order = {name: random.permutation(len(frame)) for name in rule.parents}
    mixed = with_columns(frame, {name: frame[name].to_numpy()[at] for name, at in order.items()})
    computed = quantities(formula.predicted(mixed)) + np.where(np.isnan(off), 0.0, off)
    column = sample.schema[rule.column]
    unit = grid_unit(column)
    mixed[rule.column] = computed if unit is None else rounded(computed, column)
    shares = []
    for other in others:
        known, kept = Prediction.of(other, sample.schema).keeps(mixed)
        shares.append(float(kept.sum() / max(known.sum(), 1)))
    return float(np.mean(shares))


def _approximate(
    sample: RowSample, columns: Sequence[Column], leaves: _Terms, pairs: _Terms, is_free: Free
) -> Iterator[Candidate]:
    """Yields products and quotients that approximate a column up to a constant factor, most precise
    first."""
    if not pairs.texts:
        return
    found = []
    for column in columns:
        for text, left in _best_products(sample, column, leaves, pairs):
            rule = _approximate_rule(sample, column, text)
            if rule is None:
                continue
            candidate = validated(rule, sample, len(columns) * len(pairs.texts), _LEAST_NEAR)
            if candidate is not None:
                found.append((left, candidate))
    in_order = sorted(found, key=lambda pair: (round(pair[0], 3), len(pair[1].rule.text)))
    yield from _one_per_relation(sample, [candidate for _, candidate in in_order], is_free)


def _best_products(
    sample: RowSample, column: Column, leaves: _Terms, pairs: _Terms
) -> list[tuple[str, float]]:
    """Returns the products of a pair P and a leaf u whose logarithm best fits that of a column.

    With centred logarithms, |log y - log u - log P|² = |a|² + |p|² - 2 a·p for all pairs at once.

    Returns:
        (expression, share of the standard deviation that remains) of up to three products.
    """
    y = sample.training.numbers[column.name][:_ROWS]
    rows = np.flatnonzero(y > 0)[:_NEAR_ROWS]
    if len(rows) < _SIEVE_ROWS or (y[rows] > 0).mean() < 1.0:
        return []
    of_y = _centred(y[rows, None])[:, 0]
    deviation = float(of_y @ of_y)
    if np.isnan(deviation) or deviation <= 0:
        return []
    p = _centred(pairs.values[rows])
    is_usable = ~np.isnan(p).any(axis=0) & np.array([column.name not in n for n in pairs.names])
    p = np.where(is_usable, p, 0.0)
    of_pairs = np.where(is_usable, (p * p).sum(axis=0), np.inf)
    tried: list[tuple[float, str]] = []
    plainness = np.array(pairs.sizes)
    for sign in (1, -1):
        forms = [("{p}", of_y, -1)]
        for i in range(len(leaves.texts)):
            if column.name not in leaves.names[i]:
                u = _centred(leaves.values[rows, i, None])[:, 0]
                forms += [("{p} * {u}", of_y - u, i), ("{p} / {u}", of_y + u, i)]
        for form, target, i in forms:
            # y is a pair, or the reciprocal of a pair, times or divided by u.
            left = float(target @ target) + of_pairs - 2.0 * sign * (target @ p)
            if np.isnan(left).all():
                continue
            place = int(np.nanargmin(left + 1e-6 * deviation * plainness))
            if left[place] > _MOST_LEFT**2 * deviation or (
                i >= 0 and pairs.names[place] & leaves.names[i]
            ):
                continue
            u_text = leaves.texts[i] if i >= 0 else ""
            pair = f"({pairs.texts[place]})"
            text = form.format(p=pair, u=u_text) if sign > 0 else _inverted(form, pair, u_text)
            tried.append((max(float(left[place]), 0.0), text))
    best = sorted(tried)[:_MOST_NEAR]
    return [(text, float(np.sqrt(left / deviation))) for left, text in best]


def _inverted(form: str, pair: str, u: str) -> str:
    """Returns the expression of y = u / P, 1 / (P u) or 1 / P."""
    return {"{p} * {u}": f"{u} / {pair}", "{p} / {u}": f"1 / ({pair} * {u})", "{p}": f"1 / {pair}"}[
        form
    ]


def _centred(values: Numbers) -> Numbers:
    """Returns centred logarithms; NaN where a number is not positive. Shape: (n, D)."""
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
class _Found:
    """A formula and its complexity."""

    candidate: Candidate
    size: float

    @property
    def preference(self) -> tuple[float, ...]:
        """Sort key of found formulas: those that hold in a larger share of rows first, then the
        shorter."""
        return (-round(self.candidate.share, 2), self.size)


def _is_spread(values: Numbers) -> bool:
    """Returns whether a column contains more than two distinct numbers."""
    known = values[~np.isnan(values)]
    return len(np.unique(known[:400])) > 2


def _leaves(sample: RowSample, columns: Sequence[Column]) -> _Terms:
    """Returns the columns as terms, and for each rate r also 1 - r and 1 + r."""
    texts, names, sizes, values = list[str](), list[frozenset[str]](), list[float](), []
    for column in columns:
        x, name = sample.training.numbers[column.name][:_ROWS], quoted_name(column.name)
        whole = sample.training.numbers[column.name]
        low, high = np.nanmin(whole), np.nanmax(whole)
        forms: list[tuple[str, float, Numbers]] = [(name, 1.0, x)]
        if low >= 0 and high <= 1:
            forms += [(f"(1 - {name})", 1.5, 1 - x), (f"(1 + {name})", 1.5, 1 + x)]
        elif low >= 0 and high <= 100:
            forms += [
                (f"(1 - {name} / 100)", 1.6, 1 - x / 100),
                (f"(1 + {name} / 100)", 1.6, 1 + x / 100),
            ]
        for text, size, of_form in forms:
            texts.append(text)
            names.append(frozenset({column.name}))
            sizes.append(size)
            values.append(of_form)
    return _Terms(texts, names, sizes, np.stack(values, axis=1))


_Form = tuple[str, float, Callable[[Numbers, Numbers], Numbers]]
_OF_COLUMNS: tuple[_Form, ...] = (
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


def _pairs(leaves: _Terms) -> _Terms:
    """Combines two leaves of different columns by each operation."""
    texts, names, sizes, values = list[str](), list[frozenset[str]](), list[float](), []
    products = list[list[tuple[float, int]]]()
    is_plain = [size == 1.0 for size in leaves.sizes]
    with np.errstate(all="ignore"):
        for i, j in combinations(range(len(leaves.texts)), 2):
            if leaves.names[i] == leaves.names[j]:
                continue
            forms: tuple[_Form, ...] = (("{a} * {b}", 2.0, lambda a, b: a * b),)
            forms += _OF_COLUMNS if is_plain[i] and is_plain[j] else ()
            for text, size, form in forms:
                texts.append(text.format(a=leaves.texts[i], b=leaves.texts[j]))
                names.append(leaves.names[i] | leaves.names[j])
                sizes.append(size + leaves.sizes[i] + leaves.sizes[j] - 2.0)
                values.append(form(leaves.values[:, i], leaves.values[:, j]))
                is_product = text == "{a} * {b}"
                products.append([(leaves.sizes[k], k) for k in (i, j)] if is_product else [])
    if not values:
        return _Terms([], [], [], np.zeros((len(leaves.values), 0)))
    return _Terms(texts, names, sizes, np.stack(values, axis=1), products)


def _of_column(
    sample: RowSample, column: Column, leaves: _Terms, pairs: _Terms, n_tried: int
) -> list[_Found]:
    """Returns the formulas of one column that hold most often."""
    y = sample.training.numbers[column.name][:_ROWS]
    rows = _informative_rows(y)
    if len(rows) < _LEAST_SIEVE:
        return []
    sieve = _Sieve(column, y[rows], grid_unit(column))
    whole = _Sieve(column, y, sieve.unit)
    tried: dict[str, _Proposal] = {}
    for one in (
        *sieve.of_multiples(leaves, rows),
        *sieve.of_terms(leaves, rows),
        *sieve.of_terms(pairs, rows),
        *sieve.of_triples(leaves, pairs, rows),
    ):
        if one.text not in tried or one.size < tried[one.text].size:
            tried[one.text] = one
    found = []
    for text, size, values in sorted(tried.values(), key=lambda one: one.size)[:_MOST_TRIED]:
        if not whole.may_hold(values()):
            continue
        rule = Rule(f"{quoted_name(column.name)} == {text}", source="found")
        seen = agreement_of(rule, sample.training.frame, sample.schema)
        if seen.share < LEAST_SHARE or seen.unusual < LEAST_SHARE * seen.share:
            continue
        candidate = validated(rule, sample, n_tried, LEAST_SHARE)
        if candidate is not None:
            found.append(_Found(candidate, size))
    most = max((one.candidate.share for one in found), default=0.0)
    return [one for one in found if one.candidate.share >= most - 0.005]


def _informative_rows(y: Numbers) -> npt.NDArray[np.intp]:
    """Returns indices of rows in which a column is neither 0 nor its most frequent number, by
    descending absolute value."""
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

    @property
    def near(self) -> Numbers:
        """Largest distance between a formula and the column y to be explained at which they count
        as equal, in each of n rows. Shape: (n,)."""
        noise = 1e-9 * np.abs(self.y)
        return noise if self.unit is None else (0.5 + 1e-6) * self.unit + noise

    def may_hold(self, values: Numbers) -> bool:
        """Returns whether a formula with these values equals the column to be explained in so many
        sampled rows that it may do so in LEAST_SHARE of all rows."""
        off = np.abs(values - self.y)
        known = np.isfinite(off)
        share = (off[known] <= self.near[known]).mean() if known.any() else 0.0
        return bool(share >= _LEAST_HELD or known.sum() < _LEAST_JUDGED)

    def of_terms(self, terms: _Terms, rows: npt.NDArray[np.intp]) -> Iterator[_Proposal]:
        """Yields the terms (short formulas of other columns) that, times one of a list of usual
        factors, equal the column to be explained in most of `rows`, the indices of sampled rows."""
        values = terms.values[rows]
        for factor in _FACTORS:
            off = np.abs(factor * values - self.y[:, None])
            hits = self._shares(off <= self.near[:, None], ~np.isnan(off))
            for place in np.flatnonzero(hits >= _LEAST_SIEVED):
                if self.column.name not in terms.names[place]:
                    text, size = _scaled(factor, terms.texts[place], terms.sizes[place])
                    yield _Proposal(text, size, partial(_times, factor, terms.values[:, place]))

    def of_multiples(self, leaves: _Terms, rows: npt.NDArray[np.intp]) -> Iterator[_Proposal]:
        """Yields the columns that, times a factor of at most _MOST_DIGITS digits, equal the column
        to be explained in most of `rows`, the indices of sampled rows."""
        with np.errstate(all="ignore"):
            ratios = self.y[:, None] / leaves.values[rows]
        for place, text in enumerate(leaves.texts):
            known = np.isfinite(ratios[:, place])
            if leaves.sizes[place] > 1.0 or self.column.name in leaves.names[place]:
                continue
            if known.sum() < _LEAST_SIEVE:
                continue
            factor = float(np.median(ratios[known, place]))
            x = leaves.values[rows[known], place]
            for digits in range(1, _MOST_DIGITS + 1):
                plain = float(f"{factor:.{digits}g}")
                hits = np.abs(plain * x - self.y[known]) <= self.near[known]
                if plain != 1.0 and hits.mean() >= _LEAST_SIEVED:
                    values = partial(_times, plain, leaves.values[:, place])
                    yield _Proposal(f"{plain:.12g} * {text}", 1.4 + 0.1 * digits, values)
                    break

    def of_triples(
        self, leaves: _Terms, pairs: _Terms, rows: npt.NDArray[np.intp]
    ) -> Iterator[_Proposal]:
        """Yields the formulas of three columns, a pair such as a + b combined with a third, that
        equal the column to be explained in most of `rows`, the indices of sampled rows."""
        if not pairs.texts:
            return
        u, p = leaves.values[rows], pairs.values[rows]
        required = self._required_pairs(leaves, u)
        target = np.stack([values for _, values, _ in required], axis=1)
        reach = np.stack([near for _, _, near in required], axis=1)
        met = set[tuple[int, int]]()
        for row in range(0, len(rows), max(len(rows) // 4, 1)):
            order = np.argsort(p[row], kind="stable")
            ordered = p[row][order]
            first = np.searchsorted(ordered, target[row] - reach[row])
            last = np.searchsorted(ordered, target[row] + reach[row], side="right")
            n_met = np.where(np.isnan(target[row]), 0, last - first)
            for which in np.flatnonzero((n_met > 0) & (n_met <= _MOST_MATCHES)):
                places = order[first[which] : last[which]]
                off = np.abs(p[:, places] - target[:, [which]])
                hits = self._shares(off <= reach[:, [which]], ~np.isnan(off))
                met.update((int(which), int(place)) for place in places[hits >= _LEAST_SIEVED])
        for number, place in sorted(met):
            (leaf, form, size), _, _ = required[number]
            names = pairs.names[place]
            if self.column.name not in names and not names & leaves.names[leaf]:
                pair, size = pairs.texts[place], size + pairs.sizes[place] + leaves.sizes[leaf]
                values = partial(_TRIPLES[form], pairs.values[:, place], leaves.values[:, leaf])
                if form == "{p} * {u}" and pairs.products[place]:
                    factors = [*pairs.products[place], (leaves.sizes[leaf], leaf)]
                    text = " * ".join(leaves.texts[i] for _, i in sorted(factors))
                else:
                    text = form.format(p=_inner(pair, form), u=leaves.texts[leaf])
                yield _Proposal(text, size, values)

    def _required_pairs(
        self, leaves: _Terms, u: Numbers
    ) -> list[tuple[tuple[int, str, float], Numbers, Numbers]]:
        """Returns ((leaf, form, size), values, tolerance) that a pair must have to equal y together
        with each leaf.

        Shape: u (n, leaves); values and tolerance (n,).
        """
        y, near = self.y, self.near
        found = []
        with np.errstate(all="ignore"):
            for i in range(len(leaves.texts)):
                if self.column.name in leaves.names[i]:
                    continue
                x = u[:, i]
                inverse = np.abs(near * x / (y * y))
                forms = [
                    ("{p} * {u}", 1.0, y / x, np.abs(near / x)),
                    ("{p} / {u}", 1.4, y * x, np.abs(near * x)),
                    ("{u} / {p}", 1.4, x / y, inverse),
                    ("100 * {p} / {u}", 1.8, y * x / 100, np.abs(near * x) / 100),
                    ("100 * {u} / {p}", 1.8, 100 * x / y, 100 * inverse),
                ]
                if leaves.sizes[i] == 1.0:
                    forms += [
                        ("{p} + {u}", 1.0, y - x, near),
                        ("{p} - {u}", 1.1, y + x, near),
                        ("{u} - {p}", 1.1, x - y, near),
                    ]
                for text, size, values, reach in forms:
                    usable = np.where(np.isfinite(values), values, np.nan)
                    found.append(((i, text, size), usable, reach + 1e-9 * np.abs(usable)))
        return found

    @staticmethod
    def _shares(hits: Mask, known: Mask) -> Numbers:
        """Returns the share of known rows in which each term agrees; 0 if few are known."""
        n_known = known.sum(axis=0)
        shares = hits.sum(axis=0) / np.maximum(n_known, 1)
        return np.where(n_known >= _LEAST_SIEVE, shares, 0.0)


def _inner(pair: str, form: str) -> str:
    """Returns the text of a pair as an operand of a triple, in parentheses if needed."""
    return pair if form in ("{p} + {u}", "{p} - {u}") else f"({pair})"


def _scaled(factor: float, text: str, size: float) -> tuple[str, float]:
    """Returns (expression, size) of a factor times a term."""
    if factor == 1.0:
        return text, size
    whole = f"({text})" if " + " in text or " - " in text else text
    number, inverse = f"{factor:.12g}", f"{1 / factor:.12g}"
    if len(inverse) < len(number):
        return f"{whole} / {inverse}", size + 0.6
    return f"{number} * {whole}", size + 0.5
