"""What a personal column holds: cells that name people, or lead to them.

None of its cells comes out of a model: drawn rows have made-up ones, of one identity a row.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self


class PersonalKind(StrEnum):
    """What the cells of a personal column are.

    Attributes:
        plural: For sentences.
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
        """A kind by its word in a schema document."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.plural = plural
        return kind

    @property
    def is_made_up(self) -> bool:
        """Whether drawn rows have made-up cells; a date of birth is learned as any other date."""
        return self is not PersonalKind.BIRTH_DATE


Personal = PersonalKind | Literal[False]
"""`false` says that a column is none."""


def read_personal(value: object) -> Personal:
    """The member `personal` of a column.

    Raises:
        ValueError: It is none; with what would be one.
    """
    if value is False:
        return False
    for kind in PersonalKind:
        if kind == value:
            return kind
    raise ValueError("false, or one of " + ", ".join(PersonalKind))
