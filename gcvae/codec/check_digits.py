"""Check digits of IBANs and card numbers.

The model learns and generates numbers without their check digits, which are computed afterwards. A
generated number that differs from all originals without check digits also differs from them with
check digits.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stdnum import iban, luhn
from stdnum.iso7064 import mod_97_10

from gcvae.schema.personal import PersonalKind

CHECKED = frozenset([PersonalKind.IBAN, PersonalKind.CARD])
_NO_SIGN = re.compile(r"[\W_]+")


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
    """Returns whether a string is a valid card number, judged by length and check digit (ISO
    7812)."""
    digits = re.sub(r"[ -]", "", text)
    return bool(re.fullmatch(r"\d{12,19}", digits, re.ASCII)) and luhn.checksum(digits) == 0


def form_of(kind: object) -> Callable[[str], str] | None:
    """Returns a function that maps strings of the same format to the same string: digits become 0
    and letters "a", except for the country of an IBAN. None for kinds of personal data that have no
    such format."""
    if kind not in (PersonalKind.PHONE, PersonalKind.TAX_ID, PersonalKind.IBAN, PersonalKind.CARD):
        return None
    n_kept = 2 if kind is PersonalKind.IBAN else 0

    def form(text: str) -> str:
        return text[:n_kept] + "".join(
            "0" if c.isdecimal() else "a" if c.isalpha() else c for c in text[n_kept:]
        )

    return form
