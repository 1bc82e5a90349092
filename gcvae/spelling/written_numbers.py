"""Splits formatted numbers into their digits and the signs and units around them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gcvae.arrays import Codes, Mask
from gcvae.spelling.number_text import Texts

SPACES = " \u00a0\u202f"  # plain, no-break and narrow no-break space
APOSTROPHES = "'\u2019"
DECIMALS = (".", ",")
_MINUSES = "-\u2212\u2013"  # a hyphen, a minus and a dash
SIGNS = "()+" + _MINUSES
_BODY = rf"[0-9](?:[0-9.,{SPACES}{APOSTROPHES}]*[0-9])?(?:[eE][+-]?[0-9]{{1,3}})?"
_PARTS = rf"^(?P<left>[^0-9]*)(?P<body>{_BODY})(?P<right>[^0-9]*)$"

PER_CENT = frozenset(["%", "‰", "％"])
_MEASURES = """
mg g kg t mm cm m km ml cl dl l hl m² km² cm² ha m³ ms s sec min h hr hrs kB KB MB GB TB W kW MW
Wh kWh MWh V mA Hz kHz MHz GHz bar Pa hPa kPa kJ kcal °C °F km/h m/s mph kt ° in ft yd mi lb lbs
oz pcs pc Stk Stk. Stück pz ud uds szt szt. шт шт. кг г км м мм см л ч мин
"""
MEASURES = frozenset(_MEASURES.split())
"""Units of measurement, which follow the digits."""
# Currency signs have the Unicode category Sc. These are the codes of ISO 4217, and abbreviations of
# currencies without a sign.
_CURRENCIES = """
AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BRL BSD BTN BWP BYN BZD CAD
CDF CHF CLP CNY COP CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GNF
GTQ GYD HKD HNL HRK HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT
LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR
NZD OMR PAB PEN PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP
STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH UGX USD UYU UZS VES VND VUV WST XAF XCD XOF
XPF YER ZAR ZMW
eur Eur Euro euro usd chf gbp kr kr. Kr Kr. zł zl Kč Ft lei Fr Fr. SFr SFr. sFr. Rs Rs. RM Rp S/ S/.
TL лв лв. руб руб. р. грн грн. ден дин. KM 元 円 圆 원
"""
_CURRENCY_NAMES = frozenset(_CURRENCIES.split())


class Side(NamedTuple):
    """Signs and units before and after the digits of a number.

    Attributes:
        prefix: Unit before the digits, without spaces; "" if there is none.
        suffix: Unit after the digits, without spaces; "" if there is none.
        is_negative: Whether a sign or parentheses mark the number as negative.
        has_late_sign: Whether a sign or parenthesis follows the digits.
    """

    prefix: str
    suffix: str
    is_negative: bool
    has_late_sign: bool

    @property
    def is_known(self) -> bool:
        """Whether all units of the number, if any, are known: currencies, percent, measures."""
        is_measure = not self.prefix and self.suffix in MEASURES
        return is_measure or all(map(is_known, self.unit))

    @property
    def unit(self) -> frozenset[str]:
        """The units before and after the digits."""
        return frozenset((self.prefix, self.suffix)) - {""}


def side_of(left: str, right: str) -> Side | None:
    """Parses the texts before and after the digits of a number; returns None if their signs are
    invalid, as in "-1-"."""
    before, behind = ("".join(c for c in text if c in SIGNS) for text in (left, right))
    if before + behind not in ("", "+", *_MINUSES, "()") or behind in ("+", "()", "("):
        return None
    if before == "()":
        return None
    is_negative = (before + behind) not in ("", "+")
    return Side(symbol_of(left), symbol_of(right), is_negative, bool(behind))


def symbol_of(text: str) -> str:
    """Returns the unit before or after a number's digits: the string without signs and spaces."""
    return "".join(c for c in text if c not in SIGNS and c not in SPACES)


def is_known(symbol: str) -> bool:
    """Returns whether a unit, such as "€" or "%", is a currency, percent or per mille."""
    is_sign = bool(symbol) and unicodedata.category(symbol[-1]) == "Sc" and len(symbol) <= 4
    return is_sign or symbol in PER_CENT | _CURRENCY_NAMES


@dataclass(frozen=True)
class Split:
    """U strings, split into the digits of a number and the texts before and after them.

    Attributes:
        bodies: Digits with their separators; null for a string that is no number. Shape: (U,).
        codes: Index in `sides` for each string; -1 for one that is no number. Shape: (U,).
        sides: Distinct pairs (text before, text after), in order of appearance.
    """

    bodies: Texts
    codes: Codes
    sides: list[tuple[str, str]]

    @classmethod
    def of(cls, texts: Texts) -> Split:
        """Splits each string."""
        parts = pc.extract_regex(texts, _PARTS)
        bodies, left, right = (pc.struct_field(parts, name) for name in ("body", "left", "right"))
        encoded = pc.binary_join_element_wise(left, right, "\0").dictionary_encode()
        codes = np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)
        sides = [text.split("\0", 1) for text in encoded.dictionary.to_pylist()]
        points = [_point_before_digits(left) for left, _ in sides]
        if any(points):
            found = pa.array(points, pa.string()).take(encoded.indices)
            bodies = pc.binary_join_element_wise(found, bodies, "")
        kept = [
            (left.removesuffix(p), right) for (left, right), p in zip(sides, points, strict=True)
        ]
        return cls(bodies, codes, kept)

    def signs(self, allowed: Iterable[bool]) -> Texts:
        """Returns the sign of each number, "-" or ""; null if its pair in `sides` has invalid
        signs, or is excluded by `allowed`, a truth value for each pair. Shape: (U,)."""
        read = [side_of(*side) for side in self.sides]
        signs = [
            None if side is None or not is_allowed else "-" * side.is_negative
            for side, is_allowed in zip(read, allowed, strict=True)
        ]
        places = pa.array(self.codes, mask=self.codes < 0)
        return pa.array(signs, pa.string()).take(places)


def _point_before_digits(left: str) -> str:
    """Returns the decimal separator at the end of the text before the digits, as in $.50; "" if
    there is none, or if it ends an abbreviation as in Rs.50."""
    is_sign = left.endswith(DECIMALS) and not left[:-1][-1:].isalpha()
    return left[-1] if is_sign else ""


def mask_of(matches: Any) -> Mask:
    """Converts an Arrow array of booleans to a NumPy mask; null becomes False."""
    return np.asarray(matches.fill_null(False).to_numpy(zero_copy_only=False), dtype=bool)
