"""The kinds of columns: what each one is to the model, and what a schema document says of it."""

from __future__ import annotations

from collections.abc import Set
from enum import Enum, StrEnum, auto
from typing import Self

from gcvae.schema.suggestions import nearest

_LIMITS = {"minimum", "maximum", "steps", "endings"}
_SPELLING = {"decimals", "padded", "notation", "number_format"}


class Outcomes(Enum):
    """What the cells of a column are outcomes of."""

    LINE = auto()  # numbers or times, with distances
    ORDERED_LEVELS = auto()
    NOMINAL_LEVELS = auto()
    TRUTH_VALUES = auto()
    KEYS = auto()  # not modelled; drawn rows have synthetic ones
    ONE_VALUE = auto()  # not modelled; drawn rows have it too


class ColumnKind(StrEnum):
    """What a column is to the model.

    Attributes:
        outcomes: What its cells are outcomes of.
        members: The members of a schema document that a column of the kind may have, beside those
            of every column.
        dtype: The dtype of its values where no cell may be missing; None where its cells decide.
    """

    outcomes: Outcomes
    members: frozenset[str]
    dtype: str | None

    CONTINUOUS = "continuous", Outcomes.LINE, _LIMITS | _SPELLING, "float64"
    INTEGER = "integer", Outcomes.LINE, _LIMITS | _SPELLING, "int64"
    ORDINAL = "ordinal", Outcomes.ORDERED_LEVELS, {"levels"} | _SPELLING
    CATEGORICAL = (
        "categorical",
        Outcomes.NOMINAL_LEVELS,
        {"levels", "decimals", "padded", "notation"},
    )
    BOOLEAN = "boolean", Outcomes.TRUTH_VALUES, {"levels"}
    DATETIME = (
        "datetime",
        Outcomes.LINE,
        _LIMITS | {"decimals", "datetime_format"},
        "datetime64[us]",  # `gcvae.arrays.TIMES`: the service starts without numpy
    )
    IDENTIFIER = "identifier", Outcomes.KEYS, {"decimals"}
    CONSTANT = "constant", Outcomes.ONE_VALUE, {"levels", "datetime_format"} | _SPELLING

    def __new__(
        cls, value: str, outcomes: Outcomes, members: Set[str], dtype: str | None = None
    ) -> Self:
        """A kind by its word in a schema document."""
        kind = str.__new__(cls, value)
        kind._value_ = value
        kind.outcomes, kind.members, kind.dtype = outcomes, frozenset(members), dtype
        return kind

    @property
    def is_real(self) -> bool:
        """True where the outcomes lie on a line."""
        return self.outcomes is Outcomes.LINE

    @property
    def has_levels(self) -> bool:
        """True where the outcomes are listed."""
        listed = (Outcomes.ORDERED_LEVELS, Outcomes.NOMINAL_LEVELS, Outcomes.TRUTH_VALUES)
        return self.outcomes in listed

    @property
    def is_modelled(self) -> bool:
        """False for identifiers and constants, of which the model learns nothing."""
        return self.has_levels or self.is_real

    @property
    def may_be_numbers(self) -> bool:
        """True where cells may be numbers that are written with signs, units and separators."""
        return "number_format" in self.members

    @property
    def is_number(self) -> bool:
        """True where every outcome is a number."""
        return self.is_real and self.may_be_numbers

    @property
    def is_whole(self) -> bool:
        """True where every outcome is a whole number."""
        return self.dtype == "int64"

    @property
    def is_strict(self) -> bool:
        """True where a text that is no value of the kind can only mean that the cell is missing."""
        return self.is_real or self.outcomes is Outcomes.TRUTH_VALUES

    @property
    def needed(self) -> str | None:
        """The member without which a document of such a column is not complete."""
        if self.has_levels:
            return "levels"
        return "datetime_format" if self.is_real and "datetime_format" in self.members else None


_FOREIGN_KINDS = {
    **dict.fromkeys(("numeric", "numerical", "number", "float", "double", "real"), "continuous"),
    **dict.fromkeys(("nominal", "string", "str", "object", "factor"), "categorical"),
    **dict.fromkeys(("id", "key", "uuid"), "identifier"),
    **{"timestamp": "datetime", "binary": "boolean", "bool": "boolean"},
}
"""Kinds as other tools call them."""


def meant_kind(word: str) -> str | None:
    """The kind that a word means: it may be misspelt, or another tool's. None if it is like none.

    >>> meant_kind("numerical"), meant_kind("Categoric"), meant_kind("colour")
    ('continuous', 'categorical', None)
    """
    return _FOREIGN_KINDS.get(word.strip().casefold()) or nearest(word, ColumnKind)
