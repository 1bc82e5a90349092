"""Synthetic e-mail addresses, user names and URLs, formed from the synthetic names of a row.

A pattern is a text such as "{first}.{last}", "{f}{last}" or "{first}"; `f` and `l` are initials. If
different names give the same account, a number after the names distinguishes the accounts.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import compress
from typing import Self

import numpy as np
import pandas as pd

from gcvae.arrays import Texts
from gcvae.artifact.documents import Document
from gcvae.codec.name_forms import Forms, formed, texts_of
from gcvae.codec.name_lists import NameList, names_of
from gcvae.codec.people import PersonRows
from gcvae.numerics.permutations import Numbers, mixed
from gcvae.numerics.seeds import derived_seed

RESERVED_DOMAINS = ("example.org", "example.com", "example.net")
"""Domains reserved for examples. Source: RFC 2606, section 3."""
RESERVED_ENDINGS = ("example", "test", "invalid")
"""Top-level domains reserved for tests and examples. Source: RFC 2606, section 2."""
_PARTS = (
    ("first", "last"), ("last", "first"), ("f", "last"), ("last", "f"), ("first", "l"),
    ("l", "first"), ("first",), ("last",), ("f", "l"),
)  # fmt: skip
_SIGNS = "._-"
_LEAST_FORMED = 0.5
"""Minimum share of accounts that names in other columns must explain for patterns to be learned
from these names."""
_LEAST_SHARE = 0.05
_USUAL = "{first}.{last}"


@dataclass(frozen=True)
class AccountPatterns(Document):
    """Patterns such as "{first}.{last}" by which synthetic account names (of e-mail addresses, user
    names, URLs) are formed from people's names.

    Attributes:
        patterns: Patterns and their numbers of rows. If accounts are unique, there is a single
            pattern, because the digits distinguish only accounts of one pattern.
        umlauts: Whether ä becomes ae (True) or a (False), and so on.
        widths: Numbers of digits after the names, in order of use; 0 for no digits. Accounts have
            as many digits as the first entry says. When all such accounts are used up, further
            accounts have as many as the next entry says; after the last entry, one digit more each
            time.
        is_unique: Whether every row has a different account.
    """

    patterns: Forms
    umlauts: bool
    widths: tuple[int, ...]
    is_unique: bool

    @classmethod
    def learned(
        cls,
        accounts: Sequence[str],
        owners: Sequence[tuple[str, str] | None],
        names: NameList,
        *,
        is_unique: bool,
        free_of: Iterable[str] | None = None,
    ) -> Self:
        """Learns by which patterns the account names of a table (without the part after an @) are
        formed from names of people.

        Args:
            accounts: Account name of each row.
            owners: (first name, last name) of each row, from other columns; None if unknown.
            names: Lists of first and last names of the table's locale.
            is_unique: Whether every row has a different account.
            free_of: All accounts of the table, none of which may be generated. Therefore synthetic
                accounts end in a number of digits in which no account of the table ends. None for
                e-mail addresses, whose domains differ from the table's.
        """
        named = [not account.isdigit() for account in accounts]
        accounts, owners = list(compress(accounts, named)), list(compress(owners, named))
        numbers = Tally(_width(account) for account in accounts)
        stems = [re.sub(r"\d+$", "", account.casefold()) for account in accounts]
        known = [(stem, owner) for stem, owner in zip(stems, owners, strict=True) if owner]
        found, umlauts = _patterns_of(known, names)
        if found.total() < _LEAST_FORMED * len(known) or not known:
            found = Tally(_guessed_pattern(stem, names) for stem in stems)
        shares = [pair for pair in found.most_common() if pair[1] >= _LEAST_SHARE * found.total()]
        usual = max(numbers, key=numbers.__getitem__, default=0)
        widths: tuple[int, ...] = (min(usual, 9),)
        if free_of is not None:
            used = set(map(_width, free_of))
            free = (width for width in range(max(used, default=0) + 2) if width not in used)
            nearest = min(free, key=lambda width: abs(width - usual))
            widths = nearest, max(*used, nearest) + 1
        kept = tuple(shares[: 1 if is_unique else None]) or ((_USUAL, 1),)
        return cls(kept, umlauts, widths, is_unique)

    def accounts(self, rows: PersonRows) -> Texts:
        """Returns an account name for each of n synthetic rows. Shape: (n,)."""
        of, names = rows.identities, rows.people.names
        first, last = (self.transliterated(texts, names) for texts in (of.first, of.last))
        initials = [np.array([text[0] for text in texts], dtype=object) for texts in (first, last)]
        parts = dict(zip(("first", "last", "f", "l"), (first, last, *initials), strict=True))
        found = self._numbers(rows)
        for _, own, texts in formed(self.patterns, parts, rows.mixed("pattern")):
            found[own] = texts + found[own]
        return found

    def transliterated(self, texts: Texts, names: NameList) -> Texts:
        """Converts n names to lower-case ASCII letters. Shape: (n,) -> (n,)."""
        codes, distinct = pd.factorize(texts)
        transliterated = [names.ascii(text, self.umlauts) for text in distinct]
        return np.array(transliterated, dtype=object)[codes] if len(transliterated) else texts

    def _numbers(self, rows: PersonRows) -> Texts:
        """Returns the digits at the end of each account; "" for none."""
        start = rows.mixed("numbers")
        left = np.zeros_like(start)
        if self.is_unique:
            pattern, of = self.patterns[0][0], rows.identities
            earlier, sizes, hashes = _spelling_counts(rows.people.locale, pattern, self.umlauts)
            at = of.pairs.astype(np.int64)
            left = earlier[at] + of.turns * sizes[at]
            start = mixed(hashes[at], derived_seed(rows.origin, "numbers"))
        texts = np.full(len(start), "", dtype=object)
        open_ = np.ones(len(start), dtype=bool)
        for width in (*self.widths, *range(self.widths[-1] + 1, 19)):
            low = 10 ** (width - 1) if width else 0
            room = np.uint64(10**width - low)
            own = open_ & (left < room)
            if width:
                number = (start[own] % room + left[own]) % room + np.uint64(low)
                texts[own] = number.astype(str).astype(object)
            open_ &= ~own
            if not open_.any():
                return texts
            left = np.where(open_, left - room, left)
        raise AssertionError("a sample has fewer rows than there are numbers")


def free_domains(domains: Iterable[str]) -> tuple[str, ...]:
    """Returns the domains reserved for examples that `domains` does not contain. If it contains
    all of them, returns a single new domain such as mail1.example."""
    used = {domain.casefold().rstrip(".") for domain in domains}
    free = tuple(domain for domain in RESERVED_DOMAINS if domain not in used)
    numbered = (f"mail{n}.{RESERVED_ENDINGS[0]}" for n in range(1, len(used) + 2))
    return free or (next(domain for domain in numbered if domain not in used),)


def _width(account: str) -> int:
    return len(account) - len(re.sub(r"\d+$", "", account))


def _patterns_of(
    known: Sequence[tuple[str, tuple[str, str]]], names: NameList
) -> tuple[Tally[str], bool]:
    """Returns (number of accounts with each pattern, whether ä is transliterated as ae). `known`
    has, for each account, its text without final digits, and (first name, last name) of its
    owner."""
    found: dict[bool, Tally[str]] = {False: Tally(), True: Tally()}
    for stem, owner in known:
        letters = re.sub("[^a-z]", "", stem)
        for umlauts, patterns in found.items():
            first, last = (names.ascii(name, umlauts) for name in owner)
            parts = {"first": first, "last": last, "f": first[0], "l": last[0]}
            pattern = next((p for p in _PARTS if "".join(parts[x] for x in p) == letters), None)
            if pattern:
                patterns[_pattern(pattern, stem)] += 1
    umlauts = found[True].total() > found[False].total()
    return found[umlauts], umlauts


def _pattern(parts: Sequence[str], stem: str) -> str:
    sign = next((c for c in stem[1:-1] if c in _SIGNS), "") if len(parts) > 1 else ""
    return sign.join(f"{{{part}}}" for part in parts)


def _guessed_pattern(stem: str, names: NameList) -> str:
    first_names, _ = names.ascii_names
    words = [word for word in re.split(f"[{_SIGNS}]", stem) if word]
    if len(words) < 2:
        is_name = re.sub("[^a-z]", "", stem) in first_names
        return _pattern(["first"] if is_name else ["f", "last"], "")
    if words[-1] in first_names and words[0] not in first_names:
        return _pattern(["last", "first"], stem)
    parts = ["f" if len(words[0]) == 1 else "first", "l" if len(words[-1]) == 1 else "last"]
    return _pattern(parts, stem)


@lru_cache(maxsize=8)
def _spelling_counts(locale: str, pattern: str, umlauts: bool) -> tuple[Numbers, Numbers, Numbers]:
    """Counts, for each pair of a first and a last name in a locale, the pairs that give the same
    account, so that digits can make accounts unique.

    Returns, for each pair: the number of earlier pairs with the same account, the number of all
    pairs with this account, and a hash of the account. Accounts are without digits. Shape:
    (n_pairs,) each.
    """
    names = names_of(locale)
    hashes = []
    for sex in names.sexes:
        last = np.array([names.ascii(text, umlauts) for text in sex.last], dtype=object)
        parts = {"last": last, "l": np.array([text[0] for text in last], dtype=object)}
        of_first = []
        for first in (names.ascii(text, umlauts) for text in sex.first):
            form = pattern.replace("{first}", first).replace("{f}", first[0])
            of_first.append(pd.util.hash_array(texts_of(form, parts), categorize=False))
        hashes.append(np.stack(of_first, axis=1).ravel())
    every = np.concatenate(hashes)
    accounts = pd.Series(every)
    grouped = accounts.groupby(accounts)
    before = grouped.cumcount().to_numpy().astype(np.uint64)
    sizes = grouped.transform("size").to_numpy().astype(np.uint64)
    return before, sizes, every
