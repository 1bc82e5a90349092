"""Infers how a column's numbers are written: separators, signs, units."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Codes, Mask
from gcvae.spelling.durations import are_durations, find_duration
from gcvae.spelling.forms import NumberFormat
from gcvae.spelling.number_formats import (
    GROUPINGS,
    are_bodies,
    digits_of,
    equivalent_signs,
    negative_sides,
    numerals_of,
)
from gcvae.spelling.number_text import Texts, are_numbers
from gcvae.spelling.written_numbers import (
    APOSTROPHES,
    DECIMALS,
    MEASURES,
    PER_CENT,
    SIGNS,
    SPACES,
    Side,
    Split,
    mask_of,
    side_of,
    symbol_of,
)

NEARLY = 0.95  # minimum share of numbers for a warning on the other cells
_MOST_SIDES = 1_000  # maximum number of distinct texts around digits; more are not units
_LOOKED_AT_TEXTS = 1 << 12  # texts that are checked first
_Sides = dict[tuple[str, str], float]
_RATIOS_AND_MEASURES = PER_CENT | MEASURES
_CODE_DIGITS = 6  # minimum number of digits, the same in every cell, of a code such as 555 123


@dataclass(frozen=True)
class InferredFormat:
    """The number format that fits most of the U distinct cells of a column.

    Attributes:
        fits: Mask of the distinct cells that are numbers in this format. Shape: (U,).
        are_numbers: Mask of the distinct cells that are numbers in any possible format. Shape:
            (U,).
        other: A second format that fits equally well, if the cells are ambiguous; else None.
    """

    format: NumberFormat
    fits: Mask
    are_numbers: Mask
    other: NumberFormat | None = None


def find_format(
    texts: Texts, counts: Codes, given: Mapping[str, Any] | None = None
) -> InferredFormat | None:
    """Infers the number format (separators, signs, units) of a column with U distinct cells;
    returns None if the cells are words, codes made of digits, or too rarely numbers.

    Args:
        texts: Distinct cells without surrounding spaces. Shape: (U,).
        counts: Number of rows with each cell. Shape: (U,).
        given: Fields of the format that the user specified; None if there are none.
    """
    durations = are_durations(texts)
    zero = (given or {}).get("duration")
    if zero or (not given and counts[durations].sum() >= NEARLY * counts.sum()):
        zero = zero or find_duration(texts.filter(pa.array(durations)))
        return InferredFormat(NumberFormat(duration=zero), durations, durations) if zero else None
    if not given and _are_no_numbers(texts, counts):
        return None
    split = Split.of(texts)
    members = {} if given is None else dict(given)
    is_matched = split.codes >= 0
    if not given and counts[is_matched].sum() < NEARLY * counts.sum():
        return None
    if len(split.sides) > _MOST_SIDES:
        return None
    evidence = _Evidence(split, counts, members)
    candidates = list(_candidates(evidence))
    read = [evidence.reads(candidate) for candidate in candidates]
    weights = [int(counts[mask].sum()) for mask in read]
    best = [i for i, weight in enumerate(weights) if weight == max(weights)]
    found, other = _chosen([candidates[i] for i in best], evidence)
    fits = read[candidates.index(found)]
    are_numeric = np.any(
        [evidence.reads_with_any_unit(candidate) for candidate in candidates], axis=0
    )
    found = evidence.as_most_are(found, fits)
    if not given and evidence.are_codes(found, fits):
        return None
    are_too_long = fits & ~are_numbers(numerals_of(split, found))
    fits, are_numeric = fits & ~are_too_long, are_numeric & ~are_too_long
    if not given and counts[are_numeric].sum() < NEARLY * counts.sum():
        return None
    return InferredFormat(found, fits, are_numeric, other)


def _are_no_numbers(texts: Texts, counts: Codes) -> bool:
    """Returns True if so many of the first texts are no numbers, or have an unknown unit, that the
    column does not consist of numbers; False is inconclusive."""
    may_be = counts.sum()
    for start in range(0, max(len(texts) // 8, _LOOKED_AT_TEXTS), _LOOKED_AT_TEXTS):
        split = Split.of(texts.slice(start, _LOOKED_AT_TEXTS))
        sides = [side_of(*side) for side in split.sides]
        known = [side is not None and side.is_known for side in sides]
        are_known = np.array([*known, False], dtype=bool)[split.codes]
        may_be -= counts[start : start + _LOOKED_AT_TEXTS][~are_known].sum()
        if may_be < NEARLY * counts.sum():
            return True
    return False


def may_be_grouped(texts: Texts) -> bool:
    """Returns whether the points in all numbers may be separators of thousands, as in 1.234 and
    950.

    >>> may_be_grouped(pa.array(["1.234", "950"])), may_be_grouped(pa.array(["1.234", "0.500"]))
    (True, False)
    """
    shape = r"^[+-]?[1-9][0-9]{0,2}(\.[0-9]{3})?$"
    if not len(texts) or re.match(shape, texts[0].as_py()) is None:
        return False
    all_match = pc.all(pc.match_substring_regex(texts, shape)).as_py()
    return bool(all_match and pc.any(pc.match_substring(texts, ".")).as_py())


class _Evidence:
    """Statistics of a column's cells, from which the number format is inferred."""

    def __init__(self, split: Split, counts: Codes, members: dict[str, Any]) -> None:
        self.split, self.counts, self.members = split, counts, members
        self._are_bodies: dict[NumberFormat, Mask] = {}
        self._sides = [side_of(*side) for side in split.sides]
        self.unit = self._most_frequent_unit()
        self.is_money = bool(self.unit) and not self.unit & _RATIOS_AND_MEASURES
        self.separators = [
            sign
            for sign in (*DECIMALS, *SPACES, *APOSTROPHES)
            if pc.any(pc.match_substring(split.bodies, sign)).as_py()
        ]

    def _most_frequent_unit(self) -> frozenset[str]:
        given = {name: self.members[name] for name in ("prefix", "suffix") if name in self.members}
        if given:
            return frozenset(map(symbol_of, given.values())) - {""}
        units = defaultdict[frozenset[str], float](float)
        for (left, right), weight in self._weights(self.split.codes >= 0).items():
            side = side_of(left, right)
            if side is not None and side.unit and side.is_known:
                units[side.unit] += weight
        return max(units, key=units.__getitem__, default=frozenset())

    def _has_unit(self, side: Side | None) -> bool:
        """Returns whether a cell has the column's unit, or may lack it. `side` has the signs and
        units around its digits; None if they are invalid.

        A currency may be absent, and so may a unit that the user stated. A percent sign or a
        measure that was inferred may not: 0.12 among percentages could mean 12 %.
        """
        if side is None:
            return False
        is_said = bool({"prefix", "suffix"} & set(self.members))
        may_be_absent = is_said or not self.unit & _RATIOS_AND_MEASURES
        return side.unit == self.unit or (may_be_absent and side.unit <= self.unit)

    def reads(self, number_format: NumberFormat) -> Mask:
        """Returns a mask of the distinct cells that are numbers in a format and have the column's
        unit. Cells without a unit are included if `_has_unit` permits it."""
        return self._of_sides([self._has_unit(side) for side in self._sides], number_format)

    def reads_with_any_unit(self, number_format: NumberFormat) -> Mask:
        """Returns a mask of the distinct cells that are numbers in a format, with any known
        unit."""
        known = [side is not None and side.is_known for side in self._sides]
        return self._of_sides(known, number_format)

    def _of_sides(self, allowed: list[bool], number_format: NumberFormat) -> Mask:
        chosen = np.array([*allowed, False], dtype=bool)[self.split.codes]
        if number_format not in self._are_bodies:
            matches = are_bodies(self.split.bodies, number_format)
            self._are_bodies[number_format] = mask_of(matches)
        return chosen & self._are_bodies[number_format]

    def has_whole(self, n_digits: str) -> bool:
        """Returns whether some number is written without separators and has `n_digits` digits,
        given as in a regular expression: "4," for four or more."""
        pattern = f"^[0-9]{{{n_digits}}}$"
        return bool(pc.any(pc.match_substring_regex(self.split.bodies, pattern)).as_py())

    def are_codes(self, found: NumberFormat, fits: Mask) -> bool:
        """Returns whether the cells that the format reads are codes instead of numbers, such as
        footnotes (1), grades 2-, phone numbers 555 123 456, part numbers 012m."""
        if self.unit & MEASURES:
            starts = mask_of(pc.match_substring_regex(self.split.bodies, "^0[0-9]"))
            return bool((starts & fits).any())
        if self.unit:
            return False
        sides = {self._sides[code] for code in np.unique(self.split.codes[fits])}
        if not self.separators and any(side is not None and side.has_late_sign for side in sides):
            return True
        if not found.thousands or found.thousands not in SPACES + ".":
            return False
        bodies = self.split.bodies.filter(pa.array(fits))
        digits = pc.utf8_length(digits_of(bodies, found))
        has_decimals = pc.any(pc.match_substring(bodies, found.decimal)).as_py()
        limits = pc.min_max(digits).as_py()
        return not has_decimals and limits["min"] == limits["max"] >= _CODE_DIGITS

    def as_most_are(self, found: NumberFormat, fits: Mask) -> NumberFormat:
        """Returns the format with the prefix, suffix, sign and grouping of most cells in `fits`."""
        sides = self._weights(fits)
        found = replace(found, **self._affixes(sides))
        if found.thousands:
            found = replace(found, **self._grouping(found, fits))
        if found.negative is None:
            found = replace(found, negative=_most_frequent_negative(sides, found))
        return found

    def _weights(self, fits: Mask) -> _Sides:
        """Returns the number of rows with each pair (text before, text after the digits) in chosen
        cells."""
        weights = np.bincount(self.split.codes[fits], self.counts[fits], minlength=len(self._sides))
        return {s: w for s, w in zip(self.split.sides, weights.tolist(), strict=True) if w}

    def _affixes(self, sides: _Sides) -> dict[str, Any]:
        """Returns the most frequent prefix and suffix among the cells with a unit."""
        weights = defaultdict[tuple[str, str], float](float, {("", ""): 0.0})
        for (left, right), weight in sides.items():
            affixes = _without_signs(left).lstrip(SPACES), _without_signs(right).rstrip(SPACES)
            if any(affixes):
                weights[affixes] += weight
        prefix, suffix = max(weights, key=weights.__getitem__)
        return {
            "prefix": self.members.get("prefix", prefix),
            "suffix": self.members.get("suffix", suffix),
        }

    def _grouping(self, found: NumberFormat, fits: Mask) -> dict[str, Any]:
        """Returns two fields of the format: `thousands`, the most frequent separator of thousands,
        and `grouped_from_digits`, the fewest digits of a whole part that contains separators."""
        bodies, counts = self.split.bodies.filter(pa.array(fits)), self.counts[fits]
        if "thousands" not in self.members:
            signs = {
                sign: counts[mask_of(pc.match_substring(bodies, sign))].sum()
                for sign in equivalent_signs(found.thousands)
            }
            found = replace(found, thousands=max(signs, key=lambda sign: signs[sign]))
        whole = pc.replace_substring_regex(bodies, f"[{found.decimal}eE].*$", "")
        digits = pc.replace_substring_regex(whole, "[^0-9]", "")
        lengths = np.asarray(pc.utf8_length(digits).to_numpy(zero_copy_only=False))
        is_grouped = ~mask_of(pc.equal(whole, digits))
        wrong = {
            first: counts[(lengths >= first) & ~is_grouped].sum()
            + counts[(lengths < first) & is_grouped].sum()
            for first in range(4, max(int(lengths.max(initial=0)) + 2, 5))
        }
        first = self.members.get("grouped_from_digits", min(wrong, key=lambda n: wrong[n]))
        return {"thousands": found.thousands, "grouped_from_digits": first}


def _without_signs(text: str) -> str:
    return "".join(c for c in text if c not in SIGNS)


def _most_frequent_negative(sides: _Sides, found: NumberFormat) -> str | None:
    """Returns how most negative cells with the column's unit are written, as the text for minus
    one, such as "($1)"; None for a leading hyphen."""
    own = (symbol_of(found.prefix), symbol_of(found.suffix))
    read = {pair: side_of(*pair) for pair in sides}
    negative = [p for p, s in read.items() if s and s.is_negative and (s.prefix, s.suffix) == own]
    chosen = max(negative, key=sides.__getitem__, default=negative_sides(found))
    return None if chosen == negative_sides(found) else "1".join(chosen)


def _candidates(evidence: _Evidence) -> Iterator[NumberFormat]:
    """Yields the formats that the separators in the cells and the user's fields permit."""
    found, members = evidence.separators, evidence.members
    decimals = [sign for sign in DECIMALS if sign in found] or ["."]
    if "," in found and "." not in found:
        decimals = [",", "."]
    if found == ["."]:
        decimals = [".", ","]
    if "decimal" in members:
        decimals = [members["decimal"]]
    groups = ["", *dict.fromkeys(equivalent_signs(sign)[0] for sign in found)]
    if "thousands" in members:
        groups = [members["thousands"]]
    fixed = {k: v for k, v in members.items() if k in ("prefix", "suffix", "negative")}
    if "decimal" not in members and "thousands" in members:
        decimals = [sign for sign in DECIMALS if sign != members["thousands"]]
    for decimal, thousands, grouping in product(decimals, groups, GROUPINGS):
        if decimal == thousands or (grouping != GROUPINGS[0] and not thousands):
            continue
        if members.get("grouping", grouping) == grouping:
            yield NumberFormat(decimal, thousands, grouping=grouping, **fixed)


def _chosen(
    tied: list[NumberFormat], evidence: _Evidence
) -> tuple[NumberFormat, NumberFormat | None]:
    """Returns (the preferred one of formats that fit equally well, an alternative or None).

    A separator is ambiguous only if three digits always follow it. A point is then decimal, except
    for currencies, which have no thousandths. A comma separates thousands, unless some cell of 1000
    or more is written without it.
    """
    plain = [c for c in tied if not c.thousands and c.decimal in evidence.separators]
    grouped = [c for c in tied if plain and c.thousands == plain[0].decimal]
    if not grouped:
        return tied[0], next((c for c in tied if c.decimal != tied[0].decimal), None)
    is_grouped = not evidence.has_whole("4,") and (plain[0].decimal == "," or evidence.is_money)
    if not is_grouped:
        return plain[0], grouped[0]
    return grouped[0], None if evidence.has_whole("1,3") else plain[0]
