"""Exceptions that the library raises.

GcvaeError
├── InputError              invalid input of the caller; carries `problems`
│   ├── TableError          unusable file or table
│   │   └── EmptyTableError file of a table without rows
│   ├── SchemaError         invalid schema (JSON), or schema that contradicts its table
│   ├── UnknownColumnError  name of a column that is not in the schema or the table
│   ├── SettingError        invalid training setting
│   ├── HardRuleError       hard rules that too few generated rows satisfy
│   ├── ConditionError      malformed or impossible condition
│   ├── LeftOutError        request that needs data which a minimal model file does not contain
│   ├── ScoringError        request for a score from a model that was published without scoring
│   └── BudgetError         training that would exceed the privacy budget of a table
├── ArtifactError           unreadable model file
├── UnwritableFileError     file that cannot be written
├── TrainingError           training that cannot go on
│   └── DivergedError       training loss that is infinite or NaN
├── MissingPackageError     optional package that is needed and not installed
└── CancelledError          stop requested by the progress callback
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One error in an input: its location, a description, and what is expected instead.

    Every attribute but `message` is None if it does not apply.

    Attributes:
        message: Description of the error, as a clause without a final stop.
        pointer: JSON pointer (RFC 6901) to the offending member of a JSON document.
        line: Line number in a text file, counted from 1.
        column: Name of the table column.
        expected: Description of a valid value.
        suggestion: Name that was probably meant; the message shows it instead of `expected`.
        row: Index of the row in a table that is not a text file, counted from 0 as in
            `DataFrame.iloc`.
    """

    message: str
    pointer: str | None = None
    line: int | None = None
    column: str | None = None
    expected: str | None = None
    suggestion: str | None = None
    row: int | None = None

    def __str__(self) -> str:
        """Returns the problem in one line, its location first."""
        place = ", ".join(self._places())
        text = f"{place}: {self.message}" if place else self.message
        if self.suggestion is not None:
            return f"{text}; did you mean {self.suggestion!r}?"
        return f"{text} (expected: {self.expected})" if self.expected else text

    def _places(self) -> list[str]:
        places = [self.pointer] if self.pointer else []
        places += [f"line {self.line}"] if self.line is not None else []
        places += [f"row {self.row}"] if self.row is not None else []
        return places + ([f"column {self.column!r}"] if self.column is not None else [])


def json_pointer(*steps: object) -> str:
    """Returns the JSON pointer (RFC 6901) made of member names and list indices from the root.

    >>> json_pointer("given", "price/m²")
    '/given/price~1m²'
    """
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


class GcvaeError(Exception):
    """Base class of all exceptions that the library raises on purpose."""


class InputError(GcvaeError):
    """Raised if an argument, a table or a file of the caller is invalid.

    Attributes:
        problems: All problems that were found in the input, at least one.
    """

    def __init__(self, *problems: Problem | str) -> None:
        """Stores the problems; a string becomes a `Problem` without a location."""
        super().__init__(*problems)
        self.problems = tuple(Problem(p) if isinstance(p, str) else p for p in problems)

    def __str__(self) -> str:
        """Returns one line with the first problem and the number of remaining problems."""
        if not self.problems:
            return self.__class__.__name__
        more = len(self.problems) - 1
        return f"{self.problems[0]}" + (f"; and {more} more" if more else "")


class TableError(InputError):
    """Raised if a file cannot be read as a table, or a table contains cells that cannot be used."""


class EmptyTableError(TableError):
    """Raised if a table has columns but no rows.

    Attributes:
        names: Names of the table's columns.
    """

    names: tuple[str, ...] = ()


class SchemaError(InputError):
    """Raised if a schema (JSON) is invalid or contradicts its table."""


class UnknownColumnError(InputError):
    """Raised if an input names a column that is not in the schema or the table."""


class SettingError(InputError):
    """Raised if a setting or option is unknown or out of its range."""


class HardRuleError(InputError):
    """Raised if too few generated rows satisfy the hard rules, which every synthetic row must."""


class ConditionError(InputError):
    """Raised if a condition on synthetic rows is malformed or impossible under the model."""

    def __str__(self) -> str:
        """Returns all problems in one line, separated by semicolons."""
        return "; ".join(map(str, self.problems))


class LeftOutError(InputError):
    """Raised if a request needs records of the training table, which a minimal model file (saved
    with `minimal=True`) does not contain."""


class ScoringError(InputError):
    """Raised if a score is requested from a model that was published without scoring."""


class BudgetError(InputError):
    """Raised if a training would exceed the limit on the privacy budget (differential privacy) that
    all models of a table may spend together."""


class ArtifactError(GcvaeError):
    """Raised if a model file is truncated, altered, or written by an incompatible version."""


class UnwritableFileError(GcvaeError, OSError):
    """Raised if a file cannot be written, for example because its folder does not exist."""

    def __str__(self) -> str:
        """Returns the path of the file and the cause."""
        return f"{self.filename}: {self.strerror}"


class ModelVersionError(ArtifactError):
    """Raised if the format of a model file has a version that this library cannot read."""


class TrainingError(GcvaeError):
    """Base class of exceptions about a training that cannot continue."""


class DivergedError(TrainingError):
    """Raised if the training loss becomes infinite or NaN."""


class MissingPackageError(GcvaeError):
    """Raised if an optional package is needed and not installed.

    Attributes:
        package: Name of the missing package.
        extra: Extra of gcvae that installs the package, as in `pip install 'gcvae[extra]'`.
    """

    def __init__(self, purpose: str, package: str, extra: str) -> None:
        """Builds the message from what needs the package (`purpose`, a plural noun such as
        "plots"), the missing package, and the extra of gcvae that installs it."""
        super().__init__(
            f"{purpose} need {package}, which is not installed: pip install 'gcvae[{extra}]'"
        )
        self.package = package
        self.extra = extra


class CancelledError(GcvaeError):
    """Exception that a progress callback raises in order to stop training."""
