"""Lists of personal names by locale, from the package Faker, by sex if the locale distinguishes it.

A *pair* is a first and a last name of one sex. Pairs are numbered from 0, beginning with those of
the first sex.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from itertools import accumulate
from pkgutil import iter_modules
from typing import Any

import numpy as np

from gcvae.arrays import Mask, Texts
from gcvae.numerics.permutations import Numbers

USUAL_LOCALE = "en_US"
"""Locale of synthetic names if the table contains no names."""
_LOCALE = re.compile(r"[a-z]{2,3}_[A-Z]{2}")
_SEXES = "male", "female"
_FEWEST_NAMES = 10
_LAST_NAME_FIRST = re.compile("hu_|ja_|ko_|zh_|vi_")
_WITHOUT_SPACE = re.compile("ko_|zh_")
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "å": "aa", "ø": "oe"})


_DEGREES = "Dr", "Prof", "Ing", "Mag"
_TITLES = {
    language: {"male": male, "female": female}
    for language, male, female in (
        ("en", "Mr Sir Mister Lord", "Mrs Ms Miss Madam Lady"),
        ("de", "Herr Herrn Hr", "Frau Fr Fräulein"),
        ("fr", "M Monsieur Me", "Mme Mlle Madame Mademoiselle Me"),
        ("es", "Sr D Don Señor Lic", "Sra Srta Dª Dña Da Doña Señora Dra Dª. Lic Licda"),
        ("it", "Sig Signor Dott Avv", "Sig.ra Sig.na Signora Dott.ssa Avv"),
        ("pt", "Sr Senhor Exmo", "Sra Srta Senhora Dra Dona Exma"),
        ("nl", "Dhr Heer Mijnheer", "Mevr Mw Mevrouw"),
        ("pl", "Pan", "Pani"),
        ("cs", "Pan", "Paní Slečna"),
        ("sk", "Pan Pán", "Pani Slečna"),
        ("sv", "Herr Hr", "Fru Fröken"),
        ("da", "Hr", "Fru Frk Fr"),
        ("no", "Hr Herr", "Fru Frk"),
        ("fi", "Herra", "Rouva Neiti"),
        ("ro", "Dl Domnul", "Dna Doamna"),
        ("tr", "Bay Sayın", "Bayan Sayın"),
        ("ru", "г-н господин", "г-жа госпожа"),
        ("uk", "пан", "пані"),
        ("el", "κ κος", "κα κυρία"),
    )
}
"""Titles by language and sex; those in English and degrees are common to all."""


def title_key(title: str) -> str:
    """Returns a title, such as "Mr." or "MR", in the form in which titles are compared: "mr"."""
    return title.casefold().replace(".", "")


@dataclass(frozen=True)
class SexNames:
    """Sorted names of one sex, or of all people if the locale does not distinguish sexes.
    Patronymics are middle names. Titles are as `title_key` returns them."""

    first: Texts
    last: Texts
    middle: Texts
    titles: frozenset[str]

    @property
    def n_pairs(self) -> int:
        """Number of pairs of a first and a last name."""
        return len(self.first) * len(self.last)


def _folded(part: str) -> cached_property[frozenset[str]]:
    """Returns a cached property of `NameList`: the case-folded names of all sexes in the list
    `part` of `SexNames`."""
    return cached_property(
        lambda names: frozenset(
            name.casefold() for sex in names.sexes for name in getattr(sex, part)
        )
    )


@dataclass(frozen=True, eq=False)
class NameList:
    """Lists of first, last and other names of people in a locale.

    Attributes:
        locale: Name of the locale, such as "en_US".
        sexes: Names of each sex; a single entry if the locale does not distinguish sexes.
        romanized: Latin spelling of names in other scripts, where Faker lists it.
    """

    locale: str
    sexes: tuple[SexNames, ...]
    romanized: Mapping[str, str]

    @property
    def n_pairs(self) -> int:
        """Number of pairs of a first and a last name, over all sexes."""
        return sum(sex.n_pairs for sex in self.sexes)

    @property
    def is_last_name_first(self) -> bool:
        """Whether the last name usually precedes the first name in the locale."""
        return _LAST_NAME_FIRST.match(self.locale) is not None

    @property
    def separator(self) -> str:
        """Separator of first and last name: a space, or "" in locales that write none."""
        return "" if _WITHOUT_SPACE.match(self.locale) else " "

    first_names = _folded("first")
    """Case-folded first names of all sexes."""
    last_names = _folded("last")
    """Case-folded last names of all sexes."""
    middle_names = _folded("middle")
    """Case-folded middle names of all sexes."""
    titles = _folded("titles")
    """Titles of all sexes, as `title_key` returns them."""

    @cached_property
    def ascii_names(self) -> tuple[frozenset[str], frozenset[str]]:
        """(First names, last names), transliterated to lower-case ASCII letters."""
        first, last = (
            frozenset(self.ascii(name) for sex in self.sexes for name in getattr(sex, part))
            for part in ("first", "last")
        )
        return first, last

    def ascii(self, name: str, umlauts: bool = False) -> str:
        """Returns a name in lower-case ASCII letters; with `umlauts`, ä becomes ae, and so on.

        >>> names_of("de_DE").ascii("Müller"), names_of("ru_RU").ascii("Анна")
        ('muller', 'anna')
        """
        from anyascii import anyascii

        found = self.romanized.get(name) or name.lower()
        if umlauts:
            found = found.translate(UMLAUTS)
        return re.sub("[^a-z]", "", anyascii(found).lower()) or "x"

    def split(self, pairs: Numbers) -> Iterator[tuple[SexNames, Mask, Numbers, Numbers]]:
        """Divides n indices of name pairs by sex. Yields for each sex (its names, mask of its m
        pairs, indices of their first names, indices of their last names). Shape: (n,) -> (n,),
        (m,), (m,)."""
        start = 0
        for sex in self.sexes:
            are_own = (pairs >= start) & (pairs < start + sex.n_pairs)
            own = pairs[are_own] - np.uint64(start)
            at_last, at_first = np.divmod(own, np.uint64(len(sex.first)))
            yield sex, are_own, at_first, at_last
            start += sex.n_pairs

    def pairs_of(self, first: str, last: str) -> Iterator[int]:
        """Yields the index of each listed pair that a case-folded name may stand for. An initial
        ("a.") stands for every first name that begins with this letter. A double last name that is
        not listed stands for its first part."""
        last = last if last in self.last_names else re.split(r"[-\s]", last)[0]
        starts = accumulate((sex.n_pairs for sex in self.sexes), initial=0)
        for (at_first, at_last), sex, start in zip(self._places, self.sexes, starts, strict=False):
            if last not in at_last:
                continue
            if len(first) == 2 and first.endswith("."):
                found = [i for name, i in at_first.items() if name[0] == first[0]]
            else:
                found = [at_first[first]] if first in at_first else []
            yield from (start + at_last[last] * len(sex.first) + i for i in found)

    @cached_property
    def _places(self) -> list[list[dict[str, int]]]:
        return [
            [{name.casefold(): i for i, name in enumerate(own)} for own in (sex.first, sex.last)]
            for sex in self.sexes
        ]


@cache
def locales() -> tuple[str, ...]:
    """Returns the locales that have lists of names, the default locale first."""
    import faker.providers.person as people

    found = [module.name for module in iter_modules(people.__path__)]
    named = [name for name in found if _LOCALE.fullmatch(name) and _has_lists(names_of(name))]
    return tuple(sorted(named, key=lambda name: (name != USUAL_LOCALE, name)))


@cache
def names_of(locale: str) -> NameList:
    """Returns the lists of personal names of a locale, such as "en_US"."""
    provider = import_module(f"faker.providers.person.{locale}").Provider
    by_sex = [_names(provider, "first", sex) for sex in _SEXES]
    last_by_sex = [_names(provider, "last", sex) for sex in _SEXES]
    every_first, every_last = _names(provider, "first"), _names(provider, "last")
    if min(map(len, by_sex)) < _FEWEST_NAMES:
        by_sex = [every_first or sorted({*by_sex[0], *by_sex[1]})]
    tables = []
    for number, first in enumerate(by_sex):
        sex = _SEXES[number] if len(by_sex) > 1 else ""
        own_last = last_by_sex[number] if sex else []
        last = own_last if len(own_last) >= _FEWEST_NAMES else every_last
        middle = _listed(provider, f"middle_names_{sex}") if sex else []
        listed = _listed(provider, f"prefixes_{sex}" if sex else "prefixes")
        own = [word for title in listed for word in title.split()]
        for titles in (_TITLES["en"], _TITLES.get(locale[:2], _TITLES["en"])):
            own += titles.get(sex, titles["male"] + " " + titles["female"]).split()
        parts = [np.array(part, dtype=object) for part in (first, last, middle)]
        tables.append(
            SexNames(parts[0], parts[1], parts[2], frozenset(map(title_key, [*own, *_DEGREES])))
        )
    return NameList(locale, tuple(tables), _romanized(provider))


def _names(provider: Any, which: str, sex: str = "") -> list[str]:
    """Returns a locale's first or last names. If this list is short or absent, and no sex is given,
    returns the names of all similar lists, such as those by sex."""
    found = _listed(provider, f"{which}_names_{sex}" if sex else f"{which}_names")
    if len(found) >= _FEWEST_NAMES or sex:
        return found
    like = re.compile(rf"([a-z]+_)?{which}_names(_[a-z]+)?")
    names = (name for name in dir(provider) if like.fullmatch(name))
    return sorted({text for name in names for text in _listed(provider, name)})


def _listed(provider: Any, name: str) -> list[str]:
    found = getattr(provider, name, ())
    if not isinstance(found, Collection):
        return []
    return sorted({text.strip() for text in found if isinstance(text, str) and text.strip()})


def _romanized(provider: Any) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in ("first_name_pairs", "last_name_pairs"):
        pairs = getattr(provider, name, ())
        if isinstance(pairs, Collection):
            found |= {pair[0]: pair[-1] for pair in pairs if not isinstance(pair, str)}
    return found


def _has_lists(names: NameList) -> bool:
    return all(min(len(sex.first), len(sex.last)) >= _FEWEST_NAMES for sex in names.sexes)
