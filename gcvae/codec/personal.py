"""Generates cells of personal columns in the format of the table's cells, none of which equals an
original.

Sources by kind of personal data:

    names                   the synthetic person of the row, in the column's forms of names
    e-mails, user names     the same person's names, in the column's patterns; e-mails at domains
                            reserved for examples, user names with a number that has more or fewer
                            digits than in any original
    URLs                    the last name under a reserved top-level domain
    IP addresses            ranges reserved for documentation or future use
    streets and addresses   made by the package Faker, with random digits; none is in the table

`gcvae.codec.identifiers` generates phone, account, card and tax numbers, as keys.
"""

from __future__ import annotations

import random
import re
from abc import abstractmethod
from collections import Counter as Tally
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from gcvae.arrays import Texts
from gcvae.cells.values import placed_values
from gcvae.codec.accounts import RESERVED_ENDINGS, AccountPatterns, free_domains
from gcvae.codec.column_codec import ColumnPart
from gcvae.codec.identifiers import CYCLE_ROWS
from gcvae.codec.name_forms import Forms, case_of, formed, forms_of, of_sex, read_name
from gcvae.codec.people import People, PersonRows, columns_of_persons, some_rows
from gcvae.errors import TableError
from gcvae.files.typed_columns import TypedTable, row_chunks
from gcvae.numerics.permutations import Numbers, shuffled
from gcvae.numerics.seeds import derived_seed
from gcvae.schema.columns import Column
from gcvae.schema.personal import PersonalKind

_IP_RANGES = (
    ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"),
    ("198.18.0.0/15",),
    *((f"{first}.0.0.0/8",) for first in range(240, 255)),
)
"""Reserved ranges of IP addresses, the smallest first. Source: RFC 5737, RFC 2544, RFC 1112."""
_IP6_RANGES = "2001:db8::/32", "3fff::/20"
"""Ranges of IPv6 addresses reserved for documentation. Source: RFC 3849, RFC 9637."""
_PLACES = 600
_FEWEST_PLACES = 100
_HOST = re.compile(r"(?:https?://)?(www\.)?([^/:?#\s]+)[^/?#]*(/?.*)", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Originals:
    """Cells of a personal column in the original table.

    Attributes:
        whole: Table whose cells must not be generated: all rows, used in training or not.
        sample: The column's cells in a sample of the training rows.
        owners: (first name, last name) of the person in each sampled row, from other columns; None
            if unknown.
        are_unique: Whether all cells of the column are different.
    """

    whole: TypedTable
    name: str
    kind: PersonalKind
    people: People
    sample: Sequence[str]
    owners: Sequence[tuple[str, str] | None]
    are_unique: bool

    def __iter__(self) -> Iterator[str]:
        """Yields the distinct texts of the column in each chunk of rows of the whole table."""
        for chunk in row_chunks(self.whole, [self.name]):
            yield from chunk[self.name].dropna().astype(str).unique()


@dataclass(frozen=True)
class PersonalCodec(ColumnPart):
    """Generates the cells of a personal column, which the model does not learn.

    Attributes:
        people: Generator of names.
        person: Index of the person whom the column describes; a row may describe several people.
        blank: Number of missing cells among 1,000 consecutive rows (CYCLE_ROWS).
    """

    _given = ("column", "people")
    people: People
    person: int
    blank: int

    @staticmethod
    @abstractmethod
    def learned(originals: Originals) -> tuple[Any, ...]:
        """Learns the format of the column's cells: returns the values of the fields that a subclass
        adds.

        Raises:
            TableError: The column contains IP addresses in every reserved range, so that none is
                left for synthetic addresses.
        """

    @abstractmethod
    def texts(self, rows: PersonRows) -> Texts:
        """Returns a synthetic cell for each of n rows. Shape: (n,)."""

    def decode(self, numbers: Numbers, seed: int) -> pd.Series[Any]:
        """Generates the cells of the n synthetic rows with these numbers; a cell does not depend on
        the rest of the sample. Shape: (n,)."""
        origin = f"{seed}\x1f{self.name}"
        rows = PersonRows(numbers, seed, self.people, self.person, origin)
        at = shuffled(numbers % np.uint64(CYCLE_ROWS), CYCLE_ROWS, derived_seed(origin))
        places = np.where(at < self.blank, -1, np.arange(len(numbers)))
        return placed_values(pa.array(self.texts(rows), pa.string()), places, False)

    @staticmethod
    def of_document(column: Column, document: Mapping[str, Any], people: People) -> PersonalCodec:
        """Restores the codec of a column from the JSON document that `to_json` returned.

        Raises:
            KeyError, TypeError, ValueError: The document is invalid.
        """
        assert isinstance(column.personal, PersonalKind)
        codec = _CODECS[column.personal]
        return codec._of_document(document, column=column, people=people)


@dataclass(frozen=True)
class NameCodec(PersonalCodec):
    """Generates names.

    Attributes:
        forms: Pairs of a pattern, such as "{last}, {first}", and its number of rows.
        case: Case of the letters: "upper", "lower" or "title".
    """

    forms: Forms
    case: str

    @staticmethod
    def learned(originals: Originals) -> tuple[Any, ...]:
        case = case_of(originals.sample)
        if originals.kind is not PersonalKind.NAME:
            part = "first" if originals.kind is PersonalKind.FIRST_NAME else "last"
            return ((f"{{{part}}}", 1),), case
        return forms_of(originals.sample, originals.people.names), case

    def texts(self, rows: PersonRows) -> Texts:
        of = rows.identities
        initial = np.array([text[0] for text in of.first], dtype=object)
        parts = {"first": of.first, "last": of.last, "second": of.second, "middle": of.middle,
                 "initial": initial}  # fmt: skip
        found, u = np.empty(len(rows.numbers), dtype=object), rows.mixed("form")
        for sex, are_own, _, _ in rows.people.names.split(of.pairs):
            forms, own = of_sex(self.forms, sex), np.flatnonzero(are_own)
            of_own = {name: texts[own] for name, texts in parts.items()}
            for _, chosen, texts in formed(forms, of_own, u[own]):
                found[own[chosen]] = texts
        series = pd.Series(found, dtype=object).str.strip()
        if self.case != "title":
            series = series.str.upper() if self.case == "upper" else series.str.lower()
        return series.to_numpy(dtype=object)


@dataclass(frozen=True)
class AccountCodec(PersonalCodec):
    """Generates e-mail addresses and user names.

    Attributes:
        accounts: Patterns, such as "{first}.{last}", that form an account from a person's names.
        domains: Reserved domains that the table does not contain; empty for user names.
    """

    accounts: AccountPatterns
    domains: tuple[str, ...]

    @staticmethod
    def learned(originals: Originals) -> tuple[Any, ...]:
        is_mail = originals.kind is PersonalKind.EMAIL
        accounts = AccountPatterns.learned(
            [text.partition("@")[0] for text in originals.sample],
            originals.owners,
            originals.people.names,
            is_unique=originals.are_unique,
            free_of=None if is_mail else originals,
        )
        domains = free_domains(text.rpartition("@")[2] for text in originals) if is_mail else ()
        return accounts, domains

    def texts(self, rows: PersonRows) -> Texts:
        found = self.accounts.accounts(rows)
        if not self.domains:
            return found
        ends = np.array([f"@{domain}" for domain in self.domains], dtype=object)
        return found + ends[rows.below(len(ends), "domain")]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class UrlCodec(PersonalCodec):
    """Generates URLs, with a last name as host and optionally a first name as path.

    Attributes:
        hosts: Patterns by which last names form hosts.
        scheme: Scheme with "://"; "" for none.
        www: Whether hosts begin with www.
        path: "/{first}" for a first name, "/", or "" for no path.
        ending: Reserved top-level domain that no URL in the table has.
    """

    hosts: AccountPatterns
    scheme: str
    www: bool
    path: str
    ending: str

    @staticmethod
    def learned(originals: Originals) -> tuple[Any, ...]:
        found = [match for text in originals.sample if (match := _HOST.match(text))]
        half = len(found) / 2
        schemes = Tally(
            text.partition("://")[0].lower() for text in originals.sample if "://" in text
        )
        hosts = (match[2] for text in originals if (match := _HOST.match(text)))
        used = {host.casefold().rpartition(".")[2] for host in hosts}
        if sum(len(match[3]) > 1 for match in found) > half:
            path = "/{first}"
        else:
            path = "/" if sum(match[3] == "/" for match in found) > half else ""
        numbered = (f"mail{n}.{RESERVED_ENDINGS[0]}" for n in range(1, len(found) + 2))
        return (
            AccountPatterns((("{last}", 1),), False, (0,), originals.are_unique),
            f"{schemes.most_common(1)[0][0]}://" if schemes else "",
            sum(match[1] is not None for match in found) > half,
            path,
            next((e for e in RESERVED_ENDINGS if e not in used), next(numbered)),
        )

    def texts(self, rows: PersonRows) -> Texts:
        hosts = self.hosts.accounts(rows)
        found = self.scheme + ("www." if self.www else "") + hosts + f".{self.ending}"
        if self.path != "/{first}":
            return found + self.path  # type: ignore[no-any-return]
        first = self.hosts.transliterated(rows.identities.first, rows.people.names)
        return found + "/" + first  # type: ignore[no-any-return]


@dataclass(frozen=True)
class IpCodec(PersonalCodec):
    """Generates IP addresses.

    Attributes:
        ranges: Reserved ranges of IPv4 addresses that contain no address of the table.
        range6: Reserved range of IPv6 addresses that contains no address of the table.
        rows6: Number of rows out of 1,000 with an IPv6 address.
    """

    ranges: tuple[str, ...]
    range6: str
    rows6: int

    @staticmethod
    def learned(originals: Originals) -> tuple[Any, ...]:
        found = {address for text in originals if (address := ip_of(text)) is not None}
        six = [address for address in found if isinstance(address, IPv6Address)]
        n_four = len(found) - len(six)

        def is_free(ranges: Iterable[str]) -> bool:
            nets = [ip_network(each) for each in ranges]
            return not any(address in net for address in found for net in nets)

        free = [ranges for ranges in _IP_RANGES if is_free(ranges) and _size(ranges) > n_four]
        free6 = [each for each in _IP6_RANGES if is_free([each])]
        if not free or not free6:
            message = f"column {originals.name!r} has IP addresses in all reserved ranges"
            raise TableError(f"{message}; drop it")
        some = [address for text in originals.sample if (address := ip_of(text)) is not None]
        n_six = sum(isinstance(address, IPv6Address) for address in some)
        return free[0], free6[0], round(CYCLE_ROWS * n_six / max(len(some), 1))

    def texts(self, rows: PersonRows) -> Texts:
        size = _size(self.ranges)
        at = shuffled(rows.numbers % np.uint64(size), size, derived_seed(rows.origin, "ip"))
        starts = np.array([int(ip_network(each)[0]) for each in self.ranges], dtype=np.uint64)
        which, within = np.divmod(at, np.uint64(size // len(starts)))
        found = np.array([str(IPv4Address(int(n))) for n in starts[which] + within], dtype=object)
        is_six = rows.below(CYCLE_ROWS, "version") < self.rows6
        if is_six.any():
            start, low = int(ip_network(self.range6)[0]), rows.below(2**62, "low")[is_six]
            found[is_six] = [str(IPv6Address(start + (int(n) << 16))) for n in low]
        return found


def ip_of(text: str) -> IPv4Address | IPv6Address | None:
    """Parses an IP address; returns None if the string is not one."""
    try:
        return ip_address(text.strip())
    except ValueError:
        return None


def _size(ranges: Iterable[str]) -> int:
    return sum(ip_network(each).num_addresses for each in ranges)


@dataclass(frozen=True)
class PlaceCodec(PersonalCodec):
    """Generates streets and postal addresses from those of the package Faker, with random digits.

    Attributes:
        places: Addresses in which each digit is replaced by 0.
    """

    places: tuple[str, ...]

    @staticmethod
    def learned(originals: Originals) -> tuple[Any, ...]:
        from faker import Faker

        fake = Faker(originals.people.locale)
        fake.seed_instance(random.Random(originals.name).randrange(2**32))
        write = _street_writer(originals.sample)
        if originals.kind is PersonalKind.POSTAL_ADDRESS:
            has_lines = sum("\n" in text for text in originals.sample) > len(originals.sample) / 2
            joint = "\n" if has_lines else ", "
            made = [re.sub(r",?\s*\n", joint, fake.address()) for _ in range(_PLACES)]
        else:
            made = [write(fake.street_name()) for _ in range(_PLACES)]
        used = {_without_digits(text) for text in originals}
        places = sorted(set(map(_without_digits, made)))
        free = [place for place in places if place not in used]
        if len(free) < _FEWEST_PLACES:  # a number with more digits than any original's
            widest = max((len(run) for text in used for run in _DIGITS.findall(text)), default=0)
            longer = "0" * (widest + 1)
            free = [
                _DIGITS.sub(longer, p, count=1) if "0" in p else f"{p} {longer}" for p in places
            ]
        return (tuple(free),)

    def texts(self, rows: PersonRows) -> Texts:
        places = rows.below(len(self.places), "place").tolist()
        numbers = rows.mixed("digits").tolist()
        found = map(_with_digits, (self.places[i] for i in places), numbers)
        return np.array(list(found), dtype=object)


def _with_digits(place: str, number: int) -> str:
    """Replaces the zeros of a place by digits of a random number; no run begins with 0.

    >>> _with_digits("00 Main St, 0000 City", 123_456)
    '76 Main St, 2371 City'
    """

    def digits(run: re.Match[str]) -> str:
        nonlocal number
        least = 10 ** (len(run[0]) - 1)
        number, more = divmod(number, 9 * least)
        return str(least + more)

    return re.sub("0+", digits, place)


def _without_digits(text: str) -> str:
    return re.sub(r"\d", "0", text.strip())


def _street_writer(texts: Sequence[str]) -> Any:
    """Returns a function that adds a house number, written as zeros, before or after a street, as
    in most of the texts. It adds nothing if most texts contain no number."""
    before = Tally(m[1] for text in texts if (m := re.match(r"\d+(,?) ", text)))
    behind = Tally(m[1] for text in texts if (m := re.search(r"(,?) \d+\S{0,3}$", text)))
    runs = [len(run) for text in texts for run in _DIGITS.findall(text)[:1]]
    number = "0" * min(Tally(runs).most_common(1)[0][0], 4) if runs else ""
    if 2 * len(runs) < len(texts) or not runs:
        return lambda street: street
    if before.total() > behind.total():
        comma = before.most_common(1)[0][0]
        return lambda street: f"{number}{comma} {street}"
    comma = behind.most_common(1)[0][0] if behind else ""
    return lambda street: f"{street}{comma} {number}"


_CODECS: dict[PersonalKind, type[PersonalCodec]] = {
    PersonalKind.FIRST_NAME: NameCodec,
    PersonalKind.LAST_NAME: NameCodec,
    PersonalKind.NAME: NameCodec,
    PersonalKind.EMAIL: AccountCodec,
    PersonalKind.USERNAME: AccountCodec,
    PersonalKind.URL: UrlCodec,
    PersonalKind.IP: IpCodec,
    PersonalKind.STREET: PlaceCodec,
    PersonalKind.POSTAL_ADDRESS: PlaceCodec,
}


def fit_personal(
    table: TypedTable,
    column: Column,
    people: People,
    columns: Sequence[Column],
    whole: TypedTable,
) -> PersonalCodec:
    """Fits the codec that generates the cells of one of a table's personal columns.

    Args:
        people: Generator of names.
        columns: All columns of the table, which determine whose data the column contains.
        whole: Table with all rows, of which `table` is a part; none of its cells is generated.
    """
    assert isinstance(column.personal, PersonalKind)
    persons = columns_of_persons(columns)
    person = next(i for i, own in enumerate(persons) if column.name in own.values())
    n_blank, texts, n_texts = 0, set[int](), 0
    for chunk in row_chunks(table, [column.name]):
        present = chunk[column.name].dropna().astype(str)
        n_blank += len(chunk) - len(present)
        n_texts += len(present)
        texts.update(pd.util.hash_array(present.to_numpy(dtype=object)).tolist())
    rows = _texts_with_owners(table, column.name, persons[person], people)
    originals = Originals(
        whole,
        column.name,
        column.personal,
        people,
        [text for text, _ in rows],
        [owner for _, owner in rows],
        len(texts) == n_texts > 0,
    )
    blank = CYCLE_ROWS * n_blank // max(len(table), 1) if column.missing.allowed else 0
    codec = _CODECS[column.personal]
    learned = codec.learned(originals)
    return codec(column, people, person, min(blank, CYCLE_ROWS - 1), *learned)


def has_personal_codec(column: Column) -> bool:
    """Returns whether a `PersonalCodec` generates the column's cells. It does not for phone
    numbers, for example, which are generated as keys, or for dates of birth, which the model
    learns."""
    return column.is_made_up and column.personal in _CODECS


def _texts_with_owners(
    table: TypedTable, name: str, of: Mapping[PersonalKind, str], people: People
) -> list[tuple[str, tuple[str, str] | None]]:
    """Returns pairs (text of the column `name`, first and last name in the same row, or None if
    unknown) for a sample of rows. `of` has the names of the columns that describe the same person,
    by kind of personal data."""
    apart = [of[k] for k in (PersonalKind.FIRST_NAME, PersonalKind.LAST_NAME) if k in of]
    whole = of.get(PersonalKind.NAME)
    if name in (*apart, whole):
        return [(text, None) for (text,) in some_rows(table, [name]) if text]
    if len(apart) == 2:
        rows = some_rows(table, [name, *apart])
        return [(t, (first, last) if first and last else None) for t, first, last in rows if t]
    if whole is None:
        return [(text, None) for (text,) in some_rows(table, [name]) if text]
    found = []
    for text, full in some_rows(table, [name, whole]):
        read = read_name(full, people.names) if full else None
        if text:
            found.append((text, (read.first, read.last) if read else None))
    return found
