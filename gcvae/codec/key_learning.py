"""Learns templates (formats) of a column's keys from its texts, in two passes over chunks of rows.

    1  a sample of the rows    groups of keys of one form, and the alphabet at each position
    2  all rows                the numbers that are in use, also by rows held out of training

The form of SO-2025-000017 is aa-0-0: runs of digits of any width are equivalent, and so are runs of
letters of one width. Runs with a few values that many rows share (SO, 2025) become literals, with
one template for each combination. If most keys have different forms, as UUIDs do, keys are grouped
by length. Every literal in a template is shared by many rows, so that it identifies none.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import accumulate, chain
from math import ceil
from typing import Any
from unicodedata import category, decimal

import numpy as np

from gcvae.arrays import Codes, Texts
from gcvae.codec.key_template import (
    DIGITS,
    Alphabets,
    Characters,
    KeyTemplate,
    KeyTier,
    UsedNumbers,
    characters_of,
    counted_positions,
    size_of,
)
from gcvae.numerics.permutations import mixed

Chunks = Callable[[], Iterable[Texts]]
"""Function that returns an iterator over a column's texts, in chunks of rows."""

LEAST_SHARED_ROWS = 5
LEAST_SHARED_SHARE = 0.01
"""Text that fewer than LEAST_SHARED_ROWS rows, or a smaller share of the rows, have in common could
identify a row, and is not stored."""
_SAMPLE_ROWS = 50_000
_MOST_CHARACTERS = 128  # longer texts have no form
_MOST_FORMS = 12
_LEAST_COVERED = 0.7  # share of the rows that have one of the forms
_MOST_VALUES = 100  # maximum number of shared values that become literals
_VALUES_COVER = 0.95  # share of the rows that have one of a few values or characters
_MUCH_ROOM = 20  # keys per row that the digits in the table must permit, or all digits are used
_PREFIX, _WIDTH = "synthetic-", 8  # prefix of keys without a form
_HEXADECIMAL = "0123456789abcdef", "0123456789ABCDEF"
_TOKENS = re.compile(r"\d+|[^\W\d_]+|[\W_]+")


def learn_templates(
    chunks: Chunks,
    used: Chunks,
    excluded: Sequence[str],
    largest: int | None,
    forms: Sequence[Callable[[str], str]] = (),
) -> list[KeyTemplate]:
    """Returns the key templates of a column. The attribute `rows` of a template is its number of
    rows in a sample. If the keys have no common format, the only template is a prefix and a number.

    Args:
        chunks: Function that returns an iterator over the column's keys, in chunks of rows.
        used: Function like `chunks` for the keys that must not be generated.
        excluded: Strings that must not be generated because they mean "missing".
        largest: Largest key allowed if all keys are whole numbers; None for other keys.
        forms: Functions that map a key to its format, the most specific function first. A key gets
            the first of its formats that enough keys share. If empty, formats are inferred.
    """
    n_rows = sum(map(len, chunks()))
    sample = _sample(chunks, n_rows)
    groups = _of_forms(sample, forms) if forms and sample else []
    groups = groups or _groups(sample, are_numbers=largest is not None)
    total = sum(group.n_rows for group in groups)
    searches = [_Search(group, ceil(n_rows * group.n_rows / total), largest) for group in groups]

    def with_lengths() -> Iterator[tuple[Texts, Codes]]:
        for texts in chain([np.array(excluded, dtype=object)], used()):
            yield texts, np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))

    for texts, lengths in with_lengths():
        for search in searches:
            search.widen(texts, lengths)
    tiers = [search.tiers(k) for k, search in enumerate(searches)]
    by_length = defaultdict[int, list[_UsedKeys]](list)
    for keys in chain(*tiers):
        by_length[len(keys.alphabets)].append(keys)
    for texts, lengths in with_lengths():
        for length, every in by_length.items():
            characters = characters_of(texts[lengths == length], length)
            for keys in every:
                keys.add_keys(characters)
    step = 1 if groups[0].number else len(groups)
    return [
        search.template(own, step, group.n_rows)
        for search, own, group in zip(searches, tiers, groups, strict=True)
    ]


def _sample(chunks: Chunks, n_rows: int) -> list[str]:
    """Returns the texts of about _SAMPLE_ROWS rows, independent of the division into chunks."""
    found, start, share = list[str](), 0, min(_SAMPLE_ROWS / max(n_rows, 1), 1.0)
    for texts in chunks():
        rows = np.arange(start, start + len(texts), dtype=np.uint64)
        found += texts[mixed(rows, 0) >> np.uint64(11) < int(share * 2**53)].tolist()
        start += len(texts)
    return found


# Groups of keys


@dataclass(frozen=True)
class _Group:
    """Keys with the same template.

    Attributes:
        alphabets: Characters that may occur at each position.
        number: (First position, end) of the run of digits that varies from key to key, or None.
        n_rows: Number of rows in the sample.
    """

    alphabets: Alphabets
    number: tuple[int, int] | None
    n_rows: int


def _groups(sample: list[str], *, are_numbers: bool) -> list[_Group]:
    """Groups a sample of keys by form, the largest group first. If they have no common form, as in
    running text, the only group has a prefix and a number of eight digits."""
    least = max(LEAST_SHARED_ROWS, ceil(len(sample) * LEAST_SHARED_SHARE))
    spaced = [text for text in sample if re.search(r"\s", text)]
    is_prose = 2 * sum(not re.search(r"\d", text) for text in spaced) > len(sample)
    found = [] if is_prose else _by_form(sample, least)
    covered = sum(group.n_rows for group in found)
    if are_numbers:
        found = found or _by_form(sample, 1)
    elif covered < _LEAST_COVERED * len(sample):
        found = [] if spaced else _by_length(sample, least)
        covered = sum(group.n_rows for group in found)
        found = found if covered >= _LEAST_COVERED * len(sample) else []
    if found:
        return sorted(found, key=lambda group: -group.n_rows)
    digits = (DIGITS[1:] if are_numbers else DIGITS, *[DIGITS] * (_WIDTH - 1))
    alphabets = (*("" if are_numbers else _PREFIX), *digits)
    return [_Group(alphabets, (len(alphabets) - _WIDTH, len(alphabets)), 1)]


def _of_forms(texts: list[str], forms: Sequence[Callable[[str], str]]) -> list[_Group]:
    """Groups texts by format. A text gets the first of the formats from the functions `forms` that
    enough texts share.

    If too few texts get a format in this way, the last function alone groups the texts, and its
    most frequent formats are kept. Their letters and digits are then generalised to all characters
    of the same class, because few texts share each format.
    """
    least = max(LEAST_SHARED_ROWS, ceil(len(texts) * LEAST_SHARED_SHARE))
    kept, rest = list[list[str]](), texts
    for form in forms:
        alike = _by(form, rest)
        kept += [own for own in alike if len(own) >= least]
        rest = [text for own in alike if len(own) < least for text in own]
    every = _by(forms[-1], texts)
    are_few = sum(map(len, kept)) < _LEAST_COVERED * len(texts)
    kept = every[-_MOST_FORMS:] if are_few else kept
    groups = [_Group(_alphabets(own, are_few), None, len(own)) for own in kept]
    return sorted(groups, key=lambda group: -group.n_rows)


def _by(key: Callable[[str], Any], texts: list[str]) -> list[list[str]]:
    """Groups texts by the value of `key`, the rarest group first, without empty and very long
    texts."""
    found = defaultdict[Any, list[str]](list)
    for text in texts:
        if 0 < len(text) <= _MOST_CHARACTERS:
            found[key(text)].append(text)
    return sorted(found.values(), key=len)


def _by_length(texts: list[str], least: int) -> list[_Group]:
    """Groups texts by length, without lengths of fewer than `least` texts. Returns [] if too many
    lengths remain."""
    kept = [own for own in _by(len, texts) if len(own) >= least]
    if len(kept) > _MOST_FORMS:
        return []
    return [_Group(_alphabets(own, _are_few(own, least)), None, len(own)) for own in kept]


def _by_form(texts: list[str], least: int) -> list[_Group]:
    """Groups texts by form, such as aa-0 for SO-17 and DE-204. Forms without a number, and forms of
    fewer than `least` texts, are left out. Returns [] if too many forms remain. New keys of two
    groups never collide, because keys of two forms always differ."""
    found = defaultdict[str, list[list[str]]](list)
    for text in texts:
        tokens = _TOKENS.findall(text if len(text) <= _MOST_CHARACTERS else "")
        form = ("0" if t[0].isdecimal() else "a" * len(t) if t[0].isalnum() else t for t in tokens)
        found["".join(form)].append(tokens)
    kept = [own for form, own in found.items() if len(own) >= least and "0" in form]
    return [g for own in kept for g in _of_form(own, least)] if len(kept) <= _MOST_FORMS else []


def _of_form(rows: list[list[str]], least: int) -> list[_Group]:
    """Groups keys of one form by the tokens that have only a few values, such as SO or 2025. Each
    key is a list of its tokens. Returns [] if no run of digits varies."""
    runs = [i for i, token in enumerate(rows[0]) if token[0].isalnum()]
    fixed = [i for i in runs if _are_few([tokens[i] for tokens in rows], least)]
    are_names = fixed == runs
    fixed = [] if are_names else fixed
    numbers = [i for i in runs if i not in fixed and rows[0][i][0].isdecimal()]
    if not numbers:
        return []
    combinations = defaultdict[tuple[str, ...], list[list[str]]](list)
    for tokens in rows:
        combinations[tuple(tokens[i] for i in fixed)].append(tokens)
    kept = [own for own in combinations.values() if len(own) >= least]
    if sum(map(len, kept)) < _LEAST_COVERED * len(rows):
        kept = [rows]
    scale = len(rows) / sum(map(len, kept))
    groups = []
    for own in kept:
        widths = Tally(tuple(map(len, tokens)) for tokens in own)
        common = [shape for shape, n in widths.items() if n >= least]
        shape = max(common or widths, key=lambda shape: (sum(shape), shape))
        same = [tokens for tokens in own if tuple(map(len, tokens)) == shape]
        ends = [*accumulate(shape)]
        first, end = ends[numbers[-1]] - shape[numbers[-1]], ends[numbers[-1]]
        alphabets = list(_alphabets(["".join(tokens) for tokens in same], are_names, first))
        for i in fixed if kept[0] is not rows else ():
            alphabets[ends[i] - shape[i] : ends[i]] = same[0][i]
        groups.append(_Group(tuple(alphabets), (first, end), int(scale * len(own))))
    return groups


def _are_few(values: list[str], least: int) -> bool:
    """Returns whether nearly all rows have one of a few values that at least `least` rows share."""
    shared = [n for n in Tally(values).values() if n >= least]
    return len(shared) <= _MOST_VALUES and sum(shared) >= max(_VALUES_COVER * len(values), 1)


@cache
def _class_of(character: str) -> frozenset[str]:
    """Returns all characters of the same class as a letter or digit, such as the ten digits: those
    with the same Unicode category in the same block of 32 code points."""
    first, kind = ord(character) & ~31, category(character)
    return frozenset(c for c in map(chr, range(first, first + 32)) if category(c) == kind)


def _alphabets(texts: list[str], by_class: bool, number: int | None = None) -> Alphabets:
    """Returns the characters that may occur at each position of equally long texts.

    Args:
        by_class: Whether letters and digits are generalised to all characters of the same class,
            because characters of only a few texts would disclose these texts.
        number: Position of the first digit of a number, which may be 0 only if it is 0 in some
            text; None if the texts contain no number.
    """
    columns = [Tally(column) for column in zip(*texts, strict=True)]
    varying = {c for column in columns if len(column) > 1 for c in column if c.isalnum()}
    limit = next((digits for digits in _HEXADECIMAL if varying <= set(digits)), None)

    def alphabet(column: Tally[str]) -> str:
        shared = {c for c, n in column.items() if n >= LEAST_SHARED_ROWS}
        signs = {c for c in shared if not c.isalnum()}
        is_covered = sum(column[c] for c in shared) >= _VALUES_COVER * len(texts)
        if is_covered and (shared == signs or not by_class):
            return "".join(sorted(shared))
        found = {own for c in column if c.isalnum() for own in _class_of(c)}
        found = found & set(limit) if limit and len(column) > 1 else found
        return "".join(sorted(found | signs or column))

    found = [alphabet(column) for column in columns]
    if number is not None and not any(decimal(c) == 0 for c in columns[number]):
        found[number] = "".join(c for c in found[number] if decimal(c))
    if not by_class and all(len(own) == 1 for own in found):
        return _alphabets(texts, True, number)
    return tuple(found)


# Unused numbers


class _Search:
    """Finds new keys of one format that differ from all original keys.

    New keys have the length of the originals and, at each position, the characters of the
    originals. If there are too few such keys, any digit may occur in their number. When keys of
    this length are used up, longer ones follow. About `n_rows` originals have the format. Keys that
    are whole numbers do not exceed `largest`; None for other keys.
    """

    def __init__(self, group: _Group, n_rows: int, largest: int | None) -> None:
        own = self._alphabets = group.alphabets
        self._n_rows, self._largest, self._is_number = n_rows, largest, group.number is not None
        varying = [place for place, alphabet in enumerate(own) if len(alphabet) > 1]
        after = varying[-1] + 1 if varying else len(own)
        self._first, end = group.number or (after, after)
        while end > self._first + 1 and len(own[end - 1]) == 1:
            end -= 1  # leaves out constant last digits, as in 10, 20, 30
        self._end, self._longest = end, len(own)
        places = [re.escape(letters) if len(letters) == 1 else "." for letters in own]
        form = r"\d+".join(("".join(places[: self._first]), "".join(places[end:])))
        self._form = re.compile(form if self._is_number else ".*", re.DOTALL)

    def widen(self, texts: Texts, lengths: Codes) -> None:
        """Updates the length of the longest key in this format, given texts and their lengths."""
        for text in texts[lengths > self._longest]:
            if self._form.fullmatch(text):
                self._longest = max(self._longest, len(text))

    def tiers(self, number: int) -> list[_UsedKeys]:
        """Returns two empty recorders of used keys, for keys of the usual length and longer keys.

        Args:
            number: Index of the template, from 0. In formats without a number, the longer keys get
                this many additional characters, so that they differ between templates.
        """
        own, enough = self._alphabets, _MUCH_ROOM * self._n_rows
        usual = [own, self._longer(len(own))] if self._is_number else [own]
        usual = [found for each in usual if (found := _below(each, self._largest))] or [own]
        chosen = next((o for o in usual if size_of(o, counted_positions(o)) >= enough), usual[-1])
        length = self._longest + (not self._counts_on) + (0 if self._is_number else number)
        most = length if self._largest is None else len(str(self._largest)) - 1 + (own[0] == "-")
        if len(own) < most:
            length = min(length, most)
        return [_UsedKeys(found, self._n_rows) for found in (chosen, self._longer(length))]

    @property
    def _counts_on(self) -> bool:
        """Whether the longest keys have one digit more than the usual ones, as in a table that
        counts to 1,000. New keys then continue at the length of the longest."""
        return self._is_number and self._longest == len(self._alphabets) + 1

    def template(self, tiers: list[_UsedKeys], step: int, rows: int) -> KeyTemplate:
        """Returns the template of the keys that are unused according to `tiers`; `rows` is its
        number of rows. When both tiers are used up, keys grow by `step` characters at a time."""
        found = [
            KeyTier(**asdict(used.unused_numbers()), alphabets=used.alphabets) for used in tiers
        ]
        if self._counts_on and found[0].room < self._n_rows:
            found = found[1:]
        return KeyTemplate(tuple(found), self._first, step, rows)

    def _longer(self, length: int) -> Alphabets:
        """Returns the characters at each position if more digits extend keys to this length."""
        own, first, end = self._alphabets, self._first, self._end
        digits = "".join(sorted(_class_of(own[first][0]))) if self._is_number else DIGITS
        has_zero = length == len(own) and decimal(own[first][0]) == 0
        number = [digits] * (length - len(own) + end - first)
        number[0] = digits if has_zero else digits[1:]
        if end - first > 1:
            number[-1] = own[end - 1]
        return *own[:first], *number, *own[end:]


class _UsedKeys(UsedNumbers):
    """Records which keys of one format the table contains; a number represents each key. The
    argument `alphabets` has the characters that the format allows at each position."""

    def __init__(self, alphabets: Alphabets, n_rows: int) -> None:
        self.alphabets = alphabets
        self._places = counted_positions(alphabets)
        super().__init__(size_of(alphabets, self._places), n_rows)

    def add_keys(self, characters: Characters) -> None:
        """Marks n keys as used, given the code points of their characters. Keys with a character
        that the alphabets do not allow are ignored. Shape: (n, length)."""
        numbers = np.zeros(len(characters), dtype=np.uint64)
        for place, alphabet in enumerate(self.alphabets):
            letters = characters_of([alphabet], len(alphabet))[0]
            found = np.searchsorted(letters, characters[:, place]).clip(max=len(letters) - 1)
            fits = letters[found] == characters[:, place]
            if not fits.all():
                characters, numbers, found = characters[fits], numbers[fits], found[fits]
            if place in self._places:
                numbers = numbers * np.uint64(len(letters)) + found.astype(np.uint64)
        self.add(numbers)


def _below(alphabets: Alphabets, largest: int | None) -> Alphabets:
    """Restricts alphabets (characters at each position) to whole numbers that are certainly below
    `largest`; returns () if there are none of this length."""
    sign = alphabets[0] == "-"
    width = len(alphabets) - sign
    if largest is None or width < len(str(largest)):
        return alphabets
    first = "".join(c for c in alphabets[sign] if c < str(largest)[0])
    is_possible = first and width == len(str(largest))
    return (*alphabets[:sign], first, *alphabets[sign + 1 :]) if is_possible else ()
