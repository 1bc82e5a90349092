"""Patterns of a column's keys, learned from its texts a chunk at a time, three times over them.

    1  the shapes, and with them the forms                            `key_forms`
    2  of each form the characters at each place, and their runs      `_Runs`
    3  of the texts the characters that rows share; taken numbers     `_Taken`

What is kept of a text is shared by many rows (`key_forms.least_shared_rows`). Of numbers it is only
in which hundredth parts of their range there is none, or some residues that none of them has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from math import ceil, prod

import numpy as np
import numpy.typing as npt

from gcvae.codec.keys.forms import (
    LEAST_SHARED_ROWS,
    Forming,
    Forms,
    ShapeCounts,
    ShapedTexts,
    Tally,
    Texts,
    different,
    is_number,
    least_shared_rows,
    runs_of,
    sized,
    structured,
)
from gcvae.codec.keys.patterns import (
    DIGITS,
    MOST_COUNTED,
    Characters,
    Counter,
    Growth,
    KeyPattern,
    counted_places,
    scattered,
)
from gcvae.numerics.permutations import Numbers

Chunks = Callable[[], Iterable[Texts]]
"""The texts of a column, a chunk of rows at a time, as often as it is called."""
Run = tuple[int, int]
"""(first, end) of neighbouring characters."""

_MOST_VALUES = 100  # of a run whose values are a few that rows share
_VALUES_COVER = 0.95  # of the rows
_MOST_MODULUS, _LEAST_MODULUS = 1 << 24, 1 << 4
_MOST_RESIDUES = 2048
_RESIDUES_KEPT = 0.5  # of those that no original has: all of them would say which are taken
_PARTS = 100  # of the range of a number; where originals are in it is known no closer
_MUCH_ROOM = 10  # keys per row of the table, from which on a pattern is kept to the last character
_LEAST_ROOM = 100_000
_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CLASSES = (
    DIGITS,
    _LOWER,
    _UPPER,
    DIGITS + _LOWER[:6],
    DIGITS + _UPPER[:6],
    DIGITS + _LOWER,
    DIGITS + _UPPER,
    _UPPER + _LOWER,
    DIGITS + _UPPER + _LOWER,
)
"""Characters that go together, the smaller classes first; each in the order of code points."""


def learn_patterns(
    chunks: Chunks, shunned: Iterable[str], *, largest: int | None = None
) -> list[tuple[KeyPattern, int]] | None:
    """(pattern, rows that have it) of a column; None where most rows have a form of their own.

    Args:
        chunks: Its texts.
        shunned: Texts that are no keys either: those that mean "missing".
        largest: Where all texts are whole numbers, the one that none may be beyond.
    """
    found = ShapeCounts.of(chunks())
    forms = Forms.of(found, are_numbers=largest is not None) if found.n_rows else None
    if forms is None:
        return None
    runs = {form: _Runs.of(shape, forms.forming) for form, shape in forms.shapes.items()}
    for form, characters in _cells(chunks, forms, list(runs)):
        runs[form].add(characters)
    makings = {form: own.making(found.n_rows) for form, own in runs.items()}
    usable = {
        form: making
        for form, making in makings.items()
        if making is not None and not _meets_another(making, forms)
    }
    searches = {
        form: _Search(making, forms.forming, found.n_rows, largest)
        for form, making in usable.items()
    }
    also = np.array(sorted(shunned), dtype=object)
    for form, characters in _cells(lambda: chain([also], chunks()), forms, list(searches)):
        searches[form].add(characters)
    patterns = []
    for number, (form, search) in enumerate(searches.items()):
        growth = _growth(usable[form], forms, form, number, len(usable))
        patterns.append((search.pattern(growth), forms.counts[form]))
    return patterns or None


def _cells(chunks: Chunks, forms: Forms, chosen: list[str]) -> Iterator[tuple[str, Characters]]:
    """(form, characters of the texts that have its shape), chunk by chunk."""
    for texts in chunks():
        shaped = ShapedTexts.of(texts).formed(forms.forming)
        for form in chosen:
            characters = shaped.having(forms.shapes[form])
            if len(characters):
                yield form, characters


@dataclass(frozen=True)
class _Making:
    """What the keys of a form are made of.

    Attributes:
        text: The most frequent characters of the fixed runs, signs, and spaces for what is drawn.
        fixed: Runs whose values are a few that rows share.
        alphabets: Of each place; "" of those in fixed runs and of signs.
        drawn: All other runs, whose characters are drawn.
    """

    shape: str
    text: str
    fixed: tuple[Run, ...]
    drawn: tuple[Run, ...]
    alphabets: tuple[str, ...]


class _Runs:
    """The characters of a shape's texts: at each place, and of the runs between signs."""

    def __init__(self, shape: str, runs: list[Run], is_sized: bool) -> None:
        self._shape, self._runs, self._is_sized = shape, runs, is_sized
        self._n_rows = 0
        self._ascii = np.zeros((len(shape), 128), dtype=np.int64)
        self._values = {run: Tally(20 * _MOST_VALUES) for run in runs}
        self._beyond = {run: Tally(20 * _MOST_VALUES) for run in runs}

    @classmethod
    def of(cls, shape: str, forming: Forming) -> _Runs:
        """The learner of a form, before it has seen a text."""
        return cls(shape, runs_of(shape, forming), forming is sized)

    def add(self, characters: Characters) -> None:
        """Counts some more. Shape: (m, length)."""
        self._n_rows += len(characters)
        for place in range(len(self._shape)):
            within = np.minimum(characters[:, place], 127)
            self._ascii[place] += np.bincount(within, minlength=128)
        for run in self._runs:
            cells = characters[:, slice(*run)]
            codes, values = different(cells)
            self._values[run].add(values, np.bincount(codes))
            codes, letters = different(cells[cells > 127].reshape(-1, 1))
            self._beyond[run].add(letters, np.bincount(codes))

    def making(self, n_rows: int) -> _Making | None:
        """What keys of the form are made of; None where there is nothing to draw from.

        Where all runs have values that rows share, they are names rather than keys: none is kept,
        and no letter at its place.
        """
        least = least_shared_rows(n_rows)
        shared = {run: self._values[run].shared(least) for run in self._runs}
        fixed = tuple(
            run
            for run, values in shared.items()
            if len(values) <= _MOST_VALUES
            and sum(values.values()) >= max(_VALUES_COVER * self._n_rows, 1)
        )
        are_names = len(fixed) == len(self._runs)
        fixed = () if are_names else fixed
        if not self._runs:
            return None
        text, alphabets = list(self._shape), [""] * len(self._shape)
        for run in self._runs:
            first, end = run
            if run in fixed:
                text[first:end] = next(iter(shared[run]))
                continue
            alphabets[first:end] = [self._alphabet(p, run, are_names) for p in range(first, end)]
            if not all(alphabets[first:end]):
                return None
            text[first:end] = " " * (end - first)
        drawn = tuple(run for run in self._runs if run not in fixed)
        return _Making(self._shape, "".join(text), fixed, drawn, tuple(alphabets))

    def _alphabet(self, place: int, run: Run, by_class: bool) -> str:
        """The characters that may stand at a place: those that do, where rows share each of them,
        else the class of those of the run."""
        counts = self._ascii[place]
        own = np.flatnonzero(counts)
        are_shared = bool((counts[own] >= LEAST_SHARED_ROWS).all()) and not counts[127]
        if are_shared and len(own) and not by_class:
            return "".join(map(chr, own))
        total = self._ascii[slice(*run)].sum(axis=0)
        letters = {chr(code) for code in np.flatnonzero(total[:127])}
        found = next((c for c in _CLASSES if letters <= set(c)), None)
        if total[127] or found is None:
            common = np.flatnonzero(total[:127] >= LEAST_SHARED_ROWS)
            beyond = self._beyond[run].shared(LEAST_SHARED_ROWS)
            return "".join(sorted({*map(chr, common), *beyond}))
        is_number = set(self._shape[slice(*run)]) == {"9"} and place == run[0] and len(found) == 10
        has_zero = bool(counts[ord("0")]) or run[1] - run[0] == 1
        return found if has_zero or not is_number else found[1:]


def _meets_another(making: _Making, forms: Forms) -> bool:
    """Whether keys that grow by digits where there were none would have another form."""
    if forms.forming is not structured or _last_number(making) is not None:
        return False
    end = making.drawn[-1][1]
    return structured(making.shape[:end] + "9" + making.shape[end:]) in forms.counts


def _last_number(making: _Making) -> Run | None:
    numbers = [run for run in making.drawn if is_number(making.shape, run)]
    return numbers[-1] if numbers else None


class _Search:
    """The search for numbers that no original has, over the texts of a form's shape."""

    def __init__(self, making: _Making, forming: Forming, n_rows: int, largest: int | None) -> None:
        self._making, self._n_rows = making, n_rows
        self._residues = _Residues.of(making, n_rows, largest)
        numbers = making.drawn if forming is structured else ()
        self._parts = [
            _Parts.of(making, run, largest) for run in numbers if is_number(making.shape, run)
        ]
        self._texts = Tally(20 * _MOST_VALUES)
        self._drawn = [place for run in making.drawn for place in range(*run)]

    def add(self, characters: Characters) -> None:
        """Takes the numbers of some more texts. Shape: (m, length)."""
        self._residues.add(characters)
        for parts in self._parts:
            parts.add(characters)
        fixed = characters.copy()
        fixed[:, self._drawn] = [ord(self._making.text[place]) for place in self._drawn]
        codes, texts = different(fixed)
        self._texts.add(texts, np.bincount(codes))

    def pattern(self, growth: Growth) -> KeyPattern:
        """The pattern whose counter has most room.

        By residues a key keeps the characters of every place; if these leave room enough, they
        have precedence over the numbers of a run, which may begin with other digits.
        """
        texts = self._texts.shared(least_shared_rows(self._n_rows)) or {self._making.text: 1}
        counters = [self._residues.counter(), *(parts.counter() for parts in self._parts)]
        enough = max(_MUCH_ROOM * self._n_rows, _LEAST_ROOM)
        chosen = counters[0]
        if chosen.room < enough:
            chosen = max(counters, key=lambda counter: counter.room)
        alphabets = list(self._making.alphabets)
        if chosen is not counters[0] or self._residues.is_number:
            for place in chosen.places:
                alphabets[place] = DIGITS
        total = sum(texts.values())
        shares = tuple(count / total for count in texts.values())
        return KeyPattern(tuple(texts), shares, tuple(alphabets), chosen, growth)


def _growth(making: _Making, forms: Forms, form: str, number: int, n_forms: int) -> Growth:
    """The growth of the keys of a form, into texts that no row and no other form has.

    The last number gets a digit more than the widest of the column. Where there is none, digits
    come after the last characters that are drawn: more than the column's longest text has, and as
    many as no other form's keys get.
    """
    last = _last_number(making) if forms.forming is structured else None
    if last is None:
        end = making.drawn[-1][1]
        width = forms.longest + 1 + number - len(making.shape)
        return Growth(end, end, max(width, 1), n_forms)
    numbers = [run.span() for run in re.finditer("9+", making.shape)]
    return Growth(*last, forms.widest[form][numbers.index(last)] + 1)


class _Residues:
    """Which numbers of the drawn places are taken, modulo a power of two, after a shuffle.

    Attributes:
        is_number: The places are the digits of a number, and the number may not be any.
    """

    def __init__(
        self, places: tuple[int, ...], alphabets: list[str], low: int, size: int, n_rows: int
    ) -> None:
        self._places, self._alphabets, self._low, self._size = places, alphabets, low, size
        wished = 1 << (2 * n_rows).bit_length()
        possible = 1 << (size.bit_length() - 1)
        self._modulus = min(max(wished, _LEAST_MODULUS), _MOST_MODULUS, possible)
        self._are_taken = np.zeros(self._modulus, dtype=bool)
        self.is_number = low > 0

    @classmethod
    def of(cls, making: _Making, n_rows: int, largest: int | None) -> _Residues:
        """Counts residues of the places that are drawn; near the largest number, of the numbers."""
        for run in making.drawn:
            width = run[1] - run[0]
            if largest is not None and width == len(str(largest)):
                low = 10 ** (width - 1)
                return cls(tuple(range(*run)), [DIGITS] * width, low, largest + 1 - low, n_rows)
        places = counted_places(making.alphabets)
        alphabets = [making.alphabets[place] for place in places]
        return cls(places, alphabets, 0, prod(map(len, alphabets)), n_rows)

    def add(self, characters: Characters) -> None:
        """Takes the numbers of some texts. Shape: (m, length)."""
        numbers, are_known = _numbers(characters, self._places, self._alphabets)
        low = np.uint64(self._low)
        are_known &= (numbers >= low) & (numbers - low < np.uint64(self._size))
        places = scattered(numbers[are_known] - low, self._size)
        self._are_taken[places % np.uint64(self._modulus)] = True

    def counter(self) -> Counter:
        """The counter of some residues that no text has; without room where all are taken.

        Of the powers of two it has the one that leaves most room: few numbers share a residue of
        a large one, and of a small one few residues are free.
        """
        best = Counter(self._places, self._low, 0)
        are_taken = self._are_taken
        while len(are_taken):
            free = np.flatnonzero(~are_taken)
            kept = free[: min(_MOST_RESIDUES, ceil(_RESIDUES_KEPT * len(free)))].tolist()
            found = Counter(self._places, self._low, self._size, len(are_taken), tuple(kept))
            if kept and found.room > best.room:
                best = found
            half = len(are_taken) // 2
            are_taken = are_taken[:half] | are_taken[half : 2 * half]
        return best


class _Parts:
    """In which parts of the range of a number of so many digits the originals are."""

    def __init__(self, run: Run, low: int, high: int) -> None:
        self._run, self._low, self._high = run, low, high
        self._step = ceil((high - low) / _PARTS)
        self._are_taken = np.zeros(ceil((high - low) / self._step), dtype=bool)

    @classmethod
    def of(cls, making: _Making, run: Run, largest: int | None) -> _Parts:
        """The parts of a run of digits, which has leading zeros where the table's has some."""
        width = run[1] - run[0]
        low = 0 if width == 1 or "0" in making.alphabets[run[0]] else 10 ** (width - 1)
        high = min(10**width, MOST_COUNTED if largest is None else largest + 1)
        return cls(run, low, max(high, low + 1))

    def add(self, characters: Characters) -> None:
        """Takes the numbers of some texts. Shape: (m, length)."""
        places = tuple(range(*self._run))
        numbers, _ = _numbers(characters, places, [DIGITS] * len(places))
        within = (numbers >= np.uint64(self._low)) & (numbers < np.uint64(self._high))
        parts = (numbers[within] - np.uint64(self._low)) // np.uint64(self._step)
        self._are_taken[parts] = True

    def counter(self) -> Counter:
        """The counter of the numbers beyond all; of a wider gap where there is twice the room."""
        taken = [-1, *np.flatnonzero(self._are_taken).tolist(), len(self._are_taken)]
        gaps = [(first + 1, end) for first, end in pairwise(taken)]
        widest = max(gaps, key=lambda gap: gap[1] - gap[0])
        beyond = gaps[-1]
        first, end = beyond if 2 * (beyond[1] - beyond[0]) >= widest[1] - widest[0] else widest
        start = self._low + first * self._step
        stop = min(self._low + end * self._step, self._high)
        return Counter(tuple(range(*self._run)), start, max(stop - start, 0))


def _numbers(
    characters: Characters, places: tuple[int, ...], alphabets: list[str]
) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """(the numbers that the characters of some places write, whether all are of their alphabet).

    Shape: (m, length) -> (m,), (m,).
    """
    numbers = np.zeros(len(characters), dtype=np.uint64)
    are_known = np.ones(len(characters), dtype=bool)
    for place, alphabet in zip(places, alphabets, strict=True):
        codes = np.array([ord(c) for c in alphabet], dtype=np.uint32)
        found = np.searchsorted(codes, characters[:, place]).clip(max=len(codes) - 1)
        are_known &= codes[found] == characters[:, place]
        numbers = numbers * np.uint64(len(codes)) + found.astype(np.uint64)
    return numbers, are_known
