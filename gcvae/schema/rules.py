"""Rules between the columns of a table.

    OrderRule("ordered", "shipped", source="found", share=1.0)

A rule holds in most rows of a table. `keep` says what becomes of it: "model" learns it with its
exceptions, "demand" makes it a constraint of every row, "drop" leaves it alone. How rules are read
from documents is in `rule_documents`. This module loads without torch and pandas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

Keep = Literal["model", "demand", "drop"]
Source = Literal["found", "given"]
Ties = Literal["even", "away"]
Relation = Literal["same", "follows"]
DatePartName = Literal[
    "year", "quarter", "month", "day", "weekday", "day_of_year", "week", "hour", "minute", "second"
]
_SIGNIFICANT_DIGITS = 12


@dataclass(frozen=True, kw_only=True)
class RuleBase:
    """What every rule has.

    Attributes:
        keep: What becomes of the rule in a model.
        source: Whether it was found in a table or given by a user.
        share: Of the rows in which all its columns are known, those that keep it; None where it is
            not measured.
    """

    kind: ClassVar[str]
    rewrites: ClassVar[bool] = True
    """Whether the dependent column can be written as its difference from `predicted`."""

    keep: Keep = "model"
    source: Source = "given"
    share: float | None = None

    if TYPE_CHECKING:  # at run time they would be defaults of the fields of these names

        @property
        def column(self) -> str:
            """The dependent column."""

        @property
        def parents(self) -> tuple[str, ...]:
            """The columns that it depends on."""

    def ordered(self, places: Mapping[str, int]) -> Self:
        """The rule with what has no order of its own in that of these places."""
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns of the rule, the dependent one first."""
        return (self.column, *self.parents)

    def to_json(self) -> dict[str, Any]:
        """The rule's part of a schema document; a member that has its default is left out."""
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in COMMON}
        default = {f.name: f.default for f in fields(self) if f.default is not MISSING}
        said = {n: _plain(value) for n, value in own.items() if value != default.get(n, MISSING)}
        document = {"kind": self.kind} | said | {"keep": self.keep, "source": self.source}
        return document if self.share is None else document | {"share": self.share}


@dataclass(frozen=True)
class OrderRule(RuleBase):
    """low ≤ high, of numbers or of dates; `high` is the dependent column.

    Attributes:
        beside: Values of `high` that are no such number or date, and stand apart: 0 where there is
            none, 2099-12-31 for no end. Dates as text.
    """

    kind: ClassVar[str] = "order"
    low: str
    high: str
    beside: tuple[float | str, ...] = ()

    @property
    def column(self) -> str:
        """The upper one."""
        return self.high

    @property
    def parents(self) -> tuple[str, ...]:
        """The lower one."""
        return (self.low,)

    def __str__(self) -> str:
        """The rule in words."""
        others = " or ".join(map(str, self.beside))
        return f"{self.low} ≤ {self.high}" + (f", or {self.high} is {others}" if others else "")


@dataclass(frozen=True)
class SumRule(RuleBase):
    """y = Σ c x + constant + remainder, rounded to y's grid. Dates count in seconds.

    Attributes:
        terms: Columns and their factors.
        remainders: The few values that y mostly differs from the sum by; 0 alone where empty.
        ties: Where a number half way between two of the grid goes: to the even one, or away from 0.
    """

    kind: ClassVar[str] = "sum"
    column: str
    terms: tuple[tuple[str, float], ...]
    constant: float = 0
    remainders: tuple[float, ...] = ()
    ties: Ties = "even"

    def ordered(self, places: Mapping[str, int]) -> Self:
        """The sum with its terms in the order of these places."""
        last = len(places)
        terms = sorted(self.terms, key=lambda term: places.get(term[0], last))
        return replace(self, terms=tuple(terms))

    @property
    def parents(self) -> tuple[str, ...]:
        """The columns of the terms."""
        return tuple(name for name, _ in self.terms)

    def __str__(self) -> str:
        """The rule in words.

        >>> str(SumRule("total", (("net", 1), ("tax", 1), ("off", -1)), remainders=(0, 0.5)))
        'total = net + tax − off, or 0.5 more'
        """
        words = "".join(_term(factor, name) for name, factor in self.terms)
        words += _term(self.constant, "") if self.constant else ""
        start = words.removeprefix(" + ") if words.startswith(" + ") else "−" + words[3:]
        others = [r for r in self.remainders if r]
        more = [f"{_number(abs(r))} {'more' if r > 0 else 'less'}" for r in others]
        return f"{self.column} = {start}" + "".join(f", or {text}" for text in more)


@dataclass(frozen=True)
class ProductRule(RuleBase):
    """y = factor · a · b, rounded to y's grid.

    Attributes:
        factors: a and b.
        ties: As in a sum.
    """

    kind: ClassVar[str] = "product"
    column: str
    factors: tuple[str, ...]
    factor: float = 1
    ties: Ties = "even"

    @property
    def parents(self) -> tuple[str, ...]:
        """a and b."""
        return self.factors

    def __str__(self) -> str:
        """The rule in words."""
        start = "" if self.factor == 1 else f"{_number(self.factor)} × "
        return f"{self.column} = {start}{' × '.join(self.factors)}"


@dataclass(frozen=True)
class ClockRule(RuleBase):
    """y is the time of day `minutes` after `start`; 517 is 05:17.

    Attributes:
        midnight: How y writes it: 0 or 2400.
    """

    kind: ClassVar[str] = "clock"
    column: str
    start: str
    minutes: str
    midnight: int

    @property
    def parents(self) -> tuple[str, ...]:
        """The start, and the minutes that go by."""
        return (self.start, self.minutes)

    def __str__(self) -> str:
        """The rule in words."""
        return f"{self.column} = {self.start} + {self.minutes} minutes, as times of day"


@dataclass(frozen=True)
class DatePartRule(RuleBase):
    """y is a part of a date.

    Attributes:
        of: The date.
        part: Which part.
        zone: An IANA time zone in which the parts are read, the date being in UTC; None for the
            date as it is written.
        monday: The number of Monday, of a weekday. Tuesday has the next one, and so on.
        sunday: The number of Sunday, of a weekday: before Monday or after Saturday.
    """

    kind: ClassVar[str] = "date_part"
    column: str
    of: str
    part: DatePartName
    zone: str | None = None
    monday: int | None = None
    sunday: int | None = None

    @property
    def parents(self) -> tuple[str, ...]:
        """The date."""
        return (self.of,)

    def __str__(self) -> str:
        """The rule in words."""
        words = f"{self.column} = {self.part.replace('_', ' ')} of {self.of}"
        words += "" if self.zone is None else f" in {self.zone}"
        days = f", where Monday is {self.monday} and Sunday {self.sunday}"
        return words if self.monday is None else words + days


@dataclass(frozen=True)
class FunctionRule(RuleBase):
    """The values of the columns `of` fix that of y."""

    kind: ClassVar[str] = "function"
    rewrites: ClassVar[bool] = False
    column: str
    of: tuple[str, ...]

    @property
    def parents(self) -> tuple[str, ...]:
        """The columns that fix it."""
        return self.of

    def __str__(self) -> str:
        """The rule in words."""
        fixing = " and ".join(self.of)
        return f"{fixing} {'fixes' if len(self.of) == 1 else 'fix'} {self.column}"


@dataclass(frozen=True)
class BlanksRule(RuleBase):
    """y is blank wherever `of` is, or exactly there.

    Attributes:
        relation: "same", or "follows" where y is blank in other rows too.
    """

    kind: ClassVar[str] = "blanks"
    rewrites: ClassVar[bool] = False
    column: str
    of: str
    relation: Relation

    @property
    def parents(self) -> tuple[str, ...]:
        """The column that it follows."""
        return (self.of,)

    def __str__(self) -> str:
        """The rule in words."""
        where = "exactly where" if self.relation == "same" else "wherever"
        return f"{self.column} is blank {where} {self.of} is"


Rule: TypeAlias = (
    OrderRule | SumRule | ProductRule | ClockRule | DatePartRule | FunctionRule | BlanksRule
)

COMMON = ("keep", "source", "share")


def _plain(value: Any) -> Any:
    """The value of a member as JSON has it: the terms of a sum are an object."""
    if not isinstance(value, tuple):
        return value
    return dict(value) if value and isinstance(value[0], tuple) else list(value)


def _number(value: float) -> str:
    return f"{value:.{_SIGNIFICANT_DIGITS}g}"


def _term(factor: float, name: str) -> str:
    """A term with its sign before it: ` + 2 × x`, ` − x / 60`.

    >>> _term(-1 / 60, "seconds")
    ' − seconds / 60'
    """
    sign, size = " − " if factor < 0 else " + ", abs(factor)
    if not name:
        return f"{sign}{_number(size)}"
    if size == 1:
        return f"{sign}{name}"
    if len(_number(1 / size)) < len(_number(size)):
        return f"{sign}{name} / {_number(1 / size)}"
    return f"{sign}{_number(size)} × {name}"
