"""Forms of personal names: the parts of a name, and their order.

A form is a text such as "{last}, {first}". Its parts are `first`, `last`, `second` (a second last
name), `middle`, and `initial` (of the first name). {LAST} and {SECOND} are in capitals. Titles are
written as in the table: "Mme {LAST} {first}".
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from gcvae.arrays import Mask, Texts
from gcvae.codec.name_lists import NameList, SexNames, title_key
from gcvae.numerics.permutations import Numbers

_MOST_FORMS = 8
_LEAST_SHARE = 0.02
_SUFFIXES = frozenset(
    ["jr", "sr", "ii", "iii", "iv", "v", "md", "phd", "dds", "dvm", "mba", "bsc", "ba", "msc"]
)
_MARKS = re.compile(r"[-‐\s]+")
Forms = tuple[tuple[str, int], ...]
"""Pairs of a pattern, such as "{last}, {first}", and its number of rows."""
_INITIAL = re.compile(r"[^\W\d_]\.")

Case = Literal["title", "upper", "lower"]


@dataclass(frozen=True)
class NameRead:
    """Result of parsing a full name: its form, such as "{last}, {first}", and the first and the
    last name, case-folded."""

    form: str
    first: str
    last: str


def read_name(text: str, names: NameList) -> NameRead | None:
    """Parses a person's full name by a locale's lists; returns None if its parts are not listed."""
    words = text.split()
    start = 0
    while start < len(words) - 1 and title_key(words[start]) in names.titles:
        start += 1
    for title, own in ((words[:start], words[start:]), ([], words)):
        while len(own) > 2 and title_key(own[-1]) in _SUFFIXES:
            own = own[:-1]
        whole = " ".join(own)
        readings = _readings(whole.casefold(), names), _beside_unlisted(own, bool(title), names)
        loud = [word for word in own if word.isupper() and not _INITIAL.fullmatch(word)]
        capitals = {word.strip(",").casefold() for word in loud}
        if whole.isupper() or not capitals:
            found, part = next(chain(*readings), None), "{last}"
        else:
            own_last = (each for each in chain(*readings) if {*each.last.split()} <= capitals)
            found, part = next(own_last, None), "{LAST}"
        if found is not None:
            form = found.form.replace("{last}", part)
            form = form.replace(
                "{second}", part.replace("last", "second").replace("LAST", "SECOND")
            )
            return NameRead(" ".join([*title, form]), found.first, found.last)
    return None


def of_sex(forms: Forms, sex: SexNames) -> Forms:
    """Returns the name forms, such as "Mrs {first} {last}", whose titles suit a sex; all forms if
    none do."""
    titles = [form.partition("{")[0].split() for form, _ in forms]
    own = zip(forms, titles, strict=True)
    return tuple(form for form, title in own if {*map(title_key, title)} <= sex.titles) or forms


def _beside_unlisted(words: list[str], has_title: bool, names: NameList) -> Iterator[NameRead]:
    """Yields the possible readings of a name whose last name is not listed. The name must have a
    title, or a last name in capitals."""
    for i in range(1, len(words)):
        before, after = " ".join(words[:i]), " ".join(words[i:])
        comma = "," if before.endswith(",") else ""
        orders = (
            (f"{{last}}{comma} {{first}}", before.strip(","), after),
            ("{first} {last}", after, before),
        )
        for form, last, first in orders:
            has_capitals = last.isupper() and len(last) > 2 and not first.isupper()
            if (has_title or has_capitals) and names_in(first.casefold(), names.first_names):
                yield NameRead(form, first.casefold(), last.casefold())


def _readings(text: str, names: NameList) -> Iterator[NameRead]:
    last, comma, rest = text.partition(",")
    if comma:
        words = rest.split()
        if names_in(last, names.last_names) and words:
            for form, own in (("", words), (" {middle}", words[:-1]), (" {initial}.", words[:-1])):
                first = " ".join(own)
                if own and names_in(first, names.first_names):
                    yield NameRead("{last}, {first}" + form, first, last)
        return
    words = text.split()
    parts = [(" ".join(words[:i]), " ".join(words[i:])) for i in range(1, len(words))]
    if not names.separator and len(words) == 1:
        parts = [(text[:i], text[i:]) for i in range(1, min(len(text), 3))]
    orders = [_first_last, _last_first]
    for order in reversed(orders) if names.is_last_name_first else orders:
        for before, after in parts:
            yield from order(before, after, names)
    if len(words) < 3 or not names.separator:
        return
    middle = words[1]
    if _INITIAL.fullmatch(middle) or middle in names.middle_names:
        part = "{middle}" if middle in names.middle_names else "{initial}."
        for read in _first_last(words[0], " ".join(words[2:]), names):
            yield NameRead("{first} " + part + " {last}", read.first, read.last)
    if words[-1] in names.middle_names:
        for read in _last_first(words[0], " ".join(words[1:-1]), names):
            yield NameRead("{last} {first} {middle}", read.first, read.last)


def _first_last(first: str, last: str, names: NameList) -> Iterator[NameRead]:
    if _INITIAL.fullmatch(first) and last in names.last_names:
        yield NameRead("{initial}. {last}", first, last)
    if not names_in(first, names.first_names):
        return
    if last in names.last_names:
        yield NameRead(f"{{first}}{names.separator}{{last}}", first, last)
    elif names_in(last, names.last_names):
        sign = "-" if "-" in last else " "
        yield NameRead(f"{{first}} {{last}}{sign}{{second}}", first, last)


def _last_first(last: str, first: str, names: NameList) -> Iterator[NameRead]:
    if names_in(last, names.last_names) and names_in(first, names.first_names):
        yield NameRead(f"{{last}}{names.separator}{{first}}", first, last)
    elif last in names.last_names and _INITIAL.fullmatch(first):
        yield NameRead("{last} {initial}.", first, last)


def names_in(text: str, listed: frozenset[str]) -> bool:
    """Returns whether a case-folded string is made of listed names, joined by hyphens or spaces."""
    if text in listed:
        return True
    parts = _MARKS.split(text)
    return len(parts) > 1 and all(part in listed for part in parts)


def case_of(texts: Iterable[str]) -> Case:
    """Returns the case of most names: "upper" or "lower" if most are entirely so, else "title"."""
    cased = [text for text in texts if text.upper() != text.lower()]
    if cased and sum(text.isupper() for text in cased) > len(cased) / 2:
        return "upper"
    return "lower" if cased and sum(text.islower() for text in cased) > len(cased) / 2 else "title"


def forms_of(texts: Sequence[str], names: NameList) -> Forms:
    """Returns the forms of a column of full names, such as "{last}, {first}", without rare ones.
    Returns the locale's usual form if its lists contain none of the names."""
    read = [found.form for text in texts if (found := read_name(text, names)) is not None]
    counts = Tally(read).most_common(_MOST_FORMS)
    kept = tuple((form, n) for form, n in counts if n >= _LEAST_SHARE * len(read))
    parts = ("{last}", "{first}") if names.is_last_name_first else ("{first}", "{last}")
    return kept or ((names.separator.join(parts), 1),)


def formed(
    forms: Forms, parts: Mapping[str, Texts], u: Numbers
) -> Iterator[tuple[str, Mask, Texts]]:
    """Assigns a random form to each of n rows; the more rows of the table have a form, the likelier
    it is. Yields each form with the mask of its rows and the names in this form.

    Args:
        parts: Parts of the names in n rows. Shape: (n,) each.
        u: Random integers, which select the form of each row. Shape: (n,).
    """
    ends = np.cumsum([rows for _, rows in forms])
    which = np.searchsorted(ends, u % np.uint64(ends[-1]), side="right")
    for number, (form, _) in enumerate(forms):
        own = which == number
        yield form, own, texts_of(form, {name: part[own] for name, part in parts.items()})


def texts_of(form: str, parts: Mapping[str, Texts]) -> Texts:
    """Writes n texts in a form, such as "{last}, {first}", from their parts. Shape: (n,) each ->
    (n,)."""
    texts: Texts = np.full(len(next(iter(parts.values()))), "", dtype=object)
    for literal, part in re.findall(r"([^{]*)(?:\{(\w+)\})?", form):
        texts = texts + literal
        if part:
            texts = texts + (_upper(parts[part.lower()]) if part.isupper() else parts[part])
    return texts


def _upper(texts: Texts) -> Texts:
    return np.array([text.upper() for text in texts], dtype=object)
