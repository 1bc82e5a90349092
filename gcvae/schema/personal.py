"""Personal columns: columns whose cells name people or identify them.

A model never generates such cells. Generated rows contain made-up ones instead; all personal cells
of a row belong to the same made-up person.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self


class PersonalKind(StrEnum):
    """Kind of personal data in a column, such as names or e-mail addresses.

    Attributes:
        plural: Plural noun for messages.
    """

    plural: str

    FIRST_NAME = "first_name", "first names"
    LAST_NAME = "last_name", "last names"
    NAME = "name", "names of people"
    EMAIL = "email", "e-mail addresses"
    PHONE = "phone", "phone numbers"
    STREET = "street", "streets"
    POSTAL_ADDRESS = "postal_address", "postal addresses"
    IBAN = "iban", "IBANs"
    CARD = "card", "card numbers"
    TAX_ID = "tax_id", "tax or identity numbers"
    IP = "ip", "IP addresses"
    URL = "url", "URLs"
    USERNAME = "username", "user names"
    BIRTH_DATE = "birth_date", "dates of birth"

    def __new__(cls, value: str, plural: str) -> Self:
        """Creates a kind from its name in schema documents and its plural."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.plural = plural
        return kind

    @property
    def is_made_up(self) -> bool:
        """Whether synthetic cells are made up without the model; False for dates of birth, which
        the model learns like other dates."""
        return self is not PersonalKind.BIRTH_DATE

    @property
    def is_number(self) -> bool:
        """Whether a cell is the number of one person or account."""
        return self in (PersonalKind.IBAN, PersonalKind.CARD, PersonalKind.TAX_ID)


Personal = PersonalKind | Literal[False]
"""Kind of personal data; False if the user states that the column is not personal."""


def read_personal(value: object) -> Personal:
    """Reads a column's schema member `personal`: the name of a kind of personal data, or false.

    Raises:
        ValueError: The value is invalid; the message describes a valid one.
    """
    if value is False:
        return False
    for kind in PersonalKind:
        if kind == value:
            return kind
    raise ValueError("false, or one of " + ", ".join(PersonalKind))
