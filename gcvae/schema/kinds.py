"""Kinds of columns, and the schema members that columns of each kind may have."""

from __future__ import annotations

from collections.abc import Set
from enum import Enum, StrEnum, auto
from typing import Self

from gcvae.schema.suggestions import nearest

_LIMITS = {"minimum", "maximum", "steps", "endings"}
_SPELLING = {"decimals", "padded", "notation", "number_format"}


class Outcomes(Enum):
    """Type of the values of a column's cells, such as numbers, dates or levels (categories)."""

    REAL = auto()  # numbers or times
    ORDERED_LEVELS = auto()
    NOMINAL_LEVELS = auto()
    TRUTH_VALUES = auto()
    KEYS = auto()  # not modelled; generated rows have synthetic keys
    ONE_VALUE = auto()  # not modelled; generated rows have the same value


class ColumnKind(StrEnum):
    """Kind of a column, such as continuous or categorical, which determines how the model
    represents it.

    Attributes:
        outcomes: Type of the values that its cells can take.
        members: Members of the schema's JSON document that columns of this kind may have, in
            addition to those of every column.
        dtype: Dtype of parsed values if no cell is missing; None if it depends on the values.
    """

    outcomes: Outcomes
    members: frozenset[str]
    dtype: str | None

    CONTINUOUS = "continuous", Outcomes.REAL, _LIMITS | _SPELLING, "float64"
    INTEGER = "integer", Outcomes.REAL, _LIMITS | _SPELLING, "int64"
    ORDINAL = "ordinal", Outcomes.ORDERED_LEVELS, {"levels"} | _SPELLING
    CATEGORICAL = (
        "categorical",
        Outcomes.NOMINAL_LEVELS,
        {"levels", "decimals", "padded", "notation"},
    )
    BOOLEAN = "boolean", Outcomes.TRUTH_VALUES, {"levels"}
    DATETIME = (
        "datetime",
        Outcomes.REAL,
        _LIMITS | {"decimals", "datetime_format"},
        "datetime64[us]",  # `gcvae.arrays.TIMES`: the service starts without numpy
    )
    IDENTIFIER = "identifier", Outcomes.KEYS, {"decimals"}
    CONSTANT = "constant", Outcomes.ONE_VALUE, {"levels", "datetime_format"} | _SPELLING

    def __new__(
        cls, value: str, outcomes: Outcomes, members: Set[str], dtype: str | None = None
    ) -> Self:
        """Creates a kind from its name in schema documents and its properties."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.outcomes, kind.members, kind.dtype = outcomes, frozenset(members), dtype
        return kind

    @property
    def is_real(self) -> bool:
        """Whether the values are numbers or times."""
        return self.outcomes is Outcomes.REAL

    @property
    def has_levels(self) -> bool:
        """Whether the values are a list of levels (categories)."""
        listed = (Outcomes.ORDERED_LEVELS, Outcomes.NOMINAL_LEVELS, Outcomes.TRUTH_VALUES)
        return self.outcomes in listed

    @property
    def is_modelled(self) -> bool:
        """Whether the model learns columns of this kind; False for identifiers and constants."""
        return self.has_levels or self.is_real

    @property
    def may_be_numbers(self) -> bool:
        """Whether cells may be formatted numbers, with signs, units and separators."""
        return "number_format" in self.members

    @property
    def is_number(self) -> bool:
        """Whether every value is a number; False for ordinal columns, even if levels are
        numbers."""
        return self.is_real and self.may_be_numbers

    @property
    def is_whole(self) -> bool:
        """Whether every value is an integer."""
        return self.dtype == "int64"

    @property
    def is_strict(self) -> bool:
        """Whether cells must have a certain syntax, such as that of numbers or dates: any other
        string is an error, unless it marks missing cells. In columns of other kinds, any string is
        a value."""
        return self.is_real or self.outcomes is Outcomes.TRUTH_VALUES

    @property
    def needed(self) -> str | None:
        """Member that the schema of a column of this kind must contain: "levels" or
        "datetime_format"; None if there is no such member."""
        if self.has_levels:
            return "levels"
        return "datetime_format" if self.is_real and "datetime_format" in self.members else None


_FOREIGN_KINDS = {
    **dict.fromkeys(("numeric", "numerical", "number", "float", "double", "real"), "continuous"),
    **dict.fromkeys(("nominal", "string", "str", "object", "factor"), "categorical"),
    **dict.fromkeys(("id", "key", "uuid"), "identifier"),
    **{"timestamp": "datetime", "binary": "boolean", "bool": "boolean"},
}
"""Names of kinds in other libraries, with the equivalent kind."""


def meant_kind(word: str) -> str | None:
    """Returns the kind that a misspelt name, or one from another library, probably means; None if
    no kind is similar.

    >>> meant_kind("numerical"), meant_kind("Categoric"), meant_kind("colour")
    ('continuous', 'categorical', None)
    """
    return _FOREIGN_KINDS.get(word.strip().casefold()) or nearest(word, ColumnKind)
