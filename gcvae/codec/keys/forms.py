"""The forms of a column's texts, counted chunk by chunk: where digits, letters and signs stand.

    INV-2024-00017      AAA-9999-99999      a shape: 9 a digit, a and A letters, signs as they are
                        AAA-#-#             its form among structured keys: a run of digits of any
                                            width is one thing
                        www-wwww-wwwww      its form among keys of words, in which digits and
                                            letters mix
                        ??????????????      its form among keys of which nothing but the length is
                                            the same

Memory holds a chunk and what is counted, however many rows there are.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gcvae.codec.keys.patterns import Characters, joined_texts

LEAST_SHARED_ROWS = 5
LEAST_SHARED_SHARE = 0.01
"""What fewer rows share, or a smaller share of them, is nobody's but theirs, and is not kept."""
MOST_CHARACTERS = 128  # of a text that has a form
_MOST_SHAPES = 20_000  # that are counted one by one
_LEAST_COVERED = 0.7  # share of the rows whose forms are shared, from which on forms describe them
_FEW_FORMS = 12
_MOST_DIGITS = 19  # of a run that counts as one number; a longer one is a word
_LETTER = "\u00df"  # in a shape, any letter of another alphabet than the Latin one
_WORD = str.maketrans(dict.fromkeys(f"9aA{_LETTER}", "w"))

Texts = npt.NDArray[Any]
Forming = Callable[[str], str]
"""From a shape to its form."""


def least_shared_rows(n_rows: int) -> int:
    """How many rows must share what is kept of their texts."""
    return max(LEAST_SHARED_ROWS, ceil(n_rows * LEAST_SHARED_SHARE))


@dataclass
class Tally:
    """How often texts come; the rarest are forgotten where too many differ."""

    most: int
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, texts: Sequence[str], counts: npt.NDArray[np.int64]) -> None:
        """Counts some more. Shape: (U,), (U,)."""
        first = np.argsort(-counts, kind="stable")[: self.most // 2]
        for i in first.tolist():
            self.counts[texts[i]] += int(counts[i])
        if len(self.counts) > self.most:
            self.counts = Counter(dict(self.counts.most_common(self.most // 2)))

    def shared(self, least: int) -> dict[str, int]:
        """The shapes that come so often, the most frequent first."""
        order = sorted(self.counts.items(), key=lambda found: (-found[1], found[0]))
        return {text: count for text, count in order if count >= least}


@dataclass(frozen=True)
class ShapedTexts:
    """Texts of a chunk as characters, and their shapes, those beyond MOST_CHARACTERS cut short.

    Shape: characters (n, length), codes (n,), shapes (U,).

    Attributes:
        longest: Characters of the longest text.
    """

    characters: Characters
    codes: npt.NDArray[np.int64]
    shapes: list[str]
    longest: int

    @classmethod
    def of(cls, texts: Texts) -> ShapedTexts:
        """The shapes of texts. Shape: (n,)."""
        longest = max(map(len, texts), default=0)
        width = max(1, min(longest, MOST_CHARACTERS + 1))
        characters = texts.astype(f"U{width}").view(np.uint32).reshape(len(texts), width)
        codes, shapes = different(_shape_characters(characters))
        return cls(characters, codes, shapes, longest)

    @property
    def counts(self) -> npt.NDArray[np.int64]:
        """Texts of each shape. Shape: (U,)."""
        return np.bincount(self.codes, minlength=len(self.shapes))

    def formed(self, forming: Forming) -> ShapedTexts:
        """These cells with forms for shapes; runs of digits of different widths stay apart."""
        if forming is structured:
            return self
        numbers = dict[str, int]()
        places = [numbers.setdefault(forming(shape), len(numbers)) for shape in self.shapes]
        codes = np.array(places, dtype=np.int64)[self.codes]
        return ShapedTexts(self.characters, codes, list(numbers), self.longest)

    def having(self, shape: str) -> Characters:
        """The characters of the texts of that shape. Shape: (m, len(shape))."""
        if shape not in self.shapes:
            return np.empty((0, len(shape)), dtype=np.uint32)
        return self.characters[self.codes == self.shapes.index(shape), : len(shape)]


def different(characters: Characters) -> tuple[npt.NDArray[np.int64], list[str]]:
    """(which text each row is, the different texts). Shape: (n, length) -> (n,), (U,)."""
    codes, found = pd.factorize(joined_texts(characters))
    return codes, list(found)


def _shape_characters(characters: Characters) -> Characters:
    """9, a, A and _LETTER in place of digits and letters. Shape: (n, length), the same."""
    shaped: Characters = _SHAPE_OF_ASCII[np.minimum(characters, 127)]
    beyond = characters > 127
    if beyond.any():
        codes, places = np.unique(characters[beyond], return_inverse=True)
        kinds = [ord(_LETTER) if chr(code).isalpha() else code for code in codes.tolist()]
        shaped[beyond] = np.array(kinds, dtype=np.uint32)[places]
    return shaped


def _shape_of_ascii() -> Characters:
    shapes = ["9" if c.isdigit() else "a" if c.islower() else "A" if c.isupper() else c
              for c in map(chr, range(128))]  # fmt: skip
    return np.array([ord(c) for c in shapes], dtype=np.uint32)


_SHAPE_OF_ASCII = _shape_of_ascii()


def structured(shape: str) -> str:
    """The form in which each run of digits is one thing, whatever its width."""
    return re.sub("9+", lambda run: "#" if len(run[0]) <= _MOST_DIGITS else run[0], shape)


def worded(shape: str) -> str:
    """The form in which digits and letters are one."""
    return shape.translate(_WORD)


def sized(shape: str) -> str:
    """The form that is the length alone."""
    return "?" * len(shape)


@dataclass
class ShapeCounts:
    """How often a column's shapes come, and its forms of words and of sizes.

    Attributes:
        n_rows: Texts.
        n_prose: Texts of several words without a digit.
        has_spaces: Any text has one.
        longest: Characters of the longest text.
    """

    plain: Tally = field(default_factory=lambda: Tally(_MOST_SHAPES))
    words: Tally = field(default_factory=lambda: Tally(_MOST_SHAPES))
    sizes: Tally = field(default_factory=lambda: Tally(_MOST_SHAPES))
    n_rows: int = 0
    n_prose: int = 0
    has_spaces: bool = False
    longest: int = 0

    @classmethod
    def of(cls, chunks: Iterable[Texts]) -> ShapeCounts:
        """The counts of a column's texts, which come a chunk at a time."""
        found = cls()
        for texts in chunks:
            found.add(ShapedTexts.of(texts))
        return found

    def add(self, shaped: ShapedTexts) -> None:
        """Counts the shapes of a chunk's texts."""
        self.n_rows += len(shaped.codes)
        self.longest = max(self.longest, shaped.longest)
        with_spaces = np.array([bool(re.search(r"\s", shape)) for shape in shaped.shapes], bool)
        wordy = with_spaces & np.array(["9" not in shape for shape in shaped.shapes], bool)
        self.has_spaces |= bool(with_spaces.any())
        self.n_prose += int(shaped.counts[wordy].sum())
        for tally, forming in (
            (self.plain, structured), (self.words, worded), (self.sizes, sized),
        ):  # fmt: skip
            formed = shaped.formed(forming)
            kept = np.array([len(shape) <= MOST_CHARACTERS for shape in formed.shapes], bool)
            tally.add([s for s, k in zip(formed.shapes, kept, strict=True) if k],
                      formed.counts[kept])  # fmt: skip

    def forms(self, forming: Forming) -> Tally:
        """How often forms come."""
        if forming is not structured:
            return self.words if forming is worded else self.sizes
        found = Tally(2 * _MOST_SHAPES)
        for shape, count in self.plain.counts.items():
            found.counts[structured(shape)] += count
        return found


@dataclass(frozen=True)
class Forms:
    """The forms that describe a column's texts.

    Attributes:
        forming: From a shape to its form.
        counts: Rows of each form, the most frequent first; rows of rare forms count as of it.
        shapes: The shape that the keys of each form get.
        widest: Digits of the widest numbers of each form, in their order.
        longest: Characters of the column's longest text.
    """

    forming: Forming
    counts: dict[str, int]
    shapes: dict[str, str]
    widest: dict[str, list[int]]
    longest: int

    @classmethod
    def of(cls, found: ShapeCounts, *, are_numbers: bool) -> Forms | None:
        """The forms of a column; None where most rows have a form of their own.

        Args:
            found: Its shapes; one row or more.
            are_numbers: Whole numbers have a form, however few they are.
        """
        least = least_shared_rows(found.n_rows)
        if are_numbers:
            tally = found.forms(structured)
            return cls._joined(found, structured, tally.shared(least) or tally.shared(1), least)
        for most_forms in (_FEW_FORMS, found.n_rows):
            for forming in _ways(found):
                counts = found.forms(forming).shared(least)
                covered = sum(counts.values()) >= _LEAST_COVERED * found.n_rows
                if covered and len(counts) <= most_forms:
                    return cls._joined(found, forming, counts, least)
        return None

    @classmethod
    def _joined(
        cls, found: ShapeCounts, forming: Forming, counts: dict[str, int], least: int
    ) -> Forms:
        first = next(iter(counts))
        counts = counts | {first: counts[first] + found.n_rows - sum(counts.values())}
        shapes, widest = {form: form for form in counts}, dict[str, list[int]]()
        if forming is structured:
            for form in counts:
                shapes[form], widest[form] = _shape_of(form, found.plain, least)
        return cls(forming, counts, shapes, widest, found.longest)


def _ways(found: ShapeCounts) -> Iterator[Forming]:
    """The ways to see the texts, the one that says most first; for running text none."""
    if found.n_prose > found.n_rows / 2:
        return
    yield structured
    yield worded
    if not found.has_spaces:
        yield sized


def _shape_of(form: str, shapes: Tally, least: int) -> tuple[str, list[int]]:
    """(the longest shape of a form that enough rows have, or its most frequent one; the digits of
    its widest numbers)."""
    counts = {shape: n for shape, n in shapes.counts.items() if structured(shape) == form}
    widths = [[len(run) for run in re.findall("9+", shape)] for shape in counts]
    widest = [max(column) for column in zip(*widths, strict=True)]
    common = [shape for shape, n in counts.items() if n >= least]
    if common:
        chosen = max(common, key=lambda shape: (len(shape), counts[shape], shape))
        # Numbers that count up to a power of ten: the few that are a digit longer say what is next.
        following = chosen + "9"
        is_next = following in counts and widest == [following.count("9")]
        is_number = not re.search(rf"[aA{_LETTER}]", form)
        return following if is_next and is_number else chosen, widest
    return max(counts, key=lambda shape: (counts[shape], shape)), widest


def runs_of(shape: str, forming: Forming) -> list[tuple[int, int]]:
    """(first, end) of the runs of a shape's characters that are no signs; all as one by size."""
    if forming is sized:
        return [(0, len(shape))]
    pattern = r"w+" if forming is worded else rf"9+|a+|A+|{_LETTER}+"
    return [match.span() for match in re.finditer(pattern, shape)]


def is_number(shape: str, run: tuple[int, int]) -> bool:
    """Whether a run of a structured shape is of digits, as many as one number may have."""
    first, end = run
    return end - first <= _MOST_DIGITS and set(shape[first:end]) == {"9"}
