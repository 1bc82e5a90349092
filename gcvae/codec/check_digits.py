"""Check digits of IBANs and card numbers.

Numbers are learned and generated without their check digits, which are computed afterwards. This
never restores a number of the table: numbers that differ without check digits also differ with
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stdnum import iban, luhn
from stdnum.iso7064 import mod_97_10

from gcvae.schema.personal import PersonalKind

CHECKED = frozenset([PersonalKind.IBAN, PersonalKind.CARD])
_NO_SIGN = re.compile(r"[\W_]+")
_CODE = (
    r"\D{0,2}(?:\+|00)\s?"
    r"(?:[17]|2[07]|3[0-469]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|\d{3})(?=\D|\d{4})"
)
"""Country code of a phone number. Source: ITU-T E.164, list of assigned codes."""
_COUNTRY = re.compile(_CODE)
_AREA = re.compile(rf"(?:{_CODE})?\D{{0,3}}\d{{1,5}}(?=\D+\d)|{_CODE}")


def without_check_digits(text: str, kind: object) -> str:
    """Returns an IBAN or card number with its check digits replaced by zeros; strings of other
    kinds of personal data unchanged."""
    if kind is PersonalKind.IBAN:
        return f"{text[:2]}00{text[4:]}"
    return f"{text[:-1]}0" if kind is PersonalKind.CARD and text else text


def with_check_digits(text: str, kind: object) -> str:
    """Returns an IBAN or card number with correct check digits; strings of other kinds unchanged.

    >>> with_check_digits("GB00 WEST 1234 5698 7654 32", PersonalKind.IBAN)
    'GB82 WEST 1234 5698 7654 32'
    >>> with_check_digits("4111 1111 1111 1110", PersonalKind.CARD)
    '4111 1111 1111 1111'
    """
    if kind is PersonalKind.IBAN:
        return f"{text[:2]}{iban.calc_check_digits(_NO_SIGN.sub('', text))}{text[4:]}"
    if kind is not PersonalKind.CARD:
        return text
    rest = text[:-1]
    return f"{rest}{luhn.calc_check_digit(_NO_SIGN.sub('', rest))}"


def is_iban(text: str) -> bool:
    """Returns whether a string is a valid IBAN (ISO 13616)."""
    letters = _NO_SIGN.sub("", text).upper()
    has_form = re.fullmatch(r"[A-Z]{2}\d{2}[A-Z\d]{11,30}", letters, re.ASCII)
    return bool(has_form) and mod_97_10.is_valid(letters[4:] + letters[:4])


def is_card(text: str) -> bool:
    """Returns whether a string is a valid card number (ISO 7812), by length and check digit."""
    digits = re.sub(r"[ -]", "", text)
    return bool(re.fullmatch(r"\d{12,19}", digits, re.ASCII)) and luhn.checksum(digits) == 0


def forms_of(kind: object) -> tuple[Callable[[str], str], ...]:
    """Returns functions that map a string to its format, the most specific function first; empty
    for kinds of personal data without such formats.

    Digits become 0 and letters "a", except the country of an IBAN. For phone numbers, the first
    function keeps the country and area code, the second only the country code.
    """
    if kind is PersonalKind.PHONE:
        return _form(_AREA), _form(_COUNTRY)
    if kind is PersonalKind.IBAN:
        return (_form(re.compile(r".{2}")),)
    return (_form(re.compile("")),) if kind in (PersonalKind.TAX_ID, PersonalKind.CARD) else ()


def _form(kept: re.Pattern[str]) -> Callable[[str], str]:
    """Returns a function that replaces digits by 0 and letters by "a" in a string. A beginning of
    the string that `kept` matches stays unchanged."""

    def form(text: str) -> str:
        found = kept.match(text)
        end = found.end() if found else 0
        return text[:end] + "".join(
            "0" if c.isdecimal() else "a" if c.isalpha() else c for c in text[end:]
        )

    return form
