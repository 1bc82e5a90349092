"""Generates synthetic people: an identity for each row, from the name lists of one locale.

The identity is a function of the seed and the row number. Its first and last name do not occur
together in any row of the table. If a table names several people in a row, such as a buyer and a
seller, each of them gets a separate identity.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from gcvae.arrays import Texts
from gcvae.artifact.documents import Document
from gcvae.codec.key_template import NumberSet, UsedNumbers
from gcvae.codec.name_forms import names_in, read_name
from gcvae.codec.name_lists import USUAL_LOCALE, NameList, locales, names_of
from gcvae.files.typed_columns import TypedTable, row_chunks, rows_at
from gcvae.numerics.permutations import Numbers, mixed
from gcvae.numerics.seeds import derived_seed
from gcvae.schema.columns import Column
from gcvae.schema.personal import PersonalKind

LOOKED_AT_ROWS = 5_000
_LEAST_LISTED = 0.3
"""Minimum share of the table's names that a locale's lists must contain for the locale to be
used."""
_LEAST_ROOM = 200
"""If fewer pairs of first and last name are unused, identities get two last names."""
_LOCALES_OF_SCRIPTS = {
    "ARABIC": "ar_SA", "ARMENIAN": "hy_AM", "CJK": "zh_CN", "CYRILLIC": "ru_RU",
    "DEVANAGARI": "hi_IN", "GEORGIAN": "ka_GE", "GREEK": "el_GR", "HANGUL": "ko_KR",
    "HEBREW": "he_IL", "HIRAGANA": "ja_JP", "KATAKANA": "ja_JP", "TAMIL": "ta_IN", "THAI": "th_TH",
}  # fmt: skip

ColumnsOf = Mapping[PersonalKind, str]
"""Names of the columns that belong to one person, by kind of personal data."""


@dataclass(frozen=True)
class Identities:
    """Names of the synthetic people in n rows; "" where the locale has none. Shape: (n,) each.

    Attributes:
        pairs: Index of the (first, last) name pair in the locale's lists.
        turns: How many rows with smaller numbers have the same pair. If accounts are unique, their
            digits depend on it, so that rows with the same pair have different accounts.
        first: First name.
        last: Last name, or two joined ones.
        second: Another last name, for locales in which people have two.
        middle: Middle name.
    """

    pairs: Numbers
    turns: Numbers
    first: Texts
    last: Texts
    second: Texts
    middle: Texts


@dataclass(frozen=True)
class People(Document):
    """Generates the names of synthetic people.

    Attributes:
        locale: Locale of the names, such as "en_US".
        counters: Pairs of a first and a last name that may be generated, as a set of their indices
            in the locale's lists. These are pairs that the table does not contain, or all pairs if
            `double` is True. One entry for each person that a row describes, such as the buyer and
            the seller.
        double: Whether two last names are joined, as in Smith-Jones. This is necessary if too few
            pairs remain that the table does not contain. One entry for each person, as in
            `counters`.
    """

    locale: str
    counters: tuple[NumberSet, ...]
    double: tuple[bool, ...]

    @classmethod
    def of(cls, table: TypedTable, columns: Sequence[Column], whole: TypedTable) -> Self | None:
        """Learns the locale of a table's names, and which pairs of a first and a last name are not
        in the `whole` table. `table` is a part of it, such as the training rows. Returns None if no
        column has personal data that are made up."""
        persons = columns_of_persons(columns)
        if not persons:
            return None
        locale = _locale_of(table, persons)
        names = names_of(locale)
        counters, double = [], []
        for of_kinds in persons:
            used = _used_pairs(whole, of_kinds, names)
            unused = used.unused_numbers()
            double.append(unused.room < min(_LEAST_ROOM, names.n_pairs // 4))
            counters.append(NumberSet(0, names.n_pairs) if double[-1] else unused)
        return cls(locale, tuple(counters), tuple(double))

    @cached_property
    def names(self) -> NameList:
        """Lists of names for the locale."""
        return names_of(self.locale)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        if document["locale"] not in locales():
            raise ValueError("there are no names for the locale")
        found = super().from_json(document)
        if any(unused.room < 1 for unused in found.counters):
            raise ValueError("there is no room for identities")
        return found


@dataclass(frozen=True)
class PersonRows:
    """n synthetic rows for which the cells of one personal column are generated.

    Attributes:
        numbers: Numbers of the rows. Shape: (n,).
        seed: Seed of the sample.
        people: Generator of names.
        person: Index of the person whom the column describes; a row may describe several people.
        origin: String that seeds the random numbers: seed and name of the column.
    """

    numbers: Numbers
    seed: int
    people: People
    person: int
    origin: str

    @cached_property
    def identities(self) -> Identities:
        """Names of the person in each row."""
        rows, unused = self.numbers, self.people.counters[self.person]
        origin = str(self.seed), "people", str(self.person)
        turns, index = np.divmod(rows, np.uint64(unused.room))
        pairs = unused.numbers(index, derived_seed(*origin, "pairs"))
        found = Identities(pairs, turns, *(np.full(len(rows), "", dtype=object) for _ in range(4)))
        names = self.people.names
        for sex, own, at_first, at_last in names.split(pairs):
            drawn = [
                _drawn(listed, rows[own], derived_seed(*origin, part))
                for part, listed in (("second", sex.last), ("middle", sex.middle))
            ]
            found.first[own] = sex.first[at_first]
            found.last[own] = sex.last[at_last]
            found.second[own], found.middle[own] = drawn
        if self.people.double[self.person]:
            joint = "-" if names.separator else ""
            found.last[:] = found.last + joint + found.second
        return found

    def mixed(self, *origin: str) -> Numbers:
        """Returns a random integer of 64 bits for each row; `origin` is part of the seed."""
        return mixed(self.numbers, derived_seed(self.origin, *origin))

    def below(self, end: int, *origin: str) -> Numbers:
        """Returns a random integer from 0 to `end` - 1 for each row."""
        return self.mixed(*origin) % np.uint64(end)


def columns_of_persons(columns: Iterable[Column]) -> list[dict[PersonalKind, str]]:
    """Returns, for each person that a row describes, the name of the column of each kind of
    personal data. A second column of a kind is taken to describe another person."""
    found: list[dict[PersonalKind, str]] = []
    for column in columns:
        if not column.is_made_up:
            continue
        assert isinstance(column.personal, PersonalKind)
        own = next((own for own in found if column.personal not in own), None)
        if own is None:
            own = {}
            found.append(own)
        own[column.personal] = column.name
    return found


def some_rows(table: TypedTable, names: Sequence[str]) -> list[tuple[str | None, ...]]:
    """Returns the cells of the columns `names` in at most LOOKED_AT_ROWS rows, spread over the
    table, as strings; None for a missing cell."""
    n = len(table)
    places = np.linspace(0, max(n - 1, 0), min(n, LOOKED_AT_ROWS)).round().astype(np.int64)
    frame = rows_at(table, places, names)
    parts = [
        [None if blank else str(cell).strip() for cell, blank in zip(own, own.isna(), strict=True)]
        for own in (frame[name] for name in names)
    ]
    return list(zip(*parts, strict=True))


def _drawn(listed: Texts, rows: Numbers, key: int) -> Texts:
    if not len(listed):
        return np.full(len(rows), "", dtype=object)
    found: Texts = listed[mixed(rows, key) % np.uint64(len(listed))]
    return found


def _locale_of(table: TypedTable, persons: Sequence[ColumnsOf]) -> str:
    """Returns the locale whose lists contain the largest share of the table's names or, in a table
    without names, of the words in its account names.

    If no locale's lists contain enough of them, the script, such as Cyrillic, determines the
    locale: that of the names or, without names, that of streets and postal addresses.
    """
    name_kinds = PersonalKind.FIRST_NAME, PersonalKind.LAST_NAME, PersonalKind.NAME
    texts = _texts_of(table, persons, name_kinds)
    if texts:
        found = best_locales(texts)
        share, locale = found[0]
        return locale if share >= _LEAST_LISTED else locale_of_script(texts)
    accounts = _texts_of(table, persons, (PersonalKind.EMAIL, PersonalKind.USERNAME))
    names = (text.partition("@")[0].casefold() for text in accounts)
    letters = ("".join(c if c.isalpha() else " " for c in name) for name in names)
    words = {word for text in letters for word in text.split() if word[3:]}
    if words:
        listed = [(_share(words, frozenset().union(*names_of(name).ascii_names)), name)
                  for name in locales()]  # fmt: skip
        share, locale = max(listed, key=lambda found: found[0])
        if share >= _LEAST_LISTED:
            return locale
    streets = PersonalKind.STREET, PersonalKind.POSTAL_ADDRESS
    return locale_of_script(_texts_of(table, persons, streets))


def best_locales(texts: Iterable[str]) -> list[tuple[float, str]]:
    """Returns pairs (share of the words that a locale's lists contain, locale), the best first."""
    words = {word for text in texts for word in _words(text)}
    whole = {text.casefold() for text in texts}
    found = []
    for locale in locales():
        names = names_of(locale)
        own = {*words, *whole} if not names.separator else words
        listed = names.first_names | names.last_names
        share = _share(own, listed)
        if not names.separator:
            share = max(share, _share_without_space(whole, names))
        found.append((share, locale))
    return sorted(found, key=lambda found: -found[0])


def _share_without_space(texts: set[str], names: NameList) -> float:
    are_names = [
        names_in(text, names.first_names | names.last_names) or read_name(text, names) is not None
        for text in sorted(texts)[:LOOKED_AT_ROWS]
    ]
    return sum(are_names) / len(are_names) if are_names else 0.0


def _share(words: set[str], listed: frozenset[str]) -> float:
    return len(words & listed) / len(words) if words else 0.0


def _words(text: str) -> list[str]:
    return [word for word in text.casefold().replace("-", " ").replace(",", " ").split() if word]


def locale_of_script(texts: Iterable[str]) -> str:
    """Returns the locale for the most frequent script, such as "ru_RU" for Cyrillic."""
    letters = (letter for text in texts for letter in text[:40] if letter.isalpha())
    words = (unicodedata.name(letter, "?").split()[0] for letter in letters)
    scripts = Counter(word.partition("-")[0] for word in words)
    is_japanese = scripts["HIRAGANA"] + scripts["KATAKANA"] > 0.1 * scripts["CJK"] > 0
    found = "HIRAGANA" if is_japanese else max(scripts, key=scripts.__getitem__, default="")
    return _LOCALES_OF_SCRIPTS.get(found, USUAL_LOCALE)


def _texts_of(
    table: TypedTable, persons: Sequence[ColumnsOf], kinds: Sequence[PersonalKind]
) -> list[str]:
    names = [own[kind] for own in persons for kind in kinds if kind in own]
    return [text for name in names for (text,) in some_rows(table, [name]) if text]


def _used_pairs(table: TypedTable, columns: ColumnsOf, names: NameList) -> UsedNumbers:
    """Records the indices of the name pairs that occur in one person's columns."""
    used = UsedNumbers(names.n_pairs, len(table))
    apart = [columns[kind] for kind in (PersonalKind.FIRST_NAME, PersonalKind.LAST_NAME)
             if kind in columns]  # fmt: skip
    whole = columns.get(PersonalKind.NAME)
    named = [*(apart if len(apart) == 2 else []), *([whole] if whole else [])]
    for chunk in row_chunks(table, named) if named else ():
        pairs = set[int]()
        if len(apart) == 2:
            both = chunk[apart].dropna()
            for first, last in zip(both[apart[0]], both[apart[1]], strict=True):
                pairs.update(names.pairs_of(str(first).casefold(), str(last).casefold()))
        if whole:
            for text in set(chunk[whole].dropna().astype(str)):
                if (read := read_name(text, names)) is not None:
                    pairs.update(names.pairs_of(read.first, read.last))
        used.add(np.array(sorted(pairs), dtype=np.uint64))
    return used
