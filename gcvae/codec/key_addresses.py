"""E-mail addresses that nobody has: names of people at domains that are reserved for examples.

The names are Faker's. Faker's own generator takes minutes for a million addresses and repeats
itself; here name and number follow from a row's place, as in other keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gcvae.numerics.permutations import Numbers, mixed, shuffled
from gcvae.numerics.seeds import derived_seed

RESERVED_DOMAINS = ("example.org", "example.com", "example.net")
"""Source: RFC 2606, section 3."""
_RESERVED_ENDING = "example"
"""A top level of its own. Source: RFC 2606, section 2."""
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s.]+")
_LEAST_SHARE = 0.9  # of the texts, from which on a column is one of addresses
_SIGNS = "._-"  # between two names; no name has one
_DIGITS_OF_63_BITS = 18

Texts = npt.NDArray[Any]


@dataclass(frozen=True)
class AddressTemplate:
    """Addresses such as anna.smith@example.org.

    Attributes:
        sign: Between the two names.
        digits: Of a number after the names; 0 for none. With it addresses go on where all pairs of
            names are taken: it grows by a digit.
        domains: Reserved ones that no original has.
    """

    sign: str
    digits: int
    domains: tuple[str, ...]

    @classmethod
    def learned(cls, chunks: Callable[[], Iterable[Texts]]) -> Self | None:
        """The template of a column of addresses; None of another one."""
        n_texts = n_addresses = n_numbered = 0
        signs = dict.fromkeys(_SIGNS, 0)
        domains = set[str]()
        for texts in chunks():
            n_texts += len(texts)
            found = [text for text in texts if _ADDRESS.fullmatch(text)]
            n_addresses += len(found)
            if n_addresses < _LEAST_SHARE * n_texts:
                return None
            names = [text.partition("@")[0] for text in found]
            n_numbered += sum(name[-1].isdigit() for name in names)
            for sign in signs:
                signs[sign] += sum(sign in name for name in names)
            ends = {text.rpartition("@")[2].casefold().rstrip(".") for text in found}
            domains.update(end for end in ends if _is_reserved(end))
        if not n_addresses:
            return None
        free = tuple(domain for domain in RESERVED_DOMAINS if domain not in domains)
        candidates = (f"mail{n}.{_RESERVED_ENDING}" for n in range(1, len(domains) + 2))
        return cls(
            sign=max(_SIGNS, key=lambda sign: signs[sign]),
            digits=2 if 2 * n_numbered > n_addresses else 0,
            domains=free or (next(domain for domain in candidates if domain not in domains),),
        )

    @property
    def room(self) -> int:
        """How many addresses there are before the number has a digit more."""
        first, last = names_of_people()
        numbers = 10**self.digits - 10 ** (self.digits - 1) if self.digits else 1
        return len(first) * len(last) * numbers

    def keys(self, index: Numbers, rows: Numbers, origin: str) -> Texts:
        """Addresses. Shape: (n,), (n,) -> (n,). See `KeyTemplate.keys`."""
        addresses = np.empty(len(index), dtype=object)
        start, digits, room = 0, self.digits, self.room
        while len(index) and start <= int(index.max()):
            assert digits <= _DIGITS_OF_63_BITS, "no sample has so many rows"
            within = (index >= start) & (index < start + room)
            if within.any():
                place = index[within] - np.uint64(start)
                number = shuffled(place, room, derived_seed(origin, "keys", str(digits)))
                addresses[within] = self._written(number, rows[within], digits, origin)
            start, digits = start + room, digits + 1
            room = AddressTemplate(self.sign, digits, self.domains).room
        return addresses

    def _written(self, number: Numbers, rows: Numbers, digits: int, origin: str) -> Texts:
        """Each number as an address, whose domain the row draws. Shape: (n,), (n,) -> (n,)."""
        first, last = names_of_people()
        rest, at_first = np.divmod(number, np.uint64(len(first)))
        rest, at_last = np.divmod(rest, np.uint64(len(last)))
        which = mixed(rows, derived_seed(origin, "domains")) % np.uint64(len(self.domains))
        domains = np.array([f"@{domain}" for domain in self.domains], dtype=object)[which]
        texts = first[at_first] + self.sign + last[at_last]
        if digits:
            low = 10 ** (digits - 1)
            texts = texts + (rest + np.uint64(low)).astype(str).astype(object)
        return texts + domains  # type: ignore[no-any-return]

    def to_json(self) -> dict[str, Any]:
        """What `from_json` needs."""
        return {"sign": self.sign, "digits": self.digits, "domains": list(self.domains)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """The template of a document that `to_json` wrote."""
        return cls(document["sign"], document["digits"], tuple(document["domains"]))


def _is_reserved(domain: str) -> bool:
    return domain in RESERVED_DOMAINS or domain.endswith(f".{_RESERVED_ENDING}")


@cache
def names_of_people() -> tuple[Texts, Texts]:
    """(first names, last names) in small letters. Shape: (690,), (1000,) with Faker 40."""
    from faker.providers.person.en_US import Provider  # a fifth of a second

    found = []
    for names in (Provider.first_names, Provider.last_names):
        plain = {name.lower() for name in names if re.fullmatch("[A-Za-z]+", name)}
        found.append(np.array(sorted(plain), dtype=object))
    return found[0], found[1]
